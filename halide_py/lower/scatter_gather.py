"""Several reads and several writes of one update: `f(scatter(a, b)) = gather(v, w)` becomes one store after the other.

Before: a Provide with calls of `gather` and `scatter`. After: a Provide for each alternative, in order, under lets of what was read of
the Func itself: all is read before anything is written. What stands outside of gather and scatter is the same for every store.
Limits: undef cannot be one of several. Behaviour: Halide's scatter() and gather(), IROperator.h.
"""

from __future__ import annotations

import itertools

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import Rec, mentions, nodes_of, rewrite

_BITS = n.symbol_bit("gather") | n.symbol_bit("scatter")


def is_several(c: n.Call) -> bool:
    """Whether a call is a gather or scatter."""
    return c.name in ("gather", "scatter") and c.call_type is n.CallType.PureIntrinsic


def _alternative(e: n.Expr, k: int) -> n.Expr:
    """`e` with the k-th Expr in the place of each gather and scatter."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        out: n.Expr = rec(c.args[k]) if is_several(c) else c.map_children(rec)
        return out

    return rewrite(e, {n.Call: call}, _BITS)


def expand_scatters(stmt: n.Stmt) -> n.Stmt:
    """`stmt` without gather and scatter. Raises CompileError for undef among the values of one."""
    count = itertools.count()

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        found = [c for c in nodes_of((*p.args, *p.values), n.Call) if is_several(c)]
        if not found:
            return p
        bindings: list[tuple[str, n.Expr]] = []

        def read_first(e: n.Expr) -> n.Expr:
            if not mentions(e, p.name):
                return e
            bindings.append((f"{p.name}.gathered{next(count)}", e))
            return n.Variable(e.type, bindings[-1][0])

        if any(c.name == "undef" for c in nodes_of((*p.args, *p.values), n.Call)):
            raise CompileError(f"The update of Func {p.name} that uses {found[0].name}() stores undef(); write one update for each store "
                               "instead", p.name)
        stores: list[n.Stmt] = []
        for k in range(len(found[0].args)):
            args, values = (tuple(_alternative(e, k) for e in some) for some in (p.args, p.values))
            if k:  # nothing is written before the first store
                args, values = tuple(map(read_first, args)), tuple(map(read_first, values))
            stores.append(n.Provide(p.name, values, args, p.predicate))
        return b.let_stmts(bindings, b.block(stores))

    return rewrite(stmt, {n.Provide: provide}, _BITS)
