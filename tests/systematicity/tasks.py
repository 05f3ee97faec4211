"""Tasks of every family and setting, for the tests that go over all of them."""

from functools import cache

from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.generation import generate_task
from robust_jax.systematicity.task import Family, Task

SETTINGS = {
    "grammar": {},
    "grammar, letters": {"vocabulary": "letters", "extra": 8},
    "grammar, numbers": {"vocabulary": "numbers", "primitives": 5, "functions": 2},
    "raven": {},
    "raven, 3 features": {"features": 3},
    "programs": {},
    "programs, described": {"instructions": "operations", "longest": 20},
    "boolean": {},
    "boolean, rest": {"queries": "rest"},
    "boolean, constants": {"constants": True},
}
FEW = {"grammar": 3, "programs": 6, "raven": 20, "boolean": 12}
VARIED = [
    (setting, kind)
    for setting, parameters in SETTINGS.items()
    for kind in FAMILIES[setting.partition(",")[0]].kinds(FAMILIES[setting.partition(",")[0]].parameters(**parameters))
]
"""Every kind of variation under every setting."""


def family_of(setting: str) -> Family:
    return FAMILIES[setting.partition(",")[0]]


@cache
def task(setting: str, number: int, seed: int = 0) -> Task:
    family = family_of(setting)
    return generate_task(family, family.parameters(**SETTINGS[setting]), seed, number)


def tasks(setting: str) -> list[Task]:
    """A few, made once for all tests."""
    return [task(setting, number) for number in range(FEW[family_of(setting).name])]
