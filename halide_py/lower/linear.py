"""Conditions solved for a loop variable: `2 * x + a < y` becomes `x <= (y - a - 1) / 2`.

Conditions are conjunctions of comparisons; vectors are decided by their extreme lanes. What is not linear in the variable with
a constant coefficient is not solved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval, bounds_of_expr
from ..ir.simplify import simplify
from ..ir.traverse import free_variables, mentions, substitute
from ..ir.types import INT32
from . import lanes


@dataclass
class Limits:
    """The condition holds for low <= x <= high, for all of `low` and `high`; if `exact`, nowhere else."""

    low: list[n.Expr] = field(default_factory=list)
    high: list[n.Expr] = field(default_factory=list)
    exact: bool = True


_NEGATED: dict[type[n.Expr], type[n.Expr]] = {n.LT: n.GE, n.LE: n.GT, n.GT: n.LE, n.GE: n.LT, n.NE: n.EQ}


def conjuncts(c: n.Expr, negated: bool = False) -> Iterator[n.Expr]:
    """The parts of a conjunction (of the negation, if `negated`); Nots are pushed inwards."""
    while isinstance(c, n.Broadcast):
        c = c.value
    if isinstance(c, n.Not):
        yield from conjuncts(c.a, not negated)
    elif isinstance(c, n.Or if negated else n.And):
        yield from conjuncts(c.a, negated)
        yield from conjuncts(c.b, negated)
    elif negated and type(c) in _NEGATED:
        yield _NEGATED[type(c)](c.a, c.b)  # type: ignore[call-arg,attr-defined]
    else:
        yield b.not_(c) if negated else c


def _differences(c: n.Expr) -> list[tuple[n.Expr, bool]] | None:
    """Scalars that are all >= 0 where comparison `c` of int32 holds in all lanes (with: is that exact); None for anything else."""
    if not isinstance(c, (n.LT, n.LE, n.GT, n.GE, n.EQ)) or c.a.type.element_of() is not INT32:
        return None
    x, y = lanes.bounds(c.a), lanes.bounds(c.b)
    if x is None or y is None:
        return None
    exact = x[0] is x[1] or y[0] is y[1]
    one = b.i32(1)
    up, down = b.sub(y[0], x[1]), b.sub(x[0], y[1])  # a <= b, a >= b
    if isinstance(c, n.EQ):
        return [(up, exact), (down, exact)]
    if isinstance(c, (n.LT, n.LE)):
        return [(up if isinstance(c, n.LE) else b.sub(up, one), exact)]
    return [(down if isinstance(c, n.GE) else b.sub(down, one), exact)]


def coefficient(e: n.Expr, name: str) -> tuple[int, n.Expr] | None:
    """(k, rest) with e = k * name + rest and rest free of it; None if `e` is not of this form."""
    here = n.Variable(INT32, name)
    rest = simplify(substitute({name: b.i32(0)}, e))
    step = b.as_int(simplify(b.sub(substitute({name: b.add(here, b.i32(1))}, e), e)))
    if step is None or b.as_int(simplify(b.sub(b.sub(e, b.mul(here, b.i32(step))), rest))) != 0:
        return None
    return step, rest


def solve(condition: n.Expr, name: str, inner: Mapping[str, Interval]) -> Limits | None:
    """Limits for int32 variable `name` within which `condition` holds whatever the variables `inner` are (in their intervals); None if
    some part of it cannot be solved or does not depend on `name` at all."""
    limits = Limits()
    for part in conjuncts(condition):
        differences = _differences(part)
        if differences is None:
            return None
        for e, exact in differences:
            if not _limit(simplify(e), exact, name, inner, limits):
                return None
    return limits if limits.low or limits.high else None


def _limit(e: n.Expr, exact: bool, name: str, inner: Mapping[str, Interval], limits: Limits) -> bool:
    """Add the limit on `name` that makes e >= 0; False if there is none to be found."""
    if any(v in inner for v in free_variables(e)):
        least = bounds_of_expr(e, inner).min
        if least is None:
            return False
        e, exact = simplify(least), False
    if e.mask & (n.Load.bit | n.Call.bit | n.Let.bit) or not mentions(e, name):
        return False
    form = coefficient(e, name)
    if form is None or form[0] == 0:
        return False
    k, rest = form
    if k > 0:  # k x + rest >= 0
        limits.low.append(simplify(b.div(b.add(b.sub(b.i32(0), rest), b.i32(k - 1)), b.i32(k))))
    else:
        limits.high.append(simplify(b.div(rest, b.i32(-k))))
    limits.exact = limits.exact and exact
    return True
