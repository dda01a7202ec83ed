"""Where a producer is computed and stored never changes what a pipeline reads: a blur on an input with not one element to spare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import halide_py as hl
from halide_py.lower.print_loop_nest import loop_nest_text

x, y, yo, yi = hl.Var("x"), hl.Var("y"), hl.Var("yo"), hl.Var("yi")
Schedule = Callable[[hl.Func, hl.Func], object]
SCHEDULES: dict[str, Schedule] = {
    "inline": lambda rows, blur: None,
    "root": lambda rows, blur: rows.compute_root(),
    "at_y": lambda rows, blur: rows.compute_at(blur, y),
    "at_x": lambda rows, blur: rows.compute_at(blur, x),
    "slide_along_y": lambda rows, blur: rows.store_root().compute_at(blur, y),
    "slide_along_x": lambda rows, blur: rows.store_root().compute_at(blur, x),
    "vectors": lambda rows, blur: (rows.store_root().compute_at(blur, y).vectorize(x, 8), blur.vectorize(x, 8)),
    "strips": lambda rows, blur: (blur.split(y, yo, yi, 4).parallel(yo), rows.store_at(blur, yo).compute_at(blur, yi)),
    "guarded_strips": lambda rows, blur: (blur.split(y, yo, yi, 8, hl.TailStrategy.GuardWithIf), rows.compute_at(blur, yo).vectorize(x, 4)),
    "guards_in_guards": lambda rows, blur: (
        blur.split(y, yo, yi, 8, hl.TailStrategy.GuardWithIf), rows.compute_at(blur, yo).split(y, yo, yi, 4, hl.TailStrategy.GuardWithIf)),
}


@pytest.mark.parametrize("size", [(64, 16), (17, 9), (31, 8)])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reads_nothing_beyond_what_is_needed(schedule: str, size: tuple[int, int]) -> None:
    width, height = size
    image = np.random.default_rng(3).integers(0, 200, (height + 2, width + 2)).astype(np.uint16)
    photo, rows, blur = hl.Buffer(image), hl.Func("rows"), hl.Func("blur")
    rows[x, y] = (photo[x, y] + photo[x + 1, y] + photo[x + 2, y]) // 3
    blur[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) // 3
    SCHEDULES[schedule](rows, blur)
    across = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) // np.uint16(3)
    wanted = (across[:-2] + across[1:-1] + across[2:]) // np.uint16(3)
    np.testing.assert_array_equal(np.array(blur.realize([width, height])), wanted)


def test_a_stage_that_does_not_call_the_producer_gets_no_production() -> None:
    """Whatever the names hash to: 150 pairs of Funcs whose second stage has the loop, but no call."""
    for i in range(150):
        f, g = hl.Func(f"placed{i}"), hl.Func(f"caller{i}")
        f[x, y] = x + y
        g[x, y] = f[x, y]
        g[x, 0] += 1
        f.compute_at(g, x).store_at(g, y)
        text = loop_nest_text([g.function])
        assert text.count(f"produce placed{i}:") == 1 and text.count(f"store placed{i}:") == 1, text


def test_loops_are_printed_under_the_names_of_what_they_were_made_of() -> None:
    f, xo, xi, t, z = hl.Func("nested"), hl.Var("xo"), hl.Var("xi"), hl.Var("t"), hl.Var("z")
    r = hl.RDom([(0, 7), (2, 5)])
    f[x, y] = x + y
    f[x, y] += r.x * r.y
    f.bound(y, 0, 1).split(x, xo, xi, 8).split(xo, xo, t, 2).vectorize(xi, 4).fuse(t, y, z).rename(z, t)
    f.update().split(r.x, hl.RVar("ro"), hl.RVar("ri"), 2).parallel(y)
    name = r.x.name().partition("$")[0]
    assert loop_nest_text([f.function]).splitlines() == [
        "produce nested:", "  for x.xo.xo:", "    for x.xo.t.z.t in [0, 1]:", "      for x.xi.xi in [0, 1]:", "        vectorized x.xi.v0 in [0, 3]:", "          nested(...) = ...",
        "  for x:", f"    for {name} in [2, 6]:", f"      for {name}.ro in [0, 3]:", f"        for {name}.ri in [0, 1]:", "          nested(...) = ..."]


def test_lowering_grows_with_the_number_of_stages(effort: Callable[[Callable[[], object]], int], tmp_path: Path) -> None:
    def lowering(stages: int) -> int:
        chain = [hl.Func() for _ in range(stages)]
        chain[0][x, y] = x + y
        for f, g in zip(chain, chain[1:]):
            g[x, y] = f[x - 1, y] + f[x + 1, y] + f[x, y - 1] + f[x, y + 1]
        *producers, last = chain
        last.split(y, yo, yi, 8).vectorize(x, 4)
        for f in producers:
            f.compute_at(last, yo).vectorize(x, 4)
        return effort(lambda: last.compile_to_lowered_stmt(str(tmp_path / "f.txt"), []))

    lowering(2)  # what is loaded and compiled once
    few, some, many = lowering(6), lowering(12), lowering(24)
    assert many - some < 1.2 * 2 * (some - few)


def test_printed_loops_are_those_that_run_more_than_once() -> None:
    """The regions are worked out: what is computed for one value has no loop, what has a constant number of iterations says so."""
    f, g, h = hl.Func("first"), hl.Func("second"), hl.Func("third")
    f[x, y] = x + y
    g[x, y] = f[x, y] + f[x, y + 1]
    h[x, y] = g[x, y] + g[x + 1, y]
    h.bound(x, 0, 16).split(x, yo, yi, 8)
    g.compute_at(h, yo)
    f.compute_at(g, x)
    assert loop_nest_text([h.function]).splitlines() == [
        "produce third:", "  for y:", "    for x.yo in [0, 1]:", "      produce second:", "        for x:", "          produce first:", "            for y:",
        "              first(...) = ...", "          consume first:", "            second(...) = ...", "      consume second:", "        for x.yi in [0, 7]:",
        "          third(...) = ..."]


def test_a_producer_realized_in_two_stages_has_an_address_in_each() -> None:
    """The store to `f[1]` looks the same in both realizations, whose storage starts at 1 and at -2."""
    f, g, k, r = hl.Func("f"), hl.Func("g"), hl.Param(hl.Int(32), "k", 3), hl.RDom([(0, 7)])
    f[x] = k
    f[1] = 0
    g[x, y] = f[6]
    g[r, y] += f[2 * r - 2]
    f.compute_at(g, y)
    np.testing.assert_array_equal(np.array(g.realize([7, 2])), [[6] * 7] * 2)
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = (k, 2 * k)
    f[1] = (f[1][1], f[1][0])
    g[x, y] = f[6][0]
    g[r, y] += f[3 * r - 2][0]
    f.compute_at(g, y)
    np.testing.assert_array_equal(np.array(g.realize([7, 2])), [[6, 9, 6, 6, 6, 6, 6]] * 2)


@pytest.mark.parametrize("schedule", ["f", "f.vectorize(x, 4, hl.TailStrategy.GuardWithIf)", "f.parallel(x)", "f.unroll(r.x, 5)",
                                      "f.reorder(x, r.x).vectorize(x, 8, hl.TailStrategy.GuardWithIf)"])
def test_a_predicate_that_reads_the_func_itself_is_asked_in_every_iteration(schedule: str) -> None:
    """Though no loop variable occurs in it: what iterations store decides whether the next ones run."""
    f, r = hl.Func("f"), hl.RDom([(0, 10)], "r")
    f[x] = (1, 0)
    r.where(f[x][0] < 5)
    f[x] = (f[x][0] * 2, r + 1)
    eval(schedule, {"hl": hl, "x": x, "f": f.update(), "r": r})
    assert [np.asarray(v).tolist() for v in f.realize([5])] == [[8] * 5, [3] * 5]
