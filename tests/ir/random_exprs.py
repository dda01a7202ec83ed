"""Random Exprs of any scalar or vector type over variables x, y, z, and random values for them."""

from __future__ import annotations

import random
from typing import Any

from halide_py.ir import nodes as n
from halide_py.ir.build import const, round_float
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.types import BOOL, INT32, Float, Int, Type, UInt

INTS = [Int(8), UInt(8), Int(16), UInt(16), INT32, UInt(32), Int(64), UInt(64)]
FLOATS = [Float(32), Float(64)]


class Maker:
    """Makes Exprs of one operand type (so that operators apply), with casts to others now and then."""

    def __init__(self, rng: random.Random, types: list[Type] | None = None, variables: str = "xyz", small: bool = False) -> None:
        self.rng, self.types, self.names, self.small = rng, types or INTS + FLOATS, variables, small  # small: constants far from the limits of int32
        self.made: dict[Type, list[n.Expr]] = {}

    def leaf(self, t: Type) -> n.Expr:
        """A variable or a constant."""
        r = self.rng.random()
        if t.is_vector():
            if r < 0.4 and t.is_int_or_uint() and not t.is_bool():
                return n.Ramp(self.leaf(t.element_of()), self.leaf(t.element_of()), t.lanes())
            return n.Broadcast(self.leaf(t.element_of()), t.lanes())
        if t.is_bool():
            return n.Variable(BOOL, "bxyz"[0] + self.rng.choice(self.names)) if r < 0.6 else const(BOOL, self.rng.randint(0, 1))
        if r < 0.65:
            return n.Variable(t, f"{self.rng.choice(self.names)}_{t}")
        return const(t, self.number(t))

    def number(self, t: Type) -> Any:
        """A constant, small ones and limits preferred."""
        r = self.rng.random()
        if t.is_float():
            return self.rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 3.25, 1e10])
        if r < 0.7 or self.small and t.overflow_is_undefined():
            return self.rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 16] if t.is_uint() else [-8, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 16])
        if r < 0.9:
            return self.rng.randint(int(t.min_value()) >> 1, int(t.max_value()) >> 1)
        return self.rng.choice([t.min_value(), t.max_value()])

    def expr(self, t: Type, depth: int) -> n.Expr:
        """An Expr of type `t`."""
        rng = self.rng
        old = self.made.setdefault(t, [])
        if old and rng.random() < 0.2:
            return rng.choice(old)
        e = self.leaf(t) if depth <= 0 or rng.random() < 0.1 else self.boolean(t, depth) if t.is_bool() else self.value(t, depth)
        old.append(e)
        return e

    def boolean(self, t: Type, depth: int) -> n.Expr:
        """A condition."""
        rng = self.rng
        r = rng.random()
        if r < 0.55:
            u = rng.choice(self.types).with_lanes(t.lanes())
            kind = rng.choice([n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE])
            return kind(self.expr(u, depth - 1), self.expr(u, depth - 1))
        if r < 0.9:
            return rng.choice([n.And, n.Or])(self.expr(t, depth - 1), self.expr(t, depth - 1))
        return n.Not(self.expr(t, depth - 1))

    def value(self, t: Type, depth: int) -> n.Expr:
        """A number."""
        rng = self.rng
        r = rng.random()
        sub = depth - 1
        if r < 0.1:
            return n.Select(self.expr(BOOL.with_lanes(t.lanes() if rng.random() < 0.5 else 1), sub), self.expr(t, sub), self.expr(t, sub))
        if r < 0.16:
            u = rng.choice(self.types).with_lanes(t.lanes())
            return n.Cast(t, self.expr(u, sub)) if u is not t else self.expr(t, sub)
        if r < 0.24 and t.is_int_or_uint():
            name = rng.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "bitwise_not", "likely", "popcount"])
            if name.startswith("shift"):
                return intrinsic(name, t, self.expr(t, sub), const(t, rng.randint(0, 4 if self.small else t.bits() - 1)))
            one = name in ("bitwise_not", "likely", "popcount")
            return intrinsic(name, t, *[self.expr(t, sub) for _ in range(1 if one else 2)])
        if r < 0.32 and t.is_int_or_uint():
            c = const(t, rng.choice([1, 2, 3, 4, 8, 16, 5]))
            return rng.choice([n.Mul, n.Div, n.Mod])(self.expr(t, sub), c)
        if r < 0.35 and t.is_vector():
            if rng.random() < 0.5:
                return n.Shuffle((self.expr(t, sub),), tuple(rng.randrange(t.lanes()) for _ in range(t.lanes())))
            return n.Broadcast(self.expr(t.element_of(), sub), t.lanes())
        kinds = [n.Add, n.Sub, n.Add, n.Sub, n.Mul, n.Min, n.Max, n.Min, n.Max, n.Div, n.Mod]
        return rng.choice(kinds)(self.expr(t, sub), self.expr(t, sub))


def environment(rng: random.Random, names: str = "xyz") -> dict[str, Any]:
    """Random values of all variables `Maker` uses."""
    env: dict[str, Any] = {}
    for v in names:
        env["b" + v] = rng.randint(0, 1)
        for t in INTS:
            low, high = int(t.min_value()), int(t.max_value())
            wide = rng.random() < 0.3
            env[f"{v}_{t}"] = rng.randint(low, high) if wide else max(low, rng.randint(-20, 20) if low else rng.randint(0, 20))
        for t in FLOATS:
            env[f"{v}_{t}"] = round_float(rng.choice([0.0, -0.0, 1.0, rng.uniform(-10, 10), rng.uniform(-1e6, 1e6)]), t)
    return env
