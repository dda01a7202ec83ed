"""Gradients against PyTorch, JAX and Halide, and their price: `python benchmarks/gradients.py [--rounds N] [--only WORDS] [--peers
PYTHON]`.

Three tables. Layers of networks against PyTorch and JAX; `--peers` is a Python that has them, by default this one. Pipelines that Halide
can differentiate against Halide with a schedule by hand (`gradient_works.by_hand`), run and compiled; halide_py runs them as they come. And
the time of reverse passes over that of the forward pass, both by default loops: `work` is the arithmetic of the derivative in units of the
forward pass. Results are compared before anything is timed. Ratios are ours over theirs, below 1 is faster; the goals are those the project
has set itself.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Server, fresh, in_turn, ratio, show, slices
from gradient_works import GRADIENTS
from network_works import NETWORKS

import halide_py as hl

WORKER = Path(__file__).with_name("gradient_worker.py")
OURS, HALIDE = "halide_py", "halide"
VERSIONS = {"torch": "torch==2.13.0", "jax": "jax==0.10.2 jaxlib==0.10.2"}
GOALS = {("cross-entropy, both ways", "torch"): 1.0, ("cross-entropy, both ways", "jax"): 1.0, ("convolution layer, "
                                                                                                "backward", "torch"): 1.2}
x, y = hl.Var("x"), hl.Var("y")
SIZE, CELL, DEPTH = 1024, 16, 8
rng = np.random.default_rng(0)


def agree(servers: list[Server], tolerance: float) -> bool:
    """Whether the contenders' first results differ by no more than a part of the largest value; says where they do."""
    found = []
    for s in servers:
        with np.load(s.ready) as file:
            found.append([file[k] for k in file.files])
        os.unlink(s.ready)
    for s, arrays in zip(servers[1:], found[1:], strict=True):
        for k, (ours, theirs) in enumerate(zip(found[0], arrays, strict=True)):
            off = float(np.abs(ours.astype(np.float64) - theirs).max()) / float(np.abs(theirs).max())
            if not off <= tolerance:
                print(f"{servers[0].name} and {s.name} differ in result {k} by {off:.1e}: not timed")
                return False
    return True


def against(name: str, peers: list[str], threads: int, rounds: int, python: str, tolerance: float) -> None:
    """The rows of one work: ours over each of the peers."""
    servers = [Server(WORKER, OURS, "serve", name, threads)]
    servers += [Server(WORKER, peer, "serve", name, threads, python) for peer in peers]
    rows = slices(servers, rounds) if agree(servers, tolerance) else []
    for s in servers:
        s.close()
    for i, peer in enumerate(peers if rows else (), 1):
        median, of_best = ratio(rows, 0, i)
        goal = GOALS.get((name, peer), 1.0 if peer == HALIDE else float("inf"))
        show(f"{name}, {threads} thread{'s' if threads > 1 else ''}, "
             f"{peer}", min(r[i] for r in rows), min(r[0] for r in rows), median, goal, f" ({of_best:.2f})", 50)


def networks(only: str, python: str, rounds: int) -> None:
    """The first table."""
    code = f"import importlib.util as u; print([m for m in {list(VERSIONS)} if u.find_spec(m)])"
    there = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    for module, what in VERSIONS.items():
        if repr(module) not in there:
            print(f"{module} is not installed, so nothing is compared with it: pip install {what}, or name a Python that has it with "
                  f"--peers")
    peers = [m for m in VERSIONS if repr(m) in there]
    for name in NETWORKS if peers else ():
        for threads in (1, 2):
            if only in name:
                against(name, peers, threads, rounds, python, 1e-4)


def pipelines(only: str, rounds: int) -> None:
    """The second table."""
    if importlib.util.find_spec(HALIDE) is None:
        print("Halide from PyPI is not installed, so nothing is compared with it: pip install halide==21.0.0")
        return
    for name in GRADIENTS:
        if only not in name:
            continue
        for threads in (1, 2):
            against(name, [HALIDE], threads, rounds, sys.executable, 1e-3)
        compiled = [functools.partial(fresh, [str(WORKER), module, "compile", name], HL_CACHE="0") for module in (OURS, HALIDE)]
        ours, theirs = in_turn(compiled, 2)
        show(f"{name}: cold compile", theirs[0], ours[0], ours[0] / theirs[0], 1.0, width=50)


def best(run: Callable[[], Any], times: int = 7) -> float:
    """Milliseconds of the fastest run after a first one."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found) * 1e3


def buffer(*shape: int) -> hl.Buffer:
    """Random numbers, the last extent that of dimension 0."""
    return hl.Buffer(rng.random(shape).astype(np.float32))


def into(f: hl.Func, *shape: int) -> Callable[[], Any]:
    """A run of a Func into memory of a shape."""
    out = buffer(*shape)
    return lambda: f.realize(out)


def stencils(condition: str) -> tuple[hl.Func, hl.Buffer]:
    """Four blurs of five points, one after the other, behind a boundary condition."""
    image = buffer(SIZE, SIZE)
    make = getattr(hl.BoundaryConditions, condition)
    f = make(image, 0) if condition == "constant_exterior" else make(image)
    for i in range(4):
        g = hl.Func(f"blur{i}")
        g[x, y] = (f[x - 1, y] + 2 * f[x, y] + f[x + 1, y] + f[x, y - 1] + f[x, y + 1]) * hl.f32(1 / 6)
        g.compute_root().parallel(y, 16).vectorize(x, 8)
        f = g
    return f, image


def convolution() -> tuple[hl.Func, hl.Buffer, hl.Buffer]:
    """3x3 weights over one image."""
    image, weights, r = buffer(SIZE + 2, SIZE + 2), buffer(3, 3), hl.RDom([(0, 3), (0, 3)])
    f = hl.Func("convolution")
    f[x, y] = 0.0
    f[x, y] += image[x + r.x, y + r.y] * weights[r.x, r.y]
    f.compute_root().parallel(y, 16).vectorize(x, 8)
    f.update().reorder([r.x, r.y, x, y]).parallel(y, 16).vectorize(x, 8)
    return f, image, weights


def bilateral_slice(floats: bool) -> tuple[hl.Func, hl.Buffer, hl.Buffer]:
    """A grid looked up by place and brightness, trilinearly, as in `gradient_works`; the cell of a place by division, or by floats."""
    cells = SIZE // CELL + 1
    grid, guide, r = buffer(DEPTH, cells, cells), buffer(SIZE, SIZE), hl.RDom([(0, 2), (0, 2), (0, 2)])

    def weight(e: hl.Expr) -> hl.Expr:
        return hl.max(1 - hl.abs(e), 0)

    gx, gy = (x + hl.f32(0.5)) / hl.f32(CELL), (y + hl.f32(0.5)) / hl.f32(CELL)
    gz = hl.clamp(guide[x, y], hl.f32(0), hl.f32(1)) * hl.f32(DEPTH - 1)
    cx, cy = [hl.clamp(hl.i32(hl.floor(g)), 0, cells - 2) if floats else v // CELL for g, v in ((gx, x), (gy, y))]
    cz = hl.i32(hl.floor(gz))
    f = hl.Func("sliced")
    f[x, y] = 0.0
    at = (cx + r.x, cy + r.y, cz + r.z)
    f[x, y] += grid[at[0], at[1], hl.clamp(at[2], 0, DEPTH - 1)] * weight(gx - at[0]) * weight(gy - at[1]) * weight(gz - at[2])
    f.compute_root().parallel(y, 16).vectorize(x, 16)
    f.update().reorder([r.x, r.y, r.z, x, y]).unroll(r.x).unroll(r.y).unroll(r.z).parallel(y, 16).vectorize(x, 16)
    return f, grid, guide


def channels() -> tuple[hl.Func, hl.Buffer, hl.Buffer]:
    """A layer of a network, forward and backward by default loops."""
    images, weights = buffer(2, 32, 98, 98), buffer(32, 32, 3, 3)
    return hl.nn.conv2d(images, weights, 32, 3, 3), images, weights


def price(name: str, output: hl.Func, wrt: hl.Buffer, shape: tuple[int, ...], work: float, results: tuple[int, ...] = (SIZE, SIZE)) -> None:
    """Time one derivative; `results` is the shape of the output."""
    forward = best(into(output, *results))
    start = time.perf_counter()
    derivative = hl.propagate_adjoints(output, buffer(*results))[wrt]
    derivative.compile_jit()
    compiled = (time.perf_counter() - start) * 1e3
    backward = best(into(derivative, *shape))
    verdict = "" if backward / forward / work <= 3 else "  missed"
    print(f"{name:48} forward {forward:7.2f} ms   backward {backward:7.2f} ms   ratio {backward / forward:5.2f}   work {work:3.1f}   goal "
          f"3 x work   "
          f"compile {compiled:6.0f} ms{verdict}", flush=True)


def prices() -> None:
    """The third table."""
    for condition in ("constant_exterior", "repeat_edge", "mirror_image"):
        f, image = stencils(condition)
        price(f"four stencils, {condition}", f, image, (SIZE, SIZE), 1)
    f, image, weights = convolution()
    price("convolution, for the image", f, image, (SIZE + 2, SIZE + 2), 1)
    price("convolution, for the weights", f, weights, (3, 3), 1)
    for floats in (False, True):
        f, grid, guide = bilateral_slice(floats)
        cells = "cells by floats" if floats else "cells by division"
        price(f"bilateral slice, {cells}, for the grid", f, grid, (DEPTH, SIZE // CELL + 1, SIZE // CELL + 1), 1)
        price(f"bilateral slice, {cells}, for the guide", f, guide, (SIZE, SIZE), 1)
    layer, images, weights = channels()
    price("layer of 32 channels, for the images", layer, images, (2, 32, 98, 98), 1, (2, 32, 96, 96))
    price("layer of 32 channels, for the weights", layer, weights, (32, 32, 3, 3), 1, (2, 32, 96, 96))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="slices of each contender")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--peers", default=sys.executable, help="the Python that has PyTorch and JAX")
    options = parser.parse_args()
    print(f"{'':50}{'theirs':>10}{'halide_py':>11}   {'ratio':>9}{'':10}{'goal':>7}")
    networks(options.only, options.peers, options.rounds)
    pipelines(options.only, options.rounds)
    if not options.only:
        prices()


if __name__ == "__main__":
    main()
