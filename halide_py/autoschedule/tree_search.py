"""Tree search: beam search over the trees of loops of a pipeline, Func by Func from the outputs to the inputs.

A Func is inlined, computed at the root, or computed in a level of loops that is around all that reads it, one that is there or one that
is made for it by cutting these loops into tiles, inside of those that are there or around them; storage may stay outside of the loops
that compute it, which then slide. Every state that could come next gets a cost, and the best go on, of those that differ in sizes of
tiles alone a part. At the end the sizes of the best state are changed one by one as long as that makes it better. Source: Adams et al.,
2019, section 3; the order of decisions and the limits of the choices are our own.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import CompileError
from .nest_costs import MACHINE, NestCosts, counts, extents, middle
from .nests import Forest, Level, Path, Place, Realized, Sizes, StageNest, find
from .pipeline import Node, Stage
from .regions import Region, extent

_TALL = (1, 2, 4, 8, 16, 32, 64, 128)  # sizes of tiles in dimensions that do not run in vectors
_FEW = (1, 8, 32)
_VECTORS = (1, 2, 4, 8, 16, 32)  # vectors of tiles in the dimension that does
_INNER, _INNER_VECTORS = (1, 4, 16), (4,)  # of tiles in tiles
_SMALL = 4  # values of a dimension that is not worth cutting
_INLINED = 4096  # operations of a Func in all places it is inlined in
_IDLE = 1.34  # how much longer all may take because the last tasks leave cores without work


@dataclass(frozen=True)
class Options:
    """What the search may do: see docs/autoschedulers.md."""

    cores: int = 16
    beam_size: int = 32
    random_dropout: float = 100
    random_dropout_seed: int = 0
    subtiling: bool = True
    memory_limit: int = -1


@dataclass(frozen=True, eq=False)
class State:
    """Decisions for the Funcs so far. `paths`: where those that are computed are computed."""

    roots: dict[str, Realized]
    paths: dict[str, Path]
    inlined: frozenset[str]
    cost: float = 0.0

    def structure(self) -> tuple[frozenset[str], frozenset[tuple[str, Path]]]:
        """What is decided but for sizes of tiles."""
        return self.inlined, frozenset(self.paths.items())

    def at(self, path: Path, name: str) -> Realized:
        """A Func, computed at the end of `path`."""
        return find(self.roots[path[0][0] if path else name], path, name)


class Search:
    """The search over one pipeline."""

    def __init__(self, costs: NestCosts, options: Options) -> None:
        self.costs, self.options, self.forest = costs, options, Forest()
        self.graph, self.regions = costs.graph, costs.regions
        self.random = random.Random(options.random_dropout_seed or None)

    def best(self) -> State:
        """The best schedule found. Raises CompileError where none is within the limit of memory."""
        nodes = [node for node in reversed(self.graph.nodes.values()) if node.name in self.regions.whole]
        states = [State({}, {}, frozenset())]
        for node in nodes:
            children = [child for state in states for child in self._children(state, node)]
            states = self._survivors(children, 2 * len(nodes))
            if not states[0].cost < math.inf:
                raise CompileError(f"Adams2019 finds no schedule that keeps less than {self.options.memory_limit} bytes: {node.name} has "
                                   "to be computed as a whole. Give a larger memory_limit, or none")
        return self._polished(states[0])

    def _survivors(self, children: list[State], decisions: int) -> list[State]:
        """The states that go on, the best first."""
        kept: list[State] = []
        alike: dict[object, int] = {}
        most = max(self.options.beam_size // 4, 1)
        accepted = (self.options.random_dropout / 100) ** (1 / decisions) if decisions else 1.0
        ordered = sorted(children, key=lambda s: s.cost)
        for child in ordered:
            key = child.structure()
            if len(kept) < self.options.beam_size and alike.get(key, 0) < most and (accepted >= 1 or self.random.random() < accepted):
                alike[key] = alike.get(key, 0) + 1
                kept.append(child)
        return kept or ordered[:1]

    # -- what a state costs

    def _costed(self, state: State) -> State:
        costs, total, traffic = self.costs, 0.0, 0.0
        if 0 <= self.options.memory_limit < sum(costs.whole_bytes[name] for name, r in state.roots.items() if not r.node.is_output):
            return replace(state, cost=math.inf)
        for name, r in state.roots.items():
            group = costs.group(r, state.inlined)
            total += group.cycles
            for other, moved in group.traffic.items():
                if other in state.roots or other not in self.graph.nodes:
                    traffic += moved * self._beyond(other)
            traffic += costs.whole_bytes[name] * self._beyond(name) / min(self.options.cores, group.tasks)
        return replace(state, cost=total + traffic)

    def _beyond(self, name: str) -> float:
        """Cycles of a byte of a Func or image that is as large as the pipeline needs it."""
        return MACHINE.cycles_per_byte(max(self.costs.whole_bytes[name], MACHINE.caches[0][0] + 1))

    # -- what may be decided about a Func

    def _children(self, state: State, node: Node) -> Iterator[State]:
        readers = self._readers(state, node)
        if not node.is_output and not node.fixed and readers:
            if node.can_inline() and self._may_inline(state, node, readers):
                yield self._costed(replace(state, inlined=state.inlined | {node.name}))
            if all(None not in span for span in self.regions.whole[node.name]):
                for child in self._computed_inside(state, node, readers):
                    yield self._costed(child)
        yield self._costed(replace(state, roots={**state.roots, node.name: self.forest.fresh(node)}, paths={**state.paths, node.name: ()}))

    def _readers(self, state: State, node: Node) -> list[Stage]:
        """The stages that read a Func, themselves or by way of what is inlined into them."""
        out: dict[Stage, None] = {}
        for s in node.consumers:
            if s.name not in self.regions.whole:
                continue
            out |= dict.fromkeys(self._readers(state, s.func) if s.name in state.inlined else [s])
        return list(out)

    def _may_inline(self, state: State, node: Node, readers: list[Stage]) -> bool:
        """Whether the code stays small enough."""
        own = sum(self.costs.instructions(node.stages[0], frozenset()).whole.operations.values()) + 1
        calls = max(sum(a.name == node.name for a in self.costs.instructions(s, state.inlined).whole.loads) for s in readers)
        return calls * own <= _INLINED

    def _computed_inside(self, state: State, node: Node, readers: list[Stage]) -> Iterator[State]:
        """All places in loops around everything that reads a Func."""
        around = common([(*state.paths[s.name], (s.name, s.index, -1)) for s in readers])
        for i, (name, stage, deepest) in enumerate(around):
            path = around[:i]
            nest = state.at(path, name).nests[stage]
            if not nest.stage.loops or nest.stage.func.fixed:
                return
            last = deepest if deepest >= 0 else len(nest.levels) - 1
            for at in range(last + 1):
                yield self._placed(state, node, (*path, (name, stage, at)))
                if at and self._slides(state, node, path, (name, stage, at)):
                    yield self._placed(state, node, (*path, (name, stage, at)), stored=at - 1)
                yield from self._cut_around(state, node, path, (name, stage, at))
            if deepest < 0 and (self.options.subtiling or not path and not nest.levels):
                yield from self._cut(state, node, path, (name, stage, len(nest.levels)))

    def _cut(self, state: State, node: Node, path: Path, place: Place) -> Iterator[State]:
        """The places that come with one more level, or at the root with two, the Func being kept in the outer one."""
        name, stage, at = place
        bounds = self._bounds(state, path, (name, stage, at - 1))
        nest = state.at(path, name).nests[stage]
        for sizes in self._shapes(nest.stage, bounds, not path and not at):
            cut = self._with_levels(state, path, place, [self.forest.level(sizes)])
            yield self._placed(cut, node, (*path, place))
            if at and self._slides(cut, node, path, place):
                yield self._placed(cut, node, (*path, place), stored=at - 1)
            if at == 0 and not path and self.options.subtiling:
                inside = middle(bounds, sizes)
                for rows in self._rows(nest.stage, inside):
                    twice = self._with_levels(cut, path, (name, stage, 1), [self.forest.level(rows)])
                    if self._slides(twice, node, path, (name, stage, 1)):
                        yield self._placed(twice, node, ((name, stage, 1),), stored=0)

    def _cut_around(self, state: State, node: Node, path: Path, place: Place) -> Iterator[State]:
        """The places that come with one more level around one that is there."""
        name, stage, at = place
        nest = state.at(path, name).nests[stage]
        whole = extents(self._bounds(state, path, (name, stage, at - 1)))
        if at and not self.options.subtiling or any(level.stored for level in nest.levels[:at]):
            return
        for sizes in itertools.product(*self._widths(nest, at, whole)):
            if sizes != whole and (path or at or self._keeps_busy(nest.stage, whole, sizes)):
                around = self.forest.level(sizes)
                inside = self._following(replace(around, sizes=whole), sizes, nest.levels[at:])
                if all_cut(whole, (around, *inside)):
                    yield self._placed(self._with_levels(state, path, place, (around, *inside)), node, (*path, place))

    def _widths(self, nest: StageNest, at: int, whole: Sizes) -> Iterator[set[int]]:
        """The sizes that a level around another may have in each dimension: as that one, undivided, or some vectors."""
        lanes = max(self.costs.target.natural_vector_size(t) for t in nest.stage.func.function.types)
        for d, (loop, n, e) in enumerate(zip(nest.stage.loops, nest.levels[at].sizes, whole)):
            sizes = {min(n, e), e}
            if d == 0:
                sizes |= {k * lanes for k in _INNER_VECTORS}
            elif e <= _SMALL:
                sizes.add(1)
            yield {e} if loop.is_rvar else {k for k in sizes if k <= e}

    def _with_levels(self, state: State, path: Path, place: Place, levels: Sequence[Level]) -> State:
        """The state with a level more than there was at a place, and others inside of it."""
        name, stage, at = place
        r = state.at(path, name)
        new = self.forest.with_levels(r, stage, [*r.nests[stage].levels[:at], *levels])
        root, depth = path[0][0] if path else name, len(path)

        def moved(p: Path) -> Path:
            inside = len(p) > depth and p[:depth] == path and p[depth][:2] == (name, stage) and p[depth][2] >= at
            return (*path, (name, stage, p[depth][2] + 1), *p[depth + 1:]) if inside else p

        paths = {f: moved(p) for f, p in state.paths.items()} if len(levels) > 1 else state.paths
        return replace(state, roots={**state.roots, root: self.forest.replaced(state.roots[root], path, new)}, paths=paths)

    def _placed(self, state: State, node: Node, path: Path, stored: int = -1) -> State:
        """The state with a Func computed at the end of `path`, and kept at level `stored` of the same stage."""
        root = path[0][0]
        tree = self.forest.replaced(state.roots[root], path, self.forest.fresh(node))
        if stored >= 0:
            name, stage, _ = path[-1]
            r = find(tree, path[:-1], name)
            levels = list(r.nests[stage].levels)
            levels[stored] = self.forest.level(levels[stored].sizes, levels[stored].computed, (*levels[stored].stored, node.name))
            tree = self.forest.replaced(tree, path[:-1], self.forest.with_levels(r, stage, levels))
        return replace(state, roots={**state.roots, root: tree}, paths={**state.paths, node.name: path})

    def _bounds(self, state: State, path: Path, place: Place) -> Region:
        """What one iteration of a level covers of the loops of its stage (-1: all of it)."""
        name, stage, at = place
        if path:
            region = self._region(state, path, name)
        else:
            region = self.regions.whole[name]
        nest = state.at(path, name).nests[stage]
        bounds = self.regions.bounds(nest.stage, region)
        for level in nest.levels[:at + 1]:
            bounds = middle(bounds, level.sizes)
        return bounds

    def _region(self, state: State, path: Path, name: str) -> Region:
        """What is computed of a Func at the end of `path` at a time."""
        around, place = path[:-1], path[-1]
        nest = state.at(around, place[0]).nests[place[1]]
        inside = frozenset().union(*(c.names for level in nest.levels[place[2]:] for c in level.computed))
        required = self.costs.required(nest.stage, self._bounds(state, around, place), inside | state.inlined | {name})
        return required.allocated[name]

    def _slides(self, state: State, node: Node, path: Path, place: Place) -> bool:
        """Whether a Func kept one level further out is computed piece by piece along one dimension."""
        name, stage, at = place
        if len(node.stages) > 1 or node.name in state.paths:
            return False
        level, outer = ((*path, (name, stage, k)) for k in (at, at - 1))
        sizes, around = self._bounds(state, path, place), self._bounds(state, path, (name, stage, at - 1))
        cut = [d for d, c in enumerate(counts(around, extents(sizes))) if c > 1]
        loops = state.at(path, name).nests[stage].stage.loops
        if len(cut) != 1 or loops[cut[0]].is_rvar or cut[0] == 0 and len(sizes) > 1:
            return False  # it slides over one dimension, and not over the one that runs in vectors
        small, large = self._region(state, level, node.name), self._region(state, outer, node.name)
        grown = [(extent(a) or 0, extent(b) or 0) for a, b in zip(small, large) if extent(a) != extent(b)]
        steps = math.prod(counts(around, extents(sizes)))
        return len(grown) == 1 and -(-grown[0][1] // steps) < grown[0][0]

    # -- sizes of tiles

    def _shapes(self, s: Stage, bounds: Region, is_root: bool) -> Iterator[Sizes]:
        """The tiles a stage may be cut into: many where tasks are made, few in tiles of tasks."""
        whole = extents(bounds)
        lanes = max(self.costs.target.natural_vector_size(t) for t in s.func.function.types)
        free = [d for d, loop in enumerate(s.loops) if not loop.is_rvar]
        tall = sorted(free[1:], key=lambda d: -whole[d])[:1]
        choices: list[Sequence[int]] = [(n,) for n in whole]
        for d in free:
            if d == free[0]:
                sizes: Sequence[int] = [k * lanes for k in (_VECTORS if is_root else _INNER_VECTORS)]
            elif whole[d] <= _SMALL:
                sizes = (1,)
            else:
                sizes = (_TALL if d in tall else _FEW) if is_root else _INNER if d in tall else (1,)
            choices[d] = [*(n for n in sizes if n < whole[d]), whole[d]]
        for tile in itertools.product(*choices):
            if tile != whole and (not is_root or self._keeps_busy(s, whole, tile)):
                yield tile

    def _keeps_busy(self, s: Stage, whole: Sizes, sizes: Sizes) -> bool:
        """Whether tiles are tasks enough for all cores, and of use."""
        tasks = math.prod(-(-e // n) for loop, e, n in zip(s.loops, whole, sizes) if loop.free)
        rounds = -(-tasks // self.options.cores)
        return tasks > 1 and rounds * self.options.cores <= tasks * _IDLE

    def _rows(self, s: Stage, bounds: Region) -> Iterator[Sizes]:
        """Tiles of one or a few rows of the outermost dimension that is long."""
        whole = extents(bounds)
        long = [d for d, loop in enumerate(s.loops) if not loop.is_rvar and whole[d] > _SMALL][1:]
        for d in long[-1:]:
            for n in (1, 2, 4):
                if n < whole[d]:
                    yield tuple(n if i == d else e for i, e in enumerate(whole))

    # -- the last touch

    def _polished(self, state: State) -> State:
        """A state with sizes of tiles changed one by one as long as that makes it better."""
        while True:
            better = min((self._costed(s) for s in self._resized(state)), key=lambda s: s.cost, default=state)
            if better.cost >= state.cost * 0.999:
                return state
            state = better

    def _resized(self, state: State) -> Iterator[State]:
        for root, r in state.roots.items():
            for new in self._resized_tree(state, (), r):
                yield replace(state, roots={**state.roots, root: new})

    def _resized_tree(self, state: State, path: Path, r: Realized) -> Iterator[Realized]:
        """The trees in which one level has one size that is twice or half as large."""
        for k, nest in enumerate(r.nests):
            for at, level in enumerate(nest.levels):
                around = extents(self._bounds(state, path, (r.node.name, k, at - 1)))
                for sizes in self._neighbours(nest, at, around):
                    levels = self._following(level, sizes, nest.levels[at:])
                    if all_cut(around, levels) and (path or at or self._keeps_busy(nest.stage, around, sizes)):
                        yield self.forest.with_levels(r, k, [*nest.levels[:at], *levels])
                for c in level.computed:
                    for new in self._resized_tree(state, (*path, (r.node.name, k, at)), c):
                        yield self.forest.replaced(r, ((r.node.name, k, at),), new)

    def _following(self, changed: Level, sizes: Sizes, levels: Sequence[Level]) -> list[Level]:
        """Levels from one on that gets other sizes; what is not cut further inside stays so."""
        def follow(level: Level) -> Sizes:
            return tuple(new if n == old else min(n, new) for n, old, new in zip(level.sizes, changed.sizes, sizes))

        return [self.forest.level(follow(level), level.computed, level.stored) for level in levels]

    def _neighbours(self, nest: StageNest, at: int, around: Sizes) -> Iterator[Sizes]:
        """Sizes of a level in which one is twice or half as large. Loops along which something slides stay the only ones of their level."""
        level = nest.levels[at]
        lanes = max(self.costs.target.natural_vector_size(t) for t in nest.stage.func.function.types)
        slides = any(outer.stored for outer in nest.levels[:at])
        for d, loop in enumerate(nest.stage.loops):
            old, inside = min(level.sizes[d], around[d]), nest.levels[at + 1].sizes[d] if at + 1 < len(nest.levels) else 1
            if loop.is_rvar or around[d] == 1 or slides and old == around[d]:
                continue
            least = max(inside if inside < old else 1, lanes if d == 0 and around[d] >= lanes else 1)
            for n in (min(2 * old, around[d]), old // 2):
                sizes = tuple(n if i == d else e for i, e in enumerate(level.sizes))
                if n >= least and n != old and any(a > b for a, b in zip(around, sizes)):
                    yield sizes


def all_cut(whole: Sizes, levels: Sequence[Level]) -> bool:
    """Whether each of some levels has a loop."""
    for level in levels:
        if all(n >= e for n, e in zip(level.sizes, whole)):
            return False
        whole = tuple(map(min, level.sizes, whole))
    return True


def common(paths: Sequence[Path]) -> Path:
    """The levels around all of these; the last one has level -1 where it is anywhere inside of a stage."""
    out: list[Place] = []
    for places in zip(*paths):
        if len({place[:2] for place in places}) > 1:
            break
        levels = [place[2] for place in places]
        if len(set(levels)) > 1:
            out.append((*places[0][:2], min(level for level in levels if level >= 0)))
            break
        out.append(places[0])
        if levels[0] < 0:
            break
    return tuple(out)


