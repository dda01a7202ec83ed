"""Directives: what they leave in the schedule, and which ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.function import SplitKind, TailStrategy
from halide_py.ir.nodes import ForType, MemoryType, Partition
from halide_py.lang.edits import Edits

x, y, c, xo, yo, xi, yi, t = hl.vars("x y c xo yo xi yi t")


def func(dims: int = 2) -> hl.Func:
    f = hl.Func()
    f[(x, y, c)[:dims]] = x
    return f


def loops(s: Any) -> str:
    return s.dump_argument_list().removeprefix("Vars: ").removesuffix("\n")


def kinds(s: Any) -> dict[str, str]:
    return {d.var: d.for_type.name for d in s._schedule().dims if d.for_type is not ForType.Serial}


def test_split_reorder_fuse_rename() -> None:
    f = func()
    assert loops(f) == "x y __outermost"
    assert f.split(x, xo, xi, 8) is f and loops(f) == "xi xo y __outermost"
    f.reorder(y, xi)
    assert loops(f) == "y xo xi __outermost"
    f.reorder([xi, xo, y])
    assert loops(f) == "xi xo y __outermost"
    f.fuse(xi, y, t)
    assert loops(f) == "t xo __outermost"
    f.rename(t, x)
    assert loops(f) == "x xo __outermost"
    assert [s.kind for s in f._schedule().splits] == [SplitKind.Split, SplitKind.Fuse, SplitKind.Rename]


@pytest.mark.parametrize("call, want", [
    ("f.tile(x, y, xo, yo, xi, yi, 8, 4)", "xi yi xo yo __outermost"), ("f.tile(x, y, xi, yi, 8, 4)", "xi yi x y __outermost"),
    ("f.tile([x, y], [xo, yo], [xi, yi], [8, 4])", "xi yi xo yo __outermost"), ("f.tile([x, y], [xi, yi], [8, 4])", "xi yi x y __outermost"),
    ("f.tile(x, y, xi, yi, 8, 4, hl.TailStrategy.RoundUp)", "xi yi x y __outermost"),
    ("f.tile([x, y], [xo, yo], [x, y], [8, 4], hl.TailStrategy.GuardWithIf)", "x y xo yo __outermost"),
    ("f.tile(x, y, xi=xi, yi=yi, xfactor=8, yfactor=4, tail=hl.TailStrategy.RoundUp)", "xi yi x y __outermost"),
    ("f.tile([x, y], [xi, yi], [8, 4], hl.TailStrategy.RoundUp)", "xi yi x y __outermost"),
    ("f.tile(previous=[x], inners=[xi], factors=[8])", "xi x y __outermost"),
])
def test_tile(call: str, want: str) -> None:
    f = func()
    eval(call)
    assert loops(f) == want
    f = func()
    f[x, y] += 1
    eval(call.replace("f.tile", "f.update().tile"))
    assert loops(f) == "x y __outermost" and loops(f.update()) == want


def test_how_loops_run() -> None:
    f = func()
    f.vectorize(x, 8).unroll(x, 2).parallel(y, 4).never_partition(x)
    assert kinds(f) == {"x.v0": "Vectorized", "x.u0": "Unrolled", "y": "Parallel"} and loops(f) == "x.v0 x.u0 x y.p0 y __outermost"
    assert [s.tail for s in f._schedule().splits] == [TailStrategy.Auto] * 3
    f.vectorize(x, 2)
    assert "x.v1" in loops(f)
    f.serial(y).always_partition_all()
    assert "y" not in kinds(f) and {d.partition for d in f._schedule().dims} == {Partition.Always}
    f.partition(x, hl.Partition.Never).never_partition([y])
    assert [d.var for d in f._schedule().dims if d.partition is Partition.Never] == ["x", "y"]


def test_update_stages_have_their_own_loops() -> None:
    f = func()
    r = hl.RDom([(0, 8), (0, 4)], "ups")
    f[r.x, y] += r.y
    s = f.update(0)
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    assert loops(s) == "ups$x ups$y y __outermost" and s.name() == f"{f.name()}.update(0)"
    s.split(r.x, ro, ri, 4).reorder(ri, y, ro, r.y).vectorize(y, 4)
    assert loops(s) == "ri y.v0 y ro ups$y __outermost" and s._schedule().splits[0].exact
    assert loops(f) == "x y __outermost"
    assert loops(hl.Stage(f)) == "x y __outermost"


def test_bounds_storage_and_tracing() -> None:
    f, p = func(), hl.Param(hl.Int(32))
    f.bound(x, 0, p).bound_extent(y, 16).align_bounds(x, 8).align_extent(y, 4).set_estimates([(0, 640), hl.Range(0, 480)]).set_estimate(x, 0, 4)
    s = f.function.schedule
    assert [(b.var, b.min is None, b.modulus is None) for b in s.bounds] == [("x", False, True), ("y", True, True), ("x", True, False), ("y", True, False)]
    assert len(s.estimates) == 3
    f.reorder_storage(y, x).store_in(hl.MemoryType.Stack)
    assert [d.var for d in s.storage_dims] == ["y", "x"] and s.memory is MemoryType.Stack
    f.trace_loads().trace_stores().trace_realizations().add_trace_tag("tag")
    assert f.function.trace_loads and f.function.trace_stores and f.function.trace_realizations and f.function.trace_tags == ["tag"]


def test_placement_and_loop_levels() -> None:
    f, g = func(), func()
    f[x, y] += g[x, y]
    g.compute_at(f, y)
    place = g.function.schedule.compute_level
    assert (place.func, place.var, place.stage) == (f.name(), "y", -1)  # in whichever stage has the loop and calls g
    g.store_root().compute_root()
    assert g.function.schedule.store_level.is_root() and g.function.schedule.compute_level.is_root()
    g.compute_inline()
    assert g.function.schedule.compute_level.is_inline()
    later = hl.LoopLevel()
    g.compute_at(later)
    assert not g.function.schedule.compute_level.defined
    later.set(hl.LoopLevel(f, x, 1))
    assert (g.function.schedule.compute_level.var, later.stage_index()) == ("x", 1)
    later.set(hl.LoopLevel.root())
    assert g.function.schedule.compute_level.is_root()
    assert hl.LoopLevel.inlined().place.is_inline()
    with pytest.raises(hl.HalideError, match="undefined LoopLevel"):
        later.set(hl.LoopLevel())


def test_a_failed_directive_changes_nothing() -> None:
    f = func()
    f[x, y] += 1
    for program in ("f.tile(x, y, xo, xi, xi, yi, 8, 4)", "f.split(x, xo, xi, 0)", "f.vectorize(c, 8)", "f.reorder(x, x)",
                    "f.reorder(hl.Var.outermost(), x)", "f.fuse(x, x, t)", "f.fuse(x, y, hl.RVar('q'))", "f.rename(x, y)", "f.parallel(c)",
                    "f.never_partition(x, c)", "f.update(0).split(x, xo, xi, 8, hl.TailStrategy.ShiftInwards)", "f.bound(c, 0, 1)", "f.bound(x, 0, y)",
                    "f.align_bounds(x, 0)", "f.reorder_storage(x, x)", "f.store_in(hl.MemoryType.GPUShared)", "f.set_estimates([(0, 1)])"):
        with pytest.raises(hl.HalideError):
            eval(program)
    assert loops(f) == loops(f.update(0)) == "x y __outermost" and not f._schedule().splits and not f._schedule().touched
    assert not f.update(0)._schedule().touched and not f.function.schedule.bounds and f.function.schedule.memory is MemoryType.Auto


@pytest.mark.parametrize("program", ["f.split('x', xo, xi, 8)", "f.reorder('x', 'y')", "f.vectorize(1)", "f.tile(x, y)", "f.compute_at(x)",
                                     "f.tile(x, y, xi, yi, 8, 4, 9)", "f.parallel(None)", "f.vectorize(x, 'a')"])
def test_wrong_python_types(program: str) -> None:
    f = func()
    with pytest.raises(TypeError):
        eval(program, {**globals(), "f": f})


def test_race_free_rvars() -> None:
    r = hl.RDom([(0, 8), (0, 4)])

    def kind(define: Any) -> list[str]:
        f = func()
        define(f)
        return [d.kind.name for d in f.update(0)._schedule().dims if d.is_rvar()]

    def one(f: hl.Func) -> None:
        f[r.x, r.y] += 1

    def scan(f: hl.Func) -> None:
        f[r.x, r.y] += f[r.x - 1, r.y]

    def stride(f: hl.Func) -> None:
        f[2 * r.x, y] = f[2 * r.x + 1, y]

    def collide(f: hl.Func) -> None:
        f[r.x + r.y, y] += 1

    def wraps(f: hl.Func) -> None:
        f[r.x % 4, r.y] += 1

    def column(f: hl.Func) -> None:
        f[r.x, 0] = f[r.y, 1]

    def mirror(f: hl.Func) -> None:
        f[r.x, r.y] = f[7 - r.x, r.y]

    def far(f: hl.Func) -> None:
        f[r.x, r.y] += f[r.x + 8, r.y] + f[r.x, r.y + 4]

    def outside(f: hl.Func) -> None:
        f[r.x + 1, r.y] = f[0, 0] + f[9 - r.y, 4 + 2 * r.x]

    def near(f: hl.Func) -> None:
        f[r.x, r.y] += f[r.x + 7, r.y]

    assert kind(one) == kind(far) == kind(outside) == ["PureRVar", "PureRVar"]
    assert kind(near) == ["ImpureRVar", "PureRVar"]
    assert kind(scan) == ["ImpureRVar", "PureRVar"]
    assert kind(stride) == ["PureRVar", "ImpureRVar"]
    assert kind(collide) == ["ImpureRVar", "ImpureRVar"]
    assert kind(wraps) == ["ImpureRVar", "PureRVar"]
    assert kind(column) == ["PureRVar", "ImpureRVar"]
    assert kind(mirror) == ["ImpureRVar", "PureRVar"]


def test_order_of_rvars() -> None:
    r = hl.RDom([(0, 8), (0, 4)])

    def update(value: Any) -> Any:
        f = hl.Func()
        f[x] = 0
        f[0] = value(f)
        return f.update(0)

    for free in (lambda f: f[0] + r.x * r.y, lambda f: hl.max(f[0], r.x), lambda f: f[0] * r.x, lambda f: f[0] - r.x + r.y, lambda f: 7 * r.x * 0 + f[0],
                 lambda f: hl.select(r.x < r.y, f[0] + r.x, f[0])):
        s = update(free)
        a, b = (d.var for d in s._schedule().dims[:2])
        s.reorder(r.y, r.x)
        assert [d.var for d in s._schedule().dims[:2]] == [b, a]
    for fixed in (lambda f: f[0] * 2 + r.x, lambda f: r.x - f[0], lambda f: r.x + r.y, lambda f: f[0] + f[1] + r.x, lambda f: hl.min(f[0] + r.x, 9),
                  lambda f: hl.select(f[0] < r.x, f[0] + r.x, f[0])):
        s = update(fixed)
        with pytest.raises(hl.HalideError, match="can't reorder RVars .* may change the meaning"):
            s.reorder(r.y, r.x)
        with pytest.raises(hl.HalideError, match="can't fuse RVars"):
            s.fuse(r.y, r.x, hl.RVar("q"))
        s.fuse(r.x, r.y, hl.RVar("q"))


def test_every_change_is_an_edit() -> None:
    f, p, im = func(), hl.Param(hl.Int(32)), hl.ImageParam(hl.Int(32), 1)
    level = hl.LoopLevel()
    changes = [lambda: f.__setitem__((0, 0), 1), lambda: f.split(x, xo, xi, 4), lambda: f.vectorize(xi), lambda: f.compute_root(), lambda: f.bound(x, 0, 8),
               lambda: f.store_in(hl.MemoryType.Heap), lambda: f.trace_stores(), lambda: p.set_range(0, 4), lambda: im.dim(0).set_stride(2),
               lambda: f.output_buffer().set_host_alignment(16), lambda: level.set(hl.LoopLevel.root()), lambda: f.update(0).unscheduled()]
    for change in changes:
        before = Edits.number
        change()
        assert Edits.number > before
    before = Edits.number
    p.set(3)
    loops(f)
    assert Edits.number == before


def test_names_given_again_stay_apart_in_the_list_of_splits() -> None:
    def steps(program: str) -> list[str]:
        f = func()
        eval(program, {**globals(), "f": f})
        forms = {SplitKind.Split: "{0.old}>{0.outer},{0.inner}", SplitKind.Fuse: "{0.inner},{0.outer}>{0.old}", SplitKind.Rename: "{0.old}>{0.outer}"}
        return [forms[s.kind].format(s) for s in f._schedule().splits]

    assert steps("f.vectorize(x, 8).unroll(x, 2)") == ["x>x.1,x.v0", "x.1>x,x.u0"]
    assert steps("f.split(x, xo, x, 8).split(x, xi, x, 4)") == ["x>xo,x.1", "x.1>xi,x"]
    tiled = steps("f.tile(x, y, xi, yi, 8, 4).fuse(x, y, x).split(x, x, t, 2)")
    assert tiled == ["x>x.1,xi", "y>y,yi", "x.1,y>x.2", "x.2>x,t"]
    assert steps("f.fuse(x, y, x)") == ["x>x.1", "x.1,y>x"]
    assert steps("f.rename(x, xo).split(xo, x, xi, 4).rename(xi, xo)") == ["x>xo.1", "xo.1>x,xi", "xi>xo"]


SINGLE = {
    "vectorize": lambda s, r: s.vectorize(r.x), "parallel": lambda s, r: s.parallel(r.x), "reorder": lambda s, r: s.reorder(r.y, r.x),
    "atomic": lambda s, r: s.atomic().parallel(r.x),
}


@pytest.mark.parametrize("directive", SINGLE)
def test_a_single_iteration_races_with_nobody(directive: str) -> None:
    """An RVar of extent 1 may run in any way, whatever the update does."""
    r, f = hl.RDom([(0, 1), (0, 1 if directive == "atomic" else 3)]), hl.Func()
    f[x] = 1
    f[x] = f[x] * 2 + r.x + r.y
    SINGLE[directive](f.update(), r)
    assert np.asarray(f.realize([3])).tolist() == [2 if directive == "atomic" else 12] * 3
