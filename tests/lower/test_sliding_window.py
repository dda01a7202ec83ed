"""Sliding windows fill in iterations before the first, so that each computes what is new in it: storage as small as it can be, and the same values."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from interpreted import interpreted

import halide_py as hl
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.printer import to_text
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.ir.types import INT32
from halide_py.lower.movement import latest
from halide_py.lower.pipeline import lower

x, y, xo, yo, xi, yi = (hl.Var(v) for v in ("x", "y", "xo", "yo", "xi", "yi"))
IMAGE = np.random.default_rng(5).integers(0, 100, (48, 16)).astype(np.int32)
SIZE = (8, 24)
Schedule = Callable[..., object]


def stored(out: hl.Func) -> dict[str, list[int | None]]:
    """Of each Func but the output: the constants among the sizes of its dimensions."""
    body = lower([out.function], out.pipeline()._arguments(), "out", Target.host()).body
    found = {}
    for a in nodes_of(body, n.Allocate):
        found.setdefault(a.name.partition("$")[0], [b.as_int(e) for e in a.extents])
    return found


def source() -> hl.Func:
    f = hl.Func("f")
    f[x, y] = hl.BoundaryConditions.repeat_edge(hl.Buffer(IMAGE))[x, y] * 3 + x
    return f


def stencil(name: str, f: hl.Func, *rows: int) -> hl.Func:
    g = hl.Func(name)
    g[x, y] = sum((f[x, y + r] * (r + 5) for r in rows[1:]), f[x, y + rows[0]])
    return g


def chain() -> list[hl.Func]:
    f = source()
    g = stencil("g", f, -1, 0, 1)
    return [f, g, stencil("out", g, -1, 0, 1)]


def long_chain() -> list[hl.Func]:
    f, g, last = chain()
    h = stencil("h", g, -2, 1)
    return [f, g, h, stencil("out", h, 0, 3)]


def two_readers() -> list[hl.Func]:
    f = source()
    g = stencil("g", f, -1, 1)
    out = hl.Func("out")
    out[x, y] = g[x, y - 1] + g[x, y + 1] * 2 + f[x, y] * 3
    return [f, g, out]


def downsampled() -> list[hl.Func]:
    f, g = source(), hl.Func("g")
    g[x, y] = f[x, 2 * y - 1] + f[x, 2 * y] * 2 + f[x, 2 * y + 2]
    return [f, g, stencil("out", g, -1, 0, 1)]


def upsampled() -> list[hl.Func]:
    f, g = source(), hl.Func("g")
    g[x, y] = f[x, y // 2] + f[x, y // 2 + 1] * (y % 2 + 1)
    return [f, g, stencil("out", g, -1, 0, 1)]


def there_and_back() -> list[hl.Func]:
    f, g, h = source(), hl.Func("g"), hl.Func("h")
    g[x, y] = f[x, 2 * y] + f[x, 2 * y + 1] * 2
    h[x, y] = g[x, y // 2] + g[x, y // 2 + 1] * 2 + f[x, y] * 3
    return [f, g, h, stencil("out", h, -1, 1)]


def upside_down() -> list[hl.Func]:
    f, g = source(), hl.Func("g")
    g[x, y] = f[x, -y] + f[x, 1 - y] * 2 + f[x, 3 - y]
    return [f, g, stencil("out", g, 0, 1, 2)]


def updated() -> list[hl.Func]:
    f, g, r = source(), hl.Func("g"), hl.RDom([(0, 3)])
    g[x, y] = x
    g[x, y] += f[x, y + r - 1] * (r + 1)
    return [f, g, stencil("out", g, -1, 0, 1)]


def summed_along_rows() -> list[hl.Func]:
    """Updates of whole rows, and of one element of each."""
    f, g, r = source(), hl.Func("g"), hl.RDom([(1, 6)])
    g[x, y] = f[x, y - 1] + f[x, y + 1]
    g[r, y] += g[r - 1, y] * 3
    g[2, y] = g[5, y] - f[3, y]
    return [f, g, stencil("out", g, -1, 0, 1)]


def clamped() -> list[hl.Func]:
    f, g, out = source(), hl.Func("g"), hl.Func("out")

    def row(e: hl.Expr) -> hl.Expr:
        return hl.clamp(e, 3, 17)

    g[x, y] = f[x, row(y - 1)] + f[x, row(y)] * 2 + f[x, row(y + 1)] * 3
    out[x, y] = g[x, row(y - 1)] + g[x, row(y)] * 2 + g[x, row(y + 2)] * 3
    return [f, g, out]


def skewed() -> list[hl.Func]:
    f, g, out = source(), hl.Func("g"), hl.Func("out")
    g[x, y] = f[x, y] + f[x + 1, y] * 2
    out[x, y] = g[x, y + x] + g[x, y + x + 1] * 2
    return [f, g, out]


def constant_rows() -> list[hl.Func]:
    f, out = source(), hl.Func("out")
    out[x, y] = f[x, 2] + f[x, 3] * y
    return [f, out]


def sliding(*fs: hl.Func) -> None:
    """All but the last along its rows."""
    for f in fs[:-1]:
        f.store_root().compute_at(fs[-1], y)


def strips(tail: hl.TailStrategy) -> Schedule:
    def schedule(*fs: hl.Func) -> None:
        fs[-1].split(y, yo, yi, 7, tail)
        for f in fs[:-1]:
            f.store_at(fs[-1], yo).compute_at(fs[-1], yi)
    return schedule


def in_pairs(*fs: hl.Func) -> None:
    fs[-1].split(y, yo, yi, 2).unroll(yi)
    for f in fs[:-1]:
        f.store_root().compute_at(fs[-1], yo)


def rounded(*fs: hl.Func) -> None:
    for f in fs[:-1]:
        f.store_root().compute_at(fs[-1], y).split(y, yo, yi, 4, hl.TailStrategy.RoundUp)


def along_both(*fs: hl.Func) -> None:
    for f in fs[:-1]:
        f.store_root().compute_at(fs[-1], x)


def tiles(*fs: hl.Func) -> None:
    fs[-1].tile(x, y, xo, yo, xi, yi, 5, 6, hl.TailStrategy.GuardWithIf).parallel(yo)
    for f in fs[:-1]:
        f.store_at(fs[-1], xo).compute_at(fs[-1], yi).vectorize(x, 4)


def one_after_the_other(*fs: hl.Func) -> None:
    sliding(*fs)
    for f in fs[:-1]:
        f.async_()


def only_the_first(*fs: hl.Func) -> None:
    fs[0].store_root().compute_at(fs[-1], y)
    for f in fs[1:-1]:
        f.compute_at(fs[-1], y)


def unrolled(*fs: hl.Func) -> None:
    sliding(*fs)
    fs[-1].bound(y, 0, SIZE[1]).unroll(y)


def inside_its_reader(*fs: hl.Func) -> None:
    f, g, out = fs
    g.compute_at(out, x)
    f.store_at(out, y).compute_at(g, y)


SCHEDULES: dict[str, Schedule] = {
    "rows": sliding, "strips that are guarded": strips(hl.TailStrategy.GuardWithIf), "strips moved inwards": strips(hl.TailStrategy.ShiftInwards),
    "pairs of rows": in_pairs, "blocks of rows": rounded, "along both": along_both, "tiles": tiles, "async": one_after_the_other,
    "only the first": only_the_first, "unrolled": unrolled, "inside its reader": inside_its_reader}
NOT_IN_ONE = (long_chain, two_readers, there_and_back, constant_rows)  # whose first Func is read in several places
SHAPES = [chain, long_chain, two_readers, downsampled, upsampled, there_and_back, upside_down, updated, summed_along_rows, clamped, skewed, constant_rows]


@functools.cache
def plain(make: Callable[[], list[hl.Func]]) -> np.ndarray:
    """The values without a schedule, dimension 0 first."""
    fs = make()
    for f in fs[:-1]:
        f.compute_root()
    return np.array(fs[-1].realize(list(SIZE))).T


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("make", SHAPES)
def test_values_stay(make: Callable[[], list[hl.Func]], schedule: str) -> None:
    if schedule == "inside its reader" and make in NOT_IN_ONE:
        return
    fs = make()
    SCHEDULES[schedule](*fs)
    values = np.array(fs[-1].realize(list(SIZE))).T if schedule == "async" else interpreted(fs[-1], SIZE)
    np.testing.assert_array_equal(values, plain(make))


@pytest.mark.parametrize("make, schedule, rows", [
    (chain, "rows", [4, 4]), (long_chain, "rows", [4, 4, 4]), (two_readers, "rows", [4, 4]), (downsampled, "rows", [4, 4]), (upsampled, "rows", [2, 4]),
    (there_and_back, "rows", [4, 2, 4]), (upside_down, "rows", [4, 4]), (updated, "rows", [4, 4]), (summed_along_rows, "rows", [4, 4]),
    (chain, "pairs of rows", [8, 4]),
    (chain, "strips that are guarded", [4, 4]), (chain, "strips moved inwards", [4, 4]), (chain, "tiles", [4, 4]), (chain, "only the first", [8, 3])])
def test_storage_is_as_small_as_that_of_halide(make: Callable[[], list[hl.Func]], schedule: str, rows: list[int]) -> None:
    fs = make()
    SCHEDULES[schedule](*fs)
    sizes = stored(fs[-1])
    assert [sizes[f.name().partition("$")[0]][1] for f in fs[:-1]] == rows


def test_an_explicit_fold_of_a_chain_fits() -> None:
    fs = long_chain()
    sliding(*fs)
    for f in fs[:-1]:
        f.fold_storage(y, 4)
    np.testing.assert_array_equal(np.array(fs[-1].realize(list(SIZE))).T, plain(long_chain))


@pytest.mark.parametrize("tail, rows", [(hl.TailStrategy.RoundUp, (-1, 13)), (hl.TailStrategy.ShiftInwards, (-4, 10))])
def test_inputs_cover_what_each_iteration_computes_beyond_what_is_new(tail: hl.TailStrategy, rows: tuple[int, int]) -> None:
    """Ten rows of three each, computed four at a time: the same rows as Halide asks for."""
    image, f = hl.ImageParam(hl.Int(32), 2, "image"), hl.Func("f")
    f[x, y] = image[x, y] * 2
    out = stencil("out", f, -1, 0, 1)
    f.store_root().compute_at(out, y).split(y, yo, yi, 4, tail)
    out.infer_input_bounds([8, 10])
    asked = image.get().dim(1)
    assert (asked.min(), asked.max()) == rows


def test_nothing_runs_before_an_empty_loop() -> None:
    f = source()
    out = stencil("out", f, -1, 0, 1)
    sliding(f, out)
    body = lower([out.function], out.pipeline()._arguments(), "out", Target.host()).body
    conditions = [to_text(s.condition) for s in nodes_of(body, n.IfThenElse) if any("prologue" in loop.name for loop in nodes_of(s.then_case, n.For))]
    assert f"(0 < {out.function.buffer_name(0)}.extent.1)" in conditions


def test_tiles_shifted_inwards_read_no_more_of_inputs() -> None:
    """Iterations that fill a window ask for less than a tile of what it is made of, which began 62 elements too early by that (as
    Halide's autoscheduler schedules it in its camera pipe)."""
    inp, d, f, out = hl.ImageParam(hl.Int(32), 1), hl.Func("d"), hl.Func("f"), hl.Func("out")
    d[x] = inp[x] + 1
    f[x] = d[x] * 2
    out[x] = f[x - 1] + f[x] + f[x + 1]
    out.split(x, x, xi, 256)
    f.store_root().compute_at(out, x)
    d.compute_at(out, x).split(x, x, xi, 64, hl.TailStrategy.ShiftInwards)
    out.infer_input_bounds([1000])
    needed = inp.get().dim(0)
    assert (needed.min(), needed.extent()) == (-1, 1002)
    values = np.arange(1002, dtype=np.int32) ** 2
    image = hl.Buffer(values)
    image.set_min([-1])
    inp.set(image)
    assert (np.asarray(out.realize([1000])) == 2 * (values[:-2] + values[1:-1] + values[2:] + 3)).all()


def test_long_chains_of_clamped_taps() -> None:
    """Each region is an extremum of the one before, twice: as a tree the last one would never end."""
    count, out = 40, hl.Func("out")
    chain = [hl.Func(f"f{i}") for i in range(count)]
    chain[0][x] = hl.u32(x % 2)
    for before, f in zip(chain, chain[1:]):
        f[x] = before[x - 1] + before[hl.min(x + 1, 20)]
    for f in chain:
        f.store_root().compute_at(out, x)
    out[x] = chain[-1][x]
    values = np.arange(-100, 21).astype(np.uint32) % 2
    for _ in range(count - 1):
        values = np.concatenate([[np.uint32(0)], values[:-1] + np.concatenate([values[2:], values[-1:]])])
    np.testing.assert_array_equal(np.array(out.bound(x, 0, 10).realize([10])), values[100:110])


def test_what_slides_itself_may_be_tiled() -> None:
    """Tiles shifted inwards of what slides, too, do not keep its readers from filling their windows row by row (the camera pipe's
    denoised)."""
    d, e, out = hl.Func("d"), hl.Func("e"), hl.Func("out")
    values = np.random.default_rng(1).integers(0, 100, (64, 8)).astype(np.int32)
    d[x, y] = hl.Buffer(values)[x, y + 4] * 3
    e[x, y] = d[x, 2 * y] + d[x, 2 * y + 1]
    out[x, y] = e[x, y - 1] + e[x, y] + e[x, y + 1]
    d.store_root().compute_at(out, y).split(y, y, yi, 2, hl.TailStrategy.ShiftInwards).fold_storage(y, 4)
    e.store_root().compute_at(out, y).fold_storage(y, 4)
    rows = values.astype(np.int64)[2:] * 3
    pairs = rows[0::2][:26] + rows[1::2][:26]
    np.testing.assert_array_equal(np.asarray(out.realize([8, 24])), pairs[:-2] + pairs[1:-1] + pairs[2:])


@pytest.mark.parametrize("tail", [hl.TailStrategy.RoundUp, hl.TailStrategy.PredicateLoads, hl.TailStrategy.GuardWithIf])
@pytest.mark.parametrize("backwards", [False, True])
def test_columns_that_others_write_again_do_not_slide_over_rows(backwards: bool, tail: hl.TailStrategy) -> None:
    """Each column needs the first ones for its second stage, or blocks of several: what is written of others is not what they had at last."""
    def rows(directives: bool) -> np.ndarray:
        f, out, r = hl.Func("f"), hl.Func("out"), hl.RDom([(0, 5)])
        f[x, y] = 2
        f[2 * r, y] += 3 + y
        f[x, y] = hl.select(x + y > 7, f[x, y], 100 + x * 10 + y)
        out[x, y] = f[(7 - x if backwards else x) + 2, hl.select(y > 3, y + 2, y - 2)]
        if directives:
            f.store_root().compute_at(out, x)
            f.update(0).unscheduled()
            f.update(1).split(x, xo, xi, 4, tail)
        return np.array(out.realize([8, 12]))

    np.testing.assert_array_equal(rows(True), rows(False))


def test_what_does_not_move_has_no_latest_iteration() -> None:
    """A window whose new end is a choice of two that stay where they are."""
    p, q, i = (n.Variable(INT32, v) for v in ("p", "q", "i"))
    assert latest(n.Min(p, q), "i", b.i32(7)) is None
    assert to_text(latest(n.Min(p, n.Add(i, q)), "i", b.i32(7)) or p) == "(7 - q)"
