"""Random expressions as text, kept where the language defines the result exactly: signed 32 and 64-bit values stay small, floats are small integers."""

from __future__ import annotations

import random

from script import Script

At = tuple[str, ...]

TYPES = {"u8": "hl.UInt(8)", "i8": "hl.Int(8)", "u16": "hl.UInt(16)", "i16": "hl.Int(16)", "i32": "hl.Int(32)", "u32": "hl.UInt(32)",
         "i64": "hl.Int(64)", "u64": "hl.UInt(64)", "f32": "hl.Float(32)", "f64": "hl.Float(64)", "b1": "hl.Bool()"}
COMMON = ["u8", "i8", "u16", "i16", "i32", "u32", "f32"] * 2 + ["i64", "u64", "f64", "b1"]
NUMBERS = [t for t in COMMON if t != "b1"]
RANGE = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767), "i32": (-1000, 1000), "u32": (0, 4000000000), "i64": (-1000, 1000),
         "u64": (0, 18000000000000000000), "f32": (-100, 100), "f64": (-100, 100), "b1": (0, 1)}
FLOATS, SMALL = ("f32", "f64"), ("i32", "i64")
WIDER = {"u8": "u16", "i8": "i16", "u16": "u32", "i16": "i32"}


def cast(t: str, e: str | int) -> str:
    return f"hl.cast({TYPES[t]}, {e})"


def small(t: str, e: str) -> str:
    """`e` of type `t` brought back to a range in which sums are exact."""
    return f"({e}) % {cast(t, 1000)}" if t in SMALL else f"hl.clamp({e}, {cast(t, -1000)}, {cast(t, 1000)})" if t in FLOATS else e


def convert(t: str, s: str, e: str) -> str:
    """`e` of type `s` as type `t`, kept where the conversion is defined and the result small."""
    if s == t:
        return e
    if t == "b1":
        return f"({e} > {cast(s, 3)})"
    if s in FLOATS and t not in FLOATS:
        low, high = RANGE[t]
        return cast(t, f"hl.clamp({e}, {cast(s, max(low, -1000))}, {cast(s, min(high, 1000))})")
    if t in SMALL + FLOATS and s in ("u32", "u64"):
        e = f"({e} % {cast(s, 1000)})"
    return cast(t, e)


class Expressions:
    """Draws expressions over the images, parameters and Funcs of a script."""

    def __init__(self, seed: int, focus: str = "") -> None:
        self.focus = focus
        self.random = random.Random(seed)
        self.pick, self.int = self.random.choice, self.random.randint
        self.script = Script()
        self.images: list[tuple[str, str, tuple[tuple[int, int], ...]]] = []  # name, type, (min, max) where it may be read; none: anywhere
        self.image_params: list[str] = []  # those of the images that are ImageParams
        self.params: list[str] = []  # int32, 0 to 9
        self.calls: list[str] = []
        self.names = 0

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # -- coordinates

    def shifted(self, v: str) -> str:
        d = self.int(-2, 2)
        return v if d == 0 else f"{v} + {d}" if d > 0 else f"{v} - {-d}"

    def bounded(self, at: At) -> str:
        """An int32 whose values lie in a small range that follows from how it is written."""
        e, t = self.image_tap(at)
        if t == "b1":
            return f"hl.select({e}, {self.int(0, 4)}, {self.int(0, 4)})"
        if t in FLOATS:
            return f"hl.i32(hl.floor(hl.clamp({e}, {cast(t, 0)}, {cast(t, 6)})))"
        bits = int(t[1:])
        forms = [f"({e} % {cast(t, self.int(1, 8))})", f"({e} & {cast(t, 7)})", f"hl.clamp({e}, {cast(t, 0)}, {cast(t, 7)})"]
        if t[0] == "u":
            forms += [f"({e} >> {cast(t, bits - 3)})", f"hl.min({e}, {cast(t, 5)})", f"hl.absd({e} % {cast(t, 9)}, {cast(t, 4)})"]
        else:
            forms += [f"hl.abs({e} % {cast(t, 9)} - {cast(t, 4)})", f"hl.max(hl.min({e}, {cast(t, 4)}), {cast(t, -3)})"]
        if bits < 32:
            forms.append(f"({e} / {cast(t, 1 << bits - 4 if t[0] == 'u' else 32 << bits - 8)})")
        return f"hl.i32({self.pick(forms)})"

    def coordinate(self, at: At) -> str:
        """Where a tap reads in one dimension."""
        v = self.pick(at) if at else str(self.int(0, 3))
        kind, a = self.int(0, 19), self.shifted(v)
        if self.focus == "sliding" and self.int(0, 3):  # what sliding windows can follow
            kind = self.pick([0, 0, 0, 1, 2, 2, 6, 8])
        if kind == 1:
            return f"2*({a})"
        if kind == 2:
            return f"({a})//2"
        if kind == 3:
            return f"9 - ({a})"
        if kind == 4:
            return self.bounded(at)
        if kind == 5:
            return f"{v} + {self.bounded(at)}"
        if kind == 6:
            return f"hl.clamp({a}, 1, 5)"
        if kind == 7:
            return f"({a}) % {self.int(1, 5)}"
        if kind == 8:
            return f"({a})*{self.int(1, 3)}//{self.int(1, 4)}"
        if kind == 9 and self.params:
            return f"{v} + {self.pick(self.params)}"
        if kind == 10:
            return f"hl.select({v} > {self.int(-2, 5)}, {a}, {self.shifted(v)})"
        if kind == 11:
            return f"{self.pick(['hl.min', 'hl.max'])}({a}, {self.int(-1, 6)})"
        if kind == 12:
            return str(self.int(-2, 6))
        if kind == 13:
            return f"-{v}"
        return a

    def coordinates(self, at: At, dims: int) -> list[str]:
        """Where a tap reads: mostly along its own variables, shifted, resampled, transposed, reversed or data dependent."""
        if len(at) >= dims and self.int(0, 5):
            first = self.int(0, 3) == 0 and len(at) > dims
            return [self.coordinate((v,)) for v in (at[-dims:] if first and dims else at[:dims])]
        return [self.coordinate(at) for _ in range(dims)]

    def image_tap(self, at: At) -> tuple[str, str]:
        name, t, limits = self.pick(self.images)
        self.calls += [] if limits else [name]
        dims = len(limits) or 2
        where = [self.shifted(self.pick(at)) if at else str(self.int(-1, 4)) for _ in range(dims)]
        if limits:
            where = [f"hl.clamp({v}, {low}, {high})" for v, (low, high) in zip(where, limits)]
        return f"{name}[{', '.join(where)}]", t

    def tap(self, at: At) -> tuple[str, str]:
        """A read of an earlier Func or an image, with its type."""
        funcs = self.script.funcs
        if not funcs or self.int(0, 3) == 0:
            name, t, limits = self.pick(self.images)
            self.calls += [] if limits else [name]
            where = self.coordinates(at, len(limits) or 2)
            if limits:
                where = [f"hl.clamp({v}, {low}, {high})" for v, (low, high) in zip(where, limits)]
            return f"{name}[{', '.join(where)}]", t
        f = funcs[-1] if self.int(0, 2) and self.focus != "shared" else self.pick(funcs)
        self.calls.append(f.name)
        call = f"{f.name}[{', '.join(self.coordinates(at, len(f.args))) or '()'}]"
        if len(f.types) == 1:
            return call, f.types[0]
        k = self.int(0, len(f.types) - 1)
        return f"{call}[{k}]", f.types[k]

    # -- values

    def leaf(self, t: str, at: At) -> str:
        kind = self.int(0, 6)
        if kind == 0:
            low, high = RANGE[t]
            return cast(t, self.int(max(low, -20), min(high, 100)))
        if kind == 1 and at:
            return convert(t, "i32", self.pick(at))
        if kind == 2 and self.params:
            return convert(t, "i32", self.pick(self.params))
        e, s = self.tap(at)
        return convert(t, s, e)

    def condition(self, at: At, depth: int) -> str:
        if self.int(0, 3) == 0 and at:  # about coordinates: loops are partitioned, accesses guarded
            v, k = self.pick(at), self.int(-1, 9)
            return self.pick([f"({v} < {k})", f"({v} >= {k})", f"({v} % {self.int(2, 3)} == 0)", f"(({v} > {k}) | ({v} < {k - 3}))"])
        t = self.pick(NUMBERS)
        op = self.pick(["<", "<=", ">", ">=", "==", "!="])
        one = f"({self.expr(t, at, depth)} {op} {self.expr(t, at, depth)})"
        if self.int(0, 4) == 0 and at:
            return f"({one} {self.pick(['&', '|'])} ({self.pick(at)} < {self.int(0, 8)}))"
        return one

    def expr(self, t: str, at: At, depth: int) -> str:
        """An expression of type `t` at coordinates `at`."""
        if depth <= 0:
            return self.leaf(t, at)
        kind = self.int(0, 15)
        if kind <= 1:
            return self.leaf(t, at)
        if kind == 2:
            s = self.pick(COMMON)
            return convert(t, s, self.expr(s, at, depth - 1))
        if kind == 3:
            return f"hl.select({self.condition(at, depth - 2)}, {self.expr(t, at, depth - 1)}, {self.expr(t, at, depth - 1)})"
        if t == "b1":
            a = self.condition(at, depth - 1)
            return a if kind < 9 else f"~{a}" if kind < 11 else f"({a} {self.pick(['&', '|'])} {self.expr(t, at, depth - 1)})"
        a, b = self.expr(t, at, depth - 1), self.expr(t, at, depth - 1)
        return self.float_operation(t, kind, a, b) if t in FLOATS else self.operation(t, kind, a, b)

    def float_operation(self, t: str, kind: int, a: str, b: str) -> str:
        if kind in (4, 5, 6):
            return f"({a} - {b})" if kind == 4 else f"hl.{'min' if kind == 5 else 'max'}({a}, {b})"
        if kind == 7:
            return f"(hl.clamp({a}, {cast(t, -64)}, {cast(t, 64)}) * hl.clamp({b}, {cast(t, -8)}, {cast(t, 8)}))"
        if kind == 8:
            return f"hl.{self.pick(['floor', 'round', 'trunc', 'ceil'])}({a} * {cast(t, self.pick(['0.5', '0.25']))})"
        return f"hl.abs({a})" if kind == 9 else f"({a} + {b})"

    def operation(self, t: str, kind: int, a: str, b: str) -> str:
        """Of integers."""
        if kind in (4, 5, 6):
            return f"({a} - {b})" if kind == 4 else f"hl.{'min' if kind == 5 else 'max'}({a}, {b})"
        if kind == 7:
            return f"(({a} % {cast(t, 50)}) * ({b} % {cast(t, 50)}))" if t in SMALL else f"({a} * {b})"
        if kind in (8, 9):
            return f"({a} {'/' if kind == 8 else '%'} {b if self.int(0, 1) else cast(t, self.pick([1, 2, 3, 7, 16, 100]))})"
        if kind == 10:
            return cast(t, f"hl.{self.pick(['absd', 'halving_add', 'halving_sub', 'rounding_halving_add', 'saturating_add', 'saturating_sub'])}({a}, {b})")
        if kind == 11:
            return f"({a} {self.pick(['&', '|', '^'])} {b})" if self.int(0, 1) else f"({a} >> {cast(t, self.int(0, 5))})"
        if kind == 12 and t in WIDER:
            return self.widened(t, a, b)
        if kind == 13 and t not in SMALL:
            return f"({a} {self.pick(['<<', '>>'])} ({b} & {cast(t, 7)}))"
        if kind == 14:
            return f"hl.{self.pick(['popcount', 'count_leading_zeros', 'count_trailing_zeros'])}({a})"
        return f"({a} + {b})"

    def widened(self, t: str, a: str, b: str) -> str:
        """Computed in the type of twice the width, as image code does, and narrowed again."""
        w = WIDER[t]
        kind = self.int(0, 5)
        if kind == 0:
            return cast(t, f"(({cast(w, a)} + {cast(w, b)} + {cast(w, 1)}) >> {cast(w, 1)})")
        if kind == 1:
            return f"hl.saturating_cast({TYPES[t]}, {cast(w, a)} - {cast(w, b)})"
        if kind == 2:
            return cast(t, f"hl.clamp({cast(w, a)} + {cast(w, b)}, {cast(w, RANGE[t][0])}, {cast(w, RANGE[t][1])})")
        if kind == 3 and t[0] == "u":
            return f"hl.lerp({a}, {b}, {self.expr('u8', (), 0)})"
        if kind == 4:
            shift = self.int(0, int(t[1:]))
            return f"hl.mul_shift_right({a}, {b}, {cast('u' + t[1:], shift)})"
        return cast(t, f"hl.widening_{self.pick(['add', 'mul', 'sub'])}({a}, {b}) >> {self.int(0, 4)}")

    def value(self, t: str, at: At, depth: int | None = None) -> str:
        """An expression to store: 32 and 64-bit signed and float values are brought back to a small range."""
        return small(t, self.expr(t, at, self.int(0, 3) if depth is None else depth))
