"""Starts programs that are no Python: without the sanitizer's libraries that `make test-sanitized` preloads into Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """What became of a program, with what it printed; `env` is added to the environment."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(list(command), cwd=cwd, env={**clean, **(env or {})}, capture_output=True, text=True, timeout=timeout, check=False)
