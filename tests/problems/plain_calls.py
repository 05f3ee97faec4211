"""Calls template functions as a plain Python program does, and prints what they give as JSON.

python plain_calls.py ROOT SEEDS FILE:FUNCTION … — the reference for recordings, run in a process of its own.
"""

import json
import random
import sys
from importlib import import_module
from pathlib import Path

import numpy as np


def main(root: str, seeds: str, *functions: str) -> None:
    results = {}
    for function in functions:
        file, name = function.split(":")
        folder = str((Path(root) / file).parent)
        sys.path[:0] = [folder, root]
        call = getattr(import_module(Path(file).stem), name)
        for seed in range(int(seeds)):
            random.seed(seed)
            np.random.seed(seed)
            results[f"{function}:{seed}"] = call()
        del sys.path[:2]
        for module, loaded in [*sys.modules.items()]:
            if (getattr(loaded, "__file__", None) or "").startswith(root):
                del sys.modules[module]
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
