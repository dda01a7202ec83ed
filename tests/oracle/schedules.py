"""Random schedules as text, mostly legal: where each Func is computed and stored, who computes it, and directives on its loops.

What the API refuses is dropped when the script is built, so a directive may be tried wherever it might make sense. `test_directives.py` holds that
every directive there is gets drawn.
"""

from __future__ import annotations

from script import FuncInfo, Loop, Stage
from stage_directives import StageScheduler


class Scheduler(StageScheduler):
    """Writes schedule lines, consumers first so that producers can be placed at their loops. If `self.concurrent`, most of what can run beside
    something else does."""

    def run(self) -> None:
        """Place and schedule every Func."""
        for f in reversed(self.script.funcs):
            output = f in self.script.outputs
            if output and self.chance(5):
                self.promise(f)
            for g in [*([] if output else self.wrappers(f)), f]:
                if output or self.place(g):
                    for s in g.stages:
                        steps = self.int(0, 3)
                        for _ in range(steps):
                            self.step(g, s)
                        if self.concurrent and self.chance(2):
                            self.parallel_outermost(s)
                        if not steps and s.update:
                            self.line(f"{s.name}.unscheduled()")
                    self.storage(g, output)
                    self.watch(g)
        if self.chance(1 if self.concurrent else 2):
            self.share()

        self.script.schedule += self.late

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
        align = f"hl.LoopAlignStrategy.{self.pick(['AlignStart', 'AlignEnd', 'NoAlign', 'Auto'])}"
        for k, (s, t) in enumerate(zip(f.stages, g.stages)):
            common = [loop.var for loop, other in zip(s.loops[::-1], t.loops[::-1]) if loop.var == other.var]
            if not common:
                continue
            v = self.pick(common)
            self.line(self.pick([f"{t.name}.compute_with({s.name}, {v}, {align})", f"{t.name}.compute_with(hl.LoopLevel({f.name}, {v}, {k}), {align})",
                                 f"{t.name}.compute_with({s.name}, {v}, [({v}, {align})])"]))

    def promise(self, f: FuncInfo) -> None:
        """Bounds of an output, right ones: where nobody else asks for more."""
        if not f.args or any(f.name in s.calls for g in self.script.funcs if g is not f for s in g.stages):
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
            if self.chance(3):
                self.line(f"{f.name}.compute_inline()")
            callers = [s for g in self.script.funcs if g is not f for s in g.stages if f.name in s.calls]
            if callers and len(f.stages) == 1 and self.chance(4):
                self.line(f"{self.pick([s.name for s in callers])}.eager_inline({f.name})")
            return False
        user, stage = users[0]
        spots = [loop.var for loop in stage.loops if not loop.busy or self.chance(3)]
        apart = any(u is not user for u, _ in users) or any(s.update for _, s in users) and not self.chance(3)
        if kind == 2 or apart or not spots:
            self.line(f"{f.name}.compute_root()")
            self.memoize(f)
            if self.chance(2 if self.concurrent else 12):
                self.line(f"{f.name}.async_()")
            return True
        at = self.int(0, len(spots) - 1)
        self.line(f"{f.name}.compute_at({self.level(user, spots[at] if self.int(0, 7) else 'hl.Var.outermost()')})")
        self.store(f, user, spots, at)
        self.prefetch(f, user, stage, at)
        return True

    def level(self, user: FuncInfo, v: str) -> str:
        """A loop of a Func, in one of the ways to say it."""
        kind = self.int(0, 7)
        if kind == 0:
            return f"hl.LoopLevel({user.name}, {v})"
        if kind == 1:
            late = self.w.fresh("level")
            self.line(f"{late} = hl.LoopLevel()")
            self.late.append(f"{late}.set(hl.LoopLevel({user.name}, {v}))")
            return str(late)
        return f"{user.name}, {v}"

    def memoize(self, f: FuncInfo) -> None:
        if self.chance(8):
            self.line(f"{f.name}.memoize({self.pick(['', 'hl.EvictionKey(hl.u64(7))'])})")

    def prefetch(self, f: FuncInfo, user: FuncInfo, stage: Stage, at: int) -> None:
        """Hints in a loop that reads `f`, or an image."""
        loops = [loop.var for loop in stage.loops]
        images = [image for image in self.w.image_params if image in stage.reads]
        if self.chance(6) and loops:
            inner = self.int(0, len(loops) - 1)
            what = self.pick([f.name, *images])
            self.line(f"{stage.name}.prefetch({what}, {loops[inner]}, {self.pick(loops[inner:])}, {self.int(0, 3)}, "
                      f"hl.PrefetchBoundStrategy.{self.pick(['Clamp', 'GuardWithIf', 'NonFaulting'])})")

    def store(self, f: FuncInfo, user: FuncInfo, spots: list[str], at: int) -> None:
        """Where a Func computed at `spots[at]` of `user` is kept."""
        kind = self.int(0, 4)
        if kind == 1:
            self.line(f"{f.name}.store_root()")
        elif kind == 2 and at + 1 < len(spots):
            self.line(f"{f.name}.store_at({self.level(user, spots[self.int(at + 1, len(spots) - 1)])})")
        if kind in (1, 2) and self.chance(4):
            self.line(f"{f.name}.fold_storage({self.pick(['x', 'y'])}, {self.pick([2, 4, 8, 16])}{self.pick(['', '', ', False'])})")
        if self.chance(8):
            self.line(f"{f.name}.hoist_storage_root()" if self.int(0, 1) else f"{f.name}.hoist_storage({self.level(user, spots[-1])})")
            if self.chance(2):
                self.line(f"{f.name}.ring_buffer({self.int(1, 3)})")
        if self.chance(2 if self.concurrent else 8):
            self.line(f"{f.name}.async_()")
        if kind == 0:
            self.memoize(f)

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
            if self.chance(4):
                self.line(f"{new.name}.copy_to_host()")
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
            self.line(f"{f.name}.store_in(hl.MemoryType.{self.pick(['Heap', 'Stack', 'Auto', 'Register'])})")
        elif kind == 2:
            self.line(f"{f.name}.{self.pick(['align_storage', 'bound_storage'])}({v}, {self.pick([2, 4, 8, 7, 16])})")
        elif kind == 3:
            self.line(f"{f.name}.{self.pick(['align_bounds', 'align_extent'])}({v}, {self.int(1, 4)})")

    def watch(self, f: FuncInfo) -> None:
        """What is reported, and what is told to nobody but autoschedulers."""
        if self.chance(12):
            self.line(f"{f.name}.{self.pick(['trace_loads', 'trace_stores', 'trace_realizations'])}()")
            self.line(f"{f.name}.add_trace_tag('seen')")
        if f.args and self.chance(12):
            self.line(self.pick([f"{f.name}.set_estimate({self.pick(f.args)}, 0, 100)", f"{f.name}.set_estimates([{', '.join('(0, 100)' for _ in f.args)}])"]))
