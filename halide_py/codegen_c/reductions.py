"""VectorReduce: groups of adjacent lanes combined, whole registers first, halves of the last register at the end."""

from __future__ import annotations

from ..ir import nodes as n
from ..ir.types import Type
from . import vectors as v
from .ctypes_of import short_type
from .emitter import HANDLERS, MASKS, Emitter
from .expressions import finish, piece_sizes

_SYMBOL = {n.ReduceOp.Add: "+", n.ReduceOp.Mul: "*"}


def combine(em: Emitter, op: n.ReduceOp, t: Type, count: int, a: str, c: str) -> str:
    """Two values of one type as one, named: each is used by what follows."""
    ctype = em.c_type(t, count)
    if t.is_bool():
        text = f"({a} {'&&' if op in (n.ReduceOp.And, n.ReduceOp.Min, n.ReduceOp.Mul) else '||'} {c})"
    elif op in _SYMBOL:
        text = finish(em, t, count, f"{a} {_SYMBOL[op]} {c}")
    else:
        text = (v.minimum if op is n.ReduceOp.Min else v.maximum)(em, ctype, a, c)
    return em.named(ctype, text)


def reduce(em: Emitter, e: n.VectorReduce, start: int, count: int) -> str:
    """A slice of a reduction."""
    group, t = e.value.type.lanes() // e.lanes, e.type
    if t.is_bool():
        return reduce_bool(em, e, start)
    if count == 1:
        return _reduce_group(em, e, start * group, group)
    width = em.native(t)
    if group & (group - 1) or count * group < width:
        return em.from_lanes(t, count, [reduce(em, e, start + i, 1) for i in range(count)])
    # Lane j of every group side by side, for each j; then combine across j.
    parts = [em.named(em.c_type(t, width), em.emit(e.value, k, width)) for k in range(start * group, (start + count) * group, width)]
    sources = [(p, width) for p in parts]
    columns = [
        v.pick(em, short_type(t), sources, [((i * group + j) // width, (i * group + j) % width) for i in range(count)])
        for j in range(group)
    ]
    total = em.named(em.c_type(t, count), columns[0])
    for column in columns[1:]:
        total = combine(em, e.op, t, count, total, em.named(em.c_type(t, count), column))
    return total


def _reduce_group(em: Emitter, e: n.VectorReduce, first: int, group: int) -> str:
    """Lanes first .. first + group - 1 as one scalar."""
    t = e.type.element_of()
    by_size: dict[int, str] = {}
    at = first
    aligned = first % em.native(t) == 0
    for size in piece_sizes(group, em.native(t)) if aligned else [1] * group:
        part = em.named(em.c_type(t, size), em.emit(e.value, at, size))
        by_size[size] = combine(em, e.op, t, size, by_size[size], part) if size in by_size else part
        at += size
    size = max(by_size)
    total = by_size.pop(size)
    while size > 1:
        size //= 2
        low, high = ((v.shuffle(total, total, range(h * size, (h + 1) * size)) if size > 1 else f"{total}[{h}]") for h in (0, 1))
        ctype = em.c_type(t, size)
        total = combine(em, e.op, t, size, em.name(ctype, low), em.name(ctype, high))
        if size in by_size:
            total = combine(em, e.op, t, size, total, by_size.pop(size))
    return total


def reduce_bool(em: Emitter, e: n.VectorReduce, start: int) -> str:
    """All or any of a group of bools."""
    group = e.value.type.lanes() // e.lanes
    lanes = em.lanes(e.value, start * group, group)
    every = e.op in (n.ReduceOp.And, n.ReduceOp.Min, n.ReduceOp.Mul)
    return f"(({(' & ' if every else ' | ').join(lanes)}) != 0)"


def reduce_mask(em: Emitter, e: n.VectorReduce, start: int, count: int, bits: int) -> str:
    """Groups of bools."""
    return em.mask_from_lanes(count, bits, [reduce_bool(em, e, start + i) for i in range(count)])


HANDLERS[n.VectorReduce] = reduce
MASKS[n.VectorReduce] = reduce_mask
