"""The language of rewrite rules: patterns written with Python's operators.

`x`, `y`, `z`, `w` match any expression, `c0` and `c1` any constant (a broadcast one too), numbers that constant. A Rule rewrites
what `left` matches into `right`; `fold(...)` in `right` is computed at match time on Python integers. `when` is a condition
on constants; `types` says for which operand types the rule is right:
"int" every integer type, "exact" signed integers of 32 bits and more (no overflow), "bool", "float", "any".
"""

from __future__ import annotations

from typing import Any, NamedTuple, Union

from .. import nodes as n


class Pattern:
    """A node pattern (`kind` is an IR class), a wildcard or an operation on constants (`kind` is a string)."""

    __slots__ = ("kind", "args")

    def __init__(self, kind: Any, *args: Operand) -> None:
        self.kind, self.args = kind, args

    def __add__(self, o: Operand) -> Pattern:
        return Pattern(n.Add, self, o)

    def __radd__(self, o: Operand) -> Pattern:
        return Pattern(n.Add, o, self)

    def __sub__(self, o: Operand) -> Pattern:
        return Pattern(n.Sub, self, o)

    def __rsub__(self, o: Operand) -> Pattern:
        return Pattern(n.Sub, o, self)

    def __mul__(self, o: Operand) -> Pattern:
        return Pattern(n.Mul, self, o)

    def __truediv__(self, o: Operand) -> Pattern:
        return Pattern(n.Div, self, o)

    def __rtruediv__(self, o: Operand) -> Pattern:
        return Pattern(n.Div, o, self)

    def __rmod__(self, o: Operand) -> Pattern:
        return Pattern(n.Mod, o, self)

    def __mod__(self, o: Operand) -> Pattern:
        return Pattern(n.Mod, self, o)

    def __lt__(self, o: Operand) -> Pattern:
        return Pattern(n.LT, self, o)

    def __gt__(self, o: Operand) -> Pattern:
        return Pattern(n.LT, o, self)

    def __le__(self, o: Operand) -> Pattern:
        return Pattern(n.LE, self, o)

    def __ge__(self, o: Operand) -> Pattern:
        return Pattern(n.LE, o, self)

    def __and__(self, o: Operand) -> Pattern:
        return Pattern(n.And, self, o)

    def __or__(self, o: Operand) -> Pattern:
        return Pattern(n.Or, self, o)

    def __invert__(self) -> Pattern:
        return Pattern(n.Not, self)


Operand = Union[Pattern, int, float]


def wild(name: str) -> Pattern:
    """Matches anything, the same thing each time it occurs."""
    return Pattern("wild", name)  # type: ignore[arg-type]


def constant(name: str) -> Pattern:
    """Matches a constant."""
    return Pattern("const", name)  # type: ignore[arg-type]


def eq(a: Operand, b: Operand) -> Pattern:
    """a == b."""
    return Pattern(n.EQ, a, b)


def ne(a: Operand, b: Operand) -> Pattern:
    """a != b."""
    return Pattern(n.NE, a, b)


def min_(a: Operand, b: Operand) -> Pattern:
    """min(a, b)."""
    return Pattern(n.Min, a, b)


def max_(a: Operand, b: Operand) -> Pattern:
    """max(a, b)."""
    return Pattern(n.Max, a, b)


def select(c: Operand, a: Operand, b: Operand) -> Pattern:
    """select(c, a, b)."""
    return Pattern(n.Select, c, a, b)


def fold(e: Pattern) -> Pattern:
    """The constant that an expression of constants is, computed exactly on Python numbers."""
    return Pattern("fold", e)


def fits(e: Pattern) -> Pattern:
    """Guard: the value is in the range of the operands' type."""
    return Pattern("fits", e)


def is_power(e: Pattern) -> Pattern:
    """Guard: a positive power of two."""
    return Pattern("power", e)


def plus_zero(e: Pattern) -> Pattern:
    """Guard: the float 0.0, not -0.0."""
    return Pattern("plus_zero", e)


def minus_zero(e: Pattern) -> Pattern:
    """Guard: the float -0.0."""
    return Pattern("minus_zero", e)


def same_type(a: Pattern, b: Pattern) -> Pattern:
    """Guard: two wildcards have one type (a scalar condition may choose between vectors)."""
    return Pattern("same_type", a, b)


TRUE = Pattern("bool", 1)
FALSE = Pattern("bool", 0)


class Rule(NamedTuple):
    """`left` becomes `right` where `when` holds and the operands' type is one of `types`."""

    left: Pattern
    right: Pattern | int
    when: Pattern | None = None
    types: str = "int"


x, y, z, w = wild("x"), wild("y"), wild("z"), wild("w")
c0, c1 = constant("c0"), constant("c1")
