"""Random schedules as text, mostly legal: where each Func is computed and stored, who computes it, and directives on its loops.

What the API refuses is dropped when the script is built, so a directive may be tried wherever it might make sense. `test_directives.py` holds that
every directive there is gets drawn.
"""

from __future__ import annotations

import re

from script import FuncInfo, Loop, Stage
from stage_directives import StageScheduler


class Scheduler(StageScheduler):
    """Writes schedule lines, consumers first so that producers can be placed at their loops."""

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
                        if s.usual and self.int(0, 5):
                            self.usual(s)
                            steps = max(steps - 2, 0)
                        for _ in range(steps):
                            self.step(g, s)
                        if self.often("rewritten", 5 if self.focus == "shared" else 30):
                            self.specialize(g, s)
                        if self.focus == "concurrent" and self.chance(2):
                            self.parallel_outermost(s)
                        if not steps and s.update:
                            self.line(f"{s.name}.unscheduled()")
                    self.storage(g, output)
                    self.watch(g)
        for image in self.w.image_params:
            if self.often("rewritten", 8):
                self.wrap_image(image)
        if self.chance(1 if self.focus in ("concurrent", "shared") else 2):
            self.share()
        self.script.schedule += self.late

    def share(self) -> None:
        """Loops that stages of two Funcs have together, where neither needs the other."""
        known = {f.name: f for f in (*self.script.funcs, *self.extra)}

        def needed(f: FuncInfo) -> set[str]:
            called = {name for s in f.stages for name in s.calls} - {f.name}
            return called.union(*(needed(known[name]) for name in called))

        funcs = [f for f in self.script.funcs if f not in self.script.outputs]
        funcs = [f for f in funcs if not f.inline or self.chance(2)]
        pairs = [(f, g) for i, g in enumerate(funcs) for f in funcs[:i] if f.name not in needed(g) and f.args == g.args and f.args]
        if not pairs:
            return
        f, g = self.pick(pairs)
        others = [h for h in funcs if h.args == f.args and {(f.name, h.name), (g.name, h.name)} <= {(a.name, b.name) for a, b in pairs}]
        group = [f, g, *(others[:1] if self.chance(2) else [])]
        place = self.placed.get(f.name, "compute_root()") if self.chance(3) else "compute_root()"
        self.line("; ".join(f"{h.name}.{place}" for h in group))
        for first, second in zip(group, group[1:]):
            for k, (s, t) in enumerate(zip(first.stages, second.stages)):
                self.join(first, s, t, k)

    def join(self, f: FuncInfo, s: Stage, t: Stage, k: int) -> None:
        """Stage `t` in loops of stage `s`, which is number `k` of `f`."""
        if self.focus == "shared" or self.chance(2):
            self.alike(s, t)
        common = [loop.var for loop, other in zip(s.loops[::-1], t.loops[::-1]) if loop.var == other.var]
        if not common:
            return
        v, align = self.pick(common), f"hl.LoopAlignStrategy.{self.pick(['AlignStart', 'AlignEnd', 'NoAlign', 'Auto'])}"
        self.line(f"{t.name}.compute_with(" + self.pick([f"{s.name}, {v}, {align}", f"hl.LoopLevel({f.name}, {v}, {k}), {align}",
                                                         f"{s.name}, {v}, [({v}, {align})]", f"{s.name}, {v}"]) + ")")

    def alike(self, s: Stage, t: Stage) -> None:
        """Give `t` the loops of `s`."""
        of_loops = re.compile(rf"({re.escape(s.name)}|{re.escape(t.name)})\.(split|fuse|reorder|tile|rename|vectorize|unroll|parallel|serial|partition)\(")
        own = [line for line in self.script.schedule if (m := of_loops.match(line)) and m[1] == t.name]
        self.script.schedule[:] = [line for line in self.script.schedule if line not in own]
        copied = [line.replace(s.name, t.name, 1) for line in self.script.schedule if of_loops.match(line) and line.startswith(s.name)]
        self.script.schedule += copied
        t.loops[:] = [Loop(o.var, o.reduction, o.busy) for o in s.loops]

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
        if self.focus in ("sliding", "shared", "idioms") and kind <= 1:
            kind = self.int(1, 7)
        if kind <= 1 and len(f.stages) == 1 or not users:
            f.inline = True
            if self.chance(3):
                self.line(f"{f.name}.{self.pick(['compute_inline()', 'compute_inline()', 'compute_at(hl.LoopLevel.inlined())'])}")
            callers = [s for g in self.script.funcs if g is not f for s in g.stages if f.name in s.calls]
            if callers and len(f.stages) == 1 and self.often("rewritten", 4):
                self.line(f"{self.pick([s.name for s in callers])}.eager_inline({f.name})")
            return False
        user, stage = users[0]
        spots = [loop.var for loop in stage.loops if not loop.busy or self.chance(3)]
        apart = any(u is not user for u, _ in users) or any(s.update for _, s in users) and not self.chance(3)
        if kind == 2 or apart or not spots:
            self.line(f"{f.name}.{self.pick([*7 * ['compute_root()'], 'compute_at(hl.LoopLevel.root())'])}")
            self.memoize(f)
            if self.often("concurrent", 12):
                self.line(f"{f.name}.async_()")
            return True
        at = self.int(0, len(spots) - 1)
        self.placed[f.name] = f"compute_at({self.level(user, spots[at] if self.int(0, 7) else 'hl.Var.outermost()', user.stages.index(stage))})"
        self.line(f"{f.name}.{self.placed[f.name]}")
        self.store(f, user, spots, at)
        self.prefetch(f, user, stage, at)
        return True

    def level(self, user: FuncInfo, v: str, stage: int = 0) -> str:
        """A loop of a Func, in one of the ways to say it."""
        kind = self.int(0, 7)
        if kind == 0 or stage:
            return f"hl.LoopLevel({user.name}, {v}{f', {stage}' if stage or self.chance(2) else ''})"
        if kind == 1:
            late = self.w.fresh("level")
            self.line(f"{late} = hl.LoopLevel()")
            self.late.append(f"{late}.set(hl.LoopLevel({user.name}, {v}))")
            return str(late)
        return f"{user.name}, {v}"

    def memoize(self, f: FuncInfo) -> None:
        if self.often("rewritten", 8):
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
        kind = self.int(1, 2) if self.often("sliding", 100) else self.int(0, 4)
        if kind == 1:
            self.line(f"{f.name}.{self.pick(['store_root()', 'store_root()', 'store_at(hl.LoopLevel.root())'])}")
        elif kind == 2 and at + 1 < len(spots):
            self.line(f"{f.name}.store_at({self.level(user, spots[self.int(at + 1, len(spots) - 1)])})")
        if kind in (1, 2) and f.args and self.often("sliding", 4):
            self.line(f"{f.name}.fold_storage({self.pick(f.args)}, {self.pick([2, 4, 8, 16])}{self.pick(['', '', ', False'])})")
        if self.chance(4 if self.focus == "sliding" else 8):
            self.line(f"{f.name}.hoist_storage_root()" if self.int(0, 1) else f"{f.name}.hoist_storage({self.level(user, spots[-1])})")
            if self.chance(2):
                self.line(f"{f.name}.ring_buffer({self.int(1, 3)})")
        if self.chance({"concurrent": 2, "sliding": 3}.get(self.focus, 8)):
            self.line(f"{f.name}.async_()")
        if kind == 0:
            self.memoize(f)

    def wrappers(self, f: FuncInfo) -> list[FuncInfo]:
        """Maybe a wrapper or a clone of `f`, called by one of the Funcs that call it or by all."""
        users = list({u.name: u for u in self.script.funcs for s in u.stages if f.name in s.calls and u is not f and not u.stages[0].reduces}.values())
        kind = self.int(0, 3 if self.focus == "rewritten" else 9)
        if kind > 2 or not users:
            return []
        users = users if kind == 1 else self.w.random.sample(users, self.int(1, min(2, len(users))))
        new = FuncInfo(self.w.fresh("w"), f.types, f.args)
        names = ", ".join(u.name for u in users)
        who = "" if kind == 1 else names if len(users) == 1 and self.int(0, 1) else f"[{names}]"
        self.line(f"{new.name} = {f.name}.{'clone_in' if kind == 2 else 'in_'}({who})")
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

    def wrap_image(self, image: str) -> None:
        """A Func that loads an image for all who read it."""
        w = self.w.fresh("w")
        args = (f"{w}.args()[0]", f"{w}.args()[1]")
        loads = Stage(w, [Loop(v) for v in args], reads=[image])
        self.line(f"{w} = {image}.in_(); {w}.compute_root()")
        for _ in range(self.int(0, 2)):
            self.step(FuncInfo(w, (), args, [loads]), loads)

    # -- storage

    def storage(self, f: FuncInfo, output: bool) -> None:
        if not f.args or output or not self.chance(3):
            return
        kind, v = self.int(0, 6), self.pick(f.args)
        if kind == 0 and len(f.args) > 1:
            self.line(f"{f.name}.reorder_storage({', '.join(self.shuffled(f.args))})")
        elif kind == 1:
            self.line(f"{f.name}.store_in(hl.MemoryType.{self.pick(['Heap', 'Stack', 'Auto', 'Register'])})")
        elif kind == 2:
            self.line(f"{f.name}.{self.pick(['align_storage', 'bound_storage'])}({v}, {self.pick([2, 4, 8, 7, 16])})")
        elif kind == 3:
            self.line(f"{f.name}.{self.pick([f'align_bounds({v}, 3, {self.int(0, 2)})', f'align_bounds({v}, 4)', f'align_extent({v}, {self.int(1, 4)})'])}")
        elif kind == 4 and f in self.script.funcs:  # more than anybody asks for
            self.line(f"{f.name}.{self.pick([f'bound({v}, -24, 56)', f'bound_extent({v}, 56)'])}")

    def watch(self, f: FuncInfo) -> None:
        """What is reported, and what is told to nobody but autoschedulers."""
        if self.chance(12):
            self.line(f"{f.name}.{self.pick(['trace_loads', 'trace_stores', 'trace_realizations'])}()")
            self.line(f"{f.name}.add_trace_tag('seen')")
        if f.args and self.chance(12):
            self.line(self.pick([f"{f.name}.set_estimate({self.pick(f.args)}, 0, 100)", f"{f.name}.set_estimates([{', '.join('(0, 100)' for _ in f.args)}])"]))
