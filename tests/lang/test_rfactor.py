"""rfactor: every operation, partial results over whole, split and fused RVars, with the result of the plain reduction; what is refused and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.reference import algorithm

x, y, u, v = hl.Var("x"), hl.Var("y"), hl.Var("u"), hl.Var("v")
W, H = 21, 6
DATA = np.random.default_rng(4).integers(0, 9, (H, W)).astype(np.uint8)


class Case:
    """A Func `f` with a domain `r` over an image, both fresh."""

    def __init__(self) -> None:
        self.image, self.r, self.f = hl.Buffer(DATA), hl.RDom([(0, W), (0, H)]), hl.Func()
        self.e = self.image[self.r.x, self.r.y]

    def check(self, shape: tuple[int, ...], schedule: Callable[[Case], Any]) -> hl.Func:
        """The values stay when the schedule is applied; gives what the schedule gave."""
        want = algorithm.realize([self.f.function], shape)
        intermediate = schedule(self)
        intermediate.compute_root()
        got = self.f.realize(list(shape))
        for g, w in zip(got if isinstance(got, tuple) else [got], want):
            np.testing.assert_array_equal(np.array(g).T, w)
        return intermediate  # type: ignore[no-any-return]


def every_operation(c: Case) -> None:
    """One tuple element for each operation, and a histogram's index."""
    at, e = hl.i32(c.e) % 3, hl.i32(c.e)
    start = [0, 0, 1, hl.i16(5), hl.u8(5), hl.u8(255), hl.u16(0), hl.u32(1), hl.cast(hl.Bool(), 1), hl.cast(hl.Bool(), 0), hl.u8(3), 7, hl.f32(1)]
    c.f[x] = start
    o = list(c.f[at])
    c.f[at] = [o[0] + e, o[1] - e * 2 + 1, o[2] * (e % 2 * 2 - 1), hl.max(o[3], hl.i16(e) - 3), hl.min(c.e, o[4]), o[5] & (c.e | 2), o[6] | hl.u16(c.e),
               o[7] ^ hl.u32(e), o[8] & (c.e < 8), (c.e == 8) | o[9], hl.saturating_add(o[10], c.e), hl.select(c.e > 3, o[11] + c.r.x, o[11]),
               hl.max(o[12], hl.f32(c.e) * 2)]


def split_x(c: Case) -> hl.Func:
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    c.f.update().split(c.r.x, ro, ri, 8)
    return c.f.update().rfactor(ro, u)


def inner_lanes(c: Case) -> hl.Func:
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    c.f.update().split(c.r.x, ro, ri, 4)
    part = c.f.update().rfactor([(ri, u)])
    part.vectorize(u, 4).update().reorder(u, ro).vectorize(u, 4)
    return part


def fused(c: Case) -> hl.Func:
    rf, ro, ri = hl.RVar("rf"), hl.RVar("ro"), hl.RVar("ri")
    c.f.update().fuse(c.r.x, c.r.y, rf).split(rf, ro, ri, 16)
    part = c.f.update().rfactor(ro, u)
    part.update().parallel(u)
    return part


def twice(c: Case) -> hl.Func:
    part = c.f.update().rfactor(c.r.y, u)
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    part.update().split(c.r.x, ro, ri, 5)
    part.update().rfactor(ri, v).compute_root()
    return part


SCHEDULES = {"y": lambda c: c.f.update().rfactor(c.r.y, u), "x": lambda c: c.f.update().rfactor(r=c.r.x, v=u),
             "both": lambda c: c.f.update().rfactor([(c.r.x, u), (c.r.y, v)]), "none": lambda c: c.f.update().rfactor([]), "split_x": split_x,
             "inner_lanes": inner_lanes, "fused": fused, "twice": twice}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_operation(schedule: str) -> None:
    c = Case()
    every_operation(c)
    part = c.check((3,), SCHEDULES[schedule])
    assert part.name().startswith(f"{c.f.name()}_intm") and [a.name() for a in part.args()][0] == "x" and part.outputs() == 13


def test_predicates_pure_vars_and_determined_places() -> None:
    c = Case()
    c.r.where(c.r.x + c.r.y < 20)
    c.r.where(c.r.y > 0)
    c.f[x, y] = 0
    c.f[x, c.r.y] += hl.i32(c.e) * x
    c.f.update().vectorize(x, 4)
    part = c.check((5, H), lambda c: c.f.update().rfactor(c.r.y, u))
    assert "vectorized x.v0" not in part.dump_argument_list() and "x.v0" in part.update().dump_argument_list() and "u" in part.update().dump_argument_list()
    c = Case()
    c.r.where(c.r.x > c.r.y * 3)
    c.f[x] = 0
    c.f[c.r.x] += hl.i32(c.e)
    c.check((W,), lambda c: c.f.update().rfactor(c.r.x, u))


def best(c: Case, better: Callable[[Any, Any], Any]) -> None:
    c.f[()] = (hl.u8(4), -1, -1)
    old = c.f[()]
    take = better(old[0], c.e)
    c.f[()] = (hl.select(take, c.e, old[0]), hl.select(take, c.r.x, old[1]), hl.select(take, c.r.y, old[2]))


def test_arg_max_keeps_the_first_of_equals() -> None:
    for better in (lambda old, e: old < e, lambda old, e: e > old, lambda old, e: e < old):
        c = Case()
        best(c, better)
        c.check((), lambda c: c.f.update().rfactor(c.r.y, u))
        c = Case()
        best(c, better)
        c.f.update().split(c.r.x, hl.RVar("ro"), hl.RVar("ri"), 8)
        c.check((), lambda c: c.f.update().rfactor([(hl.RVar("ro"), u), (c.r.y, v)]))
    for better, loop in ((lambda old, e: old < e, "x"), (lambda old, e: old <= e, "y")):
        c = Case()
        best(c, better)
        with pytest.raises(hl.CompileError, match="which of equal values wins|one strict comparison"):
            c.f.update().rfactor(getattr(c.r, loop), u)


def test_complex_products() -> None:
    c = Case()
    c.f[x] = (hl.u32(1), hl.u32(2))
    a, b, old = hl.u32(c.e) + 1, hl.u32(c.e) * 3, c.f[x]
    c.f[x] = (old[0] * a - b * old[1], old[0] * b + old[1] * a)
    c.check((2,), lambda c: c.f.update().rfactor(c.r.x, u))


@pytest.mark.parametrize("value, words", [
    ("f[x] * 2 + e", "its new value is not the old value combined"), ("e - f[x]", "its new value"), ("f[x] + f[x + 0 * r.x] * 0 + f[0]", "its new value"),
    ("hl.select(f[x] > 3, f[x] + e, f[x])", "its new value"), ("hl.i32(hl.saturating_add(f[x], e))", "its new value"),
])
def test_refused_operations(value: str, words: str) -> None:
    c = Case()
    r = hl.RDom([(0, 4)])
    c.f[x] = 0
    c.f[r] = eval(value, {"hl": hl, "f": c.f, "x": hl.Expr(r.x), "e": r.x, "r": r})
    with pytest.raises(hl.CompileError, match="can't prove associativity of the operator: " + words):
        c.f.update().rfactor(r.x, u)


@pytest.mark.parametrize("program, words", [
    ("hl.Stage(f).rfactor(r.x, u)", "must be called on an update"), ("f.update().rfactor(r.x, x)", "Var x, because the name is in use"),
    ("f.update().rfactor([(r.x, u), (r.y, u)])", "the name is in use"), ("f.update().rfactor(hl.RVar('q'), u)", "on q since either it is not in the reduction domain"),
    ("f.update().split(r.x, hl.RVar('a'), hl.RVar('b'), 4).rfactor(r.x, u)", "already been consumed"),
    ("f.update().fuse(r.y, x, hl.RVar('a')).rfactor(r.x, u)", "fuses a Var with an RVar"), ("f.update().rfactor([(r.x, u), (r.x, v)])", "twice"),
    ("(f.update().specialize(p), f.update().rfactor(r.x, u))", "before specialize"), ("f.update().specialize(p).rfactor(r.x, u)", "not on a specialization"),
])
def test_refused(program: str, words: str) -> None:
    c = Case()
    c.f[x] = 0
    c.f[x] += hl.i32(c.e)
    with pytest.raises(hl.CompileError, match=words):
        eval(program, {**globals(), "f": c.f, "r": c.r, "p": hl.Param(hl.Bool())})
    assert c.f.num_update_definitions() == 1 and len(c.f.update_values()) == 1


@pytest.mark.parametrize("program", ["rfactor(x, u)", "rfactor(r.x, r.y)", "rfactor(r.x)", "rfactor([r.x, u])", "rfactor()"])
def test_wrong_python_types(program: str) -> None:
    c = Case()
    c.f[x] = 0
    c.f[x] += hl.i32(c.e)
    with pytest.raises(TypeError):
        eval(f"f.update().{program}", {**globals(), "f": c.f, "r": c.r})


@pytest.mark.parametrize("size", [3, 16, 37])
def test_vectors_of_kept_variables_stay_in_the_domain(size: int) -> None:
    """A Var made of an RVar has the range of the domain, beyond which inputs need not reach."""
    p, r, f = hl.ImageParam(hl.UInt(16), 2), hl.RDom([(0, size), (0, 3)]), hl.Func("f")
    f[()] = hl.u16(0)
    f[()] += p[r.x, r.y]
    partial = f.update().rfactor(r.x, u)
    partial.compute_root().vectorize(u, 16)
    partial.update().vectorize(u, 16)
    given = np.arange(3 * size, dtype=np.uint16).reshape(3, size)
    p.set(hl.Buffer(given))
    assert int(np.array(f.realize())) == given.sum()
