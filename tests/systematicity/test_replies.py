"""Reading replies: answers in every dress they come in, and malformed ones that are wrong but never a crash."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.prompts import task_prompt
from robust_jax.systematicity.replies import answers_text, grade, read_answers
from robust_jax.types import Response
from tests.systematicity.tasks import SETTINGS, family_of, task


def right_answers(name: str) -> str:
    return answers_text(family_of(name), task(name, 0).answers)


def graded(name: str, text: str, finish: str = "stop") -> tuple[str, float]:
    verdict = grade(Response(text, finish_reason=finish), family_of(name), task(name, 0))  # type: ignore[arg-type]
    return verdict.status, verdict.score


DRESSES = [
    '{{"answers": {}}}',
    '  {{ "answers" :\n{}\n}}  ',
    '```json\n{{"answers": {}}}\n```',
    'Let me think. The first rule …\n\n{{"answers": {}}}\n\nThese follow from the examples.',
    '<think>maybe {{"answers": []}}</think>{{"answers": {}}}',
    'First {{"answers": [1, 2]}}, no: {{"answers": {}}}',
    '{{"answers": {}, "confidence": 0.3}}',
    "{}",
    "```\n{}\n```",
]


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("name", ["grammar", "grammar, numbers", "raven", "programs", "boolean"])
def test_right_answers_are_read_in_any_dress(name: str, dress: str) -> None:
    assert graded(name, dress.format(right_answers(name))) == ("ok", 1.0)


@pytest.mark.parametrize("name", SETTINGS)
def test_one_wrong_answer_makes_the_attempt_wrong(name: str) -> None:
    answers = json.loads(right_answers(name))
    wrong = {"grammar": "RED", "raven": [0] * len(answers[0]), "programs": [0], "boolean": None}[family_of(name).name]
    if wrong is None:
        wrong = "not wudsy" if answers[-1] == "wudsy" else "wudsy"
    answers[-1] = wrong
    assert graded(name, json.dumps({"answers": answers})) == ("ok", 0.0)


@pytest.mark.parametrize("name", ["grammar", "programs", "boolean"])
def test_the_order_of_answers_matters_and_so_does_their_number(name: str) -> None:
    answers = json.loads(right_answers(name))
    assert graded(name, json.dumps({"answers": answers[1:] + answers[:1]})) == ("ok", 0.0)
    for count in (answers[:-1], [*answers, answers[0]], []):
        assert graded(name, json.dumps({"answers": count})) == ("unparsed", 0.0)


@pytest.mark.parametrize(
    ("name", "spell"),
    [
        ("grammar", lambda answer: answer.lower()),
        ("grammar", lambda answer: answer.split()),
        ("grammar", lambda answer: answer.replace(" ", ", ")),
        ("grammar, numbers", lambda answer: [int(part) for part in answer.split()]),
        ("boolean", lambda answer: answer == "wudsy"),
        ("boolean", lambda answer: f" {answer.upper()}\n"),
    ],
)
def test_spellings_of_an_answer(name: str, spell) -> None:  # type: ignore[no-untyped-def]
    answers = [spell(answer) for answer in json.loads(right_answers(name))]
    assert graded(name, json.dumps({"answers": answers})) == ("ok", 1.0)


def test_the_only_answer_may_stand_without_its_list() -> None:
    (panel,) = json.loads(right_answers("raven"))
    assert graded("raven", json.dumps({"answers": panel})) == ("ok", 1.0)
    assert graded("raven", json.dumps({"answers": [*panel, 1]})) == ("ok", 0.0)


MALFORMED = [
    "",
    " ",
    "I have no idea",
    "{",
    '{"answers"',
    '{"answers": [',
    '{"answers": null}',
    '{"answers": "RED"}',
    '{"answers": {"1": "RED"}}',
    '{"answer": ["RED"]}',
    "{'answers': ['RED']}",
    '{"answers": [NaN, Infinity]}',
    '{"answers": [true, null, 1e400, {"a": 1}]}',
    '{"answers": [[[["RED"]]]]}',
    '{"answers": ' + "[" * 50_000,
    '{"answers": [' + "9" * 5_000 + "]}",
    '{"answers": [' * 3_000,
    '{"answers": ["\\ud835"]}',
    "a lone \ud835 surrogate",
    "[1, 2",
    "null",
    "```json\n```",
    '{"answers": ["RED"]} ' * 2_000,
    '{"answers": ["\\u0000"]}',
]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("reply", MALFORMED, ids=lambda reply: repr(reply[:30]))
def test_malformed_replies_are_wrong_answers(name: str, reply: str) -> None:
    status, score = graded(name, reply)
    assert score == 0
    assert status in ("unparsed", "ok")
    assert graded(name, reply, "length")[0] in ("truncated", "ok")


@settings(deadline=None, max_examples=60)
@given(st.text(), st.sampled_from(["grammar", "raven", "programs", "boolean"]))
def test_no_text_is_too_strange(text: str, name: str) -> None:
    assert graded(name, text)[1] == 0
    assert graded(name, f'{{"answers": {text}')[1] == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@settings(deadline=None, max_examples=25)
@given(JSON, st.sampled_from(["grammar", "raven", "programs", "boolean"]))
def test_no_json_is_too_strange(value: object, name: str) -> None:
    family, made = family_of(name), task(name, 0)
    text = json.dumps({"answers": value})
    assert read_answers(text)[0] is None or isinstance(value, list)
    verdict = grade(Response(text), family, made)
    assert verdict.status in ("ok", "unparsed")
    many = grade(Response(json.dumps({"answers": [value] * len(made.queries)})), family, made)
    assert many.score == 0 or many.status == "ok"


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [
        ("", "error", "error"),
        ("", "context", "skipped"),
        ("The first word means", "length", "truncated"),
        ("<think>so dax is RED", "stop", "truncated"),
        ('<think>{"answers": []}', "stop", "truncated"),
        ("I'm sorry, I cannot help with that.", "stop", "refused"),
        ("Sorry, " + "so it goes. " * 60, "stop", "unparsed"),
    ],
)
def test_a_reply_without_answers_keeps_its_status(text: str, finish: str, status: str) -> None:
    assert graded("grammar", text, finish) == (status, 0.0)


def test_answers_given_before_the_reply_was_cut_count() -> None:
    full = f'{{"answers": {right_answers("programs")}}} Because the lis'
    assert graded("programs", full, "length") == ("ok", 1.0)


def test_what_was_read_is_kept_as_json() -> None:
    verdict = grade(Response(f'{{"answers": {right_answers("raven")}}}'), family_of("raven"), task("raven", 0))
    assert verdict.extracted == right_answers("raven")
    assert json.loads(verdict.extracted) == [list(task("raven", 0).answers[0])]
    assert verdict.rule == "object"


def holds(schema: dict, value: object) -> bool:
    """Whether a value follows the few kinds of schema that the families use."""
    match schema.get("type"):
        case "object":
            return (
                isinstance(value, dict)
                and value.keys() == schema["properties"].keys()
                and all(holds(schema["properties"][name], part) for name, part in value.items())
            )
        case "array":
            size = len(value) if isinstance(value, list) else -1
            return schema.get("minItems", 0) <= size <= schema.get("maxItems", 10**9) and all(
                holds(schema["items"], part) for part in value
            )
        case "string":
            return isinstance(value, str) and value in schema.get("enum", [value])
        case "integer":
            return isinstance(value, int)
    return False


@pytest.mark.parametrize("name", SETTINGS)
def test_the_schema_admits_right_answers_and_little_else(name: str) -> None:
    prompt = task_prompt(family_of(name), task(name, 0))
    answers = json.loads(right_answers(name))
    schema = json.loads(json.dumps(prompt.schema))
    assert holds(schema, {"answers": answers})
    for wrong in ({}, {"answers": answers[:-1]}, {"answers": [None] * len(answers)}, {"answers": answers, "why": ""}):
        assert not holds(schema, wrong)
    assert set(FAMILIES)  # every family is among the settings
    assert {setting.partition(",")[0] for setting in SETTINGS} == set(FAMILIES)
