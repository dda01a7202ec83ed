"""compute_with and prefetch: what ties a stage to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..errors import warn
from ..ir import nodes as n
from ..ir.function import LoopAlignStrategy, Prefetch, PrefetchBoundStrategy
from ..ir.function import LoopLevel as Place
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from .expr import to_node
from .loop_level import LoopLevel
from .one_of import one_of
from .promotion import convert
from .rdom import as_loop
from .stage_base import StageBase

C = TypeVar("C", bound="CompanionDirectives")


class CompanionDirectives(StageBase):
    """Directives of a stage that tie it to another one."""

    def compute_with(self: C, stage: Any = None, var: Any = None, align: Any = None, *, loop_level: LoopLevel | None = None) -> C:
        """Share loops with a stage of another Func: `g.compute_with(f, y)`, `g.update(0).compute_with(f.update(1), y, align)`, or
        `g.compute_with(loop_level, align)`.

        All loops from the outermost down to `y`, which must have the same names and kinds in both, become one; each of its iterations runs
        that iteration of f, then of g. Both Funcs need the same compute_root() or compute_at(), and neither may need the other. `align`
        (one LoopAlignStrategy for `y`, or a list of pairs of a loop and a strategy) says how ranges that differ lie on each other:
        `AlignStart` and `AlignEnd` make them start or end together, `NoAlign` and `Auto`, the default, leave each where it is. Values never
        change. Whether it can be done is checked when compiling (CompileError).
        """
        if isinstance(stage, LoopLevel):
            loop_level, align = stage, align if var is None else var
        if loop_level is not None:
            place = loop_level.place
        elif isinstance(stage, StageBase) and var is not None:
            place = Place(stage.function.name, as_loop(var).name(), stage._stage)
        else:
            raise TypeError("compute_with() takes (stage, var) or a LoopLevel; then how to align the loops")
        strategies = _strategies(place, LoopAlignStrategy.Auto if align is None else align)
        self._schedule()
        if place.defined and place.kind != "at":
            self._fail("undefined loop level to compute with: compute_with() takes a stage and one of its loops")
        if place.func == self.function.name:
            self._fail(f"cannot schedule {self._title()} to be computed with ({place.func}, {place.var}), a loop of its own Func")
        old = self._schedule().fuse_level
        if not old.is_inline():
            warn(f"{self._title()} already has a compute_with at ({old.func}, {old.var}). Replacing it with a new compute_with at "
                 f"({place.func}, {place.var})")
        schedule = self._edited("compute_with")
        schedule.fuse_level, schedule.fuse_align = place, strategies
        return self

    def prefetch(self: C, func: Any = None, at: Any = None, from_: Any = None, offset: Any = 1,
                 strategy: PrefetchBoundStrategy = PrefetchBoundStrategy.GuardWithIf, *, image: Any = None, **loop: Any) -> C:
        """In loop `at`, ask for the memory of `func` (a Func or an ImageParam) that the iteration `offset` (int32) after the current one of
        loop `from_` will read: `f.prefetch(image, y, y, 2)`.

        `from_` is `at` or a loop around it. `strategy` says what happens where that region leaves what is stored: nothing is fetched
        (`GuardWithIf`), what lies inside (`Clamp`), or all of it (`NonFaulting`). No effect on values. Raises CompileError for unknown
        loops. Halide's own names of the arguments do as well: `image=...`, `**{"from": y}`.
        """
        if loop.keys() - {"from"}:
            raise TypeError(f"prefetch() got an unexpected keyword argument {next(iter(loop.keys() - {'from'}))!r}")
        func, from_ = one_of("prefetch()", func=func, image=image), one_of("prefetch()", from_=from_, **loop)
        what = func.function.name if isinstance(func, StageBase) else getattr(getattr(func, "param", None), "name", None)
        if what is None:
            raise TypeError("prefetch() takes a Func or an ImageParam first")
        places = [self._dim(as_loop(v), "prefetch", f"argument '{name}'").var for v, name in ((at, "at"), (from_, "from"))]
        ahead = to_node(offset)
        if not ahead.type.is_int_or_uint() or any(v.param is None for v in nodes_of(ahead, n.Variable)):
            self._fail(f"the offset of prefetch(), {to_text(ahead)}, must be an int32 of constants and parameters")
        wanted = Prefetch(what, places[0], places[1], convert(INT32, ahead), PrefetchBoundStrategy(strategy))
        self._edited("prefetch").prefetches.append(wanted)
        return self


def _strategies(place: Place, align: LoopAlignStrategy | Sequence[tuple[Any, LoopAlignStrategy]]) -> dict[str, LoopAlignStrategy]:
    if isinstance(align, LoopAlignStrategy):
        return {place.var: align}
    return {as_loop(v).name(): LoopAlignStrategy(strategy) for v, strategy in align}
