"""One contender of `gradients.py` in a process of its own: `gradient_worker.py MODULE WHAT WORK`. Prints JSON lines, seconds.

WHAT is `serve` (make, run once, save the results and print their path; then for every line with a number of seconds on standard input run
that long and print the times of the runs: of one thread the processor's, which others on the machine do not change) or `compile` (time to
make and compile the pipeline, without a cache). WORK is a pipeline of `gradient_works` or `network_works`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

THREADS = int(os.environ.get("HL_NUM_THREADS", "1"))
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen={'true' if THREADS > 1 else 'false'}")
# the thread pools of all contenders go by what the process may use; Halide's counts its own
if hasattr(os, "sched_setaffinity") and sys.argv[2:3] == ["serve"]:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import numpy as np  # noqa: E402  (after the settings it reads)
from gradient_works import GRADIENTS, GradientWork, by_hand  # noqa: E402
from network_works import NETWORKS, Run  # noqa: E402


def pipeline_of(hl: Any, name: str) -> tuple[GradientWork, Any]:
    """The compiled pipeline of a work, its inputs set."""
    work = GRADIENTS[name](hl)
    if hl.__name__ == "halide":
        by_hand(hl, work)
    pipeline = hl.Pipeline(work.outputs)
    for image, data in work.inputs.items():
        image.set(hl.Buffer(data))
    pipeline.compile_jit()
    return work, pipeline


def gradient(hl: Any, name: str) -> Run:
    """A run of a work, and its results."""
    work, pipeline = pipeline_of(hl, name)
    outputs = [hl.Buffer(a) for a in work.results]
    return lambda: pipeline.realize(outputs), lambda: work.results


def serve(run: Callable[[], Any], results: Callable[[], list[Any]]) -> None:
    """Run when told to."""
    clock = time.process_time if THREADS == 1 else time.perf_counter
    run()
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
        np.savez(file, *results())
    print(json.dumps(file.name), flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times: list[float] = []
        while len(times) < 2 or time.perf_counter() < end:
            start = clock()
            run()
            times.append(clock() - start)
        print(json.dumps(times), flush=True)


def main() -> None:
    """Do what the arguments say."""
    module, what, name = sys.argv[1:4]
    if name in NETWORKS:
        serve(*NETWORKS[name][module]())
        return
    hl = importlib.import_module(module)
    if what == "serve":
        serve(*gradient(hl, name))
        return
    start = time.perf_counter()
    pipeline_of(hl, name)
    print(json.dumps([time.perf_counter() - start]), flush=True)


if __name__ == "__main__":
    main()
