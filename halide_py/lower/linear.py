"""Conditions solved for a loop variable: `2 * x + a < y` becomes `x <= (y - a - 1) / 2`.

Conditions are conjunctions of comparisons; vectors are decided by their extreme lanes, lets are looked through, inner loop variables
are replaced by the end of their range that makes the condition hardest, and a Min or Max of the variable is taken apart: `min(x, a) >= 0`
is two conditions, `min(x, a) <= y` is `x <= y unless a <= y`. What else is not linear in the variable is not solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval, bounds_of_expr
from ..ir.simplify.linear import Terms, difference, gather, rebuild
from ..ir.traverse import free_variables, substitute
from ..ir.types import INT32
from . import lanes


@dataclass(frozen=True)
class Bound:
    """factor * x + terms + constant >= 0, or else `unless`, which does not depend on x."""

    factor: int
    terms: tuple[tuple[n.Expr, int], ...]
    constant: int
    unless: n.Expr = b.FALSE

    def limit(self, free: n.Expr) -> n.Expr:
        """The least x that satisfies it (factor > 0), or the greatest (factor < 0); `free` where `unless` holds."""
        return b.select(self.unless, free, self._limit())

    def _limit(self) -> n.Expr:
        if self.factor > 0:
            rest = rebuild(INT32, {e: -k for e, k in self.terms}, self.factor - 1 - self.constant)
            return b.div(rest, b.i32(self.factor))
        return b.div(rebuild(INT32, dict(self.terms), self.constant), b.i32(-self.factor))


@dataclass
class Limits:
    """The condition holds where all of `bounds` do, and `where`, which does not depend on the variable; if `exact`, nowhere else. `loops`
    are the inner loops it varies with."""

    bounds: list[Bound] = field(default_factory=list)
    where: n.Expr = b.TRUE
    exact: bool = True
    loops: set[str] = field(default_factory=set)

    def low(self) -> list[Bound]:
        """Those that limit x from below."""
        return [one for one in self.bounds if one.factor > 0]

    def high(self) -> list[Bound]:
        """Those that limit x from above."""
        return [one for one in self.bounds if one.factor < 0]


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


def _differences(c: n.Expr) -> list[tuple[Terms, int, bool]] | None:
    """Linear forms that are all >= 0 where comparison `c` of int32 holds in all lanes (with: is that exact); None for anything else."""
    if not isinstance(c, (n.LT, n.LE, n.GT, n.GE, n.EQ)) or c.a.type.element_of() is not INT32:
        return None
    x, y = lanes.bounds(c.a), lanes.bounds(c.b)
    if x is None or y is None:
        return None
    exact = x[0] is x[1] or y[0] is y[1]
    strict = 1 if isinstance(c, (n.LT, n.GT)) else 0
    out = []
    if not isinstance(c, (n.GT, n.GE)):
        terms, constant = difference(y[0], x[1])
        out.append((terms, constant - strict, exact))
    if not isinstance(c, (n.LT, n.LE)):
        terms, constant = difference(x[0], y[1])
        out.append((terms, constant - strict, exact))
    return out


def _plus(terms: Terms, constant: int, e: n.Expr, k: int) -> tuple[Terms, int]:
    """terms + constant + k * e."""
    out = dict(terms)
    more, c = gather(e)
    for t, f in more.items():
        out[t] = out.get(t, 0) + f * k
    return out, constant + c * k


def _both(sides: list[Limits | None], exact: bool) -> Limits | None:
    """Where both conditions hold."""
    first, second = sides
    if first is None or second is None:
        return None
    return Limits(first.bounds + second.bounds, b.and_(first.where, second.where), exact and first.exact and second.exact)


def _either(sides: list[Limits | None]) -> Limits | None:
    """Where one of two conditions holds: the one that depends on the variable, unless the other holds; if both do, the first."""
    known = [side for side in sides if side is not None]
    moving = [side for side in known if side.bounds]
    if not moving:
        return Limits([], b.or_(known[0].where, known[-1].where), False) if known else None
    unless = next((side.where for side in known if not side.bounds), b.FALSE)
    bounds = [Bound(one.factor, one.terms, one.constant, b.or_(one.unless, unless)) for one in moving[0].bounds]
    return Limits(bounds, b.or_(moving[0].where, unless), False)


class Solver:
    """Solves conditions found inside loop `name` for its variable; knows the lets and loops entered on the way to them.
    `resolve` is applied to what lets and loop ranges stand for."""

    def __init__(self, name: str, resolve: Callable[[n.Expr], n.Expr]) -> None:
        self.name, self.resolve = name, resolve
        self.lets: dict[str, n.Expr] = {}
        self.loops: dict[str, tuple[n.Expr, n.Expr]] = {}
        self.varying = {name}  # the loop variable and the lets and loop ranges that depend on it
        self.bits = n.symbol_bit(name)

    def let(self, name: str, value: n.Expr) -> None:
        """Enter the scope of a let."""
        self.lets[name] = value
        self._note(name, value)

    def loop(self, name: str, first: n.Expr, last: n.Expr) -> None:
        """Enter an inner loop."""
        self.loops[name] = first, last
        self._note(name, first, last)

    def _note(self, name: str, *values: n.Expr) -> None:
        if any(self.varies(e) for e in values):
            self.varying.add(name)
            self.bits |= n.symbol_bit(name)

    def varies(self, e: n.Expr) -> bool:
        """Whether `e` depends on the loop variable."""
        return bool(e.symbols & self.bits) and not self.varying.isdisjoint(free_variables(e))

    def solve(self, condition: n.Expr) -> Limits | None:
        """Limits for the loop variable within which `condition` holds; None if some part of it cannot be solved or does not depend on the
        variable."""
        if not self.varies(condition):
            return None
        limits = Limits()
        for part in conjuncts(condition):
            differences = _differences(part)
            if differences is None or not all(self._limit(*one, limits) for one in differences):
                return None
        return limits

    def _limit(self, terms: Terms, constant: int, exact: bool, limits: Limits) -> bool:
        """Add the bound on the variable that terms + constant >= 0 is; False if there is none."""
        found = self._bounds(terms, constant, limits.loops)
        if found is None or not found.bounds:
            return False
        limits.bounds += found.bounds
        limits.where = b.and_(limits.where, found.where)
        limits.exact = limits.exact and exact and found.exact
        return True

    def _bounds(self, terms: Terms, constant: int, loops: set[str]) -> Limits | None:
        """Where terms + constant >= 0; with no bounds if that does not depend on the variable."""
        form = self._expand(terms, constant, loops)
        if form is None:
            return None
        terms, constant, exact = form
        chosen = next((e for e in terms if isinstance(e, (n.Min, n.Max)) and self._is_inside(e)), None)
        if chosen is not None:
            k = terms.pop(chosen)
            sides = [self._bounds(*_plus(terms, constant, e, k), loops) for e in (chosen.a, chosen.b)]
            return _both(sides, exact) if isinstance(chosen, n.Min) == (k > 0) else _either(sides)
        factor = terms.pop(n.Variable(INT32, self.name), 0)
        if not factor:
            return Limits([], b.le(b.i32(0), rebuild(INT32, terms, constant)), exact)
        return Limits([Bound(factor, tuple(terms.items()), constant)], exact=exact)

    def _expand(self, terms: Terms, constant: int, loops: set[str]) -> tuple[Terms, int, bool] | None:
        """The form in terms of the loop variable, of extrema of it, and of what is outside of the loop, and whether it is the same and not
        just smaller."""
        out: Terms = {}
        exact = True
        work = list(terms.items())
        while work:
            e, k = work.pop()
            value: n.Expr | None = None
            if isinstance(e, n.Variable):
                if e.name in self.lets:
                    value = self.resolve(self.lets[e.name])
                elif e.name in self.loops:
                    loops.add(e.name)
                    value, exact = self.resolve(self.loops[e.name][k < 0]), False
            elif self._is_inside(e) and not (isinstance(e, (n.Min, n.Max)) and self.varies(e)):
                value, exact = self._extreme(e, k, loops), False
                if value is None:
                    return None
            elif e.mask & (n.Load.bit | n.Call.bit | n.Let.bit):
                return None
            if value is None:
                out[e] = out.get(e, 0) + k
                if not out[e]:
                    del out[e]
            else:
                more, c = gather(value)
                constant += c * k
                work.extend((t, f * k) for t, f in more.items())
        return out, constant, exact

    def _is_inside(self, e: n.Expr) -> bool:
        names = free_variables(e)
        return self.name in names or not (names.keys().isdisjoint(self.lets) and names.keys().isdisjoint(self.loops))

    def _extreme(self, e: n.Expr, k: int, loops: set[str]) -> n.Expr | None:
        """The least (k > 0) or greatest value that a term which is not linear takes over the inner loops."""
        if e.mask & (n.Load.bit | n.Let.bit) or self.varies(e):
            return None
        while True:
            inside = {name: self.resolve(self.lets[name]) for name in free_variables(e) if name in self.lets}
            if not inside:
                break
            e = substitute(inside, e)
        scope = {name: Interval(self.resolve(low), self.resolve(high)) for name, (low, high) in self.loops.items()}
        loops.update(free_variables(e).keys() & scope.keys())
        interval = bounds_of_expr(e, scope)
        value = interval.min if k > 0 else interval.max
        return None if value is None or value is e or value.mask & (n.Load.bit | n.Call.bit) else value
