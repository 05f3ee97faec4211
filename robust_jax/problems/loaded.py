"""What a reader of problem files hands over."""

from __future__ import annotations

from dataclasses import dataclass

from robust_jax.types import Suite


@dataclass(frozen=True)
class Loaded:
    """A suite with what its files could not give."""

    suite: Suite
    rejected: tuple[str, ...] = ()
    """Why a template is not usable, one line each."""
    notes: tuple[str, ...] = ()
    """Where a file contradicts itself and how it was read, one line each."""
