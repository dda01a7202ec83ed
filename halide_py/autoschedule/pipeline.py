"""The pipeline as an autoscheduler sees it: stages, what each reads and costs, and who consumes it. Built after what is inlined in any case
is.

Inlined beforehand are Funcs that cost no more to compute than to load, Funcs that a single other one reads at just the point it defines,
and Funcs of which nobody knows the region needed. Funcs with updates, extern stages and what they read, and outputs never are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, DimKind, Function
from ..ir.traverse import nodes_of
from ..lower.environment import Environment, callees, definition_roots, environment
from ..lower.inline import inline_named
from .checks import check_unscheduled
from .costs import Work, calls_only_at, definition_work, is_trivial
from .estimates import check_inputs, output_estimates


@dataclass(frozen=True)
class LoopVar:
    """One loop of a stage before it is scheduled. `free`: its iterations may run in any order and at once."""

    name: str
    is_rvar: bool
    free: bool


@dataclass(eq=False)
class Stage:
    """One definition of a Func, whose loops are listed innermost first."""

    func: Node
    index: int
    definition: Definition
    loops: list[LoopVar]

    @property
    def name(self) -> str:
        """The Func's name."""
        return self.func.name

    def __repr__(self) -> str:
        return f"{self.name}.s{self.index}"


@dataclass(eq=False)
class Node:
    """One Func that is not inlined beforehand. `consumers` are the stages of other Funcs that read it, in order."""

    function: Function
    is_output: bool
    fixed: bool  # an extern stage, or read by one: it is computed as a whole
    stages: list[Stage] = field(default_factory=list)
    consumers: list[Stage] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The Func's name."""
        return self.function.name

    def element_bytes(self) -> int:
        """Bytes of one element, of all values."""
        return sum(t.bytes() for t in self.function.types)

    def can_inline(self) -> bool:
        """Whether its value may stand wherever it is read."""
        return not (self.function.updates or self.is_output or self.fixed)


class PipelineGraph:
    """All nodes by name, producers before consumers."""

    def __init__(self, env: Environment, outputs: Collection[str]) -> None:
        self.env, self.outputs = env, outputs
        externs = {g.name for f in env.values() if f.extern is not None for g in callees(f)}
        self.nodes = {name: Node(f, name in outputs, f.extern is not None or name in externs) for name, f in env.items()}
        self._works: dict[tuple[Stage, frozenset[str]], Work] = {}
        self._producers: dict[str, frozenset[str]] = {}
        for node in self.nodes.values():
            node.stages = [_stage(node, k, d) for k, d in enumerate(node.function.stages())]
            for s in node.stages:
                for name in sorted(called(s.definition) - {node.name}):
                    self.nodes[name].consumers.append(s)
            producers = {g.name for g in callees(node.function)}
            self._producers[node.name] = frozenset(producers.union(*(self._producers[p] for p in producers)))

    def producers(self, name: str) -> frozenset[str]:
        """All Funcs a Func depends on."""
        return self._producers[name]

    def work(self, s: Stage, inlined: frozenset[str]) -> Work:
        """What one point of a stage takes when these Funcs are inlined."""
        key = s, inlined & self._producers[s.name]
        found = self._works.get(key)
        if found is None:
            f, d = s.func.function, s.definition
            if key[1]:
                wanted = {name: self.env[name] for name in self.env if name in key[1] or name == s.name}
                d = inline_named(wanted, key[1])[s.name].stages()[s.index]
            found = self._works[key] = definition_work(f, d, s.index == 0)
        return found

    def inlined_definition(self, s: Stage, inlined: frozenset[str]) -> Definition:
        """The definition of a stage with these Funcs inlined."""
        mine = inlined & self._producers[s.name]
        wanted = {name: self.env[name] for name in self.env if name in mine or name == s.name}
        return inline_named(wanted, mine)[s.name].stages()[s.index] if mine else s.definition


def called(d: Definition) -> set[str]:
    """The names of the Funcs a definition reads."""
    return {c.name for c in nodes_of(definition_roots(d), n.Call) if c.call_type is n.CallType.Halide}


def _stage(node: Node, index: int, d: Definition) -> Stage:
    loops = [LoopVar(dim.var, dim.is_rvar(), dim.kind is not DimKind.ImpureRVar) for dim in d.schedule.dims if dim.var != OUTERMOST]
    return Stage(node, index, d, [] if node.function.extern is not None else loops)


def _inlined(env: Environment, outputs: Collection[str], choose: Callable[[PipelineGraph], list[str]]) -> Environment:
    """The environment without the Funcs chosen, and without those nobody needs any more."""
    chosen = choose(PipelineGraph(env, outputs))
    if not chosen:
        return env
    kept = inline_named(env, chosen)
    needed = set(outputs)
    for name in reversed(kept):
        if name in needed:
            needed |= {g.name for g in callees(kept[name])}
    return {name: f for name, f in kept.items() if name in needed}


def inline_chosen(graph: PipelineGraph, names: Sequence[str]) -> PipelineGraph:
    """The graph with these Funcs inlined."""
    return PipelineGraph(_inlined(graph.env, graph.outputs, lambda g: list(names)), graph.outputs)


def _element_wise(graph: PipelineGraph) -> list[str]:
    """Funcs that one stage alone reads, at the point it defines."""
    out = []
    for node in graph.nodes.values():
        if node.can_inline() and len(node.consumers) == 1:
            (s,) = node.consumers
            if not s.func.fixed and calls_only_at(s.func.function, s.definition, node.name):
                out.append(node.name)
    return out


def estimated_graph(outputs: Sequence[Function]) -> PipelineGraph:
    """The graph of a pipeline without what is trivial. Raises CompileError for a schedule that is there already, and for what lacks an
    estimate."""
    names = {f.name for f in outputs}
    env = environment(outputs, wrapped=False)
    check_unscheduled(env.values(), names)
    for f in outputs:
        output_estimates(f)
    check_inputs([e for f in env.values() for d in f.stages() for e in definition_roots(d)])
    env = _inlined(env, names, lambda g: [x.name for x in g.nodes.values() if x.can_inline() and is_trivial(x.function)])
    while True:
        before, env = env, _inlined(env, names, _element_wise)
        if env is before:
            return PipelineGraph(env, names)
