"""Booleans and select. Chains of && (||) are sets: duplicates, contradictions and weaker bounds on one linear form vanish."""

from __future__ import annotations

from typing import Any

from .. import nodes as n
from ..build import as_int, const, is_false, is_likely, is_true
from . import linear
from .compare import chain, flatten
from .compile_rules import apply_rules
from .simplify import Simplifier, handles

_PROVABLE = (n.LT, n.LE)


@handles(n.And, n.Or)
def connective(s: Simplifier, e: Any) -> n.Expr:
    """a && b, a || b."""
    kind, t = type(e), e.type
    operands = flatten(s, e)
    absorbing, neutral = (is_false, is_true) if kind is n.And else (is_true, is_false)
    if any(absorbing(x) for x in operands):
        return const(t, kind is n.Or)
    operands = [x for x in operands if not neutral(x)]
    if not operands:
        return const(t, kind is n.And)
    if len(operands) == 1:
        return operands[0]
    if all(type(x) is n.Broadcast and x.lanes == operands[0].lanes for x in operands):  # type: ignore[attr-defined]
        return n.Broadcast(s.expr(chain(kind, [x.value for x in operands])), operands[0].lanes)  # type: ignore[attr-defined]
    present = set(operands)
    if any(type(x) is n.Not and x.a in present for x in operands):
        return const(t, kind is n.Or)
    opposite = n.Or if kind is n.And else n.And
    operands = [x for x in operands if type(x) is not opposite or not (x.a in present or x.b in present)]
    merged = _merge_bounds(kind, operands)
    if merged is None:
        return const(t, kind is n.Or)
    if len(merged) == 2:
        a, b = merged
        return apply_rules(s, e if a is e.a and b is e.b else kind(a, b))
    return chain(kind, merged)  # type: ignore[no-any-return]


def _merge_bounds(kind: Any, operands: list[n.Expr]) -> list[n.Expr] | None:
    """Of bounds on one linear form keep the deciding one; None if two of them decide the whole."""
    bounds: dict[frozenset[tuple[n.Expr, int]], tuple[int, n.Expr]] = {}
    dropped: set[n.Expr] = set()
    for x in operands:
        if type(x) not in _PROVABLE or not x.a.type.overflow_is_undefined():  # type: ignore[attr-defined]
            continue
        terms, c = linear.difference(x.a, x.b)  # type: ignore[attr-defined]
        if type(x) is n.LE:
            c -= 1
        key = frozenset(terms.items())
        twin = bounds.get(frozenset((e, -k) for e, k in terms.items()))
        if twin is not None and (c + twin[0] >= -1 if kind is n.And else c + twin[0] <= -1):
            return None
        before = bounds.get(key)
        if before is None:
            bounds[key] = (c, x)
        elif (c > before[0]) == (kind is n.And):  # form + c < 0: a larger c says more
            dropped.add(before[1])
            bounds[key] = (c, x)
        else:
            dropped.add(x)
    return [x for x in operands if x not in dropped] if dropped else operands


def negation(e: n.Expr) -> n.Expr | None:
    """The opposite of a condition where it is no larger than the condition; None otherwise."""
    kind = type(e)
    if kind is n.Not:
        return e.a  # type: ignore[attr-defined,no-any-return]
    if kind is n.EQ:
        return n.NE(e.a, e.b)  # type: ignore[attr-defined]
    if kind is n.NE:
        return n.EQ(e.a, e.b)  # type: ignore[attr-defined]
    if kind in _PROVABLE and not e.a.type.is_float():  # type: ignore[attr-defined]
        return (n.LE if kind is n.LT else n.LT)(e.b, e.a)  # type: ignore[attr-defined]
    value = as_int(e)
    return None if value is None else const(e.type, not value)


def is_lazy(e: n.Expr, conjunction: bool) -> bool:
    """Whether this is `a && b` with b asked only where a holds, `if_then_else(a, b, false)`; or `a || b`, `if_then_else(a, true, b)`."""
    if type(e) is not n.Call or e.name != "if_then_else" or len(e.args) != 3:
        return False
    return is_false(e.args[2]) if conjunction else is_true(e.args[1])


def conjuncts(e: n.Expr, holds: bool) -> list[n.Expr]:
    """Scalar conditions that all hold where `e` does (or does not), without marks of what is likely."""
    out: list[n.Expr] = []
    stack = [(e, holds)]
    while stack:
        c, h = stack.pop()
        if is_likely(c):
            stack.append((c.args[0], h))  # type: ignore[attr-defined]
        elif type(c) is (n.And if h else n.Or):
            stack += [(c.b, h), (c.a, h)]
        elif is_lazy(c, h):
            stack += [(c.args[2 if not h else 1], h), (c.args[0], h)]  # type: ignore[attr-defined]
        elif type(c) is n.Not:
            stack.append((c.a, not h))
        elif type(c) is n.Broadcast:
            stack.append((c.value, h))
        elif c.type.is_scalar():
            out.append(c if h else negation(c) or n.Not(c))
    return out


@handles(n.Not)
def negations(s: Simplifier, e: n.Not) -> n.Expr:
    """!a."""
    a = s.expr(e.a)
    opposite = negation(a)
    if opposite is not None:
        return s.expr(opposite)
    if type(a) is n.Broadcast:
        return n.Broadcast(s.expr(n.Not(a.value)), a.lanes)
    if type(a) is n.And or type(a) is n.Or:
        sides = negation(a.a), negation(a.b)
        if sides[0] is not None and sides[1] is not None:
            return s.expr((n.Or if type(a) is n.And else n.And)(sides[0], sides[1]))
    if type(a) is n.Call and a.name in ("likely", "likely_if_innermost"):
        return s.expr(n.Not(a.args[0]))
    return e if a is e.a else n.Not(a)


@handles(n.Select)
def selects(s: Simplifier, e: n.Select) -> n.Expr:
    """select(condition, a, b)."""
    c = s.expr(e.condition)
    if is_true(c):
        return s.expr(e.true_value)
    if is_false(c):
        return s.expr(e.false_value)
    a, b = s.expr(e.true_value), s.expr(e.false_value)
    if a is b:
        return a
    if type(c) is n.Broadcast and c.value.type.is_scalar():
        c = c.value
    if c.type.is_scalar() and type(a) is n.Broadcast and type(b) is n.Broadcast and a.lanes == b.lanes:
        return n.Broadcast(s.expr(n.Select(c, a.value, b.value)), a.lanes)
    if type(c) is n.Not:
        c, a, b = c.a, b, a
    elif type(c) is n.NE:
        c, a, b = n.EQ(c.a, c.b), b, a
    if b is const(b.type, 0) and all(type(x) is n.Load and x.predicate is c for x in ((a.a, a.b) if type(a) is n.Mul else (a,))):
        return a  # what is not loaded is 0, and so is the product of two
    same = c is e.condition and a is e.true_value and b is e.false_value
    return apply_rules(s, e if same else n.Select(c, a, b))
