"""Grading: cases worked out by hand, and the properties that must hold for any reply."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.problems.grading import Extraction, Grade, extract, format_number, grade, parse_gold, read_number
from robust_jax.types import Grading, Number, Response

CASES = yaml.load((Path(__file__).parent / "grading_cases.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
GSM8K = Path(__file__).parents[3] / "shared/data/gsm8k/test.jsonl"
EXACT = Grading()


def given_value(text: str) -> Fraction | None:
    return None if text == "~" else Fraction(text)


# --------------------------------------------------------------------------------------------------
# Cases


@pytest.mark.parametrize(("text", "value"), CASES["numbers"])
def test_number(text: str, value: str) -> None:
    assert read_number(text) == given_value(value)


@pytest.mark.parametrize(("reply", "value", "rule"), CASES["replies"])
def test_reply(reply: str, value: str, rule: str) -> None:
    found = extract(reply)
    assert (found.value, found.rule) == (given_value(value), None if rule == "~" else rule)
    assert found.unclosed_thinking == (found.value is None and "<think>" in reply.rpartition("</think>")[2])


@pytest.mark.parametrize(("reply", "value"), CASES["last_decimals"])
def test_last_decimal(reply: str, value: str) -> None:
    assert extract(reply, "last-number").value == given_value(value)


@pytest.mark.parametrize(("reply", "ended", "gold", "status", "score"), CASES["grades"])
def test_grade(reply: str, ended: str, gold: str, status: str, score: str) -> None:
    response = Response(reply, finish_reason=ended)  # type: ignore[arg-type]
    result = grade(response, parse_gold(gold), EXACT)
    assert (result.status, result.score) == (status, float(score))
    assert (result.value is None) == (status != "ok") == (result.rule is None)


def test_paper_mode_grades_by_the_last_decimal() -> None:
    response = Response("#### 7\nafter 12 days")
    assert grade(response, 7, EXACT) == Grade("ok", 1.0, 7, "####")
    assert grade(response, 7, EXACT, "last-number") == Grade("ok", 0.0, 12, "last number")


def test_paper_mode_keeps_the_statuses() -> None:
    assert grade(Response("so 7 or", finish_reason="length"), 7, EXACT, "last-number").status == "truncated"
    assert grade(Response("#### 7\nQuestion: 1", finish_reason="length"), 7, EXACT, "last-number").score == 1


def test_a_long_reply_is_no_refusal() -> None:
    assert grade(Response("I cannot answer. " * 30), 7, EXACT).status == "unparsed"


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ("101", 100, True),
        ("101.000001", 100, True),
        ("101.000002", 100, False),
        ("98.999999", 100, True),
        ("98.999998", 100, False),
        ("-101", -100, True),
        ("101", -100, False),
        ("0.000001", 0, True),
        ("0.0000011", 0, False),
        ("3.14", Fraction(22, 7), True),
    ],
)
def test_tolerance_is_exact_at_its_edge(reply: str, gold: Number, right: bool) -> None:
    grading = Grading(absolute=Fraction(1, 10**6), relative=Fraction(1, 100))
    assert grade(Response(reply), gold, grading).score == right


@pytest.mark.parametrize("text", ["", "seven", "#### ", "1,23", "#### 5 apples"])
def test_a_gold_that_is_no_number_is_bad_input(text: str) -> None:
    with pytest.raises(InputError, match="not a number"):
        parse_gold(text)


def test_gold_of_a_worked_solution() -> None:
    assert parse_gold("3 + 4 = 7\n#### 1,007") == 1007
    assert parse_gold("7/2") == Fraction(7, 2)
    assert type(parse_gold("29.00")) is int


@pytest.mark.skipif(not GSM8K.exists(), reason="GSM8K is not here")
def test_gsm8k_solutions_grade_right() -> None:
    solutions = [json.loads(line)["answer"] for line in GSM8K.read_text(encoding="utf-8").splitlines()]
    for solution in solutions:
        gold = Fraction(re.sub("[$,]", "", solution.rpartition("####")[2].strip()))
        assert parse_gold(solution) == gold
        assert grade(Response(solution), parse_gold(solution), EXACT) == Grade("ok", 1.0, parse_gold(solution), "####")


# --------------------------------------------------------------------------------------------------
# Properties

whole_numbers = st.one_of(st.integers(-9999, 9999), st.integers(-(10**40), 10**40))
decimals = st.builds(lambda digits, places: Fraction(digits, 10**places), whole_numbers, st.integers(0, 12))
fractions = st.builds(Fraction, st.integers(-(10**6), 10**6), st.integers(2, 10**6))


def places(value: Fraction) -> int:
    """Decimals that a decimal fraction needs."""
    return next(count for count in range(60) if (value * 10**count).denominator == 1)


def plain(value: Fraction) -> str:
    digits = f"{abs(int(value * 10 ** places(value))):0{places(value) + 1}d}"
    point = len(digits) - places(value)
    return ("-" if value < 0 else "") + digits[:point] + ("." + digits[point:] if places(value) else "")


def separated(value: Fraction, separator: str) -> str:
    whole, point, rest = plain(abs(value)).partition(".")
    return ("-" if value < 0 else "") + f"{int(whole):,}".replace(",", separator) + point + rest


def scientific(value: Fraction, style: str) -> str:
    digits = str(abs(int(value * 10 ** places(value))))
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return ("-" if value < 0 else "") + style.format(mantissa, len(digits) - 1 - places(value))


def slashed(value: Fraction, style: str) -> str:
    sign = "-" if value < 0 else ""
    return sign + style.format(abs(value.numerator), value.denominator)


def mixed(value: Fraction, style: str) -> str:
    whole, rest = divmod(abs(value), 1)
    return ("-" if value < 0 else "") + style.format(whole, rest.numerator, rest.denominator)


def signed(text: str, minus: str) -> str:
    return minus + text[1:] if text.startswith("-") else text


written_decimals = decimals.flatmap(
    lambda value: st.sampled_from(
        [
            plain(value),
            *(
                separated(value, separator)
                for separator in (",", "\u2009", "\u202f", "\u00a0", " ", "{,}", "\\,", ",\\!")
            ),
            *(scientific(value, style) for style in ("{}e{}", "{}E{:+}", "{} × 10^{}", "{}\\times 10^{{{}}}")),
            "-$" + plain(value)[1:] if value < 0 else "$" + plain(value),
            "$" + plain(value),
            "€" + plain(value),
            plain(value) + "%",
            plain(value) + "\\%",
            plain(value) + "00" if places(value) else plain(value) + ".00",
        ]
    ).map(lambda text: (text, value))
)
written_fractions = fractions.filter(lambda value: value.denominator > 1).flatmap(
    lambda value: st.sampled_from(
        [slashed(value, style) for style in ("{}/{}", "{} / {}", "\\frac{{{}}}{{{}}}", "\\dfrac{{{}}}{{{}}}")]
        + ([mixed(value, style) for style in ("{} {}/{}", "{}\\frac{{{}}}{{{}}}")] if abs(value) > 1 else [])
    ).map(lambda text: (text, value))
)
written = st.one_of(written_decimals, written_fractions).flatmap(
    lambda pair: st.sampled_from(["-", "−", "–", "－"]).map(lambda minus: (signed(pair[0], minus), pair[1]))
)

SENTENCES = [
    "{}",
    "{}.",
    "It costs {}!",
    "So the total is {}, as asked.",
    "After 3 days and 20% off: x = {}",
    "Hence **{}**",
    "3 + 4 = {} apples",
    "It is ({}).",
    "First 7\nand then {}\n\nThank you!",
    "$x = {}$",
    "#### {}",
    "####\n{}\nin 3 days",
    "2 of 5\n#### {} apples (or 12)",
    "The answer is {}; 3 are left.",
    "The final answer is: **{}**\n\nCheck 3 of them.",
    "Answer: {}\nThat took 3 steps.",
    "so \\boxed{{{}}} and 3 more",
    "\\boxed{{\\text{{{} apples}}}}",
    "#### {}\n\nQuestion: Tom has 3. How many?\nAnswer: #### 4",
    "<think>3 or \\boxed{{4}}?</think>It is {}",
]


@given(written)
def test_a_number_reads_back_however_it_is_written(pair: tuple[str, Fraction]) -> None:
    text, value = pair
    assert read_number(text) == value


@settings(max_examples=200)
@given(written, st.sampled_from(SENTENCES))
def test_a_number_reads_back_in_any_sentence(pair: tuple[str, Fraction], sentence: str) -> None:
    text, value = pair
    assert extract(sentence.format(text)).value == value


@given(decimals, st.sampled_from(SENTENCES[:10]))
def test_the_last_decimal_reads_back_in_any_sentence(value: Fraction, sentence: str) -> None:
    assert extract(sentence.format(plain(value)), "last-number").value == value


@given(st.one_of(whole_numbers, decimals, fractions))
def test_the_exact_text_of_a_number_reads_back(value: Number) -> None:
    assert read_number(format_number(value)) == value == parse_gold(format_number(value))


@given(whole_numbers, st.integers(1, 9).flatmap(lambda step: st.sampled_from([step, -step])))
def test_only_the_exact_number_is_right(value: int, step: int) -> None:
    assert grade(Response(f"#### {value + step:,}"), value, EXACT).score == 0
    assert grade(Response(f"#### {value:,}"), value, EXACT).score == 1


CHARACTERS = "0123456789.,-−/%$€^_{}()[]=×*#:\\ \n½²🎉\ud835x\u2009"
MARKERS = ["\\boxed{", "\\frac{", "\\text{", "####", "answer is ", "<think>", "</think>", "\nQuestion: "]
fragments = st.sampled_from([*CHARACTERS, *MARKERS, "10^", "e5", "1,234", "I cannot "])
replies = st.one_of(st.text(max_size=60), st.lists(fragments, max_size=25).map("".join))


@settings(max_examples=200)
@given(replies, st.sampled_from(["standard", "last-number"]), st.sampled_from(["stop", "length"]))
def test_any_reply_has_one_grade(reply: str, mode: str, ended: str) -> None:
    found = extract(reply, mode)  # type: ignore[arg-type]
    assert (found.value is None) == (found.rule is None) == (found.text is None)
    if found.text is not None:
        assert read_number(found.text) == found.value
    response = Response(reply, finish_reason=ended)  # type: ignore[arg-type]
    result = grade(response, found.value if found.value is not None else 1, EXACT, mode)  # type: ignore[arg-type]
    assert result == grade(response, found.value if found.value is not None else 1, EXACT, mode)  # type: ignore[arg-type]
    if ended == "stop":
        assert result.score == (found.value is not None)


def test_grading_needs_no_main_thread() -> None:
    responses = [Response(f"It is {number:,}.") for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda pair: grade(pair[1], pair[0], EXACT), enumerate(responses)))
    assert all(result.score == 1 for result in results)


# --------------------------------------------------------------------------------------------------
# Bounds

NUMERIC = ["1", "1,234,", "1,", "12,34,", "1 234 ", "1 1/", "1/2/", "1.", "-", "$-", "1e", "10^", "1x", "½"]
LATEX = ["\\,", "\\text{", "\\boxed{", "{", "\\frac{1}{", "^{", "x_"]
WORDS = ["#", "<think>", "answer is ", "answer: ", "answer to ", "\n", " ", "_"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", [*NUMERIC, *LATEX, *WORDS])
def test_a_hostile_reply_is_read_in_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    assert isinstance(extract(f"answer: {text} of the 7"), Extraction)
    assert read_number(text) is None


def test_a_number_beyond_bounds_is_not_read() -> None:
    assert read_number("7" * 1000) == int("7" * 1000)
    assert read_number("7" * 1001) is None
    assert extract("#### " + "7" * 100_000).value is None
