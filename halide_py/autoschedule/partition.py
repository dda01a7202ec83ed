"""Partition: the pipeline's Funcs put into groups, by merging as long as that pays.

At first every stage is a group of its own, with the tiles that suit it. Then, in two rounds, a Func is merged into all groups that read it,
always the one whose merge saves most: first by inlining it, which only Funcs without updates can be; then by computing it for each tile,
which takes a single group that reads it. The result: each group's output is computed at the root. Source: Mullapudi et al., SIGGRAPH 2016,
section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .groups import Analysis, Analyst, Group
from .pipeline import Node, PipelineGraph, Stage
from .regions import extent


@dataclass(frozen=True)
class _Choice:
    """A group as it would be after a merge."""

    group: Group
    analysis: Analysis


class Partition:
    """The groups by their output stage."""

    def __init__(self, graph: PipelineGraph, analyst: Analyst) -> None:
        self.graph, self.analyst = graph, analyst
        self.groups: dict[Stage, Group] = {}
        self.analyses: dict[Stage, Analysis | None] = {}
        self.readers: dict[str, list[Stage]] = {}  # the groups that read a Func which is no member of them
        self._known: dict[tuple[str, Stage], _Choice | None] = {}
        for node in graph.nodes.values():
            if node.name not in analyst.regions.whole:
                continue  # nothing of it is needed
            self.readers[node.name] = [s for s in node.consumers if s.name in analyst.regions.whole]
            for s in node.stages:
                tiles, analysis = analyst.best_tiles(Group(s, (s,)))
                self.groups[s], self.analyses[s] = Group(s, (s,), tiles=tiles), analysis
        self._merge_all(self._inlined, lambda node: node.can_inline())
        self._known.clear()
        self._merge_all(self._tiled, lambda node: not (node.is_output or node.fixed) and len(self.readers[node.name]) == 1)

    def _merge_all(self, evaluate: Callable[[Node, Stage], _Choice | None], may: Callable[[Node], bool]) -> None:
        """Do the merge that saves most, until none saves anything."""
        while True:
            most, best = 0.0, None
            for node in self.graph.nodes.values():
                if node.stages and node.stages[-1] in self.groups and self.readers[node.name] and may(node):
                    saved, choices = self._saved(node, evaluate)
                    if saved > most:
                        most, best = saved, (node, choices)
            if best is None:
                return
            self._merge(*best)

    def _saved(self, node: Node, evaluate: Callable[[Node, Stage], _Choice | None]) -> tuple[float, list[_Choice]]:
        """What merging a Func into all that reads it saves, and how; nothing where it cannot be done or costs threads."""
        old = [self.analyses[s] for s in (*node.stages, *self.readers[node.name])]
        choices: list[_Choice] = []
        for reader in self.readers[node.name]:
            key = node.name, reader
            if key not in self._known:
                self._known[key] = evaluate(node, reader)
            choice = self._known[key]
            if choice is None or choice.analysis.parallelism < self.analyst.machine.parallelism:
                return 0.0, []
            choices.append(choice)
        if any(a is None for a in old):
            return 0.0, []
        return sum(a.cost for a in old if a is not None) - sum(c.analysis.cost for c in choices), choices

    def _joined(self, node: Node, reader: Stage) -> Group:
        group = self.groups[reader]
        for s in node.stages:
            group = group.with_producer(self.groups[s])
        return group

    def _inlined(self, node: Node, reader: Stage) -> _Choice | None:
        joined = self._joined(node, reader)
        group = replace(joined, inlined=joined.inlined | {node.name}, tiles={})
        analysis = self.analyst.analyze(group)
        if analysis is None:
            return None
        free = [extent(span) or 1 for loop, span in zip(reader.loops, self.analyst.whole(reader)) if loop.free]
        for e in free:
            analysis = replace(analysis, parallelism=analysis.parallelism * e)
        return _Choice(group, analysis)

    def _tiled(self, node: Node, reader: Stage) -> _Choice | None:
        joined = self._joined(node, reader)
        tiles, analysis = self.analyst.best_tiles(joined)
        return None if analysis is None else _Choice(replace(joined, tiles=tiles), analysis)

    def _merge(self, node: Node, choices: list[_Choice]) -> None:
        readers = self.readers.pop(node.name)
        for choice in choices:
            self.groups[choice.group.output], self.analyses[choice.group.output] = choice.group, choice.analysis
        changed = {*readers, *node.stages}
        names = {s.name for s in changed}
        self._known = {(name, reader): c for (name, reader), c in self._known.items() if name not in names and reader not in changed}
        for s in node.stages:
            del self.groups[s], self.analyses[s]
        for name, stages in self.readers.items():
            if any(s in node.stages for s in stages):
                self.readers[name] = list(dict.fromkeys(t for s in stages for t in (readers if s in node.stages else [s])))

