"""Contenders in processes of their own, timed in turn: what the benchmarks share.

Run times are taken in short slices in turn, so that what else the machine does falls on all; a ratio is the median of the paired slices'
ratios (and of the best times, in brackets).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def environment(**extra: str) -> dict[str, str]:
    """The environment of a worker; bytecode is kept, as an installation does."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "HL_NUM_THREADS": "1", **extra}


class Server:
    """A worker that runs when told to. `ready` is what it said first."""

    def __init__(self, worker: Path, module: str, what: str, work: str, threads: int, python: str = sys.executable) -> None:
        self.name = f"{module} {what} {work}"
        command, env = [python, str(worker), module, what, work], environment(HL_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.answer()

    def answer(self) -> Any:
        """The next line it prints."""
        assert self.process.stdout is not None
        line = "Warning:"
        while line.startswith("Warning:"):  # Halide prints its own
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


def fresh(arguments: list[str], **extra: str) -> list[float]:
    """The numbers on the last line that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, *arguments], env=environment(**extra), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return [float(t) for t in json.loads(done.stdout.splitlines()[-1])]


def in_turn(measures: Sequence[Callable[[], list[float]]], rounds: int) -> list[list[float]]:
    """The best of each number that each of the measures gives."""
    results = [[measure() for measure in measures] for _ in range(rounds)]
    return [[min(column) for column in zip(*(r[i] for r in results), strict=True)] for i in range(len(measures))]


def slices(servers: Sequence[Server], rounds: int, seconds: float = 0.25) -> list[list[float]]:
    """The best times of each contender's slices, a row for each round; the order turns around from round to round."""
    rows = []
    for k in range(rounds):
        order = range(len(servers)) if k % 2 == 0 else reversed(range(len(servers)))
        times = {i: servers[i].best(seconds) for i in order}
        rows.append([times[i] for i in range(len(servers))])
    return rows


def ratio(rows: Sequence[Sequence[float]], ours: int, theirs: int) -> tuple[float, float]:
    """Ours over theirs: the median of the rounds, and that of the best times."""
    return statistics.median(r[ours] / r[theirs] for r in rows), min(r[ours] for r in rows) / min(r[theirs] for r in rows)


def show(name: str, theirs: float, ours: float, ratio: float, goal: float, note: str = "", width: int = 34) -> None:
    """One row."""
    unit, scale = ("us", 1e6) if min(theirs, ours) < 1e-4 else ("ms", 1e3)
    verdict = "" if ratio <= goal else "  missed"
    print(f"{name:{width}}{theirs * scale:10.2f}{ours * scale:11.2f} {unit}{ratio:9.3f}{note:10}{goal:7.2f}{verdict}", flush=True)
