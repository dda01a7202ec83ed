"""Random schedules as text, mostly legal: where each Func is computed and stored, and directives on its loops.

What the API refuses is dropped when the script is built, so a directive may be tried wherever it might make sense; directives that
`halide_py` does not have yet are not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from script import FuncInfo, Loop, Stage

import halide_py as hl

T = TypeVar("T")
FACTORS = [2, 3, 4, 8]
TAILS = ["Auto", "GuardWithIf", "RoundUp", "ShiftInwards", "Predicate", "PredicateLoads", "PredicateStores", "ShiftInwardsAndBlend", "RoundUpAndBlend"]
EXACT_TAILS = ["Auto", "GuardWithIf", "Predicate"]


def has(name: str) -> bool:
    return hasattr(hl.Func, name)


class Scheduler:
    """Writes schedule lines, consumers first so that producers can be placed at their loops."""

    def __init__(self, writer: Any, params: list[str]) -> None:
        self.w = writer
        self.script = writer.script
        self.params = params
        self.extra: list[FuncInfo] = []  # wrappers and clones
        self.pick, self.int = writer.pick, writer.int

    def line(self, text: str) -> None:
        self.script.schedule.append(text)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.w.random.sample(items, len(items))

    def chance(self, one_in: int) -> bool:
        return self.int(1, one_in) == 1

    def run(self) -> None:
        """Place and schedule every Func."""
        for f in reversed(self.script.funcs):
            output = f in self.script.outputs
            if output and self.chance(5):
                self.promise(f)
            for g in [*([] if output else self.wrappers(f)), f]:
                if output or self.place(g):
                    for s in g.stages:
                        for _ in range(self.int(0, 3)):
                            self.step(g, s)
                    self.storage(g, output)
        if self.chance(2):
            self.share()

    def share(self) -> None:
        """Loops that stages of two Funcs have together, where neither needs the other."""
        known = {f.name: f for f in (*self.script.funcs, *self.extra)}

        def needed(f: FuncInfo) -> set[str]:
            called = {name for s in f.stages for name in s.calls} - {f.name}
            return called.union(*(needed(known[name]) for name in called))

        funcs = [f for f in self.script.funcs if f not in self.script.outputs]
        pairs = [(f, g) for i, g in enumerate(funcs) for f in funcs[:i] if f.name not in needed(g) and f.args == g.args and f.args]
        if not pairs:
            return
        f, g = self.pick(pairs)
        self.line(f"{f.name}.compute_root(); {g.name}.compute_root()")
        align = self.pick(["AlignStart", "AlignEnd", "NoAlign", "Auto"])
        for s, t in zip(f.stages, g.stages):
            common = [loop.var for loop, other in zip(s.loops[::-1], t.loops[::-1]) if loop.var == other.var]
            if common:
                self.line(f"{t.name}.compute_with({s.name}, {self.pick(common)}, hl.LoopAlignStrategy.{align})")

    def promise(self, f: FuncInfo) -> None:
        """Bounds of an output, right ones."""
        if not f.args:
            return
        d = self.int(0, len(f.args) - 1)
        low, extent, v = self.script.mins[d], self.script.shape[d], f.args[d]
        self.line(self.pick([f"{f.name}.bound({v}, {low}, {extent})", f"{f.name}.bound_extent({v}, {extent})",
                             f"{f.name}.align_bounds({v}, {self.int(1, 4)}, {self.int(0, 2)})", f"{f.name}.align_extent({v}, {self.int(1, 4)})"]))

    # -- placement

    def consumers(self, f: FuncInfo) -> list[tuple[FuncInfo, Stage]]:
        """The stages that call `f`, through inlined Funcs."""
        found: list[tuple[FuncInfo, Stage]] = []
        for g in [*self.script.funcs, *self.extra]:
            for s in g.stages:
                if f.name in s.calls and g is not f:
                    found += self.consumers(g) if g.inline else [(g, s)]
        return found

    def place(self, f: FuncInfo) -> bool:
        """Decide where `f` is computed; False if it is inlined."""
        kind = self.int(0, 7)
        users = self.consumers(f)
        if kind <= 1 and len(f.stages) == 1 or not users:
            f.inline = True
            return False
        user, stage = users[0]
        spots = [loop.var for loop in stage.loops if not loop.busy or self.chance(3)]
        apart = any(u is not user for u, _ in users) or any(s.update for _, s in users) and not self.chance(3)
        if kind == 2 or apart or not spots:
            self.line(f"{f.name}.compute_root()")
            if has("memoize") and self.chance(8):
                self.line(f"{f.name}.memoize()")
            return True
        at = self.int(0, len(spots) - 1)
        self.line(f"{f.name}.compute_at({user.name}, {spots[at] if self.int(0, 7) else 'hl.Var.outermost()'})")
        self.store(f, user, spots, at)
        return True

    def store(self, f: FuncInfo, user: FuncInfo, spots: list[str], at: int) -> None:
        """Where a Func computed at `spots[at]` of `user` is kept."""
        kind = self.int(0, 4)
        if kind == 1:
            self.line(f"{f.name}.store_root()")
        elif kind == 2 and at + 1 < len(spots):
            self.line(f"{f.name}.store_at({user.name}, {spots[self.int(at + 1, len(spots) - 1)]})")
        if kind in (1, 2) and self.chance(4):
            self.line(f"{f.name}.fold_storage({self.pick(['x', 'y'])}, {self.pick([2, 4, 8, 16])})")
        if self.chance(8):
            self.line(f"{f.name}.hoist_storage_root()" if self.int(0, 1) else f"{f.name}.hoist_storage({user.name}, {spots[-1]})")
            if self.chance(2):
                self.line(f"{f.name}.ring_buffer({self.int(1, 3)})")
        if has("async_") and self.chance(8):
            self.line(f"{f.name}.async_()")

    def wrappers(self, f: FuncInfo) -> list[FuncInfo]:
        """Maybe a wrapper or a clone of `f`, called by one of the Funcs that call it or by all."""
        users = list({u.name: u for u in self.script.funcs for s in u.stages if f.name in s.calls and u is not f and not u.stages[0].reduces}.values())
        kind = self.int(0, 9)
        if kind > 2 or not users:
            return []
        users = users if kind == 1 else [self.pick(users)]
        new = FuncInfo(self.w.fresh("w"), f.types, f.args)
        self.line(f"{new.name} = {f.name}.{'clone_in' if kind == 2 else 'in_'}({'' if kind == 1 else users[0].name})")
        if kind == 2:
            new.stages = [Stage(s.name.replace(f.name, new.name, 1), [Loop(o.var, o.reduction) for o in s.loops], list(s.calls), s.update) for s in f.stages]
        else:
            new.stages = [Stage(new.name, [Loop(v) for v in f.args], [f.name])]
        for s in (s for u in users for s in u.stages):
            s.calls = [new.name if name == f.name else name for name in s.calls]
        self.extra.append(new)
        return [new]

    # -- storage

    def storage(self, f: FuncInfo, output: bool) -> None:
        if not f.args or output or not self.chance(3):
            return
        kind, v = self.int(0, 3), self.pick(f.args)
        if kind == 0 and len(f.args) > 1:
            self.line(f"{f.name}.reorder_storage({', '.join(self.shuffled(f.args))})")
        elif kind == 1:
            self.line(f"{f.name}.store_in(hl.MemoryType.{self.pick(['Heap', 'Stack', 'Auto'])})")
        elif kind == 2:
            self.line(f"{f.name}.{self.pick(['align_storage', 'bound_storage'])}({v}, {self.pick([2, 4, 8, 7, 16])})")
        elif kind == 3:
            self.line(f"{f.name}.{self.pick(['align_bounds', 'align_extent'])}({v}, {self.int(1, 4)})")

    # -- loops

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

    def tail(self, s: Stage, loop: Loop) -> str:
        return f"hl.TailStrategy.{self.pick(EXACT_TAILS if loop.reduction else TAILS if not s.update else [t for t in TAILS if t != 'ShiftInwards'])}"

    def new_vars(self, count: int, reduction: bool) -> list[str]:
        names = [self.w.fresh("v") for _ in range(count)]
        kind = "hl.RVar" if reduction else "hl.Var"
        self.line(f"{', '.join(names)} = {', '.join(f'{kind}({n!r})' for n in names)}")
        return names

    def factor(self) -> str:
        return f"hl.max({self.pick(self.params)}, 1)" if self.params and self.chance(6) else str(self.pick(FACTORS))

    def step(self, f: FuncInfo, s: Stage) -> None:
        """One directive on a stage."""
        free = [i for i, loop in enumerate(s.loops) if not loop.busy]
        if not free:
            return
        i = self.pick(free)
        loop = s.loops[i]
        kind = self.int(0, 12)
        if kind <= 1:
            outer, inner = self.new_vars(2, loop.reduction)
            self.line(f"{s.name}.split({loop.var}, {outer}, {inner}, {self.factor()}, {self.tail(s, loop)})")
            s.loops[i:i + 1] = [Loop(inner, loop.reduction), Loop(outer, loop.reduction)]
        elif kind <= 4:
            self.mark(s, loop)
        elif kind == 5:
            self.line(f"{s.name}.parallel({loop.var}{self.pick(['', ', 2', ', 3'])})")
            loop.busy = True
        elif kind == 6 and i + 1 < len(s.loops) and not s.loops[i + 1].busy and s.loops[i + 1].reduction == loop.reduction:
            (fused,) = self.new_vars(1, loop.reduction)
            self.line(f"{s.name}.fuse({loop.var}, {s.loops[i + 1].var}, {fused})")
            s.loops[i:i + 2] = [Loop(fused, loop.reduction)]
        elif kind in (7, 8) and len(free) > 1:
            order = self.shuffled([s.loops[k] for k in free])
            self.line(f"{s.name}.reorder({', '.join(o.var for o in order)})")
            for k, o in zip(free, order):
                s.loops[k] = o
        elif kind == 9 and {"x", "y"} <= {s.loops[k].var for k in free}:
            xo, yo, xi, yi = self.new_vars(4, False)
            self.line(f"{s.name}.tile(x, y, {xo}, {yo}, {xi}, {yi}, {self.factor()}, 2, {self.tail(s, loop)})")
            s.loops[:] = [Loop(xi), Loop(yi), Loop(xo), Loop(yo), *(o for o in s.loops if o.var not in ("x", "y"))]
        elif kind == 10:
            self.line(f"{s.name}.{'always_partition' if self.chance(8) else 'never_partition'}([{loop.var}])")
        elif kind == 11 and loop.reduction:
            self.reduction_step(f, s, loop)
        elif kind == 12:
            self.specialize(f, s)

    def mark(self, s: Stage, loop: Loop) -> None:
        """Vectorize or unroll, in blocks or whole after a split of one's own."""
        verb, factor = self.pick(["vectorize", "unroll"]), self.pick(FACTORS)
        if loop.reduction and verb == "vectorize" and self.int(0, 1):
            self.line(f"{s.name}.atomic()")
        if self.int(0, 2):
            self.line(f"{s.name}.{verb}({loop.var}, {factor}, {self.tail(s, loop)})")
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
        partial, (u,) = self.w.fresh("partial"), self.new_vars(1, False)
        self.line(f"{partial} = {s.name}.rfactor({loop.var}, {u})")
        self.line(f"{partial}.{self.pick(['compute_root()', f'compute_root().vectorize({u}, 4)', f'compute_root().update(0).parallel({u})'])}")
        s.loops.remove(loop)
