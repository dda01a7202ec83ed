"""Ratios to Halide from PyPI, measured in one run on this machine: `make bench`. Prints a table; below 1 is faster than Halide.

Every contender has a process of its own. Run times are taken in short slices in turn, so that what else the machine does falls on both; the
ratio is the median of the paired slices' ratios (and of the best times, in brackets). Compile and import times are the best of
several fresh processes, in turn. The goals are those the project has set itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")
PEER = "halide"
OURS = "halide_py"


def environment(**extra: str) -> dict[str, str]:
    """The environment of a worker; bytecode is kept, as an installation does."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "HL_NUM_THREADS": "1", **extra}


class Server:
    """A worker that runs when told to."""

    def __init__(self, module: str, what: str, work: str, threads: int) -> None:
        self.name = f"{module} {what} {work}"
        command, env = [sys.executable, str(WORKER), module, what, work], environment(HL_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.answer() != "ready":
            raise SystemExit(f"{self.name} did not start")

    def answer(self) -> Any:
        """The next line it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended early")
        return json.loads(line)

    def best(self, seconds: float) -> float:
        """The best time of a slice."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return float(min(self.answer()))

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def once(module: str, what: str, work: str, **extra: str) -> list[float]:
    """The times a fresh worker prints."""
    return fresh([str(WORKER), module, what, work], **extra)


def import_time(module: str) -> list[float]:
    """Seconds of the import in a fresh interpreter that has imported NumPy, as programs with arrays do."""
    return fresh(["-c", f"import time, numpy; s = time.perf_counter(); import {module}; print([time.perf_counter() - s])"])


def fresh(arguments: list[str], **extra: str) -> list[float]:
    """The numbers on the last line that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, *arguments], env=environment(**extra), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return [float(t) for t in json.loads(done.stdout.splitlines()[-1])]


def show(name: str, theirs: float, ours: float, ratio: float, goal: float, note: str = "") -> None:
    """One row."""
    unit, scale = ("us", 1e6) if min(theirs, ours) < 1e-4 else ("ms", 1e3)
    verdict = "" if ratio <= goal else "  missed"
    print(f"{name:34}{theirs * scale:10.2f}{ours * scale:11.2f} {unit}{ratio:9.3f}{note:10}{goal:7.2f}{verdict}", flush=True)


def run_time(name: str, what: str, work: str, threads: int, goal: float, rounds: int) -> None:
    """Slices of both in turn."""
    servers = [Server(module, what, work, threads) for module in (PEER, OURS)]
    pairs = []
    for k in range(rounds):
        order = (0, 1) if k % 2 == 0 else (1, 0)
        times = {i: servers[i].best(0.25) for i in order}
        pairs.append((times[0], times[1]))
    for server in servers:
        server.close()
    theirs, ours = min(t for t, _ in pairs), min(t for _, t in pairs)
    show(name, theirs, ours, statistics.median(b / a for a, b in pairs), goal, f" ({ours / theirs:.2f})")


def in_turn(measures: list[Callable[[], list[float]]], rounds: int) -> list[list[float]]:
    """The best of each number that each of the measures gives."""
    results = [[measure() for measure in measures] for _ in range(rounds)]
    return [[min(column) for column in zip(*(r[i] for r in results), strict=True)] for i in range(len(measures))]


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
    run_time("tiny: realize() on its buffers", "call", "tiny", 1, 2.0, rounds)
    run_time("tiny: realize(sizes), new output", "fresh", "tiny", 1, 2.0, rounds)
    compile_time(max(3, rounds // 4))
    theirs, ours = in_turn([lambda: import_time(PEER), lambda: import_time(OURS)], max(3, rounds // 2))
    show("import (after NumPy)", theirs[0], ours[0], ours[0] / theirs[0], 1.5)
    subprocess.run([sys.executable, str(Path(__file__).with_name("compile_time.py"))], check=True)


if __name__ == "__main__":
    main()
