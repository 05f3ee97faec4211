#!/usr/bin/env bash
# Everything that needs a GPU, in one go of under eight minutes: the kernels' tests, the Levenshtein kernel against its
# twins, and generation. Run it in the repository's root on a machine with CUDA 12 or newer; it installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import jax; assert jax.default_backend() == "gpu"' 2>/dev/null; then
    "$python" -m venv .venv-gpu
    python=$PWD/.venv-gpu/bin/python
    "$python" -m pip install --quiet --editable ".[gpu]" "jax[cuda12]>=0.10,<0.12" pytest pytest-timeout hypothesis beartype
fi
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

# What the interpreter of Triton shows needs no GPU, but PyTorch.
timeout 120 "$python" -m pytest tests/kernels -q -m "not slow" -k "not interpreter" || echo "kernel tests FAILED"
timeout 90 "$python" benchmarks/levenshtein.py || echo "Levenshtein benchmark FAILED"
timeout 120 "$python" benchmarks/accelerator.py --shape llama-3.2-3b --batch-size 256 --prompts 512
timeout 120 "$python" benchmarks/accelerator.py --shape llama-3.1-8b --batch-size 256 --prompts 256 --rounds 2
