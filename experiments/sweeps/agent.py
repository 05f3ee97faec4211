"""One trial of a sweep that Weights & Biases directs: what `wandb agent` starts, with the choice as options.

    python experiments/sweeps/agent.py --data=SETS --train=q_high --out=runs/sweep --rate=1e-4 --accumulation=8

It is `robust-jax finetune run` without the test set, tracked, in a folder of --out that is named by the choice; a trial
that was interrupted goes on from its last checkpoint when the same choice comes again.
"""

import sys
from dataclasses import replace

from robust_jax.errors import InputError, RunError
from robust_jax.finetune.options import TrainOptions, hyper_parameters
from robust_jax.finetune.sweep import trial_name
from robust_jax.finetune.training import train
from robust_jax.runs import parse


def main() -> None:
    try:
        options = parse(TrainOptions, sys.argv[1:], prog="agent.py")
        assert options.out is not None
        out = options.out / trial_name(hyper_parameters(options))
        train(replace(options, out=out, track="wandb"), evaluates=False)
    except InputError as error:
        print(f"agent.py: {error}", file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(f"agent.py: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
