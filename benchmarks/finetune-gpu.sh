#!/usr/bin/env bash
# Training on a GPU in under six minutes: the fine-tuning tests, all weights of a model of 3 billion parameters, and
# adapters on one of 8 billion, with random weights. Run it in the repository's root after benchmarks/gpu.sh, whose
# environment it uses, or with PYTHON set to a Python that has robust-jax and finds the GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-$PWD/.venv-gpu/bin/python}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

timeout 90 "$python" -m pytest tests/finetune/test_packing.py tests/finetune/test_lora.py -q || echo "tests FAILED"
timeout 130 "$python" benchmarks/finetune.py --shape llama-3.2-3b --compute bfloat16 --remat --against none --steps 8
timeout 130 "$python" benchmarks/finetune.py --shape llama-3.1-8b --compute bfloat16 --lora-rank 16 --remat \
    --against none --steps 8
