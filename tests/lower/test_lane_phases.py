"""Values that take turns along the lanes of a vector: each phase is a vector of its own, with the values of the loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower

x, y = hl.Var("x"), hl.Var("y")
IMAGE = np.random.default_rng(3).integers(-99, 99, (6, 80)).astype(np.int16)


def source() -> hl.Func:
    f = hl.Func("f")
    f[x, y] = hl.Buffer(IMAGE)[hl.clamp(x, 0, 79), hl.clamp(y, 0, 5)]
    return f.compute_root()


def of_two(f: hl.Func) -> hl.Expr:
    return hl.select(x % 2 == 0, f[x // 2, y], f[x // 2 + 1, y] * 2)


def of_three(f: hl.Func) -> hl.Expr:
    return hl.select((x + 1) % 3 == 0, f[x // 3, y], (x + 1) % 3 == 1, f[x, y], hl.cast(hl.Int(16), x % 3) * f[x + 3, y])


def mosaic(f: hl.Func) -> hl.Expr:
    return hl.select((x % 2 == 0) ^ (y % 2 == 0), f[x // 2, y // 2], hl.select(f[x, y] > 0, f[x - 1, y], f[x + 1, y]))


def of_two_backwards(f: hl.Func) -> hl.Expr:
    return hl.select((40 - x) % 2 == 1, f[40 - x, y], f[x, y] + hl.cast(hl.Int(16), (7 * x) % 4))


VALUES: list[Callable[[hl.Func], hl.Expr]] = [of_two, of_three, mosaic, of_two_backwards]


def turns(value: Callable[[hl.Func], hl.Expr], lanes: int, rows: int = 1) -> hl.Func:
    g = hl.Func("g")
    g[x, y] = value(source())
    if lanes > 1:
        g.vectorize(x, lanes, hl.TailStrategy.GuardWithIf)
    if rows > 1:
        g.vectorize(y, rows, hl.TailStrategy.RoundUp) if lanes == 1 else g.unroll(y, rows, hl.TailStrategy.RoundUp)
    return g


@pytest.mark.parametrize("lanes, rows", [(12, 1), (24, 2), (8, 1), (1, 6)])
@pytest.mark.parametrize("value", VALUES)
def test_values_stay(value: Callable[[hl.Func], hl.Expr], lanes: int, rows: int) -> None:
    wanted = np.array(turns(value, 1).realize([61, 6]))
    np.testing.assert_array_equal(np.array(turns(value, lanes, rows).realize([61, 6])), wanted)


def test_no_remainder_is_left_and_each_phase_reads_its_own() -> None:
    g, h = turns(of_two, 1), hl.Func("h")
    h[x, y] = g[x, y]
    h.bound(x, 0, 64).vectorize(x, 16)
    g.compute_at(h, y).vectorize(x, 16)
    body = lower([h.function], h.pipeline()._arguments(), "h", Target.host()).body
    stores = [s for s in nodes_of(body, n.Store) if s.name.startswith("g") and s.value.type.lanes() > 1]
    assert len(stores) == 2 and all(s.value.type.lanes() == 8 for s in stores)
    assert [sum(1 for _ in nodes_of(s.value, n.Load)) for s in stores] == [1, 1]
    assert not any(m.type.is_vector() for s in stores for m in nodes_of(s.value, (n.Mod, n.Select)))


def test_updates_that_read_what_they_write_are_left_alone() -> None:
    f = hl.Func("f")
    f[x] = x * 3
    f[x] = hl.select(x % 2 == 0, f[x] + 1, f[x] * 2)
    f.update().vectorize(x, 8)
    at = np.arange(32)
    np.testing.assert_array_equal(np.array(f.realize([32])), np.where(at % 2 == 0, at * 3 + 1, at * 6))
    body = lower([f.function], f.pipeline()._arguments(), "f", Target.host()).body
    assert any(s.value.type.lanes() == 8 and s.value.mask & n.Select.bit for s in nodes_of(body, n.Store))
