"""Accumulators: reductions add up in registers, and nothing about the result changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y, k = hl.Var("x"), hl.Var("y"), hl.Var("k")
xo, xi, yo, yi, v = (hl.Var(n) for n in ("xo", "xi", "yo", "yi", "v"))
GUARD = hl.TailStrategy.GuardWithIf
rng = np.random.default_rng(5)


def c_text(f: hl.Func, path: Path) -> str:
    f.compile_to_c(str(path / "f.c"), hl.Pipeline([f]).infer_arguments(), "f")
    return (path / "f.c").read_text()


def product(terms: int, factor: tuple[int, int]) -> tuple[hl.Func, np.ndarray[Any, Any]]:
    """A matrix product in tiles of `factor` vectors by rows, at root behind a copy."""
    a, b = rng.integers(-8, 8, (40, terms)), rng.integers(-8, 8, (terms, 70))
    left, right, r = hl.Buffer(a.astype(np.float32)), hl.Buffer(b.astype(np.float32)), hl.RDom([(0, terms)])
    f = hl.Func("f")
    f[x, y] = 1.0
    f[x, y] += left[r.x, y] * right[x, r.x]
    f.compute_root()
    u = f.update().split(x, xo, xi, 8 * factor[0], GUARD).split(xi, xi, v, 8).split(y, yo, yi, factor[1], GUARD)
    u.reorder([v, xi, yi, r.x, xo, yo]).vectorize(v).unroll(xi).unroll(yi)
    g = hl.Func("g")
    g[x, y] = f[x, y]
    return g, 1.0 + a @ b


@pytest.mark.parametrize("terms", [2, 9])
@pytest.mark.parametrize("factor", [(1, 1), (2, 3), (3, 4)])
def test_tiles_and_their_remainders(terms: int, factor: tuple[int, int], tmp_path: Path) -> None:
    g, expected = product(terms, factor)
    assert "sum0" in c_text(g, tmp_path)
    for height, width in ((40, 70), (1, 1), (5, 33), (4, 48), (7, 64)):
        np.testing.assert_array_equal(np.array(g.realize([width, height])), expected[:height, :width])


def test_a_domain_may_be_empty() -> None:
    count = hl.Param(hl.Int(32), "count", 0)
    r = hl.RDom([(0, count)])
    f = hl.Func("f")
    f[x] = 1.0
    f[x] += hl.f32(r.x)
    f.compute_root()
    f.update().reorder([x, r.x]).split(x, xo, xi, 8, GUARD).reorder([xi, r.x, xo]).vectorize(xi)
    for n in (0, -3, 4):
        count.set(n)
        np.testing.assert_array_equal(np.array(f.realize([11])), np.full(11, 1 + sum(range(n))))


def test_predicates_of_terms_and_places(tmp_path: Path) -> None:
    """A predicate of both is kept in the loops; places whose terms are all left out keep what they are."""
    r = hl.RDom([(0, 6), (0, 5)])
    r.where(r.x + r.y < x)
    r.where(y != 2)
    f = hl.Func("f")
    f[x, y] = hl.f32(x - y)
    f[x, y] += hl.f32(r.x * 10 + r.y)
    f.compute_root()
    f.update().reorder([r.x, r.y, x, y])
    assert "sum0" in c_text(f, tmp_path)
    expected = [[i - j + sum(10 * p + q for p in range(6) for q in range(5) if p + q < i and j != 2) for i in range(9)] for j in range(4)]
    np.testing.assert_array_equal(np.array(f.realize([9, 4])), expected)


def test_values_of_tuples_stay_together(tmp_path: Path) -> None:
    """The place of the largest element: each value reads the other's old one."""
    data = rng.permutation(24).reshape(4, 6).astype(np.float32)
    image, r = hl.Buffer(data), hl.RDom([(0, 6)])
    f = hl.Func("f")
    f[y] = hl.Tuple([hl.f32(-1), hl.i32(-1)])
    larger = image[r.x, y] > f[y][0]
    f[y] = hl.Tuple([hl.select(larger, image[r.x, y], f[y][0]), hl.select(larger, r.x, f[y][1])])
    f.update().split(y, yo, yi, 4, GUARD).reorder([yi, r.x, yo]).vectorize(yi)
    assert "sum0" in c_text(f, tmp_path)
    values, places = f.realize([4])
    np.testing.assert_array_equal(np.array(values), data.max(1))
    np.testing.assert_array_equal(np.array(places), data.argmax(1))


def test_scans_stay_in_memory(tmp_path: Path) -> None:
    r = hl.RDom([(1, 9)])
    scan = hl.Func("scan")
    scan[x] = x
    scan[r.x] = scan[r.x] + scan[r.x - 1]
    assert "sum0" not in c_text(scan, tmp_path)
    np.testing.assert_array_equal(np.array(scan.realize([10])), np.cumsum(np.arange(10)))


def test_no_effect_is_seen_at_places_that_there_are_not() -> None:
    """A C function with effects in the value is called once for each place and term."""
    source = "static int n; int note(int v) { n++; return v; } int count(int v) { return n + 0 * v; }"
    note, count = (hl.extern(f"int {name}(int v)", source=source, pure=False) for name in ("note", "count"))
    r = hl.RDom([(0, 3)])
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = 0
    f[x] += note(x + r.x)
    f.compute_root()
    f.update().split(x, xo, xi, 4, GUARD).reorder([xi, r.x, xo]).unroll(xi)
    g[x] = f[x] * 1000 + count(f[0])
    g.bound(x, 0, 6)
    found = np.array(g.realize([6]))
    np.testing.assert_array_equal(found // 1000, [3 * i + 3 for i in range(6)])
    assert set(found % 1000) == {18}
