"""results.json: the figures of a run, written so that equal results are equal files."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robust_jax.errors import InputError
from robust_jax.runs.options import Plain
from robust_jax.runs.writing import json_text, keeping, write_atomically

DIGITS = 10
"""Significant decimal digits of a float in results.json."""


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write figures as JSON: sorted keys, floats to ten significant digits, NaN and infinities as null.

    Raises:
        RunError: the disk fails; an earlier file stays as it was.
        TypeError: the results hold what does not belong there, such as a path or a time.
    """
    text = json_text(_stable(results), indent=2, sort_keys=True) + "\n"
    with keeping(path.parent):
        write_atomically(path, text.encode())


def read_results(path: Path) -> dict[str, Any]:
    """The figures that `write_results` wrote.

    Raises:
        InputError: there are none, or the file is damaged.
    """
    try:
        results = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no results yet: run its command to the end") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        results = None
    if not isinstance(results, dict):
        raise InputError(f"{path} is damaged: delete it and run the same command again")
    return results


def _stable(value: Any) -> Plain:
    match value:
        case None | bool() | str():
            return value
        case np.ndarray() | np.generic():
            return _stable(value.tolist())
        case int():
            return int(value)
        case float():
            rounded = float(f"{value:.{DIGITS}g}")
            # Adding 0.0 turns -0.0, which differs as text only, into 0.0.
            return rounded + 0.0 if math.isfinite(rounded) else None
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError("keys of results are texts")
            return {key: _stable(part) for key, part in value.items()}
        case list() | tuple():
            return [_stable(part) for part in value]
    raise TypeError(f"results hold no {type(value).__name__}")
