"""Every array annotation of the project is checked at run time while the tests run."""

import os
from pathlib import Path

# Before numpy is imported: on a busy machine OpenBLAS threads wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests compile the same programs again and again, some of them in processes of their own.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("robust_jax", "beartype.beartype")

# The same examples in every run of CI: a new one is found at a developer's desk, not when a change is to land.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
