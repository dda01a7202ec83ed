"""compute_with: stages that share loops give the values they would give apart, and what cannot share says why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interpreted import interpreted  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.lower.print_loop_nest import loop_nest_text  # noqa: E402

x, y, xo, yo, xi, yi = (hl.Var(v) for v in ("x", "y", "xo", "yo", "xi", "yi"))
Align = hl.LoopAlignStrategy
SHAPE = (10, 7)
Y, X = np.mgrid[0:7, 0:10]
IMAGE = np.random.default_rng(0).integers(0, 99, (9, 11)).astype(np.int32)  # not one element more than is needed


class Funcs:
    """p is read by f and g; out reads f, g and h at different places, so that their regions differ. f, g and h have updates."""

    def __init__(self) -> None:
        self.p, self.f, self.g, self.h, self.out = (hl.Func(v) for v in ("p", "f", "g", "h", "out"))
        p, f, g, h = self.p, self.f, self.g, self.h
        p[x, y] = hl.Buffer(IMAGE)[x, y] * 2
        f[x, y] = p[x, y] + x
        g[x, y] = p[x, y] - y
        h[x, y] = x * y
        f[x, y] += 1
        g[x, y] *= 2
        h[x, y] += 5
        self.out[x, y] = f[x, y] + 2 * f[x + 1, y] + 3 * g[x + 1, y + 2] + h[x, y - 3]

    def at_root(self) -> Funcs:
        for one in (self.f, self.g, self.h):
            one.compute_root()
        return self

    def each(self, schedule: Callable[[Any], object]) -> Funcs:
        for one in (self.f, self.g, self.h):
            schedule(one)
        return self


def wanted() -> np.ndarray:
    p = {(i, j): 2 * IMAGE[j, i] for i in range(11) for j in range(9)}
    f, g = np.vectorize(lambda i, j: p[i, j] + i + 1), np.vectorize(lambda i, j: 2 * (p[i, j] - j))
    return f(X, Y) + 2 * f(X + 1, Y) + 3 * g(X + 1, Y + 2) + X * (Y - 3) + 5


def specialized(first: bool | None, second: bool | None) -> Callable[[Funcs], object]:
    """Inside of the loop that is shared f, g or both have other loops where their Params hold."""
    def schedule(s: Funcs) -> None:
        s.at_root().g.compute_with(s.f, y)
        s.p.compute_at(s.f, y)
        for k, (f, holds) in enumerate(((s.f, first), (s.g, second))):
            if holds is not None:
                f.specialize(hl.Param(hl.Bool(), f"first{k}", False)).unroll(x, 2, hl.TailStrategy.GuardWithIf)
                f.specialize(hl.Param(hl.Bool(), f"then{k}", holds)).split(x, xo, xi, 4, hl.TailStrategy.GuardWithIf).reorder(xo, xi).vectorize(xo, 3)
    return schedule


LEGAL: dict[str, Callable[[Funcs], object]] = {
    "one loop": lambda s: s.at_root().g.compute_with(s.f, y),
    "both loops": lambda s: s.at_root().g.compute_with(s.f, x),
    "starts together": lambda s: (s.at_root().g.compute_with(s.f, y, Align.AlignStart), s.h.compute_with(s.g, y, Align.AlignStart)),
    "ends together": lambda s: (s.at_root().g.compute_with(s.f, x, [(x, Align.AlignEnd), (y, Align.AlignEnd)]), s.h.compute_with(s.f, y, Align.AlignStart)),
    "deeper with the second": lambda s: (s.at_root().g.compute_with(s.f, y), s.h.compute_with(s.g, x, Align.AlignEnd)),
    "updates": lambda s: (s.at_root().g.compute_with(s.f, y), s.g.update(0).compute_with(s.f.update(0), x), s.h.update(0).compute_with(s.g, y)),
    "stages of one Func": lambda s: (s.at_root().f.compute_with(s.g, y), s.f.update(0).compute_with(s.g, y)),
    "a LoopLevel": lambda s: s.at_root().g.compute_with(hl.LoopLevel(s.f, y), Align.AlignEnd),
    "what both read": lambda s: (s.at_root().g.compute_with(s.f, y), s.p.compute_at(s.f, y)),
    "what both read, sliding": lambda s: (s.at_root().g.compute_with(s.f, y), s.p.store_root().compute_at(s.g, y)),
    "what both read, shifted": lambda s: (s.at_root().g.compute_with(s.f, y, Align.AlignStart), s.p.store_root().compute_at(s.f, y)),
    "tiles": lambda s: (s.at_root().each(lambda k: k.tile(x, y, xo, yo, xi, yi, 4, 2)), s.g.compute_with(s.f, xo), s.h.compute_with(s.g, yi)),
    "tiles of more tiles": lambda s: (s.at_root(), s.f.split(x, xo, xi, 4), s.g.split(x, xo, xi, 2),
                                      s.f.split(xi, xi, x, 2), s.g.split(xi, xi, x, 2), s.g.compute_with(s.f, xi, Align.AlignEnd)),
    "guarded, parallel": lambda s: (s.at_root().each(lambda k: k.split(y, yo, yi, 4, hl.TailStrategy.GuardWithIf).parallel(yo).vectorize(x, 4)),
                                    s.g.compute_with(s.f, yi, Align.AlignEnd), s.h.compute_with(s.f, yo), s.p.compute_at(s.f, yo)),
    "a vectorized loop": lambda s: (s.at_root().each(lambda k: k.vectorize(x, 4)), s.g.compute_with(s.f, x)),
    "inside a consumer": lambda s: (s.each(lambda k: k.compute_at(s.out, y)), s.g.compute_with(s.f, x), s.h.compute_with(s.g, y)),
    "a specialization of the first": specialized(True, None), "not that of the first": specialized(False, None),
    "a specialization of the second": specialized(None, True), "specializations of both": specialized(True, True), "of one of them": specialized(False, True),
    "sliding along a consumer": lambda s: (s.each(lambda k: k.store_root().compute_at(s.out, y)), s.g.compute_with(s.f, y)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_values_stay(name: str) -> None:
    s = Funcs()
    LEGAL[name](s)
    assert "fused." in loop_nest_text([s.out.function]), "no loop is shared"
    np.testing.assert_array_equal(interpreted(s.out, SHAPE).T, wanted())


@pytest.mark.parametrize("name", ["updates", "guarded, parallel", "specializations of both"])
def test_compiled_too(name: str) -> None:
    s = Funcs()
    LEGAL[name](s)
    np.testing.assert_array_equal(np.array(s.out.realize(list(SHAPE))), wanted())


def test_outputs_of_different_sizes_share_a_loop() -> None:
    a, c = hl.Func("a"), hl.Func("c")
    a[x, y] = x + 10 * y
    c[x, y] = x - 10 * y
    c.compute_with(a, y)
    big, small = hl.Buffer(hl.Int(32), [5, 7]), hl.Buffer(hl.Int(32), [6, 4])
    hl.Pipeline([a, c]).realize([big, small])
    np.testing.assert_array_equal(np.array(big), np.fromfunction(lambda j, i: i + 10 * j, (7, 5)))
    np.testing.assert_array_equal(np.array(small), np.fromfunction(lambda j, i: i - 10 * j, (4, 6)))


def test_reductions_share_a_loop() -> None:
    r, total, count, out = hl.RDom([(0, 10)], "r"), hl.Func("total"), hl.Func("count"), hl.Func("out")
    total[x], count[x] = 0, 0
    total[x] += r * x
    count[x] += r - x
    out[x] = 3 * total[x] + count[x + 1]
    total.compute_root(), count.compute_root()
    count.update(0).compute_with(total.update(0), r)
    k = np.arange(8)
    np.testing.assert_array_equal(interpreted(out, (8,)), 135 * k + 45 - 10 * (k + 1))


REFUSED: dict[str, tuple[Callable[[Funcs], object], list[str]]] = {
    "itself": (lambda s: s.at_root().f.update(0).compute_with(s.f, y), ["In schedule for f", "update(0)", "its own Func"]),
    "no loop": (lambda s: s.at_root().f.compute_with(hl.LoopLevel.root()), ["In schedule for f", "one of its loops"]),
    "a producer": (lambda s: (s.at_root().p.compute_root(), s.f.compute_with(s.p, y)), ["p", "f", "depends on another"]),
    "inlined": (lambda s: (s.f.compute_root(), s.g.compute_inline(), s.g.compute_with(s.f, y)), ["g", "inline", "compute_root()"]),
    "other places": (lambda s: (s.at_root().g.compute_at(s.out, y), s.g.compute_with(s.f, y)), ["f", "at root", "g", "at (out", "same place"]),
    "other kinds": (lambda s: s.at_root().g.parallel(y).compute_with(s.f, y), ["g", "loop y is parallel in one and for in the other"]),
    "no such loop": (lambda s: s.at_root().g.compute_with(s.f, xo), ["has no loop xo", "x, y, __outermost"]),
    "other depth": (lambda s: s.at_root().g.reorder(y, x).compute_with(s.f, y), ["y is loop number 3 of g", "number 2 of f"]),
    "other names": (lambda s: s.at_root().g.rename(y, yo).compute_with(s.f, x), ["called yo in one and y in the other"]),
    "no order": (lambda s: (s.at_root().g.compute_with(s.f.update(0), y), s.f.compute_with(s.g.update(0), y)), ["f", "g", "order"]),
    "specialize_fail": (lambda s: (s.at_root().g.compute_with(s.f, y), s.f.specialize_fail("no")), ["has specialize_fail()"]),
    "a specialization with other loops": (lambda s: (s.at_root().g.compute_with(s.f, y), s.f.specialize(hl.Param(hl.Bool(), "p_with")).parallel(y)),
                                          ["specialization of f", "other loops down to y"]),
    "a specialization that splits what is shared": (
        lambda s: (s.at_root().g.compute_with(s.f, y), s.g.specialize(hl.Param(hl.Bool(), "p_with")).split(y, y, yi, 2)), ["specialization of g", "down to y"]),
    "stages of one Func along a part": (lambda s: (s.at_root().each(lambda k: k.split(y, yo, yi, 4)), s.f.update(0).split(y, yo, yi, 4),
                                                   s.f.compute_with(s.g, yi), s.f.update(0).compute_with(s.g, yi)), ["share loop yo", "another iteration"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_share_says_why(name: str) -> None:
    schedule, words = REFUSED[name]
    s = Funcs()
    with pytest.raises(hl.CompileError) as caught:
        schedule(s)
        s.out.compile_jit()
    assert all(w in str(caught.value) for w in words), str(caught.value)


def test_what_one_stage_reads_is_computed_outside_of_deeper_shared_loops() -> None:
    h, p, q, out = (hl.Func(v) for v in ("h", "p", "q", "out"))
    h[x, y] = x + 10 * y
    p[x, y] = h[x, y] + 2
    q[x, y] = x * y
    out[x, y] = p[x, y] + q[x, y]
    p.compute_root(), q.compute_root(), h.compute_at(p, y).trace_stores()
    q.compute_with(p, x)
    events: list[hl.TraceEvent] = []
    with hl.handlers(trace=events.append):
        found = np.array(out.realize([5, 4]))
    np.testing.assert_array_equal(found, np.fromfunction(lambda j, i: i + 10 * j + 2 + i * j, (4, 5)))
    assert sum(e.event is hl.TraceEventCode.store for e in events) == 20


@pytest.mark.parametrize("more", [0, 2])
def test_stages_of_one_func_are_shifted_alike(more: int) -> None:
    f, g, out = (hl.Func(v) for v in ("f", "g", "out"))
    f[x, y] = x + y
    f[x, y] += y
    g[x, y] = 10
    out[x, y] = f[x, y] + g[x, y + more] * y
    f.compute_root().compute_with(g.compute_root(), y)
    f.update(0).compute_with(g, y, Align.AlignEnd)
    if more:  # g has rows that f has not, so the end is elsewhere than the start
        with pytest.raises(hl.PipelineError, match="share loop y by compute_with.*same alignment"):
            out.realize([4, 3])
    else:
        np.testing.assert_array_equal(np.array(out.realize([4, 3])), np.fromfunction(lambda j, i: i + 12 * j, (3, 4)))
