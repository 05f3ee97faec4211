"""Templates that are Python functions, in the form of FinChain and EngTrace."""

from robust_jax.problems.python_functions.reader import GRID_VALUES, read_python_functions

__all__ = ["GRID_VALUES", "read_python_functions"]
