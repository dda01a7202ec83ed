"""Random pipelines of doubles whose derivatives are checked: reverse mode against central differences, and against forward mode.

    python tests/autodiff/random_gradients.py FIRST COUNT [--compiled] [--second] [--eager]

prints each failing seed with its script, in as few Funcs as still fail. A script defines `loss`, a Func without dimensions, from the images and Params in
`inputs`. Everything runs in the interpreter of the algorithm; with --compiled adjoints are compiled too and must be the same. --second checks the
derivative of the sum of squares of the first derivative.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from gradient_checks import run  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.autodiff import blocks, packed, scatters  # noqa: E402

WIDTH, HEIGHT = 5, 4
BOUNDARIES = ("repeat_edge", "mirror_image", "mirror_interior", "repeat_image", "constant_exterior")


class Writer:
    """Writes the lines of one script. `funcs` are (name, dimensions, number of values)."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.funcs: list[tuple[str, int, int]] = []
        self.ranges: dict[str, tuple[int, int]] = {}  # of variables of domains
        self.guarded: list[tuple[str, str, float]] = []  # (Func, Func of what it is of, above which it is used)
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
            e = self.pick(" + ".join(at[:2]), f"{at[0]} - {at[1]}")
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
        suffix = f"[{self.int(0, values - 1)}]" if values > 1 else ""
        place = ", ".join(self.index(at, loose=f in ("P", "Q")) for _ in range(dims))
        return f"{f}[{place or '()'}]{suffix}"

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
            "hl.f64(hl.i32(hl.clamp({a}, hl.f64(-9), hl.f64(9)) * 2.0)) * ({b}) * 0.1")
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
        name, dims = self.fresh("f"), self.pick(1, 2, 2, 2, 0)
        values = self.pick(1, 1, 1, 2)
        at = ["x", "y"][:dims]
        first = [self.reduction(at) if self.int(0, 4) == 0 else self.value(at, 2) for _ in range(values)]
        self.line(f"{name} = hl.Func('{name}')")
        self.line(f"{name}[{', '.join(at) or '()'}] = {self.tuple(first)}")
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            self.update(name, dims, values)
        if self.int(0, 4) == 0:
            self.line(f"{name}.compute_root()")
        self.funcs.append((name, dims, values))

    def tuple(self, values: list[str]) -> str:
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def old(self, name: str, place: list[str], values: int, v: int) -> str:
        return f"{name}[{', '.join(place) or '()'}]" + (f"[{v}]" if values > 1 else "")

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
        term = " + ".join(f"{name}[{', '.join(at) or '()'}]{f'[{v}]' if values > 1 else ''} * {1 + 0.6 * v}" for v in range(values))
        extra = self.read(["s.x"]) if self.int(0, 2) == 0 else "hl.f64(0)"
        self.line(f"loss[()] += ({term}) * (1.0 + {weight}) + {extra} + (P[0, 1] * Q[2] * k) ** 2 * 0.01 + (P[0, 1] + Q[2] + k) * 0.01")


def script(seed: int, count: int = 4) -> list[str]:
    """The lines of a random pipeline."""
    return Writer(seed, count).lines


def built(lines: list[str]) -> dict[str, Any]:
    """What a script defines."""
    names: dict[str, Any] = {"hl": hl, "np": np, "F64": hl.Float(64), "x": hl.Var("x"), "y": hl.Var("y")}
    exec("\n".join(lines), names)
    return names


def differences(loss: hl.Func, data: dict[str, Any], name: str, step: float) -> Any:
    """Central differences for an image or (a number in `data`) a Param."""
    value = np.asarray(data[name], np.float64)
    out = np.zeros(value.shape)
    for i in np.ndindex(value.shape):
        ends = []
        for sign in (step, -step):
            moved = value.copy()
            moved[i] += sign
            ends.append(float(evaluate(loss, (), {**data, name: moved})))
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out


def evaluate(f: hl.Func, shape: tuple[int, ...], data: dict[str, Any]) -> Any:
    """A Func in the interpreter; "k" is the Param, which `data` holds as an array without dimensions."""
    PARAM[0].set(float(data["k"]))
    return run(f, shape, {name: v for name, v in data.items() if name != "k"})


PARAM: list[Any] = [None]


def check(lines: list[str], compiled: bool = False, second: bool = False) -> None:
    """Raises AssertionError when a derivative of the script's loss is wrong; HalideError when there is none."""
    names = built(lines)
    PARAM[0] = names["k"]
    data = {p.name(): v for p, v in names["inputs"].items()} | {"k": np.array(0.7)}
    loss, wrt = names["loss"], {names["p"].name(): names["p"], names["q"].name(): names["q"], "k": names["k"]}
    with np.errstate(all="ignore"):
        d = hl.propagate_adjoints(loss)
        if second:
            loss = squares(d, names)
            d = hl.propagate_adjoints(loss)
        if not np.isfinite(evaluate(loss, (), data)):
            return
        for name, given in wrt.items():
            got = evaluate(d[given], data[name].shape, data)
            assert np.isfinite(got).all(), f"d{name} is {got}"
            move = np.cos(np.arange(data[name].size) * 1.7).reshape(data[name].shape)
            direction: Any = hl.ImageParam(hl.Float(64), data[name].ndim, "direction") if data[name].ndim else float(move)
            held = {**data, direction.name(): move} if data[name].ndim else data
            forward = float(evaluate(hl.propagate_tangents(loss, [(given, direction)]), (), held))
            size = float(np.abs(got * move).sum()) + abs(forward)
            assert abs(forward - float((got * move).sum())) <= 1e-8 * size + 1e-10, f"d{name}: forward mode {forward}, reverse mode {(got * move).sum()}"
            if not any(along(loss, data, name, got, move, step) for step in (1e-6, 1e-5, 1e-7, 1e-4)):
                raise AssertionError(f"d{name} is\n{got}\nby differences\n{differences(loss, data, name, 1e-6)}")
            for loops in (True, False) if compiled else ():
                check_compiled(hl.schedule_gradients(d, loops)[given], names, data, got)


def along(loss: hl.Func, data: dict[str, Any], name: str, got: Any, move: Any, step: float) -> bool:
    """Whether the difference in a direction is the derivative's; a step may hit a kink."""
    ends = [float(evaluate(loss, (), {**data, name: data[name] + sign * move})) for sign in (step, -step)]
    size = float(np.abs(got * move).sum()) + 1e-3
    return bool(abs((ends[0] - ends[1]) / (2 * step) - float((got * move).sum())) <= 1e-4 * size + 1e-10 * abs(ends[0]) / step)


def squares(d: hl.Derivative, names: dict[str, Any]) -> hl.Func:
    """The sum of the squares of a derivative, times other numbers."""
    out = hl.Func("squares")
    r = hl.RDom([(0, WIDTH), (0, HEIGHT)])
    a, b = d[names["p"]], d[names["q"]]
    out[()] = hl.f64(0)
    out[()] += a[r.x, r.y] * a[r.x, r.y] * (1.0 + hl.f64(r.x) * 0.3) + b[r.x] * b[r.x]
    return out


def check_compiled(f: hl.Func, names: dict[str, Any], data: dict[str, Any], expected: Any) -> None:
    for name in ("p", "q", "t"):
        names[name].set(hl.Buffer(np.ascontiguousarray(data[names[name].name()].T)))
    names["k"].set(0.7)
    got = np.array(f.realize(list(expected.shape))).T
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11 * max(float(np.abs(expected).max(initial=0)), 1))


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """What pays for long sums and many terms only is done for the small ones of random pipelines, too."""
    low: list[tuple[Any, str, int]] = [
        (packed, "_USES", 1), (blocks, "LANES", 2), (blocks, "_SOME", 2), (blocks, "_MANY", 4), (blocks, "_BLOCKS", 2), (scatters, "_BLOCKS", 2),
        (scatters, "_TERMS", 0)]
    before = [getattr(module, name) for module, name, _ in low]
    try:
        for module, name, value in low:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(low, before, strict=True):
            setattr(module, name, value)


def failure(lines: list[str], compiled: bool, second: bool) -> str:
    """How a script fails, empty if it does not."""
    try:
        check(lines, compiled, second)
    except Exception:  # noqa: BLE001  whatever it is, it is the finding
        return traceback.format_exc()[-3000:]
    return ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--second", action="store_true")
    parser.add_argument("--eager", action="store_true", help="sums in blocks, packed copies and scatters in blocks of the small sums, too")
    parser.add_argument("--funcs", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # floats that are rounded
    wrong = 0
    for seed in range(args.first, args.first + args.count):
        smallest, found = [], ""
        for count in range(args.funcs, 0, -1):
            with eager() if args.eager else contextlib.nullcontext():
                text = failure(script(seed, count), args.compiled, args.second)
            if text:
                smallest, found = script(seed, count), text
        if found:
            wrong += 1
            print(f"==== seed {seed}\n" + "\n".join(smallest) + f"\n---- {found}", flush=True)
    print(f"{args.count} seeds, {wrong} failures")


if __name__ == "__main__":
    main()
