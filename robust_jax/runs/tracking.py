"""Telling an experiment tracker about a run while it goes on: `--track wandb`.

A tracker sees what the run directory keeps; nothing is read back from it. It never stops a run: what it cannot take is
said once on standard error, and what it took stays in the run directory's `wandb` folder, for `wandb sync`.
"""

import netrc
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from robust_jax.errors import InputError
from robust_jax.runs.options import plain
from robust_jax.runs.writing import keeping, write_atomically

TrackerKind = Literal["none", "wandb"]

PROJECT = "robust-jax"
RUN_ID_FILE = ".wandb-run"
"""Holds the id under which a run directory is known to the server: resumed, it goes on as the same run there."""
SECONDS_TO_START = 20
SECONDS_TO_FINISH = 60
STEP = "step"


@runtime_checkable
class Tracker(Protocol):
    """What is told about a run."""

    def metrics(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Figures by name, at a step of the run's own counting where there is one."""

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str | int | float | None]]) -> None:
        """A table with a title for every column."""

    def figures(self, files: Mapping[str, Path]) -> None:
        """PNG files by the names of what they show."""


class Untracked:
    """Tells nobody."""

    def metrics(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Does nothing."""

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str | int | float | None]]) -> None:
        """Does nothing."""

    def figures(self, files: Mapping[str, Path]) -> None:
        """Does nothing."""


class WandbTracker:
    """Tells Weights & Biases, as far as it can be told."""

    def __init__(self, wandb: Any, start: Callable[[], Any]) -> None:
        self._wandb = wandb
        self._has_complained = False
        self._run: Any = None
        with self._never_in_the_way():
            self._run = start()
            self._run.define_metric("*", step_metric=STEP)

    def metrics(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Log figures; their own step makes a resumed run's curves go on where they stopped."""
        with self._never_in_the_way():
            if self._run is not None:
                self._run.log({**values} if step is None else {**values, STEP: step})

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str | int | float | None]]) -> None:
        """Log a table."""
        with self._never_in_the_way():
            if self._run is not None:
                self._run.log({name: self._wandb.Table(columns=list(columns), data=[list(row) for row in rows])})

    def figures(self, files: Mapping[str, Path]) -> None:
        """Log images."""
        with self._never_in_the_way():
            if self._run is not None:
                self._run.log({name: self._wandb.Image(str(file)) for name, file in files.items()})

    def finish(self, exit_code: int) -> None:
        """Hand over what is left, for at most a minute."""
        with self._never_in_the_way():
            if self._run is not None:
                self._run.finish(exit_code=exit_code)

    @contextmanager
    def _never_in_the_way(self) -> Iterator[None]:
        # Whatever a tracker fails with (no network, a full disk, its own service) is no reason to lose a run.
        try:
            yield
        except Exception as error:
            if not self._has_complained:
                self._has_complained = True
                reason = " ".join(str(error).split()) or type(error).__name__
                print(f"tracking with W&B failed and the run goes on without it: {reason}", file=sys.stderr)


@contextmanager
def tracking(kind: TrackerKind, *, name: str, config: object, directory: Path) -> Iterator[Tracker]:
    """The tracker of one run, which is told at the end whether the run failed.

    W&B works offline unless it has a key (`WANDB_API_KEY` or `wandb login`); `WANDB_MODE` beats either.

    Args:
        kind: none, or wandb.
        name: what the run is called.
        config: its options: a dataclass or a mapping.
        directory: its run directory, which the tracker writes its own folder into.

    Raises:
        InputError: wandb is not installed.
    """
    if kind == "none":
        yield Untracked()
        return
    wandb = _wandb()
    tracker = WandbTracker(wandb, lambda: _start(wandb, name, config, directory))
    try:
        yield tracker
    except BaseException:
        tracker.finish(1)
        raise
    tracker.finish(0)


def _wandb() -> Any:
    try:
        import wandb  # Takes seconds to import, and is an extra.
    except ImportError:
        raise InputError("--track wandb needs wandb: pip install 'robust-jax[wandb]'") from None
    return wandb


def _start(wandb: Any, name: str, config: object, directory: Path) -> Any:
    described = plain(config)
    assert isinstance(described, dict)
    directory.mkdir(parents=True, exist_ok=True)

    def start(mode: str, run_id: str) -> Any:
        return wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=name,
            id=run_id,
            resume="allow" if mode == "online" else None,
            mode=mode,
            dir=str(directory),
            config={key: value for key, value in described.items() if key != "out"},
            settings=wandb.Settings(
                silent=True,
                console="off",
                # Only a server can keep one waiting; starting offline takes as long as the machine needs.
                init_timeout=SECONDS_TO_START if mode == "online" else SECONDS_TO_FINISH,
                finish_timeout=SECONDS_TO_FINISH,
                finish_timeout_raises=False,
            ),
        )

    mode = os.environ.get("WANDB_MODE") or ("online" if _has_key(wandb.Settings().base_url) else "offline")
    try:
        return start(mode, os.environ.get("WANDB_RUN_ID") or _run_id(directory))
    except wandb.errors.Error as error:
        if mode != "online":
            raise
        reason = " ".join(str(error).split())
        print(f"W&B cannot be reached and is kept offline in {directory / 'wandb'}: {reason}", file=sys.stderr)
        # Its service may hold the run's id for the attempt that failed, so what is kept offline is a run of its own.
        return start("offline", _fresh_id())


def _has_key(server: str) -> bool:
    """Whether W&B has been given a key, by a variable or by `wandb login`, which keeps one for each server."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", server)).hostname or ""
    file = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        return netrc.netrc(file).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _run_id(directory: Path) -> str:
    """The id of a run directory; a fresh one the first time."""
    file = directory / RUN_ID_FILE
    if not file.exists():
        with keeping(directory):
            write_atomically(file, _fresh_id().encode())
    return file.read_text(encoding="utf-8").strip()


def _fresh_id() -> str:
    return uuid.uuid4().hex[:12]
