"""The check that what is handed to the report has the shapes of `robust_jax.report.inputs`."""

import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from robust_jax.errors import InputError
from robust_jax.report.inputs import MeasureResults, QuantileCurve, Results, SearchResults, TemplateExamples

_KINDS: dict[str, type[Any]] = {"lpds search": SearchResults, "lpds measure": MeasureResults}


def checked_results(raw: object) -> Results:
    """`raw`, once it is known to have the shape of one kind of results.

    Raises:
        InputError: it has not; the message names the place.
    """
    kind = raw.get("kind") if isinstance(raw, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        known = " or ".join(repr(name) for name in _KINDS)
        raise InputError(f"results: kind is {kind!r}, and the report draws {known}; run the command that writes them")
    check_shape(raw, _KINDS[kind], "results")
    results = cast(dict[str, Any], raw)
    if kind == "lpds search":
        curves, quantiles = results["search_curves"], results["quantile_curve"]
        bands = [f"{name}{end}" for name in ("max_difficulty", "beam_accuracy") for end in ("", "_low", "_high")]
        parts = [curves[name] for name in ("iteration", *bands)]
        for curve in curves.get("templates", ()):
            parts += [curve["max_difficulty"], curve["beam_accuracy"]]
        _check_lengths(parts, "results.search_curves")
        _check_lengths([quantiles[name] for name in QuantileCurve.__annotations__], "results.quantile_curve")
        shapes = {f"results.distributions.{name}": shape for name, shape in results["distributions"].items()}
    else:
        shapes = {f"results.metrics[{place}]": row["distribution"] for place, row in enumerate(results["metrics"])}
    for place, shape in shapes.items():
        if shape is not None:
            _check_lengths([shape["edges"][1:], shape["right"], shape["wrong"]], place)
    return cast(Results, results)


def checked_examples(raw: object) -> list[TemplateExamples]:
    """`raw`, once it is known to be a list of examples.

    Raises:
        InputError: it is not; the message names the place.
    """
    check_shape(raw, list[TemplateExamples], "examples")
    return cast(list[TemplateExamples], raw)


def _check_lengths(lists: list[list[Any]], place: str) -> None:
    lengths = sorted({len(values) for values in lists})
    if len(lengths) > 1:
        raise InputError(f"{place}: its lists have lengths {lengths}; give one value a point, null if unknown")


def check_shape(value: object, shape: Any, place: str) -> None:
    """Check that a value has the shape of a type that JSON can hold.

    Args:
        value: what is given.
        shape: such as a TypedDict, or a list of them.
        place: what the message calls the value.

    Raises:
        InputError: it has not; the message names the place within it.
    """
    fault = _checker(shape)(value)
    if fault is not None:
        raise InputError(f"{place}{fault}; see robust_jax.report.inputs for the shape")


Checker: TypeAlias = Callable[[Any], str | None]
"""Says where a value departs from a shape, as the rest of a sentence that begins with the value's place."""


@cache
def _checker(shape: Any) -> Checker:
    """The check for a type that JSON can hold. It writes a place out only for a fault: there are 10⁵ attempts."""
    origin, inner = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return _object_checker(shape)
    if origin is list:
        return _list_checker(_checker(inner[0]))
    if origin is dict:
        return _mapping_checker(_checker(inner[1]))
    if origin is Literal:
        allowed = ", ".join(map(str, inner))
        return lambda value: None if value in inner else f" is {value!r}, not one of {allowed}"
    if origin in (Union, types.UnionType):
        return _union_checker([_checker(option) for option in inner])
    return _plain_checker(shape)


def _object_checker(shape: Any) -> Checker:
    fields = [(name, _checker(hint), name in shape.__required_keys__) for name, hint in get_type_hints(shape).items()]

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" is {_kind(value)}, not an object"
        for name, check_field, is_required in fields:
            if name in value:
                fault = check_field(value[name])
                if fault is not None:
                    return f".{name}{fault}"
            elif is_required:
                return f".{name} is missing"
        return None

    return check


def _list_checker(check_item: Checker) -> Checker:
    def check(value: Any) -> str | None:
        if not isinstance(value, list):
            return f" is {_kind(value)}, not a list"
        faults = ((place, check_item(item)) for place, item in enumerate(value))
        return next((f"[{place}]{fault}" for place, fault in faults if fault is not None), None)

    return check


def _mapping_checker(check_item: Checker) -> Checker:
    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" is {_kind(value)}, not an object"
        faults = ((name, check_item(item)) for name, item in value.items())
        return next((f".{name}{fault}" for name, fault in faults if fault is not None), None)

    return check


def _union_checker(options: list[Checker]) -> Checker:
    def check(value: Any) -> str | None:
        faults = [option(value) for option in options]
        return None if None in faults else faults[0]

    return check


_NAMES: dict[type, str] = {
    type(None): "null",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def _plain_checker(shape: type) -> Checker:
    accepted = (int, float) if shape is float else (shape,)

    def check(value: Any) -> str | None:
        is_right = isinstance(value, accepted) and (shape is bool or not isinstance(value, bool))
        return None if is_right else f" is {_kind(value)}, not {_NAMES[shape]}"

    return check


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), "a list" if isinstance(value, list) else "an object")
