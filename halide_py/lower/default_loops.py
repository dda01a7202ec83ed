"""Default loops: vectors and threads for the Funcs that were made for derivatives, as long as nobody schedules them by hand.

In: the environment as the user left it. Out: the same, where stages of Funcs marked `default_loops` that have no directives run over their
first dimension in vectors and over their last in parallel, in blocks, so that small ones stay in one thread; those that add up run in tiles
that fit the registers (`register_tiles`). Splits are guarded, so any extent will do, and the order of terms stays. A Func whose loops
somebody computes something at is left alone. The user's Functions are not changed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from ..ir import build as b
from ..ir.function import OUTERMOST, Definition, Dim, Function, Split, SplitKind, StageSchedule, TailStrategy
from ..ir.nodes import ForType
from ..ir.target import Target
from .environment import Environment
from .inline import is_inlined
from .register_tiles import (
    Extents,
    Tile,
    choose_tile,
    inner_terms,
    is_accumulation,
    likely_extents,
    order_of_tiles,
    reads_of,
    sizes_from_inputs,
)

_ROWS = 16  # of a parallel task in tiles, and terms of which nothing is known
_ROW = 512  # values of a dimension of which nothing is known
_VALUES = 8192  # computed by a parallel task of a simple loop nest
_FEW_TURNS = 8
_FEW_TASKS = 4
_TASKS = 8  # at least, where there is enough of the outermost dimension


def with_default_loops(env: Environment, outputs: set[str], target: Target) -> Environment:
    """The environment with loops chosen for what is not inlined."""
    if not any(f.schedule.default_loops for f in env.values()):
        return env
    named = {level.func for f in env.values() for level in (f.schedule.compute_level, f.schedule.store_level) if level.kind == "at"}
    sizes = sizes_from_inputs(env)
    return {name: _scheduled(f, sizes[name], target) if f.schedule.default_loops and name not in named and not is_inlined(f, outputs) else f
            for name, f in env.items()}


def _scheduled(f: Function, sizes: Mapping[str, int], target: Target) -> Function:
    assert f.pure is not None
    return dataclasses.replace(f, pure=_stage(f, f.pure, sizes, target), updates=[_stage(f, u, sizes, target) for u in f.updates])


def _stage(f: Function, d: Definition, sizes: Mapping[str, int], target: Target) -> Definition:
    """One definition with its loops; `sizes`: what its dimensions may be."""
    s = d.schedule
    free = [dim for dim in s.dims if not dim.is_rvar() and dim.var != OUTERMOST]
    if s.touched or s.splits or f.extern is not None:
        return d
    extents = likely_extents(f, d, sizes)
    if not free:
        return dataclasses.replace(d, schedule=dataclasses.replace(s, dims=_unrolled(s.dims, extents)))
    tile = choose_tile(f, d, extents, target) if is_accumulation(f, d) else None
    loops = _Loops(s)
    if tile is not None:
        _tiled(f, d, tile, extents, loops)
    else:
        _simple(f, d, extents, free, min(target.natural_vector_size(t) for t in f.types), loops)
    return dataclasses.replace(d, schedule=loops.schedule())


def _unrolled(dims: list[Dim], extents: Extents) -> list[Dim]:
    """Loops over reduction variables, innermost first, those of few turns unrolled: what they share is computed once."""
    turns, out = 1, []
    for dim in dims:
        extent = extents.get(dim.var)
        turns *= _FEW_TURNS + 1 if extent is None or dim.for_type is not ForType.Serial else extent
        out.append(dataclasses.replace(dim, for_type=ForType.Unrolled) if 0 < turns <= _FEW_TURNS else dim)
    return out


class _Loops:
    """The loops of a stage in the making: `dims` innermost first, over variables that are split as they are asked for."""

    def __init__(self, s: StageSchedule) -> None:
        self.old = s
        self.by_name = {dim.var: dim for dim in s.dims}
        self.splits: list[Split] = []
        self.dims: list[Dim] = []

    def split(self, v: str, factor: int, outer: str, inner: str) -> None:
        """Split a variable, guarded."""
        rvar = self.by_name[v].is_rvar()
        self.splits.append(Split(SplitKind.Split, v, outer, inner, b.i32(factor), rvar, TailStrategy.GuardWithIf))
        for one in (outer, inner):
            self.by_name[one] = dataclasses.replace(self.by_name[v], var=one)

    def add(self, v: str, for_type: ForType = ForType.Serial) -> None:
        """The next loop outwards."""
        self.dims.append(dataclasses.replace(self.by_name[v], for_type=for_type))

    def schedule(self) -> StageSchedule:
        """What came of it."""
        return dataclasses.replace(self.old, splits=self.splits, dims=[*self.dims, self.by_name[OUTERMOST]])


def _simple(f: Function, d: Definition, extents: Extents, free: list[Dim], width: int, loops: _Loops) -> None:
    """Vectors over the first dimension, threads over the last; loops over reduction variables in between. What is turned is done along what
    it reads, so that the lines of a few rows stay in the cache."""
    names = [dim.var for dim in free]
    first, last = names[0], names[-1]
    task = _rows(f, d, extents)
    vectors = first == f.args[0] and width > 1 and (extents[first] or width) >= width
    turned = _turned(f, d, names) if vectors else None
    around = dict(zip(names, names))
    if vectors:
        task = max(task // width, 1) if len(free) == 1 else task
        loops.split(first, width, f"{first}.vectors", f"{first}.lanes")
        loops.add(f"{first}.lanes", ForType.Vectorized)
        around[first] = f"{first}.vectors"
    terms = [dim for dim in loops.old.dims if dim.is_rvar()]
    for dim in terms if vectors else _unrolled(terms, extents):
        loops.add(dim.var, dim.for_type)
    loops.split(around[last], task, f"{last}.tasks", f"{last}.rows")
    around[last] = f"{last}.rows"
    for v in sorted(names, key=lambda v: v != turned):
        loops.add(around[v])
    loops.add(f"{last}.tasks", ForType.Parallel)


def _turned(f: Function, d: Definition, names: list[str]) -> str | None:
    """The dimension that is the first one of what is read, where the first one is another of its dimensions."""
    if d.rdom is not None:
        return None
    reads = [r for r in reads_of(d.values, f.name) if names[0] in r.uses and not r.is_dense(names[0])]
    return next((v for v in names[1:] if any(r.is_dense(v) for r in reads)), None)


def _rows(f: Function, d: Definition, extents: Extents) -> int:
    """The number of values of the last dimension that make a task of a simple loop nest."""
    return max(_VALUES // math.prod((*(extents[v] or _ROW for v in f.args[:-1]), _terms(d, extents))), 1)


def _terms(d: Definition, extents: Extents) -> int:
    """How many values an update makes an element from."""
    return max(math.prod(extents[v.name] or _ROWS for v in d.schedule.rvars), 1)


def _tiled(f: Function, d: Definition, tile: Tile, extents: Extents, loops: _Loops) -> None:
    """From the inside: a tile in registers, terms, tiles of a task, terms again where their data is too much for the cache, tasks."""
    for v in f.args:
        if tile.size(v) > 1:
            loops.split(v, tile.size(v), f"{v}.tiles", f"{v}.tile")
    if tile.width == 1:
        if tile.size(tile.vector) > 1:
            loops.add(f"{tile.vector}.tile", ForType.Unrolled)
    elif tile.counts[tile.vector] > 1:
        loops.split(f"{tile.vector}.tile", tile.width, f"{tile.vector}.vectors", f"{tile.vector}.lanes")
        loops.add(f"{tile.vector}.lanes", ForType.Vectorized)
        loops.add(f"{tile.vector}.vectors", ForType.Unrolled)
    else:
        loops.add(f"{tile.vector}.tile", ForType.Vectorized)
    for v in f.args:
        if v != tile.vector and tile.size(v) > 1:
            loops.add(f"{v}.tile", ForType.Unrolled)
    around = {v: f"{v}.tiles" if tile.size(v) > 1 else v for v in f.args}
    last = f.args[-1]
    for tasks in (_FEW_TASKS, _TASKS):  # each reads all data again where it comes in blocks
        task = _task(f, d, tile, extents, tasks)
        inner, block = inner_terms(d, tile, extents, {v: extents[v] for v in f.args[:-1]} | {last: task * tile.size(last)})
        if block is not None:
            break
    loops.split(around[last], task, f"{last}.tasks", f"{last}.rows")
    around[last] = f"{last}.rows"
    terms = [dim.var for dim in loops.old.dims if dim.is_rvar()]
    for v in inner:
        loops.add(v)
    if block is not None:
        loops.split(block[0], block[1], f"{block[0]}.blocks", f"{block[0]}.block")
        loops.add(f"{block[0]}.block")
    nested = extents[last] is None and len(f.args) > 2 and block is None
    order = order_of_tiles(d, tile, extents, f.args[:-2] if nested else f.args)
    for v in order:
        loops.add(around[v])
    if nested:
        loops.add(around[last])
        loops.add(around[f.args[-2]], ForType.Parallel)
    if block is not None:
        for v in [f"{block[0]}.blocks", *terms[len(inner) + 1:]]:
            loops.add(v)
    loops.add(f"{last}.tasks", ForType.Parallel)


def _task(f: Function, d: Definition, tile: Tile, extents: Extents, tasks: int) -> int:
    """The number of tiles of the outermost dimension that make a task."""
    last = f.args[-1]
    extent = extents[last]
    if len(f.args) == 1:
        return max(_VALUES // _terms(d, extents) // tile.size(last), 1)
    if extent is not None:
        return max(-(-extent // tile.size(last)) // tasks, 1)
    return 1 if len(f.args) > 2 else max(_ROWS // tile.size(last), 1)
