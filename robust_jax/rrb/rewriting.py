"""`rrb run`: ask every problem as it is and under every rewriting."""

from collections.abc import Sequence

from robust_jax.rrb.exam import ProblemQuestion
from robust_jax.rrb.options import RewritingOptions
from robust_jax.rrb.perturbations import Perturbation
from robust_jax.rrb.problem_set import ProblemSet, load_problems
from robust_jax.rrb.prompts import problem_prompt
from robust_jax.rrb.session import open_session
from robust_jax.rrb.tagging import tagger_version
from robust_jax.rrb.transform import chosen_perturbations, rewritten
from robust_jax.runs import write_finished

COMMAND = "rrb run"
ORIGINAL = "original"
"""The arm of the problems as they are."""


def rewriting_questions(
    problems: ProblemSet, options: RewritingOptions, chosen: Sequence[Perturbation]
) -> list[ProblemQuestion]:
    """Every question of a run: the problems as they are, and then each rewriting of them.

    Raises:
        InputError: an interleaving of a set of one problem, or a perturbation whose extra is not installed.
    """
    asked: dict[str, list[ProblemQuestion]] = {ORIGINAL: []}
    for place, problem in enumerate(problems.problems[: options.limit]):
        forms = [(ORIGINAL, problem_prompt(problem.text))]
        for perturbation, (text, rule) in rewritten(problems, place, chosen, options, options.seed):
            forms.append((perturbation.name, problem_prompt(text, rule)))
        for arm, prompt in forms:
            asked.setdefault(arm, []).extend(
                ProblemQuestion(arm, problem, prompt, attempt=attempt) for attempt in range(options.attempts)
            )
    return [question for questions in asked.values() for question in questions]


def run_rewriting(options: RewritingOptions) -> None:
    """Have everything answered; every reply is kept.

    Raises:
        InputError: see `open_session` and `rewriting_questions`.
        RunError: the disk or the model's server fails; what came before is kept.
    """
    chosen = chosen_perturbations(options.perturbation)
    # The words that are rewritten hang on the tagger: another one makes another run.
    found = {"tagger": tagger_version() if any(perturbation.uses_tags for perturbation in chosen) else None}
    problems = load_problems(options.data)
    questions = rewriting_questions(problems, options, chosen)
    with open_session(problems, options, COMMAND, found) as session:
        session.ask("answers", questions)
        write_finished(session.run.path, session.run.samples, session.run.features)
