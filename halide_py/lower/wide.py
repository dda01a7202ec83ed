"""int32 expressions computed in 64 bits, where a wrapped value would hide that something does not fit."""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import INT64


def widened(e: n.Expr) -> n.Expr:
    """An int32 expression with its arithmetic in 64 bits."""
    return _widened(e, {})


def _widened(e: n.Expr, known: dict[n.Expr, n.Expr]) -> n.Expr:
    found = known.get(e)
    if found is None:
        if isinstance(e, (n.Add, n.Sub, n.Mul, n.Div, n.Mod, n.Min, n.Max)):
            found = type(e)(_widened(e.a, known), _widened(e.b, known))
        elif isinstance(e, n.Select):
            found = n.Select(e.condition, _widened(e.true_value, known), _widened(e.false_value, known))
        else:
            found = b.cast(INT64, e)
        known[e] = found
    return found

