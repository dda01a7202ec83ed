"""Ratios to Halide from PyPI, measured in one run on this machine: `make bench`. Prints a table; below 1 is faster than Halide.

Every contender has a process of its own; `contenders` says how run times are taken. Compile and import times are the best of several fresh
processes, in turn. The goals are those the project has set itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from contenders import Server, fresh, in_turn, ratio, show, slices
from schedule_works import SCHEDULES

WORKER = Path(__file__).with_name("worker.py")
PEER = "halide"
OURS = "halide_py"


def once(module: str, what: str, work: str, **extra: str) -> list[float]:
    """The times a fresh worker prints."""
    return fresh([str(WORKER), module, what, work], **extra)


def import_time(module: str) -> list[float]:
    """Seconds of the import in a fresh interpreter that has imported NumPy, as programs with arrays do."""
    return fresh(["-c", f"import time, numpy; s = time.perf_counter(); import {module}; print([time.perf_counter() - s])"])


def run_time(name: str, what: str, work: str, threads: int, goal: float, rounds: int) -> None:
    """Slices of both in turn."""
    servers = [Server(WORKER, module, what, work, threads) for module in (PEER, OURS)]
    rows = slices(servers, rounds)
    for server in servers:
        server.close()
    median, of_best = ratio(rows, 1, 0)
    show(name, min(r[0] for r in rows), min(r[1] for r in rows), median, goal, f" ({of_best:.2f})")


def compile_time(rounds: int) -> None:
    """Compile times without a cache, and of a second process with one."""
    with tempfile.TemporaryDirectory() as cache:
        once(OURS, "compile", "blur", HL_CACHE_DIR=cache)
        theirs, cold, cached = in_turn([lambda: once(PEER, "compile", "blur"), lambda: once(OURS, "compile", "blur", HL_CACHE="0"),
                                        lambda: once(OURS, "compile", "blur", HL_CACHE_DIR=cache)], rounds)
    show("blur: cold compile, first", theirs[0], cold[0], cold[0] / theirs[0], 0.5)
    show("blur: cold compile, a further one", theirs[1], cold[1], cold[1] / theirs[1], 1.0)
    show("blur: second process, cached", theirs[0], cached[0], cached[0] / theirs[0], 0.05)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, help="slices of each contender")
    rounds = parser.parse_args().rounds
    if importlib.util.find_spec(PEER) is None:
        raise SystemExit("The benchmarks compare with Halide from PyPI, which is not installed: pip install halide==21.0.0")
    print(f"{'':34}{'Halide':>10}{'halide_py':>11}   {'ratio':>9}{'':10}{'goal':>7}")
    for work in ("blur", "unsharp"):
        for threads in (1, 2):
            run_time(f"{work}: run, {threads} thread{'s' if threads > 1 else ''}", "serve", work, threads, 1.1, rounds)
    for work in ("math", "math of doubles"):
        run_time(f"{work}: run, 1 thread", "serve", work, 1, 1.1, rounds)
    for work in SCHEDULES:
        threads = 2 if work == "async" else 1
        run_time(f"{work}: run, {threads} thread{'s' if threads > 1 else ''}", "serve", work, threads, 1.05, rounds)
    run_time("tiny: realize() on its buffers", "call", "tiny", 1, 2.0, rounds)
    run_time("tiny: realize(sizes), new output", "fresh", "tiny", 1, 2.0, rounds)
    compile_time(max(3, rounds // 2))
    theirs, ours = in_turn([lambda: import_time(PEER), lambda: import_time(OURS)], max(3, rounds // 2))
    show("import (after NumPy)", theirs[0], ours[0], ours[0] / theirs[0], 1.5)
    subprocess.run([sys.executable, str(Path(__file__).with_name("compile_time.py"))], check=True)


if __name__ == "__main__":
    main()
