"""Unrolled loops become copies of their body.

Before: `unrolled (c, 0, 3) { out[c] = c }`. After: `out[0] = 0; out[1] = 1; out[2] = 2`.

Extents must be constant; a CompileError names a loop whose is not. Names bound inside to values that differ between copies are
renamed, so that each is bound once.
Behaviour: Halide's UnrollLoops.cpp.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import Rec, rewrite
from .constant_extents import constant_extent
from .copies import copy_with


def unroll(stmt: n.Stmt) -> n.Stmt:
    """Replace every unrolled loop, innermost first. Raises CompileError for a loop of unknown extent."""

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        body = rec(f.body)
        if f.kind is not n.ForType.Unrolled:
            return n.For(f.name, f.min, f.extent, f.kind, f.partition, body)
        return b.block(copy_with({f.name: b.add(f.min, b.i32(i))}, body, f".{i}") for i in range(constant_extent(f, "unrolled")))

    return rewrite(stmt, {n.For: loop})
