"""Every array annotation of the project is checked at run time while the tests run."""

import os

# Before numpy is imported: on a busy machine OpenBLAS threads wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("robust_jax", "beartype.beartype")

# The same examples in every run of CI: a new one is found at a developer's desk, not when a change is to land.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
