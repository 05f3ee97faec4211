"""Every rewriting: its definition on small texts, its inverse on all texts, and what it does not depend on."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.rrb.normalisation import normalise
from robust_jax.rrb.perturbations import (
    PERTURBATIONS,
    THIRTEEN,
    Parameters,
    Setting,
    find_perturbation,
    perturb,
    undo,
)
from robust_jax.rrb.problem_set import BUNDLED, load_problems

AIME = Path(__file__).parents[2].parent / "shared" / "data" / "aime"
DISTRACTOR = "How many apples has Ava, who picks 3 and then 4 more?"
TAGGED = ("not_not", "opposites", "wrappers")
UNTAGGED = tuple(name for name in PERTURBATIONS if name not in TAGGED)
FOUR = "The big dog, who has 12 small bones. He eats 3. How many are left of them now?"

texts = st.text(st.characters(codec="utf-8"), max_size=300) | st.text(
    st.sampled_from("aA bntf\\.%$ \n1[]{}é́😀\u2028\t"), max_size=300
)


def rewritten(name: str, text: str, distractor: str = DISTRACTOR, item: str = "item", **parameters) -> str:
    setting = Setting(item, distractor, Parameters(**parameters))
    return perturb(text, find_perturbation(name), setting).text


def what_comes_back(name: str, text: str) -> str:
    """What undoing gives where all goes well: the normalised text but for what is documented as lost."""
    known = normalise(text)
    return {
        "sentence_reversal": known,
        "interleaved_line": known.strip(),
        "interleaved_symbol": known.strip(),
        "interleaved_word": " ".join(known.split()),
        "rectangle_perimeter": known.rstrip(" "),
    }.get(name, known)


def check_inverse(name: str, text: str, **parameters) -> None:
    perturbation = find_perturbation(name)
    back = undo(rewritten(name, text, **parameters), perturbation, text, Parameters(**parameters))
    known = what_comes_back(name, text)
    assert bool(perturbation.remains) == (name in LOSSY)
    if name == "sentence_reversal" and known.startswith(".") and not known.endswith("."):
        # Its first piece is empty and has gone to the end, where its period stays.
        assert back == known[1:] + "."
        return
    if name == "not_not" and "not not " in known:
        assert back == known.replace("not not ", "")
        return
    assert back == known


WORDS = ["find", "large", "lose", "big", "a", "$x$", "7", "Red", "\\cmd", "$2y$", "walks", "well-known", "10cm"]
LOSSY = (
    "sentence_reversal",
    "not_not",
    "interleaved_line",
    "interleaved_word",
    "interleaved_symbol",
    "rectangle_perimeter",
)
HARD = [
    "",
    "a",
    ".",
    "...",
    "   ",
    "\n\n",
    "A. B.",
    ".A. B",
    "one  two\tthree ",
    r"Let $\omega\neq 0$ be 20% of it, and $x$ is large." + "\n% a comment\nThe end: $3$ and $4$ and 3 and x.",
    "The large man finds a small house and finds it smaller. FIND Find find, lose it.",
    r"\begin{align*}x&=2\\y&=3\text{ if even}\end{align*} [asy]draw((0,0)--(1,2));[/asy] red $5 and $6 balls",
    "👩‍👩‍👧 e\u0301 \u202e\u0000 \ud7ff",
    'He says "good" and "10(x) is x"; 2(x) 3(x) 4(x) 5(x) 6(x) 7(x) 8(x) 9(x) 10(x) x.',
    "not not good, good, not good",
]


@pytest.mark.parametrize("name", PERTURBATIONS)
@pytest.mark.parametrize("text", HARD)
def test_inverse_on_hard_texts(name: str, text: str) -> None:
    check_inverse(name, text)


@pytest.mark.parametrize("name", UNTAGGED)
@given(text=texts)
@settings(max_examples=100, deadline=None)
def test_inverse_on_any_text(name: str, text: str) -> None:
    check_inverse(name, text)


@pytest.mark.parametrize("name", TAGGED)
@given(text=texts | st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@settings(max_examples=60, deadline=None)
def test_inverse_with_tags_on_any_text(name: str, text: str) -> None:
    check_inverse(name, text)


# The rectangle's inside grows with the square of the text, to 400 million periods.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "rectangle_perimeter")) for n in PERTURBATIONS]
)
def test_inverse_on_a_hundred_thousand_characters(name: str) -> None:
    text = ("The large man has $x_1=27$ red balls. " * 2700)[: 10**5]
    check_inverse(name, text)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_inverse_on_problems(name: str) -> None:
    problems = [problem.text for problem in load_problems(BUNDLED).problems]
    problems += [row["problem"] for row in aime()]
    for text in problems:
        check_inverse(name, text)


def aime() -> list[dict[str, str]]:
    files = sorted(AIME.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.skipif(not AIME.exists(), reason="the AIME problems are not here")
def test_the_sixty_problems_of_aime_are_among_them() -> None:
    assert len(aime()) == 60


@pytest.mark.parametrize(("rails", "rows", "chunk"), list(itertools.product((1, 2, 7), (1, 2, 3, 9), (1, 11))))
def test_inverse_with_other_parameters(rails: int, rows: int, chunk: int) -> None:
    for name in ("rail_fence", "snake_vertical", "snake_horizontal", "interleaved_line"):
        for length in range(30):
            check_inverse(name, FOUR[:length].strip(), rails=rails, rows=rows, chunk=chunk)


# --------------------------------------------------------------------------------------------------
# Definitions


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("20% of\n%gone\nkept %", "20% of; kept %"),
        (" %kept", " %kept"),
        ("\\%kept", "\\%kept"),
        (r"\omega\neq\alpha\beta\frac", r"\omega \neq\alpha \beta \frac"),
        (r"n\b\n", r"n \b \n"),
        (r"N\b", r"N\b"),
        ("a\nb\n", "a; b; "),
        ("%only", ""),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(texts)
def test_normalisation_is_done_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert "\n" not in normalise(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("word_reversal", " one two  three", " three two  one"),
        ("sentence_reversal", "A is 1. B is 2. Find C", " Find C. B is 2.A is 1"),
        ("sentence_reversal", "A is 1. B is 2.", " B is 2.A is 1."),
        ("split_reversal", "abc  de.", "cba  .ed"),
        ("word_split_swap", "abcde ab a", "cdeab ba a"),
        ("rail_fence", "abcdefg", "GRID START\na...e..\n.b.d.f.\n..c...g\nGRID END"),
        ("rail_fence", "", "GRID START\n\n\n\nGRID END"),
        ("snake_vertical", "abcdefghijklm", "GRID START\najk\nbil\nchm\ndg\nef\nGRID END"),
        ("snake_vertical", "abcdefgh", "GRID START\na\nb\nch\ndg\nef\nGRID END"),
        ("snake_horizontal", "abcdefghijk", "GRID START\nabc\nfed\nghi\nkj\n\nGRID END"),
        # 10 characters: H = max(3, ceil(14/10)) = 3, W = max(2, ceil(8/2)) = 4: a perimeter of 10.
        ("rectangle_perimeter", "abcdefghij", "GRID START\nabcd\nj..e\nihgf\nGRID END"),
        # 40 characters: H = ceil(44/10) = 5, W = ceil(34/2) = 17: a perimeter of 40.
        (
            "rectangle_perimeter",
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM",
            "GRID START\nabcdefghijklmnopq\n"
            " ...............r\nM...............s\nL...............t\nKJIHGFEDCBAzyxwvu\nGRID END",
        ),
        ("rectangle_perimeter", "", "GRID START\n  \n  \n  \nGRID END"),
    ],
)
def test_definition(name: str, text: str, expected: str) -> None:
    assert rewritten(name, text) == expected


def test_definition_of_interleaving() -> None:
    line = rewritten("interleaved_line", " " + "a" * 130, "b" * 10)
    assert line.split("\n") == [
        *("<Problem A> " + "a" * 60, "<Problem B> " + "b" * 10),
        *("<Problem A> " + "a" * 60, "<Problem B> " + "b" * 10),
        *("<Problem A> " + "a" * 10, "<Problem B> " + "b" * 10),
    ]
    assert rewritten("interleaved_word", "one two", "uno  dos\ttres") == "one uno two dos one tres"
    assert rewritten("interleaved_symbol", "abc", "12") == "a1b2c1"
    assert rewritten("interleaved_symbol", "ab", "1\n2") == "a1b;a b2"


def test_definition_of_not_not() -> None:
    text = "It has a large box, 3 small balls, such big ones, and 4 red pens, $5$ and \\frac{1}{2}."
    # Eligible: large, 3, small, big, 4, red. Negated: large, because it is the first adjective, and 3, big and red.
    assert rewritten("not_not", text) == (
        "It has a not not large box, not not 3 small balls, such not not big ones, and 4 not not red pens, "
        "$5$ and \\frac{1}{2}."
    )
    # The first adjective is the second eligible word: 3, small, 4, large.
    assert rewritten("not_not", "There are 3 small and 4 large dogs.") == (
        "There are 3 not not small and 4 not not large dogs."
    )


def test_definition_of_opposites() -> None:
    text = "Find the large number. Walk to find the red and small ones and lose them, [asy] find [/asy] $find$."
    new = rewritten("opposites", text)
    before, block, behind = re.fullmatch(r"(.*)\n\ndefyn\{(.*)\}\.\n\n(.*)", new).groups()
    # `small` and `lose` occur in the text, which leaves `large` and `find` without theirs; `red` has none.
    assert block.split(", ") == [
        f'let "{new}" mean "{old}"'
        for new, old in [
            ("Antifind", "Find"),
            ("antilarge", "large"),
            ("Ride", "Walk"),
            ("antifind", "find"),
            ("antired", "red"),
            ("antismall", "small"),
            ("win", "lose"),
        ]
    ]
    assert before + " " + behind == (
        "Antifind the antilarge number. Ride to antifind the antired and antismall ones and win them, "
        "[asy] find [/asy] $find$."
    )
    # The block stands at the space that is nearest to the middle.
    whole = before + " " + behind
    assert min((abs(2 * i + 1 - len(whole)) for i, c in enumerate(whole) if c == " ")) == abs(
        2 * len(before) + 1 - len(whole)
    )


def test_definition_of_wrappers() -> None:
    text = (
        "Ava has 3 balls and a $x$ and A ball in B: $\\frac{x}{12}$ of the balls, [asy] draw(x); [/asy] 1 2 4 5 6 7 8."
    )
    new = rewritten("wrappers", text)
    entries = re.findall(r'let "((\d+)\((\w+)\))" mean "(\w+)"', new)
    assert [word for *_, word in entries] == ["Ava", "3", "balls", "x", "ball", "B", "12", *"1245678"]
    assert all(inner == old for _, _, inner, old in entries)
    factors = [int(factor) for _, factor, _, _ in entries]
    assert sorted(factors[:9]) == list(range(2, 11))  # None twice before all are used up.
    assert len(set(factors[9:])) == len(factors[9:])
    names = {old: name for name, _, _, old in entries}
    assert f"\\frac{{{names['x']}}}{{{names['12']}}}$" in new
    assert "[asy] draw(x); [/asy]" in new


@given(st.lists(st.sampled_from([*WORDS, "Find", "FIND", "larger", "small"]), max_size=12))
@settings(max_examples=40, deadline=None)
def test_opposites_never_takes_a_name_that_is_in_use(words: list[str]) -> None:
    text = " ".join(words)
    entries = re.findall(r'let "(.*?)" mean "(.*?)"', rewritten("opposites", text))
    assert len({new for new, _ in entries}) == len(entries)
    assert not {new.lower() for new, _ in entries} & set(text.lower().split())
    for new, old in entries:
        assert (new.isupper(), new.istitle(), new.islower()) == (old.isupper(), old.istitle(), old.islower())


@pytest.mark.parametrize("name", TAGGED)
def test_share_of_the_words(name: str) -> None:
    text = " ".join(problem.text for problem in load_problems(BUNDLED).problems[:4])
    mark = "not not " if name == "not_not" else "let "
    counts = [rewritten(name, text, share=share).count(mark) for share in (0.0, 0.3, 0.6, 1.0)]
    assert counts[0] == 0 and counts == sorted(set(counts))
    assert rewritten(name, text, share=0.0) == normalise(text)
    for share in (0.3, 0.6):
        check_inverse(name, text, share=share)


# --------------------------------------------------------------------------------------------------
# Compositions


@pytest.mark.parametrize(
    "name",
    [
        "compose:word_reversal+rail_fence",
        "compose:split_reversal+word_split_swap+snake_vertical",
        "compose:sentence_reversal+wrappers",
        "compose:not_not+rectangle_perimeter",
        "compose:word_reversal+interleaved_symbol+not_not",
    ],
)
def test_composition(name: str) -> None:
    text = "The large man has 12 red balls. He finds $x$ more"
    parts = [find_perturbation(part) for part in name.removeprefix("compose:").split("+")]
    by_hand = normalise(text)
    for part in parts:
        by_hand = part.rewrite(by_hand, Setting("item", DISTRACTOR))
    assert rewritten(name, text) == by_hand
    assert undo(by_hand, find_perturbation(name), text) == text
    rule = find_perturbation(name).rule(Parameters())
    for part in parts:
        told = part.rule(Parameters())
        assert told is None or rule.count(told) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("compose:word_reversal", "two or more"),
        ("compose:", "no perturbation ''"),
        ("compose:rail_fence+word_reversal", "rail_fence gives several lines"),
        ("compose:opposites+snake_vertical", "opposites gives several lines"),
        ("compose:opposites+wrappers", "opposites gives several lines"),
        ("compose:not_not+interleaved_word", "changes the problem's length"),
        ("word_revrsal", "nearest: word_reversal"),
    ],
)
def test_what_cannot_be_composed(name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        find_perturbation(name)
    assert "\n" not in str(error.value)


# --------------------------------------------------------------------------------------------------
# What a text does not depend on

SCRIPT = """
import json, sys
from robust_jax.rrb.perturbations import PERTURBATIONS, Setting, perturb
from robust_jax.rrb.problem_set import load_problems
names = sys.argv[1].split(",")
problems = load_problems("competition").problems[:6]
rows = [[perturb(p.text, PERTURBATIONS[n], Setting(p.id)).text for n in names] for p in problems]
print(json.dumps(rows))
"""


def test_texts_do_not_depend_on_process_hash_seed_or_order() -> None:
    def run(names: tuple[str, ...], hash_seed: str) -> list[list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, ",".join(names)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed, "PATH": "", "OPENBLAS_NUM_THREADS": "1"},
            cwd=Path(__file__).parents[2],
        )
        return json.loads(done.stdout)

    first = run(TAGGED, "1")
    assert first == [row[::-1] for row in run(TAGGED[::-1], "2")]
    problems = load_problems(BUNDLED).problems[:6]
    assert first == [[rewritten(name, p.text, "", p.id) for name in TAGGED] for p in problems]


def test_wrappers_draw_by_item_and_seed() -> None:
    text = load_problems(BUNDLED).problems[0].text
    assert rewritten("wrappers", text, item="a") != rewritten("wrappers", text, item="b")
    seeded = perturb(text, find_perturbation("wrappers"), Setting("a", seed=1)).text
    assert seeded != rewritten("wrappers", text, item="a")


def test_thirteen() -> None:
    assert len(THIRTEEN) == 13
    categories = [PERTURBATIONS[name].category for name in THIRTEEN]
    assert [len(list(group)) for _, group in itertools.groupby(categories)] == [3, 3, 3, 4]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"rails": 0}, "--rails"), ({"rows": 0}, "--rows"), ({"chunk": 0}, "--chunk"), ({"share": 1.5}, "--share")],
)
def test_parameters_out_of_range(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Parameters(**parameters)
