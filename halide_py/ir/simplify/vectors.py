"""Vectors: sums of ramps and broadcasts are one ramp or broadcast, so that vector indices stay dense; shuffles of known lanes."""

from __future__ import annotations

from .. import nodes as n
from ..build import as_const, as_int, broadcast, const, is_false, is_true
from ..types import Type
from . import linear
from .simplify import Simplifier, handles


def make_broadcast(value: n.Expr, lanes: int) -> n.Expr:
    """`value` repeated, nested broadcasts flattened."""
    if type(value) is n.Broadcast:
        return n.Broadcast(value.value, value.lanes * lanes)
    return broadcast(value, lanes)


def vector_terms(s: Simplifier, t: Type, terms: linear.Terms, constant: int) -> list[tuple[n.Expr, int]] | None:
    """The ramps and broadcasts of a vector sum, and its constant, as one of either; None when there is nothing to join."""
    shaped = [e for e in terms if type(e) is n.Ramp or type(e) is n.Broadcast]
    if not shaped or len(shaped) == 1 and terms[shaped[0]] == 1 and not constant:
        return None
    lanes = int(next((e for e in shaped if type(e) is n.Ramp), shaped[0]).lanes)
    base: n.Expr | None = None
    stride: n.Expr | None = None
    rest: list[tuple[n.Expr, int]] = []
    joined = 0
    for e, c in terms.items():
        block: n.Expr | None = None
        if type(e) is n.Ramp and e.lanes == lanes:
            block = e.base
            step = linear.scaled(e.stride, c)
            stride = step if stride is None else n.Add(stride, step)
        elif type(e) is n.Broadcast and e.lanes == lanes:
            block = e.value
        elif type(e) is n.Broadcast and e.value.type.is_scalar() and e.lanes % lanes == 0:
            block = broadcast(e.value, e.lanes // lanes)
        if block is None:
            rest.append((e, c))
            continue
        joined += 1
        block = linear.scaled(block, c)
        base = block if base is None else n.Add(base, block)
    assert base is not None
    if joined == 1 and not constant and terms.get(shaped[0]) == 1 and len(shaped) > 1:
        return None  # shapes that do not fit each other
    base = s.expr(n.Add(base, const(base.type, constant)) if constant else base)
    if stride is not None:
        stride = s.expr(stride)
    one = make_broadcast(base, lanes) if stride is None or as_int(stride) == 0 else n.Ramp(base, stride, lanes)
    return [*rest, (one, 1)]


@handles(n.Broadcast)
def broadcasts(s: Simplifier, e: n.Broadcast) -> n.Expr:
    """Broadcast."""
    value = s.expr(e.value)
    if value is e.value and type(value) is not n.Broadcast and e.lanes != 1:
        return e
    return make_broadcast(value, e.lanes)


@handles(n.Ramp)
def ramps(s: Simplifier, e: n.Ramp) -> n.Expr:
    """Ramp."""
    base, stride = s.expr(e.base), s.expr(e.stride)
    if e.lanes == 1:
        return base
    if as_const(stride) == 0:
        return make_broadcast(base, e.lanes)
    if type(base) is n.Ramp and type(stride) is n.Broadcast and as_int(stride) is not None:
        inner, outer = as_int(base.stride), as_int(stride)
        if inner is not None and outer == inner * base.lanes and base.base.type.is_scalar():
            return n.Ramp(base.base, base.stride, base.lanes * e.lanes)
    return e if base is e.base and stride is e.stride else n.Ramp(base, stride, e.lanes)


def lane(s: Simplifier, e: n.Expr, i: int) -> n.Expr | None:
    """Lane `i` of a vector where it is known without extracting it."""
    if e.type.is_scalar():
        return e
    if type(e) is n.Broadcast:
        return lane(s, e.value, i % e.value.type.lanes())
    if type(e) is n.Ramp and e.base.type.is_scalar():
        return s.expr(n.Add(e.base, n.Mul(e.stride, const(e.stride.type, i)))) if e.type.is_int_or_uint() else None
    if type(e) is n.Shuffle:
        return lane_of(s, e.vectors, e.indices[i])
    return None


def lane_of(s: Simplifier, vectors: tuple[n.Expr, ...], i: int) -> n.Expr | None:
    """Lane `i` of the concatenation of vectors, where known."""
    for v in vectors:
        if i < v.type.lanes():
            return lane(s, v, i)
        i -= v.type.lanes()
    return None


@handles(n.Shuffle)
def shuffles(s: Simplifier, e: n.Shuffle) -> n.Expr:
    """Shuffle."""
    vectors = tuple(map(s.expr, e.vectors))
    indices = e.indices
    if len(vectors) == 1 and indices == tuple(range(vectors[0].type.lanes())):
        return vectors[0]
    if len(indices) == 1:
        one = lane_of(s, vectors, indices[0])
        if one is not None:
            return one
    spread = {v.value if type(v) is n.Broadcast and v.value.type.is_scalar() else None for v in vectors}
    same = spread.pop() if len(spread) == 1 else None
    if same is not None:
        return n.Broadcast(same, len(indices))
    if len(vectors) == 1:
        v = vectors[0]
        step = indices[1] - indices[0] if len(indices) > 1 else 1
        if (
            type(v) is n.Ramp
            and v.base.type.is_scalar()
            and v.type.is_int_or_uint()
            and all(i == indices[0] + k * step for k, i in enumerate(indices))
        ):
            first = n.Add(v.base, n.Mul(v.stride, const(v.stride.type, indices[0])))
            return s.expr(n.Ramp(first, n.Mul(v.stride, const(v.stride.type, step)), len(indices)))
        if type(v) is n.Shuffle:
            return s.expr(n.Shuffle(v.vectors, tuple(v.indices[i] for i in indices)))
    return e if all(v is w for v, w in zip(vectors, e.vectors)) else n.Shuffle(vectors, indices)


@handles(n.VectorReduce)
def reductions(s: Simplifier, e: n.VectorReduce) -> n.Expr:
    """VectorReduce."""
    value = s.expr(e.value)
    count = value.type.lanes() // e.lanes
    if count == 1:
        return value
    if type(value) is n.Broadcast and value.value.type.is_scalar():
        if e.op not in (n.ReduceOp.Add, n.ReduceOp.Mul):
            return broadcast(value.value, e.lanes)
        if e.op is n.ReduceOp.Add and value.type.is_int_or_uint() and not value.type.is_bool():
            return broadcast(s.expr(n.Mul(value.value, const(value.value.type, count))), e.lanes)
    return e if value is e.value else n.VectorReduce(e.op, value, e.lanes)


@handles(n.Load)
def loads(s: Simplifier, e: n.Load) -> n.Expr:
    """Load: one element for all lanes is loaded once; a load that never happens is 0."""
    index, predicate = s.expr(e.index), s.expr(e.predicate)
    if is_false(predicate):
        return const(e.type, 0) if not e.type.is_handle() else e
    if type(index) is n.Broadcast and is_true(predicate) and index.value.type.is_scalar():
        return n.Broadcast(n.Load(e.type.element_of(), e.name, index.value, const(predicate.type.element_of(), 1), e.param), index.lanes)
    return e if index is e.index and predicate is e.predicate else n.Load(e.type, e.name, index, predicate, e.param)
