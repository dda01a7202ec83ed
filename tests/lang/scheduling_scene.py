"""A pipeline on which every directive has an effect, for the table in `scheduling_api.txt`, in this package (`hl`) or in Halide's own."""

from __future__ import annotations

from typing import Any


def scene(hl: Any) -> dict[str, Any]:
    """All names that a line of the table may use: the public ones, Vars, and those of a new pipeline. `q` is the Pipeline of output `h`, which reads
    a stencil `g` (of `e`), a pointwise `k` and a reduction `t` (of `w`), all made of `f`; `a` is apart."""
    x, y, xo, yo, zo, xi, yi, zi, u, v = map(hl.Var, ["x", "y", "xo", "yo", "zo", "xi", "yi", "zi", "u", "v"])
    im, p = hl.ImageParam(hl.UInt(8), 2, "im"), hl.Param(hl.Int(32), "p", 1)
    a, w, e, f, g, k, t, h = map(hl.Func, ["a", "w", "e", "f", "g", "k", "t", "h"])
    r, late = hl.RDom([(0, 8), (0, 6)], "r"), hl.LoopLevel()
    a[x, y] = x + y
    w[x] = x * 3
    f[x, y] = hl.cast(hl.Int(32), im[x, y]) * p
    e[x, y] = f[x, y] + 1
    g[x, y] = e[x, y - 1] + e[x, y + 1]
    k[x, y] = f[x, y] * 2
    t[x] = 0
    t[x] += f[x, r.x] * w[r.y]
    h[x, y] = g[x, y] + k[x, y] + t[x]
    for stage in (f, g, k, t):
        stage.compute_root()
    q = hl.Pipeline(h)
    return {**{name: getattr(hl, name) for name in dir(hl) if not name.startswith("__")}, **locals()}


def scheduled(hl: Any, *directives: str) -> dict[str, Any]:
    """The names of a new scene after these directives, each some calls with `; ` between them."""
    names = scene(hl)
    for text in directives:
        for call in filter(None, text.split("; ")):
            eval(call, names)
    return names
