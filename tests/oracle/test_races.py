"""Random schedules for several threads (parallel, async_, compute_with, memoize) have no races: ThreadSanitizer watches pipelines and runtime.

The default runs a few seeds; HL_TEST_ALL=1 runs many.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GCC = shutil.which("gcc") or ""


def library() -> str:
    """Where gcc keeps the sanitizer's library; "" without one."""
    path = subprocess.run([GCC, "-print-file-name=libtsan.so"], capture_output=True, text=True).stdout.strip() if GCC else ""
    return path if os.path.isabs(path) else ""


pytestmark = pytest.mark.skipif(not library(), reason="no gcc with a thread sanitizer")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime, watched as well."""
    out = tmp_path_factory.mktemp("runtime") / "libruntime.so"
    sources = [str(f) for f in sorted((ROOT / "runtime").glob("*.c"))]
    subprocess.run([GCC, "-std=gnu11", "-O1", "-g", "-fPIC", "-pthread", "-fsanitize=thread", "-shared", *sources, "-o", str(out), "-lm"], check=True)
    return out


def run(runtime: Path, first: int, count: int) -> None:
    # a fork holds all locks of the allocator, more than the sanitizer's detector of deadlocks counts
    env = {**os.environ, "LD_PRELOAD": library(), "HL_SANITIZE": "thread", "HL_CC": "gcc", "HL_NUM_THREADS": "4", "HL_CACHE": "0",
           "TSAN_OPTIONS": "halt_on_error=1 report_signal_unsafe=0 detect_deadlocks=0"}
    script = str(ROOT / "tests" / "oracle" / "races.py")
    done = subprocess.run([sys.executable, script, str(runtime), str(first), str(count)], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-12000:]}\n{done.stderr[-4000:]}"
    assert f"0 of {count} failed" in done.stdout


def test_some(runtime: Path) -> None:
    run(runtime, 0, 6)


@pytest.mark.slow
def test_many(runtime: Path) -> None:
    run(runtime, 1000, 300)
