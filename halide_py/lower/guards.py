"""Statements and values under a condition, with the condition moved into the predicates of their memory accesses."""

from __future__ import annotations

from collections.abc import Collection

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import N, Rec, mentions, nodes_of, rewrite, substitute


def has_effects(root: n.Node, traces: bool = True) -> bool:
    """Whether something happens besides loads and stores (a C function with effects, a print, an error): it cannot be predicated.
    Unless `traces`, reports to the tracer do not count: they take vectors, but no predicate."""
    if root.mask & n.Assert.bit:
        return True
    harmless = () if traces else ("trace", "return_second")
    return any(c.call_type in (n.CallType.Extern, n.CallType.Intrinsic) and c.name not in harmless for c in nodes_of(root, n.Call))


def predicate(root: N, condition: n.Expr, but: Collection[n.Expr] = ()) -> N:
    """`root` with every load and store done only where the scalar `condition` holds, but for those of some calls."""

    def guarded(p: n.Expr) -> n.Expr:
        return b.and_(p, b.broadcast(condition, p.type.lanes()))

    def load(e: n.Load, rec: Rec) -> n.Expr:
        return n.Load(e.type, e.name, rec(e.index), guarded(rec(e.predicate)), e.param)

    def store(s: n.Store, rec: Rec) -> n.Stmt:
        return n.Store(s.name, rec(s.value), rec(s.index), guarded(rec(s.predicate)), s.param)

    def call(c: n.Call, rec: Rec) -> n.Expr:
        return c if c in but else c.map_children(rec)

    return rewrite(root, {n.Load: load, n.Store: store, **({n.Call: call} if but else {})})


def first_iteration(condition: n.Expr) -> tuple[n.Variable, n.Expr] | None:
    """(x, a) for the guard `a <= x` around what does not run in the iterations of loop x that fill a sliding window."""
    c = condition.args[0] if b.is_likely(condition) else condition  # type: ignore[attr-defined]
    if not isinstance(c, (n.LE, n.LT)) or not isinstance(c.b, n.Variable) or mentions(c.a, c.b.name):
        return None
    return c.b, c.a if isinstance(c, n.LE) else b.add(c.a, b.const(c.a.type, 1))


def held_back(s: n.Stmt, name: str) -> n.Stmt:
    """`s` with what does not run in the first iterations of loop `name` in terms of max(loop variable, first iteration): so much is
    known under its guard."""

    def guard(i: n.IfThenElse, rec: Rec) -> n.Stmt:
        found = first_iteration(i.condition)
        if found is None or found[0].name != name:
            return i.map_children(rec)  # type: ignore[no-any-return]
        then_case = substitute({name: b.max_(*found)}, rec(i.then_case))
        return n.IfThenElse(i.condition, then_case, None if i.else_case is None else rec(i.else_case))

    return rewrite(s, {n.IfThenElse: guard})
