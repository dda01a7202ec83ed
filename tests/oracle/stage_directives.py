"""Random directives on the loops of a stage, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from script import FuncInfo, Loop, Stage

T = TypeVar("T")
FACTORS = [2, 3, 4, 8]
FOCI = ("", "concurrent", "sliding", "shared", "reductions", "rewritten", "idioms")  # what a script is about; "": everything alike
TAILS = ["Auto", "GuardWithIf", "RoundUp", "ShiftInwards", "Predicate", "PredicateLoads", "PredicateStores", "ShiftInwardsAndBlend", "RoundUpAndBlend"]
EXACT_TAILS = ["Auto", "GuardWithIf", "Predicate"]
# Blocks moved inwards overlap, and two tasks may store the same values in the same places, as in Halide: not what a search for races is for.
APART_TAILS = ["GuardWithIf", "RoundUp", "Predicate", "PredicateLoads", "PredicateStores"]


class StageScheduler:
    """Writes directives line by line, drawing each choice, and keeps the books of each stage's loops."""

    def __init__(self, writer: Any, params: list[str], focus: str = "") -> None:
        self.w = writer
        self.script = writer.script
        self.params = params
        self.focus = focus
        self.extra: list[FuncInfo] = []  # wrappers and clones
        self.placed: dict[str, str] = {}  # the compute_at of a Func
        self.late: list[str] = []  # lines for the end
        self.pick, self.int = writer.pick, writer.int

    def line(self, text: str) -> None:
        self.script.schedule.append(text)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.w.random.sample(items, len(items))  # type: ignore[no-any-return]

    def chance(self, one_in: int) -> bool:
        return self.int(1, one_in) == 1  # type: ignore[no-any-return]

    def often(self, focus: str, one_in: int) -> bool:
        """Every second time where a script is about this, else less often."""
        return self.chance(2 if self.focus == focus else one_in)

    def specialize(self, f: FuncInfo, s: Stage) -> None:
        """A copy of the schedule so far for a condition; later steps go to the other branch."""
        out = self.script.outputs[0]
        size = [f"{out.name}.output_buffer().{d}()" for d in ("width", "height")[:len(out.args)]] if len(out.types) == 1 else []
        if not size and not self.params:
            return
        v = self.w.fresh("s")
        self.line(f"{v} = {s.name}.specialize({self.pick([*size, *self.params])} {self.pick(['>=', '==', '<'])} {self.int(1, 9)})")
        special = Stage(v, [Loop(o.var, o.reduction, o.busy) for o in s.loops], s.calls, s.update)
        for _ in range(self.int(0, 2)):
            self.step(f, special)
        if self.chance(8):
            self.line(f"{s.name}.specialize_fail('not any of these')")

    def tail(self, s: Stage, loop: Loop) -> str:
        tails = EXACT_TAILS if loop.reduction else APART_TAILS if self.focus == "concurrent" else TAILS
        return f"hl.TailStrategy.{self.pick([t for t in tails if t != 'ShiftInwards' or not s.update])}"

    def perhaps_tail(self, s: Stage, loop: Loop, one_in: int) -> str:
        """The last argument of a split, left out now and then."""
        return "" if self.focus != "concurrent" and self.chance(one_in) else f", {self.tail(s, loop)}"

    def new_vars(self, count: int, reduction: bool) -> list[str]:
        names = [self.w.fresh("v") for _ in range(count)]
        kind = "hl.RVar" if reduction else "hl.Var"
        self.line(f"{', '.join(names)} = {', '.join(f'{kind}({n!r})' for n in names)}")
        return names

    def factor(self) -> str:
        return f"hl.max({self.pick(self.params)}, 1)" if self.params and self.chance(6) else str(self.pick(FACTORS))

    def usual(self, s: Stage) -> None:
        """Begin as programs do."""
        way = self.pick(s.usual)
        self.script.schedule += way.text.format(stage=s.name, tail=self.tail(s, s.loops[0])).split("\n")
        s.loops[:] = way.loops

    def step(self, f: FuncInfo, s: Stage) -> None:
        """One directive on a stage."""
        free = [i for i, loop in enumerate(s.loops) if not loop.busy]
        if not free:
            return
        i, kind = self.pick(free), self.int(0, 14)
        if self.focus == "reductions" and s.loops[i].reduction and self.chance(2):
            kind = 11
        if kind <= 1:
            self.split(s, i)
        elif kind <= 4:
            self.mark(s, s.loops[i])
        elif kind == 5:
            task = f", {self.int(2, 4)}{self.perhaps_tail(s, s.loops[i], 2)}" if self.int(0, 3) else ""
            self.line(f"{s.name}.parallel({s.loops[i].var}{task})")
            s.loops[i].busy = True
        elif kind == 6:
            self.fuse(s, i)
        elif kind in (7, 8):
            self.reorder(s, free)
        elif kind == 9:
            self.tile(s, [k for k in free if not s.loops[k].reduction])
        elif kind == 10:
            self.partition(s, s.loops[i].var)
        elif kind == 11 and s.loops[i].reduction:
            self.reduction_step(f, s, s.loops[i])
        elif kind == 12:
            self.specialize(f, s)
        elif kind == 13:
            (new,) = self.new_vars(1, s.loops[i].reduction)
            self.line(f"{s.name}.rename({s.loops[i].var}, {new})")
            s.loops[i].var = new
        elif kind == 14:
            self.line(f"{s.name}.{'serial(' + s.loops[i].var + ')' if s.update or self.int(0, 1) else 'allow_race_conditions()'}")

    def split(self, s: Stage, i: int) -> None:
        """Into two loops; one of them may keep the name."""
        loop = s.loops[i]
        outer, inner = self.new_vars(2, loop.reduction)
        outer, inner = self.pick([(outer, inner), (outer, inner), (loop.var, inner), (outer, loop.var)])
        self.line(f"{s.name}.split({loop.var}, {outer}, {inner}, {self.factor()}{self.perhaps_tail(s, loop, 8)})")
        s.loops[i:i + 1] = [Loop(inner, loop.reduction), Loop(outer, loop.reduction)]

    def fuse(self, s: Stage, i: int) -> None:
        """With the loop around it; a Var with an RVar now and then, which makes an RVar."""
        if i + 1 == len(s.loops) or s.loops[i + 1].busy:
            return
        inner, outer = s.loops[i:i + 2]
        if inner.reduction != outer.reduction and not self.chance(3):
            return
        reduction = inner.reduction or outer.reduction
        (fused,) = self.new_vars(1, reduction)
        if inner.reduction == outer.reduction:
            fused = self.pick([fused, fused, inner.var, outer.var])
        self.line(f"{s.name}.fuse({inner.var}, {outer.var}, {fused})")
        s.loops[i:i + 2] = [Loop(fused, reduction)]

    def reorder(self, s: Stage, free: list[int]) -> None:
        order = self.shuffled([s.loops[k] for k in free])
        names = ", ".join(o.var for o in order)
        self.line(f"{s.name}.reorder({names})" if self.int(0, 1) else f"{s.name}.reorder([{names}])")
        for k, o in zip(free, order):
            s.loops[k] = o

    def tile(self, s: Stage, free: list[int]) -> None:
        """Tiles of two loops, or of any number of them with lists; the outer loops may keep the names."""
        two = len(free) > 1 and self.int(0, 1) == 1
        chosen = sorted(self.w.random.sample(free, 2 if two else self.int(1, len(free)))) if free else []
        if not chosen:
            return
        old = [s.loops[k] for k in chosen]
        new = self.new_vars(2 * len(old), False)
        inner, outer = new[:len(old)], new[len(old):] if self.int(0, 1) else [o.var for o in old]
        factors = [self.factor(), *("2" for _ in old[1:])]
        groups = [[o.var for o in old], *([outer] if outer[0] != old[0].var else []), inner, factors]
        lists = (", ".join(v for group in groups for v in group) if two else ", ".join(f"[{', '.join(group)}]" for group in groups))
        self.line(f"{s.name}.tile({lists}, {self.tail(s, old[0])})")
        ordered = iter([*map(Loop, inner), *map(Loop, outer)])  # in the places that the loops they are made of have
        s.loops[:] = [loop for k, o in enumerate(s.loops) for loop in ((next(ordered), next(ordered)) if k in chosen else (o,))]

    def partition(self, s: Stage, v: str) -> None:
        if self.chance(5):
            self.line(f"{s.name}.{self.pick([f'always_partition([{v}])', 'always_partition_all()', f'partition({v}, hl.Partition.Always)'])}")
        else:
            self.line(f"{s.name}." + self.pick([f"never_partition([{v}])", f"never_partition({v})", "never_partition_all()",
                                                f"partition({v}, hl.Partition.Never)", f"partition({v}, hl.Partition.Auto)"]))

    def parallel_outermost(self, s: Stage) -> None:
        """The outermost loop that may run in parallel does."""
        for loop in reversed(s.loops):
            if not loop.busy and not loop.reduction:
                self.line(f"{s.name}.parallel({loop.var})")
                loop.busy = True
                return

    def mark(self, s: Stage, loop: Loop) -> None:
        """Vectorize or unroll, in blocks or whole after a split of one's own."""
        verb, factor = self.pick(["vectorize", "unroll"]), self.pick(FACTORS)
        if loop.reduction and verb == "vectorize" and self.int(0, 1):
            self.line(f"{s.name}.atomic()")
        if loop.reduction and self.chance(4):
            self.line(f"{s.name}.{verb}({loop.var})")  # all of it, where its extent is a number
            loop.busy = True
            return
        if self.int(0, 2):
            self.line(f"{s.name}.{verb}({loop.var}, {factor}{self.perhaps_tail(s, loop, 4)})")
            return
        (inner,) = self.new_vars(1, loop.reduction)
        self.line(f"{s.name}.split({loop.var}, {loop.var}, {inner}, {factor}, {self.tail(s, loop)}).{verb}({inner})")
        s.loops.insert(s.loops.index(loop), Loop(inner, loop.reduction, True))

    def reduction_step(self, f: FuncInfo, s: Stage, loop: Loop) -> None:
        """What only reductions have: partial results in a Func of their own."""
        specialized = any(f"{s.name}.specialize" in line for line in self.script.schedule)
        if self.int(0, 1) or specialized or not s.name.startswith(f.name):
            self.line(f"{s.name}.atomic().{self.pick(['vectorize({}, 4)', 'parallel({}, 2)', 'parallel({})']).format(loop.var)}")
            loop.busy = True
            return
        self.rfactor(f, s, loop)

    def rfactor(self, f: FuncInfo, s: Stage, loop: Loop) -> None:
        """Partial results of a reduction, along one of its loops or two."""
        others = [o for o in s.loops if o.reduction and not o.busy and o is not loop]
        chosen = [loop, *(others[:1] if self.chance(4) else [])]
        partial, new = self.w.fresh("partial"), self.new_vars(len(chosen), False)
        u = self.pick(new)
        pairs = ", ".join(f"({o.var}, {v})" for o, v in zip(chosen, new))
        self.line(f"{partial} = {s.name}.rfactor({self.pick([f'{loop.var}, {u}', f'[{pairs}]']) if len(chosen) == 1 else f'[{pairs}]'})")
        for o in chosen:
            s.loops.remove(o)
        around = [o.var for o in s.loops if not o.busy]
        level = f"hl.LoopLevel({f.name}, {self.pick(around)}, {f.stages.index(s) if s in f.stages else 0})" if around and self.chance(3) else ""
        self.line(f"{partial}.{f'compute_at({level})' if level else 'compute_root()'}")
        for _ in range(self.int(0, 2)):
            self.line(f"{partial}." + self.pick([
                f"vectorize({u}, 4)", f"update(0).parallel({u})", f"update(0).vectorize({u}, {self.int(2, 5)})", f"unroll({u}, 2)", f"parallel({u}, 2)",
                f"reorder_storage({', '.join(self.shuffled([*f.args, *new]))})", f"update(0).reorder({', '.join(self.shuffled([u, *f.args]))})"]))
