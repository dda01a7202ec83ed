"""Nest plan: the directives that give a pipeline the loops of a tree of nests.

The loops of a level are those whose tiles are smaller than what is around them, the first dimension innermost. Inside of the last level
run, from the inside: the lanes of a vector, an unrolled loop, the loops over vectors and points; of an accumulation the tile that stays
in registers, the terms, the tiles. Loops that nothing promises the extent of are guarded: those of outputs, of updates, and of Funcs
that read an input just where they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.function import TailStrategy
from ..lower.register_tiles import order_of_tiles
from .instructions import Inner
from .loops import StageLoops
from .nest_costs import HELD, NestCosts, extents, middle
from .nests import Realized, StageNest
from .plan import Place, Plan
from .regions import Region
from .tree_search import State


def plan_of(state: State, costs: NestCosts) -> Plan:
    """The directives of a state in which everything is decided."""
    writer = _Writer(state, costs)
    for name, r in state.roots.items():
        writer.realized(r, None, None, costs.regions.whole[name])
    return writer.plan


class _Writer:
    def __init__(self, state: State, costs: NestCosts) -> None:
        self.inlined, self.costs, self.plan = state.inlined, costs, Plan()

    def realized(self, r: Realized, place: Place | None, stored: Place | None, region: Region) -> None:
        """A Func computed at a place, or at the root, over a region, with all that is in its loops."""
        name = r.node.name
        if place is None:
            self.plan.add(name, 0, "compute_root")
        else:
            self.plan.add(name, 0, "compute_at", place)
        if stored is not None:
            self.plan.add(name, 0, "store_at", stored)
        inside: list[tuple[Realized, Place, Place | None, Region]] = []
        for nest in r.nests:
            if nest.stage.loops:
                inside += self._stage(nest, self.costs.regions.bounds(nest.stage, region), place is None)
        for one in inside:
            self.realized(*one)

    def _stage(self, nest: StageNest, bounds: Region, at_root: bool) -> list[tuple[Realized, Place, Place | None, Region]]:
        """The loops of one stage; gives what is computed in them."""
        s = nest.stage
        loops = StageLoops.of(self.plan, s, extents(bounds))
        instructions = self.costs.instructions(s, self.inlined)
        if loops.tail is TailStrategy.Auto and any(a.name not in self.costs.graph.nodes for a in instructions.whole.loads):
            loops.tail = TailStrategy.GuardWithIf  # what is computed beyond would be read beyond the end of an input
        now = {loop.name: loop.name for loop in s.loops}  # the part of each loop that is not in a level yet
        order: list[list[str]] = []  # the loops of each level
        inside = []
        stored: dict[str, Place] = {}
        for at, level in enumerate(nest.levels):
            whole = extents(bounds)
            order.append([])
            for loop, size, e in zip(s.loops, level.sizes, whole):
                if size >= e:
                    continue
                if size == 1:
                    order[-1].append(now.pop(loop.name))
                else:
                    outer, now[loop.name] = loops.split(now[loop.name], size, "_o" if at == 0 else "_m", "_i")
                    order[-1].append(outer)
            bounds = middle(bounds, level.sizes)
            here = Place(s.name, s.index, loops.loops[loops.find(order[-1][0])].loop, len(s.func.stages) > 1)
            members = frozenset().union(*(c.names for deeper in nest.levels[at:] for c in deeper.computed))
            required = self.costs.required(s, bounds, members | self.inlined)
            stored |= dict.fromkeys(level.stored, here)
            inside += [(c, here, stored.get(c.node.name), required.allocated[c.node.name]) for c in level.computed]
        inner = self._inner(loops, now, instructions.inner(extents(bounds)), bounds, nest)
        loops.reorder([*inner, *(name for level in reversed(order) for name in level)])
        self._vectorize(loops)
        if at_root:
            self._parallelize(loops, order[0] if order else inner)
        loops.done()
        return inside

    def _inner(self, loops: StageLoops, now: dict[str, str], inner: Inner, bounds: Region, nest: StageNest) -> list[str]:
        """Split what is left of the loops; gives them in order, innermost first."""
        self.vectors: list[str] = []
        self.unrolled: list[str] = []
        if inner.tile is not None:
            return self._accumulation(loops, now, inner, bounds, nest)
        head, tail = [], dict(now)
        sizes = dict(zip((loop.name for loop in nest.stage.loops), extents(bounds)))
        if inner.vector:
            blocks, lanes = loops.split(now[inner.vector], inner.lanes, "_vo", "_vi")
            head, self.vectors = [lanes], [lanes]
            tail[inner.vector] = blocks
        if inner.unrolled and inner.unrolled in now:
            outer, one = loops.split(now[inner.unrolled], sizes[inner.unrolled], "_uo", "_ui")
            head.append(one)
            self.unrolled = [one]
            tail[inner.unrolled] = outer
        if inner.vector:
            order = [name for name in tail if name != inner.vector]
            repeated = [name for name in order if self._reads_the_same(nest, name)]
            order = repeated + [name for name in order if name not in repeated]
            order.insert(max(self._around_vectors(nest, bounds, inner, order), len(repeated)), inner.vector)
            tail = {name: tail[name] for name in order}
        return [*head, *tail.values()]

    def _reads_the_same(self, nest: StageNest, name: str) -> bool:
        """Whether all iterations of a loop read the same elements, which are then loaded once if it runs innermost."""
        loads = self.costs.instructions(nest.stage, self.inlined).whole.loads
        return bool(loads) and not nest.stage.index and all(i.is_affine() and i.factor(name) == 0 for a in loads for i in a.dims)

    def _around_vectors(self, nest: StageNest, bounds: Region, inner: Inner, order: Sequence[str]) -> int:
        """How many of the other loops run inside of the one over vectors. None, mostly; but RVars that walk over the same data again and
        again do where it fits the cache for one vector only, and so do the loops along which memory is dense."""
        rvars = [order.index(loop.name) for loop in nest.stage.loops if loop.is_rvar and loop.name in order]
        touched = self.costs.required(nest.stage, bounds, self.inlined).allocated
        if len(rvars) > 1 and sum(self.costs.bytes(name, region) for name, region in touched.items()) > HELD:
            return max(rvars) + 1
        names = [loop.name for loop in nest.stage.loops if not loop.is_rvar]
        return sum(name in names[:names.index(inner.vector)] for name in order)

    def _accumulation(self, loops: StageLoops, now: dict[str, str], inner: Inner, bounds: Region, nest: StageNest) -> list[str]:
        tile, s = inner.tile, nest.stage
        assert tile is not None
        head: list[str] = []
        for v in [tile.vector, *(v for v in tile.counts if v != tile.vector)]:
            if v not in now:
                continue
            if v == tile.vector and tile.width > 1:
                if tile.counts[v] > 1:
                    now[v], block = loops.split(now[v], tile.size(v), "_to", "_t")
                    vectors, lanes = loops.split(block, tile.width, "_vo", "_vi")
                    head += [lanes, vectors]
                    self.unrolled.append(vectors)
                else:
                    now[v], lanes = loops.split(now[v], tile.width, "_to", "_vi")
                    head.append(lanes)
                self.vectors.append(lanes)
            elif tile.size(v) > 1:
                now[v], one = loops.split(now[v], tile.size(v), "_to", "_t")
                head.append(one)
                self.unrolled.append(one)
        terms = [now.pop(loop.name) for loop in s.loops if loop.is_rvar]
        sizes = {loop.name: e for loop, e in zip(s.loops, extents(bounds))}
        free = [v for v in order_of_tiles(s.definition, tile, sizes, [loop.name for loop in s.loops if not loop.is_rvar]) if v in now]
        return [*head, *terms, *(now[v] for v in free)]

    def _vectorize(self, loops: StageLoops) -> None:
        for name in self.vectors:
            loops.vectorize(name)
        for name in self.unrolled:
            loops.emit("unroll", loops.loops[loops.find(name)].loop)

    def _parallelize(self, loops: StageLoops, names: Sequence[str]) -> None:
        """Run the outermost loops on threads, until there is work for all."""
        tasks = 1
        for r in reversed([r for r in loops.loops if r.var.name in names]):
            if r.vectorized or r.var.name in self.unrolled or r.extent is None or tasks >= self.costs.cores:
                return
            if r.var.is_rvar and not r.var.free:
                return
            if r.extent > 1:
                loops.parallel(r.var.name)
                tasks *= r.extent
