"""`rrb dilute`: several problems in one context, and the controls that tell what it is about them that hurts.

The last problem of every context is graded. It is also asked alone in a fresh context, behind neutral text, and behind
the same problems with the model's own solutions given. Both controls have the same number of tokens, so that accuracy
falls by the length of what stands before the problem (alone → neutral), by its being mathematics (neutral → solved),
and by its being written by the model itself in the same reply (solved → sequence).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.rrb.attention import Reading, record_attention
from robust_jax.rrb.exam import ProblemQuestion
from robust_jax.rrb.neutral import Meter, meter
from robust_jax.rrb.options import DilutionOptions
from robust_jax.rrb.problem_set import Problem, ProblemSet, load_problems
from robust_jax.rrb.prompts import preceded_prompt, several_prompt
from robust_jax.rrb.session import open_session
from robust_jax.runs import Key, SampleStore, sample_key, write_finished
from robust_jax.types import AttentiveModel, Sample

COMMAND = "rrb dilute"
ALONE, SEQUENCE, NEUTRAL, SOLVED = "alone", "sequence", "neutral", "solved"
"""What stands before the graded problem: nothing; problems to be solved first; neutral text; solved problems."""

Attempts = Mapping[tuple[str, int], Sample]
"""The model's attempts at problems alone, by the problem's id and the attempt."""


class Context(NamedTuple):
    """Problems that stand in one context, the graded one last."""

    problems: tuple[Problem, ...]

    @property
    def target(self) -> Problem:
        return self.problems[-1]

    @property
    def before(self) -> tuple[Problem, ...]:
        return self.problems[:-1]

    @property
    def variation(self) -> str:
        """The problems before the graded one."""
        return "\n".join(problem.id for problem in self.before)


def arm(condition: str, count: int) -> str:
    """The arm of a condition with so many problems."""
    return ALONE if condition == ALONE else f"{condition} {count}"


def balanced_contexts(problems: Sequence[Problem], count: int, seed: int) -> list[Context]:
    """As many contexts of `count` problems as there are problems; each is graded once and stands once at every place.

    The problems are put in one random order, and every context is a stretch of it, which goes on at its beginning:
    a context of n + 1 problems is one of n with one more before them.
    """
    order = rng(seed, "order of problems").permutation(len(problems))
    return [
        Context(tuple(problems[order[(end - back) % len(order)]] for back in reversed(range(count))))
        for end in range(len(order))
    ]


def sequence_questions(problems: Sequence[Problem], count: int, options: DilutionOptions) -> list[ProblemQuestion]:
    """The last problem of every context, to be answered after all before it; with a count of 1, alone."""
    return [
        ProblemQuestion(
            arm(SEQUENCE if count > 1 else ALONE, count),
            context.target,
            several_prompt([problem.text for problem in context.problems]),
            context.variation,
            attempt,
            count,
        )
        for context in balanced_contexts(problems, count, options.seed)
        for attempt in range(options.attempts)
    ]


def solved_questions(
    problems: Sequence[Problem], count: int, options: DilutionOptions, alone: Attempts
) -> list[ProblemQuestion]:
    """The last problem of every context behind those before it with the solutions that the model gave them alone.

    A context in which a problem came to nothing alone is left out.
    """
    return [
        ProblemQuestion(
            arm(SOLVED, count),
            context.target,
            preceded_prompt(solved_text(context.before, attempt, alone), context.target.text),
            context.variation,
            attempt,
        )
        for context in balanced_contexts(problems, count, options.seed)
        for attempt in range(options.attempts)
        if all(alone[problem.id, attempt].counts for problem in context.problems)
    ]


def neutral_questions(
    problems: Sequence[Problem],
    count: int,
    options: DilutionOptions,
    alone: Attempts,
    solved: Mapping[Key, Sample],
    measure: Meter,
) -> list[ProblemQuestion]:
    """The same problems behind as many tokens of neutral text."""
    questions = []
    for context in balanced_contexts(problems, count, options.seed):
        for attempt in range(options.attempts):
            target = context.target
            behind_it = solved.get((arm(SOLVED, count), target.id, context.variation, attempt))
            if behind_it is None or not behind_it.counts:
                continue
            before = solved_text(context.before, attempt, alone)
            neutral = measure.neutral(measure.tokens(before, behind_it, alone[target.id, attempt]))
            prompt = preceded_prompt(neutral, target.text)
            questions.append(ProblemQuestion(arm(NEUTRAL, count), target, prompt, context.variation, attempt))
    return questions


def solved_text(problems: Sequence[Problem], attempt: int, alone: Attempts) -> str:
    """Problems with the model's solutions, its thinking included, as they stand before another problem."""
    parts = []
    for place, problem in enumerate(problems, start=1):
        sample = alone[problem.id, attempt]
        parts.append(f"Problem {place}: {problem.text}\n\nSolution to problem {place}: {solution(sample)}")
    return "\n\n".join(parts)


def solution(sample: Sample) -> str:
    """What the model wrote about a problem, its thinking included."""
    return f"{sample.reasoning}\n\n{sample.response}".strip()


def readings(problems: Sequence[Problem], options: DilutionOptions, samples: SampleStore) -> list[Reading]:
    """The answers whose attention is recorded: to problems alone, last of several, and behind solved problems."""
    alone = {(sample.item, sample.attempt): sample for sample in samples.by_arm(ALONE)}
    found = []
    for count in range(1, options.most + 1):
        contexts = {(c.target.id, c.variation): c.problems for c in balanced_contexts(problems, count, options.seed)}
        questions = sequence_questions(problems, count, options)
        if count > 1 and options.controls == "on":
            questions += solved_questions(problems, count, options, alone)
        for question in questions:
            asked = contexts[question.problem.id, question.variation]
            given = [solution(alone[problem.id, question.attempt]) for problem in asked[:-1]]
            reply = samples.get(question.key)
            if reply is not None and reply.counts:
                texts = [problem.text for problem in asked]
                found.append(Reading(question, reply, texts, given if question.arm == arm(SOLVED, count) else ()))
    return found


def run_dilution(options: DilutionOptions) -> None:
    """Have everything answered; every reply is kept.

    Raises:
        InputError: too few problems, a model that cannot tell its attention, or see `open_session`.
        RunError: the disk or the model's server fails; what came before is kept.
    """
    whole = load_problems(options.data)
    problems = asked_problems(whole, options)
    with open_session(whole, options, COMMAND, {}, needs_attention=options.attention) as session:
        counts = range(2, options.most + 1)
        alone = {(s.item, s.attempt): s for s in session.ask(ALONE, sequence_questions(problems, 1, options))}
        session.ask(SEQUENCE, [q for count in counts for q in sequence_questions(problems, count, options)])
        if options.controls == "on":
            questions = [q for count in counts for q in solved_questions(problems, count, options, alone)]
            solved = {sample_key(sample): sample for sample in session.ask(SOLVED, questions)}
            measure = meter(session.model)
            session.ask(
                NEUTRAL,
                [q for n in counts for q in neutral_questions(problems, n, options, alone, solved, measure)],
            )
        if options.attention:
            assert isinstance(session.model, AttentiveModel)
            record_attention(session.model, session.run, readings(problems, options, session.run.samples))
        write_finished(session.run.path, session.run.samples, session.run.features)


def asked_problems(problems: ProblemSet, options: DilutionOptions) -> Sequence[Problem]:
    """The problems that stand in the contexts.

    Raises:
        InputError: there are fewer than a context holds.
    """
    asked = problems.problems[: options.limit]
    if len(asked) < options.most:
        raise InputError(f"{problems.name} holds {len(asked)} problems: --most {options.most} needs as many")
    return asked
