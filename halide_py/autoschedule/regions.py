"""Regions: what a tile of a stage needs of every Func and image before it, as numbers.

The box one stage reads of another is found once, symbolically, in the reader's own loop bounds (`ir.boxes`, as bounds inference does), and
made a function of numbers (`numeric`). A chain of producers is then walked in plain arithmetic. What has no bound is as large as its
estimate says; a Func without one is unbounded, and None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import boxes_touched
from ..ir.function import Definition, Function, ReductionVariable
from ..ir.interval import Interval
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from ..lower.bounds_inference import FuncValues, function_values
from ..lower.environment import callees, definition_roots
from .estimates import buffer_dimension, func_estimate, output_estimates, size_of, substitute_estimates
from .numeric import Numbers, compiled
from .pipeline import Node, PipelineGraph, Stage, inline_chosen

End = int | None
Span = tuple[End, End]  # first and last; None where there is no limit
Region = tuple[Span, ...]


def extent(span: Span) -> int | None:
    """How many values a span has."""
    low, high = span
    return None if low is None or high is None else max(high - low + 1, 0)


def size(region: Iterable[Span]) -> int | None:
    """How many points a region has; None if it is unbounded."""
    total = 1
    for span in region:
        e = extent(span)
        if e is None:
            return None
        total *= e
    return total


def union(a: Region | None, other: Region) -> Region:
    """The smallest region that holds both."""
    if a is None or a == other:
        return other
    return tuple((None if p[0] is None or q[0] is None else min(p[0], q[0]), None if p[1] is None or q[1] is None else max(p[1], q[1]))
                 for p, q in zip(a, other))


@dataclasses.dataclass
class Required:
    """What is needed: `computed` of each Func and image, not counting what a Func reads of itself; `allocated` with that."""

    computed: dict[str, Region] = dataclasses.field(default_factory=dict)
    allocated: dict[str, Region] = dataclasses.field(default_factory=dict)


class _Reads:
    """The boxes a stage reads, as a function of the spans of its loops."""

    def __init__(self, s: Stage, d: Definition, values: FuncValues) -> None:
        ends = [f"{loop.name}{end}" for loop in s.loops for end in (".first", ".last")]
        scope = {loop.name: Interval(_variable(ends[2 * i]), _variable(ends[2 * i + 1])) for i, loop in enumerate(s.loops)}
        boxes = boxes_touched(b.if_(d.predicate, n.Provide(s.name, d.values, d.args, b.TRUE)), scope, values)
        if s.index == 0:
            boxes.pop(s.name, None)
        self.shapes = [(name, len(box)) for name, box in boxes.items()]
        self.ends: Callable[..., Numbers] = compiled([e for box in boxes.values() for i in box.intervals for e in i], ends)

    def of(self, bounds: Region) -> list[tuple[str, Region]]:
        """Name and region of what is read."""
        found = self.ends(*(end for span in bounds for end in span))
        out, i = [], 0
        for name, dims in self.shapes:
            out.append((name, tuple((found[k], found[k + 1]) for k in range(i, i + 2 * dims, 2))))
            i += 2 * dims
        return out


def _variable(name: str) -> n.Expr:
    return n.Variable(INT32, name)


class Regions:
    """Answers about the regions of one pipeline."""

    def __init__(self, graph: PipelineGraph) -> None:
        self.graph = graph
        env = {name: _estimated(f) for name, f in graph.env.items()}
        values = function_values(env)
        self.reads = {
            s: _Reads(s, env[s.name].stages()[s.index], values)
            for node in graph.nodes.values()
            if node.function.extern is None
            for s in node.stages
        }
        self.order = {name: i for i, name in enumerate(graph.nodes)}
        self.images = _images(graph)
        self.whole: dict[str, Region] = {}  # of each Func and image: what the pipeline needs of it
        self._loops: dict[Stage, list[int | Span]] = {}  # of each loop: the dimension it is, or the values of an RVar
        for node in graph.nodes.values():
            for s in node.stages:
                dims: dict[str, int | Span] = {v: d for d, v in enumerate(node.function.args)}
                dims |= {v.name: _range(node, v) for v in s.definition.schedule.rvars}
                self._loops[s] = [dims[loop.name] for loop in s.loops]
        self._find_whole()

    def _find_whole(self) -> None:
        everything = frozenset(self.graph.nodes)
        for name in self.graph.outputs:
            node = self.graph.nodes[name]
            box: Region = tuple(output_estimates(node.function))
            found = self.required([(s, self.bounds(s, box)) for s in node.stages], everything).allocated
            found[name] = union(found.get(name), box) if name in found else box
            for other, region in found.items():
                self.whole[other] = union(self.whole.get(other), region)

    def bounds(self, s: Stage, region: Region) -> Region:
        """The spans of a stage's loops when this region of its Func is computed."""
        return tuple([region[loop] if isinstance(loop, int) else loop for loop in self._loops[s]])

    def required(self, starts: Sequence[tuple[Stage, Region]], members: frozenset[str]) -> Required:
        """What computing some stages over some spans of their loops needs of `members`, and of what those read."""
        out = Required()
        todo: dict[str, Region] = {}
        for s, bounds in starts:
            self._follow(s, bounds, members, out, todo)
        while todo:
            name = max(todo, key=self.order.__getitem__)
            region = todo.pop(name)
            for s in self.graph.nodes[name].stages:
                self._follow(s, self.bounds(s, region) if s in self.reads else region, members, out, todo)
        return out

    def _follow(self, s: Stage, bounds: Region, members: frozenset[str], out: Required, todo: dict[str, Region]) -> None:
        """One stage: what it reads goes to the result, and to what is still to be followed."""
        for name, region in self.reads[s].of(bounds) if s in self.reads else self._extern_reads(s):
            own = name == s.name
            region = self._limited(name, region) if any(None in span for span in region) else region
            out.allocated[name] = union(out.allocated.get(name), region)
            if own:
                continue
            out.computed[name] = union(out.computed.get(name), region)
            if name in members:
                todo[name] = union(todo.get(name), region)

    def _limited(self, name: str, region: Region) -> Region:
        """A region with what is estimated where there is no limit."""
        node = self.graph.nodes.get(name)
        known: list[Span | None] = (
            [func_estimate(node.function, d) for d in range(len(region))] if node is not None else list(self.images[name][1])
        )
        return tuple(span if None not in span or k is None else (k[0] if span[0] is None else span[0], k[1] if span[1] is None else span[1])
                     for span, k in zip(region, known))

    def _extern_reads(self, s: Stage) -> list[tuple[str, Region]]:
        """An extern stage may read anything of its Funcs."""
        return [(g.name, ((None, None),) * len(g.args)) for g in callees(s.func.function)]

    def bytes_of(self, name: str, region: Region) -> int | None:
        """Bytes of a region of a Func or image."""
        points = size(region)
        if points is None:
            return None
        node = self.graph.nodes.get(name)
        return points * (node.element_bytes() if node is not None else self.images[name][0])


def bounded_graph(graph: PipelineGraph) -> tuple[PipelineGraph, Regions]:
    """The graph without the Funcs of which nobody knows the region needed, where they can be inlined, and its regions."""
    regions = Regions(graph)
    unbounded = [name for name, region in regions.whole.items()
                 if name in graph.nodes and graph.nodes[name].can_inline() and any(None in span for span in region)]
    if not unbounded:
        return graph, regions
    graph = inline_chosen(graph, unbounded)
    return graph, Regions(graph)


def _estimated(f: Function) -> Function:
    """A Function whose definitions know what parameters are estimated to be."""

    def definition(d: Definition) -> Definition:
        return dataclasses.replace(d, values=tuple(map(substitute_estimates, d.values)), args=tuple(map(substitute_estimates, d.args)),
                                   predicate=substitute_estimates(d.predicate))

    assert f.pure is not None
    return dataclasses.replace(f, pure=definition(f.pure), updates=[definition(u) for u in f.updates])


def _range(node: Node, v: ReductionVariable) -> Span:
    """The values of an RVar."""
    what = f"The size of the reduction domain of Func {node.name} ({v.name})"
    first = size_of(v.min, what)
    return first, first + size_of(v.extent, what) - 1


def _images(graph: PipelineGraph) -> dict[str, tuple[int, list[Span]]]:
    """Of each image that is read: the bytes of an element, and its shape."""
    out: dict[str, tuple[int, list[Span]]] = {}
    for node in graph.nodes.values():
        for d in node.function.stages():
            for c in nodes_of(definition_roots(d), n.Call):
                if c.call_type is n.CallType.Image and c.name not in out and c.param is not None:
                    shape: list[Span] = []
                    for k in range(c.param.dimensions):
                        low, count = buffer_dimension(c.param, k)
                        shape.append((low, None if low is None or count is None else low + count - 1))
                    out[c.name] = c.type.bytes(), shape
    return out
