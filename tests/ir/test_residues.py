"""Remainders that are numbers are found through the lets that define an index."""

from __future__ import annotations

from pathlib import Path

import pytest

import halide_py as hl
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.simplify import simplify
from halide_py.ir.types import INT32

p, q, t, u = (n.Variable(INT32, name) for name in "pqtu")


def times(e: n.Expr, k: int) -> n.Expr:
    return n.Mul(e, b.i32(k))


@pytest.mark.parametrize("of_t, of_u, m, wanted", [
    (n.Add(times(p, 6), b.i32(1)), n.Add(t, times(q, 4)), 2, 1),
    (n.Add(times(p, 6), b.i32(1)), n.Add(times(t, 2), times(q, 4)), 4, 2),
    (n.Min(times(p, 4), times(q, 8)), n.Sub(t, b.i32(3)), 4, 1),
    (n.Select(n.LT(p, q), times(p, 4), n.Add(times(q, 4), b.i32(2))), t, 2, 0),
    (n.Select(n.LT(p, q), times(p, 4), n.Add(times(q, 4), b.i32(2))), t, 4, None),
    (n.Mod(n.Add(times(p, 4), b.i32(7)), b.i32(8)), t, 4, 3),
    (n.Mod(n.Add(times(p, 4), b.i32(7)), b.i32(6)), t, 4, None),
    (times(p, 4), n.Add(t, q), 4, None),
])
def test_through_lets(of_t: n.Expr, of_u: n.Expr, m: int, wanted: int | None) -> None:
    store = n.Store("f", n.Mod(u, b.i32(m)), n.Add(t, u), b.TRUE)
    s = simplify(n.LetStmt("t", of_t, n.LetStmt("u", of_u, store)))
    while isinstance(s, n.LetStmt):
        s = s.body
    assert isinstance(s, n.Store) and b.as_int(s.value) == wanted


@pytest.mark.parametrize("shift", [0, 1])
def test_aligned_bounds_choose_between_the_unrolled_copies(shift: int, tmp_path: Path) -> None:
    x, f, g, h = hl.Var("x"), hl.Func("f"), hl.Func("g"), hl.Func("h")
    f[x] = 3
    g[x] = hl.select(x % 2 == 0, f[x + 1], f[x - 1] + 8)
    h[x] = g[x - 1] + g[x + 2]
    f.compute_root()
    g.compute_root().align_bounds(x, 2, shift).unroll(x, 2)
    for out in (g, h):
        out.compile_to_lowered_stmt(str(tmp_path / "stmt"), [])
        assert "select" not in (tmp_path / "stmt").read_text()
    assert list(h.realize([4])) == [14, 14, 14, 14]
