"""Where the cache is when the environment does not say: apart, since importing platformdirs takes as long as finding a pipeline."""

from __future__ import annotations

import os

import platformdirs


def cache_home() -> str:
    """The folder for caches of this user."""
    return os.path.join(platformdirs.user_cache_dir("halide_py"), "v1")
