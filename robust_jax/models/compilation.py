"""Keeping compiled programs between runs."""

import os
from pathlib import Path

import jax


def cache_directory() -> Path:
    """Where things lie that can be made or fetched again: $ROBUST_JAX_CACHE, else a folder of the user's cache."""
    chosen = os.environ.get("ROBUST_JAX_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robust-jax"


def keep_compiled_programs() -> None:
    """Have JAX keep what it compiles, so that a second run compiles nothing; a cache that the user chose stays."""
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
