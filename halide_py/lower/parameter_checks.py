"""Parameter checks: ranges of scalar parameters, split factors known at run time, the pipeline's own requirements, asserted before anything
runs.

IR before: the pipeline. After: Asserts in front of it, one a declared limit and one a requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.module import LoweredArgument
from ..ir.printer import to_text
from ..ir.types import INT32, Float, Int, Type, UInt
from .loop_nest import StageNest


def _wide(t: Type) -> tuple[str, Type]:
    """The suffix of the runtime's error functions for a type, and the type they take."""
    if t.is_float():
        return "f64", Float(64)
    return ("i64", Int(64)) if t.is_int() else ("u64", UInt(64))


def _range_checks(args: Sequence[LoweredArgument]) -> Iterator[n.Stmt]:
    for a in args:
        if a.is_buffer() or a.param is None:
            continue
        value = n.Variable(a.type, a.name, a.param)
        for limit, word in ((a.param.minimum, "small"), (a.param.maximum, "large")):
            if limit is None:
                continue
            suffix, wide = _wide(a.type)
            limit = b.cast(a.type, limit)
            holds = n.LE(limit, value) if word == "small" else n.LE(value, limit)
            call = n.Call(
                INT32,
                f"halide_error_param_too_{word}_{suffix}",
                (b.string(a.name), b.cast(wide, value), b.cast(wide, limit)),
                n.CallType.Extern,
            )
            yield n.Assert(holds, call)


def requirement_failed(condition: n.Expr, message: Sequence[n.Expr]) -> n.Expr:
    """The error call for a requirement: that its condition is false, its message, whose parts are joined by spaces at run time, and the
    condition."""
    text = n.Call(b.string("").type, "stringify", (*message, b.string(f"(required: {to_text(condition)})")), n.CallType.Intrinsic)
    return n.Call(INT32, "halide_error_requirement_failed", (b.string("false"), text), n.CallType.Extern)


def _factor_checks(nests: Sequence[StageNest]) -> Iterator[n.Stmt]:
    """Split factors that are known only at run time must be positive."""
    each = [(b.TRUE, nest) for nest in nests] + [(s.condition, s.nest) for nest in nests for s in nest.specializations]
    for condition, nest in each:
        for split in nest.definition.schedule.splits:
            if split.factor is None or b.as_int(split.factor) is not None:
                continue
            names = (nest.function.name, split.old, split.outer, split.inner, to_text(split.factor))
            error = n.Call(INT32, "halide_error_split_factor_not_positive", (*map(b.string, names), split.factor), n.CallType.Extern)
            yield n.Assert(b.or_(b.not_(condition), n.LT(b.i32(0), split.factor)), error)


def add_parameter_checks(s: n.Stmt, args: Sequence[LoweredArgument], requirements: Sequence[tuple[n.Expr, tuple[n.Expr, ...]]],
                         nests: Sequence[StageNest]) -> n.Stmt:
    """`s` behind the checks."""
    checks = [*_range_checks(args), *_factor_checks(nests), *(n.Assert(c, requirement_failed(c, m)) for c, m in requirements)]
    return b.block([*checks, s]) if checks else s
