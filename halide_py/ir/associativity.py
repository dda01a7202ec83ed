"""Updates as combinations: `f(x) = f(x) op e` with an associative op, found by their form, or the reason why not.

For an update `f(args) = values` this gives, of each element of the tuple, the part `e` that is free of the Func, an identity of the
operation, and the operation itself as expressions of two tuples. What `rfactor`, `atomic` and the order of RVars ask.

* Elements that depend on their own old value only: sums and differences, products, minima and maxima, `and`, `or`, bitwise `&`, `|`, `^`,
saturating sums of
  unsigned integers, each also inside `select(c, ..., f(x))` with a condition free of the Func.
* All elements chosen by one comparison, `select(f(x)[0] < e0, e, f(x))`: arg max and arg min. Ties go to the first, so the order matters.
* Products of complex numbers.

Float operations count as associative, as in Halide, although they round. Source: Halide's AssociativeOpsTable.cpp has the operations; forms
are our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import build as b
from . import nodes as n
from .function import Definition, Function
from .intrinsics import intrinsic
from .traverse import mentions
from .types import Type

Exprs = tuple[n.Expr, ...]
_Pair = Callable[[n.Expr, n.Expr], n.Expr]


@dataclass(frozen=True)
class Combination:
    """An update as f(args) = combine(f(args), parts)."""

    parts: Exprs
    identity: Exprs
    combine: Callable[[Exprs, Exprs], Exprs]
    commutative: bool


@dataclass(frozen=True)
class _Operation:
    combine: _Pair
    identity: Callable[[Type], n.Expr]


def _extreme(lowest: bool) -> Callable[[Type], n.Expr]:
    def value(t: Type) -> n.Expr:
        if t.is_float():
            return b.const(t, -math.inf if lowest else math.inf)
        return b.const(t, t.min_value() if lowest else t.max_value())

    return value


def _constant(value: int) -> Callable[[Type], n.Expr]:
    return lambda t: b.const(t, value)


def _named(name: str) -> _Pair:
    return lambda x, y: intrinsic(name, x.type, x, y)


_NODES: dict[type[n.Expr], _Operation] = {
    n.Add: _Operation(n.Add, _constant(0)), n.Mul: _Operation(n.Mul, _constant(1)), n.Min: _Operation(n.Min, _extreme(False)),
    n.Max: _Operation(n.Max, _extreme(True)), n.And: _Operation(n.And, _constant(1)), n.Or: _Operation(n.Or, _constant(0)),
}
_CALLS = {
    "bitwise_and": _Operation(_named("bitwise_and"), lambda t: b.const(t, -1)),
    "bitwise_or": _Operation(_named("bitwise_or"), _constant(0)),
    "bitwise_xor": _Operation(_named("bitwise_xor"), _constant(0)),
    "saturating_add": _Operation(_named("saturating_add"), _constant(0)),
}
_KEEP = _Operation(lambda x, y: x, _constant(0))


def combination(f: Function, d: Definition) -> Combination | str:
    """The update `d` of `f` as a combination, or the reason why it is not seen to be one."""
    if any(mentions(e, f.name) for e in d.args):
        return f"the place it updates depends on the values of {f.name}"
    if mentions(d.predicate, f.name):
        return f"its condition depends on the values of {f.name}"
    own = tuple(n.Call(t, f.name, d.args, n.CallType.Halide, None, i) for i, t in enumerate(f.types))
    if len(own) > 1 and any(mentions(_without(e, me), f.name) for e, me in zip(d.values, own)):
        found = _chosen(f.name, d.values, own) or _complex(f.name, d.values, own)
        return (
            found
            or "its elements depend on each other in a way that is not known to be associative; known are elements that depend on "
            "themselves only, arg max and arg min by one strict comparison, and complex products"
        )
    parts: list[n.Expr] = []
    operations: list[_Operation] = []
    for i, (e, me) in enumerate(zip(d.values, own)):
        one = _single(f.name, e, me)
        if one is None:
            element = f"element {i} of its new value" if len(own) > 1 else "its new value"
            known = "(+, -, *, min, max, and, or, &, |, ^)"
            return f"{element} is not the old value combined with something free of {f.name} by an associative operation {known}"
        operations.append(one[0])
        parts.append(one[1])

    def combine(x: Exprs, y: Exprs) -> Exprs:
        return tuple(op.combine(p, q) for op, p, q in zip(operations, x, y))

    return Combination(tuple(parts), tuple(op.identity(t) for op, t in zip(operations, f.types)), combine, True)


def _without(e: n.Expr, me: n.Call) -> n.Expr:
    """`e` with `me` replaced by 0: what is left of the Func then are its other elements."""
    if e is me:
        return b.const(e.type, 0)
    if not e.symbols & me.symbols or isinstance(e, n.Call) and e.name == me.name:
        return e
    changed: n.Expr = e.map_children(lambda k: _without(k, me))
    return changed


# ---------------------------------------------------------------------------------------------------------------
# One element by itself


def _single(f: str, e: n.Expr, me: n.Expr) -> tuple[_Operation, n.Expr] | None:
    """(operation, part) with e = operation(me, part)."""
    if e is me:
        return _KEEP, b.const(e.type, 0)
    if isinstance(e, n.Select):
        return _extremum(f, e, me) or _guarded(f, e, me)
    if isinstance(e, n.Call) and e.call_type is n.CallType.PureIntrinsic and e.name in _CALLS:
        if e.name == "saturating_add" and e.type.is_int():
            return None  # clamping at both ends depends on the order
        op, operands = _CALLS[e.name], _operands(e)
    elif isinstance(e, (n.Add, n.Sub)):
        return _sum(f, e, me)
    elif type(e) in _NODES:
        op, operands = _NODES[type(e)], _operands(e)
    else:
        return None
    rest = [x for x in operands if x is not me]
    if len(rest) != len(operands) - 1 or any(mentions(x, f) for x in rest):
        return None
    part = rest[0]
    for x in rest[1:]:
        part = op.combine(part, x)
    return op, part


def _operands(e: n.Expr) -> list[n.Expr]:
    """The operands of a chain of one operation."""
    out: list[n.Expr] = []
    stack = [e]
    while stack:
        x = stack.pop()
        same = type(x) is type(e) and (not isinstance(x, n.Call) or x.name == e.name)  # type: ignore[attr-defined]
        if same:
            stack += list(x.children())[::-1]
        else:
            out.append(x)
    return out


def _sum(f: str, e: n.Expr, me: n.Expr) -> tuple[_Operation, n.Expr] | None:
    plus: list[n.Expr] = []
    minus: list[n.Expr] = []
    stack = [(e, plus, minus)]
    while stack:
        x, same, other = stack.pop()
        if isinstance(x, n.Add):
            stack += [(x.b, same, other), (x.a, same, other)]
        elif isinstance(x, n.Sub):
            stack += [(x.b, other, same), (x.a, same, other)]
        else:
            same.append(x)
    if sum(x is me for x in plus) != 1 or any(mentions(x, f) for x in (*plus, *minus) if x is not me):
        return None
    plus = [x for x in plus if x is not me]
    total = plus[0] if plus else b.const(e.type, 0)
    for x in plus[1:]:
        total = n.Add(total, x)
    for x in minus:
        total = n.Sub(total, x)
    return _NODES[n.Add], total


def _guarded(f: str, e: n.Select, me: n.Expr) -> tuple[_Operation, n.Expr] | None:
    """select(c, me op part, me), c free of the Func: the part is the identity where c does not hold."""
    if mentions(e.condition, f) or me not in (e.true_value, e.false_value):
        return None
    inner = _single(f, e.false_value if e.true_value is me else e.true_value, me)
    if inner is None or inner[0] is _KEEP:
        return inner
    op, part = inner
    identity = op.identity(e.type)
    values = (identity, part) if e.true_value is me else (part, identity)
    return op, n.Select(e.condition, *values)


def _extremum(f: str, e: n.Select, me: n.Expr) -> tuple[_Operation, n.Expr] | None:
    """select(me < part, part, me) and its kin, of integers (floats differ for NaN)."""
    taken = _taken(e, me)
    if taken is None or e.type.is_float():
        return None
    order = _order(f, taken[0], me)
    if order is None or order[1] is not taken[1]:
        return None
    return _NODES[n.Max if order[0] > 0 else n.Min], taken[1]


# ---------------------------------------------------------------------------------------------------------------
# Elements that depend on each other

_NEGATION: dict[type[n.Expr], type[n.Expr]] = {n.LT: n.GE, n.LE: n.GT, n.GT: n.LE, n.GE: n.LT}


def _taken(e: n.Select, me: n.Expr) -> tuple[n.Expr, n.Expr] | None:
    """(condition, value) of what replaces `me`."""
    if e.false_value is me:
        return e.condition, e.true_value
    if e.true_value is me and type(e.condition) in _NEGATION and not e.condition.a.type.is_float():  # type: ignore[attr-defined]
        return _NEGATION[type(e.condition)](e.condition.a, e.condition.b), e.false_value  # type: ignore[attr-defined, call-arg]
    return None


def _order(f: str, c: n.Expr, me: n.Expr) -> tuple[int, n.Expr, bool] | None:
    """(1 when larger values win, -1 when smaller ones do; what is compared with `me`; whether strictly)."""
    if not isinstance(c, (n.LT, n.LE, n.GT, n.GE)) or me not in (c.a, c.b):
        return None
    other = c.b if c.a is me else c.a
    if mentions(other, f):
        return None
    larger = isinstance(c, (n.LT, n.LE)) == (c.a is me)
    return (1 if larger else -1), other, isinstance(c, (n.LT, n.GT))


def _chosen(f: str, values: Sequence[n.Expr], own: Sequence[n.Expr]) -> Combination | None:
    """All elements are taken together where one of them compares strictly better."""
    conditions: set[n.Expr] = set()
    parts: list[n.Expr | None] = []
    for e, me in zip(values, own):
        taken = _taken(e, me) if isinstance(e, n.Select) else None
        if taken is not None:
            conditions.add(taken[0])
        parts.append(taken and taken[1])
    found = [(k, order) for c in conditions for k, me in enumerate(own) if (order := _order(f, c, me)) is not None]
    if len(conditions) != 1 or len(found) != 1 or not found[0][1][2]:
        return None
    key, (sign, compared, _) = found[0]
    if (
        parts[key] is None
        and isinstance(values[key], (n.Max if sign > 0 else n.Min))
        and set(values[key].children()) == {own[key], compared}
    ):
        parts[key] = compared
    if parts[key] is not compared or any(p is None or mentions(p, f) for p in parts):
        return None

    def combine(x: Exprs, y: Exprs) -> Exprs:
        better = n.LT(x[key], y[key]) if sign > 0 else n.LT(y[key], x[key])
        return tuple(n.Select(better, q, p) for p, q in zip(x, y))

    identity = tuple(_extreme(sign > 0)(me.type) if k == key else b.const(me.type, 0) for k, me in enumerate(own))
    return Combination(tuple(p for p in parts if p is not None), identity, combine, False)


def _complex(f: str, values: Sequence[n.Expr], own: Sequence[n.Expr]) -> Combination | None:
    """(re, im) = (re * x - im * y, re * y + im * x)."""
    if len(values) != 2 or values[0].type is not values[1].type or not isinstance(values[0], n.Sub) or not isinstance(values[1], n.Add):
        return None

    def factor(e: n.Expr, me: n.Expr) -> n.Expr | None:
        if not isinstance(e, n.Mul) or me not in (e.a, e.b):
            return None
        other = e.b if e.a is me else e.a
        return None if mentions(other, f) else other

    re, im = own
    x, y = factor(values[0].a, re), factor(values[0].b, im)
    sums = (values[1].a, values[1].b), (values[1].b, values[1].a)
    if x is None or y is None or not any(factor(p, re) is y and factor(q, im) is x for p, q in sums):
        return None

    def combine(p: Exprs, q: Exprs) -> Exprs:
        return n.Sub(n.Mul(p[0], q[0]), n.Mul(p[1], q[1])), n.Add(n.Mul(p[0], q[1]), n.Mul(p[1], q[0]))

    t = re.type
    return Combination((x, y), (b.const(t, 1), b.const(t, 0)), combine, True)
