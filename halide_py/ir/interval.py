"""Intervals with symbolic ends, and the values an expression can take while variables range over intervals.

`bounds_of_expr` works on the simplified expression, once per distinct node. Sums go by their linear form, so what is
correlated has cancelled: `(x*2 + 1) - x*2` is a point. Limits: other correlations are lost, as in any interval
arithmetic; 32 and 64-bit signed arithmetic, and conversions to it, are assumed not to overflow; narrow and unsigned results
that may wrap are bounded by their type. Source: Halide's src/Bounds.cpp for what is considered bounded.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import bounds_of_calls, bounds_rules  # noqa: F401  (register the rules)
from . import nodes as n
from .bounds import Bounds
from .interval_type import FuncValues, Interval, type_interval
from .traverse import deep_recursion


def bounds_of_expr(e: n.Expr, scope: Mapping[str, Interval], func_values: FuncValues = {}) -> Interval:  # noqa: B006 (never written)
    """Every value that `e` can take (of a vector: that a lane can take) while variables range over `scope`.

    Variables that are not in `scope` stand for themselves. `func_values[name, i]` bounds value `i` of Func `name`; Funcs that
    are not there, and loads, are bounded by their types.
    """
    with deep_recursion():
        return Bounds(scope, func_values).of(e)


__all__ = ["Bounds", "FuncValues", "Interval", "bounds_of_expr", "type_interval"]
