"""Every array annotation of the project is checked at run time while the tests run."""

from jaxtyping import install_import_hook

install_import_hook("robust_jax", "beartype.beartype")
