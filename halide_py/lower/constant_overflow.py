"""Refuses definitions in which arithmetic on constants leaves its signed type: int32 and int64 overflow is undefined, nothing may rest on it.

IR before and after: the definitions, which are only read. Limits: sums of constants and variables are not gathered. Source: Halide refuses it
while it folds constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.build import as_int
from ..ir.function import Function
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from .environment import definition_roots

_KINDS: dict[type[n.Node], Any] = {n.Add: lambda x, y: x + y, n.Sub: lambda x, y: x - y, n.Mul: lambda x, y: x * y}


def check_constants(env: Mapping[str, Function]) -> None:
    """Raises CompileError that names the Func, the stage and the expression."""
    for f in env.values():
        for k, definition in enumerate(f.stages()):
            stage = f"update {k - 1} of Func {f.name}" if k else f"Func {f.name}"
            known: dict[n.Expr, int | None] = {}
            for e in nodes_of(definition_roots(definition), tuple(_KINDS)):
                if e.type.overflow_is_undefined():
                    _value(e, known, stage)


def _value(e: Any, known: dict[n.Expr, int | None], stage: str) -> int | None:
    """The exact value of an expression of constants, None for any other."""
    compute = _KINDS.get(type(e))
    if compute is None or not e.type.overflow_is_undefined():
        return as_int(e)
    if e not in known:
        x, y = _value(e.a, known, stage), _value(e.b, known, stage)
        value = known[e] = None if x is None or y is None else compute(x, y)
        if value is not None and not e.type.min_value() <= value <= e.type.max_value():
            raise CompileError(f"In the definition of {stage}, {to_text(e)} is {value}, which {e.type} cannot hold: signed overflow is undefined; "
                               "compute it in a wider type")
    return known[e]
