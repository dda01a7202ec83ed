"""Ranges of floats hold every value, rounded after each operation or once for a product and a sum, and are tight where that matters."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.float_ranges import FloatRanges
from halide_py.ir.types import INT32, Float, Int, Type, UInt

F32, F64 = Float(32), Float(64)


def byte(name: str, t: Type = F32) -> n.Expr:
    return n.Cast(t, n.Variable(UInt(8), name))


def number(value: float, t: Type = F32) -> n.Expr:
    return n.FloatImm(t, b.round_float(value, t))


def luma(weights: tuple[float, float, float] = (0.299, 0.587, 0.114)) -> n.Expr:
    terms = [n.Mul(byte(f"v{k}"), number(w)) for k, w in enumerate(weights)]
    return n.Add(n.Add(terms[0], terms[1]), terms[2])


def values(e: n.Expr, of: dict[str, int]) -> Iterator[float]:
    """All that compilers may make of `e`: each sum of a product by itself or contracted."""
    if isinstance(e, n.FloatImm):
        yield e.value
    elif isinstance(e, n.Cast):
        assert isinstance(e.value, n.Variable)
        yield float(of[e.value.name])
    elif isinstance(e, (n.Min, n.Max)):
        for x in values(e.a, of):
            for y in values(e.b, of):
                yield (x if x < y else y) if isinstance(e, n.Min) else (x if x > y else y)
    else:
        assert isinstance(e, (n.Add, n.Sub, n.Mul, n.Div))
        for x in values(e.a, of):
            for y in values(e.b, of):
                yield b.round_float(x + y if isinstance(e, n.Add) else x - y if isinstance(e, n.Sub) else x * y if isinstance(e, n.Mul) else x / y, e.type)
        if isinstance(e, (n.Add, n.Sub)) and e.type is F64:
            sign = 1 if isinstance(e, n.Add) else -1
            for product, factor, other, times in ((e.a, 1, e.b, sign), (e.b, sign, e.a, 1)):
                if isinstance(product, n.Mul):
                    for x in values(product.a, of):
                        for y in values(product.b, of):
                            for z in values(other, of):
                                exact = factor * Fraction(x) * Fraction(y) + times * Fraction(z)
                                if exact:
                                    yield float(exact)


def random_expr(rng: random.Random, t: Type, depth: int) -> n.Expr:
    if depth == 0 or rng.random() < 0.15:
        return byte(rng.choice("abc"), t) if rng.random() < 0.6 else number(rng.choice([0.0, -0.0, 1.0, 255.0, -3.5, rng.uniform(-2, 2)]), t)
    kind = rng.choice([n.Add, n.Add, n.Sub, n.Mul, n.Mul, n.Div, n.Min, n.Max])
    a = random_expr(rng, t, depth - 1)
    return kind(a, number(rng.uniform(0.1, 3.0), t) if kind is n.Div else random_expr(rng, t, depth - 1))


@pytest.mark.parametrize("t", [F32, F64])
def test_random_expressions_stay_inside(t: Type) -> None:
    rng, found = random.Random(1), 0
    for _ in range(400):
        e = random_expr(rng, t, 3)
        r = FloatRanges().of(e)
        assert r is not None
        for _ in range(8):
            of = {name: rng.choice([0, 255, rng.randrange(256)]) for name in "abc"}
            for x in values(e, of):
                assert r[0] <= x <= r[1] and not (x == r[0] == 0 and math.copysign(1, x) < math.copysign(1, r[0])), (e, of, x, r)
                found += 1
    assert found > 3000


def test_luminance_needs_no_limits() -> None:
    """Weights whose sum is a little more than 1 as floats: rounding brings 255.000002 back; those of 1.001 do not."""
    ranges = FloatRanges()
    assert ranges.of(luma()) == (0.0, 255.0) and ranges.fits(luma(), UInt(8))
    inside = n.Max(n.Min(luma(), number(255)), number(0))
    assert isinstance(inside.a, n.Min) and ranges.holds(inside.a) and ranges.holds(inside)
    more = luma((0.3, 0.587, 0.114))
    assert not ranges.holds(n.Min(more, number(255))) and not ranges.fits(n.Mul(more, number(1.01)), UInt(8))
    assert ranges.fits(more, Int(16))


def test_what_may_be_nan_has_no_range() -> None:
    x = n.Variable(F32, "x")
    ranges = FloatRanges()
    for e in (x, n.Add(x, number(1)), n.Div(byte("a"), byte("b")), n.Min(number(1), x), n.Sub(n.Min(x, number(0)), n.Min(x, number(0)))):
        assert ranges.of(e) is None
    assert ranges.of(n.Min(x, number(255))) == (-math.inf, 255.0), "NaN becomes the limit"
    clamped = n.Max(n.Min(x, number(255)), number(0))
    assert ranges.of(clamped) == (0.0, 255.0) and ranges.fits(clamped, UInt(8)) and not ranges.holds(clamped)
    assert not ranges.fits(n.Min(x, number(255)), INT32)


def test_the_sign_of_zero_is_kept() -> None:
    ranges, zero, minus = FloatRanges(), number(0.0), number(-0.0)
    positive, negative = byte("a"), n.Mul(byte("a"), number(-1))
    assert ranges.holds(n.Max(positive, zero)) and not ranges.holds(n.Max(positive, minus))
    assert ranges.of(negative) == (-255.0, 0.0) and not ranges.holds(n.Min(negative, zero))
    may_be_minus = n.Mul(byte("a"), minus)
    assert not ranges.holds(n.Max(may_be_minus, zero)), "-0.0 becomes 0.0 there"


def test_contraction_is_in_the_range() -> None:
    """a * b - c rounds twice to 0, but once to what is left of the product."""
    a, c = number(1 + 2.0**-12), number(np.float32(1 + 2.0**-12) * np.float32(1 + 2.0**-12))
    r = FloatRanges().of(n.Sub(n.Mul(a, a), c))
    assert r is not None and r[0] <= 0 <= r[1] and r[1] == 2.0**-24 or r[0] == 2.0**-24
