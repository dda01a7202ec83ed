"""Random well-typed expressions of the whole language as scripts; the interpreter of the algorithm says what they mean.

What the language leaves open is not made: overflow of 32- and 64-bit signed integers, conversions of floats out of range, NaN and products
next to sums outside strict_float (which compilers may fuse). Integers are compared bit for bit, so are floats; math functions stand at the
root, where their error bound can be applied.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import halide_py as hl
from halide_py.reference import algorithm

INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
WIDTHS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
SIZE = 67
ULPS = {"exp": 1.1, "log": 0.9, "sin": 1.6, "cos": 1.6, "tan": 3.1, "asin": 2.5, "acos": 1.3, "atan": 2, "sinh": 2.5, "cosh": 1.6, "tanh": 2.7, "asinh": 2,
        "acosh": 2.7, "atanh": 2, "sqrt": 0.5, "floor": 0.5, "ceil": 0.5, "round": 0.5, "trunc": 0.5, "erf": 1.4, "pow": 1.1, "atan2": 2, "hypot": 1.3}
# Approximations, of float only: the arguments where they are stated to be right, and the number of arguments.
FAST = {"fast_exp": ("-80", "80"), "fast_log": ("0.001", "1e6"), "fast_sin": ("-100", "100"), "fast_cos": ("-100", "100"), "fast_inverse": ("0.001", "1e6"),
        "fast_inverse_sqrt": ("0.001", "1e6"), "fast_pow": ("0.01", "100")}
RANDOM = {"u32": "random_uint", "i32": "random_int", "f32": "random_float"}
TWO = ("pow", "atan2", "hypot", "fast_pow")
DTYPES = {**{t: np.dtype({"i": "int", "u": "uint"}[t[0]] + t[1:]) for t in INTS}, **{t: np.dtype("float" + t[1:]) for t in FLOATS if t != "bf16"},
          "bool": np.dtype(np.bool_)}  # of what arrays hold


@dataclass(frozen=True)
class Tree:
    """A piece of script of one type: `text` with its children in the place of {0}, {1}, ..."""

    type: str
    text: str
    children: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.children)

    def shrunk(self) -> Iterator[Tree]:
        """Simpler trees of the same type: a part of it, or the same with a simpler child."""
        stack = list(self.children)
        while stack:
            part = stack.pop(0)
            if part.type == self.type:
                yield part
            stack += part.children
        if self.children:
            yield Tree(self.type, constant_text(self.type, 1))
        for i, child in enumerate(self.children):
            for simpler in child.shrunk():
                yield Tree(self.type, self.text, (*self.children[:i], simpler, *self.children[i + 1:]))


def bits(t: str) -> int:
    return int(t[1:])


def hl_type(t: str) -> str:
    return {"bool": "hl.Bool()", "bf16": "hl.BFloat(16)"}.get(t) or f"hl.{ {'i': 'Int', 'u': 'UInt', 'f': 'Float'}[t[0]] }({t[1:]})"


def constant_text(t: str, value: int | float) -> str:
    return f"hl.cast({hl_type(t)}, {value})" if t in ("bool", "f16", "bf16") else f"hl.{t}({value})"


class Maker:
    """Draws expressions. `strict` allows float arithmetic that only strict_float makes exact."""

    def __init__(self, rng: random.Random, strict: bool) -> None:
        self.rng, self.strict = rng, strict

    def make(self, t: str, depth: int) -> Tree:
        if depth <= 0 or self.rng.random() < 0.08:
            return self.leaf(t)
        if self.rng.random() < 0.04:
            return self.marked(t, depth - 1)
        rules = self.boolean if t == "bool" else self.floating if t in FLOATS else self.integer
        return rules(t, depth - 1)

    def marked(self, t: str, d: int) -> Tree:
        """A value under something that does not change it, but how it is compiled."""
        low, high = ("hl.f32(-1e30)", "hl.f32(1e30)") if t == "f32" else (f"{hl_type(t)}.min()", f"{hl_type(t)}.max()")
        form = self.rng.choice(("hl.likely({0})", "hl.likely_if_innermost({0})", "hl.memoize_tag({0}, x)", "hl.stop_gradient({0})", "hl.require(x > -1, {0}, 'never')",
                                "hl.print_when(x < 0, {0}, 'never')", *([f"hl.unsafe_promise_clamped({{0}}, {low}, {high})"] if t in INTS or t == "f32" else [])))
        return self.of(t, form, self.make(t, d))

    def leaf(self, t: str) -> Tree:
        if t == "bf16":
            return self.of(t, "hl.cast(hl.BFloat(16), {0})", self.leaf("f32"))
        pick = self.rng.random()
        if t in RANDOM and pick < 0.04:
            return Tree(t, f"hl.{RANDOM[t]}({self.rng.randint(0, 9)})")
        if t == "i32" and pick < 0.1:
            return Tree(t, "x")
        if pick < 0.8:
            return Tree(t, f"{t}_in[x + {self.rng.randint(0, 5)}]" if pick < 0.7 else f"{t}_in[hl.i32({self.rng.randint(0, 9)})]")
        if t == "bool":
            return Tree(t, constant_text(t, self.rng.randint(0, 1)))
        if t in FLOATS:
            return Tree(t, constant_text(t, self.rng.choice([0.0, 1.0, -2.5, 3.0, 0.5])))
        info = np.iinfo(DTYPES[t])
        return Tree(t, constant_text(t, self.rng.choice([info.min, info.max, 0, 1, 3, 7, 10, self.rng.randint(info.min, info.max)])))

    def of(self, t: str, text: str, *children: Tree) -> Tree:
        return Tree(t, text, children)

    def boolean(self, t: str, d: int) -> Tree:
        pick = self.rng.random()
        if pick < 0.55:
            s = self.rng.choice(INTS + FLOATS)
            return self.of(t, f"({{0}} {self.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {{1}})", self.make(s, d), self.make(s, d))
        if pick < 0.8:
            return self.of(t, f"({{0}} {self.rng.choice('&|^')} {{1}})", self.make(t, d), self.make(t, d))
        if pick < 0.9:
            return self.of(t, "(~{0})", self.make(t, d))
        if pick < 0.95:
            return self.of(t, "hl.cast(hl.Bool(), {0})", self.make(self.rng.choice(INTS), d))
        return self.of(t, f"hl.{self.rng.choice(['is_nan', 'is_inf', 'is_finite'])}({{0}})", self.make(self.rng.choice(FLOATS), d))

    def floating(self, t: str, d: int) -> Tree:
        pick = self.rng.random()
        make = lambda: self.make(t, d)  # noqa: E731
        if pick < 0.3:
            return self.of(t, f"({{0}} {self.rng.choice('+-*/' if self.strict else '+-')} {{1}})", make(), make())
        if pick < 0.4:
            return self.of(t, f"hl.{self.rng.choice(['min', 'max'])}({{0}}, {{1}})", make(), make())
        if pick < 0.5:
            return self.of(t, "hl.select({0}, {1}, {2})", self.make("bool", d), make(), make())
        if pick < 0.6:
            name = self.rng.choice(["abs", "floor", "ceil", "round", "trunc", "likely"])
            return self.of(t, self.own(t, f"hl.{name}({{0}})"), make())
        if pick < 0.65:
            return self.of(t, "(-{0})", make())
        if pick < 0.8:
            source = self.rng.choice([*INTS, *FLOATS, "bool"])
            return self.of(t, f"hl.cast({hl_type(t)}, {{0}})", self.make(source, d))
        if pick < 0.85 and t == "f32":
            return self.of(t, "hl.mux({0} % 3, [{1}, {2}, {3}])", self.make("i32", d), make(), make(), make())
        if pick < 0.9 and self.strict:
            return self.of(t, self.own(t, "hl.sqrt(hl.abs({0}))"), make())
        return self.of(t, "({0} * {1})", self.leaf(t), Tree(t, constant_text(t, self.rng.choice([2.0, -1.0, 0.5]))))

    @staticmethod
    def own(t: str, text: str) -> str:
        """A math function's text as a value of `t`: those of bfloat16 give floats."""
        return f"hl.cast(hl.BFloat(16), {text})" if t == "bf16" else text

    def integer(self, t: str, d: int) -> Tree:
        return self.rng.choice((self.arithmetic, self.arithmetic, self.choice, self.conversion, self.bitwise, self.fixed_point))(t, d)

    def narrow(self, t: str, d: int) -> Tree:
        """A value whose sums and products with another one do not overflow where that is undefined."""
        if t in ("i32", "i64"):
            return self.of(t, f"hl.{t}({{0}})", self.make({"i32": self.rng.choice(["i8", "u8", "i16"]), "i64": self.rng.choice(["i16", "u16", "i32", "u8"])}[t], d))
        return self.make(t, d)

    def arithmetic(self, t: str, d: int) -> Tree:
        pick = self.rng.random()
        if pick < 0.55:
            return self.of(t, f"({{0}} {self.rng.choice('+-*')} {{1}})", self.narrow(t, d), self.narrow(t, d))
        if pick < 0.6:
            return self.of(t, "(-{0})", self.narrow(t, d))
        divisor = self.narrow(t, d) if self.rng.random() < 0.5 else Tree(t, constant_text(t, self.rng.choice([0, 1, 2, 3, 7, 8, 10, 100])))
        if pick < 0.9:
            return self.of(t, f"({{0}} {self.rng.choice(['//', '%', '/'])} {{1}})", self.narrow(t, d), divisor)
        return self.of(t, f"hl.{self.rng.choice(['div', 'mod'])}_round_to_zero({{0}}, {{1}})", self.narrow(t, d), divisor)

    def choice(self, t: str, d: int) -> Tree:
        pick = self.rng.random()
        if pick < 0.35:
            return self.of(t, f"hl.{self.rng.choice(['min', 'max'])}({{0}}, {{1}})", self.make(t, d), self.make(t, d))
        if pick < 0.7:
            return self.of(t, "hl.select({0}, {1}, {2})", self.make("bool", d), self.make(t, d), self.make(t, d))
        if pick < 0.85:
            return self.of(t, "hl.clamp({0}, {1}, {2})", self.make(t, d), self.make(t, d), self.make(t, d))
        return self.of(t, "hl.mux({0}, [{1}, {2}, {3}])", self.make(self.rng.choice(["i32", "u8"]), d), *(self.make(t, d) for _ in range(3)))

    def conversion(self, t: str, d: int) -> Tree:
        pick, source = self.rng.random(), self.rng.choice(INTS)
        if pick < 0.5:
            return self.of(t, f"hl.{t}({{0}})", self.make(self.rng.choice([*INTS, "bool"]), d))
        if pick < 0.75:
            return self.of(t, f"hl.{t}_sat({{0}})", self.make(source, d))
        if pick < 0.85:
            other = ("u" if t[0] == "i" else "i") + t[1:]
            return self.of(t, f"hl.reinterpret({hl_type(t)}, {{0}})", self.make(other, d))
        f, low = self.rng.choice(("f32", "f64")), -100 if t[0] == "i" else 0
        value = self.make(f, d)
        return self.of(t, f"hl.cast({hl_type(t)}, hl.clamp(hl.select(hl.is_finite({{0}}), {{0}}, {constant_text(f, 1)}), {low}, 100))", value)

    def bitwise(self, t: str, d: int) -> Tree:
        pick = self.rng.random()
        if pick < 0.4:
            return self.of(t, f"({{0}} {self.rng.choice('&|^')} {{1}})", self.make(t, d), self.make(t, d))
        if pick < 0.5:
            return self.of(t, "(~{0})", self.make(t, d))
        if pick < 0.65:
            name = self.rng.choice(["popcount", "count_leading_zeros", "count_trailing_zeros"])
            return self.of(t, f"hl.{name}({{0}})", self.make(t, d))
        if pick < 0.72 and bits(t) >= 16:
            half = t[0] + str(bits(t) // 2)
            return self.of(t, "hl.concat_bits([{0}, {1}])", self.make(half, d), self.make(half, d))
        if pick < 0.8 and bits(t) < 64:
            wide = self.rng.choice("iu") + str(bits(t) * 2)
            return self.of(t, f"hl.extract_bits({hl_type(t)}, {{0}}, {self.rng.randint(0, bits(wide) - 1)})", self.make(wide, d))
        amount = Tree(t, str(self.rng.randint(0, bits(t) - 1))) if self.rng.random() < 0.4 else self.of(t, f"({{0}} & {bits(t) - 1})", self.make("u" + t[1:], d))
        if self.rng.random() < 0.5:
            return self.of(t, "({0} >> {1})", self.make(t, d), amount)
        if t in ("i32", "i64"):
            return self.of(t, "({0} << ({1} & 7))", self.narrow(t, d), self.make("u" + t[1:], d))
        return self.of(t, "({0} << {1})", self.make(t, d), amount)

    def fixed_point(self, t: str, d: int) -> Tree:
        half, make = t[0] + str(bits(t) // 2), lambda: self.make(t, d)
        name = self.rng.choice(["halving_add", "halving_sub", "rounding_halving_add", "saturating_add", "saturating_sub", "absd", "abs", "widening", "widen_right",
                                "widening_shift", "rounding_shift", "mul_shift_right", "lerp"])
        if name == "absd":
            return self.of(t, "hl.absd({0}, {1})", make(), make()) if t[0] == "u" else self.of(t, f"hl.{t}(hl.absd({{0}}, {{1}}))", make(), make())
        if name == "abs":
            return self.of(t, f"hl.{t}(hl.abs({{0}}))", self.make("i" + t[1:], d))
        if name in ("widening", "widen_right", "widening_shift") and bits(t) >= 16:
            if name == "widening_shift":
                return self.of(t, f"hl.widening_shift_{self.rng.choice(['left', 'right'])}({{0}}, {{1}} & {bits(half) - 1})", self.make(half, d),
                               self.make("u" + half[1:], d))
            if name == "widening":
                operand = self.rng.choice("iu") + half[1:] if t[0] == "i" else half
                op = self.rng.choice(["add", "mul"] if operand[0] == t[0] else ["sub"]) if t[0] == "i" else self.rng.choice(["add", "mul"])
                return self.of(t, f"hl.widening_{op}({{0}}, {{1}})", self.make(operand, d), self.make(operand, d))
            return self.of(t, f"hl.widen_right_{self.rng.choice(['add', 'sub', 'mul'])}({{0}}, {{1}})", self.narrow(t, d), self.make(half, d))
        if name == "rounding_shift" and t not in ("i32", "i64"):
            way = self.rng.choice(["left", "right"])
            return self.of(t, f"hl.rounding_shift_{way}({{0}}, {{1}} & {bits(t) - 1})", make(), self.make("u" + t[1:], d))
        if name == "mul_shift_right":
            round_ = self.rng.choice(["", "rounding_"])
            return self.of(t, f"hl.{round_}mul_shift_right({{0}}, {{1}}, {self.rng.choice([1, bits(t) // 2, bits(t) - 1])})", make(), make())
        if name == "lerp" and bits(t) <= 32:
            return self.of(t, "hl.lerp({0}, {1}, {2})", make(), make(), self.make("u" + t[1:], d))
        name = name if name.startswith(("halving", "rounding_halving", "saturating")) else "saturating_add"
        return self.of(t, f"hl.{name}({{0}}, {{1}})", make(), make())


class AnyScript(Protocol):
    """What can be built, run, printed and made smaller."""

    @property
    def seed(self) -> int: ...

    @property
    def math(self) -> tuple[str, ...]:
        """The math function at the root of each value, or ""."""

    def definition(self) -> str:
        """The lines that define and schedule a Func `f` of one dimension, from buffers u8_in, ..."""

    def text(self) -> str:
        """A script that stands alone."""

    def shrunk(self) -> Iterator[AnyScript]:
        """Simpler scripts."""


@dataclass(frozen=True)
class Script:
    """Expressions of one Func, and how it is vectorized."""

    trees: tuple[Tree, ...]
    math: tuple[str, ...]  # the function at the root of each, or ""
    strict: tuple[bool, ...]
    width: int
    seed: int

    def value(self, i: int) -> str:
        text, name, t = f"hl.strict_float({self.trees[i]})" if self.strict[i] else str(self.trees[i]), self.math[i], self.trees[i].type
        second = f", {t}_in[x + 3]" if name in TWO else ""
        if name in FAST:
            text = f"hl.clamp({text}, {', '.join(map('hl.f32({})'.format, FAST[name]))})"
        text = f"hl.{name}({text}{second})" if name else text
        return f"hl.f32({text})" if t == "bf16" else text

    def text(self) -> str:
        """A script that stands alone."""
        return standing_alone(self.definition(), self.seed)

    def definition(self) -> str:
        """The lines that define and schedule `f`."""
        values = ",\n    ".join(self.value(i) for i in range(len(self.trees)))
        return f"x = hl.Var('x')\nf = hl.Func('f')\nf[x] = hl.Tuple([{values}])" + (f"\nf.vectorize(x, {self.width})" if self.width > 1 else "")

    def shrunk(self) -> Iterator[Script]:
        """Simpler scripts: one expression of several, then simpler trees, then scalars."""
        if len(self.trees) > 1:
            for i in range(len(self.trees)):
                yield Script((self.trees[i],), (self.math[i],), (self.strict[i],), self.width, self.seed)
            return
        if self.width > 1:
            yield Script(self.trees, self.math, self.strict, 1, self.seed)
        for tree in self.trees[0].shrunk():
            yield Script((tree,), self.math, self.strict, self.width, self.seed)


def data(t: str, seed: int) -> Any:
    """Values that reach the corners of a type; floats are small multiples of 1/8, whose sums are exact."""
    rng, count = np.random.default_rng(seed), 2 * SIZE + 8  # schedules that round up read more
    if t == "bool":
        return rng.integers(0, 2, count).astype(np.bool_)
    if t in FLOATS:
        return (rng.integers(-60, 60, count) / 8).astype(DTYPES[t])
    info = np.iinfo(DTYPES[t])
    values = rng.integers(info.min, info.max, count, dtype=DTYPES[t], endpoint=True)
    values[rng.integers(0, count, count // 3)] = rng.integers(max(info.min, -9), 9, count // 3).astype(DTYPES[t])
    values[:4] = [info.min, info.max, 0, 1]
    return values


def standing_alone(definition: str, seed: int) -> str:
    """A whole script of the lines that define `f`: what they read, and printing what f is and should be."""
    arrays = [f"{t}_in = hl.Buffer(np.array({data(t, seed).tolist()}, np.{DTYPES[t]}))".replace("np.bool)", "np.bool_)") for t in DTYPES if f"{t}_in[" in definition]
    return "\n".join(["import numpy as np", "import halide_py as hl", "from halide_py.reference import algorithm", *arrays, definition,
                      f"print([np.asarray(b) for b in f.realize([{SIZE}])])", f"print(algorithm.realize([f.function], ({SIZE},)))"])


def draw(seed: int, count: int = 5, depth: int = 4) -> Script:
    """The script of a seed."""
    rng = random.Random(seed)
    trees, math, strict = [], [], []
    for _ in range(count):
        t = rng.choice([*INTS, *FLOATS, "bool"])
        exact = t in FLOATS and rng.random() < 0.5
        trees.append(Maker(rng, exact).make(t, depth))
        strict.append(exact)
        known = [""] if t not in FLOATS or t == "bf16" else [name for name in ULPS if t == "f32" or name != "erf"] if t != "f32" or rng.random() < 0.6 else [*FAST]
        math.append(rng.choice(known) if rng.random() < 0.5 else "")
    return Script(tuple(trees), tuple(math), tuple(strict), rng.choice(WIDTHS), seed)


def build(script: AnyScript) -> hl.Func:
    """The Func of a script."""
    names: dict[str, Any] = {"hl": hl, **{f"{t}_in": hl.Buffer(data(t, script.seed)) for t in DTYPES}}
    exec(script.definition(), names)
    f = names["f"]
    assert isinstance(f, hl.Func)
    return f


def agree(got: Any, want: Any, name: str) -> bool:
    """Bit for bit but for signs of zero and NaN payloads, or, for the math function `name`, within its bound."""
    if name in FAST:
        return bool(np.allclose(got, want, rtol=2e-5, atol=2e-6))
    ulps = ULPS.get(name, 0)
    if got.dtype.kind != "f":
        return bool(np.array_equal(got, want))
    if not ulps or np.array_equal(got, want, equal_nan=True):
        return bool(np.array_equal(got, want, equal_nan=True))
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        near = np.abs(got.astype(np.longdouble) - want) <= (ulps + 0.51) * np.spacing(np.abs(want))
    return bool(np.all(same | near))


def failure(script: AnyScript) -> str:
    """How a script goes wrong; empty when it does not."""
    try:
        f = build(script)
        want = algorithm.realize([f.function], (SIZE,))
        result = f.realize([SIZE])
    except hl.HalideError as error:
        return f"{type(error).__name__}: {error}"
    got = [np.asarray(b) for b in (result if isinstance(result, (list, tuple)) else [result])]
    wrong = [i for i, (g, w) in enumerate(zip(got, want, strict=True)) if not agree(g, w, script.math[i])]
    return "" if not wrong else "; ".join(f"value {i}: {got[i].tolist()} instead of {want[i].tolist()}" for i in wrong)


def minimal(script: AnyScript, fails: Callable[[Any], str] = failure, steps: int = 400) -> AnyScript:
    """A smaller script that fails still: the first simpler one that does, again and again."""
    while steps > 0:
        for simpler in script.shrunk():
            steps -= 1
            if fails(simpler):
                script = simpler
                break
            if steps <= 0:
                break
        else:
            return script
    return script
