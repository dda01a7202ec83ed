"""Loops over the RVars of atomic updates keep to one thread.

Before: `parallel (h.s1.r$x) { h(im(r$x)) = h(im(r$x)) + 1 }` of a stage scheduled atomic(). After: the same loop, serial.

`atomic()` says that any interleaving of whole updates is fine, so one after the other is. Loops over pure Vars of the stage stay parallel: their
iterations touch different elements. Vector lanes that collide are combined or serialized by `vectorize`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import nodes as n
from ..ir.function import DimKind, Function
from ..ir.traverse import Rec, rewrite


def serialize_atomics(stmt: n.Stmt, functions: Mapping[str, Function]) -> n.Stmt:
    """`stmt` with the parallel loops over RVars of atomic stages made serial. `functions` are all Functions of the pipeline."""
    racing = {
        f"{f.stage_name(k)}.{dim.var}"
        for f in functions.values() for k, stage in enumerate(f.stages()) if stage.schedule.atomic
        for dim in stage.schedule.dims if dim.kind is DimKind.ImpureRVar and dim.for_type is n.ForType.Parallel
    }
    if not racing:
        return stmt

    def loop(s: n.For, rec: Rec) -> n.Stmt:
        kind = n.ForType.Serial if s.name in racing else s.kind
        return n.For(s.name, s.min, s.extent, kind, s.partition, rec(s.body))

    return rewrite(stmt, {n.For: loop})
