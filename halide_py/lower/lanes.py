"""Vector arithmetic that keeps the structure of its lanes: ramps stay ramps, broadcasts stay broadcasts.

`Ramp(x, 1, 8) + Broadcast(y, 8)` is made as `Ramp(x + y, 1, 8)`, so that a dense access is seen to be dense without waiting for
the simplifier. A vector of vectors (nested vectorized loops) is flat, the outer lane varying slowest.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n

_FOLDED: dict[type[n.Expr], Callable[[n.Expr, n.Expr], n.Expr]] = {
    n.Add: b.add, n.Sub: b.sub, n.Mul: b.mul, n.Div: b.div, n.Mod: b.mod, n.Min: b.min_, n.Max: b.max_,
    n.EQ: b.eq, n.LT: b.lt, n.LE: b.le, n.And: b.and_, n.Or: b.or_,
}
BINARY: tuple[type[n.Expr], ...] = (*_FOLDED, n.NE, n.GT, n.GE)


def ramp(base: n.Expr, stride: n.Expr, lanes: int) -> n.Expr:
    """base, base + stride, ...; one flat ramp where nested ones line up, a broadcast where the stride is 0."""
    if b.is_zero(stride):
        return broadcast(base, lanes)
    if type(base) is n.Ramp and type(stride) is n.Broadcast and base.base.type.is_scalar() and stride.value.type.is_scalar():
        inner, outer = b.as_int(base.stride), b.as_int(stride.value)
        if inner is not None and outer == inner * base.lanes:
            return n.Ramp(base.base, base.stride, base.lanes * lanes)
    return n.Ramp(base, stride, lanes)


def _line(e: n.Expr) -> tuple[n.Expr, n.Expr, int] | None:
    """(base, stride, lanes) of a Ramp or Broadcast."""
    if type(e) is n.Ramp:
        return e.base, e.stride, e.lanes
    return (e.value, b.const(e.value.type, 0), e.lanes) if type(e) is n.Broadcast else None


def broadcast(e: n.Expr, lanes: int) -> n.Expr:
    """`e` repeated; one flat Broadcast for a broadcast of a broadcast."""
    if type(e) is n.Broadcast:
        return broadcast(e.value, e.lanes * lanes)
    return e if lanes == 1 else n.Broadcast(e, lanes)


def _like(e: n.Expr, other: n.Expr) -> n.Expr:
    """A broadcast of a scalar split into groups as the other operand is."""
    lanes = other.lanes if type(other) is n.Ramp or type(other) is n.Broadcast else 0
    if type(e) is n.Broadcast and lanes and e.lanes > lanes and e.lanes % lanes == 0:
        return n.Broadcast(n.Broadcast(e.value, e.lanes // lanes), lanes)
    return e


def binary(kind: type[n.Expr], x: n.Expr, y: n.Expr) -> n.Expr:
    """`kind(x, y)` for a binary operation or comparison, structure kept."""
    grouped_x, grouped_y = _like(x, y), _like(y, x)
    if type(grouped_x) is n.Broadcast and type(grouped_y) is n.Broadcast and grouped_x.lanes == grouped_y.lanes:
        return broadcast(binary(kind, grouped_x.value, grouped_y.value), grouped_x.lanes)
    p, q = _line(grouped_x), _line(grouped_y)
    if p is not None and q is not None and p[2] == q[2] and x.type.is_int():
        if kind is n.Add or kind is n.Sub:
            return ramp(binary(kind, p[0], q[0]), binary(kind, p[1], q[1]), p[2])
        if kind is n.Mul and type(y) is n.Broadcast:
            return ramp(binary(kind, p[0], q[0]), binary(kind, p[1], q[0]), p[2])
        if kind is n.Mul and type(x) is n.Broadcast:
            return ramp(binary(kind, p[0], q[0]), binary(kind, p[0], q[1]), p[2])
    fold = _FOLDED.get(kind)
    return fold(x, y) if fold else kind(x, y)  # type: ignore[call-arg]


def cast(t: object, e: n.Expr) -> n.Expr:
    """`e` converted to the element type and lanes of `t`; the cast goes inside broadcasts, and inside ramps where indices get wider."""
    from_t, to = e.type, t
    assert isinstance(to, type(from_t))
    if type(e) is n.Broadcast:
        return broadcast(cast(to.with_lanes(e.value.type.lanes()), e.value), e.lanes)
    if type(e) is n.Ramp and from_t.overflow_is_undefined() and to.is_int() and to.bits() >= from_t.bits():
        inner = to.with_lanes(e.base.type.lanes())
        return n.Ramp(cast(inner, e.base), cast(inner, e.stride), e.lanes)
    return b.cast(to, e)


def bounds(e: n.Expr) -> tuple[n.Expr, n.Expr] | None:
    """The least and the greatest lane of an integer vector as scalars; None where they cannot be told."""
    kind = type(e)
    if e.type.is_scalar():
        return e, e
    if isinstance(e, n.Broadcast):
        return bounds(e.value)
    if isinstance(e, n.Ramp):
        base, stride = bounds(e.base), b.as_int(e.stride)
        if base is None or stride is None:
            return None
        far = b.const(e.type.element_of(), stride * (e.lanes - 1))
        return (base[0], b.add(base[1], far)) if stride >= 0 else (b.add(base[0], far), base[1])
    if isinstance(e, n.Call) and e.name in ("likely", "likely_if_innermost"):
        return bounds(e.args[0])
    if isinstance(e, (n.Add, n.Sub, n.Min, n.Max)):
        x, y = bounds(e.a), bounds(e.b)
        if x is None or y is None:
            return None
        return (b.sub(x[0], y[1]), b.sub(x[1], y[0])) if kind is n.Sub else (binary(kind, x[0], y[0]), binary(kind, x[1], y[1]))
    if isinstance(e, (n.Mul, n.Div)):
        x, factor = bounds(e.a), b.as_int(e.b)
        if x is None or factor is None or (kind is n.Div and factor <= 0):
            return None
        f = b.const(e.type.element_of(), factor)
        low, high = binary(kind, x[0], f), binary(kind, x[1], f)
        return (low, high) if factor >= 0 else (high, low)
    return None


def all_true(condition: n.Expr) -> n.Expr:
    """A scalar condition that implies every lane of `condition`; the equivalent one for comparisons of a ramp with a scalar."""
    if condition.type.is_scalar():
        return condition
    if isinstance(condition, n.Broadcast):
        return all_true(condition.value)
    if isinstance(condition, n.Call) and condition.name in ("likely", "likely_if_innermost"):
        return all_true(condition.args[0])
    if isinstance(condition, n.And):
        return b.and_(all_true(condition.a), all_true(condition.b))
    if isinstance(condition, (n.LT, n.LE, n.GT, n.GE)):
        x, y = bounds(condition.a), bounds(condition.b)
        if x is not None and y is not None:
            kind = type(condition)
            return binary(kind, x[1], y[0]) if kind in (n.LT, n.LE) else binary(kind, x[0], y[1])
    return n.VectorReduce(n.ReduceOp.And, condition, 1)


def tile(e: n.Expr, group: int, times: int) -> n.Expr:
    """Each group of `group` adjacent lanes repeated `times` times before the next: a0 a1, b0 b1 -> a0 a1 a0 a1, b0 b1 b0 b1."""
    if times == 1:
        return e
    if type(e) is n.Broadcast and e.value.type.lanes() == group:
        return broadcast(e.value, e.lanes * times)
    if type(e) is n.Ramp and e.base.type.lanes() == group:
        return n.Ramp(broadcast(e.base, times), broadcast(e.stride, times), e.lanes)
    outer = e.type.lanes() // group
    return n.Shuffle((e,), tuple(o * group + j for o in range(outer) for _ in range(times) for j in range(group)))


def reduce_outer(op: n.ReduceOp, e: n.Expr, lanes: int) -> n.Expr:
    """Combine across the slowest varying lanes, `lanes` of them: what is left has `e.lanes / lanes` lanes."""
    inner = e.type.lanes() // lanes
    if inner > 1:
        e = n.Shuffle((e,), tuple(o * inner + j for j in range(inner) for o in range(lanes)))
    return n.VectorReduce(op, e, inner)
