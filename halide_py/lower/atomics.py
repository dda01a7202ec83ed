"""Updates of atomic stages inside parallel loops over RVars become atomic: their iterations may meet at one element.

Before: `parallel (h.s1.r$x) { h(im(r$x)) = h(im(r$x)) + 1 }` of a stage scheduled atomic(). After: `... { atomic h { h(...) = ... } }`.

Loops over pure Vars of the stage need nothing: their iterations touch different elements. Code generation uses the machine's atomic
operations for one element, a lock for tuples whose elements depend on each other. Behaviour: Halide's AddAtomicMutex.cpp.

Lanes may meet at one element, too. That needs no machine operation, but the stores of a tuple must not be done for all lanes one store
after the other where one reads what another writes: they are marked (`atomic LANES`) until loops are vectorized.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import nodes as n
from ..ir.function import DimKind
from ..ir.traverse import Rec, mentions, rewrite
from .loop_nest import StageNest

LANES = ""  # the name of marks for lanes alone


def inject_atomics(stmt: n.Stmt, nests: Iterable[StageNest]) -> n.Stmt:
    """`stmt` with the updates inside racing loops of atomic stages made atomic."""
    atomic = [one for nest in nests for one in nest.ways() if one.definition.schedule.atomic]
    for kind in (n.ForType.Parallel, n.ForType.Vectorized) if atomic else ():
        told = [one for one in atomic if kind is n.ForType.Parallel or len(one.function.types) > 1]
        racing = {f"{one.loop_prefix}{dim.var}": one.function.name for one in told for dim in one.definition.schedule.dims
                  if dim.kind is DimKind.ImpureRVar and dim.for_type is kind}
        stmt = _marked(stmt, racing, kind)
    return stmt


def _marked(stmt: n.Stmt, racing: dict[str, str], kind: n.ForType) -> n.Stmt:
    """`stmt` with what loops named in `racing`, of one kind, do to their Func marked, unless it is already."""

    def loop(s: n.For, rec: Rec) -> n.Stmt:
        name = racing.get(s.name)
        if name is None:
            return s.map_children(rec)  # type: ignore[no-any-return]

        def provide(p: n.Provide, rec: Rec) -> n.Stmt:
            return n.Atomic(name if kind is n.ForType.Parallel else LANES, p) if p.name == name else p

        return n.For(s.name, s.min, s.extent, s.kind, s.partition, rewrite(s.body, {n.Provide: provide, n.Atomic: lambda a, rec: a}))

    return rewrite(stmt, {n.For: loop}) if racing else stmt


def separate(s: n.Stmt) -> list[n.Stmt] | None:
    """The stores of several elements one by one, where none reads what another writes; None otherwise."""
    if not isinstance(s, n.Block) or not all(isinstance(one, n.Provide) for one in s.stmts):
        return None
    independent = all(p is q or not mentions(p, q.name) for p in s.stmts for q in s.stmts)  # type: ignore[attr-defined]
    return list(s.stmts) if independent else None
