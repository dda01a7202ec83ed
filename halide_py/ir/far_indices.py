"""Indices of vectors in memory: which of them may leave 32 bits on the way, and how to compute them in 64.

Scalar parts of an index are computed in 64 bits anyway. The lanes of a vector that is no line of constant stride are int32, twice as
fast to compute and to gather by; where coordinates are multiplied by strides they may wrap around in buffers of 2^31 elements or more.
"""

from __future__ import annotations

from . import build as b
from . import nodes as n
from .types import INT64


def is_far(index: n.Expr) -> bool:
    """Whether lanes of a vector index, taken as int32, may be too large for that in a buffer that is."""
    if index.type.is_scalar() or isinstance(index, n.Broadcast):
        return False
    if isinstance(index, n.Ramp) and index.base.type.is_scalar() and b.as_int(index.stride) is not None:
        return False
    return _has_product(index)


def _has_product(e: n.Expr) -> bool:
    if isinstance(e, n.Mul):
        return True
    if isinstance(e, (n.Add, n.Sub)):
        # what is the same in all lanes is added to the pointer
        return any(_has_product(x) for x in (e.a, e.b) if not (isinstance(x, n.Broadcast) and x.value.type.is_scalar()))
    if isinstance(e, n.Ramp):
        return b.as_int(e.stride) is None or _has_product(e.base)
    return isinstance(e, n.Broadcast) and _has_product(e.value)


def in_64_bits(e: n.Expr) -> n.Expr:
    """An int32 index with its sums and products in 64 bits; coordinates are int32."""
    if isinstance(e, (n.Add, n.Sub, n.Mul)):
        return type(e)(in_64_bits(e.a), in_64_bits(e.b))
    if isinstance(e, n.Ramp):
        return n.Ramp(in_64_bits(e.base), in_64_bits(e.stride), e.lanes)
    if isinstance(e, n.Broadcast):
        return n.Broadcast(in_64_bits(e.value), e.lanes)
    return b.cast(INT64.with_lanes(e.type.lanes()), e)
