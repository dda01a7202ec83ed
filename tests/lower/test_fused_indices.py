"""Loops over fused variables go straight through memory where rows lie end to end: no quotients and remainders in vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower

x, y, c, t, s = (hl.Var(v) for v in "xycts")
W, H = 24, 10
IMAGE = np.random.default_rng(3).integers(0, 99, (H, W)).astype(np.int32)


def image(width: int = W) -> hl.Func:
    """Rows of `width` elements, which the output's are as far apart as."""
    inp, f = hl.ImageParam(hl.Int(32), 2, "inp"), hl.Func("f")
    f[x, y] = inp[x, y] * 2 + 1
    for p in (f.output_buffer(), inp):
        p.dim(0).set_bounds(0, width)
        p.dim(1).set_min(0).set_stride(width)
    inp.set(hl.Buffer(IMAGE))
    return f


def vectors() -> hl.Func:
    return image().fuse(x, y, t).vectorize(t, 8)


def scalars() -> hl.Func:
    return image().fuse(x, y, t).parallel(t, 16)


def unrolled() -> hl.Func:
    return image().fuse(x, y, t).unroll(t, 2)


def unknown_width() -> hl.Func:
    f, g = hl.Func("f"), image()
    f[x, y] = g[x, y]
    g.compute_root().fuse(x, y, t).vectorize(t, 4)
    return f


def three() -> hl.Func:
    """Planes of rows: fused twice."""
    g, f = hl.Func("g"), hl.Func("f")
    g[x, y, c] = hl.Buffer(IMAGE)[x, y] + c * 1000
    f[x, y] = g[x, y, 0] + g[x, y, 1]
    g.compute_root().bound(x, 0, W).bound(y, 0, H).bound(c, 0, 2).fuse(x, y, t).fuse(t, c, s).vectorize(s, 8)
    return f


def expected(make: Callable[[], hl.Func]) -> np.ndarray:
    return IMAGE * 2 + 1000 if make is three else IMAGE * 2 + 1


def stores(f: hl.Func) -> list[n.Store]:
    body = lower([f.function], f.pipeline()._arguments(), "out", Target.host()).body
    return list(nodes_of(body, n.Store))


@pytest.mark.parametrize("make", [vectors, scalars, unrolled, unknown_width, three])
def test_rows_end_to_end_are_one(make: Callable[[], hl.Func]) -> None:
    f = make()
    np.testing.assert_array_equal(np.asarray(f.realize([W, H])), expected(make))
    for one in stores(make()):
        assert not any(True for _ in nodes_of(one.index, (n.Div, n.Mod))), one.index


def test_rows_apart_are_not() -> None:
    f = image()
    f.output_buffer().dim(1).set_stride(W + 8)
    f.fuse(x, y, t).vectorize(t, 8)
    out = hl.Buffer(np.zeros((H, W + 8), np.int32))
    out.crop(0, 0, W)
    f.realize(out)
    np.testing.assert_array_equal(np.asarray(out), IMAGE * 2 + 1)
