"""Made-up results with the shape, sizes and spread of real ones, drawn from a seed."""

from typing import Any

import numpy as np

NAMES = ["Mira", "Jonas", "Ana-Lucía", "Tomasz", "Wen", "Oluwaseun"]
GOODS = ["pencils", "apples", "model trains", "jars of honey", "tickets"]


def interval(value: float, half: float, n: int) -> dict[str, Any]:
    return {"value": value, "low": value - half, "high": value + 0.9 * half, "n": n}


def make_search_results(templates: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    random_error = rng.beta(1.2, 6.0, templates)
    beam_error = np.clip(random_error + rng.gamma(1.0, 0.12, templates) - 0.03, 0, 1)
    base = (rng.random(templates) < 0.86).astype(float)
    iteration = np.arange(16)
    growth = 120 + 700 * (1 - np.exp(-iteration / 4))
    singles = [
        {
            "id": f"{number:04d}",
            "max_difficulty": (growth * rng.lognormal(0, 0.25) + rng.gamma(2, 15, 16).cumsum()).tolist(),
            "beam_accuracy": np.clip(np.exp(-iteration / rng.uniform(1, 9)) + rng.normal(0, 0.05, 16), 0, 1).tolist(),
        }
        for number in range(templates)
    ]
    quantile = np.arange(1, 21)
    accuracy = 0.97 - 0.75 * (quantile / 20) ** 3.5
    random_accuracy, beam_accuracy = 1 - random_error.mean(), 1 - beam_error.mean()
    spread = 0.45 / np.sqrt(templates)
    return {
        "kind": "lpds search",
        "model": "builtin:tiny",
        "suite": "grade-school",
        "settings": {"iterations": 15, "width": 16, "branching": 16, "difficulty": "MD_H", "goalpost": True, "seed": 0},
        "counts": {
            "reference": {"ok": 24310, "unparsed": 91, "truncated": 5},
            "base": {"ok": templates - 1, "unparsed": 1},
            "random": {"ok": 28211, "unparsed": 120, "truncated": 33, "error": 2},
            "beam": {"ok": 27790, "unparsed": 412, "truncated": 160, "refused": 1, "error": 3},
        },
        "accuracy": {
            "base": interval(base.mean(), 0.068, templates),
            "random": interval(random_accuracy, 0.03, 28364),
            "beam": interval(beam_accuracy, 0.045, 28363),
        },
        "drops": {
            "random": interval(base.mean() - random_accuracy, 0.04, templates),
            "beam": interval(base.mean() - beam_accuracy, 0.05, templates),
            "ratio": interval(3.1, 1.2, templates),
        },
        "error_difference": interval(float((beam_error - random_error).mean()), 0.018, templates),
        "templates": [
            {
                "id": f"{number:04d}",
                "base_accuracy": float(base[number]),
                "random_error": float(random_error[number]),
                "beam_error": float(beam_error[number]),
                "explored": int(rng.integers(900, 3900)),
                "references": int(rng.integers(40, 201)),
                "note": "base problem lies outside its domain" if number % 17 == 3 else "",
            }
            for number in range(templates)
        ],
        "search_curves": {
            "iteration": iteration.tolist(),
            "max_difficulty": np.median([single["max_difficulty"] for single in singles], 0).tolist(),
            "beam_accuracy": np.median([single["beam_accuracy"] for single in singles], 0).tolist(),
            **{
                f"{name}_{end}": (factor * np.median([single[name] for single in singles], 0)).tolist()
                for name in ("max_difficulty", "beam_accuracy")
                for end, factor in (("low", 0.9), ("high", 1.1))
            },
            "templates": singles,
        },
        "quantile_curve": {
            "quantile": quantile.tolist(),
            "accuracy": accuracy.tolist(),
            "low": (accuracy - spread).tolist(),
            "high": np.minimum(1, accuracy + spread).tolist(),
        },
        "drs": interval(0.78, 0.03, templates),
        "auc": {
            name: interval(value, 0.02, 87)
            for name, value in (("MD_H", 0.81), ("LD_min", 0.79), ("KNN_H", 0.7), ("MD_E", 0.56), ("Perplexity", 0.45))
        },
        "accuracy_distribution": {
            "random": rng.binomial(100, random_accuracy, 1000).__truediv__(100).tolist(),
            "beam": rng.binomial(100, beam_accuracy, 1000).__truediv__(100).tolist(),
        },
        "distributions": {name: make_distribution(rng) for name in ("LD_min", "MD_H", "MD_E")},
        "attribution": make_attribution(templates),
    }


def make_attribution(templates: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    places = [(f"{number:04d}", slot) for number in range(templates) for slot in ("name", "n")]
    values = [
        {
            "template": template,
            "slot": slot,
            "value": value,
            "random_share": 0.2,
            "search_share": float(rng.random()),
            "error": interval(float(rng.normal(0, 0.1)), 0.05, 700),
            "difficulty": interval(float(rng.normal(0, 0.1)), 0.05, 700),
            "is_clear": bool(rng.random() < 0.3),
        }
        for template, slot in places
        for value in (NAMES if slot == "name" else ["2 to 11", "12 to 21"])
    ]
    slots = [
        {"template": template, "slot": slot, "error": interval(0.2, 0.1, 3800), "difficulty": interval(0.3, 0.1, 3800)}
        for template, slot in places
    ]
    return {"slots": slots, "values": sorted(values, key=lambda row: -abs(row["error"]["value"]))}


def make_measure_results(templates: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    powers = [
        ("Input", "Perplexity", 0.53, 0.84),
        ("Input", "Entropy", 0.51, 0.86),
        ("Input", "Self-Certainty", 0.51, 1.11),
        ("Input", "MD_E", 0.57, 0.74),
        ("Output", "Perplexity", 0.44, 0.96),
        ("Output", "Entropy", 0.51, 0.96),
        ("Output", "Self-Certainty", 0.56, 1.36),
        ("Output", "LD_min", 0.78, 0.18),
        ("Output", "MD_H", 0.80, 0.14),
        ("Output", "KNN_H", 0.71, 0.40),
    ]
    return {
        "kind": "lpds measure",
        "model": "builtin:tiny",
        "suite": "grade-school",
        "settings": {"variations": 1000, "layers": "4", "seed": 0},
        "counts": {"reference": {"ok": 24310}, "measure": {"ok": 99321, "unparsed": 611, "truncated": 68}},
        "accuracy": interval(0.862, 0.03, 100_000),
        "metrics": [
            {
                "span": span,
                "metric": metric,
                "layer": 21 if metric.endswith("_H") else None,
                "auc": interval(auc, 0.015, 96),
                "behind": None if metric == "MD_H" else interval(0.80 - auc, 0.01, 96),
                "odds_ratio": interval(odds, 0.02, 96),
                "missing": 3 if span == "Output" else 0,
                "note": "",
                "distribution": make_distribution(rng),
            }
            for span, metric, auc, odds in powers
        ],
        "templates": [
            {
                "id": f"{number:04d}",
                "accuracy": float(rng.beta(6, 1)),
                "variations": 1000,
                "references": 200,
                "note": "",
            }
            for number in range(templates)
        ],
    }


def make_distribution(rng: np.random.Generator) -> dict[str, Any]:
    edges = np.linspace(0, rng.lognormal(1, 2), 41)
    right, wrong = rng.gamma(2, 0.1, 8000), rng.gamma(4, 0.1, 2000)
    counts = (np.histogram(values * edges[-1], edges)[0].tolist() for values in (right, wrong))
    return {"edges": edges.tolist(), **dict(zip(("right", "wrong"), counts, strict=True))}


def make_examples(templates: int, variations: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "template": f"{number:04d}",
            "base": make_attempt(rng, "base", is_wrong=False),
            "variations": [
                {
                    **make_attempt(rng, f"v{place}", is_wrong=bool(rng.random() < 0.8)),
                    "difficulty": float(900 / (place + 1) + rng.random()),
                    "reference": make_attempt(rng, f"r{place % 3}", is_wrong=False),
                }
                for place in range(variations)
            ],
        }
        for number in range(templates)
    ]


def make_attempt(rng: np.random.Generator, key: str, is_wrong: bool) -> dict[str, Any]:
    name, goods = rng.choice(NAMES), rng.choice(GOODS)
    boxes, each, given = (int(number) for number in rng.integers((3, 12, 2), (30, 1500, 12)))
    total = boxes * each
    right = total - given
    slip = int(rng.integers(1, 40)) if is_wrong else 0
    detour = "Wait, the boxes also count as gifts, so we count them twice.\n" if is_wrong and slip % 2 else ""
    return {
        "variation": key,
        "question": f"{name} has {boxes} boxes with {each:,} {goods} each and gives {given} of them away. "
        f"How many {goods} does {name} have left?",
        "response": f"{name} starts with {boxes} * {each} = {total + slip} {goods}.\n{detour}"
        f"After giving {given} away there are {total + slip} - {given} = {right + slip} {goods} left.\n"
        f"#### {right + slip}",
        "gold": str(right),
        "extracted": str(right + slip),
        "status": "ok",
        "correct": not is_wrong,
        "difficulty": float(rng.uniform(20, 80)),
    }


def without_numbers(value: Any) -> Any:
    """The same results with null for every number that may be null and every list of points empty."""
    if isinstance(value, dict) and set(value) == {"value", "low", "high", "n"}:
        return {"value": None, "low": None, "high": None, "n": 0}
    if isinstance(value, dict) and "kind" in value:
        kept = {name: without_numbers(item) for name, item in value.items()}
        nothing = {"settings": {}, "counts": {}, "templates": []}
        if value["kind"] == "lpds search":
            nothing |= {"distributions": {}, "attribution": {"slots": [], "values": []}}
        return {**kept, **nothing}
    if isinstance(value, dict):
        return {name: without_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_numbers(item) for item in value if isinstance(item, dict)]
    return value


def make_answers(templates: int, count: int) -> dict[str, Any]:
    """As many answers in brief, spread over the templates and the three arms."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(2, 99, (count, 2)).tolist()
    return {
        "slots": [(f"{number:04d}", ["name", "n", "m"]) for number in range(templates)],
        "rows": [
            (
                place % templates,
                ("base", "beam", "random")[place % 3],
                [NAMES[place // 3 % len(NAMES)], str(n), str(m)],
                float(n * m) if place % 3 == 1 else None,
                int(n < m),
                str(n + m),
                str(n + m),
            )
            for place, (n, m) in enumerate(numbers)
        ],
    }
