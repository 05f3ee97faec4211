"""Keeping compiled programs between runs."""

import jax

from robust_jax.models.wheels import cache_directory


def keep_compiled_programs() -> None:
    """Have JAX keep what it compiles, so that a second run compiles nothing; a cache that the user chose stays."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
