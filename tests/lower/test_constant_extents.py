"""Loops to vectorize or unroll whose extent is a constant only at a second look: by the lets around it, or as a limit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import VECTOR, add, loop, store, sub, var  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.lower.constant_extents import LARGEST, constant_extents  # noqa: E402

x, y, xo, xi = (hl.Var(name) for name in ("x", "y", "xo", "xi"))


def test_lets_around_cancel() -> None:
    """What is exact needs no guard; what is a limit has one; what is neither stays."""

    def after(high: n.Expr) -> n.For:
        s = constant_extents(n.LetStmt("high", high, loop("i", sub(add("high", 1), "low"), store("a", "i", 1), VECTOR, low=var("low"))))
        assert isinstance(s, n.LetStmt) and isinstance(s.body, n.For)
        return s.body

    exact, limited = after(add("low", 7)), after(n.Min(add("low", 7), var("end")))
    assert b.as_int(exact.extent) == b.as_int(limited.extent) == 8
    assert isinstance(exact.body, n.Store) and isinstance(limited.body, n.IfThenElse)
    for unknown in (var("end"), n.Min(add("low", LARGEST), var("end"))):
        assert b.as_int(after(unknown).extent) is None


@pytest.mark.parametrize("tail", [hl.TailStrategy.GuardWithIf, hl.TailStrategy.ShiftInwards], ids=lambda t: t.name)
def test_whole_loops_over_what_a_tile_needs(tail: hl.TailStrategy) -> None:
    """A condition that limits what is read, and the tail of the consumer's split, leave the width of a tile as a limit of the loop."""
    f, g = hl.Func("f"), hl.Func("g")
    f[x, y] = x * 3 + y
    g[x, y] = hl.select(x < 8, 0, f[x, y] + f[x + 1, y])
    g.split(x, xo, xi, 8, tail)
    f.compute_at(g, xo).vectorize(x).unroll(y)
    at_y, at_x = np.mgrid[0:3, 0:21]
    np.testing.assert_array_equal(np.array(g.realize([21, 3])), np.where(at_x < 8, 0, 6 * at_x + 3 + 2 * at_y))


def test_a_vector_over_as_many_as_a_parameter_says() -> None:
    p = hl.Param(hl.Int(32), "p")
    r, f = hl.RDom([(0, hl.min(p, 4))]), hl.Func("f")
    f[x] = 0
    f[r] = r * 2 + 1
    f.update().vectorize(r)
    for count in (0, 3, 9):
        p.set(count)
        assert [f.realize([6])[i] for i in range(6)] == [i * 2 + 1 if i < min(count, 4) else 0 for i in range(6)]


@pytest.mark.parametrize("whole", ["vectorize", "unroll"])
def test_the_condition_of_a_specialization_says_how_many(whole: str) -> None:
    """Of a Func between, whose region is the union of what two outputs need."""
    c, planes, first, second = hl.Var("c"), hl.Func("planes"), hl.Func("first"), hl.Func("second")
    planes[x, y, c] = x + 3 * y + 7 * c
    first[x, y, c] = planes[x, y, c] + 1
    second[x, y, c] = planes[x, y, c] * 2
    channels = [f.output_buffer().dim(2) for f in (first, second)]
    three = [(d.min() == 0) & (d.extent() == 3) for d in channels]
    getattr(planes.compute_root().specialize(three[0] & three[1]), whole)(c)
    for count in (3, 5):
        i, j, k = np.indices((count, 4, 6))
        want = 7 * i + 3 * j + k
        one, other = hl.Pipeline([first, second]).realize([6, 4, count])
        assert (np.array(one) == want + 1).all() and (np.array(other) == want * 2).all()


@pytest.mark.parametrize("whole", ["vectorize", "unroll"])
def test_registers_for_what_a_guarded_tile_needs(whole: str) -> None:
    """The tail needs less than a tile: the tile is the limit."""
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = x
    g[x] = f[x] * 2
    g.vectorize(x, 8, hl.TailStrategy.GuardWithIf)
    getattr(f.compute_at(g, x).store_in(hl.MemoryType.Register), whole)(x)
    assert (np.array(g.realize([37])) == np.arange(37) * 2).all()
