"""The marked differences are a shortest alignment and lose no token."""

from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty.tokens import math_tokens
from robust_jax.report.differences import align, differences

TOKENS = st.lists(st.sampled_from(["3", "+", "4", "=", "7", "apples"]), max_size=12)
LINES = st.sampled_from(["3 + 4 = 7", "so 1,200 apples", "", "  ", "x = 3.50", "#### 7", "Ünïcode ½"])
REPLIES = st.lists(LINES, max_size=6).map("\n".join)


@given(before=TOKENS, after=TOKENS)
def test_an_alignment_turns_one_list_into_the_other_at_the_least_cost(before: list[str], after: list[str]) -> None:
    made, cost = [], 0
    for code in align(before, after):
        old, new = before[code.before_start : code.before_end], after[code.after_start : code.after_end]
        assert {"equal": old == new, "insert": not old, "delete": not new, "replace": len(old) == len(new)}[code.kind]
        made += old if code.kind == "equal" else new
        cost += 0 if code.kind == "equal" else max(len(old), len(new))
    assert made == after
    assert cost == Levenshtein.distance(before, after)


@given(before=REPLIES, after=REPLIES)
@example(before="", after="")
@example(before="3 + 4", after="")
def test_segments_spell_both_texts(before: str, after: str) -> None:
    found = differences(before, after)
    assert [token for segment in found for token in segment.before.split()] == math_tokens(before)
    spelled = "".join(segment.after for segment in found)
    assert spelled.split() == math_tokens(after)
    lines = [line for line in map(math_tokens, after.splitlines()) if line]
    assert spelled == "\n".join(" ".join(line) for line in lines)


def test_kinds_are_what_they_say() -> None:
    kinds = {segment.kind: (segment.before, segment.after.strip()) for segment in differences("a 1 b c", "a 2 b c d")}
    assert kinds["replace"] == ("1", "2")
    assert kinds["insert"] == ("", "d")
    assert [segment.kind for segment in differences("a b c", "a c")] == ["equal", "delete", "equal"]
