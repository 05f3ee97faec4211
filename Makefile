# Everything runs in .venv, which the first target makes. Only Python 3.11 or newer and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo-out
FINETUNE_DEMO := finetune-demo-out

.PHONY: demo finetune-demo install test test-slow lint types arrows check clean

demo: $(VENV)/.installed
	$(BIN)/robust-jax lpds search --config experiments/demo.yaml --out $(DEMO)

# Searches, trains on easy, on difficult and on random variations, and compares.
finetune-demo: $(VENV)/.installed
	$(BIN)/python experiments/finetuning.py --config experiments/finetuning-demo.yaml --out $(FINETUNE_DEMO)

install: $(VENV)/.installed

# Most tests keep one core busy, so two files run side by side.
test: $(VENV)/.installed-for-development
	$(BIN)/pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(VENV)/.installed-for-development
	$(BIN)/pytest -m slow

lint: $(VENV)/.installed-for-development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-for-development
	$(BIN)/mypy
	$(BIN)/mypy benchmarks experiments

# Holds the one-way arrows between the folders.
arrows: $(VENV)/.installed-for-development
	$(BIN)/lint-imports

check: lint types arrows test

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

# jax-triton compiles for a GPU with a library of JAX's CUDA plugin. Where there is no GPU the plugin comes without the
# rest of CUDA, so that JAX does not look for one.
$(VENV)/.installed-for-development: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test,lint]"
	if [ "$$(uname)" = Linux ] && ! $(BIN)/python -c "import jax_triton" 2>/dev/null; then \
		$(BIN)/pip install --quiet --disable-pip-version-check --no-deps \
			"jax-cuda13-plugin==$$($(BIN)/python -c 'import jaxlib; print(jaxlib.__version__)')"; \
	fi
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) $(DEMO) $(FINETUNE_DEMO)
