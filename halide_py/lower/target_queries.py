"""Questions about the target become constants.

Before: calls such as `target_has_feature(12)`. After: `true` or `false`, a number. Behaviour: Halide's target_has_feature() and
its kin, IROperator.h, which it answers in LowerTargetQueryOps.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import Rec, rewrite

Answer = Callable[[Target, n.Call], "int | bool"]


def _number(c: n.Call) -> int:
    return b.as_int(c.args[0]) or 0


_ANSWERS: dict[str, Answer] = {
    "target_arch_is": lambda t, c: int(t.arch) == _number(c),
    "target_os_is": lambda t, c: int(t.os) == _number(c),
    "target_has_feature": lambda t, c: any(t.has_feature(f) for f in TargetFeature if int(f) == _number(c)),
    "target_bits": lambda t, c: t.bits,
    "target_natural_vector_size": lambda t, c: t.natural_vector_size(c.args[0].type),
}
_BITS = 0
for _name in _ANSWERS:
    _BITS |= n.symbol_bit(_name)


def answer_target_queries(stmt: n.Stmt, target: Target) -> n.Stmt:
    """`stmt` with the answers for `target`."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        answer = _ANSWERS.get(c.name) if c.call_type is n.CallType.PureIntrinsic else None
        out: n.Expr = b.const(c.type, int(answer(target, c))) if answer else c.map_children(rec)
        return out

    return rewrite(stmt, {n.Call: call}, _BITS)
