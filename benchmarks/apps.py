"""The Python apps of Halide's sources, under Halide and here: `python benchmarks/apps.py DIRECTORY`, where its `python_bindings/apps` are.

Their generators are imported as they are, compiled for images of 1536 x 2560 with the apps' own schedules and with autoschedulers, and
run on one thread in short slices in turn. Ratios are to Halide with the same schedule or the same autoscheduler; outputs are compared with
Halide's.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import time
from pathlib import Path

import numpy as np
from contenders import Server, ratio, show, slices

WIDTH, HEIGHT = 1536, 2560
APPS = {
    "blur": ["by hand"],
    "bilateral_grid": ["by hand", "Mullapudi2016"],
    "interpolate": ["by hand", "Mullapudi2016"],
    "local_laplacian": ["by hand", "Mullapudi2016"],
}
SLOW = {"bilateral_grid": ["Adams2019"], "interpolate": ["Adams2019"]}  # Halide searches for minutes


def arguments(app: str) -> list[object]:
    """The inputs of an app, then its output."""
    image = np.random.default_rng(0).random((4, HEIGHT, WIDTH), dtype=np.float32)
    image[3] = image[3] > 0.9
    if app == "blur":
        return [(image[0] * 4096).astype(np.uint16), np.zeros((HEIGHT, WIDTH), np.uint16)]
    if app == "bilateral_grid":
        return [image[0], 0.1, np.zeros((HEIGHT, WIDTH), np.float32)]
    if app == "interpolate":
        return [image, np.zeros((3, HEIGHT, WIDTH), np.float32)]
    return [(image[:3] * 65535).astype(np.uint16), 8, 1 / 7, 1.0, np.zeros((3, HEIGHT, WIDTH), np.uint16)]


def serve(module: str, how: str, app: str) -> None:
    """Compile; say how long scheduling and compiling took, and some numbers of the result; then for every line run a while."""
    hl = importlib.import_module(module)
    folder, app = app.rsplit(":", 1)
    sys.modules["halide"] = hl
    sys.path.insert(0, folder)
    generator = getattr(importlib.import_module(f"{app}_generator"), app)
    params = None if how == "by hand" else hl.AutoschedulerParams(how, {})
    if params and module == "halide":
        hl.load_plugin(f"autoschedule_{how.lower()}")
    target = hl.get_jit_target_from_environment()
    given, start = arguments(app), time.process_time()
    buffers = [hl.Buffer(a) if isinstance(a, np.ndarray) else a for a in given]
    with hl.GeneratorContext(target, *([params] if params else [])):
        output = generator.call(*buffers[:-1])
    pipeline = hl.Pipeline(output)
    if params:
        pipeline.apply_autoscheduler(target, params)
    pipeline.compile_jit(target)
    spent = time.process_time() - start
    pipeline.realize(buffers[-1])
    result = np.asarray(given[-1])
    print(json.dumps([spent, *map(float, result.reshape(-1)[:: result.size // 1000])]), flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times: list[float] = []
        while not times or time.perf_counter() < end:
            start = time.process_time()
            pipeline.realize(buffers[-1])
            times.append(time.process_time() - start)
        print(json.dumps(times), flush=True)


def compare(folder: str, app: str, how: str, rounds: int) -> None:
    """One row."""
    servers = [Server(Path(__file__), module, how, f"{folder}:{app}", 1) for module in ("halide_py", "halide")]
    (ours, *mine), (theirs, *wanted) = (server.ready for server in servers)
    off = float(np.abs(np.subtract(mine, wanted)).max() / max(np.abs(wanted).max(), 1e-30))
    rows = slices(servers, rounds)
    middle, best = ratio(rows, 0, 1)
    times = [min(row[i] for row in rows) for i in (1, 0)]
    show(f"{app} {how}", times[0], times[1], middle, 1.0, f" ({best:.2f})   {ours:.1f} s against {theirs:.1f}, apart {off:.1e}", width=30)
    for server in servers:
        server.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="python_bindings/apps of Halide's sources")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="an app")
    parser.add_argument("--slow", action="store_true", help="also Adams2019, for which Halide searches minutes")
    given = parser.parse_args()
    print(f"{'':30}{'Halide':>10}{'halide_py':>11}")
    for app, hows in APPS.items():
        for how in (*hows, *(SLOW.get(app, ()) if given.slow else ())):
            if given.only in (None, app):
                compare(given.folder, app, how, given.rounds)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in ("halide", "halide_py"):
        serve(*sys.argv[1:])
    else:
        main()
