"""Runs random scripts by seed, each in a child process, so that one that crashes or hangs is named like one that is wrong.

    python tests/oracle/hunt.py FIRST COUNT [--compiled] [--unscheduled] [--focus F] [--funcs N] [--seconds N] [--jobs N]

prints each failing seed with what it did and its script. Without --compiled the loop IR is interpreted, unless
that takes too many iterations.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

sys.path.insert(0, str(Path(__file__).parent))

from harness import check, run_compiled, run_loop_ir  # noqa: E402
from pipelines import random_script  # noqa: E402
from script import Script  # noqa: E402
from stage_directives import FOCI  # noqa: E402

MEMORY = 4 << 30
REFUSED = 2  # exit status of a child whose schedule was refused


class Runnable(Protocol):
    def run(self) -> bool:
        """False if what was asked for is refused. Raises what is wrong, or ends the process."""


R = TypeVar("R", bound=Runnable)


@dataclass(frozen=True)
class Case:
    """One script: its seed and how it is run."""

    seed: int
    compiled: bool = True
    scheduled: bool = True
    funcs: int = 4
    focus: str = ""

    def script(self) -> Script:
        return random_script(self.seed, self.funcs, self.scheduled, self.focus)

    def run(self) -> bool:
        script = self.script()
        try:
            return check(script, run_compiled if self.compiled else run_loop_ir)
        except BaseException:
            print(f"---- what was tried, without the directives that are refused\n{script.text()}\n", flush=True)
            raise

    def text(self) -> str:
        return self.script().text()


def _child(case: Runnable, report: int, seconds: int) -> None:
    """What the child does: the case, within bounds; how it failed goes to the pipe."""
    if "san." not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of its own; of the C compiler's and of waiting, on a busy machine, much more
    signal.alarm(5 * seconds)
    os.dup2(report, 2)
    os.dup2(report, 1)
    try:
        os._exit(0 if case.run() else REFUSED)
    except BaseException:  # noqa: BLE001  whatever it is, it is the finding
        os.write(report, traceback.format_exc()[-6000:].encode())
        os._exit(1)


def outcome(status: int) -> str:
    """What a child's exit status means; empty when all is well, or when the schedule was refused."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "took too long" if number in (signal.SIGALRM, signal.SIGPROF) else f"crashed with {signal.Signals(number).name}"
    return "" if os.WEXITSTATUS(status) in (0, REFUSED) else "failed"


def failures(cases: Sequence[R], seconds: int = 60, jobs: int = 1, refused: list[R] | None = None) -> Iterator[tuple[R, str, str]]:
    """(case, outcome, what was printed) of each case that failed; `refused` gets those that were refused. Runs `jobs` children at a time."""
    todo, running = list(reversed(cases)), {}
    while todo or running:
        while todo and len(running) < jobs:
            case, out = todo.pop(), os.memfd_create("report")
            pid = os.fork()
            if pid == 0:
                _child(case, out, seconds)
            running[pid] = case, out
        pid, status = os.wait()
        case, out = running.pop(pid)
        if refused is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) == REFUSED:
            refused.append(case)
        if outcome(status):
            yield case, outcome(status), os.pread(out, 20000, 0).decode(errors="replace")
        os.close(out)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("first", type=int)
    p.add_argument("count", type=int)
    p.add_argument("--compiled", action="store_true")
    p.add_argument("--unscheduled", action="store_true")
    p.add_argument("--focus", choices=FOCI, default="")
    p.add_argument("--funcs", type=int, default=4)
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--jobs", type=int, default=1)
    a = p.parse_args()
    start, found = time.monotonic(), 0
    refused: list[Case] = []
    cases = [Case(seed, a.compiled, not a.unscheduled, a.funcs, a.focus) for seed in range(a.first, a.first + a.count)]
    for case, what, printed in failures(cases, a.seconds, a.jobs, refused):
        found += 1
        print(f"==== seed {case.seed} {what}\n{printed}\n---- script\n{case.text()}", flush=True)
    print(f"{found} of {a.count} failed, {len(refused)} were refused, {time.monotonic() - start:.0f} s")
    return found != 0


if __name__ == "__main__":
    sys.exit(main())
