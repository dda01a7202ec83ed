"""Specializations: stages whose loops depend on conditions of parameters.

In: a definition with the schedules of its specializations. Out: one loop nest for each, and the condition that selects it:

    if (c1) { loops of the first } else if (c2) { loops of the second } else { loops of the rest }

The specializations of a specialization come before it, under both conditions. Each definition is simplified with what its condition says,
so that what it does not read then is not computed. `specialize_fail` puts an error in the place of the loops. Behaviour: Halide's
specialize (Func.cpp, SimplifySpecializations.cpp).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import conjuncts
from ..ir.function import Definition, Function, Specialization, StageSchedule
from ..ir.simplify import simplify_given
from ..ir.traverse import nodes_of, rewrite
from ..ir.types import INT32
from .loop_nest import SpecializedNest, StageNest, build_nest


def build_stage(f: Function, index: int) -> StageNest:
    """The loop nests of stage `index` of `f`. Raises CompileError for splits that cannot be honoured."""
    d = f.stages()[index]
    found = list(_flat(d.schedule, b.TRUE))
    if not found:
        return build_nest(f, index, d)
    specialized: list[SpecializedNest] = []
    rest: n.Expr = b.TRUE  # none before holds
    for condition, s in found:
        nest = build_nest(f, index, _given(d, s.schedule or d.schedule, b.and_(rest, condition)), len(specialized) + 1)
        specialized.append(SpecializedNest(condition, nest, _fail(s) if s.schedule is None else None))
        rest = b.and_(rest, b.not_(condition))
    nest = build_nest(f, index, _given(d, d.schedule, rest))
    last = specialized[-1]
    if last.failure is not None and b.is_true(last.condition):
        nest.failure = specialized.pop().failure
    nest.specializations = specialized
    covers = {v: True for one in (nest, *(s.nest for s in specialized)) for v in one.covers}
    for one in (nest, *(s.nest for s in specialized)):
        one.covers = covers  # they share the names of what is asked for
    return nest


def _flat(schedule: StageSchedule, condition: n.Expr) -> Iterator[tuple[n.Expr, Specialization]]:
    """Specializations with their whole conditions, in the order they are tried."""
    for s in schedule.specializations:
        both = b.and_(condition, s.condition)
        if s.schedule is not None:
            yield from _flat(s.schedule, both)
            if any(inner.failure for inner in s.schedule.specializations):
                continue  # nothing is left for it
        yield both, s


def _given(d: Definition, schedule: StageSchedule, condition: n.Expr) -> Definition:
    """`d` where `condition` holds."""
    known = {
        c.a.name: c.b
        for c in conjuncts(condition, True)
        if isinstance(c, n.EQ) and isinstance(c.a, n.Variable) and b.as_const(c.b) is not None
    }

    def simpler(e: n.Expr) -> n.Expr:
        e = rewrite(e, {n.Variable: lambda v, rec: v if v.param is None else known.get(v.name, v)})
        if any(c.name == "undef" for c in nodes_of(e, n.Call, n.symbol_bit("undef"))):
            return e  # a choice between a bool and undef would become logic, all of it undefined
        return simplify_given(e, condition)

    return dataclasses.replace(
        d, schedule=schedule, values=tuple(map(simpler, d.values)), args=tuple(map(simpler, d.args)), predicate=simpler(d.predicate)
    )


def _fail(s: Specialization) -> n.Stmt:
    return n.Assert(b.FALSE, n.Call(INT32, "halide_error_specialize_fail", (b.string(s.failure),), n.CallType.Extern))
