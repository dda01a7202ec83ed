"""The loops of a stage while they are being scheduled: their order, estimated extents, and which may run in any order.

Each method emits the directive it stands for, so that what is known here is what the schedule will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.function import TailStrategy
from .pipeline import LoopVar, Stage
from .plan import Argument, Loop, Plan


@dataclass(frozen=True)
class Running:
    """A loop as it is now; `extent` is None when it is not estimated."""

    var: LoopVar
    extent: int | None
    vectorized: bool = False

    @property
    def loop(self) -> Loop:
        """How directives name it."""
        return Loop(self.var.name, self.var.is_rvar)


class StageLoops:
    """Schedules one stage; `loops` are innermost first."""

    def __init__(self, plan: Plan, name: str, index: int, loops: Sequence[Running], args: Sequence[str], exact: bool) -> None:
        self.plan, self.name, self.index, self.loops = plan, name, index, list(loops)
        # An update must not touch more than it would, and an output buffer has what it has: such loops are guarded, others may run beyond
        # their end.
        self.tail = TailStrategy.GuardWithIf if index or exact else TailStrategy.Auto
        self._taken = {*args, *(r.var.name for r in loops)}
        self._touched = False
        self.says_so = index > 0  # that it is left as it is, if it is

    @staticmethod
    def of(plan: Plan, s: Stage, extents: Sequence[int | None]) -> StageLoops:
        """The loops of a stage of the pipeline."""
        f = s.func.function
        loops = StageLoops(plan, s.name, s.index, [Running(v, e) for v, e in zip(s.loops, extents)], f.args, s.func.is_output)
        loops.says_so = s.index > 0 or f.schedule.default_loops
        return loops

    def emit(self, directive: str, *args: Argument, makes: str = "") -> None:
        """One directive on this stage."""
        self._touched = True
        self.plan.add(self.name, self.index, directive, *args, makes=makes)

    def done(self) -> None:
        """Say of an update that was left as it is that this is meant; of any stage where there would be loops by default."""
        if self.says_so and not self._touched:
            self.emit("unscheduled")

    def find(self, name: str) -> int:
        """The position of a loop."""
        return next(i for i, r in enumerate(self.loops) if r.var.name == name)

    def fresh(self, name: str, suffix: str) -> str:
        """A name for a part of a loop: after the Var, or for an RVar after its axis."""
        base = f"r{name.rpartition('$')[2]}" if "$" in name else name
        new = f"{base}{suffix}"
        while new in self._taken:
            new += "_"
        self._taken.add(new)
        return new

    def split(self, name: str, factor: int, outer: str, inner: str) -> tuple[str, str]:
        """Split a loop; gives the names of the new loops, (outer, inner)."""
        at = self.find(name)
        old = self.loops[at]
        o, i = (replace(old.var, name=self.fresh(name, suffix)) for suffix in (outer, inner))
        count = None if old.extent is None else -(-old.extent // factor)
        self.loops[at:at + 1] = [Running(i, factor), Running(o, count)]
        guarded = self.tail is not TailStrategy.Auto and not old.var.is_rvar  # RVars always are
        self.emit("split", old.loop, Loop(o.name, o.is_rvar), Loop(i.name, i.is_rvar), factor, *([self.tail] if guarded else []))
        return o.name, i.name

    def reorder(self, names: Sequence[str]) -> None:
        """Put some loops into an order, innermost first, in the places they have together."""
        places = sorted(self.find(name) for name in names)
        wanted = [self.loops[self.find(name)] for name in names]
        if [self.loops[p] for p in places] == wanted:
            return
        for p, r in zip(places, wanted):
            self.loops[p] = r
        self.emit("reorder", *(r.loop for r in wanted))

    def vectorize(self, name: str) -> None:
        """Run a loop in vectors."""
        at = self.find(name)
        self.loops[at] = replace(self.loops[at], vectorized=True)
        self.emit("vectorize", self.loops[at].loop)

    def parallel(self, name: str) -> None:
        """Run a loop on threads."""
        self.emit("parallel", self.loops[self.find(name)].loop)

    def fuse(self, inner: str, outer: str) -> str:
        """Join two neighbouring loops, `outer` around `inner`; gives the name of the one they become."""
        at = self.find(inner)
        i, o = self.loops[at], self.loops[at + 1]
        name = self.fresh(inner, f"_{outer}")
        extent = None if i.extent is None or o.extent is None else i.extent * o.extent
        fused = Running(LoopVar(name, i.var.is_rvar or o.var.is_rvar, i.var.free and o.var.free), extent)
        self.emit("fuse", i.loop, o.loop, fused.loop)
        self.loops[at:at + 2] = [fused]
        return name
