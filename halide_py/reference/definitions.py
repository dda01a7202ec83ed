"""Boxes of coordinates, and what the algorithm interpreter asks of definitions before it evaluates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..errors import InternalError
from ..ir import nodes as n
from ..ir.build import FALSE, TRUE, and_, not_, or_
from ..ir.function import Definition, Function
from ..ir.traverse import nodes_of
from .arrays import Array

Box = tuple[tuple[int, int], ...]  # (min, max) of each dimension, inclusive


def union(a: Box | None, b: Box) -> Box:
    """The smallest box around two; one with an empty dimension counts for nothing."""
    if a is None or any(low > high for low, high in a):
        return b
    if any(low > high for low, high in b):
        return a
    return tuple((min(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a, b))


def covers(a: Box, b: Box) -> bool:
    return all(low > high for low, high in b) or all(p[0] <= q[0] and q[1] <= p[1] for p, q in zip(a, b))


def shape_of(box: Box) -> tuple[int, ...]:
    return tuple(max(high - low + 1, 0) for low, high in box)


def has_data(e: n.Expr) -> bool:
    """Whether a value of a Func or image enters `e`."""
    return any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))


def index_box(index: Sequence[Array], active: Array) -> Box | None:
    """The box around the coordinates at the points that count; None if there are none."""
    if not active.any():
        return None
    chosen = [
        np.broadcast_to(i, np.broadcast_shapes(i.shape, active.shape))[np.broadcast_to(active, np.broadcast_shapes(i.shape, active.shape))]
        for i in index
    ]
    return tuple((int(c.min()), int(c.max())) for c in chosen)


def boxes_of(outputs: Sequence[Function], shapes: Any, mins: Any) -> Iterator[Box]:
    """The box wanted of each output: `shapes` and `mins` are one tuple for all, or a list with one each."""
    for i, f in enumerate(outputs):
        shape = shapes[i] if isinstance(shapes, list) else shapes
        low = (0,) * len(shape) if mins is None else mins[i] if isinstance(mins, list) else mins
        if len(shape) != len(f.args) or len(low) != len(f.args):
            raise InternalError(f"Func {f.name} has {len(f.args)} dimensions, realized with shape {tuple(shape)}")
        yield tuple((m, m + e - 1) for m, e in zip(low, shape))


def conjuncts(e: n.Expr) -> list[n.Expr]:
    """The parts of a conjunction, one by one, without marks of what is likely."""
    if isinstance(e, n.Call) and e.name == "likely":
        return conjuncts(e.args[0])
    return [*conjuncts(e.a), *conjuncts(e.b)] if isinstance(e, n.And) else [e]


def defined_where(e: n.Expr) -> n.Expr:
    """The condition under which a value has no `undef` in it."""
    if type(e) is n.Call and e.name == "undef":
        return FALSE
    if not any(c.name == "undef" for c in nodes_of(e, n.Call)):  # a walk over nodes, not over the tree they stand for
        return TRUE
    if type(e) is n.Select:
        a, b = defined_where(e.true_value), defined_where(e.false_value)
        chosen = TRUE if a is TRUE and b is TRUE else or_(and_(e.condition, a), and_(not_(e.condition), b))
        return and_(defined_where(e.condition), chosen)
    out: n.Expr = TRUE
    for child in e.children():
        out = and_(out, defined_where(child))
    return out


def _variant(e: n.Expr, k: int) -> n.Expr:
    """`e` with its k-th alternative in place of each gather or scatter."""
    if not e.mask & n.Call.bit:
        return e
    if type(e) is n.Call and e.name in ("gather", "scatter"):
        return _variant(e.args[k], k)
    return cast(n.Expr, e.map_children(lambda child: _variant(child, k)))


def variants(d: Definition) -> list[tuple[tuple[n.Expr, ...], tuple[n.Expr, ...]]]:
    """The (args, values) of a definition: one, or one per alternative of its scatter."""
    found = [c for c in nodes_of((*d.args, *d.values), n.Call) if c.name in ("gather", "scatter")]
    if not found:
        return [(d.args, d.values)]
    return [(tuple(_variant(a, k) for a in d.args), tuple(_variant(v, k) for v in d.values)) for k in range(len(found[0].args))]
