"""Every array annotation of the project is checked at run time while the tests run."""

import os

# Before numpy is imported: on a busy machine OpenBLAS threads wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from jaxtyping import install_import_hook

install_import_hook("robust_jax", "beartype.beartype")
