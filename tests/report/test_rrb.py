"""The headlines of RRB's reports claim what the stored intervals allow, and nothing where nothing could change."""

from typing import Any, cast

import pytest

from robust_jax.report.drawing import as_svg
from robust_jax.report.rrb_figures import heat_map
from robust_jax.report.rrb_inputs import DilutionResults, RewritingResults
from robust_jax.report.rrb_shown import dilution_headline, rewriting_headline


def row(name: str, accuracy: float | None) -> dict[str, Any]:
    return {"name": name, "accuracy": interval(accuracy), "change": interval(0.0)}


def test_the_heat_map_is_drawn_without_an_image_which_no_page_may_show() -> None:
    runs = [
        {
            "model": model,
            "suite": "s",
            "original": interval(1.0),
            "perturbations": [row("rail_fence", share), row("x", None)],
        }
        for model, share in (("a", 0.2), ("b", 0.9))
    ]
    drawn = as_svg(heat_map(cast(list[RewritingResults], runs)))
    assert "<image" not in drawn and "data:" not in drawn
    assert all(f">{text}<" in drawn for text in ("100", "20", "90", "n/a"))


def interval(value: float | None, low: float | None = None, high: float | None = None, n: int = 9) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": n}


@pytest.mark.parametrize(
    ("original", "change", "said"),
    [
        (1.0, (-0.5, -0.6, -0.4), "Rewritten, problems are solved 50.0 points less often."),
        (0.5, (-0.1, -0.3, 0.1), "no clear difference"),
        (0.5, (0.2, 0.1, 0.3), "more often than as they are"),
        (0.0, (0.0, 0.0, 0.0), "No problem is solved as it is"),
        (None, (None, None, None), "too few answers"),
    ],
)
def test_rewriting(original: float | None, change: tuple[float | None, ...], said: str) -> None:
    row = {"name": "rail_fence", "accuracy": interval(original), "change": interval(*change)}
    results = {"average": {"change": interval(*change)}, "original": interval(original), "perturbations": [row]}
    assert said in rewriting_headline(cast(RewritingResults, results)).sentence


@pytest.mark.parametrize(
    ("alone", "change", "said"),
    [
        (1.0, (-0.5, -0.6, -0.4), "As the last of 3, a problem is solved 50.0 points less often."),
        (0.5, (-0.1, -0.3, 0.1), "about as often as alone"),
        (0.5, (0.2, 0.1, 0.3), "more often than alone"),
        (0.0, (0.0, 0.0, 0.0), "No problem is solved alone"),
        (None, (None, None, None), "too few answers"),
    ],
)
def test_dilution(alone: float | None, change: tuple[float | None, ...], said: str) -> None:
    results = {
        "conditions": [{"n": 1, "condition": "alone", "accuracy": interval(alone)}],
        "effects": [{"n": n, "effect": "total", "change": interval(*change)} for n in (2, 3)],
    }
    assert said in dilution_headline(cast(DilutionResults, results)).sentence
