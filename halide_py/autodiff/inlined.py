"""Funcs that data reads at places without bounds: `warped[x] = repeat_edge(image)[x + flow[x]]`.

Such a Func is computed inline, since nothing says over which region, and so it has to be in derivatives: the stage that reads it is taken
as if it read what the Func reads (`image` at a clamped place), which the adjoint is scattered to. The Func has no derivative of its own:
there is no region that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import FuncValues, bounds_of_expr
from ..ir.traverse import Rec, nodes_of, rewrite
from ..lower.environment import definition_roots
from ..lower.inline import is_inlined, substitute_vars

Substitute = Callable[[n.Expr], n.Expr]


def read_without_bounds(functions: Iterable[Function], outputs: set[str], values: FuncValues) -> frozenset[Function]:
    """The inline Funcs of floats that are called at places which data says, and nothing limits. `values`: what values of Funcs can be."""
    found: set[Function] = set()
    functions = list(functions)
    while True:
        put_in = with_bodies(found)
        new = {
            c.func
            for f in functions if f not in found
            for c in nodes_of([put_in(e) for d in f.stages() for e in definition_roots(d)], n.Call)
            if _may_be_inlined(c, outputs) and c.func not in found and not all(_is_bounded(a, values) for a in c.args)
        }
        if not new:
            return frozenset(found)
        found |= new


def _may_be_inlined(c: n.Call, outputs: set[str]) -> bool:
    f = c.func
    return isinstance(f, Function) and c.type.is_float() and f.gradient is None and is_inlined(f, outputs)


def _is_bounded(index: n.Expr, values: FuncValues) -> bool:
    """Whether an index has bounds while the variables in it have."""
    if not any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(index, n.Call)):
        return True
    return bounds_of_expr(index, {}, values).is_bounded()


def with_bodies(inlined: Container[Function]) -> Substitute:
    """A function that puts the values of these Funcs in place of calls of them."""
    def call(c: n.Call, rec: Rec) -> n.Expr:
        new = c.map_children(rec)
        f = c.func
        if not isinstance(f, Function) or f not in inlined:
            return new  # type: ignore[no-any-return]
        assert f.pure is not None
        return rec(substitute_vars(dict(zip(f.args, new.args)), f.pure.values[c.value_index]))  # type: ignore[no-any-return]

    return lambda e: rewrite(e, {n.Call: call}) if inlined else e
