"""Random pipelines and schedules as the text of a script, so that a failing example is itself the script to run.

`pipelines()` draws a `Script`: definitions through the public API (chains of Funcs with stencils, resampling, clamped and
data-dependent indices, updates, tuples, inline reductions, boundary conditions) and schedule lines, mostly legal ones.
Values are kept where the language defines them exactly: int32 sums stay small, floats stay small integers, so results compare bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy], object]

NUMPY = {"u8": "np.uint8", "i8": "np.int8", "u16": "np.uint16", "i16": "np.int16", "i32": "np.int32", "u32": "np.uint32", "f32": "np.float32"}
TYPES = {"u8": "hl.UInt(8)", "i8": "hl.Int(8)", "u16": "hl.UInt(16)", "i16": "hl.Int(16)", "i32": "hl.Int(32)", "u32": "hl.UInt(32)",
         "f32": "hl.Float(32)"}
RANGE = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767), "i32": (-1000, 1000), "u32": (0, 4000000000), "f32": (-100, 100)}
BOUNDARIES = ["repeat_edge", "mirror_image", "mirror_interior", "repeat_image"]
IMAGE = (11, 9)


def cast(t: str, e: str | int) -> str:
    return f"hl.cast({TYPES[t]}, {e})"


@dataclass
class Loop:
    """One loop of a stage."""

    var: str
    reduction: bool = False
    busy: bool = False  # vectorized or unrolled: leave it alone


@dataclass
class Stage:
    """A definition as schedules see it: how to name it, its loops innermost first, the Funcs it calls."""

    name: str
    loops: list[Loop]
    calls: list[str] = field(default_factory=list)
    update: bool = False


@dataclass
class FuncInfo:
    """A Func in the script."""

    name: str
    types: tuple[str, ...]
    stages: list[Stage] = field(default_factory=list)
    inline: bool = False


@dataclass
class Script:
    """A pipeline in text."""

    lines: list[str] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    funcs: list[FuncInfo] = field(default_factory=list)
    shape: tuple[int, int] = (8, 6)

    def text(self, module: str = "halide_py", scheduled: bool = True) -> str:
        """The whole script; it ends by printing the values of the last Func."""
        out = self.funcs[-1].name
        tail = [f"result = {out}.realize({list(self.shape)})",
                "print([np.asarray(b).tolist() for b in (result if isinstance(result, (list, tuple)) else [result])])"]
        return "\n".join([self.preamble(module), *(self.schedule if scheduled else []), *tail]) + "\n"

    def preamble(self, module: str = "halide_py") -> str:
        """Imports and definitions."""
        return "\n".join(["import numpy as np", f"import {module} as hl", "", "x, y = hl.Var('x'), hl.Var('y')", *self.lines])


class Writer:
    """Writes definitions line by line, drawing each choice."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.script = Script()
        self.images: list[tuple[str, str]] = []  # name, type; accessed anywhere (a boundary condition) or clamped
        self.calls: list[str] = []
        self.names = 0

    def pick(self, options: list) -> object:
        return self.draw(st.sampled_from(options))

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # -- expressions

    def convert(self, t: str, s: str, e: str) -> str:
        """`e` of type `s` as type `t`, kept where the conversion is defined and the result small."""
        if s == t:
            return e
        if s == "f32":
            low, high = RANGE[t]
            return cast(t, f"hl.clamp({e}, {cast(s, max(low, -1000))}, {cast(s, min(high, 1000))})")
        if t in ("i32", "f32") and s == "u32":
            e = f"({e} % {cast('u32', 1000)})"
        return cast(t, e)

    def image_tap(self, at: tuple[str, str]) -> tuple[str, str]:
        name, t = self.pick(self.images)
        if name.startswith("b"):
            return f"{name}[{at[0]}, {at[1]}]", t
        return f"{name}[hl.clamp({at[0]}, 0, {IMAGE[0] - 1}), hl.clamp({at[1]}, 0, {IMAGE[1] - 1})]", t

    def shifted(self, v: str) -> str:
        d = self.int(-2, 2)
        return v if d == 0 else f"{v} + {d}" if d > 0 else f"{v} - {-d}"

    def coordinates(self, at: tuple[str, str]) -> tuple[str, str]:
        """Where a tap reads: shifted, resampled, transposed, reversed or data dependent."""
        kind = self.int(0, 11)
        a, b = self.shifted(at[0]), self.shifted(at[1])
        if kind == 1:
            return f"2*({a})", b
        if kind == 2:
            return f"({a})/2", f"({b})/2"
        if kind == 3:
            return b, a
        if kind == 4:
            return f"9 - ({a})", b
        if kind == 5:
            e, t = self.image_tap((a, b))
            return f"hl.clamp({self.convert('i32', t, e)}, 0, 7)", b
        if kind == 6:
            return f"hl.clamp({a}, 1, 5)", b
        if kind == 7:
            return f"({a}) % 4", f"2*({b})"
        return a, b

    def tap(self, at: tuple[str, str]) -> tuple[str, str]:
        """A read of an earlier Func or an image, with its type."""
        funcs = self.script.funcs
        if not funcs or self.int(0, 3) == 0:
            return self.image_tap(self.coordinates(at))
        f = funcs[-1] if self.int(0, 2) else self.pick(funcs)
        self.calls.append(f.name)
        where = self.coordinates(at)
        if len(f.types) == 1:
            return f"{f.name}[{where[0]}, {where[1]}]", f.types[0]
        k = self.int(0, len(f.types) - 1)
        return f"{f.name}[{where[0]}, {where[1]}][{k}]", f.types[k]

    def leaf(self, t: str, at: tuple[str, str]) -> str:
        kind = self.int(0, 5)
        if kind == 0:
            low, high = RANGE[t]
            return cast(t, self.int(max(low, -20), min(high, 100)))
        if kind == 1:
            return cast(t, self.pick(list(at)))
        e, s = self.tap(at)
        return self.convert(t, s, e)

    def condition(self, at: tuple[str, str], depth: int) -> str:
        t = self.pick(list(TYPES))
        op = self.pick(["<", "<=", ">", ">=", "==", "!="])
        one = f"({self.expr(t, at, depth)} {op} {self.expr(t, at, depth)})"
        if self.int(0, 4) == 0:
            return f"({one} {self.pick(['&', '|'])} ({self.pick(list(at))} < {self.int(0, 8)}))"
        return one

    def expr(self, t: str, at: tuple[str, str], depth: int) -> str:
        """An expression of type `t` at coordinates `at`."""
        if depth <= 0:
            return self.leaf(t, at)
        kind = self.int(0, 12)
        if kind <= 1:
            return self.leaf(t, at)
        if kind == 2:
            s = self.pick(list(TYPES))
            return self.convert(t, s, self.expr(s, at, depth - 1))
        if kind == 3:
            return f"hl.select({self.condition(at, depth - 2)}, {self.expr(t, at, depth - 1)}, {self.expr(t, at, depth - 1)})"
        a, b = self.expr(t, at, depth - 1), self.expr(t, at, depth - 1)
        return self.operation(t, kind, a, b)

    def operation(self, t: str, kind: int, a: str, b: str) -> str:
        if kind == 4:
            return f"({a} - {b})"
        if kind == 5:
            return f"hl.min({a}, {b})"
        if kind == 6:
            return f"hl.max({a}, {b})"
        if kind == 7 and t == "f32":
            return f"(hl.clamp({a}, {cast(t, -64)}, {cast(t, 64)}) * hl.clamp({b}, {cast(t, -8)}, {cast(t, 8)}))"
        if kind == 7:
            return f"(({a} % {cast(t, 50)}) * ({b} % {cast(t, 50)}))" if t == "i32" else f"({a} * {b})"
        if t == "f32" or kind == 12:
            return f"({a} + {b})"
        if kind == 8:
            return f"({a} / {b if self.int(0, 1) else cast(t, self.pick([1, 2, 3, 7, 16]))})"
        if kind == 9:
            return f"({a} % {b if self.int(0, 1) else cast(t, self.pick([1, 2, 3, 7, 16]))})"
        if kind == 10:
            return cast(t, f"hl.absd({a}, {b})")
        return f"({a} {self.pick(['&', '|', '^'])} {b})" if self.int(0, 1) else f"({a} >> {cast(t, self.int(0, 5))})"

    def value(self, t: str, at: tuple[str, str], depth: int | None = None) -> str:
        """An expression to store: int32 and float values are brought back to a small range."""
        e = self.expr(t, at, self.int(0, 3) if depth is None else depth)
        if t == "i32":
            return f"({e}) % {cast(t, 1000)}"
        return f"hl.clamp({e}, {cast(t, -1000)}, {cast(t, 1000)})" if t == "f32" else e

    # -- definitions

    def line(self, text: str) -> None:
        self.script.lines.append(text)

    def image(self) -> None:
        name, t = self.fresh("im"), self.pick(["u8", "u16", "i16", "i32", "f32"])
        low, high = RANGE[t]
        self.line(f"{name} = hl.Buffer(np.random.default_rng({self.names}).integers({low}, {high}, ({IMAGE[1]}, {IMAGE[0]})).astype({NUMPY[t]}))")
        self.images.append((name, t))
        if self.int(0, 2) == 0:
            wrapped = self.fresh("b")
            self.line(f"{wrapped} = hl.BoundaryConditions.{self.pick(BOUNDARIES)}({name}, [(0, {IMAGE[0]}), (0, {IMAGE[1]})])")
            self.images.append((wrapped, t))

    def stage(self, f: FuncInfo, loops: list[Loop]) -> None:
        k = len(f.stages)
        f.stages.append(Stage(f.name if k == 0 else f"{f.name}.update({k - 1})", loops, sorted(set(self.calls)), k > 0))
        self.calls = []

    def domain(self, extents: list[int], low: int = 0) -> str:
        r = self.fresh("r")
        self.line(f"{r} = hl.RDom([{', '.join(f'({low}, {e})' for e in extents)}])")
        return r

    def func(self) -> None:
        """One Func: a pure definition, maybe updates."""
        name, t = self.fresh("f"), self.pick(list(TYPES))
        f = FuncInfo(name, (t,))
        self.line(f"{name} = hl.Func('{name}')")
        kind = self.int(0, 9)
        at = ("x", "y")
        pure = [Loop("x"), Loop("y")]
        if kind == 1:
            f.types = (t, self.pick(list(TYPES)))
            self.line(f"{name}[x, y] = ({', '.join(self.value(s, at, 1) for s in f.types)})")
            self.stage(f, pure)
            if self.int(0, 1):
                swap = f"{name}[x, y]"
                self.line(f"{swap} = ({self.convert(t, f.types[1], swap + '[1]')}, {self.convert(f.types[1], t, swap + '[0]')})")
                self.stage(f, [Loop("x"), Loop("y")])
        elif kind == 2:
            r = self.domain([self.int(1, 3), self.int(1, 3)])
            op = self.pick(["sum", "maximum", "minimum"])
            self.line(f"{name}[x, y] = {self.reduce_value(t, op, r)}")
            self.stage(f, pure)
        else:
            self.line(f"{name}[x, y] = {self.value(t, at)}")
            self.stage(f, pure)
            if kind >= 6:
                self.update(f, t, kind)
                if self.int(0, 3) == 0:
                    self.line(f"{name}[x, y] = {self.value(t, at, 1)} + {cast(t, 0)} * {name}[x, y]")
                    self.stage(f, [Loop("x"), Loop("y")])
        self.script.funcs.append(f)

    def reduce_value(self, t: str, op: str, r: str) -> str:
        e = f"hl.{op}({r}, {self.value(t, (f'x + {r}.x', f'y - {r}.y'), 1)})"
        return f"({e}) % {cast(t, 1000)}" if t == "i32" else f"hl.clamp({e}, {cast(t, -1000)}, {cast(t, 1000)})" if t == "f32" else e

    def update(self, f: FuncInfo, t: str, kind: int) -> None:
        name = f.name
        if kind == 6:  # reduction over a window
            r = self.domain([self.int(1, 4), self.int(1, 3)])
            self.where(r)
            value = self.value(t, (f"x + {r}.x", f"y + {r}.y"), 1)
            self.line(f"{name}[x, y] = {name}[x, y] + {value}")
            self.stage(f, [Loop(f"{r}.x", True), Loop(f"{r}.y", True), Loop("x"), Loop("y")])
        elif kind == 7:  # scatter
            r = self.domain([self.int(1, 9), self.int(1, 5)])
            self.where(r)
            e, s = self.tap((f"{r}.x", f"{r}.y"))
            index = f"hl.clamp({self.convert('i32', s, e)}, 0, {self.int(3, 9)})"
            where = f"{index}, y" if self.int(0, 1) else f"{index}, {r}.y"
            loops = [Loop(f"{r}.x", True), Loop(f"{r}.y", True)] + ([Loop("y")] if where.endswith(", y") else [])
            self.line(f"{name}[{where}] = {name}[{where}] + {cast(t, self.int(1, 3))}")
            self.stage(f, loops)
        elif kind == 8:  # scan along one dimension
            r = self.domain([self.int(1, 8)], 1)
            across = self.int(0, 1)
            here, before = (f"x, {r}.x", f"x, {r}.x - 1") if across else (f"{r}.x, y", f"{r}.x - 1, y")
            at = ("x", f"{r}.x") if across else (f"{r}.x", "y")
            self.line(f"{name}[{here}] = {self.narrow(t, f'{name}[{before}] + {self.value(t, at, 1)}')}")
            self.stage(f, [Loop(f"{r}.x", True), Loop("x" if across else "y")])
        else:  # at a fixed place
            self.line(f"{name}[x, {self.int(0, 3)}] = {self.value(t, ('x', 'x'), 1)}")
            self.stage(f, [Loop("x")])

    def narrow(self, t: str, e: str) -> str:
        return f"({e}) % {cast(t, 1000)}" if t == "i32" else f"hl.clamp({e}, {cast(t, -1000)}, {cast(t, 1000)})" if t == "f32" else e

    def where(self, r: str) -> None:
        kind = self.int(0, 3)
        if kind == 1:
            self.line(f"{r}.where({r}.x + {r}.y < {self.int(1, 5)})")
        elif kind == 2:
            self.line(f"{r}.where({r}.x != {self.int(0, 2)})")


@st.composite
def pipelines(draw: Draw, funcs: int = 4, scheduled: bool = True) -> Script:
    """A random pipeline of up to `funcs` Funcs, with a random schedule."""
    w = Writer(draw)
    w.script.shape = (w.int(1, 14), w.int(1, 10))
    for _ in range(w.int(1, 2)):
        w.image()
    for _ in range(w.int(1, funcs)):
        w.func()
    if scheduled:
        Scheduler(w).run()
    return w.script


class Scheduler:
    """Writes schedule lines, consumers first so that producers can be placed at their loops."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.script = writer.script
        self.extra: list[FuncInfo] = []  # wrappers and clones

    def line(self, text: str) -> None:
        self.script.schedule.append(text)

    def run(self) -> None:
        """Place and schedule every Func."""
        out = self.script.funcs[-1]
        if self.w.int(0, 5) == 0:
            v = self.w.int(0, 1)
            self.line(f"{out.name}.bound({'xy'[v]}, 0, {self.script.shape[v]})")
        for f in reversed(self.script.funcs):
            for g in ([] if f is out else self.wrappers(f)) + [f]:
                if g is out or self.place(g):
                    for s in g.stages:
                        for _ in range(self.w.int(0, 3)):
                            self.step(g, s)

    def wrappers(self, f: FuncInfo) -> list[FuncInfo]:
        """Maybe a wrapper or a clone of `f`, called by one of the Funcs that call it or by all."""
        users = list({u.name: u for u in self.script.funcs for s in u.stages if f.name in s.calls and u is not f}.values())
        kind = self.w.int(0, 9)
        if kind > 2 or not users:
            return []
        users = users if kind == 1 else [self.w.pick(users)]
        new = FuncInfo(self.w.fresh("w"), f.types)
        callers = "" if kind == 1 else users[0].name
        self.line(f"{new.name} = {f.name}.{'clone_in' if kind == 2 else 'in_'}({callers})")
        if kind == 2:
            new.stages = [Stage(s.name.replace(f.name, new.name, 1), [Loop(o.var, o.reduction) for o in s.loops], list(s.calls), s.update) for s in f.stages]
        else:
            new.stages = [Stage(new.name, [Loop("x"), Loop("y")], [f.name])]
        for s in (s for u in users for s in u.stages):
            s.calls = [new.name if name == f.name else name for name in s.calls]
        self.extra.append(new)
        return [new]

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
        kind = self.w.int(0, 5)
        users = self.consumers(f)
        if kind <= 1 and len(f.stages) == 1 or not users:
            f.inline = True
            return False
        user, stage = users[0]
        spots = [loop.var for loop in stage.loops if not loop.busy and not loop.reduction]
        if kind == 2 or any(u is not user or s.update for u, s in users) or not spots:
            self.line(f"{f.name}.compute_root()")
            return True
        at = self.w.int(0, len(spots) - 1)
        self.line(f"{f.name}.compute_at({user.name}, {spots[at]})")
        store = self.w.int(0, 3)
        if store == 1:
            self.line(f"{f.name}.store_root()")
        elif store == 2 and at + 1 < len(spots):
            self.line(f"{f.name}.store_at({user.name}, {spots[self.w.int(at + 1, len(spots) - 1)]})")
        self.storage(f, f"{user.name}, {spots[-1]}")
        return True

    def storage(self, f: FuncInfo, place: str) -> None:
        """How what is kept of a Func is laid out, and where its memory comes from."""
        kind = self.w.int(0, 11)
        v, size = self.w.pick(["x", "y"]), self.w.pick([2, 3, 8])
        lines = {0: f".hoist_storage({place})", 1: f".hoist_storage_root().ring_buffer({size})", 2: f".reorder_storage(y, x).align_storage({v}, {size})",
                 3: f".bound_storage({v}, {size})", 4: f".fold_storage({v}, {size})", 5: ".store_in(hl.MemoryType.Stack)", 6: ".store_in(hl.MemoryType.Heap)"}
        if kind in lines:
            self.line(f.name + lines[kind])

    def tail(self, s: Stage, loop: Loop) -> str:
        options = ["Auto", "GuardWithIf", "Predicate"]
        if not loop.reduction:
            options += ["RoundUp", "PredicateLoads", "PredicateStores", "ShiftInwardsAndBlend", "RoundUpAndBlend"]
        if not s.update and not loop.reduction:
            options.append("ShiftInwards")
        return f"hl.TailStrategy.{self.w.pick(options)}"

    def new_vars(self, count: int, reduction: bool) -> list[str]:
        names = [self.w.fresh("v") for _ in range(count)]
        self.line(f"{', '.join(names)} = {', '.join(('hl.RVar' if reduction else 'hl.Var') + repr((n,))[:-2] + ')' for n in names)}")
        return names

    def step(self, f: FuncInfo, s: Stage) -> None:
        """One directive on a stage."""
        free = [i for i, loop in enumerate(s.loops) if not loop.busy]
        if not free:
            return
        i = self.w.pick(free)
        loop = s.loops[i]
        kind = self.w.int(0, 9)
        factor = self.w.pick([2, 3, 4, 8])
        if kind == 0:
            outer, inner = self.new_vars(2, loop.reduction)
            self.line(f"{s.name}.split({loop.var}, {outer}, {inner}, {factor}, {self.tail(s, loop)})")
            s.loops[i:i + 1] = [Loop(inner, loop.reduction), Loop(outer, loop.reduction)]
        elif kind in (1, 2) and (kind == 2 or not loop.reduction):
            verb = "vectorize" if kind == 1 else "unroll"
            self.line(f"{s.name}.{verb}({loop.var}, {factor}, {self.tail(s, loop)})")
        elif kind == 3 and not loop.reduction:
            self.line(f"{s.name}.parallel({loop.var})")
            loop.busy = True
        elif kind == 4 and i + 1 < len(s.loops) and not s.loops[i + 1].busy and s.loops[i + 1].reduction == loop.reduction:
            (fused,) = self.new_vars(1, loop.reduction)
            self.line(f"{s.name}.fuse({loop.var}, {s.loops[i + 1].var}, {fused})")
            s.loops[i:i + 2] = [Loop(fused, loop.reduction)]
        elif kind == 5 and len(free) > 1:
            order = self.w.draw(st.permutations([s.loops[k] for k in free]))
            self.line(f"{s.name}.reorder({', '.join(o.var for o in order)})")
            for k, o in zip(free, order):
                s.loops[k] = o
        elif kind == 6 and not s.update and {"x", "y"} <= {s.loops[k].var for k in free}:
            xo, yo, xi, yi = self.new_vars(4, False)
            self.line(f"{s.name}.tile(x, y, {xo}, {yo}, {xi}, {yi}, {factor}, 2, {self.tail(s, loop)})")
            rest = [o for o in s.loops if o.var not in ("x", "y")]
            s.loops[:] = [Loop(xi), Loop(yi), Loop(xo), Loop(yo), *rest]
        elif kind == 8 and loop.reduction:
            self.line(f"{s.name}.atomic().{self.w.pick([f'vectorize({loop.var}, {factor})', f'parallel({loop.var}, {factor})', f'parallel({loop.var})'])}")
            loop.busy = True
        elif kind == 9 and loop.reduction and s.name.startswith("f") and not any(f"{s.name}.specialize" in line for line in self.script.schedule):
            self.line(f"{s.name}.rfactor({loop.var}, hl.Var('{self.w.fresh('u')}')).compute_root()")
            for o in s.loops:
                o.busy = True
        elif kind == 7:
            v, out = self.w.fresh("s"), self.script.funcs[-1].name
            self.line(f"{v} = {s.name}.specialize({out}.output_buffer().{self.w.pick(['width', 'height'])}() {self.w.pick(['>=', '==', '<'])} {self.w.int(1, 9)})")
            special = Stage(v, [Loop(o.var, o.reduction, o.busy) for o in s.loops], s.calls, s.update)
            for _ in range(self.w.int(0, 2)):
                self.step(f, special)
