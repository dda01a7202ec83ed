"""One contender in a process of its own: `worker.py MODULE WHAT WORK`. Prints JSON lines, seconds.

WHAT is `serve` (compile, check, then for every line with a number of seconds on standard input run that long and print the times of the
runs), `call` (the same for pipelines so short that only many calls together can be timed), `fresh` (these, each into a new output) or
`compile` (time to make and compile the first pipeline of the process and a further one).
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np
from pipelines import WORKS as PIPELINES
from pipelines import Work
from schedule_works import SCHEDULES

WORKS = {**PIPELINES, **SCHEDULES}

CALLS = 500


def bound(hl: Any, work: Work) -> tuple[Any, Any]:
    """The compiled pipeline and its output buffer, with inputs set."""
    for image, data in work.inputs.items():
        image.set(hl.Buffer(data))
    pipeline = hl.Pipeline([work.output])
    pipeline.compile_jit()
    return pipeline, hl.Buffer(work.result)


def check(work: Work) -> None:
    """The result must be right before it may be fast."""
    expected = work.reference()
    worst = float(np.abs(work.result.astype(np.float64) - expected).max())
    if worst > work.tolerance * float(np.abs(expected).max()):
        raise SystemExit(f"wrong result, off by {worst}")


def serve(hl: Any, name: str, calls: int = 1, fresh: bool = False) -> None:
    """Run when told to; one time is that of `calls` calls, divided by their number. `fresh`: each call makes its output."""
    work = WORKS[name](hl)
    pipeline, result = bound(hl, work)
    pipeline.realize(result)
    check(work)
    target = list(work.result.shape[::-1]) if fresh else result
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times: list[float] = []
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(calls):
                pipeline.realize(target)
            times.append((time.perf_counter() - start) / calls)
        print(json.dumps(times), flush=True)


def compile_times(hl: Any, name: str) -> None:
    """Make and compile two pipelines."""
    times = []
    for variant in (1, 2):
        start = time.perf_counter()
        hl.Pipeline([WORKS[name](hl, variant, 64, 64).output]).compile_jit()
        times.append(time.perf_counter() - start)
    print(json.dumps(times), flush=True)


def main() -> None:
    """Do what the arguments say."""
    module, what, name = sys.argv[1:4]
    hl = importlib.import_module(module)
    if what == "compile":
        compile_times(hl, name)
    else:
        serve(hl, name, 1 if what == "serve" else CALLS, what == "fresh")


if __name__ == "__main__":
    main()
