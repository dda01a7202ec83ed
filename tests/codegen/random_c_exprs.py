"""Random expressions over two loaded operands a type, for comparing generated code with the reference interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.types import BFloat, Bool, Float, Int, Type, TypeCode, UInt

INTS = [Int(8), Int(16), Int(32), Int(64), UInt(8), UInt(16), UInt(32), UInt(64)]
FLOATS = [Float(32), Float(64)]
HALVES = [Float(16), BFloat(16)]


class Maker:
    """Makes scalar-typed trees for `lanes`; `leaf(type)` gives the operands."""

    def __init__(self, rng: random.Random, lanes: int, leaf: Callable[[Type], n.Expr]) -> None:
        self.rng, self.lanes, self.leaf = rng, lanes, leaf

    def make(self, t: Type, depth: int) -> n.Expr:
        """An expression of element type `t`."""
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf(t) if self.rng.random() < 0.75 else self.constant(t)
        if t.is_bool():
            return self.condition(depth)
        if t.is_float():
            return self.floating(t, depth)
        return self.integer(t, depth)

    def constant(self, t: Type) -> n.Expr:
        if t.is_float():
            return b.const(t.with_lanes(self.lanes), self.rng.choice([0.0, 1.0, -2.5, 3.0, 0.5]))
        low, high = int(t.min_value()), int(t.max_value())
        return b.const(t.with_lanes(self.lanes), self.rng.choice([low, high, 0, 1, 3, 7, 8, self.rng.randint(low, high)]))

    def condition(self, depth: int) -> n.Expr:
        pick = self.rng.random()
        if pick < 0.6:
            t = self.rng.choice(INTS + FLOATS)
            kind = self.rng.choice([n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE])
            return kind(self.make(t, depth - 1), self.make(t, depth - 1))
        if pick < 0.9:
            return self.rng.choice([n.And, n.Or])(self.make(Bool(), depth - 1), self.make(Bool(), depth - 1))
        return n.Not(self.make(Bool(), depth - 1))

    def floating(self, t: Type, depth: int) -> n.Expr:
        pick = self.rng.random()
        d = depth - 1
        if pick < 0.4:  # no Mul of sums: contraction would change the rounding
            return self.rng.choice([n.Add, n.Sub, n.Min, n.Max])(self.make(t, d), self.make(t, d))
        if pick < 0.5:
            return n.Select(self.make(Bool(), d), self.make(t, d), self.make(t, d))
        if pick < 0.6:
            return intrinsic("abs", t.with_lanes(self.lanes), self.make(t, d))
        if pick < 0.8:
            source = self.rng.choice([Int(8), Int(16), Int(32), UInt(8), UInt(16), UInt(32), *FLOATS])
            return n.Cast(t.with_lanes(self.lanes), self.make(source, d)) if source is not t else self.make(t, d)
        return n.Mul(self.leaf(t), self.constant(t))

    def integer(self, t: Type, depth: int) -> n.Expr:
        pick, d, wide = self.rng.random(), depth - 1, t.with_lanes(self.lanes)
        if pick < 0.3:
            return self.rng.choice([n.Add, n.Sub, n.Mul, n.Min, n.Max])(self.make(t, d), self.make(t, d))
        if pick < 0.4:
            return self.rng.choice([n.Div, n.Mod])(self.make(t, d), self.rng.choice([self.constant(t), self.make(t, d)]))
        if pick < 0.5:
            return n.Select(self.make(Bool(), d), self.make(t, d), self.make(t, d))
        if pick < 0.68:
            source = self.rng.choice([*INTS, Bool()])
            return n.Cast(wide, self.make(source, d)) if source is not t else self.make(t, d)
        return self.fixed_point(t, d)

    def fixed_point(self, t: Type, d: int) -> n.Expr:
        """An integer intrinsic."""
        wide = t.with_lanes(self.lanes)
        name = self.rng.choice(["bitwise_and", "bitwise_xor", "bitwise_or", "saturating_add", "saturating_sub",
                                "halving_add", "rounding_halving_add", "halving_sub",
                                "abs", "absd", "popcount", "count_leading_zeros", "count_trailing_zeros", "shift_left", "shift_right", "bitwise_not",
                                "saturating_cast", "div_round_to_zero", "mod_round_to_zero", "rounding_shift_right", "mul_shift_right"])
        if name == "abs":
            source = t.with_code(TypeCode.Int)
            return intrinsic("abs", wide, self.make(source, d)) if t.is_uint() else self.make(t, d)
        if name == "absd":
            return intrinsic("absd", wide, self.make(t, d), self.make(t, d)) if t.is_uint() else self.make(t, d)
        if name in ("popcount", "count_leading_zeros", "count_trailing_zeros", "bitwise_not"):
            return intrinsic(name, wide, self.make(t, d))
        if name.endswith(("shift_left", "shift_right")) and name != "mul_shift_right":
            varied = intrinsic("bitwise_and", wide, self.make(t, d), b.const(wide, t.bits() - 1))
            amount = self.rng.choice([b.const(wide, self.rng.randint(0, t.bits() - 1)), varied])
            return intrinsic(name, wide, self.make(t, d), amount)
        if name == "saturating_cast":
            source = self.rng.choice(INTS)
            return intrinsic(name, wide, self.make(source, d)) if source is not t else self.make(t, d)
        if name == "mul_shift_right":
            if t.bits() > 32:
                return self.make(t, d)
            amount = b.const(t.with_code(TypeCode.UInt).with_lanes(self.lanes), self.rng.choice([1, t.bits() // 2, t.bits() - 1, t.bits()]))
            return intrinsic(name, wide, self.make(t, d), self.make(t, d), amount)
        return intrinsic(name, wide, self.make(t, d), self.make(t, d))
