"""Guards around the body of a loop over loops become a shorter loop.

Before: `for (rows, 0, 16) { if (likely(16 * tasks + rows <= last)) { for x { ... } } }`, the tail of a split. After: `for (rows, 0,
min(16, last - 16 * tasks + 1)) { for x { ... } }`, one copy of the body where `partition_loops` would make two. Limits: conditions that the
loop variable is in by itself, and that read no memory; innermost loops keep their constant number of turns, which C compilers unroll by.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.simplify import simplify
from ..ir.simplify.linear import gather
from ..ir.traverse import Rec, free_variables, rewrite
from ..ir.types import INT32


def trim_loops(stmt: n.Stmt) -> n.Stmt:
    """Put what guards say of serial loops into their extents."""

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        body = rec(f.body)
        guard = body if f.kind is n.ForType.Serial and f.partition is n.Partition.Auto and isinstance(body, n.IfThenElse) else None
        if guard is None or guard.else_case is not None or not guard.then_case.mask & n.For.bit or b.as_int(f.min) is None:
            return n.For(f.name, f.min, f.extent, f.kind, f.partition, body)
        extent, rest = f.extent, []
        for c in _conjuncts(guard.condition):
            end = _end(strip_likely(c), f.name)
            if end is None:
                rest.append(c)
            else:
                extent = b.min_(extent, b.sub(end, f.min))
        if extent is f.extent:
            return n.For(f.name, f.min, f.extent, f.kind, f.partition, body)
        inside = n.IfThenElse(b.all_of(rest), guard.then_case) if rest else guard.then_case
        return n.For(f.name, f.min, simplify(extent), f.kind, f.partition, inside)

    return rewrite(stmt, {n.For: loop})


def _conjuncts(e: n.Expr) -> list[n.Expr]:
    if isinstance(e, n.Call) and e.name == "likely":
        return [b.likely(c) for c in _conjuncts(e.args[0])]
    return [*_conjuncts(e.a), *_conjuncts(e.b)] if isinstance(e, n.And) else [e]


def _end(c: n.Expr, name: str) -> n.Expr | None:
    """The first value of a variable for which a condition does not hold any more; None where it is no upper bound of the variable."""
    if not isinstance(c, (n.LT, n.LE)) or c.a.type is not INT32 or c.mask & (n.Call.bit | n.Load.bit):
        return None
    v = n.Variable(INT32, name)
    terms, _ = gather(n.Sub(c.a, c.b))
    if terms.get(v) != 1 or any(t is not v and name in free_variables(t) for t in terms):
        return None
    end = n.Sub(n.Add(n.Sub(c.b, c.a), v), b.i32(0 if isinstance(c, n.LT) else -1))
    return simplify(end)
