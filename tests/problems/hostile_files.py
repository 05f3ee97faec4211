"""Files that are built to exhaust or to trick whoever reads them.

As a program it reads them one after the other, each as a suite, and prints as JSON what each was refused with, the
seconds of this process that it took, and by how much memory grew in all: python -m tests.problems.hostile_files FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

SUITE = """\
name: hostile
description: x
templates:
  - id: a
    question: "QUESTION {n}?"
    solution: |-
      SOLUTION
      #### {ANSWER}
    slots:
      n: SLOT
      m: {range: [2, 9]}
    constraints: [CONSTRAINT]
    answer: QUOTED
"""
MILLION = 1_000_000


def suite(
    *,
    question: str = "How many",
    solution: str = "so",
    slot: str = "{range: [2, 9]}",
    constraint: str = "n > 0",
    answer: str = "n + m",
) -> bytes:
    text = SUITE.replace("QUESTION", question).replace("SOLUTION", solution).replace("SLOT", slot)
    text = text.replace("CONSTRAINT", json.dumps(constraint)).replace("QUOTED", json.dumps(answer))
    return text.replace("ANSWER", answer).encode()


def apple(
    *,
    question: str = "{n,3}?",
    init: str = "- $n = range(2, 9)",
    conditions: str = "",
    answer: str = "n",
    solution: str = "#### {n}",
) -> bytes:
    annotated = f"{question}\n#init:\n{init}\n#conditions:\n{conditions}\n#answer: {answer}"
    return json.dumps({"question_annotated": annotated, "answer_annotated": solution, "answer": "#### 3"}).encode()


def constrained(slots: dict[str, str], constraints: list[str]) -> bytes:
    """A suite with these slots and constraints."""
    lines = [f"      {name}: {domain}" for name, domain in slots.items()]
    text = SUITE.replace("      n: SLOT\n      m: {range: [2, 9]}", "\n".join(lines))
    text = text.replace("QUESTION", "How many").replace("SOLUTION", "so").replace("ANSWER", "n")
    return text.replace("CONSTRAINT", ", ".join(map(json.dumps, constraints))).replace("QUOTED", "n").encode()


def added(parts: list[str]) -> str:
    """The sum, with brackets that are no deeper than they have to be."""
    middle = len(parts) // 2
    return f"({added(parts[:middle])}+{added(parts[middle:])})" if middle else parts[0]


LAUGHS = "a: &a [x, x]\n" + "".join(f"{n}: &{n} [*{p}, *{p}, *{p}]\n" for p, n in pairwise("abcdefghi"))
DOUBLING = "\n".join(f"- x{k} == x{k + 1} + x{k + 1}" for k in range(60))
VARIABLES = "\n".join(f"- $x{k} = range(2, 9)" for k in range(61))

FILES: dict[str, bytes] = {
    # YAML itself
    "deep_lists.yaml": b"[" * MILLION,
    "deep_mappings.yaml": b"{a: " * 100_000,
    "deep_blocks.yaml": b"".join(b" " * depth + b"a:\n" for depth in range(1_900)),
    "billion_laughs.yaml": LAUGHS.encode(),
    "self_reference.yaml": b"&a [*a]",
    "merge_keys.yaml": b"a: &a {x: 1}\nb: {<<: *a}",
    "python_tags.yaml": b"!!python/object/apply:os.system ['touch /tmp/hostile']",
    "many_values.yaml": b"- a\n" * 450_000,
    "one_long_word.yaml": b"name: " + b"x" * 1_900_000,
    "many_keys.yaml": b"{" + b",".join(b"k%d: 1" % k for k in range(150_000)) + b"}",
    "no_text.yaml": b"\xff\xfe\x00" * 1_000,
    "null_bytes.yaml": b"\0" * MILLION,
    # expressions
    "brackets.yaml": suite(answer="(" * 480 + "n" + ")" * 480),
    "signs.yaml": suite(answer="-" * 990 + "n"),
    "denials.yaml": suite(constraint="not " * 240 + "n > 1"),
    "sum_of_sums.yaml": suite(answer="+".join(["n"] * 450)),
    "huge_power.yaml": suite(answer="n ** 10 ** 9"),
    "power_of_power.yaml": suite(answer="9 ** 9 ** 9 ** 9"),
    "squares_of_squares.yaml": suite(answer="((((10 ** 900) * 10 ** 900) * 10 ** 900) * 10 ** 900) * 10 ** 900"),
    "long_number.yaml": suite(answer="9" * 900),
    "large_exponent.yaml": suite(answer="1e999999999"),
    "exponential.yaml": suite(answer="exp(exp(exp(exp(n))))"),
    "long_rounding.yaml": suite(answer="round(n, 10 ** 9)"),
    "attribute.yaml": suite(answer="n.__class__"),
    "mro.yaml": suite(answer="().__class__.__mro__[1].__subclasses__()"),
    "builtin.yaml": suite(answer="__import__('os').getpid()"),
    "lambda.yaml": suite(answer="(lambda: n)()"),
    "comprehension.yaml": suite(answer="[n for n in range(10 ** 9)]"),
    "walrus.yaml": suite(answer="(n := 3)"),
    "long_word.yaml": suite(answer="'a' * 10 ** 9"),
    "long_list.yaml": suite(answer="[n] * 10 ** 9"),
    "nested_f_string.yaml": suite(answer='f"{n!r:>{10 ** 9}}"'),
    # text
    "conversion.yaml": suite(question="{n!r}"),
    "wide_format.yaml": suite(question="{n:>999999999}"),
    "many_decimals.yaml": suite(question="{n:.99f}"),
    "nested_format.yaml": suite(question="{n:{m}}"),
    "attribute_in_text.yaml": suite(question="{n.__class__}"),
    "index_in_text.yaml": suite(question="{n[0].__globals__}"),
    "quotes_in_hole.yaml": suite(question="{" + "'" * 9_000),
    "many_holes.yaml": suite(question="{n}" * 100_000),
    "long_solution_line.yaml": suite(solution="1 + " * 100_000 + "1 = 2"),
    "many_equations.yaml": suite(solution="3 = 3 " * 3_000),
    "many_commas.yaml": suite(solution="1," * 900 + " = 2"),
    "long_number_in_trace.yaml": suite(solution="9" * 3_900 + " = 2"),
    # domains
    "huge_range.yaml": suite(slot=f"{{range: [0, {10**30}]}}"),
    "fine_grid.yaml": suite(slot=f"{{grid: [0, {10**20}, 0.{'0' * 28}1]}}"),
    "nothing_fits.yaml": suite(slot=f"{{range: [0, {10**17}]}}", constraint="n * n == 7 + m"),
    "nothing_fits_slowly.yaml": suite(
        slot=f"{{range: [0, {10**17}]}}", constraint=" and ".join(["exp(sin(n * m)) > 0"] * 40) + " and n < 0"
    ),
    "slow_and_false.yaml": suite(
        slot=f"{{range: [0, {10**17}]}}",
        constraint=" and ".join([f"exp(sin(n * m + {k})) > 0" for k in range(30)]) + " and sqrt(n) < 0",
    ),
    "slow_and_few.yaml": suite(
        slot="{range: [0, 20000]}",
        constraint=" and ".join([f"exp(sin(n * m + {k})) > 0" for k in range(12)]) + " and sqrt(n) < 0",
    ),
    "slow_alone.yaml": suite(
        slot="{range: [0, 190000]}",
        constraint=" and ".join([f"exp(sin(n + {k})) > 0" for k in range(40)]) + " and n < 0",
    ),
    "slow_fractions.yaml": suite(
        slot=f"{{range: [1, {10**17}]}}", constraint=" + ".join(f"1 / (n + {k})" for k in range(75)) + " < 0"
    ),
    "slow_solution.yaml": suite(solution=("{" + "+".join(f"1/(n+{k})" for k in range(90)) + ":.2f}") * 19),
    "long_powers.yaml": suite(solution=f"{{{added([f'(n**899+{k})%m**899' for k in range(42)])}:.2f}}" * 18),
    "slow_holes.yaml": suite(
        solution="".join(f"{{{added([f'sin(n/{k})' for k in range(1, 61)])}:.2f}}" for _ in range(20))
    ),
    "slow_over_many.yaml": suite(
        slot="{range: [0, 9000]}",
        constraint=" and ".join([f"exp(sin(n * m + {k})) > 0" for k in range(30)]) + " and sqrt(n) < 0",
    ),
    "many_slots.yaml": constrained(
        {"n": "{range: [2, 9]}", **{f"s{k}": "{range: [0, 1]}" for k in range(48)}},
        [f"s{k} + s{(7 * k + 1) % 48} + s{(5 * k + 3) % 48} < 2" for k in range(47)] + ["n + s1 < 0"],
    ),
    "many_distinct_slots.yaml": constrained(
        {"n": "{range: [2, 9]}", f"'{', '.join(f's{k}' for k in range(20))}'": "{range: [1, 20]}"}, ["n > s1"]
    ),
    "long_constraints.yaml": constrained(
        dict.fromkeys("nm", "{range: [2, 9000]}"),
        [added([f"n*m%{k + j}" for k in range(2, 99)]) + " > -9" for j in range(99)] + ["n*m%77 > 77"],
    ),
    "negative_step.yaml": suite(slot="{range: [9, 2, -1]}"),
    # JSON
    "deep.json": b"[" * 100_000,
    "deep_objects.json": b'{"a":' * 30_000,
    "long_number.json": b"1" * 150_000,
    "large.json": b'"' + b"x" * 300_000 + b'"',
    "doubling_equations.json": apple(
        init=VARIABLES, conditions=DOUBLING, question="{x0,3}?", answer="x0", solution="#### {x0}"
    ),
    "long_circle.json": apple(init="- a, b = sample_sequential(%s, 2)" % [f"w{k}" for k in range(2_000)]),
    "fine_range.json": apple(init="- $n = frange(0, 1, 1e-300)"),
    "many_lines.json": apple(conditions="- n > 0\n" * 9_000),
    "call.json": apple(init="- n = __import__('os').system('touch /tmp/hostile')"),
    "attribute.json": apple(solution="#### {n.__class__}"),
    "power.json": apple(answer="n ** 10 ** 10"),
    "nothing_fits.json": apple(conditions="- n > 99"),
    # JSONL
    "deep.jsonl": b"[" * 100_000,
    "long_number.jsonl": b'{"question": "?", "answer": ' + b"9" * MILLION + b"}",
    "many_lines.jsonl": b"{}\n" * MILLION,
}
"""By name; the ending says as what it is read."""


def main(folder: str) -> None:
    from robust_jax.errors import InputError
    from robust_jax.problems import load_suite

    refused = {}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, content in FILES.items():
        path = Path(folder) / name
        path.write_bytes(content)
        message, started = "", time.process_time()
        try:
            load_suite(str(path))
        except InputError as error:
            message = str(error)
        refused[name] = [message, time.process_time() - started]
    for name in ("hundred_megabytes.yaml", "hundred_megabytes.json", "hundred_megabytes.jsonl"):
        path = Path(folder) / name
        with path.open("wb") as file:
            file.truncate(100 * MILLION)
        message, started = "", time.process_time()
        try:
            load_suite(str(path))
        except InputError as error:
            message = str(error)
        refused[name] = [message, time.process_time() - started]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    print(json.dumps({"refused": refused, "megabytes": grown / 1024}))


if __name__ == "__main__":
    main(sys.argv[1])
