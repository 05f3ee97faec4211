#!/bin/bash
# One search over all GPUs of some nodes: sbatch experiments/launch/slurm.sh MODEL OUT [more options of `lpds search`]
# The checkpoint and OUT lie on a disk that every node sees; only the first task writes to OUT.
# If the job dies or runs out of time, submit the same line again: it goes on from what is kept.
#SBATCH --job-name=robust-jax
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
# JAX gives every task the one GPU of its number on its node.
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail
model=$1 out=$2
shift 2

# `model` stays within a node, whose links are fast; the nodes share the rows. A lost task ends all others.
srun --kill-on-bad-exit=1 robust-jax lpds search --model "$model" --out "$out" --dtype bfloat16 \
  --coordinator auto --mesh data=-1,model=8 "$@"
