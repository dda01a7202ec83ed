"""The Expr of a C function declared by `hl.extern`, made once; what cannot be made says where in the C text, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import CompileError, user_error
from ...ir import nodes as n
from ...ir.intrinsics import ExternFunction
from ...ir.traverse import substitute
from .source import CSource, Refusal, read
from .statements import Translation, translate


def translation(row: ExternFunction) -> Translation:
    """What the function of a row with `source` computes. Raises CompileError, with line and column, for what has no Expr."""
    found: Translation | None = row.extra.get("translation")
    if found is None:
        title = row.extra.get("file") or f"the source of {row.name}"
        source = CSource(row.source, title)
        try:
            source = read(row.source, title)
            found = translate(source, row)
        except Refusal as e:
            raise _refused(row, source, e) from None
        row.extra["translation"] = found
    return found


def as_expr(row: ExternFunction, args: Sequence[n.Expr]) -> n.Expr:
    """What a call of the function computes."""
    made = translation(row)
    return substitute({p.name: a for p, a in zip(made.params, args)}, made.value)


def _refused(row: ExternFunction, source: CSource, e: Refusal) -> CompileError:
    place, text = "", ""
    if e.coord is not None:
        place = f", at line {e.coord.line}, column {e.coord.column} of {e.coord.file}"
        text = f": `{source.line(e.coord.line)}`" if e.coord.file == source.title else ""
    rule = f"{row.name}.gradient(lambda {', '.join(['adjoint', 'result', *row.names()])}: ...)"
    return user_error(f"extern: `{row.prototype}`, gradient=\"auto\": the function has no Expr to differentiate: {e.message}{place}{text}. "
                      f"Leave gradient=\"auto\" out and give the rule by hand, with what hl.extern() returns: {rule}")
