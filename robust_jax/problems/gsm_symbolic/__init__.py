"""Templates in the format of GSM-Symbolic."""

from robust_jax.problems.gsm_symbolic.folder import read_gsm_symbolic_files
from robust_jax.problems.gsm_symbolic.reader import read_gsm_symbolic

__all__ = ["read_gsm_symbolic", "read_gsm_symbolic_files"]
