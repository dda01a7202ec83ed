"""The gradient rules of node kinds and intrinsics. Exactly at a kink, `max(a, b)` and `min(a, b)` give the adjoint to a, and abs() gives
none."""

from __future__ import annotations

from typing import Any

from ..ir import nodes as n
from ..lang.ops import cast, select
from .rule_table import call, kind, number, operation, where

# ---------------------------------------------------------------------------------------------------------------
# Node kinds


@kind(n.Add)
def _add(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, adjoint


@kind(n.Sub)
def _sub(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, -adjoint


@kind(n.Mul)
def _mul(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint * b, adjoint * a


@kind(n.Div)
def _div(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint / b, -adjoint * result / b


@kind(n.Mod)
def _mod(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, -adjoint * call("floor", a / b)


@kind(n.Max)
def _max(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return where(a >= b, adjoint), where(~(a >= b), adjoint)


@kind(n.Min)
def _min(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return where(a <= b, adjoint), where(~(a <= b), adjoint)


@kind(n.Select)
def _select(adjoint: Any, result: Any, condition: Any, a: Any, b: Any) -> Any:
    return None, where(condition, adjoint), where(~condition, adjoint)


@kind(n.Cast)
def _cast(adjoint: Any, result: Any, a: Any) -> Any:
    return cast(a.type(), adjoint) if a.type().is_float() else None


# ---------------------------------------------------------------------------------------------------------------
# Intrinsics


@operation("likely likely_if_innermost strict_float")
def _identity(adjoint: Any, result: Any, a: Any) -> Any:
    return adjoint


@operation("print memoize_tag unsafe_promise_clamped custom_gradient")
def _first(adjoint: Any, result: Any, a: Any, *rest: Any) -> Any:
    return (adjoint, *[None] * len(rest)) if rest else adjoint


@operation("return_second print_when require")
def _second(adjoint: Any, result: Any, first: Any, a: Any, *rest: Any) -> Any:
    return (None, adjoint, *[None] * len(rest))


@operation("if_then_else")
def _if_then_else(adjoint: Any, result: Any, condition: Any, *values: Any) -> Any:
    return (None, *(where(c, adjoint) for c, _ in zip((condition, ~condition), values)))


@operation("mux")
def _mux(adjoint: Any, result: Any, index: Any, *values: Any) -> Any:
    last = len(values) - 1
    return (None, *(where(index == i, adjoint) for i in range(last)), where((index < 0) | (index >= last), adjoint))


@operation("abs")
def _abs(adjoint: Any, result: Any, a: Any) -> Any:
    return where(a != 0, select(a > 0, adjoint, -adjoint))


@operation("lerp")
def _lerp(adjoint: Any, result: Any, zero: Any, one: Any, weight: Any) -> Any:
    w, t = weight, zero.type()
    if not w.type().is_float():
        w = cast(t, w) / number(w.type().max_value(), zero)
    w = cast(t, w)
    by_weight = cast(weight.type(), adjoint * (one - zero)) if weight.type().is_float() else None
    return adjoint * (1 - w), adjoint * w, by_weight


@operation("saturating_cast")
def _saturating_cast(adjoint: Any, result: Any, a: Any) -> Any:
    return cast(a.type(), adjoint) if a.type().is_float() else None


@operation("widening_add")
def _widening_add(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint), cast(b.type(), adjoint)


@operation("widening_sub")
def _widening_sub(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint), cast(b.type(), -adjoint)


@operation("widening_mul")
def _widening_mul(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint * cast(result.type(), b)), cast(b.type(), adjoint * cast(result.type(), a))


@operation("undef random stop_gradient floor ceil trunc round")
def _constant(adjoint: Any, result: Any, *args: Any) -> Any:
    return (None,) * len(args) if len(args) != 1 else None
