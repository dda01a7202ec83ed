"""(a) Blur and sharpen a photograph, and see what the schedule is worth.

As a script: `sharpen.py MODULE FILTER VARIANT PHOTO.npy RESULT.npy` times one contender in a process of its own and prints seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from filters import FILTERS, Array
from photo import Bytes, planar, repeated, save

WIDTH, HEIGHT = 2560, 1536


def best_time(run: Callable[[], Any], seconds: float = 0.6) -> float:
    """The fastest of as many runs as fit into the time, at least three."""
    run()
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def time_pipeline(module: str, name: str, variant: str, photo: Array) -> tuple[float, Array]:
    """Seconds of one realization into an existing buffer, and the result."""
    hl = importlib.import_module(module)
    source, result = hl.Buffer(photo, name="photo"), hl.Buffer(np.empty_like(photo), name="result")
    pipeline = FILTERS[name][0](hl, source, variant == "scheduled")
    pipeline.compile_jit()
    return best_time(lambda: pipeline.realize(result)), np.array(result)


def as_input(name: str, picture: Bytes) -> Array:
    """The photograph in the type that the filter wants, planar."""
    return planar(picture) if name == "blur" else planar(picture).astype(np.float32) / np.float32(255) * np.float32(0.9) + np.float32(0.05)


def contender(module: str, name: str, variant: str, picture: Bytes, threads: int) -> tuple[float, Array]:
    """Time a pipeline in a process of its own, so that two compilers never share one."""
    with tempfile.TemporaryDirectory() as folder:
        photo, result = Path(folder) / "photo.npy", Path(folder) / "result.npy"
        np.save(photo, as_input(name, picture))
        command = [sys.executable, __file__, module, name, variant, str(photo), str(result)]
        env = {**os.environ, "HL_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{module} {name} failed:\n{done.stderr}")
        return float(json.loads(done.stdout.splitlines()[-1])), np.load(result)


def table(picture: Bytes) -> None:
    """Print the times of every contender on the photograph, mirrored to a large size, and check that all agree."""
    threads = os.cpu_count() or 1
    big = repeated(picture, WIDTH, HEIGHT)
    print(f"\n   the photograph mirrored to {WIDTH}x{HEIGHT}, {threads} threads, best time in ms (times as fast as NumPy)")
    print(f"   {'':12}{'NumPy':>12}{'SciPy':>18}{'unscheduled':>18}{'scheduled':>18}{'Halide 21':>18}")
    for name, (_, in_numpy, in_scipy) in FILTERS.items():
        photo = as_input(name, big)
        times = [best_time(lambda: in_numpy(photo)), best_time(lambda: in_scipy(photo))]  # noqa: B023 (called at once)
        expected = in_numpy(photo)
        runs = [("halide_py", "unscheduled"), ("halide_py", "scheduled")]
        if importlib.util.find_spec("halide"):
            runs.append(("halide", "scheduled"))
        for module, variant in runs:
            seconds, result = contender(module, name, variant, big, threads)
            times.append(seconds)
            if np.abs(result.astype(np.float64) - expected).max() > (0 if name == "blur" else 1e-4):
                raise SystemExit(f"{module}'s {variant} {name} differs from NumPy's")
        cells = [f"{times[0] * 1e3:12.2f}"] + [f"{t * 1e3:9.2f} ({times[0] / t:5.1f}x)" for t in times[1:]]
        print(f"   {name:12}{''.join(cells)}{'' if len(runs) == 3 else '     not installed'}")


def run(picture: Bytes) -> None:
    """Write the filtered photographs and print the table."""
    print("(a) 3x3 blur and unsharp mask")
    for name in FILTERS:
        hl = importlib.import_module("halide_py")
        photo = as_input(name, picture)
        result = hl.Buffer(np.empty_like(photo), name="result")
        FILTERS[name][0](hl, hl.Buffer(photo, name="photo"), True).realize(result)
        values = np.array(result).transpose(1, 2, 0)
        print("   wrote", save(f"{name}.png", values if name == "blur" else (values - 0.05) / 0.9))
    print("   wrote", save("photo.png", picture))
    table(picture)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    elapsed, values = time_pipeline(arguments[0], arguments[1], arguments[2], np.load(arguments[3]))
    np.save(arguments[4], values)
    print(json.dumps(elapsed))
