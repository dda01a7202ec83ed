"""LoopLevel: a place in a loop nest, which may be decided late."""

from __future__ import annotations

from typing import Any

from ..errors import expect, user_error
from ..ir.function import LoopLevel as Place
from ..ir.function import inline_level, root_level
from .edits import count_edit
from .rdom import as_loop


class LoopLevel:
    """A place in a loop nest: just inside loop `var` of `func` (of its update `stage_index - 1`, when given). `LoopLevel()` is to be
    `set` later, before
    compiling: the directives it was given to follow."""

    def __init__(self, func: Any = None, var: Any = None, stage_index: int = -1) -> None:
        if func is None:
            self.place = Place(defined=False)
        else:
            if not hasattr(func, "function"):
                raise TypeError(f"LoopLevel() takes (func, var) or (func, rvar), not {func!r}")
            name = as_loop(var)
            self.place = Place(func.function.name, name.name(), int(stage_index))

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
        """The level of a Func that has no loops of its own: its value is computed at each use."""
        return LoopLevel.of(inline_level())

    def set(self, other: LoopLevel) -> None:
        """Become the place `other` is; directives that were given this level follow."""
        mine, theirs = self.place, expect(other, LoopLevel, "LoopLevel.set()").place
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


def place_of(directive: str, f: Any, var: Any, rvar: Any, loop_level: Any) -> Place:
    """The place a directive is given: `f` with `var` or `rvar`, or a LoopLevel, which is kept by reference and may come first."""
    if isinstance(f, LoopLevel) and loop_level is None:
        f, loop_level = None, f
    if isinstance(loop_level, LoopLevel) and f is var is rvar is None:
        return loop_level.place
    if loop_level is not None or (var is None) == (rvar is None) or not hasattr(f, "function"):
        raise TypeError(f"{directive}() takes (func, var), (func, rvar) or a LoopLevel")
    return Place(f.function.name, as_loop(rvar if var is None else var).name())
