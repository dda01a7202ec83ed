"""Refuses definitions in which arithmetic on constants leaves its signed type: int32 and int64 overflow is undefined, nothing may rest on
it.

IR before and after: the definitions, which are only read. The constants of a sum count together, `(x + 2147483647) + 1` is refused as well;
those of products with variables do not, so that hashes may wrap. Source: Halide refuses it while it folds constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.build import as_int, i32
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
            known: dict[n.Expr, tuple[int, bool]] = {}
            last = [n.Add(v.min, n.Sub(v.extent, i32(1))) for v in definition.rdom.variables] if definition.rdom else []
            for e in nodes_of((*definition_roots(definition), *last), tuple(_KINDS)):
                if e.type.overflow_is_undefined():
                    _value(e, known, stage, definition.where)


def _value(e: Any, known: dict[n.Expr, tuple[int, bool]], stage: str, where: str) -> tuple[int, bool]:
    """The exact sum of the constants among the terms of an expression, and whether there is nothing else."""
    compute = _KINDS.get(type(e))
    if compute is None or not e.type.overflow_is_undefined():
        value = as_int(e)
        return (0, False) if value is None else (value, True)
    if e not in known:
        (x, x_only), (y, y_only) = _value(e.a, known, stage, where), _value(e.b, known, stage, where)
        only = x_only and y_only
        known[e] = (compute(x, y), only) if only or type(e) is not n.Mul and e.a is not e.b else (0, False)  # x + x is a product
        value = known[e][0]
        if not e.type.min_value() <= value <= e.type.max_value():
            message = (f"In the definition of {stage}, {'' if only else 'the constant part of '}{to_text(e)} is {value}, which {e.type} "
                       "cannot hold: signed overflow is undefined; compute it in a wider type")
            raise CompileError(f"{message} ({where})" if where else message)
    return known[e]
