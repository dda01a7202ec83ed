"""Supports: where what a gradient rule gives can be other than zero, from where the adjoints it is made of are.

What an extern stage reads, only its C function knows; but its rule is linear in the adjoint, so `d[x] = adjoint[x + 1] * w[x]` is zero
unless x + 1 is in the adjoint's region. Each coordinate of each read is solved for each dimension. Limits: nothing is known of what
a C function in the rule computes, nor of dimensions that only clamped or data-dependent coordinates mention.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.interval import Interval, bounds_of_expr
from ..ir.simplify import linear, simplify
from ..ir.traverse import free_variables, nodes_of
from ..lower.environment import definition_roots
from .stages import Region, is_own, union, usable


def support(f: Function, known: Mapping[str, Region]) -> Region | None:
    """The region outside of which the values of `f` are those for adjoints of zero, None if it depends on none; `known`: the adjoints'
    regions by name."""
    if f.name in known:
        return known[f.name]
    everywhere: Region = (Interval.everything(),) * len(f.args)
    found: Region | None = None
    for d in f.stages():
        for c in nodes_of(definition_roots(d), n.Call):
            if is_own(f, c):
                here = everywhere if found is not None and c.args != d.args else None
            elif not isinstance(c.func, Function):
                here = None
            else:
                inner = support(c.func, known)
                if f.extern is not None:
                    here = inner if inner is None or f.extern.in_place else everywhere
                else:
                    here = None if inner is None else _places(f, d, c, inner)
            found = here if found is None else found if here is None else union(found, here)
    return found


def _places(f: Function, d: Definition, c: n.Call, region: Region) -> Region:
    """Where a definition reads a region by one call."""
    scope = {r.name: Interval(r.min, simplify(b.sub(b.add(r.min, r.extent), b.i32(1)))) for r in (d.rdom.variables if d.rdom else ())}
    out: list[Interval] = []
    for name, written in zip(f.args, d.args):
        if not (isinstance(written, n.Variable) and written.name == name):
            out.append(usable(bounds_of_expr(written, scope)))
            continue
        inside = Interval.everything()
        for e, i in zip(c.args, region):
            solved = _solved(e, written, i, scope)
            inside = Interval(solved.min if inside.min is None else inside.min, solved.max if inside.max is None else inside.max)
        out.append(usable(inside))
    return tuple(out)


def _solved(e: n.Expr, v: n.Variable, i: Interval, scope: Mapping[str, Interval]) -> Interval:
    """An interval of `v` outside of which `e` is not in `i`."""
    terms, constant = linear.gather(e)
    own = [t for t in terms if v.name in free_variables(t)]
    if len(own) != 1:
        return Interval.everything()
    (term,) = own
    factor = terms.pop(term)
    rest = bounds_of_expr(linear.rebuild(e.type, terms, constant), scope)
    low = None if i.min is None or rest.max is None else b.sub(i.min, rest.max)
    high = None if i.max is None or rest.min is None else b.sub(i.max, rest.min)
    if factor < 0:
        low, high = (None if end is None else b.sub(b.i32(0), end) for end in (high, low))
    if abs(factor) > 1:
        low, high = (None if end is None else b.div(end, b.i32(abs(factor))) for end in (low, high))
    if term is v:
        return Interval(None if low is None else simplify(low), None if high is None else simplify(high))
    k = b.as_int(term.b) if isinstance(term, n.Div) else None
    if k is None or k < 1:
        return Interval.everything()
    last = None if high is None else b.add(b.mul(high, b.i32(k)), b.i32(k - 1))
    return _solved(term.a, v, Interval(None if low is None else b.mul(low, b.i32(k)), last), scope)  # type: ignore[attr-defined]
