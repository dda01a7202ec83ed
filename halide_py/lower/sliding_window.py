"""Sliding window: where a Func is stored outside a serial loop but computed inside it, compute only what is new.

IR before: inside `for y`, `let g.s0.y.min = y - 1, g.s0.y.max = y + 1` around `Produce g`. After:
`g.s0.y.min = select(likely(y > first), previous max + 1, y - 1)`. Needs: exactly one dimension of the region moves with
the loop, its ends never go back, and every stage of g keeps that dimension a pure variable. A region that falls is left
alone (correct, recomputed). Source: Ragan-Kelley et al., PLDI 2013, section 4.3; Halide's src/SlidingWindow.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.simplify import prove, simplify
from ..ir.traverse import Rec, free_variables, mentions, nodes_of, rewrite, substitute
from .apply_splits import var
from .environment import Environment


def monotonic(e: n.Expr, name: str) -> int | None:
    """1: `e` never falls as variable `name` grows; -1: never rises; 0: does not depend on it; None: unknown."""
    if not mentions(e, name):
        return 0
    if isinstance(e, n.Variable):
        return 1
    if isinstance(e, (n.Add, n.Min, n.Max)):
        return _join(monotonic(e.a, name), monotonic(e.b, name))
    if isinstance(e, n.Sub):
        right = monotonic(e.b, name)
        return _join(monotonic(e.a, name), None if right is None else -right)
    if isinstance(e, (n.Mul, n.Div)):
        factor, left = b.as_int(e.b), monotonic(e.a, name)
        if isinstance(e, n.Mul) and factor is None:
            factor, left = b.as_int(e.a), monotonic(e.b, name)
        return None if factor is None or left is None else left * ((factor > 0) - (factor < 0))
    if isinstance(e, n.Select) and monotonic(e.condition, name) == 0:
        return _join(monotonic(e.true_value, name), monotonic(e.false_value, name))
    if isinstance(e, n.Call) and e.name in ("likely", "likely_if_innermost"):
        return monotonic(e.args[0], name)
    return None


def _join(a: int | None, c: int | None) -> int | None:
    if a is None or c is None or a * c < 0:
        return None
    return a or c


def slidable_dims(f: Function) -> list[str]:
    """The dimensions that every stage of `f` treats point by point: always written and read back at the pure Var itself."""
    dims = []
    for d, v in enumerate(f.args if f.extern is None else ()):
        here = [u.args[d] for u in f.updates]
        for u in f.updates:
            here += [
                c.args[d]
                for c in nodes_of([*u.values, *u.args, u.predicate], n.Call)
                if c.name == f.name and c.call_type is n.CallType.Halide
            ]
        if all(isinstance(a, n.Variable) and a.name == v for a in here):
            dims.append(v)
    return dims


@dataclass
class _Lets:
    """The lets in scope at a production, expanded on demand down to the loop being slid over."""

    values: dict[str, n.Expr]

    def expand(self, e: n.Expr) -> n.Expr:
        for _ in range(len(self.values) + 1):
            inside = {k: self.values[k] for k in free_variables(e) if k in self.values}
            if not inside:
                break
            e = simplify(substitute(inside, e))
        return e


def _slide(f: Function, dims: list[str], op: n.For, lets: _Lets, monotone_guards: bool) -> dict[str, n.Expr]:
    """New values for the lets that define the region of `f`, when it can slide along loop `op`; empty when not."""
    if not monotone_guards:
        return {}
    moving: list[tuple[str, n.Expr, n.Expr]] = []
    for v in f.args:  # as asked of the last stage: regions of earlier ones may follow from what later ones overshoot
        p = f"{f.name}.s{len(f.updates)}.{v}"
        suffix = "_required" if p + ".min_required" in lets.values else ""
        if p + ".min" not in lets.values:
            return {}
        low, high = lets.expand(lets.values[p + ".min" + suffix]), lets.expand(lets.values[p + ".max" + suffix])
        if mentions(low, op.name) or mentions(high, op.name):
            moving.append((v, low, high))
    if len(moving) != 1 or moving[0][0] not in dims:
        return {}
    v, low, high = moving[0]
    if any(f"{f.name}.s{index}.{v}.min_required" in lets.values for index in range(len(f.updates))):
        return {}  # a stage that computes more than is asked for would reset values its updates have finished
    if monotonic(low, op.name) not in (0, 1) or monotonic(high, op.name) not in (0, 1):
        return {}
    loop = var(op.name)
    fresh = simplify(b.add(substitute({op.name: b.sub(loop, b.i32(1))}, high), b.i32(1)))
    if prove(b.le(_steady(fresh), _steady(low))):
        return {}  # iterations do not overlap, but for a tail that is moved inwards
    later = b.likely(n.LT(op.min, loop))
    start = n.Select(later, b.max_(fresh, low) if not prove(b.le(low, fresh)) else fresh, low)
    out: dict[str, n.Expr] = {}
    for index in range(len(f.stages())):
        p = f"{f.name}.s{index}.{v}"
        out[p + (".min_required" if p + ".min_required" in lets.values else ".min")] = start
    return out


def _steady(e: n.Expr) -> n.Expr:
    """`e` in the steady state of its loops: `min(likely(a), b)` is `a`."""

    def extremum(m: n.Min | n.Max, rec: Rec) -> n.Expr:
        for side in (m.a, m.b):
            if isinstance(side, n.Call) and side.name in ("likely", "likely_if_innermost"):
                return rec(side)  # type: ignore[no-any-return]
        return m.map_children(rec)  # type: ignore[no-any-return]

    def call(c: n.Call, rec: Rec) -> n.Expr:
        return rec(c.args[0]) if c.name in ("likely", "likely_if_innermost") else c.map_children(rec)  # type: ignore[no-any-return]

    return simplify(rewrite(e, {n.Min: extremum, n.Max: extremum, n.Call: call}))


def _slide_along(f: Function, dims: list[str], op: n.For) -> n.Stmt:
    """The loop with the production of `f` in its body reduced to what is new in each iteration."""
    lets: dict[str, n.Expr] = {}

    def search(s: n.Stmt, monotone: bool) -> tuple[n.Stmt, dict[str, n.Expr]]:
        """(rewritten statement, new let values still to be placed further out)."""
        if not s.mask & n.Produce.bit:
            return s, {}
        if isinstance(s, n.Produce):
            if s.name == f.name:
                return s, _slide(f, dims, op, _Lets(lets), monotone)
            body, new = search(s.body, monotone)
            return n.Produce(s.name, body), new
        if isinstance(s, n.HoistedStorage):
            body, new = search(s.body, monotone)
            return n.HoistedStorage(s.name, body), new
        if isinstance(s, n.LetStmt):
            lets[s.name] = s.value
            body, new = search(s.body, monotone)
            value = new.pop(s.name, s.value)
            return n.LetStmt(s.name, value, body), new
        if isinstance(s, n.For):
            body, new = search(s.body, monotone)
            return n.For(s.name, s.min, s.extent, s.kind, s.partition, body), new
        if isinstance(s, n.IfThenElse):
            then, new = search(s.then_case, monotone and _is_tail_guard(s.condition))
            return n.IfThenElse(s.condition, then, s.else_case), new
        if isinstance(s, n.Realize):
            body, new = search(s.body, monotone)
            return n.Realize(s.name, s.types, s.memory, s.mins, s.extents, s.condition, body), new
        if isinstance(s, n.Block):
            stmts, found = [], {}
            for one in s.stmts:
                one, new = search(one, monotone)
                stmts.append(one)
                found.update(new)
            return n.Block(tuple(stmts)), found
        return s, {}

    body, _ = search(op.body, True)
    return op if body is op.body else n.For(op.name, op.min, op.extent, op.kind, op.partition, body)


def _is_tail_guard(condition: n.Expr) -> bool:
    """Whether a guard only cuts off the end of a split (once false it stays false)."""
    return isinstance(condition, n.Call) and condition.name == "likely" and isinstance(condition.args[0], n.LE)


def sliding_window(s: n.Stmt, env: Environment) -> n.Stmt:
    """`s` with every Func that is stored outside the serial loop it is computed in sliding along it where it can."""

    def over(f: Function, dims: list[str], body: n.Stmt) -> n.Stmt:
        def loop(op: n.For, rec: Rec) -> n.Stmt:
            if not any(p.name == f.name for p in nodes_of(op.body, n.Produce)):
                return op
            if op.kind in (n.ForType.Serial, n.ForType.Unrolled):
                op = _slide_along(f, dims, op)  # type: ignore[assignment]
            return op.map_children(rec)  # type: ignore[no-any-return]

        return rewrite(body, {n.For: loop}, n.symbol_bit(f.name))

    def realized(r: n.Realize, rec: Rec) -> n.Stmt:
        # Producers are realized outside of their consumers: slide them while the consumers' regions are still whole.
        f = env[r.name]
        produced_here = isinstance(r.body, n.Block) and isinstance(r.body.stmts[0], n.Produce) and r.body.stmts[0].name == f.name
        dims = [] if produced_here else slidable_dims(f)
        body = over(f, dims, r.body) if dims else r.body
        body = rec(body)
        return r if body is r.body else n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, body)

    return rewrite(s, {n.Realize: realized})
