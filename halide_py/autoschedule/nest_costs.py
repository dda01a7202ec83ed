"""Nest costs: what running a tree of loops takes, in cycles of one core's time while all cores work.

The model is our own, made by hand and not learned. Its features are those of the paper: points computed, with what tiles compute twice
and what vectors compute in vain; vector instructions; bytes that come from further away than the caches hold; Funcs made anew for each
tile; tasks against cores. A loop nest reads from beyond a cache what one run of the outermost loop whose iterations fit there touches.
What is not decided yet costs nothing. Source of the features: Adams et al., 2019, section 4; of the weights `MACHINE`: a current x86
core, by the order of magnitude.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir.nodes import Call, CallType
from ..ir.target import Target
from ..ir.traverse import nodes_of
from ..lower.environment import definition_roots
from .accesses import Piece
from .instructions import StageInstructions
from .locality import Locality
from .nests import Level, Realized, StageNest
from .pipeline import PipelineGraph, Stage
from .regions import Region, Regions, Required, Span, extent


@dataclass(frozen=True)
class Memory:
    """Caches, in bytes, and the cycles a byte takes from beyond each; cycles around what is not loops."""

    caches: tuple[tuple[int, float], ...] = ((32 << 10, 0.03), (512 << 10, 0.06), (16 << 20, 0.2))
    realization: float = 80.0  # memory and bounds of a Func made anew
    stage: float = 20.0  # of each of its stages
    task: float = 250.0  # handing a task to a thread
    launch: float = 4000.0  # starting to work with all threads, and waiting for the last

    def cycles_per_byte(self, working_set: float) -> float:
        """Of a byte that is used again after so many others."""
        return sum(cycles for held, cycles in self.caches if working_set > held)


MACHINE = Memory()
Kept = dict[str, tuple[Region, int]]  # what is kept at a level and computed further inside: the region there, and the runs of that level
HELD = MACHINE.caches[1][0]  # the cache in which what neighbouring iterations share stays


@dataclass
class GroupCost:
    """What a Func at the root takes, with all that is in its loops; `traffic`: bytes of what is outside that come from beyond the cache."""

    cycles: float = 0.0
    traffic: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    tasks: int = 1


def extents(bounds: Region) -> tuple[int, ...]:
    """Values of each loop, 1 of a loop of unknown size."""
    return tuple([1 if low is None or high is None or high <= low else high - low + 1 for low, high in bounds])


def middle(bounds: Region, sizes: Sequence[int]) -> Region:
    """One tile, about in the middle."""
    out = []
    for span, n in zip(bounds, sizes):
        low, high = span
        if low is None or high is None or n > high - low:
            out.append(span)
        else:
            first = low + (high - low + 1) // n // 2 * n
            out.append((first, first + n - 1))
    return tuple(out)


def counts(bounds: Region, sizes: Sequence[int]) -> tuple[int, ...]:
    """Iterations of each loop over tiles of these sizes."""
    return tuple([-(-e // n) if n < e else 1 for e, n in zip(extents(bounds), sizes)])


class NestCosts:
    """Costs of the trees over one pipeline."""

    def __init__(self, graph: PipelineGraph, regions: Regions, target: Target, cores: int) -> None:
        self.graph, self.regions, self.target, self.cores = graph, regions, target, cores
        self.locality = Locality(graph, regions)
        self._pieces: dict[Stage, Piece] = {}
        self._stages: dict[tuple[Stage, frozenset[str]], StageInstructions] = {}
        self._required: dict[tuple[Stage, Region, frozenset[str]], Required] = {}
        self._groups: dict[tuple[Realized, frozenset[str]], GroupCost] = {}
        self._nests: dict[tuple[StageNest, Region, frozenset[str]], float] = {}
        self._moved: dict[tuple[StageNest, Region, frozenset[str]], dict[str, float]] = {}
        self._bytes: dict[tuple[str, Region], int] = {}
        self._strides: dict[str, list[int]] = {}
        definitions = [d for node in graph.nodes.values() for d in node.function.stages()]
        self._images = {c.name: c for d in definitions for c in nodes_of(definition_roots(d), Call) if c.call_type is CallType.Image}
        self.whole_bytes = {name: float(regions.bytes_of(name, region) or 0) for name, region in regions.whole.items()}

    def strides(self, name: str) -> list[int]:
        """Bytes between neighbours in each dimension of a Func or image, as if all of it were stored."""
        if name not in self._strides:
            region = self.regions.whole[name]
            found = self.locality.strides(name, region, self._images.get(name))
            self._strides[name] = found if found is not None else [1 << 30] * len(region)
        return self._strides[name]

    def instructions(self, s: Stage, inlined: frozenset[str]) -> StageInstructions:
        """A stage with Funcs inlined."""
        key = s, inlined & self.graph.producers(s.name)
        found = self._stages.get(key)
        if found is None:
            pieces = {name: self._piece(self.graph.nodes[name].stages[0]) for name in reversed(self.graph.nodes) if name in key[1]}
            found = self._stages[key] = StageInstructions(s, self._piece(s), pieces, self.target, self.strides)
        return found

    def _piece(self, s: Stage) -> Piece:
        if s not in self._pieces:
            self._pieces[s] = Piece(s.func.function, s.definition, [loop.name for loop in s.loops])
        return self._pieces[s]

    def required(self, s: Stage, bounds: Region, members: frozenset[str]) -> Required:
        """What computing a stage over some spans needs."""
        key = s, bounds, members
        found = self._required.get(key)
        if found is None:
            found = self._required[key] = self.regions.required([(s, bounds)], members)
        return found

    def group(self, r: Realized, inlined: frozenset[str]) -> GroupCost:
        """What computing a Func at the root takes, over all cores."""
        key = r, inlined & frozenset().union(*(self.graph.producers(name) for name in r.names))
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = self._group(r, key[1])
        return found

    def _group(self, r: Realized, inlined: frozenset[str]) -> GroupCost:
        out = GroupCost()
        for nest in r.nests:
            bounds = self.regions.bounds(nest.stage, self.regions.whole[r.node.name])
            cycles, tasks, share = self._nest(nest, bounds, inlined), self.tasks(nest, bounds), 1.0
            rounds = -(-tasks // self.cores)
            together = cycles * rounds / tasks + MACHINE.task * rounds + MACHINE.launch
            if tasks > 1 and together < cycles:
                cycles, share = together, rounds / tasks
            out.cycles += cycles
            out.tasks = max(out.tasks, tasks)
            for name, moved in self._traffic(nest, bounds, inlined).items():
                if name not in r.names or name == nest.stage.name and nest.stage.index:
                    out.traffic[name] += moved * share
        return out

    def tasks(self, nest: StageNest, bounds: Region) -> int:
        """Into how many tasks a stage at the root is cut."""
        if nest.levels:
            found = counts(bounds, nest.levels[0].sizes)
            return math.prod(c for loop, c in zip(nest.stage.loops, found) if loop.free)
        free = [e for loop, e in zip(nest.stage.loops, extents(bounds)) if loop.free and not loop.is_rvar]
        return math.prod(free[1:]) if len(free) > 1 else max(free[0] // 512, 1) if free else 1

    def bytes(self, name: str, region: Region) -> int:
        """Bytes of a region of a Func or image, 0 where it has no end."""
        key = name, region
        found = self._bytes.get(key)
        if found is None:
            found = self._bytes[key] = self.regions.bytes_of(name, region) or 0
        return found

    def _nest(self, nest: StageNest, bounds: Region, inlined: frozenset[str]) -> float:
        """Cycles for one run of a stage over some spans of its loops, with all that is computed in them."""
        key = nest, bounds, inlined
        found = self._nests.get(key)
        if found is None:
            found = self._nests[key] = self._run(nest, bounds, inlined)
        return found

    def _run(self, nest: StageNest, bounds: Region, inlined: frozenset[str]) -> float:
        cycles, runs = 0.0, 1
        stored: Kept = {}
        for at, level in enumerate(nest.levels):
            runs *= math.prod(counts(bounds, level.sizes))
            bounds = middle(bounds, level.sizes)
            if not level.computed and not level.stored:
                continue
            inside = frozenset().union(*(c.names for deeper in nest.levels[at:] for c in deeper.computed))
            required = self.required(nest.stage, bounds, inside | inlined)
            for name in level.stored:
                stored[name] = required.allocated[name], runs
            working_set = sum(self.bytes(name, region) for name, region in required.allocated.items() if name not in inlined)
            cycles += runs * self._computed(level, required, stored, runs, working_set, inlined)
        inner = self.instructions(nest.stage, inlined).inner(extents(bounds))
        return cycles + runs * (inner.cycles + MACHINE.stage)

    def _computed(self, level: Level, required: Required, stored: Kept, runs: int, working_set: int, inlined: frozenset[str]) -> float:
        """Cycles for what one iteration of a level computes."""
        cycles = 0.0
        for c in level.computed:
            region = required.allocated[c.node.name]
            if c.node.name in stored:
                region = slid(region, *stored[c.node.name], runs)
            moved = self.bytes(c.node.name, region)
            cycles += MACHINE.realization + 2 * moved * MACHINE.cycles_per_byte(working_set)
            cycles += sum(self._nest(nest, self.regions.bounds(nest.stage, region), inlined) for nest in c.nests)
        return cycles

    def _traffic(self, nest: StageNest, bounds: Region, inlined: frozenset[str]) -> dict[str, float]:
        """Bytes of what is stored that come from beyond the cache while a stage runs over some spans, with all computed in its loops."""
        key = nest, bounds, inlined
        if key not in self._moved:
            self._moved[key] = self._move(nest, bounds, inlined)
        return self._moved[key]

    def _move(self, nest: StageNest, bounds: Region, inlined: frozenset[str]) -> dict[str, float]:
        out: dict[str, float] = defaultdict(float)
        runs, at = 1, 0  # levels from `at` on are inside of one iteration
        required = self.required(nest.stage, bounds, inlined.union(*(c.names for level in nest.levels for c in level.computed)))
        for level, one in self._iterations(nest, bounds):
            if level > at:  # what is computed between the levels passes by the cache itself
                for c in nest.levels[at].computed:
                    for inner in c.nests:
                        region = self.regions.bounds(inner.stage, required.allocated[c.node.name])
                        for name, moved in self._traffic(inner, region, inlined).items():
                            out[name] += runs * moved
                at = level
            inside = self.required(nest.stage, one, inlined.union(*(c.names for deeper in nest.levels[at:] for c in deeper.computed)))
            if sum(self.bytes(name, region) for name, region in inside.allocated.items() if name not in inlined) <= HELD:
                break
            runs *= math.prod(counts(bounds, extents(one)))
            bounds, required = one, inside
        for name, region in required.allocated.items():
            if name not in inlined:
                out[name] += runs * self.bytes(name, region)
        return out

    def _iterations(self, nest: StageNest, bounds: Region) -> list[tuple[int, Region]]:
        """What one iteration of each loop covers, from the outermost inwards, with the level that loop is in."""
        out = []
        whole = extents(bounds)
        for level, sizes in enumerate((*(level.sizes for level in nest.levels), tuple(1 if i else n for i, n in enumerate(whole)))):
            for d in reversed(range(len(sizes))):
                cut = middle(bounds, [n if i == d else e for i, (n, e) in enumerate(zip(sizes, extents(bounds)))])
                if cut != bounds:
                    bounds = cut
                    out.append((level, bounds))
        return out


def slid(region: Region, kept: Region, kept_runs: int, runs: int) -> Region:
    """What one iteration computes of a Func of which `kept` stays from iteration to iteration."""
    steps = max(runs // kept_runs, 1)
    out: list[Span] = []
    for span, whole in zip(region, kept):
        e, all_of_it = extent(span), extent(whole)
        if e is not None and all_of_it is not None and all_of_it > e and span[0] is not None:
            out.append((span[0], span[0] + max(min(-(-all_of_it // steps), e), 1) - 1))
        else:
            out.append(span)
    return tuple(out)
