"""Li2018: every Func that is not trivial is computed at the root, in vectors and on threads, and large reductions are taken in parts.

Simple, fast, and good for derivatives, whose stages are many and whose reductions are long. The pure loops of a stage give the vectors, the
first that is long enough, and the threads, from the outermost inwards until there are tasks enough. Where an update has too few pure loops
for that, and is associative, `rfactor` splits its reduction into tasks along the outermost RVar and lanes along the innermost; where the
partial results would take more room than that is worth, the RVar runs on threads with atomic updates. Source: Li, Gharbi, Adams, Durand,
Ragan-Kelley, "Differentiable Programming for Image Processing and Deep Learning in Halide", SIGGRAPH 2018, section 4.3; Halide's README of
the scheduler says what it aims at, the forms are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.associativity import Combination, combination
from ..ir.function import Function, TailStrategy
from ..ir.target import Target
from ..ir.traverse import nodes_of
from .locality import Locality
from .loops import Running, StageLoops
from .pipeline import LoopVar, PipelineGraph, Stage, estimated_graph
from .plan import Loop, Plan
from .regions import Regions, bounded_graph, extent, size

_TASKS = 8  # tasks for each thread: what one is late by, another makes up for
_WORTH = 4096  # points that are worth handing to another thread
_ATOMIC = 8  # threads from which on atomic updates, each as dear as several plain ones, pay


def li2018(outputs: Sequence[Function], target: Target, parallelism: int) -> Plan:
    """The schedule of a pipeline that has none. Raises CompileError for what lacks an estimate, and for accesses without bounds."""
    graph, regions = bounded_graph(estimated_graph(outputs))
    for name, region in regions.whole.items():
        for d, span in enumerate(region):
            if None in span and name in graph.nodes and not graph.nodes[name].fixed:
                f = graph.nodes[name].function
                raise CompileError(f"Access to function or buffer {name} at dimension {d} is not bounded. We can only schedule bounded "
                                   "accesses: limit the index with clamp(), or estimate it: "
                                   f"{name.partition('$')[0]}.set_estimate({f.args[d]}, 0, 256) ({f.where})")
    return _Scheduler(graph, regions, target, parallelism).schedule()


@dataclass
class _Parts:
    """A reduction to be taken in parts: `tasks` of them along the outermost RVar, `lanes` along the innermost (1: none)."""

    tasks: int
    lanes: int


class _Scheduler:
    def __init__(self, graph: PipelineGraph, regions: Regions, target: Target, parallelism: int) -> None:
        self.graph, self.regions, self.target, self.parallelism, self.plan = graph, regions, target, parallelism, Plan()
        self.locality = Locality(graph, regions)

    def schedule(self) -> Plan:
        """The directives of all Funcs, consumers first."""
        for node in reversed(self.graph.nodes.values()):
            if node.name not in self.regions.whole:
                continue
            self.plan.add(node.name, 0, "compute_root")
            for s in node.stages if node.function.extern is None else []:
                extents = [extent(span) for span in self.regions.bounds(s, self.regions.whole[s.name])]
                loops = StageLoops.of(self.plan, s, extents)
                if s.index == 0 or not self._in_parts(s, loops):
                    self._run(s, loops)
                    if s.index == 0 and not (node.is_output or node.fixed):
                        self._store(s, loops)
                loops.done()
        return self.plan

    def _width(self, s: Stage) -> int:
        return max(self.target.natural_vector_size(t) for t in s.func.function.types)

    def _dense(self, s: Stage, loops: StageLoops) -> list[Running]:
        """The loop to run in vectors, if there is one: independent, long enough, and of those the one with the smallest steps in memory."""
        width = self._width(s)
        long = [r for r in loops.loops if _is_free(r) and (r.extent or 0) >= width > 1 and not _scatters(s)]
        strides = self.locality.of_loops(s, frozenset(), {}) or {}
        return [min(long, key=lambda r: strides.get(r.var.name, 0))] if long else []

    def _run(self, s: Stage, loops: StageLoops) -> None:
        """Vectors and threads for the loops whose iterations are independent."""
        width = self._width(s)
        free = [r for r in loops.loops if _is_free(r)]
        if not free or prod(r.extent or 1 for r in free) < width:
            return
        outer = [r.var.name for r in free]
        inner: list[str] = []
        for r in self._dense(s, loops):
            blocks, vector = loops.split(r.var.name, width, "_vo", "_vi")
            inner.append(vector)
            outer = [blocks, *(name for name in outer if name != r.var.name)]
        loops.reorder([*(r.var.name for r in loops.loops if not _is_free(r)), *inner, *outer])
        for vector in inner:
            loops.vectorize(vector)
        if prod(r.extent or 1 for r in loops.loops) >= _WORTH:
            self._threads(loops, outer)

    def _threads(self, loops: StageLoops, outer: list[str]) -> None:
        """The outermost of these loops, as many as it takes, as one on threads."""
        wanted = _TASKS * self.parallelism
        task = outer.pop()
        while outer and (loops.loops[loops.find(task)].extent or 1) < wanted:
            task = loops.fuse(outer.pop(), task)
        count = loops.loops[loops.find(task)].extent or 1
        if count > wanted:
            loops.emit("parallel", loops.loops[loops.find(task)].loop, count // wanted, TailStrategy.GuardWithIf)
        elif count > 1:
            loops.parallel(task)

    def _store(self, s: Stage, loops: StageLoops) -> None:
        """What runs in vectors lies in memory side by side."""
        args = list(s.func.function.args)
        vector = next((r.var.name for r in loops.loops if r.vectorized), "")
        first = next((a for a in args if vector.startswith(f"{a}_vi")), args[0] if args else "")
        if args and first != args[0]:
            loops.emit("reorder_storage", *(Loop(a) for a in [first, *(a for a in args if a != first)]))

    # -- reductions in parts

    def _in_parts(self, s: Stage, loops: StageLoops) -> bool:
        """Take a long associative reduction in parts, where its pure loops are too few for all threads; False: it is not one."""
        rvars = [r for r in loops.loops if not _is_free(r)]
        points, room = prod(r.extent or 1 for r in loops.loops), prod(r.extent or 1 for r in loops.loops if _is_free(r))
        if not rvars or points < _WORTH:
            return False
        found = combination(s.func.function, s.definition)
        if not isinstance(found, Combination):
            return False
        few = room < _TASKS * self.parallelism
        parts = self._parts(s, loops, rvars, points, found.commutative, few)
        if parts is not None:
            self._factor(s, loops, rvars, parts)
            return True
        if few and found.commutative and self.parallelism >= _ATOMIC and (rvars[-1].extent or 1) > 1:
            loops.emit("atomic")
            loops.parallel(rvars[-1].var.name)
            return True
        return False

    def _parts(self, s: Stage, loops: StageLoops, rvars: list[Running], points: int, commutative: bool, few: bool) -> _Parts | None:
        """Into how many parts; None where the partial results would be too many, or nothing is gained."""
        stored = size(self.regions.whole[s.name]) or points
        width, first, last = self._width(s), rvars[0].extent or 1, rvars[-1].extent or 1
        lanes = 1
        strides = self.locality.of_loops(s, frozenset(), {}) or {}
        here = strides.get(rvars[0].var.name, 0)
        strided = all(strides.get(r.var.name, 0) >= 4 * here for r in self._dense(s, loops))
        if commutative and width > 1 and not _scatters(s) and strided and first >= 4 * width and 2 * stored * width <= points:
            lanes = width
        if len(rvars) == 1 and lanes > 1:
            last //= lanes
        tasks = min(last, _TASKS * self.parallelism, points // (2 * stored * lanes), points // _WORTH) if few else 1
        return None if tasks < 2 and lanes == 1 else _Parts(max(tasks, 1), lanes)

    def _factor(self, s: Stage, loops: StageLoops, rvars: list[Running], parts: _Parts) -> None:
        """rfactor, and the schedule of the Func that holds the partial results."""
        args = list(s.func.function.args)
        kept: list[tuple[Loop, Running]] = []  # each RVar kept, with the loop over it in the new Func
        last = rvars[-1].var.name
        tasks = lanes = ""
        if parts.tasks > 1:
            block = -(-(rvars[-1].extent or 1) // parts.tasks)
            if len(rvars) == 1:
                block = -(-block // parts.lanes) * parts.lanes
            if block > 1:
                outer, last = loops.split(last, block, "_o", "_i")
            else:
                outer = last
            tasks = self._keep(loops, outer, "tasks", kept)
        if parts.lanes > 1:
            _, inner = loops.split(last if len(rvars) == 1 else rvars[0].var.name, parts.lanes, "_vo", "_vi")
            lanes = self._keep(loops, inner, "lanes", kept)
        made = f"{s.name}_intm"
        loops.emit("rfactor", tuple((r, new.loop) for r, new in kept), makes=made)
        self.plan.add(made, 0, "compute_root")
        renamed = {r.name: new for r, new in kept}
        inside = [renamed.get(r.var.name, r) for r in loops.loops]
        pure = [Running(LoopVar(a, False, True), extent(span)) for a, span in zip(args, self.regions.whole[s.name])]
        for index, own in ((0, [*pure, *(new for _, new in kept)]), (1, inside)):
            self._run_parts(s, StageLoops(self.plan, made, index, own, args, False), tasks, lanes)
        if lanes and args:
            self.plan.add(made, 0, "reorder_storage", Loop(lanes), *(Loop(a) for a in args), *([Loop(tasks)] if tasks else []))
        loops.loops = [r for r in loops.loops if r.var.name in renamed or _is_free(r)]
        self._run(s, loops)

    def _keep(self, loops: StageLoops, rvar: str, name: str, kept: list[tuple[Loop, Running]]) -> str:
        """Keep an RVar as a Var of the new Func; gives the Var's name."""
        r = loops.loops[loops.find(rvar)]
        new = Running(LoopVar(loops.fresh(name, ""), False, True), r.extent)
        kept.append((r.loop, new))
        return new.var.name

    def _run_parts(self, s: Stage, loops: StageLoops, tasks: str, lanes: str) -> None:
        """The loops of the partial results: tasks outermost on threads, lanes in one vector, or else vectors along a pure loop."""
        width = 0 if _scatters(s) and loops.index else self._width(s)
        named = [name for name in (tasks, lanes) if name]
        ordered = [r.var.name for r in loops.loops if not _is_free(r)]
        free = [r for r in loops.loops if _is_free(r) and r.var.name not in named]
        inner, outer = [lanes] if lanes else [], [r.var.name for r in free]
        for r in [r for r in free if (r.extent or 0) >= width > 1][:0 if lanes else 1]:
            blocks, vector = loops.split(r.var.name, width, "_vo", "_vi")
            inner, outer = [vector], [blocks, *(name for name in outer if name != r.var.name)]
        loops.reorder([*ordered, *inner, *outer, *([tasks] if tasks else [])])
        for vector in inner:
            loops.vectorize(vector)
        if tasks:
            loops.parallel(tasks)
        elif outer:
            self._threads(loops, outer)
        loops.done()


def _scatters(s: Stage) -> bool:
    """Whether an update stores at places that it computes from values or loops over RVars."""
    return any(
        not isinstance(a, n.Variable)
        and any(True for _ in nodes_of(a, (n.Variable, n.Call)))
        or isinstance(a, n.Variable)
        and a.rdom is not None
        for a in s.definition.args
    )


def _is_free(r: Running) -> bool:
    return r.var.free or not r.var.is_rvar
