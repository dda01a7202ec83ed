"""Stages whose values do not matter are not computed; whatever is skipped, the values stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl

x, y, xo, xi = (hl.Var(v) for v in ("x", "y", "xo", "xi"))


def stored(out: hl.Func, *size: int) -> tuple[np.ndarray, Counter[str]]:
    """The values, dimension 0 last, and how many values of each traced Func were stored."""
    counts: Counter[str] = Counter()

    def event(e: hl.TraceEvent) -> None:
        if e.event == hl.TraceEventCode.store:
            counts[e.func.partition("$")[0]] += e.type.lanes()

    with hl.handlers(trace=event):
        return np.array(out.realize(list(size))), counts


@pytest.mark.parametrize("schedule", [
    lambda a, b, c, out: [f.compute_root() for f in (a, b, c)],
    lambda a, b, c, out: (out.split(x, xo, xi, 5), a.compute_at(out, xo), b.store_root().compute_at(out, xo),
                          c.store_at(out, xo).compute_at(out, xi)),
    lambda a, b, c, out: [f.compute_root().vectorize(x, 5).memoize() for f in (a, b, c)],
    lambda a, b, c, out: (a.compute_root().async_(), b.compute_root().async_(), c.compute_root()),
    lambda a, b, c, out: (out.specialize(hl.Param(hl.Bool(), "special", True)), a.compute_root(), b.compute_root(), c.compute_root()),
])
def test_what_a_parameter_turns_off(schedule: Callable[..., object]) -> None:
    """b and c read a, out reads b and c under parameters of their own."""
    one, two = hl.Param(hl.Bool(), "one"), hl.Param(hl.Bool(), "two")
    a, b, c, out = (hl.Func(v) for v in ("a", "b", "c", "out"))
    a[x] = x * 3
    b[x] = a[x] + 1
    c[x] = (a[x] + 2, 7)
    out[x] = hl.select(one, b[x], 0) + hl.select(~two, 0, c[x][0])
    schedule(a, b, c, out)
    for f in (a, b, c):
        f.trace_stores()
    for first in (True, False):
        for second in (True, False):
            hl.memoization_cache_cleanup()
            one.set(first)
            two.set(second)
            values, counts = stored(out, 10)
            np.testing.assert_array_equal(values, first * (np.arange(10) * 3 + 1) + second * (np.arange(10) * 3 + 2))
            assert (counts["a"], counts["b"], counts["c"]) == (10 * (first or second), 10 * first, 2 * 10 * second)
    hl.memoization_cache_cleanup()


@pytest.mark.parametrize("inside", [False, True])
def test_what_rows_turn_off(inside: bool) -> None:
    """A Func of a row that other values of the row make useless, as in a search that ends early."""
    source, found, doubled, out, r = hl.Func("source"), hl.Func("found"), hl.Func("doubled"), hl.Func("out"), hl.RDom([(0, 8)])
    source[x, y] = hl.select((y % 3 == 0) & (x == 5), -1, x)
    found[y] = False
    found[y] = found[y] | (source[r, y] < 0)
    doubled[x, y] = source[x, y] * 2
    out[x, y] = hl.select(found[y], source[x, y], doubled[x, y])
    doubled.compute_at(out, y).trace_stores()
    found.compute_at(out, y) if inside else found.compute_root()
    values, counts = stored(out, 8, 9)
    j, i = np.mgrid[:9, :8]
    data = np.where((j % 3 == 0) & (i == 5), -1, i)
    np.testing.assert_array_equal(values, np.where(j % 3 == 0, data, 2 * data))
    assert counts["doubled"] == 6 * 8


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("updates", [0, 1])
def test_loops_shared_with_what_is_used(swapped: bool, last: bool, updates: int) -> None:
    """Whichever of two Funcs in shared loops is not used, the other is computed."""
    used = hl.Param(hl.Bool(), "used")
    a, b, out = (hl.Func(v) for v in ("a", "b", "out"))
    for f, scale in ((a, 3), (b, 5)):
        f[x] = x * scale
        for _ in range(updates):
            f[x] += 1
        f.compute_root()
    off, on = (b, a) if swapped else (a, b)
    out[x] = on[x] + hl.select(used, off[x + 2], 0) if last else hl.select(used, off[x + 2], 0) + on[x]
    for k in range(updates + 1):
        (b.update(k - 1) if k else b).compute_with(a.update(k - 1) if k else a, x)
    i = np.arange(8)
    for now in (False, True):
        used.set(now)
        values, _ = stored(out, 8)
        np.testing.assert_array_equal(values, now * ((i + 2) * (5 if swapped else 3) + updates) + i * (3 if swapped else 5) + updates)


def test_predicates_of_reductions_and_conditions_in_between() -> None:
    p, f, g, h = hl.Param(hl.Int(32), "p"), hl.Func("f"), hl.Func("g"), hl.Func("h")
    g[x] = x + 1
    h[x] = hl.select(x > p + 2, g[x], 0)  # which limits the region of g
    f[x] = x
    r = hl.RDom([(0, 10)])
    r.where(p > 3)
    f[r] += 2 * h[r]
    g.compute_root().trace_stores()
    h.compute_root().trace_stores()
    for value in (0, 5):
        p.set(value)
        values, counts = stored(f, 10)
        np.testing.assert_array_equal(values, [i + 2 * (i + 1) * (value > 3 and i > value + 2) for i in range(10)])
        assert counts == (Counter(g=2, h=10) if value > 3 else Counter())


def test_what_harms_where_it_is_anything_is_computed() -> None:
    """An index, though its value is thrown away; the windows of other rows; loops that Funcs share."""
    p, place, table, out = hl.Param(hl.Bool(), "p"), hl.Func("place"), hl.Func("table"), hl.Func("out")
    place[x] = hl.u8(x % 4)
    table[x] = x * x
    out[x] = hl.select(p, table[hl.unsafe_promise_clamped(hl.i32(place[x]), 0, 3)], 5)
    place.compute_root().trace_stores()
    table.compute_root().trace_stores()
    p.set(False)
    values, counts = stored(out, 6)
    assert values.tolist() == [5] * 6 and counts == Counter(place=6)
    row, top = hl.Func("row"), hl.Func("top")
    row[x, y] = x + y
    top[x, y] = hl.select(y % 2 == 0, row[x, y] + row[x, y - 1], -1)
    row.store_root().compute_at(top, y)
    j, i = np.mgrid[:6, :4]
    np.testing.assert_array_equal(stored(top, 4, 6)[0], np.where(j % 2 == 0, 2 * (i + j) - 1, -1))
    left, right, both = hl.Func("left"), hl.Func("right"), hl.Func("both")
    left[x, y], right[x, y] = x, y
    both[x, y] = hl.select(p, left[x, y], 0) + right[x, y]
    right.compute_root()
    left.compute_root().compute_with(right, y)
    np.testing.assert_array_equal(stored(both, 4, 6)[0], j)


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("update", [None, "pure", "reduction"])
def test_what_no_condition_reads(update: str | None, vector: bool) -> None:
    """A Func computed inside a loop whose every read proves to be under a condition that never holds: its region is empty, whatever it reads."""
    r, image = hl.RDom([(0, 3)]), hl.Buffer(np.arange(12, dtype=np.int16).reshape(3, 4))
    y = hl.Var("y")
    source, never, out = (hl.Func(v) for v in ("source", "never", "out"))
    source[x] = x * 3
    never[x] = source[x + 1]
    if update:
        never[r if update == "reduction" else x] += source[r + 3]
        never.update().unscheduled()
    place = hl.i32(image[hl.clamp(x, 0, 3), hl.clamp(y, 0, 2)] % hl.i16(1)) * 3 - 1  # -1
    out[x, y] = hl.select((place > 0) & (place < 7) & (x < 5), never[place], source[x + y])
    source.compute_root()
    never.compute_at(out, y)
    if vector:
        never.vectorize(x, 4)
    np.testing.assert_array_equal(np.array(out.realize([4, 3])), 3 * np.add.outer(np.arange(3), np.arange(4)))


def test_long_chains_of_selects_are_asked_once() -> None:
    """Each link chooses between two uses of the links before: as a tree the condition would never end."""
    flags = [hl.Param(hl.Bool(), value=i % 3 > 0) for i in range(5)]
    f, out = hl.Func("f"), hl.Func("out")
    f[x] = hl.u32(x)
    f[x] = f[x] * 3
    f.compute_root()
    links, want = [f[x], f[x + 1]], [np.arange(4, dtype=np.uint32) * 3, np.arange(1, 5, dtype=np.uint32) * 3]
    for i in range(120):
        early, flag = (i * 7 + 1) % len(links), flags[i % 5]
        links.append(hl.select(flag, links[-1] * links[early] + 1, links[-1] - links[early]) + hl.u32(i))
        want.append((want[-1] * want[early] + 1 if i % 5 % 3 else want[-1] - want[early]) + np.uint32(i))
    out[x] = hl.select(hl.Param(hl.Bool(), value=True), links[-1], hl.u32(0))
    np.testing.assert_array_equal(np.array(out.realize([4])), want[-1])
