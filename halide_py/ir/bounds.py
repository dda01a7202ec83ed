"""The machine behind `bounds_of_expr`: scope, memo and helpers; the rules of expressions are in `bounds_rules` and `bounds_of_calls`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import nodes as n
from .build import as_int, const
from .interval_type import FuncValues, Interval, type_interval
from .simplify import linear
from .simplify.ranges import Range
from .simplify.simplify import Simplifier
from .types import Type

# What is never a point even without variables of the scope: values read from memory.
_VARYING = n.Load.bit | n.Call.bit | n.Let.bit
Rule = Callable[["Bounds", Any], Interval]
RULES: dict[type[n.Node], Rule] = {}

_MOST_INNER = 2000  # branches of a Select in a branch of another that are looked at under their own conditions: shared trees have many


class Bounds:
    """Bounds of several expressions under one scope, sharing what was found. `bind` adds variables."""

    def __init__(self, scope: Mapping[str, Interval], func_values: FuncValues = {}) -> None:  # noqa: B006 (never written)
        self.scope = dict(scope)
        self.func_values = func_values
        self.simplifier = Simplifier(scope)
        self.memo: dict[n.Expr, Interval] = {}
        self.limits: list[tuple[linear.Terms, n.Expr | None, n.Expr | None]] = []  # linear forms known to lie between two Exprs
        self.ends: dict[str, tuple[n.Expr, n.Expr]] = {}  # of loops whose range varies: their first and last value
        self.wide: dict[str, Interval] = {}  # the intervals of variables before conditions narrowed them
        self.mentioning: dict[n.Expr, bool] = {}
        self.inside, self.inner = False, [_MOST_INNER]  # whether this is a branch of an expression, and how many inside others may follow
        self.bits = 0
        for name in scope:
            self.bits |= n.symbol_bit(name)

    def copy(self) -> Bounds:
        """The same scope and limits, to narrow further in a branch."""
        out = Bounds(self.scope, self.func_values)
        out.limits = list(self.limits)
        out.ends = self.ends
        return out

    def branch(self) -> Bounds | None:
        """A copy for a branch of an expression; None where too many inside others were made."""
        if self.inside:
            if not self.inner[0]:
                return None
            self.inner[0] -= 1
        out = self.copy()
        out.inside, out.inner = True, self.inner
        return out

    def bind(self, name: str, interval: Interval) -> bool:
        """Let a variable range over an interval. True if it had another one (copies of code bind names twice): what was found is
        forgotten."""
        before = self.scope.get(name, interval)
        self.scope[name] = interval
        if before != interval:
            self.memo.clear()
            self.wide.pop(name, None)
            self.simplifier = Simplifier(self.scope)
            return True
        self.bits |= n.symbol_bit(name)
        self.mentioning.clear()
        self.simplifier.limit(name, interval.min, interval.max)
        return False

    def varies(self, e: n.Expr) -> bool:
        """Whether `e` mentions a variable of the scope: exactly, since what is found must not depend on hashes."""
        if not e.symbols & self.bits:
            return False
        found = self.mentioning.get(e)
        if found is None:
            found = e.name in self.scope if type(e) is n.Variable else any(map(self.varies, e.children()))
            self.mentioning[e] = found
        return found

    def of(self, e: n.Expr) -> Interval:
        """The interval of `e`."""
        return self.bounds(self.simplifier.expr(e))

    def bounds(self, e: n.Expr) -> Interval:
        """The interval of a simplified expression."""
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self._bounds(e)
        return found

    def _bounds(self, e: n.Expr) -> Interval:
        if not e.mask & _VARYING and e.type.is_scalar() and not self.varies(e):
            return Interval(e, e)
        rule = RULES.get(type(e))
        if rule is None:
            return type_interval(e.type)
        found = rule(self, e)
        return found if found.is_bounded() or not e.type.is_int_or_uint() else self._within_range(e, found)

    def _within_range(self, e: n.Expr, i: Interval) -> Interval:
        """Where a rule knows no limit, the constant the simplifier knows, unless it is just the end of the type."""
        t = e.type.element_of()
        low, high = self.simplifier.range(e)
        if i.min is None and low is not None and low > t.min_value():
            i = Interval(const(t, low), i.max)
        if i.max is None and high is not None and high < t.max_value():
            i = Interval(i.min, const(t, high))
        return i

    def simple(self, e: n.Expr) -> n.Expr:
        """Simplified."""
        return self.simplifier.expr(e)

    def range(self, i: Interval) -> Range:
        """The constant range of an interval's values."""
        r = self.simplifier.range
        return (None if i.min is None else r(i.min)[0]), (None if i.max is None else r(i.max)[1])

    def nonnegative(self, i: Interval) -> bool:
        """Whether no value is certain to be below 0."""
        low = self.range(i)[0]
        return low is not None and low >= 0

    def constant(self, t: Type, r: Range) -> Interval:
        """A constant range as an interval."""
        t = t.element_of()
        return Interval(None if r[0] is None else const(t, r[0]), None if r[1] is None else const(t, r[1]))

    def join(self, parts: Iterable[Interval]) -> Interval:
        """The union of several, simplified with what is known here."""
        low: n.Expr | None = None
        high: n.Expr | None = None
        first = True
        for i in parts:
            low = i.min if first else None if low is None or i.min is None else low if low is i.min else n.Min(low, i.min)
            high = i.max if first else None if high is None or i.max is None else high if high is i.max else n.Max(high, i.max)
            first = False
        return Interval(None if low is None else self.simple(low), None if high is None else self.simple(high))

    def monotone(self, i: Interval, f: Callable[[n.Expr], n.Expr]) -> Interval:
        """The interval of a function that never decreases."""
        low = None if i.min is None else self.simple(f(i.min))
        return Interval(low, low if i.max is i.min else None if i.max is None else self.simple(f(i.max)))

    def narrow(self, name: str, interval: Interval) -> None:
        """Limit a variable of the scope further."""
        i = self.scope[name]
        self.wide.setdefault(name, i)
        self.scope[name] = i.intersection(interval)
        self.memo.clear()

    def sum_of(self, e: n.Expr, terms: linear.Terms, constant: int, wide: bool = False) -> Interval:
        """The interval of a linear form; `wide` takes variables as they are without conditions. No limits where numbers alone leave the
        type: the sum may wrap there, and its ends would."""
        low: n.Expr | None = const(e.type.element_of(), 0)
        high = low
        first, last = constant, constant  # the ends' constants, exact
        point = True
        for term, c in terms.items():
            i = self.wide[term.name] if wide and type(term) is n.Variable and term.name in self.wide else self.bounds(term)
            if c < 0:
                i = Interval(i.max, i.min)
            point = point and i.min is not None and i.min is i.max
            low, first = self._plus(low, first, i.min, c)
            high, last = self._plus(high, last, i.max, c)
        t = e.type.element_of()
        if (
            low is not None
            and as_int(low) == 0
            and not t.can_represent_value(first)
            or high is not None
            and as_int(high) == 0
            and not t.can_represent_value(last)
        ):
            return Interval()
        low = None if low is None else self.simple(linear.offset(low, first))
        return Interval(low, low if point else None if high is None else self.simple(linear.offset(high, last)))

    @staticmethod
    def _plus(total: n.Expr | None, constant: int, end: n.Expr | None, factor: int) -> tuple[n.Expr | None, int]:
        """`total` + `constant` + `factor` * `end`, its numbers apart."""
        if total is None or end is None:
            return None, constant
        value = as_int(end)
        if value is not None:
            return total, constant + factor * value
        return n.Add(total, linear.scaled(end, factor)), constant
