"""Directives on storage change where values are kept, never the values: what they ask for is what is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.lower.pipeline import lower

x, y, xi, yi = hl.Var("x"), hl.Var("y"), hl.Var("xi"), hl.Var("yi")
Schedule = Callable[[hl.Func, hl.Func], object]
Y, X = np.mgrid[0:12, 0:16]
WANTED = sum(u + 7 * v for u, v in ((X, Y - 1), (X, Y + 1), (X + 1, Y)))


def pipeline(schedule: Schedule) -> tuple[hl.Func, hl.Func]:
    f, g = hl.Func("f"), hl.Func("g")
    f[x, y] = x + 7 * y
    g[x, y] = f[x, y - 1] + f[x, y + 1] + f[x + 1, y]
    g.bound(x, 0, 16).bound(y, 0, 12)
    schedule(f, g)
    return f, g


def allocations(s: n.Stmt, loops: int = 0) -> Iterator[tuple[int, list[int | None]]]:
    """(number of loops around, extents, densest first) of each allocation."""
    for child in (c for c in s.children() if isinstance(c, n.Stmt)):
        yield from allocations(child, loops + isinstance(s, n.For))
    if isinstance(s, n.Allocate):
        yield loops, [b.as_int(e) for e in s.extents]


# schedule, loops around the allocation, its extents
KEPT: dict[str, tuple[Schedule, int, list[int]]] = {
    "at y": (lambda f, g: f.compute_at(g, y), 1, [17, 3]),
    "hoisted to the root": (lambda f, g: f.compute_at(g, y).hoist_storage_root(), 0, [17, 3]),
    "hoisted to a loop": (lambda f, g: (g.tile(x, y, xi, yi, 8, 4), f.compute_at(g, xi).store_at(g, yi).hoist_storage(g, y)), 1, [2, 3]),
    "a hoisted LoopLevel set late": (lambda f, g: later(lambda level: f.compute_at(g, x).hoist_storage(level), hl.LoopLevel(g, y)), 1, [2, 3]),
    "a ring": (lambda f, g: f.compute_at(g, y).hoist_storage_root().ring_buffer(3), 0, [17, 3, 3]),
    "a ring over two loops": (lambda f, g: (g.tile(x, y, xi, yi, 8, 4), f.compute_at(g, x).hoist_storage_root().ring_buffer(2)), 0, [9, 6, 2]),
    "a ring of folded storage": (lambda f, g: (g.tile(x, y, xi, yi, 8, 4), f.store_at(g, x).compute_at(g, yi).hoist_storage_root().ring_buffer(2)),
                                 0, [9, 4, 2]),
    "reordered and aligned": (lambda f, g: f.compute_root().reorder_storage(y, x).align_storage(y, 16), 0, [16, 17]),
    "bounded": (lambda f, g: f.compute_at(g, x).bound_storage(x, 5).bound_storage(y, 4), 2, [5, 4]),
    "folded": (lambda f, g: f.compute_at(g, y).store_root().fold_storage(y, 3), 0, [17, 3]),
    "folded in both cases": (lambda f, g: (f.compute_at(g, y).store_root().fold_storage(y, 3), specialized(g)), 0, [17, 3]),
    "folded in both cases by itself": (lambda f, g: (f.compute_at(g, y).store_root(), specialized(g)), 0, [17, 4]),
}


def specialized(g: hl.Func) -> None:
    g.specialize(g.output_buffer().dim(1).stride() > 16).vectorize(x, 4)


def later(use: Callable[[hl.LoopLevel], object], place: hl.LoopLevel) -> None:
    level = hl.LoopLevel()
    use(level)
    level.set(place)


@pytest.mark.parametrize("name", KEPT)
def test_is_allocated_as_asked(name: str) -> None:
    schedule, loops, extents = KEPT[name]
    _, g = pipeline(schedule)
    assert list(allocations(lower([g.function], (), "g", Target.host()).body)) == [(loops, extents)]
    np.testing.assert_array_equal(np.array(g.realize([16, 12])), WANTED)


def test_hoisting_takes_the_largest_of_all_iterations() -> None:
    """The region of f grows with y: one allocation must serve them all."""
    f, g, r = hl.Func("f"), hl.Func("g"), hl.RDom([(0, 12)])
    f[x] = x * x
    g[x, y] = 0
    g[x, y] += hl.select(r < y, f[x + hl.clamp(r, 0, y)], 0)
    f.compute_at(g, y).hoist_storage_root()
    wanted = sum(np.where(k < Y, (X + k) ** 2, 0) for k in range(12))
    np.testing.assert_array_equal(np.array(g.realize([16, 12])), wanted)


@pytest.mark.parametrize("kind", [hl.MemoryType.Auto, hl.MemoryType.Heap, hl.MemoryType.Stack, hl.MemoryType.Register])
def test_memory_types(kind: hl.MemoryType) -> None:
    _, g = pipeline(lambda f, g: f.compute_at(g, x).store_in(kind))
    np.testing.assert_array_equal(np.array(g.realize([16, 12])), WANTED)
    g.compile_to_c("/dev/null", [], "g")


REFUSED: dict[str, tuple[Schedule, list[str]]] = {
    "hoisted out of a parallel loop": (lambda f, g: (g.parallel(y), f.compute_at(g, x).hoist_storage_root()), ["f", "hoisted", "(g", "race", "Legal"]),
    "hoisted inside its storage": (lambda f, g: f.compute_at(g, x).store_root().hoist_storage(g, y), ["hoist_storage", "outside of store_at"]),
    "hoisted but inlined": (lambda f, g: f.hoist_storage(g, y), ["hoist_storage", "inline", "compute_at()"]),
    "a ring that is not hoisted": (lambda f, g: f.compute_at(g, y).ring_buffer(2), ["ring_buffer", "hoist_storage()"]),
    "registers without a bound": (lambda f, g: f.compute_at(g, y).store_in(hl.MemoryType.Register).bound_extent(x, hl.Param(hl.Int(32), "unknown", 40)),
                                  ["registers", "bound_extent"]),
    "memory of a device": (lambda f, g: f.compute_root().store_in(hl.MemoryType.VTCM), ["In schedule for f", "VTCM", "CPU"]),
    "no such dimension": (lambda f, g: f.compute_root().align_storage(xi, 8), ["In schedule for f", "xi", "align_storage", "(x, y)"]),
    "no instances": (lambda f, g: f.ring_buffer(0), ["'extent' of ring_buffer() is 0", "positive"]),
    "a bound that is too small": (lambda f, g: f.compute_root().bound_storage(x, 3), ["bound (3)", "dimension x of f", "(17)"]),
    "a fold that is too small": (lambda f, g: f.store_root().compute_at(g, y).fold_storage(y, 2), ["fold factor (2)", "dimension y of f", "(3)"]),
    "a fold without order": (lambda f, g: f.compute_root().fold_storage(y, 8), ["fold_storage(y", "serial loop"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name: str) -> None:
    schedule, words = REFUSED[name]
    with pytest.raises(hl.HalideError) as caught:
        _, g = pipeline(schedule)
        g.realize([16, 12])
    assert all(w in str(caught.value) for w in words), str(caught.value)


@pytest.mark.parametrize("relied_on", [False, True])
def test_what_bound_extent_adds_asks_for_nothing_further_out(relied_on: bool) -> None:
    """The last of three tiles has 16 columns of 24: its excess reads what is in the packed panel's memory, unless that says where to look."""
    n, k = 64, hl.RDom([(0, 8)])
    a = np.random.default_rng(3).integers(0, n, (8, n)).astype(np.int32)
    right, panel, product, out = hl.Buffer(a), hl.Func("panel"), hl.Func("product"), hl.Func("out")
    table = hl.Buffer(np.arange(n, dtype=np.int32) * 3)
    panel[x, y] = hl.clamp(right[x, y], 0, n - 1)
    product[x] += table[panel[x, k]] if relied_on else panel[x, k] * 3
    out[x] = product[x]
    xo, xm, xi = hl.vars("xo xm xi")
    out.bound(x, 0, n).split(x, xo, xi, 24, hl.TailStrategy.GuardWithIf).split(xi, xm, xi, 24)
    product.compute_at(out, xm).bound_extent(x, 24).vectorize(x, 8)
    product.update().vectorize(x, 8)
    panel.compute_at(out, xo)
    if relied_on:
        with pytest.raises(hl.PipelineError, match="which is beyond the max"):
            out.realize([n])
    else:
        np.testing.assert_array_equal(np.array(out.realize([n])), a.sum(axis=0) * 3)


@pytest.mark.parametrize("vector", [0, 8])
def test_bound_extent_is_of_each_realization(vector: int) -> None:
    """Per tile, not of all tiles together: a product of matrices in tiles of registers."""
    n = 48
    a, b = (np.random.default_rng(k).integers(0, 9, (n, n)).astype(np.int32) for k in (1, 2))
    left, right = hl.Buffer(a), hl.Buffer(b)
    k, product, out = hl.RDom([(0, n)]), hl.Func("product"), hl.Func("out")
    xo, yo, xi, yi = hl.vars("xo yo xi yi")
    product[x, y] += left[k, y] * right[x, k]
    out[x, y] = product[x, y]
    out.bound(x, 0, n).bound(y, 0, n).tile(x, y, xo, yo, xi, yi, 24, 4).reorder(xi, yi, yo, xo)
    product.compute_at(out, yo).bound_extent(x, 24).bound_extent(y, 4)
    product.update().unscheduled()
    if vector:
        product.vectorize(x, vector)
        product.update().reorder(x, y, k).vectorize(x, vector)
    np.testing.assert_array_equal(np.array(out.realize([n, n])), a @ b)
    product.bound_extent(x, 20)
    with pytest.raises(hl.PipelineError, match=r"Bounds given for product.* in x \(from 0 to 19\) do not cover required region \(from 0 to 23\)"):
        out.realize([n, n])


def test_all_tiles_of_bound_extent_find_indices_where_they_look() -> None:
    """Each of 128 tiles computes 1024 places, the last of them from 1016 on: all have an index that the image has."""
    image = hl.Buffer(np.arange(1024).astype(np.uint8))
    places, looked_up, out = hl.Func("places"), hl.Func("looked_up"), hl.Func("out")
    places[x] = hl.clamp(12345234 // x, 0, 1023) - 1234567890
    looked_up[x] = image[places[x] + 1234567890]
    out[x] = looked_up[x]
    places.compute_root()
    out.vectorize(x, 8, hl.TailStrategy.GuardWithIf)
    looked_up.compute_at(out, x).bound_extent(x, 1024)
    np.testing.assert_array_equal(np.array(out.realize([1024])), [0] + [min(12345234 // k, 1023) % 256 for k in range(1, 1024)])
