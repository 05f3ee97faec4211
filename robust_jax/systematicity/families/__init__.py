"""The task families by name, each a file of this folder, and the ideal solvers of those that have one."""

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any

from robust_jax.errors import InputError, nearest
from robust_jax.systematicity import solvers
from robust_jax.systematicity.task import Family, Solver


def _modules(package: Any) -> dict[str, Any]:
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}


FAMILIES: Mapping[str, Family[Any, Any]] = {
    module.FAMILY.name: module.FAMILY for module in _modules(sys.modules[__name__]).values()
}
SOLVERS: Mapping[str, Solver] = {name: module.solve for name, module in _modules(solvers).items()}
"""By the name of their family."""


def family(name: str) -> Family[Any, Any]:
    """The family of that name.

    Raises:
        InputError: there is none.
    """
    if name not in FAMILIES:
        raise InputError(f"unknown family {name!r} (nearest: {nearest(name, FAMILIES)}); known: {', '.join(FAMILIES)}")
    return FAMILIES[name]
