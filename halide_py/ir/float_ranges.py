"""Constant ranges of float and double expressions: what rounding to nearest can make of operands between two numbers.

Rounding never turns the order of two numbers around, so the ends of a range, rounded as the operation rounds, hold all that is between
them. Compilers may make one instruction of a product and a sum, which rounds once: the range holds that, too. What may be NaN has no
range. -0.0 counts as less than 0.0: a range that begins with 0.0 has no -0.0. Values from memory and variables are anything, so what
has a range is made of integers, constants and limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

from . import nodes as n
from .build import round_float
from .simplify.simplify import Simplifier
from .types import Type

Range = tuple[float, float]
_INFINITE = (-math.inf, math.inf)


class FloatRanges:
    """Ranges of several expressions, each found once."""

    def __init__(self) -> None:
        self.memo: dict[n.Expr, Range | None] = {}
        self.integers = Simplifier()

    def of(self, e: n.Expr) -> Range | None:
        """The least and the largest number that a lane of `e` may be; None where one may be NaN, or nothing is known."""
        if e not in self.memo:
            rule = _RULES.get(type(e)) if e.type.is_float() and e.type.bits() >= 32 else None
            self.memo[e] = None if rule is None else rule(self, e)
        return self.memo[e]

    def holds(self, e: n.Min | n.Max) -> bool:
        """Whether the limit `e` changes nothing, not even the sign of zero: it is its first operand."""
        r, limit = self.of(e.a), self.of(e.b)
        if r is None or limit is None:
            return False
        if type(e) is n.Min:
            return r[1] < limit[0] or r[1] == limit[0] != 0
        zero = _order(0.0)
        return r[0] > limit[1] or r[0] == limit[1] and (r[0] != 0 or _order(r[0]) == _order(limit[0]) == zero)

    def fits(self, e: n.Expr, t: Type) -> bool:
        """Whether all lanes of `e`, truncated, are integers of type `t`."""
        r = self.of(e)
        return r is not None and _is_finite(r) and t.min_value() <= math.trunc(r[0]) and math.trunc(r[1]) <= t.max_value()


def _order(x: float) -> tuple[float, float]:
    """Numbers in order, -0.0 below 0.0."""
    return x, math.copysign(1.0, x)


def _hull(ends: Iterable[float]) -> Range | None:
    """The range of some numbers; None if one of them is NaN."""
    all_ends = list(ends)
    return None if any(map(math.isnan, all_ends)) else (min(all_ends, key=_order), max(all_ends, key=_order))


def _is_finite(*ranges: Range) -> bool:
    return all(math.isfinite(end) for r in ranges for end in r)


def _sum(s: FloatRanges, e: n.Add | n.Sub) -> Range | None:
    x, y = s.of(e.a), s.of(e.b)
    if x is None or y is None or not _is_finite(x, y):
        return None
    sign = 1 if type(e) is n.Add else -1
    y = y if sign > 0 else (-y[1], -y[0])
    ends = [round_float(p + q, e.type) for p, q in zip(x, y)]
    for factor, operand, other in ((1, e.a, y), (sign, e.b, x)):
        for product in _products(operand):
            ends += _contracted(s, product, factor, other)
    return _hull(ends)


def _products(e: n.Expr) -> Iterator[n.Mul]:
    """The products that `e` may be; choices may become jumps, and what follows is compiled for each way by itself."""
    if type(e) is n.Mul:
        yield e
    elif type(e) is n.Broadcast:
        yield from _products(e.value)
    elif type(e) is n.Select:
        yield from (*_products(e.true_value), *_products(e.false_value))
    elif type(e) is n.Min or type(e) is n.Max:
        yield from (*_products(e.a), *_products(e.b))


def _contracted(s: FloatRanges, product: n.Mul, factor: int, other: Range) -> list[float]:
    """The ends of `factor * product + other` where that rounds once."""
    x, y = s.of(product.a), s.of(product.b)
    if x is None or y is None or not _is_finite(x, y):
        return [math.nan]
    products = [factor * Fraction(p) * Fraction(q) for p in x for q in y]
    return [_rounded(extreme(products) + Fraction(end), product.type, to)
            for extreme, end, to in ((min, other[0], -math.inf), (max, other[1], math.inf))]


def _rounded(x: Fraction, t: Type, to: float) -> float:
    """The number of a type nearest to `x`, or one beyond it: rounding to double and then to float may go astray."""
    try:
        near = float(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    return round_float(near if Fraction(near) == x else math.nextafter(near, to), t)


def _product(s: FloatRanges, e: n.Mul) -> Range | None:
    x, y = s.of(e.a), s.of(e.b)
    return _hull(round_float(p * q, e.type) for p in x for q in y) if x and y and _is_finite(x, y) else None


def _quotient(s: FloatRanges, e: n.Div) -> Range | None:
    x, y = s.of(e.a), s.of(e.b)
    if x is None or y is None or not _is_finite(x, y) or y[0] <= 0 <= y[1]:
        return None
    return _hull(round_float(p / q, e.type) for p in x for q in y)


def _minimum(s: FloatRanges, e: n.Min) -> Range | None:
    """a < b ? a : b, so b where a is NaN, and 0.0 if b is that and a is -0.0."""
    x, y = s.of(e.a) or _INFINITE, s.of(e.b)
    return None if y is None else (min(x[0], y[0], key=_order), min(x[1], y[1]) or 0.0)


def _maximum(s: FloatRanges, e: n.Max) -> Range | None:
    """a > b ? a : b, so b where a is NaN, and -0.0 if b is that and a is 0."""
    x, y = s.of(e.a) or _INFINITE, s.of(e.b)
    if y is None:
        return None
    low = max(x[0], y[0])
    return low if low else math.copysign(0.0, y[0]), max(x[1], y[1], key=_order)


def _union(s: FloatRanges, choices: Iterable[n.Expr]) -> Range | None:
    ranges = [s.of(x) for x in choices]
    return None if None in ranges else _hull(end for r in ranges if r for end in r)


def _cast(s: FloatRanges, e: n.Cast) -> Range | None:
    source = e.value.type
    if source.is_float():
        r = s.of(e.value)
        return r and (round_float(r[0], e.type), round_float(r[1], e.type))
    if not source.is_int_or_uint():
        return None
    low, high = s.integers.range(e.value)
    ends = (source.min_value() if low is None else low, source.max_value() if high is None else high)
    return _rounded(Fraction(ends[0]), e.type, -math.inf), _rounded(Fraction(ends[1]), e.type, math.inf)


def _call(s: FloatRanges, e: n.Call) -> Range | None:
    if e.name in ("likely", "likely_if_innermost"):
        return s.of(e.args[0])
    if e.name == "if_then_else" and len(e.args) == 3:
        return _union(s, e.args[1:])
    return None


_RULES: dict[type[n.Node], Callable[[FloatRanges, Any], Range | None]] = {
    n.FloatImm: lambda s, e: _hull([e.value]),
    n.Add: _sum, n.Sub: _sum, n.Mul: _product, n.Div: _quotient, n.Min: _minimum, n.Max: _maximum, n.Cast: _cast, n.Call: _call,
    n.Broadcast: lambda s, e: s.of(e.value),
    n.Select: lambda s, e: _union(s, (e.true_value, e.false_value)),
    n.Shuffle: lambda s, e: _union(s, e.vectors),
}
