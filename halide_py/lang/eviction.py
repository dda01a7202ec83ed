"""EvictionKey: the name under which results of memoized Funcs can be forgotten."""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir import nodes as n
from ..ir.printer import to_text
from .expr import Expr, to_node


class EvictionKey:
    """What `memoize(EvictionKey(e))` keeps its results under: an integer scalar Expr (64 bits at most) of parameters and constants.
    `EvictionKey()` is no key."""

    def __init__(self, expr: Any = None) -> None:
        self.key: n.Expr | None = None
        if expr is None or isinstance(expr, Expr) and not expr.defined():
            return
        e = to_node(expr)
        if not e.type.is_int_or_uint() or not e.type.is_scalar():
            raise user_error(f"An eviction key must be a scalar integer, but {to_text(e)} has type {e.type}")
        self.key = e

    def __repr__(self) -> str:
        return f"<halide.EvictionKey {'' if self.key is None else to_text(self.key)}>"
