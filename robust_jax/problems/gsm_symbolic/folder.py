"""Several GSM-Symbolic files as one suite."""

from __future__ import annotations

import re
from collections.abc import Mapping

from robust_jax.errors import InputError
from robust_jax.problems.gsm_symbolic.reader import read_gsm_symbolic
from robust_jax.problems.loaded import Loaded
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.types import Suite


def read_gsm_symbolic_files(files: Mapping[str, bytes], name: str) -> Loaded:
    """A suite of one template a file; a file that is none is left out, with the reason.

    Args:
        files: contents by file name.
        name: of the suite.
    """
    templates: dict[str, SymbolicTemplate] = {}
    rejected: list[str] = []
    notes: list[str] = []
    for file, content in files.items():
        identity = re.sub(r"\W", "_", file.removesuffix(".json"))
        try:
            template, remarks = read_gsm_symbolic(content, identity)
        except InputError as error:
            rejected.append(f"{file}: {error}")
            continue
        templates[identity] = template
        notes += [f"{file}: {remark}" for remark in remarks]
    return Loaded(Suite(name=name, templates=tuple(templates.values())), tuple(rejected), tuple(notes))
