"""Scripts of random pipelines of doubles that have a derivative; `random_gradients` checks it.

A script uses what `gradient_parts` defines.
"""

from __future__ import annotations

import random
from typing import Any

WIDTH, HEIGHT = 5, 4
BOUNDARIES = ("repeat_edge", "mirror_image", "mirror_interior", "repeat_image", "constant_exterior")


OTHER_FORMS = (  # a, b: doubles; c: a condition; i: an integer
    "hl.pow({a}, hl.f64(2))", "hl.pow({a}, 3) * 0.2", "hl.pow(({a}) - 0.4, hl.f64(1)) * ({b})", "hl.pow(hl.abs({a}) + 0.1, -2) * 0.01", "hl.select({c}, {a}, ({a}) > 0.3, {b}, k)",
    "hl.lerp({a}, {b}, hl.clamp({b}, hl.f64(0), hl.f64(1)))", "hl.lerp({a}, {b}, hl.u8({i} * 40))", "hl.mux({i}, [{a}, {b}])", "hl.atan2({a}, {b})",
    "hl.hypot({a}, {b})", "hl.f64(hl.u8(hl.clamp(({a}) * 40.0 + 100.3, hl.f64(0), hl.f64(255)))) * ({b}) * 0.01", "hl.f64(hl.i16_sat(({a}) * 3.0)) * ({b}) * 0.1",
    "hl.round({a}) * 0.2 + {b}", "hl.ceil({a}) * ({b}) * 0.1", "hl.trunc({a}) + ({b}) * 0.5", "hl.fract({a}) * ({b})", "hl.absd({a}, {b})", "hl.fma({a}, {b}, k)",
    "hl.asin(hl.tanh({a}) * 0.9)", "hl.acos(hl.tanh({a}) * 0.9)", "hl.atan({a})", "hl.sinh(hl.tanh({a}))", "hl.cosh(hl.tanh({a}))", "hl.asinh({a})",
    "hl.acosh(1.1 + hl.abs({a}))", "hl.atanh(hl.tanh({a}) * 0.9)", "hl.tan(hl.tanh({a}))", "wide(store({a}))", "wide(store({a}) * store(0.75))", "hl.likely_if_innermost({a})",
    "hl.with_gradient(({a}) * ({b}), [({a}, {b}), ({b}, {a})])", "hl.with_gradient(hl.tanh({a}), [({a}, 1.0 - hl.tanh({a}) * hl.tanh({a}))]) * ({b})",
    "hl.stop_gradient(hl.select(({a}) > 0.2, hl.f64(1.5), hl.f64(0.5))) * ({a})", "hl.select(({a}) != 0.0, hl.sin({a}) / ({a}), hl.f64(1))", "hl.log(1.0 + hl.exp(-hl.abs({a}))) + hl.max({a}, 0.0)",
    "hl.memoize_tag({a}, {i})", "hl.unsafe_promise_clamped({a}, hl.f64(-1e9), hl.f64(1e9))", "q[2] * ({a})", "p[1, 2] * hl.sin({a}) + q[0]", "({a}) % (1.7 + ({b}) * ({b}))",
    "hl.select((({a}) > 0.0) & (({b}) > 0.0), hl.sqrt({a}) * hl.log({b}), {a})", "hl.strict_float(({a}) / (1.2 + ({b}) * ({b})))", "loop({a})")


class Writer:
    """Writes the lines of one script. `funcs` are (name, dimensions, number of values)."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.funcs: list[tuple[str, int, int]] = []
        self.ranges: dict[str, tuple[int, int]] = {}  # of variables of domains
        self.guarded: list[tuple[str, str, float]] = []  # (Func, Func of what it is of, above which it is used)
        self.narrow: set[str] = set()  # Funcs stored in fewer bits
        self.numbers = 0
        self.seed = seed
        self.inputs()
        for _ in range(count):
            self.func()
        self.loss()

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def fresh(self, base: str) -> str:
        self.numbers += 1
        return f"{base}{self.numbers}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    # -- inputs

    def inputs(self) -> None:
        self.line(f"rng = np.random.default_rng({self.seed})")
        self.line("p, q, k = hl.ImageParam(F64, 2, 'p'), hl.ImageParam(F64, 1, 'q'), hl.Param(F64, 'k', 0.7)")
        self.line("t = hl.ImageParam(hl.Int(32), 1, 't')")
        self.line(f"inputs = {{p: rng.normal(size=({WIDTH}, {HEIGHT})), q: rng.normal(size={WIDTH}), t: rng.integers(-1, {WIDTH + 1}, {WIDTH}).astype(np.int32)}}")
        for name, image, bounds in (("P", "p", f"[(0, {WIDTH}), (0, {HEIGHT})]"), ("Q", "q", f"[(0, {WIDTH})]"), ("T", "t", f"[(0, {WIDTH})]")):
            how = self.pick(*BOUNDARIES) if name != "T" else "repeat_edge"
            outside = f"hl.f64({self.pick(0.0, 1.5)}), " if how == "constant_exterior" else ""
            self.line(f"{name} = hl.BoundaryConditions.{how}({image}, {outside}{bounds})")
        self.funcs += [("P", 2, 1), ("Q", 1, 1)]
        self.line("cubic = hl.extern('double cubic(double v, int k)', source='double cubic(double v, int k) { return v * v * v * k; }')")
        self.line("cubic.gradient(lambda adjoint, result, v, k: (3 * adjoint * v * v * hl.f64(k), None))")
        self.line("bump = hl.extern('double bump(double v)', source='double bump(double v) { return v > 0 ? v / (1 + v * v) : 0.5 * v; }', gradient='auto')")
        self.line("loop = hl.extern('double loop(double v)', source='#include <math.h>\\nstatic double step(double a, int i) { return i % 2 ? sin(a) : a * 0.5 + i; }\\n"
                  "double loop(double v) { double s[3] = {0.1, v, 0}; for (int i = 0; i < 3; i++) { if (v > i) s[i] += step(v, i); else s[2] += v * 0.25; } return s[0] + s[1] - s[2]; }',"
                  " gradient='auto')")
        self.line("ramp = hl.custom_gradient(lambda u, v: hl.max(u, 0.0) * v)")
        self.line("ramp.backward(lambda adjoint, result, u, v: (hl.select(u > 0.0, adjoint * v, hl.f64(0)), adjoint * hl.max(u, 0.0)))")

    # -- indices and conditions

    def index(self, at: list[str], bounded: bool = False, loose: bool = False) -> str:
        """An index that is affine, clamped, resampled or looked up; of a `loose` look-up nothing limits the values."""
        v = self.pick(*at) if at else f"hl.Expr({self.int(0, 3)})"
        kind = self.int(0, 11)
        if kind <= 5:
            e = self.pick(v, f"{v} + {self.int(-2, 2)}", f"{v} - {self.int(1, 2)}")
        elif kind == 6:
            e = self.pick(f"2 * {v} + {self.int(-1, 1)}", f"{self.int(2, 5)} - {v}", f"3 - 2 * {v}")
        elif kind == 7:
            e = self.pick(f"{v} / 2", f"({v} + 1) / 2 - 1", f"{v} / 3", f"{v} % 3", f"({v} * 3 + 1) % 5")
        elif kind == 8 and len(at) > 1:
            a, c = self.random.sample(at, 2)
            e = self.pick(f"{a} + {c}", f"{a} - {c}", f"2 * {a} + {c}", f"2 * {a} - {c} + 1", f"({a} + {c}) / 2", f"{a} / 2 + {c}", f"({a} * 2 + {c}) % 4")
        elif kind == 9:
            return f"hl.clamp(T[{v}], 0, {self.int(2, 4)})"
        elif kind == 10:
            place = f"hl.i32(hl.floor(Q[{v}] * 2.0))"
            return place if loose and self.int(0, 1) else f"hl.clamp({place}, -2, 3)"
        else:
            e = str(self.int(-1, 4))
        return f"hl.clamp({e}, {self.int(-2, 0)}, {self.int(2, 5)})" if bounded or self.int(0, 5) == 0 else e

    def condition(self, at: list[str], depth: int) -> str:
        kind = self.int(0, 4)
        if kind == 0 or not at:
            return f"({self.value(at, depth)}) > {self.pick('0.1', '-0.3', 'k')}" if depth > 0 else "k > 0.5"
        v = self.pick(*at)
        if kind == 1:
            return f"{v} > {self.int(0, 3)}"
        if kind == 2:
            return f"({' + '.join(at)}) % 2 == 0"
        if kind == 3:
            return f"T[{v}] < {self.int(1, 3)}"
        return f"({v} > {self.int(-1, 1)}) & ({v} < {self.int(2, 4)})"

    # -- values

    def read(self, at: list[str]) -> str:
        f, dims, values = self.pick(*self.funcs, *self.funcs[-1:] * 2)
        place = [self.index(at, loose=f in ("P", "Q")) for _ in range(dims)]
        return self.element(f, place, values, self.int(0, values - 1))

    def element(self, f: str, place: list[str], values: int, v: int) -> str:
        """Value v of a Func, as a number of the type all else has."""
        e = f"{f}[{', '.join(place) or '()'}]" + (f"[{v}]" if values > 1 else "")
        return f"wide({e})" if f in self.narrow else e

    def raw(self, v: str) -> str:
        """Elements of images without boundary condition, kept in range by the domain or by a condition."""
        by, row = self.int(-1, 1), self.int(0, HEIGHT - 1)
        i = f"{v} + {by}"
        e = self.pick(f"q[{i}]", f"hl.abs(q[{i}] - p[{i}, {row}])", f"hl.max(q[{i}], p[{i}, {row}])", f"q[{i}] * hl.log(hl.abs(p[{i}, {row}]) + 0.2)")
        low, high = self.ranges.get(v, (-9, 9))
        if low + by >= 0 and high + by < WIDTH:
            return str(e)
        more = f" & (q[{i}] > {self.pick(0.1, -0.3)})" if self.int(0, 2) == 0 else ""
        return f"hl.select(({i} >= 0) & ({i} < {WIDTH}){more}, {e}, {self.pick('k', 'hl.f64(0.2)')})"

    def singular(self, at: list[str], other: str) -> str:
        """What another Func has at a place, where it is finite."""
        f, of, low = self.pick(*self.guarded)
        place = ", ".join(self.index(at) for _ in "xy")
        return f"hl.select({of}[{place}] > {low}, {f}[{place}], {other})"

    def value(self, at: list[str], depth: int) -> str:
        """An expression of doubles, of moderate size."""
        if depth <= 0 and at and self.int(0, 7) == 0:
            return self.raw(self.pick(*at))
        if depth <= 0:
            return self.pick(*(self.read(at) for _ in range(6)), "k", f"hl.f64({self.pick(0.5, -1.25, 2.0)})", *([f"hl.f64({self.pick(*at)} + 1) / 4"] if at else []))
        a = self.value(at, depth - 1)
        b = self.value(at, self.int(0, depth - 1))
        if self.guarded and self.int(0, 4) == 0:
            return self.singular(at, b)
        form = self.pick(
            "({a}) + ({b})", "({a}) - ({b})", "({a}) * hl.tanh({b})", "({a}) * ({b}) * 0.5", "({a}) / (1.5 + ({b}) * ({b}))", "hl.max({a}, {b})", "hl.min({a}, {b})",
            "hl.sin({a})", "hl.cos({a}) * ({b})", "hl.tanh({a})", "hl.exp(hl.tanh({a}))", "hl.sqrt(({a}) * ({a}) + 0.1)", "hl.abs({a})", "-({a})",
            "hl.select({c}, {a}, {b})", "hl.select(({a}) > 0.0, hl.sqrt({a}), ({a}) * 0.25)", "hl.select(({a}) > 0.0, hl.log({a}), {b})",
            "hl.select(hl.abs({a}) > 0.2, 1.0 / ({a}), {b})", "hl.pow(hl.abs({a}) + 0.5, hl.tanh({b}))", "hl.atan2({a}, ({b}) * ({b}) + 0.3)", "hl.hypot({a}, ({b}) + 0.1)",
            "hl.floor(({a}) * 2.0) * ({b}) * 0.1", "hl.lerp({a}, {b}, hl.f64(0.3))", "hl.mux({i} % 3, [{a}, {b}, hl.f64(0.5)])", "hl.strict_float(({a}) * 1.25)",
            "hl.clamp({a}, hl.f64(-0.8), hl.f64(1.2))", "hl.stop_gradient(hl.f64({i})) * ({a}) * 0.2", "({a}) % hl.f64(1.7)", "hl.likely({a})", "({a}) ** 3 * 0.1",
            "cubic({a}, 2) * 0.1", "bump({a})", "ramp({a}, {b})", "hl.with_gradient(hl.sin({a}), [({a}, hl.cos({a}))])",
            "hl.f64(hl.i32(hl.clamp({a}, hl.f64(-9), hl.f64(9)) * 2.0)) * ({b}) * 0.1",
            *OTHER_FORMS)
        return str(form.format(a=a, b=b, c=self.condition(at, depth - 1), i=self.pick(*at) if at else "T[2]"))

    def reduction(self, at: list[str]) -> str:
        """An inline reduction."""
        r, extent = self.fresh("r"), self.int(2, 4)
        self.ranges[f"{r}.x"] = 0, extent - 1
        self.line(f"{r} = hl.RDom([(0, {extent})])")
        if self.int(0, 3) == 0:
            self.line(f"{r}.where({self.condition([f'{r}.x'], 0)})")
        inside = f"{self.value([*at, f'{r}.x'], 1)} + hl.f64({r}.x) * 0.1"
        kind = self.pick("sum", "maximum", "minimum", "product", "argmax", "argmin")
        if not kind.startswith("arg"):
            return f"hl.{kind}({inside})"
        name = self.fresh("best")
        args = ", ".join(at)
        self.line(f"{name} = hl.Func('{name}')")
        self.line(f"{name}[{args or '()'}] = hl.{kind}({inside})")
        return f"{name}[{args or '()'}][1] * Q[hl.clamp({name}[{args or '()'}][0], 0, 4)]"

    # -- Funcs

    def singular_pair(self) -> None:
        """A Func, and one that is infinite or NaN for some of its values."""
        of, f, low = self.fresh("w"), self.fresh("g"), self.pick(0.0, 0.2)
        self.line(f"{of}, {f} = hl.Func('{of}'), hl.Func('{f}')")
        self.line(f"{of}[x, y] = {self.value(['x', 'y'], 1)}")
        e = self.pick("hl.sqrt({w})", "hl.log({w})", "1.0 / hl.max({w}, hl.f64(0))", "hl.pow({w}, hl.f64(0.7)) * {v}", "{v} * hl.log({w})")
        self.line(f"{f}[x, y] = {e.format(w=f'{of}[x, y]', v=self.read(['x', 'y']))}")
        self.guarded.append((f, of, low))

    def func(self) -> None:
        if self.int(0, 3) == 0:
            self.singular_pair()
        if self.int(0, 2) == 0 and len(self.funcs) > 2:
            self.other_func()
        name, dims = self.fresh("f"), self.pick(1, 2, 2, 2, 0)
        values = self.pick(1, 1, 1, 2)
        at = ["x", "y"][:dims]
        first = [self.reduction(at) if self.int(0, 4) == 0 else self.value(at, 2) for _ in range(values)]
        if self.int(0, 5) == 0:
            self.narrow.add(name)
            first = [f"store({e})" for e in first]
        self.line(f"{name} = hl.Func('{name}')")
        self.line(f"{name}[{', '.join(at) or '()'}] = {self.tuple(first)}")
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            self.update(name, dims, values)
        if self.int(0, 4) == 0:
            self.line(f"{name}.compute_root()")
        self.funcs.append((name, dims, values))

    def plane(self) -> str:
        """A new Func of (x, y) and one value."""
        name = self.fresh("h")
        self.line(f"{name} = hl.Func('{name}')")
        self.line(f"{name}[x, y] = {self.value(['x', 'y'], 1)}")
        return name

    def other_func(self) -> None:
        """A Func that is more than its definitions: of a rule of its own, an extern stage, another's boundary condition, a search by hand."""
        name, kind = self.fresh("o"), self.int(0, 6)
        if kind == 0:
            one, pair = name, self.fresh("o")
            self.line(f"{one}, {pair} = mixed({self.plane()}, {self.plane()})")
            self.funcs.append((pair, 2, 2))
        elif kind == 1:
            self.line(f"{name} = {self.pick('bent', 'stage_bend')}({self.plane()}, {self.pick('k', 'k', 'k * k')})")
        elif kind == 2:
            self.line(f"{name} = stage_smear({self.plane()})")
        elif kind == 3:
            self.line(f"{name} = stage_split({self.plane()})")
            self.funcs.append((name, 2, 2))
            return
        elif kind == 4:
            known = [f for f in self.funcs if f[1] > 0 and f[0] not in self.narrow and f[0] not in "PQ"]
            f, dims, values = self.pick(*known) if known else (self.plane(), 2, 1)
            how = self.pick(*BOUNDARIES)
            outside = ("hl.f64(0.5), " if values == 1 else f"hl.Tuple([hl.f64(0.5)] * {values}), ") if how == "constant_exterior" else ""
            self.line(f"{name} = hl.BoundaryConditions.{how}({f}, {outside}[(0, {WIDTH}), (0, {HEIGHT})][:{dims}])")
            self.funcs.append((name, dims, values))
            return
        else:
            self.search(name, kind == 5)
        self.funcs.append((name, 2, 1))

    def search(self, name: str, extremum: bool) -> None:
        """The best of some values with its place, or a sum beside a scan, in one Tuple; read by `name`."""
        found, r = self.fresh("found"), self.fresh("r")
        self.line(f"{r}, {found} = hl.RDom([(0, {self.int(2, 4)})]), hl.Func('{found}')")
        at = f"{found}[x, y]"
        e = self.value(["x", "y", f"{r}.x"], 1)
        if extremum:
            self.line(f"{at} = ({self.value(['x', 'y'], 0)}, hl.i32(-1))")
            self.line(f"{at} = hl.select(({e}) {self.pick('>', '<', '>=')} {at}[0], ({e}, {r}.x), ({at}[0], {at}[1]))")
            self.line(f"{name} = hl.Func('{name}')")
            self.line(f"{name}[x, y] = {at}[0] * Q[hl.clamp({at}[1], 0, 4)] + hl.select({at}[1] < 0, k, hl.f64(0))")
        else:
            self.line(f"{at} = ({self.value(['x', 'y'], 0)}, hl.f64(1))")
            self.line(f"{at} = ({at}[0] + ({e}), {at}[1] * 0.5 + {at}[0] * hl.tanh({e}))" if self.int(0, 1) else
                      f"{at} = ({at}[1] * 0.5 + ({e}), hl.sin({at}[0]))")
            self.line(f"{name} = hl.Func('{name}')")
            self.line(f"{name}[x, y] = {at}[0] / (2.0 + {at}[1] * {at}[1])")

    def tuple(self, values: list[str]) -> str:
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def old(self, name: str, place: list[str], values: int, v: int) -> str:
        return self.element(name, place, values, v)

    def update(self, name: str, dims: int, values: int) -> None:
        """One update, of any of the kinds that have their own way back."""
        at, place = ["x", "y"][:dims], ["x", "y"][:dims]
        over: list[str] = []
        if self.int(0, 3) > 0 or dims == 0:
            r = self.fresh("r")
            extents = [self.int(2, 4) for _ in range(self.pick(1, 1, 2))]
            lows = [self.pick(0, 1) for _ in extents]
            self.line(f"{r} = hl.RDom([{', '.join(f'({low}, {e})' for low, e in zip(lows, extents))}])")
            over = [f"{r}.{'xy'[i]}" for i in range(len(extents))]
            self.ranges.update({v: (low, low + e - 1) for v, low, e in zip(over, lows, extents)})
            if self.int(0, 3) == 0:
                self.line(f"{r}.where({self.condition(over, 0)})")
        for d in range(dims):
            if self.int(0, 2) > 0:
                place[d] = self.place(over)
        free = [v for v in at if v in place] + over
        kind = self.int(0, 8)
        if kind == 8 and self.int(0, 1):
            kind = 3
        new = []
        for v in range(values):
            old = self.old(name, place, values, v)
            e = self.value(free, 1)
            new.append(self.updated(kind, name, place, values, old, e, free))
        new = [f"store({e})" for e in new] if name in self.narrow else new
        self.line(f"{name}[{', '.join(place) or '()'}] = {self.tuple(new)}")

    def place(self, over: list[str]) -> str:
        v = self.pick(*over) if over else f"hl.Expr({self.int(-1, 4)})"
        return str(self.pick(v, v, v, f"{v} + 1", f"4 - {v}", f"2 * {v}", f"{v} / 2", f"{v} % 2", f"hl.clamp(T[{v}], 0, 4)", str(self.int(0, 3))))

    def updated(self, kind: int, name: str, place: list[str], values: int, old: str, e: str, free: list[str]) -> str:
        if kind <= 1:
            return f"{old} + ({e})"
        if kind == 2:
            return str(self.pick(f"hl.max({old}, {e})", f"hl.min({old}, {e})", f"hl.select(({e}) > {old}, {e}, {old})", f"hl.select({self.condition(free, 0)}, {e}, {old})"))
        if kind == 3:
            return e
        if kind == 4:
            return str(self.pick(f"{old} * (1.0 + 0.3 * hl.tanh({e}))", f"hl.sin({old}) + ({e}) * 0.5", f"{old} * {old} * 0.2 + ({e})", f"hl.tanh({old}) * ({e})"))
        other = list(place)
        held = [d for d, e in enumerate(place) if e != "xy"[d]]
        if held:
            d = self.pick(*held)
            other[d] = self.pick(f"{other[d]} - 1", f"{other[d]} - 1", f"{other[d]} + 1", f"3 - {other[d]}", f"hl.clamp(T[{other[d]}], 0, 3)", "2")
        read = self.old(name, other, values, self.int(0, values - 1))
        if kind == 5:
            return f"{read} * 0.5 + ({e})"
        if kind == 6:
            return f"{old} + {read} * hl.tanh({e})"
        if kind == 7:
            return str(self.pick(f"hl.max({old}, {read})", f"{read}", f"hl.select({self.condition(free, 0)}, {read}, {old} * 0.5)", f"hl.sin({read}) * {old} + ({e})"))
        return f"hl.select({old} > 0.1, {read} * {old}, {e})"

    def loss(self) -> None:
        name, dims, values = self.funcs[-1]
        self.line("loss = hl.Func('loss')")
        self.line("loss[()] = hl.f64(0)")
        box = [("(0, 5)", "(-1, 5)")[self.int(0, 1)], "(0, 3)"][:dims] or ["(0, 1)"]
        self.line(f"s = hl.RDom([{', '.join(box)}])")
        at = ["s.x", "s.y"][:dims]
        weight = " + ".join(f"hl.f64({v}) * {0.37 + i}" for i, v in enumerate(at)) or "hl.f64(0)"
        term = " + ".join(f"{self.element(name, at, values, v)} * {1 + 0.6 * v}" for v in range(values))
        extra = self.read(["s.x"]) if self.int(0, 2) == 0 else "hl.f64(0)"
        self.line(f"loss[()] += ({term}) * (1.0 + {weight}) + {extra} + (P[0, 1] * Q[2] * k) ** 2 * 0.01 + (P[0, 1] + Q[2] + k) * 0.01")
