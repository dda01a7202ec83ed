"""Constant folding with the exact meaning of each operation at each type; None where folding would not be exact or safe."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import nodes as n
from ..build import as_const, const, euclid_div, euclid_mod, round_float
from ..types import BOOL, Type

Number = int | float


def _float_div(x: float, y: float) -> float:
    if y:
        return x / y
    if x == 0 or x != x:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, x) * math.copysign(1.0, y))


def _float_op(kind: type[n.Node], x: float, y: float, t: Type) -> float | None:
    try:
        if kind is n.Add:
            return x + y
        if kind is n.Sub:
            return x - y
        if kind is n.Mul:
            return x * y
        if kind is n.Div:
            return _float_div(x, y)
        if kind is n.Min or kind is n.Max:  # the choice between NaNs or signed zeros is left to run time
            if x != x or y != y or x == y == 0 and math.copysign(1.0, x) != math.copysign(1.0, y):
                return None
            return min(x, y) if kind is n.Min else max(x, y)
    except OverflowError:
        return None
    if y == 0 or not math.isfinite(x) or not math.isfinite(y):
        return None
    quotient = math.floor(round_float(x / y, t))
    return x - round_float(y * quotient, t) if abs(quotient) < 2**53 else None


_INT_OPS: dict[type[n.Node], Callable[[int, int], int]] = {
    n.Add: lambda x, y: x + y, n.Sub: lambda x, y: x - y, n.Mul: lambda x, y: x * y, n.Div: euclid_div, n.Mod: euclid_mod,
    n.Min: min, n.Max: max, n.And: lambda x, y: x & y, n.Or: lambda x, y: x | y}
_COMPARISONS: dict[type[n.Node], Callable[[Any, Any], bool]] = {
    n.EQ: lambda x, y: x == y, n.NE: lambda x, y: x != y, n.LT: lambda x, y: x < y, n.LE: lambda x, y: x <= y,
    n.GT: lambda x, y: x > y, n.GE: lambda x, y: x >= y}


def fold_binary(kind: type[n.Node], a: n.Expr, b: n.Expr) -> n.Expr | None:
    """The constant that `kind(a, b)` is, for two constants."""
    x, y = as_const(a), as_const(b)
    if x is None or y is None or a.type.is_handle():
        return None
    compare = _COMPARISONS.get(kind)
    if compare is not None:
        return const(BOOL.with_lanes(a.type.lanes()), compare(x, y))
    if not a.type.is_float():
        return const(a.type, _INT_OPS[kind](int(x), int(y)))
    value = _float_op(kind, float(x), float(y), a.type)
    return None if value is None else const(a.type, value)


def fold_cast(t: Type, e: n.Expr) -> n.Expr | None:
    """The constant `e` converted to `t`; conversions that are undefined or would round twice are left alone."""
    value = as_const(e)
    source = e.type
    if value is None or t.is_handle() or source.is_handle():
        return None
    if not source.is_float():
        if t.is_float() and abs(value) > 2**53:
            return None
        return const(t, value)
    if t.is_float():
        return const(t, value)
    if value != value or math.isinf(value) or not t.can_represent_value(math.trunc(value)):
        return None
    return const(t, math.trunc(value))
