"""Random pipelines and schedules as the text of a script, so that a failing example is itself the script to run.

`random_script(seed)` writes definitions through the public API (chains of Funcs of 0 to 3 dimensions with stencils, resampling, clamped and
data-dependent indices, updates, scans, scatters, predicates, tuples, inline reductions, boundary conditions, images of any layout) and
schedule lines, mostly legal ones.
"""

from __future__ import annotations

import re

from idioms import IDIOMS
from random_expressions import COMMON, FLOATS, RANGE, SMALL, TYPES, At, Expressions, cast, convert, small
from schedules import Scheduler
from script import FuncInfo, Loop, Script, Stage

NUMPY = {"u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "i32": "int32", "u32": "uint32", "i64": "int64", "f32": "float32",
         "f64": "float64", "b1": "bool"}
BOUNDARIES = ["repeat_edge", "mirror_image", "mirror_interior", "repeat_image", "constant_exterior"]
LAYOUTS = ["[:, ::-1]", "[::-1, ::2]", "[::2]", ".T.copy().T", "[1:, 2:]"]


class Writer(Expressions):
    """Writes definitions line by line, drawing each choice."""

    def line(self, text: str) -> None:
        self.script.lines.append(text)

    def image(self) -> None:
        """A Buffer or an ImageParam of any strides and mins, maybe with a boundary condition."""
        name, t = self.fresh("im"), self.pick(list(NUMPY))
        low, high = RANGE[t]
        height, width = self.int(3, 10), self.int(3, 12)
        array = f"np.random.default_rng({self.names}).integers({low}, {high} + 1, ({height}, {width})).astype(np.{NUMPY[t]})"
        mins = [0, 0]
        if self.int(0, 2) == 0:
            data, layout = self.fresh("data"), self.pick(LAYOUTS)
            self.line(f"{data} = hl.Buffer({array}{layout})")
            width = width - 2 if "2:" in layout else (width + 1) // 2 if ", ::2" in layout else width
            height = height - 1 if "1:" in layout else (height + 1) // 2 if layout == "[::2]" else height
            mins = [self.int(-3, 3), self.int(-3, 3)]
            self.line(f"{data}.set_min({mins})")
            self.line(f"{name} = hl.ImageParam({TYPES[t]}, 2, '{name}')")
            self.line(f"{name}.dim(0).set_stride(hl.Expr())")
            self.line(f"{name}.set({data})")
            self.image_params.append(name)
        else:
            self.line(f"{name} = hl.Buffer({array})")
        self.images.append((name, t, ((mins[0], mins[0] + width - 1), (mins[1], mins[1] + height - 1))))
        if self.int(0, 2) == 0:
            wrapped, how = self.fresh("b"), self.pick(BOUNDARIES)
            outside = f"{cast(t, self.int(0, 1))}, " if how == "constant_exterior" else ""
            self.line(f"{wrapped} = hl.BoundaryConditions.{how}({name}, {outside}[({mins[0]}, {width}), ({mins[1]}, {height})])")
            if self.int(0, 1):
                args = (f"{wrapped}.args()[0]", f"{wrapped}.args()[1]")
                reads = [name] if name in self.image_params else []
                self.script.funcs.append(FuncInfo(wrapped, (t,), args, [Stage(wrapped, [Loop(v) for v in args], reads=reads)]))
            self.images.append((wrapped, t, ()))

    def param(self) -> None:
        name = self.fresh("p")
        self.line(f"{name} = hl.Param(hl.Int(32), '{name}', {self.int(1, 6)})")
        if self.int(0, 1):
            self.line(f"{name}.set_range(0, 9)")
            self.params.append(name)
        else:
            self.params.append(f"hl.clamp({name}, 0, 9)")

    def stage(self, f: FuncInfo, loops: list[Loop]) -> None:
        k = len(f.stages)
        reads = [image for image in self.image_params if re.search(rf"\b{image}\b", self.script.lines[-1])]
        calls = sorted({g.name for g in self.script.funcs}.intersection(self.calls))  # images with boundaries are Funcs of the script or are not
        f.stages.append(Stage(f.name if k == 0 else f"{f.name}.update({k - 1})", loops, calls, k > 0, reads=reads))
        self.calls = []

    def domain(self, extents: list[int | str], low: int | None = None) -> str:
        r = self.fresh("r")
        self.line(f"{r} = hl.RDom([{', '.join(f'({self.int(-3, 1) if low is None else low}, {e})' for e in extents)}])")
        return r

    def size(self, low: int, high: int) -> int | str:
        """The extent of a reduction; now and then known at run time only."""
        return self.pick(self.params) if self.params and self.int(0, 5) == 0 else self.int(low, high)

    def func(self) -> None:
        """One Func: a pure definition, maybe updates; or what programs often have."""
        if self.focus == "idioms" and self.int(0, 3):
            self.pick(IDIOMS)(self)
            return
        name, t = self.fresh("f"), self.type()
        args = ("x", "y", "z")[:2 if self.focus == "shared" else self.pick([2, 2, 2, 2, 2, 1, 3, 0])]
        f = FuncInfo(name, (t,), args)
        self.line(f"{name} = hl.Func('{name}')")
        kind = self.pick([0, 1, 2, 9, 9]) if self.focus == "reductions" else self.pick([3, 3, 3, 9]) if self.focus == "sliding" else self.int(0, 13)
        if kind <= 1:
            self.tuple_func(f, t)
        elif kind == 2 and t != "b1":
            self.reduction_func(f, t)
        else:
            start = self.value(t, args)
            self.line(f"{self.at(f)} = {start}")
            self.stage(f, [Loop(v) for v in args])
            for _ in range(self.int(1, 3) if kind >= 6 else 0):
                self.update(f, t)
        self.script.funcs.append(f)

    def gather(self) -> None:
        """A Func of all that no other reads."""
        read = {name for f in self.script.funcs for s in f.stages for name in s.calls}
        t, taps = self.type(), []
        f = FuncInfo(self.fresh("f"), (t,))
        for g in (g for g in self.script.funcs if g.name not in read):
            self.calls.append(g.name)
            k = self.int(0, len(g.types) - 1)
            taps.append(convert(t, g.types[k], f"{g.name}[{', '.join(self.coordinates(f.args, len(g.args)))}]" + (f"[{k}]" if len(g.types) > 1 else "")))
        self.line(f"{f.name} = hl.Func('{f.name}')")
        self.line(f"{self.at(f)} = {small(t, (' & ' if t == 'b1' else ' + ').join(taps))}")
        self.stage(f, [Loop(v) for v in f.args])
        self.script.funcs.append(f)

    def type(self) -> str:
        """Of a Func; where reductions matter, sums of it are associative."""
        return self.pick(["u8", "i8", "u16", "i16", "u32", "u64"]) if self.focus == "reductions" and self.int(0, 3) else self.pick(COMMON)

    def at(self, f: FuncInfo, *where: str) -> str:
        return f"{f.name}[{', '.join(where or f.args) or '()'}]"

    def tuple_func(self, f: FuncInfo, t: str) -> None:
        f.types = (t, *(self.type() for _ in range(self.int(1, 2))))
        self.line(f"{self.at(f)} = ({', '.join(self.value(s, f.args, 1) for s in f.types)})")
        self.stage(f, [Loop(v) for v in f.args])
        here, kind = self.at(f), self.pick([2, 4, 4]) if self.focus == "reductions" else self.int(0, 4)
        if kind == 1:  # rotates
            moved = [convert(s, u, f"{here}[{(i + 1) % len(f.types)}]") for i, (s, u) in enumerate(zip(f.types, f.types[1:] + f.types[:1]))]
            self.line(f"{here} = ({', '.join(moved)})")
            self.stage(f, [Loop(v) for v in f.args])
        elif kind == 2:  # keeps the better of two, with where it was
            r = self.domain([self.size(1, 5)], 0)
            s = f.types[0] if f.types[0] != "b1" else "u8"
            e = self.value(s, tuple(f"{v} + {r}.x" for v in f.args) or (f"{r}.x",), 1)
            if f.types[0] != "b1":
                self.line(f"better = {here}[0] < {e}")
                others = [f"hl.select(better, {convert(u, 'i32', f'{r}.x')}, {here}[{i + 1}])" for i, u in enumerate(f.types[1:])]
                self.line(f"{here} = (hl.select(better, {e}, {here}[0]), {', '.join(others)})")
                self.stage(f, [Loop(f"{r}.x", True)] + [Loop(v) for v in f.args])

        elif kind == 4 and f.args:  # each element reduced with an operation of its own
            r = self.domain([self.size(1, 4), self.int(1, 3)])
            self.where(r)
            at = tuple(f"{v} + {r}.{d}" for v, d in zip(f.args, "xyx"))
            self.line(f"{here} = ({', '.join(self.combined(f, s, f'{here}[{i}]', at) for i, s in enumerate(f.types))})")
            self.stage(f, [Loop(f"{r}.x", True), Loop(f"{r}.y", True)] + [Loop(v) for v in f.args])

    def reduction_func(self, f: FuncInfo, t: str) -> None:
        r = self.domain([self.size(1, 3), self.int(1, 3)])
        op = self.pick(["sum", "maximum", "minimum", "product"] if t not in FLOATS + SMALL else ["sum", "maximum", "minimum"])
        self.where(r)
        at = tuple(f"{v} {sign} {r}.{d}" for v, sign, d in zip(f.args, "+-+", "xyx")) or (f"{r}.x", f"{r}.y")
        self.line(f"{self.at(f)} = {small(t, f'hl.{op}({r}, {self.value(t, at, 1)})')}")
        self.stage(f, [Loop(v) for v in f.args])
        f.stages[-1].reduces = True

    def update(self, f: FuncInfo, t: str) -> None:
        kind = self.pick([0, 0, 0, 1, 1, 2, 5]) if self.focus == "reductions" else self.int(0, 7)
        pure = [Loop(v) for v in f.args]
        if kind == 0 or not f.args:  # reduction over a window
            r = self.domain([self.size(1, 4), self.size(1, 3)])
            self.where(r)
            at = tuple(f"{v} + {r}.{d}" for v, d in zip(f.args, "xyx")) or (f"{r}.x", f"{r}.y")
            self.line(f"{self.at(f)} = {self.combined(f, t, self.at(f), at)}")
            self.stage(f, [Loop(f"{r}.x", True), Loop(f"{r}.y", True), *pure])
        elif kind == 1:
            self.scatter(f, t)
        elif kind <= 3:
            self.scan(f, t)
        elif kind == 4:  # at a fixed place
            rest = f.args[:-1]
            self.line(f"{self.at(f, *rest, str(self.int(-1, 3)))} = {self.value(t, rest, 1)}")
            self.stage(f, pure[:-1])
        elif kind == 5:  # every second or third element
            r, step = self.domain([self.size(1, 5)], 0), self.int(2, 3)
            where = (f"{step}*{r}.x + {self.int(0, 2)}", *f.args[1:])
            self.line(f"{self.at(f, *where)} = {self.combined(f, t, self.at(f, *where), (f'{r}.x', *f.args[1:]))}")
            self.stage(f, [Loop(f"{r}.x", True), *pure[1:]])
        elif kind == 6:  # in place
            self.line(f"{self.at(f)} = {self.combined(f, t, self.at(f), f.args)}")
            self.stage(f, pure)
        else:  # only where a condition holds
            self.line(f"{self.at(f)} = hl.select({self.condition(f.args, 0)}, {self.value(t, f.args, 1)}, hl.undef({TYPES[t]}))")
            self.stage(f, pure)

    def combined(self, f: FuncInfo, t: str, old: str, at: At) -> str:
        """An old value with a new one."""
        new = self.value(t, at, 1)
        if t == "b1":
            return f"({old} {self.pick(['&', '|'])} {new})"
        kind = self.int(0, 4)
        if kind == 0:
            return f"hl.{self.pick(['min', 'max'])}({old}, {new})"
        if kind == 1 and t not in SMALL + FLOATS:
            return f"({old} {self.pick(['*', '&', '|', '^'])} {new})"
        return small(t, f"{old} + {new}") if kind < 4 else f"hl.select({self.condition(at, 0)}, {new}, {old})"

    def scatter(self, f: FuncInfo, t: str) -> None:
        r = self.domain([self.size(1, 9), self.int(1, 5)])
        self.where(r)
        e, s = self.tap((f"{r}.x", f"{r}.y"))
        index = f"hl.clamp({convert('i32', s, e)}, {self.int(-2, 0)}, {self.int(3, 9)})"
        whole = self.int(0, 1) == 0  # the other variables stay free, or the domain gives them
        others = f.args[1:] if whole else tuple(f"{r}.y + {self.int(0, 1)}" for _ in f.args[1:])
        where = (index, *others)
        new = f"{self.at(f, *where)} {'|' if t == 'b1' else '+'} {cast(t, self.int(1, 3))}"
        self.line(f"{self.at(f, *where)} = {small(t, new)}")
        self.stage(f, [Loop(f"{r}.x", True), Loop(f"{r}.y", True), *(Loop(v) for v in f.args[1:] if whole)])

    def scan(self, f: FuncInfo, t: str) -> None:
        """Along one dimension, forwards or backwards."""
        r = self.domain([self.size(1, 8)], 1)
        along, back = self.int(0, len(f.args) - 1), self.int(0, 2) == 0
        here, before = list(f.args), list(f.args)
        here[along], before[along] = (f"9 - {r}.x", f"10 - {r}.x") if back else (f"{r}.x", f"{r}.x - {self.int(1, 2)}")
        self.line(f"{self.at(f, *here)} = {self.combined(f, t, self.at(f, *before), tuple(here))}")
        self.stage(f, [Loop(f"{r}.x", True), *(Loop(v) for i, v in enumerate(f.args) if i != along)])

    def where(self, r: str) -> None:
        kind = self.int(0, 7)
        if kind == 1:
            self.line(f"{r}.where({r}.x + {r}.y < {self.int(1, 5)})")
        elif kind == 2:
            self.line(f"{r}.where({r}.x != {self.int(0, 2)})")
        elif kind == 3:
            self.line(f"{r}.where({r}.x <= {r}.y)")
        elif kind == 4:
            e, t = self.image_tap((f"{r}.x", f"{r}.y"))
            if t != "b1":
                self.line(f"{r}.where({e} > {cast(t, 3)})")
        elif kind == 5 and self.params:
            self.line(f"{r}.where({r}.x < {self.pick(self.params)})")


def random_script(seed: int, funcs: int = 4, scheduled: bool = True, focus: str = "") -> Script:
    """The random pipeline of up to `funcs` Funcs that follows from a seed, with a random schedule. `focus` is one of FOCI: threads, sliding
    windows, loops that Funcs share, reductions, what rewrites calls or forms that the compiler knows come more often, and pipelines in which they
    matter."""
    w = Writer(seed, focus)
    s = w.script
    for _ in range(w.int(1, 2)):
        w.image()
    for _ in range(w.pick([1, 2] if focus == "idioms" else [0, 0, 1, 2])):
        w.param()
    for _ in range(w.int(2 if focus in ("sliding", "shared") else 1, funcs)):
        w.func()
    if focus == "shared":
        w.gather()
    out = s.funcs[-1]
    s.outputs = [out]
    others = [f for f in s.funcs[:-1] if len(f.args) == len(out.args)]
    if others and w.int(0, 4) == 0:
        s.outputs.insert(w.int(0, 1), w.pick(others))
    s.exact = w.int(0, 2) == 0 and len(s.outputs) == 1  # of an output that another reads, more may be asked
    s.shape = ((w.int(8, 40), w.int(4, 20), w.int(1, 4)) if focus == "idioms" else (w.int(1, 14), w.int(1, 10), w.int(1, 4)))[:len(out.args)]
    s.mins = tuple(w.int(-5, 5) if s.exact else 0 for _ in out.args)
    if w.params and w.int(0, 3) == 0:
        s.requirements.append(f"{w.pick(w.params)} >= 0, 'a parameter below 0:', {w.pick(w.params)}")
    if scheduled:
        Scheduler(w, w.params, focus).run()
    return s
