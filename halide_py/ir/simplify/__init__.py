"""The simplifier: `simplify` an Expr or Stmt, `prove` a condition, find a `constant_bound`.

What lives here: the linear form of integer sums (`linear`), constant ranges (`ranges`), the prover (`prover`), the handlers
of each kind of expression (`arithmetic`, `compare`, `logic`, `calls`, `vectors`), rules as data (`rules_*`, compiled by
`compile_rules` on first use) and of statements (`statements`). Imports the rest of `ir`; nothing imports it but passes above.

Signed integers of 32 and 64 bits may be assumed not to overflow; every other result is exactly that of the original.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .. import nodes as n
from ..build import is_true
from ..traverse import deep_recursion
from . import arithmetic, calls, compare, linear, logic, vectors  # noqa: F401  (they register their handlers)
from .prover import lower_limit
from .simplify import Limits, Simplifier, remembering
from .statements import assuming, count_uses, drop_dead_lets, statement

N = TypeVar("N", bound=n.Node)
_PROOF_BUDGET = 300


def simplify(node: N, bounds: Limits = None) -> N:
    """`node`, an Expr or Stmt, in simpler form with the same meaning. `bounds` gives the ranges of free variables, inclusive."""
    s = Simplifier(bounds)
    if node.mask & (n.Let.bit | n.LetStmt.bit):
        s.uses = count_uses(node)
    with deep_recursion():
        out: Any = s.expr(node) if isinstance(node, n.Expr) else statement(s, node)  # type: ignore[arg-type]
        return drop_dead_lets(out)  # type: ignore[no-any-return]


def simplify_given(e: n.Expr, condition: n.Expr) -> n.Expr:
    """`e` simplified for where the scalar `condition` holds."""
    s = Simplifier(None)
    if e.mask & n.Let.bit:
        s.uses = count_uses(e)
    with deep_recursion(), assuming(s, s.expr(condition)):
        return drop_dead_lets(s.expr(e))  # type: ignore[no-any-return]


def prove(condition: n.Expr, bounds: Limits = None) -> bool:
    """Whether `condition` (a scalar bool) is certain to hold for all values of its variables, within `bounds` where given. False: not
    proved."""
    s = Simplifier(bounds)
    with deep_recursion():
        return _prove(s, s.expr(condition))


def _prove(s: Simplifier, c: n.Expr) -> bool:
    if is_true(c):
        return True
    kind = type(c)
    if kind is n.And:
        return _prove(s, c.a) and _prove(s, c.b)  # type: ignore[attr-defined]
    if kind is n.Or:
        return _prove(s, c.a) or _prove(s, c.b)  # type: ignore[attr-defined]
    if kind is n.Call and c.name in ("likely", "likely_if_innermost"):  # type: ignore[attr-defined]
        return _prove(s, c.args[0])  # type: ignore[attr-defined]
    if kind not in (n.LT, n.LE, n.EQ) or not c.a.type.overflow_is_undefined() or c.type.is_vector():  # type: ignore[attr-defined]
        return False
    terms, constant = linear.difference(c.b, c.a)  # type: ignore[attr-defined]
    low = lower_limit(s, terms, constant - (kind is n.LT), _PROOF_BUDGET)
    if low is None or low < 0:
        return False
    if kind is not n.EQ:
        return True
    low = lower_limit(s, {e: -k for e, k in terms.items()}, -constant, _PROOF_BUDGET)
    return low is not None and low >= 0


def constant_bound(e: n.Expr, upper: bool, bounds: Limits = None) -> int | None:
    """A number that the integer `e` never exceeds (or never falls below, for upper=False), as tight as is found; None if there is none."""
    s = Simplifier(bounds)
    with deep_recursion():
        e = s.expr(e)
        low, high = s.range(e)
        if not e.type.overflow_is_undefined():
            return high if upper else low
        terms, constant = linear.gather(e)
        if upper:
            terms, constant = {t: -k for t, k in terms.items()}, -constant
        found = lower_limit(s, terms, constant, _PROOF_BUDGET, 1 << 70)
        if found is not None:
            return -found if upper else found
        return high if upper else low


__all__ = ["constant_bound", "prove", "remembering", "simplify", "simplify_given"]
