"""Autoscheduled pipelines against the same by hand, without a schedule, and by Halide's own autoscheduler: `python
benchmarks/autoschedulers.py`.

Each contender has a process of its own and one thread; the processor's time is taken in short slices in turn, so that what else the machine
does counts little, and the best of each counts. Halide's rows need its package from PyPI, whose plugins are found next to it. Ratios are to
the schedule by hand; below 1 is faster.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from pipelines import Work, blur, unsharp

WORKS = {"blur": blur, "unsharp": unsharp}
CONTENDERS = [("halide_py", "by hand"), ("halide_py", "no schedule"), ("halide_py", "Mullapudi2016"), ("halide_py", "Adams2019"),
              ("halide_py", "Li2018"), ("halide", "by hand"), ("halide", "Mullapudi2016"), ("halide", "Adams2019"), ("halide", "Li2018")]
DIRECTIVES = ("split", "reorder", "tile", "vectorize", "unroll", "parallel", "compute_root", "compute_at", "store_at", "bound")


def unscheduled(hl: Any, maker: Any) -> Work:
    """A pipeline whose directives did nothing."""
    kept = {(cls, name): getattr(cls, name) for cls in (hl.Func, hl.Stage) for name in DIRECTIVES if hasattr(cls, name)}
    for cls, name in kept:
        setattr(cls, name, lambda self, *args, **kwargs: self)
    try:
        work: Work = maker(hl)
    finally:
        for (cls, name), directive in kept.items():
            setattr(cls, name, directive)
    return work


def serve(module: str, how: str, name: str) -> None:
    """Schedule, compile and check; then for every line on standard input run a while and print the best time."""
    hl = importlib.import_module(module)
    work = WORKS[name](hl) if how == "by hand" else unscheduled(hl, WORKS[name])
    for image, data in work.inputs.items():
        image.set(hl.Buffer(data))
        image.set_estimates([(0, n) for n in data.shape[::-1]])
    pipeline, spent = hl.Pipeline([work.output]), 0.0
    if how in ("Mullapudi2016", "Adams2019", "Li2018"):
        if module == "halide":
            hl.load_plugin(f"autoschedule_{how.lower()}")
        work.output.set_estimates([(0, n) for n in work.result.shape[::-1]])
        start = time.process_time()
        pipeline.apply_autoscheduler(hl.get_jit_target_from_environment(), hl.AutoschedulerParams(how, {}))
        spent = time.process_time() - start
    result = hl.Buffer(work.result)
    pipeline.realize(result)
    expected = work.reference()
    if float(np.abs(work.result.astype(np.float64) - expected).max()) > work.tolerance * float(np.abs(expected).max()):
        raise SystemExit("wrong result")
    print(json.dumps(spent), flush=True)
    for line in sys.stdin:
        end, best = time.perf_counter() + float(line), float("inf")
        while best == float("inf") or time.perf_counter() < end:
            start = time.process_time()
            pipeline.realize(result)
            best = min(best, time.process_time() - start)
        print(json.dumps(best), flush=True)


def environment() -> dict[str, str]:
    """With Halide's plugins on the loader's path."""
    found = importlib.util.find_spec("halide")
    folder = str(Path(found.origin).parent / "lib64") if found is not None and found.origin else ""
    return {
        **os.environ,
        "HL_NUM_THREADS": "1",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH")))),
    }


def compare(name: str, rounds: int) -> None:
    """One row a contender."""
    workers = []
    for module, how in CONTENDERS:
        if importlib.util.find_spec(module) is None:
            continue
        command = [sys.executable, __file__, "--serve", module, how, name]
        process = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdin is not None
        workers.append((module, how, process, float(process.stdout.readline()), [float("inf")]))
    for k in range(rounds):
        for _, how, process, _, best in workers:
            if how == "no schedule" and k:
                continue  # slow, and so not in need of the best of many
            assert process.stdout is not None and process.stdin is not None
            process.stdin.write("0.2\n")
            process.stdin.flush()
            best[0] = min(best[0], float(process.stdout.readline()))
    base = workers[0][4][0]
    for module, how, process, spent, best in workers:
        print(f"{name:12}{module:12}{how:16}{best[0] * 1e3:10.3f} ms{best[0] / base:9.2f}{spent:12.2f} s")
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--serve", nargs=3, metavar=("MODULE", "HOW", "WORK"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(*given.serve)
        return
    print(f"{'':12}{'module':12}{'schedule':16}{'best time':>13}{'ratio':>9}{'scheduling':>14}")
    for name in WORKS:
        compare(name, given.rounds)


if __name__ == "__main__":
    main()
