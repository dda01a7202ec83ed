"""Intervals with symbolic ends: what regions are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import NamedTuple

from . import nodes as n
from .build import const
from .simplify import simplify
from .types import Type


class Interval(NamedTuple):
    """The values from `min` to `max`, both included and both scalar Exprs of one type; None where there is no limit."""

    min: n.Expr | None = None
    max: n.Expr | None = None

    @staticmethod
    def everything() -> Interval:
        """No limits."""
        return _EVERYTHING

    @staticmethod
    def point(e: n.Expr) -> Interval:
        """One value."""
        return Interval(e, e)

    def is_bounded(self) -> bool:
        """Whether both ends are limited."""
        return self.min is not None and self.max is not None

    def is_point(self) -> bool:
        """Whether it is one value for certain."""
        return self.min is not None and self.min is self.max

    def is_everything(self) -> bool:
        """Whether neither end is limited."""
        return self.min is None and self.max is None

    def union(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        low = None if self.min is None or other.min is None else _pick(n.Min, self.min, other.min)
        high = None if self.max is None or other.max is None else _pick(n.Max, self.max, other.max)
        return Interval(low, high)

    @staticmethod
    def hull(intervals: Iterable[Interval]) -> Interval:
        """The smallest interval that holds all of them, at least one; simplified once, however many they are."""
        several = list(intervals)
        return Interval(_all(n.Min, [i.min for i in several]), _all(n.Max, [i.max for i in several]))

    def intersection(self, other: Interval) -> Interval:
        """What lies in both; its min may exceed its max."""
        low = other.min if self.min is None else self.min if other.min is None else _pick(n.Max, self.min, other.min)
        high = other.max if self.max is None else self.max if other.max is None else _pick(n.Min, self.max, other.max)
        return Interval(low, high)


_EVERYTHING = Interval(None, None)


def _pick(kind: Callable[[n.Expr, n.Expr], n.Expr], a: n.Expr, b: n.Expr) -> n.Expr:
    return a if a is b else simplify(kind(a, b))


def _all(kind: Callable[[n.Expr, n.Expr], n.Expr], ends: list[n.Expr | None]) -> n.Expr | None:
    known: dict[n.Expr, None] = {}
    for e in ends:
        if e is None:
            return None
        known[e] = None
    return next(iter(known)) if len(known) == 1 else simplify(reduce(kind, known))


def type_interval(t: Type) -> Interval:
    """What a value of a type alone can be: narrow integers are bounded, unsigned ones from below, all else is not."""
    t = t.element_of()
    if not t.is_int_or_uint() or t.overflow_is_undefined():
        return _EVERYTHING
    return Interval(const(t, t.min_value()), const(t, t.max_value()) if t.bits() < 32 else None)


FuncValues = Mapping[tuple[str, int], Interval]
