"""Values of integer expressions under four assignments to their variables that agree with all that is known: a form that is negative
under one of them is not proved to be otherwise, so nobody need look for a proof.

Only what the prover sees is respected: it takes calls, loads and quotients by variables as variables, so any number in their range will
do; the first assignments take what Selects give where their conditions hold, the others the rest. Vectors stand for their first lane.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import nodes as n
from ..build import as_int
from . import linear
from .ranges import Range

if TYPE_CHECKING:
    from .simplify import Simplifier

Sample = tuple[int, int, int, int, int]  # a number for each assignment; bits: which of them agree with what is known
_ALL = 15
_ENDS, _SIZE = ("max", "extent"), 20000


def refuted(s: Simplifier, terms: linear.Terms, constant: int) -> bool:
    """Whether the form is negative under an assignment that satisfies everything known."""
    *values, fit = _form(s, terms, constant)
    negative = fit & sum(1 << k for k, v in enumerate(values) if v < 0)
    for fact, least in s.facts if negative else ():
        *values, fit = _form(s, fact, least)
        negative &= fit & sum(1 << k for k, v in enumerate(values) if v >= 0)
    return negative != 0


def _form(s: Simplifier, terms: linear.Terms, constant: int) -> Sample:
    i = j = k = m = constant
    fit = _ALL
    for e, c in terms.items():
        one = s.sample(e)
        i += c * one[0]
        j += c * one[1]
        k += c * one[2]
        m += c * one[3]
        fit &= one[4]
    return i, j, k, m, fit


def _numbers(code: int) -> Sample:
    return code % 1999, code // 3 % 2003 - 1000, code // 7 % 97, code // 11 % 3, _ALL


@cache
def _named(name: str) -> Sample:
    """Numbers for a variable, larger for what is called like the end of something."""
    a, b, c, d, fit = _numbers(zlib.crc32(name.encode()))
    return (a + _SIZE, b + _SIZE, c + 100, d + 3, fit) if any(word in name for word in _ENDS) else (a, b, c, d, fit)


def _placed(r: Range, numbers: Sample) -> Sample:
    """Numbers in a range."""
    low, high = r
    a, b, c, d, fit = numbers
    if low is None:
        return numbers if high is None else (high - abs(a), high - abs(b), high - abs(c), high - abs(d), fit)
    if high is None:
        return low + abs(a), low + abs(b), low + abs(c), low + abs(d), fit
    size = high - low + 1
    return (low + a % size, low + b % size, low + c % size, low + d % size, fit) if size > 0 else (a, b, c, d, 0)


def _opaque(s: Simplifier, e: n.Expr) -> Sample:
    return _placed(s.range(e), _numbers(e.symbols % 1000003))


def _within(one: Sample, least: Sample, most: Sample) -> Sample:
    """Values, which agree with what is known where they lie between others."""
    fit = one[4] & least[4] & most[4] & sum(1 << k for k in range(4) if least[k] <= one[k] <= most[k])
    return (*one[:4], fit)


def _in_range(s: Simplifier, e: n.Expr, one: Sample) -> Sample:
    low, high = s.range(e)
    if (low is None or low <= min(one[:4])) and (high is None or max(one[:4]) <= high):
        return one
    fit = sum(1 << k for k in range(4) if (low is None or low <= one[k]) and (high is None or one[k] <= high))
    return (*one[:4], one[4] & fit)


def _variable(s: Simplifier, e: n.Variable) -> Sample:
    low, high = s.limits.get(e.name, (None, None))
    if low is None and high is None:
        return _placed(s.range(e), _named(e.name))
    least, most = s.sample(low or high), s.sample(high or low)  # type: ignore[arg-type]
    if low is high:
        return _in_range(s, e, least)
    one = (least[0], most[1], (least[2] + most[2]) // 2, least[3], _ALL)
    return _in_range(s, e, _within(one, least, most))


def _of_two(operation: Callable[[int, int], int]) -> Callable[[Simplifier, Any], Sample]:
    def rule(s: Simplifier, e: Any) -> Sample:
        a, b = s.sample(e.a), s.sample(e.b)
        return operation(a[0], b[0]), operation(a[1], b[1]), operation(a[2], b[2]), operation(a[3], b[3]), a[4] & b[4]
    return rule


def _by_constant(operation: Callable[[int, int], int]) -> Callable[[Simplifier, Any], Sample]:
    def rule(s: Simplifier, e: Any) -> Sample:
        d = as_int(e.b)
        if d is None or d <= 0:
            return _opaque(s, e)
        a = s.sample(e.a)
        return operation(a[0], d), operation(a[1], d), operation(a[2], d), operation(a[3], d), a[4]
    return rule


_multiplied = _of_two(int.__mul__)


def _product(s: Simplifier, e: n.Mul) -> Sample:
    return _opaque(s, e) if linear.edges(e) is None else _multiplied(s, e)


def _select(s: Simplifier, e: n.Select) -> Sample:
    yes, no = s.sample(e.true_value), s.sample(e.false_value)
    return *yes[:2], *no[2:4], yes[4] & no[4]


def _call(s: Simplifier, e: n.Call) -> Sample:
    if e.name in ("likely", "likely_if_innermost"):
        return s.sample(e.args[0])
    if e.name == "unsafe_promise_clamped":
        return _in_range(s, e, _within(*(s.sample(a) for a in e.args)))
    return _opaque(s, e)


_RULES: dict[type[n.Node], Callable[[Simplifier, Any], Sample]] = {
    n.IntImm: lambda s, e: (*(e.value,) * 4, _ALL), n.Variable: _variable, n.Add: _of_two(int.__add__), n.Sub: _of_two(int.__sub__),
    n.Mul: _product, n.Div: _by_constant(int.__floordiv__), n.Mod: _by_constant(int.__mod__), n.Min: _of_two(min), n.Max: _of_two(max),
    n.Select: _select, n.Call: _call, n.Broadcast: lambda s, e: s.sample(e.value), n.Ramp: lambda s, e: s.sample(e.base)}


def sample_of(s: Simplifier, e: n.Expr) -> Sample:
    """What `e` is under the assignments (not memoised; `Simplifier.sample` is)."""
    rule = _RULES.get(type(e)) if e.type.overflow_is_undefined() else None
    return _opaque(s, e) if rule is None else rule(s, e)
