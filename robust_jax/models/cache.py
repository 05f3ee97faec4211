"""What can be had again, by fetching or compiling it, and is kept between runs."""

import os
from pathlib import Path

import jax


def cache_directory() -> Path:
    """Where it is kept: $ROBUST_JAX_CACHE, else $XDG_CACHE_HOME/robust-jax, else ~/.cache/robust-jax."""
    if own := os.environ.get("ROBUST_JAX_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robust-jax"


def keep_compiled_programs() -> None:
    """Have JAX keep what it compiles, so that a second run compiles nothing; a cache that the user chose stays."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
