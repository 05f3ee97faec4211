"""Numbers as they are written and the results in plain words: one spelling for terminal, figures and page."""

from collections.abc import Sequence
from typing import NamedTuple

from robust_jax.report.inputs import Interval, MeasureResults, MetricPower, Number, Results, SearchResults, finite

MISSING = "n/a"
"""Stands where a number is not available."""

ARMS = {
    "reference": "References",
    "measure": "Measured variations",
    "base": "Base problems",
    "random": "Random sampling",
    "beam": "Search",
}
"""What the arms of a run are called, in reading order. An arm without a name here is called by its own."""


def decimal(number: Number | None, digits: int = 2) -> str:
    """0.80; numbers that `digits` would blur to nothing keep two significant figures."""
    number = finite(number)
    if number is None:
        return MISSING
    is_tiny = 0 < abs(number) < 0.95 * 10 ** (1 - digits)
    text = f"{number:.2g}" if is_tiny or abs(number) >= 1e5 else f"{number:,.{digits}f}"
    return _minus(text)


def percent(share: Number | None) -> str:
    """71.2%"""
    share = finite(share)
    return MISSING if share is None else _minus(f"{100 * share:.1f}%")


def points(share: Number | None) -> str:
    """A difference of two shares in percentage points, without the unit: 17.1"""
    share = finite(share)
    return MISSING if share is None else _minus(f"{100 * share:.1f}")


def times(ratio: Number | None) -> str:
    """1.8×"""
    ratio = finite(ratio)
    return MISSING if ratio is None else f"{decimal(ratio, 1)}×"


def span(interval: Interval | None, digits: int = 2) -> str:
    """The ends of an interval without a unit: 0.78 to 0.82"""
    low, high = (None, None) if interval is None else (finite(interval["low"]), finite(interval["high"]))
    if low is None or high is None:
        return MISSING
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def share_span(interval: Interval | None) -> str:
    """The ends of an interval of shares, in percent without the sign: 68.0 to 74.1"""
    low, high = (None, None) if interval is None else (finite(interval["low"]), finite(interval["high"]))
    return MISSING if low is None or high is None else f"{points(low)} to {points(high)}"


def one_line(text: str) -> str:
    """The text on one line, without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _minus(text: str) -> str:
    is_negative = text.startswith("-") and text.strip("-0.,%") != ""
    return ("−" if is_negative else "") + text.removeprefix("-")


class Headline(NamedTuple):
    """What the results say, for someone who reads nothing else."""

    sentence: str
    detail: str


def headline(results: Results) -> Headline:
    """The main finding in plain words. It claims a difference only where the stored interval is clear of none."""
    return _search_headline(results) if results["kind"] == "lpds search" else _measure_headline(results)


def _search_headline(results: SearchResults) -> Headline:
    accuracy, difference = results["accuracy"], results["error_difference"]
    random, beam = finite(accuracy["random"]["value"]), finite(accuracy["beam"]["value"])
    if random is None or beam is None:
        return Headline("There are too few answers to compare search with random sampling.", "")
    random_error, beam_error = 1 - random, 1 - beam
    low, high = finite(difference["low"]), finite(difference["high"])

    if low is not None and low > 0:
        if random_error > 0 and beam_error / random_error >= 1.1:
            ratio = decimal(beam_error / random_error, 1)
            sentence = f"Under search the model fails {ratio} times as often as random sampling suggests."
        else:
            sentence = "Under search the model fails more often than random sampling suggests."
    elif high is not None and high < 0:
        sentence = "Search found fewer failures than random sampling."
    else:
        sentence = "Search and random sampling show no clear difference."

    detail = (
        f"The model fails on {percent(beam_error)} of the variations that search explored and on "
        f"{percent(random_error)} of random ones."
    )
    if low is not None and high is not None:
        detail += f" The difference is {points(difference['value'])} points ({share_span(difference)})."
    drops = results["drops"]
    ratio_of_drops = drops["ratio"] if drops else None
    if ratio_of_drops is not None and finite(ratio_of_drops["value"]) is not None:
        detail += (
            f" From the base problems, accuracy falls {decimal(ratio_of_drops['value'], 1)} times as far under search"
            f" as at random ({span(ratio_of_drops, digits=1)})."
        )
    return Headline(sentence, detail)


def _measure_headline(results: MeasureResults) -> Headline:
    best = best_metric(results)
    if best is None:
        return Headline("No metric could be ranked: right and wrong answers are needed in one template.", "")
    auc = best["auc"]
    name = f"{row_name(best, results['metrics'])} of the {best['span'].lower()}"
    if (low := finite(auc["low"])) is not None and low > 0.5:
        sentence = f"Of all metrics, {name} tells wrong answers apart best."
    else:
        sentence = "No metric tells wrong answers apart clearly better than chance."
    detail = (
        f"With {name}, a wrong answer scores as more difficult than a right one in {percent(auc['value'])} of pairs "
        f"({share_span(auc)}); chance would give 50%."
    )
    return Headline(sentence, detail)


def best_metric(results: MeasureResults) -> MetricPower | None:
    """The metric of the largest AUC; None where there is no AUC."""
    usable = [row for row in results["metrics"] if finite(row["auc"]["value"]) is not None]
    return max(usable, key=lambda row: row["auc"]["value"] or 0.0, default=None)


def row_name(row: MetricPower, rows: Sequence[MetricPower]) -> str:
    """The metric's label, with its block where the table holds several."""
    same = [other for other in rows if (other["span"], other["metric"]) == (row["span"], row["metric"])]
    return row["metric"] if len(same) == 1 else f"{row['metric']}, block {row['layer']}"


def ranked(auc: dict[str, Interval]) -> list[tuple[str, Interval]]:
    """Metrics with their AUC, the largest first, those without one last; results.json keeps no order of its own."""
    return sorted(auc.items(), key=lambda item: (-(finite(item[1]["value"]) or 0.0), item[0]))
