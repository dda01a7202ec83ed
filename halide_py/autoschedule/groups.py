"""Groups: stages that are computed together, tile by tile of the last one's loops, and what that costs.

A group has one output stage. Its other members are inlined, or computed for each tile. The cost of a group is its operations plus its bytes
moved, each byte weighted by the size of what it comes from: what fits well into the last cache costs 1 a byte, what does not costs
`balance`. Members of a group are as large as a tile needs them, all else as large as the pipeline does. Source: Mullapudi et al., SIGGRAPH
2016, section 4; Halide's AutoSchedule.cpp (analyze_group).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..ir.target import Target
from .pipeline import PipelineGraph, Stage
from .regions import Region, Regions, Span, extent, size

VARIANTS = (1, 4, 8, 16, 32, 64, 128, 256)
INNERMOST = 64  # the least size of a tile in the innermost dimension: room for vectors and for prefetching

Tiles = Mapping[str, int]


@dataclass(frozen=True)
class Machine:
    """The machine the schedule is for: how many threads can work, bytes of the last cache, and how much more a byte from memory costs than
    an operation."""

    parallelism: int
    last_level_cache_size: int
    balance: float


@dataclass(frozen=True)
class Analysis:
    """What computing a group costs, and into how many parallel tiles it is cut."""

    arith: float
    memory: float
    parallelism: int

    @property
    def cost(self) -> float:
        """Operations and weighted bytes together."""
        return self.arith + self.memory


@dataclass(frozen=True, eq=False)
class Group:
    """A stage and what is computed with it; `tiles` are the sizes of tiles in those of its loops that are tiled."""

    output: Stage
    members: tuple[Stage, ...]
    inlined: frozenset[str] = frozenset()
    tiles: Tiles = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The Funcs of all members."""
        return frozenset(s.name for s in self.members)

    def with_producer(self, producer: Group) -> Group:
        """This group with all of another one."""
        return replace(self, members=(*self.members, *producer.members), inlined=self.inlined | producer.inlined)


def tile_choices(s: Stage) -> Iterator[dict[str, int]]:
    """The tilings that are tried: skewed ones, almost square ones, and tiles of one row."""
    free = [loop.name for loop in s.loops if not loop.is_rvar]
    for i, name in enumerate(free):
        for n in VARIANTS:
            yield {other: VARIANTS[-1] if j < i else VARIANTS[0] for j, other in enumerate(free)} | {
                name: max(n, INNERMOST) if i == 0 else n
            }
    for n in VARIANTS:
        yield {name: max(n, INNERMOST) if j == 0 else n for j, name in enumerate(free)}
    for chosen in range(1, 1 << len(free)):
        yield {name: INNERMOST if j == 0 else 1 for j, name in enumerate(free) if chosen >> j & 1}


class Analyst:
    """Costs of the groups of one pipeline."""

    def __init__(self, graph: PipelineGraph, regions: Regions, machine: Machine, target: Target) -> None:
        self.graph, self.regions, self.machine, self.target = graph, regions, machine, target
        self._whole_bytes = {name: regions.bytes_of(name, region) for name, region in regions.whole.items()}

    def whole(self, s: Stage) -> Region:
        """The spans of a stage's loops over all the pipeline needs."""
        return self.regions.bounds(s, self.regions.whole[s.name])

    def tile(self, s: Stage, tiles: Tiles) -> Region | None:
        """The spans of a stage's loops in one tile, about in the middle; loops shorter than two tiles are not cut. None: unbounded."""
        spans: list[Span] = []
        for loop, span in zip(s.loops, self.whole(s)):
            n, whole = tiles.get(loop.name), extent(span)
            if whole is None or span[0] is None:
                return None
            if n is None or whole < 2 * n:
                spans.append(span)
            else:
                first = span[0] + whole // n // 2 * n
                spans.append((first, first + n - 1))
        return tuple(spans)

    def analyze(self, g: Group) -> Analysis | None:
        """What a group costs; None where that cannot be said: an extern stage, a region without bounds."""
        s = g.output
        bounds = self.tile(s, g.tiles)
        if bounds is None or s.func.function.extern is not None:
            return None
        count = parallelism = 1
        for loop, span in zip(s.loops, self.whole(s)):
            if loop.name in g.tiles:
                whole = extent(span)
                assert whole is not None
                tiles = -(-whole // g.tiles[loop.name])
                count *= tiles
                parallelism *= tiles if loop.free else 1
        required = self.regions.required([(s, bounds)], g.names)
        arith, loads = 0, Counter[str]()
        for name, region in required.computed.items():
            if name not in g.names or name == s.name or name in g.inlined:
                continue
            for member in self.graph.nodes[name].stages:
                if member.func.function.extern is not None or size(spans := self.regions.bounds(member, region)) is None:
                    return None
                arith += self._add(member, spans, g, loads)
        arith += self._add(s, bounds, g, loads)
        memory = 0.0
        for name, moved in loads.items():
            footprint = self._footprint(name, g, required.allocated)
            if footprint is None:
                return None
            memory += moved * min(1 + footprint * self.machine.balance / self.machine.last_level_cache_size, self.machine.balance)
        return Analysis(float(arith * count), memory * count, parallelism)

    def _add(self, s: Stage, bounds: Region, g: Group, loads: Counter[str]) -> int:
        work, points = self.graph.work(s, g.inlined), size(bounds)
        assert points is not None
        for name, moved in work.loads.items():
            loads[name] += moved * points
        return work.arith * points * self._in_vain(s, bounds)

    def _in_vain(self, s: Stage, bounds: Region) -> int:
        """How many times as long a stage takes because no loop of a tile is long enough for vectors while one of the pipeline's is."""
        width = max(self.target.natural_vector_size(t) for t in s.func.function.types)

        def fits(region: Region) -> bool:
            return any((extent(span) or 0) >= width for loop, span in zip(s.loops, region) if loop.free or not loop.is_rvar)

        return width if fits(self.whole(s)) and not fits(bounds) else 1

    def _footprint(self, name: str, g: Group, allocated: Mapping[str, Region]) -> int | None:
        """How many bytes the loads from a Func or image are spread over."""
        if name in g.names and name != g.output.name:
            return self.regions.bytes_of(name, allocated[name])
        return self._whole_bytes[name]

    def is_better(self, old: Analysis | None, new: Analysis | None) -> bool:
        """Whether a group costs less than another, and leaves work for all threads."""
        return old is not None and new is not None and new.parallelism >= self.machine.parallelism and new.cost < old.cost

    def best_tiles(self, g: Group) -> tuple[Tiles, Analysis | None]:
        """The tiling of the least cost, with it; no tiles where none keeps all threads at work."""
        best: Tiles = {}
        least = self.analyze(replace(g, tiles={}))
        if least is None:
            return best, None
        tried = {self._effective(g.output, best)}
        for tiles in tile_choices(g.output):
            if (key := self._effective(g.output, tiles)) in tried:
                continue
            tried.add(key)
            new = self.analyze(replace(g, tiles=tiles))
            if self.is_better(least, new):
                best, least = tiles, new
        return best, least

    def _effective(self, s: Stage, tiles: Tiles) -> tuple[int, ...]:
        """What a tiling comes to: how often each loop is cut, and how large a tile is."""
        out = []
        for loop, span in zip(s.loops, self.whole(s)):
            whole, n = extent(span) or 1, tiles.get(loop.name)
            out += [0, whole] if n is None else [math.ceil(whole / n), n if whole >= 2 * n else whole]
        return tuple(out)
