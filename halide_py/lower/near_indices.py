"""Asserts that what int32 vectors of indices go into is near: 2^31 elements and more need the target feature large_buffers.

Before: Loads and Stores of vectors. After: the same, behind a check of each buffer argument, and of each allocation, that a vector index
which is no line multiplies coordinates for (`ir/far_indices`). Other accesses are computed in 64 bits and have no limit. With
large_buffers these are too (`codegen_c/addresses.py`), and nothing is asserted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.far_indices import is_far
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.target import Target
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import INT32, INT64, UInt
from .buffers import buffer_handle, checked, error


def near_indices(s: n.Stmt, args: Sequence[LoweredArgument], target: Target) -> n.Stmt:
    """`s` with the checks for what a target without large_buffers indexes by int32 vectors."""
    names = set() if target.has_large_buffers() else {access.name for access in nodes_of(s, (n.Load, n.Store)) if is_far(access.index)}
    if not names:
        return s

    def allocate(a: n.Allocate, rec: Rec) -> n.Stmt:
        size: n.Expr = b.const(INT64, 1)
        for extent in a.extents:
            size = b.mul(size, b.cast(INT64, extent))
        new, limit, known = a.map_children(rec), INT32.max_value(), b.as_int(size)
        if a.name not in names or known is not None and known <= limit:
            return new  # type: ignore[no-any-return]
        message = error("buffer_allocation_too_large", b.string(a.name), b.cast(UInt(64), size), b.const(UInt(64), limit))
        return b.block([n.Assert(n.LE(size, b.const(INT64, limit)), message), new])

    checks = [checked("near", buffer_handle(a.name, a.param), b.string(_label(a))) for a in args if a.name in names]
    return b.block([*checks, rewrite(s, {n.Allocate: allocate})])


def _label(a: LoweredArgument) -> str:
    return f"{'Output' if a.kind is ArgumentKind.OutputBuffer else 'Input'} buffer {a.shown}"
