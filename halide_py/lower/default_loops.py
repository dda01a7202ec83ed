"""Default loops: vectors and threads for the Funcs that were made for derivatives, as long as nobody schedules them by hand.

In: the environment as the user left it. Out: the same, where stages of Funcs marked `default_loops` that have no directives run over their first
dimension in vectors and over their last in parallel, in blocks, so that small ones stay in one thread. Splits are guarded, so any extent will do. A
Func whose loops somebody computes something at is left alone, and so are loops over reduction variables. The user's Functions are not changed.
"""

from __future__ import annotations

import dataclasses

from ..ir import build as b
from ..ir.function import OUTERMOST, Definition, Dim, Function, Split, SplitKind, StageSchedule, TailStrategy
from ..ir.nodes import ForType
from ..ir.target import Target
from .environment import Environment
from .inline import is_inlined

_ROWS = 16  # of a parallel task
_VECTORS = 1024  # of a parallel task of a Func of one dimension


def with_default_loops(env: Environment, outputs: set[str], target: Target) -> Environment:
    """The environment with loops chosen for what is not inlined."""
    if not any(f.schedule.default_loops for f in env.values()):
        return env
    named = {level.func for f in env.values() for level in (f.schedule.compute_level, f.schedule.store_level) if level.kind == "at"}
    return {name: _scheduled(f, target) if f.schedule.default_loops and name not in named and not is_inlined(f, outputs) else f for name, f in env.items()}


def _scheduled(f: Function, target: Target) -> Function:
    assert f.pure is not None
    width = min(target.natural_vector_size(t) for t in f.types)
    return dataclasses.replace(f, pure=_stage(f, f.pure, width), updates=[_stage(f, u, width) for u in f.updates])


def _stage(f: Function, d: Definition, width: int) -> Definition:
    """One definition with its loops."""
    s = d.schedule
    free = [dim for dim in s.dims if not dim.is_rvar() and dim.var != OUTERMOST]
    if s.touched or s.splits or not free or f.extern is not None:
        return d
    splits: list[Split] = []
    inner: list[Dim] = []
    first, last = free[0], free[-1]
    outer = list(free)
    if first.var == f.args[0] and width > 1:
        inner = [dataclasses.replace(first, var=f"{first.var}.lanes", for_type=ForType.Vectorized)]
        outer[0] = dataclasses.replace(first, var=f"{first.var}.vectors")
        splits.append(_split(first.var, outer[0].var, inner[0].var, width))
    block = _VECTORS if len(free) == 1 else _ROWS
    rest, tasks = f"{last.var}.rows", f"{last.var}.tasks"
    splits.append(_split(outer[-1].var, tasks, rest, block))
    outer[-1:] = [dataclasses.replace(outer[-1], var=rest), dataclasses.replace(last, var=tasks, for_type=ForType.Parallel)]
    dims = [*inner, *(dim for dim in s.dims if dim.is_rvar()), *outer, next(dim for dim in s.dims if dim.var == OUTERMOST)]
    return dataclasses.replace(d, schedule=_with(s, splits, dims))


def _split(old: str, outer: str, inner: str, factor: int) -> Split:
    return Split(SplitKind.Split, old, outer, inner, b.i32(factor), False, TailStrategy.GuardWithIf)


def _with(s: StageSchedule, splits: list[Split], dims: list[Dim]) -> StageSchedule:
    return dataclasses.replace(s, splits=splits, dims=dims)
