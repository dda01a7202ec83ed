"""Pipelines for autoschedulers: each maker gives the outputs, without a schedule and with estimates, and their sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import halide_py as hl

SCHEDULERS = ("Mullapudi2016", "Li2018", "Adams2019")
x, y, c, k = hl.vars("x y c k")


@dataclass
class Case:
    """Outputs of one size; `typical` is what they are estimated to be."""

    outputs: list[hl.Func]
    size: tuple[int, ...]
    typical: tuple[int, ...]
    rounding: float = 0.0
    roots: tuple[hl.Func, ...] = ()  # what needs compute_root() where nobody schedules

    def __post_init__(self) -> None:
        for f in self.outputs:
            f.set_estimates([(0, n) for n in self.typical])


def image(*size: int, kind: type = np.float32, seed: int = 0) -> hl.Buffer:
    """Data of a size, dimension 0 first."""
    return hl.Buffer(np.random.default_rng(seed).integers(0, 200, size[::-1]).astype(kind))


def blur() -> Case:
    near = hl.BoundaryConditions.repeat_edge(image(50, 40, kind=np.uint8))
    rows, out = hl.Func("rows"), hl.Func("blur")
    rows[x, y] = hl.u16(near[x - 1, y]) + hl.u16(near[x, y]) + hl.u16(near[x + 1, y])
    out[x, y] = hl.u8((rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) // 9)
    return Case([out], (50, 40), (1024, 768))


def harris() -> Case:
    """Two outputs that share everything, as in Halide's lesson 21."""
    near = hl.BoundaryConditions.repeat_edge(image(45, 37, 3))
    gray, iy, ix, h, one, two = (hl.Func(name) for name in ("gray", "Iy", "Ix", "harris", "one", "two"))
    gray[x, y] = near[x, y, 0] + 2 * near[x, y, 1] + near[x, y, 2]
    iy[x, y] = gray[x - 1, y - 1] - gray[x - 1, y + 1] + gray[x + 1, y - 1] - gray[x + 1, y + 1]
    ix[x, y] = gray[x - 1, y - 1] - gray[x + 1, y - 1] + gray[x - 1, y + 1] - gray[x + 1, y + 1]

    def window(f: hl.Func, g: hl.Func, name: str) -> hl.Func:
        product, s = hl.Func(name), hl.Func("S" + name)
        product[x, y] = f[x, y] * g[x, y]
        s[x, y] = sum((product[x + i, y + j] for i in (-1, 0, 1) for j in (-1, 0, 1)), hl.f32(0))
        return s

    xx, yy, xy = window(ix, ix, "xx"), window(iy, iy, "yy"), window(ix, iy, "xy")
    h[x, y] = xx[x, y] * yy[x, y] - xy[x, y] * xy[x, y]
    one[x, y] = h[x, y]
    two[x, y] = 2 * h[x, y]
    return Case([one, two], (45, 37), (1024, 1024), 1e-5)


def pyramid() -> Case:
    """Down and up again, over a third dimension."""
    near = hl.BoundaryConditions.repeat_edge(image(64, 48, 3))
    levels = [hl.Func(f"down{i}") for i in range(4)]
    levels[0][x, y, c] = near[x, y, c]
    for lower, upper in zip(levels[1:], levels):
        columns = hl.Func("columns")
        columns[x, y, c] = upper[2 * x - 1, y, c] + upper[2 * x, y, c] + upper[2 * x + 1, y, c]
        lower[x, y, c] = columns[x, 2 * y, c] + columns[x, 2 * y + 1, c]
    up = levels[-1]
    for level in levels[-2::-1]:
        new = hl.Func("up")
        new[x, y, c] = level[x, y, c] - (up[x // 2, y // 2, c] + up[(x + 1) // 2, y // 2, c])
        up = new
    return Case([up], (64, 48, 3), (1536, 2560, 3), 1e-5)


def matmul() -> Case:
    a, b, r = image(40, 33), image(36, 40, seed=1), hl.RDom([(0, 40)], "r")
    product, out = hl.Func("product"), hl.Func("out")
    product[x, y] = 0.0
    product[x, y] += a[r, y] * b[x, r]
    out[x, y] = product[x, y] + 1
    return Case([out], (36, 33), (512, 512), 1e-5)


def row_sums() -> Case:
    """A long reduction of few results, taken in parts."""
    a, r = image(700, 5), hl.RDom([(0, 700)], "r")
    sums, out = hl.Func("sums"), hl.Func("out")
    sums[y] = 0.0
    sums[y] += a[r, y]
    out[y] = sums[y] * 2
    return Case([out], (5,), (5,), 1e-5)


def histogram() -> Case:
    a, r = image(300, 200, kind=np.uint8), hl.RDom([(0, 300), (0, 200)], "r")
    bins, out = hl.Func("bins"), hl.Func("out")
    bins[x] = hl.i32(0)
    bins[hl.i32(a[r.x, r.y])] += 1
    out[x] = bins[x] + bins[255 - x]
    return Case([out], (256,), (256,))


def brightest() -> Case:
    """A Tuple, the first of the largest: the order matters."""
    a, r = image(90, 80, kind=np.int32), hl.RDom([(0, 90), (0, 80)], "r")
    best, out = hl.Func("best"), hl.Func("out")
    best[()] = (hl.i32(-1), hl.i32(0), hl.i32(0))
    better = a[r.x, r.y] > best[()][0]
    best[()] = (hl.select(better, a[r.x, r.y], best[()][0]), hl.select(better, r.x, best[()][1]), hl.select(better, r.y, best[()][2]))
    out[x] = hl.mux(x, [best[()][0], best[()][1], best[()][2]])
    return Case([out], (3,), (3,))


def scan() -> Case:
    """A running sum along y, a Func with an update that cannot run in any order."""
    a, r = image(60, 50, kind=np.int32), hl.RDom([(1, 49)], "r")
    running, out = hl.Func("running"), hl.Func("out")
    running[x, y] = a[x, y]
    running[x, r] = running[x, r] + running[x, r - 1]
    out[x, y] = running[x, y] - running[x, 49 - y]
    return Case([out], (60, 50), (60, 50))


def table() -> Case:
    """A lookup table, read at places that depend on data."""
    a = hl.BoundaryConditions.repeat_edge(image(70, 60, kind=np.uint8))
    curve, out = hl.Func("curve"), hl.Func("out")
    curve[x] = hl.exp(hl.f32(x) / 256) * hl.sin(hl.f32(x))
    out[x, y, c] = curve[hl.i32(a[x, y])] + curve[hl.clamp(hl.i32(a[x + 1, y]) + c, 0, 255)]
    return Case([out], (70, 60, 2), (2000, 1000, 2), 1e-5)


def window_sum() -> Case:
    """An inline reduction, and a size given by a Param."""
    radius = hl.Param(hl.Int(32), "radius", 2)
    radius.set_estimate(3)
    near, r = hl.BoundaryConditions.mirror_interior(image(48, 40, kind=np.int32)), hl.RDom([(-radius, 2 * radius + 1), (-radius, 2 * radius + 1)], "r")
    out = hl.Func("out")
    out[x, y] = hl.sum(near[x + r.x, y + r.y]) + hl.maximum(near[x + r.x, y])
    return Case([out], (48, 40), (640, 480))


def interleaved() -> Case:
    """Channels side by side in memory."""
    data = np.random.default_rng(0).integers(0, 200, (40, 50, 3)).astype(np.uint8)
    p = hl.ImageParam(hl.UInt(8), 3, "rgb")
    p.dim(0).set_stride(3)
    p.dim(2).set_stride(1)
    p.dim(2).set_bounds(0, 3)
    p.set(hl.Buffer(data.transpose(2, 0, 1)))
    gray, out = hl.Func("gray"), hl.Func("out")
    gray[x, y] = hl.u16(p[x, y, 0]) + hl.u16(p[x, y, 1]) + hl.u16(p[x, y, 2])
    out[x, y] = gray[x, y] * 2 + gray[x, y // 2]
    return Case([out], (50, 40), (640, 480))


def extern_stage() -> Case:
    """A stage computed by a Python function: it and what it reads are computed as a whole."""
    near = hl.BoundaryConditions.repeat_edge(image(30, 20))
    before, middle, out = hl.Func("before"), hl.Func("middle"), hl.Func("out")
    before[x, y] = near[x, y] + near[x + 1, y]
    middle.define_extern("double_it", [before], hl.Float(32), 2, function=lambda a, doubled: np.multiply(a, 2, out=doubled))
    out[x, y] = middle[x, y] + 1
    return Case([out], (30, 20), (640, 480), roots=(before, middle))


def derivative() -> Case:
    """The gradient of a loss, whose Funcs come with a default schedule of their own."""
    a, weights = image(40, 30), hl.ImageParam(hl.Float(32), 2, "weights")
    weights.set(image(3, 3, seed=2))
    near, r, s = hl.BoundaryConditions.repeat_edge(a), hl.RDom([(0, 3), (0, 3)], "r"), hl.RDom([(0, 40), (0, 30)], "r")
    conv, loss = hl.Func("conv"), hl.Func("loss")
    conv[x, y] = 0.0
    conv[x, y] += near[x + r.x - 1, y + r.y - 1] * weights[r.x, r.y]
    loss[()] = 0.0
    loss[()] += conv[s.x, s.y] * conv[s.x, s.y] * hl.f32(1e-6)
    return Case([hl.propagate_adjoints(loss)[weights]], (3, 3), (3, 3), 1e-4)


def long_chain(stages: int = 50) -> Case:
    f = hl.BoundaryConditions.repeat_edge(image(40, 30))
    for i in range(stages):
        g = hl.Func(f"stage{i}")
        g[x, y] = f[x, y] + f[x + 1, y] * 0.5 - f[x, y + 1] * 0.5
        f = g
    return Case([f], (40, 30), (1536, 2560), 1e-3)


MAKERS: list[Callable[[], Case]] = [blur, harris, pyramid, matmul, row_sums, histogram, brightest, scan, table, window_sum, interleaved, extern_stage, derivative]
