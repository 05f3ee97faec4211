"""`lpds search`: find the variations that break a model, and how much worse they are than random ones (Section 4).

All templates advance together, so that one batch of the model serves them all. The whole protocol is a deterministic
function of the options and of the model's replies: a run that was interrupted replays what is kept and goes on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robust_jax.difficulty import Observations, References, metric
from robust_jax.errors import RunError
from robust_jax.evaluation import Answers, TemplateQuestion
from robust_jax.lpds import arms
from robust_jax.lpds.blocks import ask_in_blocks
from robust_jax.lpds.cheap_scoring import CheapScorer
from robust_jax.lpds.features import answers_by_item, kept_observations, observations, reference_set
from robust_jax.lpds.options import SearchOptions
from robust_jax.lpds.record import (
    REFERENCES_FILE,
    SEARCH_FILE,
    CandidateRecord,
    ReferenceRecord,
    write_candidates,
    write_references,
)
from robust_jax.lpds.references import gather_references
from robust_jax.lpds.session import Session
from robust_jax.lpds.space import TemplateSpace
from robust_jax.runs import FeatureStore, Progress, write_finished
from robust_jax.runs.tracking import Tracker
from robust_jax.search import BeamSearch, Candidate, Goalpost, random_points
from robust_jax.types import Point, Sample, Template

GOALPOST = 50
"""Newly correct replies that move the goalpost (paper Appendix C.4)."""


@dataclass
class TemplateSearch:
    """One template's search with what it is scored by, as far as it has come."""

    template: Template
    space: TemplateSpace
    search: BeamSearch[Point]
    metric: str
    references: References
    cheap: CheapScorer | None
    """None if no candidate is chosen by a cheap estimate."""
    goalpost: Goalpost | None
    initial: tuple[str, ...]
    """Keys of the initial references."""
    samples: dict[str, Sample] = field(default_factory=dict)
    """Replies to what was explored, by key."""
    added: list[str] = field(default_factory=list)
    """Keys that joined the references."""
    fit: int = 0
    """How often the references have been fitted again."""
    first_fit: dict[str, int] = field(default_factory=dict)
    """The fit under which each variation was first scored."""
    beams: list[frozenset[str]] = field(default_factory=list)
    """Keys in the beam at the end of every iteration."""

    def observe(self, answers: Answers) -> None:
        """Take the replies to the latest proposals."""
        scores = self._difficulty(answers.samples, observations(answers))
        self.samples.update((sample.variation, sample) for sample in answers.samples)
        self.first_fit.update(dict.fromkeys(scores, self.fit))
        self.search.observe(scores)

    def end_iteration(self, features: FeatureStore, latest: Sequence[Sample]) -> None:
        """Move the goalpost if it is due (Appendix C.4), and note the beam."""
        correct = [sample.variation for sample in latest if sample.is_correct]
        due = self.goalpost.end_iteration(correct) if self.goalpost else ()
        if due:
            joining = reference_set(features, [self.samples[key] for key in due])
            self.references = self.references.extended(joining)
            self.added += joining.keys
            self.fit += 1
            explored = list(self.samples.values())
            self.search.rescore(self._difficulty(explored, kept_observations(features, explored)))
            self.fit_cheap_score()
        self.beams.append(frozenset(candidate.key for candidate, _ in self.search.beam))

    def fit_cheap_score(self) -> None:
        """Estimate from the present references from now on."""
        if self.cheap is not None:
            self.space.cheap_score = self.cheap.fitted(self.references)

    def _difficulty(self, samples: Sequence[Sample], seen: Observations) -> dict[str, float]:
        """By key; NaN where a request failed, because no reply is not a difficult one."""
        values = self.references.score([self.metric], seen)[self.metric] * metric(self.metric).sign
        values[[not sample.counts for sample in samples]] = np.nan
        return dict(zip(seen.keys, values.tolist(), strict=True))


def generations(options: SearchOptions) -> dict[str, int]:
    """Replies a template at most, by what they are for."""
    explored = 1 + options.branching * (1 + options.width * (options.iterations - 1)) if options.iterations else 1
    explored = explored if options.budget is None else min(explored, options.budget)
    return {
        arms.REFERENCE: options.reference_attempts if options.reference == "self" else 0,
        arms.BASE: 1,
        arms.BEAM: explored,
        arms.RANDOM: explored,
    }


def run_search(session: Session[SearchOptions], tracker: Tracker) -> None:
    """Search every template and answer as many random variations; everything is kept in the run directory.

    Args:
        session: an open one of `lpds search`.
        tracker: told after every iteration how far the search has come.

    Raises:
        RunError: the disk fails, or no template has enough references to be searched.
    """
    references = gather_references(session)
    record = {item: ReferenceRecord(found.keys) for item, found in references.items()}
    searches = []
    for template in session.suite.templates:
        fitted = References.fit(
            references[template.id],
            shrinkage=session.options.shrinkage,
            ridge=session.options.ridge,
            levenshtein=session.options.levenshtein,
        )
        lacking = fitted.left_out(session.options.needed_metrics)
        if lacking:
            reasons = dict.fromkeys(reason.rstrip(".") for reason in lacking.values())
            record[template.id] = record[template.id]._replace(left_out="; ".join(reasons))
        else:
            searches.append(_template_search(session, template, fitted))
    if not searches:
        raise RunError(
            f"no template has enough correct replies to measure difficulty from: see {session.run.path}; "
            "try a better model, easier templates, --reference-attempts, or --reference trace"
        )
    _ask_base(session, searches)
    _search(session, searches, tracker)
    _ask_random(session, searches)
    for search in searches:
        record[search.template.id] = record[search.template.id]._replace(added=tuple(search.added))
    write_references(session.run.path, record)
    write_candidates(session.run.path, [row for search in searches for row in _candidate_records(search)])
    write_finished(session.run.path, session.run.samples, session.run.features, (SEARCH_FILE, REFERENCES_FILE))


def _template_search(session: Session[SearchOptions], template: Template, references: References) -> TemplateSearch:
    options = session.options
    assert options.difficulty is not None  # chosen by now
    space = TemplateSpace(template)
    initial = references.reference_set.keys
    search = BeamSearch(
        space,
        options.beam,
        seed=options.seed,
        name=template.id,
        start=template.base,
        exclude=frozenset(initial),
        budget=options.budget,
    )
    cheap = CheapScorer(template, session.embedder) if options.is_cheaply_scored else None
    goalpost = Goalpost(GOALPOST) if options.goalpost == "on" else None
    made = TemplateSearch(template, space, search, options.difficulty, references, cheap, goalpost, initial)
    made.fit_cheap_score()
    return made


def _ask_base(session: Session[SearchOptions], searches: Sequence[TemplateSearch]) -> None:
    """The original problems, for templates that have one."""
    questions = [
        TemplateQuestion(arms.BASE, search.template.fill(search.template.base))
        for search in searches
        if search.template.base is not None
    ]
    session.examiner.ask(arms.BASE, questions)


def _search(session: Session[SearchOptions], searches: Sequence[TemplateSearch], tracker: Tracker) -> None:
    """Algorithm 1 on all templates in lockstep."""
    with Progress("search", generations(session.options)[arms.BEAM] * len(searches)) as progress:
        iteration = 0
        while True:
            proposals = {search.template.id: search.search.propose() for search in searches}
            questions = [
                TemplateQuestion(arms.BEAM, search.space.ask(candidate.point))
                for search in searches
                for candidate in proposals[search.template.id]
            ]
            if not questions:
                return
            answers = answers_by_item(session.examiner.ask(f"{arms.BEAM}-{iteration:03d}", questions, progress.advance))
            for search in searches:
                if search.template.id in answers:
                    latest = answers[search.template.id]
                    search.observe(latest)
                    search.end_iteration(session.run.features, latest.samples)
            tracker.metrics(_progress(searches), step=iteration)
            iteration += 1


def _progress(searches: Sequence[TemplateSearch]) -> dict[str, float]:
    """How far the searches have come: medians over templates."""
    searches = [search for search in searches if search.samples]
    beams = [search.search.beam for search in searches]
    right = [[search.samples[c.key].is_correct for c, _ in beam] for search, beam in zip(searches, beams, strict=True)]
    return {
        "search/explored": float(sum(len(search.samples) for search in searches)),
        "search/max_difficulty": float(np.median([beam[0][1] for beam in beams])),
        "search/beam_accuracy": float(np.median([np.mean(flags) for flags in right])),
        "search/refits": float(sum(search.fit for search in searches)),
    }


def _ask_random(session: Session[SearchOptions], searches: Sequence[TemplateSearch]) -> None:
    """As many distinct random variations of each template as its search explored (Section 4.2)."""
    wanted = [
        (
            search.template,
            random_points(
                search.space,
                len(search.samples),
                seed=session.options.seed,
                name=search.template.id,
                exclude=frozenset(search.initial),
            ),
        )
        for search in searches
    ]
    ask_in_blocks(session.examiner, arms.RANDOM, "random baseline", wanted)


def _candidate_records(search: TemplateSearch) -> list[CandidateRecord]:
    def record(candidate: Candidate[Point], difficulty: float) -> CandidateRecord:
        return CandidateRecord(
            template=search.template.id,
            key=candidate.key,
            iteration=candidate.iteration,
            parent=candidate.parent,
            origin=candidate.origin,
            cheap=None if math.isnan(candidate.cheap) else candidate.cheap,
            difficulty=None if math.isnan(difficulty) else difficulty,
            fit=search.first_fit[candidate.key],
            in_beam=tuple(iteration for iteration, beam in enumerate(search.beams) if candidate.key in beam),
        )

    return [record(candidate, difficulty) for candidate, difficulty in search.search.explored]
