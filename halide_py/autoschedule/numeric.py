"""Numeric: symbolic bounds as Python functions of numbers, so that a region is known for a thousand tile sizes in the time of one
simplification.

In: integer expressions over the variables given; parameters are numbers already (`estimates.with_estimates`). Out: one function of these
variables, in their order, whose result is a tuple, with None where an expression cannot be computed without running the pipeline (it reads
memory, or a parameter without an estimate). Every distinct node is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..ir import nodes as n
from ..ir.build import euclid_div, euclid_mod
from ..ir.traverse import deep_recursion, free_variables

Numbers = tuple[int | None, ...]

_OPERATORS: dict[type[n.Expr], str] = {
    n.Add: "({} + {})",
    n.Sub: "({} - {})",
    n.Mul: "({} * {})",
    n.Min: "min({}, {})",
    n.Max: "max({}, {})",
    n.EQ: "({} == {})",
    n.NE: "({} != {})",
    n.LT: "({} < {})",
    n.LE: "({} <= {})",
    n.GT: "({} > {})",
    n.GE: "({} >= {})",
    n.And: "({} and {})",
    n.Or: "({} or {})",
    n.Not: "(not {})",
    n.Select: "({1} if {0} else {2})",
}
_CALLS = {
    "likely": "{}",
    "likely_if_innermost": "{}",
    "unsafe_promise_clamped": "{}",
    "abs": "abs({})",
    "absd": "abs({} - {})",
    "floor": "floor({})",
    "ceil": "ceil({})",
    "if_then_else": "({1} if {0} else {2})",
    "shift_left": "({} << {})",
    "shift_right": "({} >> {})",
    "bitwise_and": "({} & {})",
    "bitwise_or": "({} | {})",
    "bitwise_xor": "({} ^ {})",
    "sqrt": "sqrt({})",
    "trunc": "trunc({})",
    "round": "round({})",
}


def _floor_division(x: int, y: int) -> int:
    return x // y if y > 0 else euclid_div(x, y)


_NAMES = {
    "div": _floor_division,
    "mod": euclid_mod,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "__builtins__": {"min": min, "max": max, "abs": abs, "int": int, "float": float, "round": round},
}


class _Unknown(Exception):
    """The expression has no value before the pipeline runs."""


class _Writer:
    """Writes assignments, one a distinct node."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.known = {name: f"v{i}" for i, name in enumerate(variables)}
        self.lines: list[str] = []
        self.memo: dict[n.Expr, str | None] = {}

    def text(self, e: n.Expr) -> str:
        """The name or constant that stands for `e`."""
        found = self.memo.get(e)
        if e not in self.memo:
            try:
                found = self.memo[e] = self.write(e)
            except _Unknown:
                self.memo[e] = None
        if found is None:
            raise _Unknown
        return found

    def write(self, e: n.Expr) -> str:
        if isinstance(e, (n.IntImm, n.UIntImm)):
            return str(e.value) if e.value >= 0 else f"({e.value})"
        if isinstance(e, n.FloatImm) and math.isfinite(e.value):
            return repr(e.value)
        if isinstance(e, n.Variable) and e.name in self.known:
            return self.known[e.name]
        return self.assign(self.operation(e).format(*map(self.text, e.children())))

    def operation(self, e: n.Expr) -> str:
        if isinstance(e, (n.Div, n.Mod)):
            return "({} / {})" if e.type.is_float() else "div({}, {})" if isinstance(e, n.Div) else "mod({}, {})"
        if isinstance(e, n.Cast):
            return "float({})" if e.type.is_float() else "int({})"
        form = _CALLS.get(e.name) if isinstance(e, n.Call) and e.call_type is not n.CallType.Halide else _OPERATORS.get(type(e))
        if form is None or isinstance(e, n.Call) and e.name == "if_then_else" and len(e.args) != 3:
            raise _Unknown
        return form

    def assign(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name


def compiled(ends: Sequence[n.Expr | None], variables: Sequence[str]) -> Callable[..., Numbers]:
    """The values of `ends` as a function of the variables; of None and of what cannot be computed None.

    The function takes None for a variable without limits: what depends on it then is None.
    """
    writer = _Writer(variables)
    results, uses = [], []
    with deep_recursion():
        for e in ends:
            try:
                results.append("None" if e is None else writer.text(e))
            except _Unknown:
                results.append("None")
            named = () if e is None else free_variables(e)
            uses.append([i for i, v in enumerate(variables) if v in named])
    header = f"def known({', '.join(f'v{i}' for i in range(len(variables)))}):"
    names: dict[str, Any] = dict(_NAMES)
    exec("\n".join([header, *writer.lines, f"    return ({''.join(r + ', ' for r in results)})"]), names)
    known: Callable[..., Numbers] = names["known"]

    def values(*given: int | None) -> Numbers:
        if None not in given:
            try:
                return known(*given)
            except (ArithmeticError, ValueError):  # a division by what only looks like a number, a shift by less than nothing
                return (None,) * len(results)
        partly = known(*(0 if v is None else v for v in given))
        return tuple(None if any(given[i] is None for i in used) else v for v, used in zip(partly, uses))

    return values
