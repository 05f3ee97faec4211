"""Files in the format of GSM-Symbolic: files of our own in every form, and Apple's files where they are at hand."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from robust_jax.errors import InputError
from robust_jax.problems import base_notes, load_suite, read_problems
from robust_jax.problems.grading import read_number
from robust_jax.problems.gsm_symbolic import read_gsm_symbolic
from robust_jax.problems.gsm_symbolic.domains import read_draw
from robust_jax.problems.gsm_symbolic.word_lists import WORD_LISTS, read_word
from robust_jax.problems.loaded import Loaded
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.types import Number, Pair
from tests.problems.conftest import APPLE
from tests.problems.plain_gsm_symbolic import PlainFile

TABLE = yaml.safe_load((Path(__file__).parent / "gsm_symbolic_files.yaml").read_text())

QUESTION = """{name,Zelda} plants {n,12} {color,red} tulips in {k,3} beds on {d1,Monday} and {more,7} on {d2,Tuesday}. \
{part,two-thirds} of them bloom. {Color2,Yellow} ones cost {cur,$}{price,0.50}. How many bloom?"""

INIT = """- name = sample(names_female)
- color, nowhere, Color2 = sample(["red", "yellow", "white", "red"] * 2, 3)
- d1, d2 = sample_sequential(weekdays, 2)
- $n = range(4, 41)
- $k = numbers_within(2, 6)
- $more = range(2, 20)
- $total = range(10, 50, 2)
- $part = sample(fraction_alnum + [("most", 0.75)])
- cur = sample(currencies_sym)
- $price = fix_floats(np.arange(0.25, 2, 0.25))
- unused = sample(["a", "b"])"""

CONDITIONS = """- total == n + more
- divides(n, k)
- is_int(total * part)
- is_int(price * 7) == False"""

SOLUTION = """On {d1} and {d2[0]} there are {n}+{more}=<<{n}+{more}={n + more}>>{n + more} tulips.
Then {total} * {part} = {int(total * part)}, that is {format_frac(Fraction(total, 4))} beds.
#### {int(total * part)}"""


def file(
    question: str = QUESTION,
    init: str = INIT,
    conditions: str = CONDITIONS,
    answer: str = "#answer: total * part",
    solution: str = SOLUTION,
) -> bytes:
    annotated = f"{question}\n\n#init:\n{init}\n\n#conditions:\n{conditions}\n\n{answer}"
    return json.dumps({"question_annotated": annotated, "answer_annotated": solution, "answer": "#### 9"}).encode()


def read(content: bytes) -> SymbolicTemplate:
    return read_gsm_symbolic(content, "tulips")[0]


def test_every_form_of_a_file() -> None:
    template = read(file())
    assert [slot.name for slot in template.slots] == [
        *("name", "color", "Color2", "d1", "n", "k", "more", "part", "cur", "price")
    ]
    # Two lists of equal words are one, a computed slot is none, and a slot that nothing mentions is dropped.
    assert template.slots[1].domain == ("red", "yellow", "white")
    assert template.distinct == (("color", "Color2"),)
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = template.fill(template.random(rng)).values
        n, k, more, part = (values[name] for name in ("n", "k", "more", "part"))
        assert isinstance(n, int) and isinstance(more, int) and isinstance(k, Pair) and isinstance(part, Pair)
        assert n % k.number == 0
        assert n + more in range(10, 50, 2)
        assert ((n + more) * part.number).denominator == 1
        assert values["price"] * 7 % 1 != 0


def test_the_base_problem_is_the_original() -> None:
    template = read(file())
    assert template.base is not None
    base = template.fill(template.base)
    assert base.text == (
        "Zelda plants 12 red tulips in 3 beds on Monday and 7 on Tuesday. two-thirds of them bloom. "
        "Yellow ones cost $0.50. How many bloom?"
    )
    assert base.answer == 12
    assert base.values["part"] == Pair("two-thirds", Fraction(2, 3))
    assert base.trace == ("On Monday and T there are 12+7=19 tulips.\nThen 19 * 2/3 = 12, that is 4 3/4 beds.\n#### 12")


def test_changes_of_one_slot_carry_the_computed_one_along() -> None:
    template = read(file())
    point = template.random(np.random.default_rng(1))
    index = [slot.name for slot in template.slots].index("more")
    neighbours = [*template.neighbours(point, index)]
    assert neighbours
    day = [slot.name for slot in template.slots].index("d1")
    texts = [template.text(other) for other in template.neighbours(point, day)]
    assert len(texts) == 6 and any("on Sunday and" in text and "on Monday." in text for text in texts)


@pytest.mark.parametrize(
    ("equation", "value"),
    [
        ("total == n + more", "n + more"),
        ("n + more == total", "n + more"),
        ("total - more == n", "n + more"),
        ("2 * total - (more + n) == total", "n + more"),
        ("total / 2 == (n + more) / 2", "n + more"),
        ("60 * total == n * 60 + more * 60", "n + more"),
        ("-total == -n - more", "n + more"),
    ],
)
def test_an_equation_determines_a_slot_that_the_text_does_not_mention(equation: str, value: str) -> None:
    template = read(file(conditions=CONDITIONS.replace("total == n + more", equation)))
    reference = read(file())
    assert [slot.name for slot in template.slots] == [slot.name for slot in reference.slots]
    rng = np.random.default_rng(0)
    for _ in range(20):
        point = template.random(rng)
        assert reference.is_valid(point)
        assert template.fill(point).answer == reference.fill(point).answer


@pytest.mark.parametrize("equation", ["total * total == n + more", "total == n + total", "int(total) == n + more"])
def test_other_equations_stay_conditions(equation: str) -> None:
    content = file(conditions=f"- {equation}", solution="#### {total}", answer="#answer: total")
    try:
        template = read(content)
    except InputError as error:
        assert "no valid filling" in str(error)
        return
    assert "total" in {slot.name for slot in template.slots}


def test_where_two_answers_differ() -> None:
    cut = file(conditions="- total == n + more", answer="#answer: total * part")
    template, notes = read_gsm_symbolic(cut, "tulips")
    assert any("are left out" in note for note in notes)
    rng = np.random.default_rng(0)
    for _ in range(50):
        variation = template.fill(template.random(rng))
        assert read_number(variation.trace.rpartition("#### ")[2]) == variation.answer
    wrong, notes = read_gsm_symbolic(file(answer="#answer: total * part + 1"), "tulips")
    assert any("which is taken" in note for note in notes)
    assert wrong.base is not None and wrong.fill(wrong.base).answer == 12


@pytest.mark.parametrize(
    ("source", "domain"),
    [
        ("range(3, 9)", [3, 4, 5, 6, 7, 8]),
        ("range(3)", [0, 1, 2]),
        ("range(5, 20, 7)", [5, 12, 19]),
        ("frange(0.5, 2, 0.5)", [Fraction(1, 2), 1, Fraction(3, 2)]),
        ("np.arange(1, 2, 0.25)", [1, Fraction(5, 4), Fraction(3, 2), Fraction(7, 4)]),
        ("fix_floats(shuffle_list(list(np.arange(0.1, 0.4, 0.1))))", [Fraction(n, 10) for n in (1, 2, 3)]),
        ("np.random.randint(5, 8, 50)", [5, 6, 7]),
        ("list(range(2, 4)) * 10", [2, 3]),
        ("[0.25, 0.30]", [Fraction(1, 4), Fraction(3, 10)]),
        ("sample([1, 2] + [2, 5])", [1, 2, 5]),
        ("sample([('a', 1), ('b', 0.5)])", [Pair("a", 1), Pair("b", Fraction(1, 2))]),
        ("sample([(5, 5)])", [Pair("5", 5)]),
        ("numbers_within(20, 22)", [Pair("twenty", 20), Pair("twenty-one", 21), Pair("twenty-two", 22)]),
        ("fraction_nums[:2]", [*WORD_LISTS["fraction_nums"][:2]]),
        ("sample(weekdays[1:3], 2)", ["Tuesday", "Wednesday"]),
    ],
)
def test_right_sides(source: str, domain: list[Number | str | Pair]) -> None:
    assert [*read_draw(source).domain] == domain


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("two-thirds", Fraction(2, 3)),
        ("one third", Fraction(1, 3)),
        ("quarter", Fraction(1, 4)),
        ("1/16", Fraction(1, 16)),
        ("0.25", Fraction(1, 4)),
        ("forty-two", 42),
        ("four times", 4),
        ("triple", 3),
        ("Tuesday", None),
        ("1/0", None),
        ("9" * 99, None),
    ],
)
def test_words_of_default_values(written: str, number: Number | None) -> None:
    assert read_word(written) == number


FAULTS = [
    ({"init": "- name sample(names)"}, "line 4: .*is not of the form"),
    ({"init": "- name = sample(nmaes)"}, "line 4: 'nmaes' is no known list"),
    ({"init": "- a, b = sample(names)"}, "line 4: 2 names for 1 drawn"),
    ({"init": "- a = sample(['x'], 3)"}, "line 4: .*draws 3 of 1"),
    ({"init": "- a = __import__('os').listdir()"}, "line 4: .*is no known list"),
    ({"init": "- a = [x for x in names]"}, "line 4: .*is no known list"),
    ({"init": "- a = range(9, 3)"}, "line 4: a range of 9, 3 holds nothing"),
    ({"init": "- a = range(1, 10**9)"}, "line 4: .*is not a number"),
    ({"init": "- if = range(1, 9)"}, "line 4: 'if' cannot be"),
    ({"init": "a = range(1, 9)"}, "line 4: .*begins with '- '"),
    ({"conditions": "- n >"}, "line 17: .*is not an expression"),
    ({"conditions": "- n > q"}, "condition: .*there is no slot 'q'"),
    ({"conditions": "- n"}, "neither true nor false"),
    ({"conditions": "- n > 10**10**10"}, "power of a power"),
    ({"conditions": "- n.real > 3"}, "not part of the language"),
    ({"conditions": "- total == n + more\n- n > 4000"}, "no valid filling"),
    ({"answer": "#answer: total * parts"}, "answer: .*there is no slot 'parts'"),
    ({"answer": "the end"}, "line 22: .*begins with"),
    ({"answer": ""}, "there is no '#answer:'"),
    ({"answer": "#answer: n\nmore"}, "stands behind '#answer:'"),
    ({"question": "{name,Zelda"}, "brace"),
    ({"question": "{n.real,3}"}, "not part of the language"),
    ({"question": "{n!r,3}"}, "is not an expression"),
    ({"solution": "#### {().__class__}"}, "not part of the language"),
    ({"solution": "{"}, "brace"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_faults_are_explained(changes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(file(**changes))
    assert str(caught.value).startswith("template tulips")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"question_annotated": 3}', b"\xff", b"[" * 100_000])
def test_files_that_are_none(content: bytes) -> None:
    with pytest.raises(InputError, match="template x: "):
        read_gsm_symbolic(content, "x")


def test_a_folder_is_a_suite_of_what_is_usable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, content in {"0001": file(), "0002": b"{}", "0003": file(answer="")}.items():
        (tmp_path / f"{name}.json").write_bytes(content)
    loaded = read_problems(str(tmp_path))
    assert [template.id for template in loaded.suite.templates] == ["0001"]
    assert [reason.partition(":")[0] for reason in loaded.rejected] == ["0002.json", "0003.json"]
    suite = load_suite(str(tmp_path))
    assert "0003.json" in caplog.text
    assert len(suite.examples) == 5 and suite.digest
    (tmp_path / "0001.json").unlink()
    with pytest.raises(InputError, match=r"no usable template: 0002\.json: .*\(and 1 more\)"):
        load_suite(str(tmp_path))


def test_a_base_that_violates_a_condition_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "tulips.json"
    path.write_bytes(file(question=QUESTION.replace("{k,3}", "{k,5}")))
    suite = load_suite(str(path))
    assert [note for note in base_notes(suite) if "divides(n, k)" in note]


# --------------------------------------------------------------------------------------------------
# Apple's files


@pytest.mark.parametrize(("folder", "count"), [("symbolic", 100), ("p1", 100), ("p2", 50)])
def test_every_file_is_usable_and_the_originals_have_their_answers(
    folder: str, count: int, apple: Callable[[str], Loaded]
) -> None:
    """The table names the files that contradict themselves, and those whose gold is the changed problem's answer.

    In p1 and p2, `answer` belongs to the problem that a file was changed from, so that it differs from the default
    values' answer nearly everywhere.
    """
    loaded = apple(folder)
    assert len(loaded.suite.templates) == count and not loaded.rejected
    table = TABLE[folder]
    assert {note.partition(".json")[0] for note in loaded.notes} == table["inconsistent"].keys()
    equal, without_base = set(), set()
    for template in loaded.suite.templates:
        gold = json.loads((APPLE / folder / f"{template.id}.json").read_text())["answer"].rpartition("####")[2]
        if template.base is None:
            without_base.add(template.id)
        elif template.fill(template.base).answer == read_number(gold):
            equal.add(template.id)
    everything = {template.id for template in loaded.suite.templates}
    assert equal == (everything if table["gold_is_of_the_defaults"] == "all" else set(table["gold_is_of_the_defaults"]))
    assert without_base == {name for name, reason in table["inconsistent"].items() if "no base" in reason}


def check_fillings(loaded: Loaded, folder: str, fillings: int) -> None:
    """Every filling satisfies the file's own conditions, run as Python, and its solution ends in its answer."""
    believed = {name for name, reason in TABLE[folder]["inconsistent"].items() if reason.startswith("#answer")}
    for template in loaded.suite.templates:
        rng, plain = np.random.default_rng(int(template.id)), PlainFile(APPLE / folder / f"{template.id}.json")
        for _ in range(fillings):
            point = template.random(rng)
            assert template.is_valid(point), template.id
            variation = template.fill(point)
            try:
                final, answer = plain.check(variation)
            except AssertionError as error:
                raise AssertionError(f"{template.id}, {variation.values}: {error}") from None
            assert read_number(variation.trace.rpartition("####")[2]) == variation.answer == final, template.id
            assert answer == final or template.id in believed, template.id


@pytest.mark.parametrize("folder", ["symbolic", "p1", "p2"])
def test_fillings_of_some_files(folder: str, apple: Callable[[str], Loaded]) -> None:
    check_fillings(apple(folder), folder, 3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("folder", ["symbolic", "p1", "p2"])
def test_a_thousand_fillings_of_every_file(folder: str, apple: Callable[[str], Loaded]) -> None:
    check_fillings(apple(folder), folder, 1000)


def test_fractions_are_exact_where_floats_lose_one(apple: Callable[[str], Loaded]) -> None:
    """The rent of 0049: with floats, int() gives one dollar too little for some fillings."""
    [template] = apple("symbolic/0049.json").suite.templates
    rng, lost = np.random.default_rng(0), 0
    for _ in range(300):
        variation = template.fill(template.random(rng))
        n, a, p, f, r = (Fraction(variation.values[name]) for name in "napfr")  # type: ignore[arg-type]
        exact = ((n - 1) * a + (n - 1) * a + (n - 1) * a * p / 100) * f * r
        assert variation.answer == int(exact)
        n, a, p, f, r = map(float, (n, a, p, f, r))  # type: ignore[assignment]
        lost += int(((n - 1) * a + (n - 1) * a + (n - 1) * a * p / 100) * f * r) != variation.answer
    assert lost


@pytest.mark.parametrize("folder", ["symbolic", "p1", "p2"])
def test_no_text_keeps_a_brace(folder: str, apple: Callable[[str], Loaded]) -> None:
    for template in apple(folder).suite.templates:
        variation = template.fill(template.random(np.random.default_rng(0)))
        assert not re.search(r"[{}]|<<|>>", variation.text + variation.trace), template.id
