"""Tail strategies: the same values by each, what each reads and writes beyond the loop, and what may not be combined."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interpreted import interpreted  # noqa: E402

import halide_py as hl  # noqa: E402

x, y, xo, xi, xoo, xoi = (hl.Var(n) for n in ("x", "y", "xo", "xi", "xoo", "xoi"))
TS = hl.TailStrategy
TAILS = [TS.GuardWithIf, TS.RoundUp, TS.Predicate, TS.PredicateLoads, TS.PredicateStores, TS.ShiftInwards, TS.ShiftInwardsAndBlend, TS.RoundUpAndBlend]
SOURCE = np.random.default_rng(1).integers(0, 99, (3, 70)).astype(np.int32)


def double_update(im: hl.ImageParam, update: bool) -> tuple[hl.Func, np.ndarray]:
    f = hl.Func("tails")
    f[x, y] = im[x, y] + 1
    want = SOURCE + 1
    if update:
        f[x, y] = f[x, y] * 3 + im[x, y]
        want = want * 3 + SOURCE
    return f, want


@pytest.mark.parametrize("update", [False, True], ids=["pure", "update"])
def test_values_of_an_inner_func(update: bool) -> None:
    """Every strategy, alone and split again by another, vectorized, read by a Func that wants 21 of it."""
    image = hl.Buffer(SOURCE)
    outs, wants = [], []
    for outer, inner in [*((t, None) for t in TAILS), *((t, TAILS[(3 * i + 1) % 8]) for i, t in enumerate(TAILS))]:
        f, want = double_update(image, update)
        s = f.update() if update else f
        try:
            s.split(x, xo, xi, 8, outer)
            if inner is not None:
                s.split(xo, xoo, xoi, 2, inner)
        except hl.CompileError as e:
            assert "PredicateLoads" in str(e) and "moved inwards" in str(e) or "ShiftInwards is not a legal" in str(e)
            continue
        s.vectorize(xi)
        f.compute_root()
        out = hl.Func()
        out[x, y] = f[x + 17, y]
        outs.append(out)
        wants.append(want[:, 17:38])
    for got, want in zip(hl.Pipeline(outs).realize([21, 3]), wants):
        np.testing.assert_array_equal(np.array(got), want)


READS = {TS.GuardWithIf: 21, TS.Predicate: 21, TS.PredicateLoads: 24, TS.RoundUp: 24, TS.PredicateStores: 24, TS.RoundUpAndBlend: 24, TS.ShiftInwardsAndBlend: 21}


@pytest.mark.parametrize("tail", READS, ids=lambda t: t.name)
def test_what_is_read_and_written_of_buffers(tail: hl.TailStrategy) -> None:
    im = hl.ImageParam(hl.Int(32), 2)
    f, want = double_update(im, True)
    f.update().vectorize(x, 8, tail)
    size = hl.Buffer.make_bounds_query(hl.Int(32), [21, 3])
    f.infer_input_bounds(size)
    writes = {TS.RoundUp: 24, TS.PredicateLoads: 24, TS.RoundUpAndBlend: 24, TS.PredicateStores: 24}.get(tail, 21)  # PredicateStores reads f itself there
    assert (im.get().width(), size.width()) == (READS[tail], writes)
    im.set(hl.Buffer(np.ascontiguousarray(SOURCE[:, :im.get().width()])))
    out = np.full((3, writes), -1, np.int32)
    f.realize(hl.Buffer(out))
    np.testing.assert_array_equal(out[:, :21], want[:, :21])


def test_blends_keep_what_is_beyond_an_update_of_a_part() -> None:
    """Rows 0 to 20 of 40 are updated in blocks of 8; the others keep their values."""
    for tail in (TS.RoundUpAndBlend, TS.ShiftInwardsAndBlend, TS.PredicateStores):
        f, r = hl.Func(), hl.RDom([(0, 3)])
        f[x, y] = x
        f[x, r] += 100
        g, h = hl.Func(), hl.Func()
        g[x, y] = f[x, y]
        h[x, y] = g[x, y] + f[x + 20, y]
        f.compute_root()
        f.in_(g)
        f.update().vectorize(x, 16, tail)
        assert np.array(h.realize([21, 4]))[:, 5].tolist() == [230, 230, 230, 30]


def test_steady_state_is_free_of_masks(tmp_path: Path) -> None:
    for tail in (TS.Predicate, TS.PredicateStores, TS.PredicateLoads, TS.RoundUpAndBlend, TS.ShiftInwardsAndBlend):
        f = hl.Func("steady")
        f[x] = x
        f[x] = f[x] * 5
        f.update().vectorize(x, 8, tail)
        f.compile_to_lowered_stmt(str(tmp_path / "stmt"), [])
        text = (tmp_path / "stmt").read_text()
        plain = [line for line in text.splitlines() if f"{f.name()}[ramp" in line and "*" in line and "select" not in line]
        assert plain and all("predicate" not in line for line in plain), tail


@pytest.mark.parametrize("program, words", [
    ("f.split(x, xo, xi, 8, TS.ShiftInwards).split(xo, xoo, xoi, 2, TS.PredicateLoads)", "moved inwards"),
    ("f.split(x, xo, xi, 8).split(xi, xoo, xoi, 3, TS.PredicateLoads)", "stems from the inner loop"),
    ("f.update().split(x, xo, xi, 8).split(xi, xoo, xoi, 3, TS.RoundUp)", "RoundUp for splitting xi, which stems from the inner"),
    ("f.update().split(x, xo, xi, 8, TS.ShiftInwards)", "not a legal tail strategy for update"),
    ("f.update().split(r, hl.RVar('a'), hl.RVar('b'), 2, TS.PredicateStores)", "must be GuardWithIf, Predicate, or Auto"),
    ("f.update().split(x, xo, xi, 8, TS.RoundUpAndBlend).parallel(xo)", "RoundUpAndBlend: this could cause a race"),
    ("f.update().parallel(x).split(x, xo, xi, 8, TS.ShiftInwardsAndBlend)", "because xo|because x"),
    ("f.update().split(x, xo, xi, 8, TS.ShiftInwardsAndBlend).vectorize(xo, 2)", "race condition"),
])
def test_refused(program: str, words: str) -> None:
    f, r = hl.Func(), hl.RDom([(0, 4)])
    f[x, y] = x
    f[x, y] += r
    with pytest.raises(hl.CompileError, match=words):
        eval(program, {**globals(), "f": f, "r": r})


@pytest.mark.parametrize(("index", "first", "last"), [(lambda i: i // 2 * 2 + 1, 1, 99), (lambda i: (i - 3) // 4, -1, 24), (lambda i: 5 - i // 8, -7, 5)])
def test_what_a_guarded_loop_reads_at_quotients(index: Callable[[hl.Var], hl.Expr], first: int, last: int) -> None:
    """The guard is on 32*xo + xi; the index is simplified to 16*xo + xi/2."""
    im, f = hl.ImageParam(hl.Int(32), 1), hl.Func()
    f[x] = im[index(x)]
    f.split(x, xo, xi, 32, TS.GuardWithIf).vectorize(xi)
    f.infer_input_bounds([100])
    assert (im.get().dim(0).min(), im.get().dim(0).max()) == (first, last)


def test_rows_of_a_fused_loop_that_are_computed_beyond_the_first() -> None:
    """The inner of two splits moves its last block before the first element: the row above is computed, so it must be read and stored too."""
    im, f, g, t = hl.ImageParam(hl.Int(32), 2), hl.Func(), hl.Func(), hl.Var("t")
    f[x, y] = im[x, y]
    g[x, y] = f[x, y]
    f.compute_root().fuse(x, y, t).split(t, xo, xi, 2, TS.ShiftInwards).split(xi, xoo, xoi, 3, TS.ShiftInwards)
    g.infer_input_bounds([5, 4])
    assert im.get().dim(1).min() <= -1


@pytest.mark.parametrize("tail", [TS.RoundUp, TS.ShiftInwards], ids=lambda t: t.name)
@pytest.mark.parametrize("at", ["root", "loop"])
def test_what_nobody_asks_for_asks_nothing_of_others(tail: hl.TailStrategy, at: str) -> None:
    """What a tail computes beyond the region asked for reads whatever is in memory: inputs are read as far as the result needs, as in Halide."""
    im, f, g, out = hl.ImageParam(hl.UInt(8), 1), hl.Func("f"), hl.Func("g"), hl.Func("out")
    g[x] = im[x] + hl.u8(1)
    f[x] = g[x] * hl.u8(2)
    out[x] = hl.i32(f[x]) + hl.i32(f[x + 1])
    if at == "loop":
        out.split(x, xo, xi, 5)
    f.vectorize(x, 32, tail)
    for h in (f, g):
        h.compute_root() if at == "root" else h.compute_at(out, xo)
    out.infer_input_bounds([10])
    assert (im.get().dim(0).min(), im.get().dim(0).extent()) == (0, 11)
    data = np.arange(11, dtype=np.uint8)
    im.set(hl.Buffer(data))
    want = (data.astype(np.int32) + 1) * 2
    np.testing.assert_array_equal(np.array(out.realize([10])), want[:-1] + want[1:])
    np.testing.assert_array_equal(interpreted(out, (10,)), want[:-1] + want[1:])  # which stays inside allocations


@pytest.mark.parametrize("clamped", [False, True])
def test_values_that_limit_an_index_are_computed_for_tails_too(clamped: bool) -> None:
    """An index from memory is believed to be in range because its Func computes it so; where the use clamps it, it may be anything."""
    im, g, f, out = hl.ImageParam(hl.Int(32), 1), hl.Func("g"), hl.Func("f"), hl.Func("out")
    table = hl.Buffer(np.arange(8, dtype=np.int32) ** 2)
    g[x] = hl.clamp(im[x], 0, 7)
    f[x] = table[hl.clamp(g[x], 0, 7) if clamped else g[x]]
    out[x] = f[x]
    g.compute_root()
    f.compute_root().vectorize(x, 32, TS.RoundUp)
    out.infer_input_bounds([10])
    assert im.get().dim(0).extent() == (32 if not clamped else 10)
    im.set(hl.Buffer(np.arange(32, dtype=np.int32) - 5))
    np.testing.assert_array_equal(np.array(out.realize([10])), np.clip(np.arange(10) - 5, 0, 7) ** 2)


def test_tasks_of_a_loop_fused_from_a_fused_one() -> None:
    """What a shifted block reaches beyond goes on to the loops fused first, whose values stay inside those they depend on."""
    x, y, c, t, ct, yct = hl.vars("x y c t ct yct")
    data = np.arange(4 * 6 * 7 * 8, dtype=np.int32).reshape(4, 6, 7, 8)
    f, g = hl.Func("f"), hl.Func("g")
    f[x, y, c, t] = hl.Buffer(data)[x, y, c, t] + x
    g[x, y, c, t] = f[x, y, c, t] * 2
    f.compute_root().fuse(c, t, ct).fuse(y, ct, yct).parallel(yct, 4)
    assert (np.array(g.realize([8, 7, 6, 4])) == 2 * (data + np.arange(8))).all()


@pytest.mark.parametrize("inner", [TS.ShiftInwards, TS.ShiftInwardsAndBlend], ids=lambda t: t.name)
@pytest.mark.parametrize("outer", [TS.RoundUp, TS.GuardWithIf, TS.ShiftInwards, TS.Auto], ids=lambda t: t.name)
def test_several_vectors_in_an_iteration_are_moved_each_when_it_has_to_be(inner: hl.TailStrategy, outer: hl.TailStrategy) -> None:
    """The last iteration of three has vectors that end inside and vectors that do not."""
    for size in (4, 5, 8, 10, 13, 14):
        f, g = hl.Func("f"), hl.Func("g")
        f[x] = x + 1
        g[x] = f[x]
        f.compute_root().split(x, xo, xi, 4, inner).vectorize(xi).unroll(xo, 3, outer)
        np.testing.assert_array_equal(np.array(g.realize([size])), np.arange(size) + 1)


def test_lane_by_lane_inside_lanes() -> None:
    """Two vectorized loops, both with tails that run lane by lane: each binds the lets those need again, by names of its own."""
    f, g, r = hl.Func("f"), hl.Func("g"), hl.RDom([(-1, 3), (-1, 3)])
    a, b, c, d, e, i, j, k, p, q = (hl.Var(name) for name in "abcdeijkpq")
    f[x, y] = 0
    f[x, y] += x + r.x + 3 * (y + r.y)
    g[x, y] = f[x, y]
    guarded, predicated, shifted = hl.TailStrategy.GuardWithIf, hl.TailStrategy.Predicate, hl.TailStrategy.ShiftInwards
    f.split(y, a, b, 2, guarded).split(x, c, d, 5, predicated).fuse(b, c, e).split(e, i, j, 8, shifted)
    f.fuse(j, a, k).split(i, p, q, 5, shifted).vectorize(k).vectorize(q).update().unscheduled()
    g.split(x, xo, xi, 5)
    wide, high = 31, 23
    at_y, at_x = np.mgrid[0:high, 0:wide]
    np.testing.assert_array_equal(np.array(g.realize([wide, high])), 9 * at_x + 27 * at_y)


@pytest.mark.parametrize("outer,inner", [(TS.RoundUp, TS.RoundUp), (TS.GuardWithIf, TS.ShiftInwards)], ids=str)
def test_a_split_wider_than_the_loop_that_is_fused_away(outer: hl.TailStrategy, inner: hl.TailStrategy) -> None:
    """What the loop of one iteration was is no value of any loop then, but the region follows from it."""
    f, out = hl.Func("short"), hl.Func("short_out")
    f[x, y] = x + 10 * y
    out[x, y] = f[x, y] + 1
    f.compute_root().split(x, xo, xi, 3, outer).split(xi, xoo, xoi, 4, inner).fuse(xoo, xo, xo)
    assert np.array_equal(np.array(out.realize([7, 3])), np.add.outer(10 * np.arange(3), np.arange(7)) + 1)
