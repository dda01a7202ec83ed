"""Nests: the tree of loops a schedule stands for: which Func is computed in which loops of which stage, and in which tiles these run.

A `Realized` Func has a `StageNest` for each of its stages; that has levels of loops over tiles, the outermost first, and then the loops
over the points of the last tile. In each iteration of a level other Funcs may be computed. Trees are never changed: a change makes the
nodes from there to the root anew, and equal nodes are one object, so that what is known about a tree is known by its identity. Source:
Adams et al., "Learning to Optimize Halide with Tree Search and Random Programs", ACM TOG 38(4), 2019, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .pipeline import Node, Stage

Sizes = tuple[int, ...]  # values of each loop of a stage that one iteration covers
Place = tuple[str, int, int]  # a level of loops: Func, stage, which level
Path = tuple[Place, ...]  # where a Func is computed: the levels around it, the outermost first; none: at the root


@dataclass(frozen=True, eq=False)
class Level:
    """Loops over tiles. `computed`: the Funcs computed in each iteration, consumers first; `stored`: those kept here, computed inside."""

    sizes: Sizes
    computed: tuple[Realized, ...]
    stored: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StageNest:
    """The loops of one stage."""

    stage: Stage
    levels: tuple[Level, ...]


@dataclass(frozen=True, eq=False)
class Realized:
    """A Func that is computed somewhere. `names`: the Func and all that is computed in its loops."""

    node: Node
    nests: tuple[StageNest, ...]
    names: frozenset[str]


@dataclass
class Forest:
    """Makes nodes, equal ones once."""

    made: dict[Any, Any] = field(default_factory=dict)

    def level(self, sizes: Sizes, computed: Sequence[Realized] = (), stored: Sequence[str] = ()) -> Level:
        """Loops over tiles of these sizes."""
        key = sizes, tuple(computed), tuple(stored)
        if key not in self.made:
            self.made[key] = Level(*key)
        return self.made[key]  # type: ignore[no-any-return]

    def nest(self, stage: Stage, levels: Sequence[Level] = ()) -> StageNest:
        """The loops of a stage."""
        key = stage, tuple(levels)
        if key not in self.made:
            self.made[key] = StageNest(*key)
        return self.made[key]  # type: ignore[no-any-return]

    def realized(self, node: Node, nests: Sequence[StageNest]) -> Realized:
        """A Func with the loops of its stages."""
        key = node, tuple(nests)
        if key not in self.made:
            names = {node.name}.union(*(r.names for nest in nests for level in nest.levels for r in level.computed))
            self.made[key] = Realized(node, tuple(nests), frozenset(names))
        return self.made[key]  # type: ignore[no-any-return]

    def fresh(self, node: Node) -> Realized:
        """A Func whose loops are not cut."""
        return self.realized(node, [self.nest(s) for s in node.stages])

    def with_levels(self, r: Realized, stage: int, levels: Sequence[Level]) -> Realized:
        """The same with other loops of one of its stages."""
        nests = list(r.nests)
        nests[stage] = self.nest(nests[stage].stage, levels)
        return self.realized(r.node, nests)

    def replaced(self, r: Realized, path: Path, new: Realized) -> Realized:
        """The tree `r` in which what `new` is about, which is at the end of `path`, is replaced; a Func that is not there yet is added."""
        if not path:
            return new
        (_, stage, at), rest = path[0], path[1:]
        levels = list(r.nests[stage].levels)
        level = levels[at]
        name = rest[0][0] if rest else new.node.name
        computed = [self.replaced(c, rest, new) if c.node.name == name else c for c in level.computed]
        if not rest and all(c.node.name != name for c in level.computed):
            computed.append(new)
        levels[at] = self.level(level.sizes, computed, level.stored)
        return self.with_levels(r, stage, levels)


def find(r: Realized, path: Path, name: str) -> Realized:
    """The Func `name`, computed at the end of `path`, in the tree `r`."""
    for i, (_, stage, at) in enumerate(path):
        wanted = path[i + 1][0] if i + 1 < len(path) else name
        r = next(c for c in r.nests[stage].levels[at].computed if c.node.name == wanted)
    return r
