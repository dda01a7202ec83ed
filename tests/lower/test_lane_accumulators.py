"""Vector reductions whose lanes are combined once, after their loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower

x, y, u = hl.Var("x"), hl.Var("y"), hl.Var("u")
ROWS = np.random.default_rng(5).integers(-60, 60, (6, 61))


def accumulators(f: hl.Func, target: str = "host") -> list[int]:
    """The lanes of each accumulator in a pipeline's loops."""
    body = lower([f.function], f.pipeline()._arguments(), "f", Target(target)).body
    found = [a for a in nodes_of(body, n.Allocate) if ".lanes" in a.name]
    loops = [loop for loop in nodes_of(body, n.For) if not any(nodes_of(loop.body, n.For))]
    for a in found:  # inside, lanes are combined with lanes
        assert any(s.name == a.name and not s.mask & n.VectorReduce.bit for loop in loops for s in nodes_of(loop, n.Store))
    return sorted(int(a.extents[0].value) for a in found)  # type: ignore[attr-defined]


def reduction(kind: str, t: hl.Type, width: int, extent: int) -> tuple[hl.Func, np.ndarray]:  # type: ignore[type-arg]
    """Rows of ROWS combined in vectors of `width`, and what NumPy has for them."""
    f, r, image = hl.Func("f"), hl.RDom([(0, extent)]), hl.Buffer(ROWS.astype(np.int32))
    values = ROWS[:, :extent]
    value = hl.cast(t, image[r, y])
    start: dict[str, int] = {"+": 3, "*": 1, "min": 9, "max": -9}
    f[y] = hl.cast(t, start[kind])
    if kind == "+":
        f[y] += value
        expected = values.sum(1) + 3
    elif kind == "*":
        f[y] *= hl.select(image[r, y] == 7, hl.cast(t, 3), hl.cast(t, 1))
        expected = 3 ** (values == 7).sum(1)
    else:
        f[y] = (hl.min if kind == "min" else hl.max)(f[y], value)
        expected = np.minimum(values.min(1), 9) if kind == "min" else np.maximum(values.max(1), -9)
    f.update().atomic().vectorize(r.x, width)
    return f, expected


@pytest.mark.parametrize("extent", [64 - 16, 61, 5])
@pytest.mark.parametrize(("kind", "t"), [("+", hl.Int(32)), ("+", hl.Int(16)), ("+", hl.UInt(64)), ("+", hl.Float(32)), ("*", hl.Float(64)),
                                         ("*", hl.UInt(8)), ("min", hl.Int(32)), ("max", hl.Int(8)), ("max", hl.Float(32))])
def test_values(kind: str, t: hl.Type, extent: int) -> None:
    f, expected = reduction(kind, t, 8, extent)
    got = np.array(f.realize([6]))
    np.testing.assert_array_equal(got, expected.astype(got.dtype))
    floats_with_an_order = t.is_float() and kind == "max"
    assert accumulators(f) == ([] if floats_with_an_order or extent == 5 else [8])


def test_an_empty_sum_keeps_the_sign_of_zero() -> None:
    f, k = hl.Func("f"), hl.Param(hl.Int(32), "k", 0)
    r = hl.RDom([(0, k)])
    f[y] = hl.f32(-0.0)
    f[y] += hl.f32(hl.Buffer(ROWS.astype(np.int32))[hl.clamp(r.x, 0, 60), y])
    f.update().atomic().vectorize(r.x, 8)
    assert accumulators(f) == [8]
    assert np.signbit(np.array(f.realize([6]))).all()


def test_several_rows_and_lanes_of_places() -> None:
    f, r, image = hl.Func("f"), hl.RDom([(0, 48)]), hl.Buffer(ROWS.astype(np.int32))
    f[y] = 0
    f[y] += image[r, y]
    f.bound(y, 0, 6).update().atomic().reorder(y, r.x).unroll(y).vectorize(r.x, 16)
    np.testing.assert_array_equal(np.array(f.realize([6])), ROWS[:, :48].sum(1))
    assert accumulators(f) == [16] * 6
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    g, r2 = hl.Func("g"), hl.RDom([(0, 48)])
    g[y] = 0
    g[y] += image[r2, y]
    g.bound(y, 0, 4).update().atomic().split(r2.x, ro, ri, 4).reorder(ri, y, ro).vectorize(y).vectorize(ri)
    np.testing.assert_array_equal(np.array(g.realize([4])), ROWS[:4, :48].sum(1))
    assert accumulators(g) == [16]


def test_parallel_loops_add_their_sums_atomically() -> None:
    f, r, image = hl.Func("f"), hl.RDom([(0, 48), (0, 6)]), hl.Buffer(ROWS.astype(np.int32))
    f[()] = 0
    f[()] += image[r.x, r.y]
    f.update().atomic().vectorize(r.x, 8).parallel(r.y)
    assert np.array(f.realize([])) == ROWS[:, :48].sum()


def other_index(f: hl.Func, r: hl.RDom, image: hl.Buffer) -> None:
    f[r.x // 8] += image[r.x, 0]


def read_of_another_place(f: hl.Func, r: hl.RDom, image: hl.Buffer) -> None:
    f[0] += image[r.x, 0] * f[1]


@pytest.mark.parametrize("define", [other_index, read_of_another_place])
def test_loops_of_other_forms_are_left_alone(define: Callable[[hl.Func, hl.RDom, hl.Buffer], None]) -> None:
    f, r = hl.Func("f"), hl.RDom([(0, 48)])
    f[y] = y
    define(f, r, hl.Buffer(ROWS.astype(np.int32)))
    f.update().atomic(True).vectorize(r.x, 8)
    assert accumulators(f) == []


def test_strict_floats_keep_their_order() -> None:
    f, _ = reduction("+", hl.Float(32), 8, 48)
    assert accumulators(f, "host-strict_float") == [] and accumulators(f) == [8]
