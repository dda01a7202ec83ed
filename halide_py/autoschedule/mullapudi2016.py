"""Mullapudi2016: groups of Funcs computed tile by tile, chosen by a cost model, with loops in the order of locality, in vectors and on
threads.

Each group's output is computed at the root: its loops are ordered for locality, cut into tiles, the innermost long enough loop runs in
vectors, and loops from the outermost inwards on threads until there is work for all of them. Members of the group are computed in the tile
loops, in vectors. Source: Mullapudi, Adams, Sharlet, Ragan-Kelley, Fatahalian, "Automatically Scheduling Halide Image Processing
Pipelines", SIGGRAPH 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.function import Function
from ..ir.target import Target
from .groups import Analyst, Group, Machine
from .locality import Locality
from .loops import StageLoops
from .partition import Partition
from .pipeline import PipelineGraph, Stage, estimated_graph
from .plan import Place, Plan
from .regions import Region, bounded_graph, extent


def mullapudi2016(outputs: Sequence[Function], target: Target, machine: Machine) -> Plan:
    """The schedule of a pipeline that has none. Raises CompileError for what lacks an estimate."""
    graph, regions = bounded_graph(estimated_graph(outputs))
    analyst = Analyst(graph, regions, machine, target)
    return _Scheduler(graph, analyst, target).schedule(Partition(graph, analyst))


class _Scheduler:
    def __init__(self, graph: PipelineGraph, analyst: Analyst, target: Target) -> None:
        self.graph, self.analyst, self.target, self.plan = graph, analyst, target, Plan()
        self.locality = Locality(graph, analyst.regions)

    def schedule(self, partition: Partition) -> Plan:
        """The directives for all groups, consumers first."""
        self.inlined = frozenset(name for g in partition.groups.values() for name in g.inlined)
        for g in reversed(partition.groups.values()):
            if g.output.index == 0:
                self.plan.add(g.output.name, 0, "compute_root")
            if g.output.loops:
                self._group(g)
        return self.plan

    def _group(self, g: Group) -> None:
        s = g.output
        bounds = self.analyst.tile(s, g.tiles)
        required = self.analyst.regions.required([(s, bounds)], g.names) if bounds is not None else None
        allocated = {} if required is None else {name: r for name, r in required.allocated.items() if name in g.names and name != s.name}
        loops = StageLoops.of(self.plan, s, [extent(span) for span in self.analyst.whole(s)])
        self.locality.reorder(s, loops, self.inlined, allocated)
        outer = self._tile(loops, g)
        self._vectorize(s, loops)
        self._parallelize(loops)
        loops.done()
        if required is None or len(g.names) == 1:
            return
        lanes = next((i for i, r in enumerate(loops.loops) if r.vectorized), -1)
        place = next((r.loop for r in loops.loops[lanes + 1:] if r.var.name in outer), None)
        for name in self.graph.nodes:
            if name in g.names and name != s.name and name not in g.inlined:
                self._member(
                    name,
                    None if place is None else Place(s.name, s.index, place, len(s.func.stages) > 1),
                    required.computed[name],
                    allocated,
                )

    def _tile(self, loops: StageLoops, g: Group) -> list[str]:
        """Cut the loops into tiles; gives the loops over tiles."""
        inner, outer = [], []
        for r in list(loops.loops):
            n, name = g.tiles.get(r.var.name), r.var.name
            if n is None or r.extent is None or r.extent <= n:
                inner.append(name)
            elif n == 1:
                outer.append(name)
            else:
                o, i = loops.split(name, n, "_o", "_i")
                inner.append(i)
                outer.append(o)
        if outer:
            loops.reorder([*inner, *outer])
        return outer

    def _vectorize(self, s: Stage, loops: StageLoops) -> None:
        """Run the innermost loop that is long enough in vectors."""
        width = max(self.target.natural_vector_size(t) for t in s.func.function.types)
        for r in loops.loops:
            if (r.var.free or not r.var.is_rvar) and r.extent is not None and r.extent >= width > 1:
                _, inner = loops.split(r.var.name, width, "_vo", "_vi")
                loops.vectorize(inner)
                return

    def _parallelize(self, loops: StageLoops) -> None:
        """Run loops on threads, from the outermost inwards, until there is work for all."""
        tasks, inside = 1, ""
        for r in reversed(list(loops.loops)):
            if r.vectorized or r.extent is None or tasks >= self.analyst.machine.parallelism:
                return
            if r.var.is_rvar and not r.var.free:
                inside = inside or r.var.name
                continue
            if inside:  # all of the ordered loops go inside, as they are
                names = [q.var.name for q in loops.loops]
                loops.reorder([*names[names.index(r.var.name) + 1:names.index(inside) + 1], r.var.name])
            loops.parallel(r.var.name)
            tasks *= r.extent

    def _member(self, name: str, place: Place | None, region: Region, allocated: dict[str, Region]) -> None:
        """A Func of a group: computed for each tile, in vectors."""
        node = self.graph.nodes[name]
        if place is None:
            self.plan.add(name, 0, "compute_root")
        else:
            self.plan.add(name, 0, "compute_at", place)
        for s in node.stages:
            loops = StageLoops.of(self.plan, s, [extent(span) for span in self.analyst.regions.bounds(s, region)])
            self.locality.reorder(s, loops, self.inlined, allocated)
            self._vectorize(s, loops)
            loops.done()
