"""LoopLevel: a place in a loop nest, which may be decided late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import user_error
from ..ir.function import Function, inline_level, root_level
from ..ir.function import LoopLevel as Place
from ..ir.traverse import mentions
from .edits import count_edit
from .rdom import VarOrRVar, as_loop


class LoopLevel:
    """A place in a loop nest: just inside loop `var` of `func` (of its update `stage_index - 1`, when given). `LoopLevel()` is to be
    `set` later, before
    compiling: the directives it was given to follow."""

    def __init__(self, func: Any = None, var: Any = None, stage_index: int = -1) -> None:
        if func is None:
            self.place = Place(defined=False)
        else:
            name = as_loop(var)
            stage = int(stage_index) if stage_index >= 0 else _stage_with(func.function, name)
            self.place = Place(func.function.name, name.name(), stage)

    @staticmethod
    def of(place: Place) -> LoopLevel:
        """The handle of a place."""
        level = LoopLevel()
        level.place = place
        return level

    @staticmethod
    def root() -> LoopLevel:
        """Outside all loops."""
        return LoopLevel.of(root_level())

    @staticmethod
    def inlined() -> LoopLevel:
        """At each use."""
        return LoopLevel.of(inline_level())

    def set(self, other: LoopLevel) -> None:
        """Become the place `other` is; directives that were given this level follow."""
        mine, theirs = self.place, other.place
        if not theirs.defined:
            raise user_error("LoopLevel.set() with an undefined LoopLevel; give it a place: LoopLevel(func, var), root() or inlined()")
        mine.func, mine.var, mine.stage, mine.defined, mine.kind = theirs.func, theirs.var, theirs.stage, theirs.defined, theirs.kind
        count_edit()

    def stage_index(self) -> int:
        """Which stage of the Func: 0 the pure definition, k + 1 update k; -1 when not said."""
        if not self.place.defined:
            raise user_error("stage_index() of an undefined LoopLevel; call set() first")
        return self.place.stage

    def __repr__(self) -> str:
        return "<halide.LoopLevel>"


def _stage_with(f: Function, v: VarOrRVar, used: str = "") -> int:
    """The stage whose loop `v` is meant: of those that have it, the first that calls Func `used`, else the first; -1 when none has it
    yet."""
    having = [(k, s) for k, s in enumerate(f.stages()) if any(d.var == v.name() for d in s.schedule.dims)]
    using = [k for k, s in having if used and any(mentions(e, used) for e in (*s.args, *s.values, s.predicate))]
    return using[0] if using else having[0][0] if having and having[0][0] > 0 else -1


def place_of(args: Sequence[Any], directive: str, producer: Function) -> Place:
    """The place a directive for `producer` is given: (func, var) or a LoopLevel, which is kept by reference."""
    if len(args) == 1 and isinstance(args[0], LoopLevel):
        return args[0].place
    if len(args) != 2 or not hasattr(args[0], "function"):
        raise TypeError(f"{directive}() takes (func, var), (func, rvar) or a LoopLevel")
    f, v = args[0].function, as_loop(args[1])
    return Place(f.name, v.name(), _stage_with(f, v, producer.name))
