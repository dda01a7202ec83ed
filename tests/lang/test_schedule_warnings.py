"""What is said on standard output about odd schedules."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import halide_py as hl
from halide_py.lang.schedule_warnings import warn_about_schedules

x, xo, xi, y = hl.vars("x xo xi y")


def said(*outputs: hl.Func) -> list[str]:
    out = io.StringIO()
    with redirect_stdout(out):
        warn_about_schedules([f.function for f in outputs])
    return out.getvalue().splitlines()


def test_directives_on_an_inlined_func() -> None:
    f, g = hl.Func("sw_f"), hl.Func("sw_g")
    f[x] = x
    f.bound(x, 0, 127).align_bounds(x, 8, 1).split(x, xo, xi, 8).rename(xo, x)
    g[x] = f[x * x]
    assert said(g) == [
        "Warning: It is meaningless to split variable x of function sw_f into xo * 8 + xi because sw_f is scheduled inline.",
        "Warning: It is meaningless to rename variable xo of function sw_f to x because sw_f is scheduled inline.",
        "Warning: It is meaningless to bound dimension x of function sw_f to be within [0, 127] because the function is scheduled inline.",
        "Warning: It is meaningless to align the bounds of dimension x of function sw_f to have modulus/remainder [8, 1] "
        "because the function is scheduled inline."]
    assert said(g, f) == []
    f.compute_root()
    assert said(g) == []


def test_forgotten_updates() -> None:
    f = hl.Func("sw_u")
    f[x] = x
    f[0] = 1
    f[x] += 1
    assert said(f) == []
    f.update(1).vectorize(x, 4)
    (line,) = said(f)
    assert line.startswith("Warning: Update definition 0 of function sw_u has not been scheduled, even though some other definitions have been.")
    out = io.StringIO()
    with redirect_stdout(out):
        f.realize([4])
        f.realize([5])
    assert out.getvalue().count("Warning") == 1  # once a compilation
    f.update(0).unscheduled()
    assert said(f) == []
