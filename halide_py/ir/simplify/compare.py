"""Minimum, maximum and comparisons: decided by the limits of differences, brought to one form where undecided.

Signed integers of 32 bits and more compare by the linear form of a - b: what both sides share cancels, common factors divide
out, LE turns into LT where that costs no addition. Chains of min (max) are sets: operands that never win are dropped, what all
share is taken out. Other integer types use constant ranges only.
"""

from __future__ import annotations

import math
from typing import Any

from .. import nodes as n
from ..build import as_int, const, euclid_div
from ..types import BOOL, Type
from . import linear
from .arithmetic import combine
from .compile_rules import apply_rules
from .fold import fold_binary
from .ranges import is_large, strays
from .simplify import Simplifier, handles

_PAIRWISE = 6  # chains longer than this are not compared pair by pair


def flatten(s: Simplifier, root: Any) -> list[n.Expr]:
    """The distinct simplified operands of a tree of one associative, idempotent operation, in order."""
    kind = type(root)
    found: dict[n.Expr, None] = {}
    seen: set[n.Expr] = set()
    stack = [root]
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if type(e) is not kind:
            simpler = s.expr(e)
            if type(simpler) is not kind:
                found[simpler] = None
                continue
            e = simpler
        stack.append(e.b)
        stack.append(e.a)
    return list(found)


def chain(kind: Any, operands: list[n.Expr]) -> Any:
    """The operands joined left to right."""
    out = operands[0]
    for x in operands[1:]:
        out = kind(out, x)
    return out


@handles(n.Min, n.Max)
def extremum(s: Simplifier, e: Any) -> n.Expr:
    """min(a, b), max(a, b)."""
    kind, t = type(e), e.type
    if not t.is_int_or_uint():
        return float_extremum(s, e)
    operands = flatten(s, e)
    constants = [k for x in operands if (k := as_int(x)) is not None]
    if constants:
        best = min(constants) if kind is n.Min else max(constants)
        operands = [x for x in operands if as_int(x) is None]
        if not operands or best == (t.min_value() if kind is n.Min else t.max_value()):
            return const(t, best)
        if best != (t.max_value() if kind is n.Min else t.min_value()):
            operands.append(const(t, best))
    if len(operands) > 1:
        operands = _absorb(kind, operands)
    if len(operands) == 1:
        return operands[0]
    if t.overflow_is_undefined():
        return _linear_extremum(s, kind, t, operands)
    return finish(s, kind, _by_ranges(s, kind, operands))


def float_extremum(s: Simplifier, e: Any) -> n.Expr:
    """Of floats: only what is exact."""
    a, b = s.expr(e.a), s.expr(e.b)
    folded = fold_binary(type(e), a, b)
    if folded is not None:
        return folded
    if a is b:
        return a
    if type(a) is n.Broadcast and type(b) is n.Broadcast and a.lanes == b.lanes:
        return n.Broadcast(s.expr(type(e)(a.value, b.value)), a.lanes)
    return apply_rules(s, e if a is e.a and b is e.b else type(e)(a, b))


def finish(s: Simplifier, kind: Any, operands: list[n.Expr]) -> n.Expr:
    """The chain, after the rules for two operands."""
    first = operands[0]
    if type(first) is n.Broadcast and all(type(x) is n.Broadcast and x.lanes == first.lanes for x in operands):
        return n.Broadcast(s.expr(chain(kind, [x.value for x in operands])), first.lanes)  # type: ignore[attr-defined]
    if len(operands) != 2:
        return chain(kind, operands)  # type: ignore[no-any-return]
    a, b = operands
    opposite = n.Max if kind is n.Min else n.Min
    high = as_int(b)
    if kind is n.Min and high is not None and type(a) is opposite:
        low = as_int(a.b)
        if low is not None and low <= high:  # one form of clamp: max(min(x, high), low)
            return s.expr(n.Max(n.Min(a.a, b), a.b))
    return apply_rules(s, kind(a, b))


def _absorb(kind: Any, operands: list[n.Expr]) -> list[n.Expr]:
    """min(x, max(x, y)) is x."""
    opposite = n.Max if kind is n.Min else n.Min
    if not any(type(x) is opposite for x in operands):
        return operands
    present = set(operands)

    def hit(e: Any) -> bool:
        while type(e) is opposite:
            if e.b in present:
                return True
            e = e.a
        return e in present

    return [x for x in operands if type(x) is not opposite or not hit(x)]


def _by_ranges(s: Simplifier, kind: Any, operands: list[n.Expr]) -> list[n.Expr]:
    """Operands without those whose range lies beyond another's."""
    if len(operands) > _PAIRWISE:
        return operands
    kept: list[n.Expr] = []
    for x in operands:
        low, high = s.range(x)
        if kind is n.Max:
            low, high = None if high is None else -high, None if low is None else -low
        wins: list[n.Expr] = []
        loses = False
        for y in kept:
            least, most = s.range(y)
            if kind is n.Max:
                least, most = None if most is None else -most, None if least is None else -least
            if most is not None and low is not None and most <= low:
                loses = True
            if loses or not (high is not None and least is not None and high <= least):
                wins.append(y)
        kept = wins if loses else [*wins, x]
    return kept


def _linear_extremum(s: Simplifier, kind: Any, t: Type, operands: list[n.Expr]) -> n.Expr:
    sign = 1 if kind is n.Min else -1
    groups: dict[frozenset[tuple[n.Expr, int]], tuple[linear.Terms, int]] = {}
    for x in operands:
        terms, constant = linear.gather(x)
        key = frozenset(terms.items())
        before = groups.get(key)
        if before is None or sign * constant < sign * before[1]:
            groups[key] = (terms, constant)
    forms = list(groups.values())
    if len(forms) > 1 and len(forms) <= _PAIRWISE:
        forms = _undominated(s, forms, sign)
    if len(forms) == 1:
        return combine(s, t, *forms[0])
    forms.sort(key=lambda f: not f[0])  # a constant comes last, where the other rules look for it
    if any(is_large(c) for terms, _ in forms for c in terms.values()):  # a hash: sums may wrap where their terms do not
        return finish(s, kind, [combine(s, t, *f) for f in forms])
    whole, common = forms, dict(forms[0][0])
    for terms, _ in forms[1:]:
        common = {x: c for x, c in common.items() if terms.get(x) == c}
    if common:
        forms = [({x: c for x, c in terms.items() if x not in common}, k) for terms, k in forms]
    shift = _shift(forms, t)
    factor = math.gcd(*(c for terms, k in forms for c in (k - shift, *terms.values())))
    if not common and not shift and factor == 1 or any(strays(s, t, terms, k - shift) for terms, k in forms):
        return finish(s, kind, [combine(s, t, *f) for f in whole])
    rest = chain(kind, [combine(s, t, {x: c // factor for x, c in terms.items()}, (k - shift) // factor) for terms, k in forms])
    rest = s.expr(rest)
    if type(rest) is kind and not common and not shift and factor == 1:
        return rest
    return s.expr(n.Add(combine(s, t, common, 0), n.Add(linear.scaled(rest, factor), const(t, shift))))


def _shift(forms: list[tuple[linear.Terms, int]], t: Type) -> int:
    """The constant worth taking out of all operands: that of the first, if no more additions remain."""
    shift = next((k for terms, k in forms if terms), 0)
    before = sum(1 for terms, k in forms if terms and k)
    after = sum(1 for terms, k in forms if terms and k != shift) + 1
    if not shift or after > before or not all(t.can_represent_value(k - shift) for _, k in forms):
        return 0
    return shift


def _undominated(s: Simplifier, forms: list[tuple[linear.Terms, int]], sign: int) -> list[tuple[linear.Terms, int]]:
    """Forms without those never smaller (sign 1) or never larger (sign -1) than another."""
    kept: list[tuple[linear.Terms, int]] = []
    for form in forms:
        survivors: list[tuple[linear.Terms, int]] = []
        loses = False
        for other in kept:
            if not loses and _never_below(s, form, other, sign):
                loses = True
            if loses or not _never_below(s, other, form, sign):
                survivors.append(other)
        kept = survivors if loses else [*survivors, form]
    return kept


def _never_below(s: Simplifier, a: tuple[linear.Terms, int], b: tuple[linear.Terms, int], sign: int) -> bool:
    """sign * a >= sign * b, always."""
    terms = {x: sign * c for x, c in a[0].items()}
    for x, c in b[0].items():
        total = terms.get(x, 0) - sign * c
        if total:
            terms[x] = total
        else:
            del terms[x]
    low = s.least(terms, sign * (a[1] - b[1]), 6)
    return low is not None and low >= 0


@handles(n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE)
def comparison(s: Simplifier, e: Any) -> n.Expr:
    """==, !=, <, <=; > and >= are turned around."""
    kind = type(e)
    a, b = s.expr(e.a), s.expr(e.b)
    if kind is n.GT or kind is n.GE:
        kind, a, b = (n.LT if kind is n.GT else n.LE), b, a
    folded = fold_binary(kind, a, b)
    if folded is not None:
        return folded
    if type(a) is n.Broadcast and type(b) is n.Broadcast and a.lanes == b.lanes:
        return n.Broadcast(s.expr(kind(a.value, b.value)), a.lanes)
    t = a.type
    if t.is_int_or_uint() and not t.is_bool():
        out = _linear_comparison(s, kind, t, a, b) if t.overflow_is_undefined() else _wrapping_comparison(s, kind, t, a, b)
    else:
        out = kind(a, b)
    if type(out) is kind or type(out) in (n.LT, n.LE):
        out = apply_rules(s, out)
    known = s.truths.get(out) if s.truths else None
    return out if known is None else const(out.type, known)


def _wrapping_comparison(s: Simplifier, kind: Any, t: Type, a: n.Expr, b: n.Expr) -> n.Expr:
    """Of narrow and unsigned integers."""
    truth = BOOL.with_lanes(t.lanes())
    if a is b:
        return const(truth, kind is n.EQ or kind is n.LE)
    low, high = s.range(a)
    least, most = s.range(b)
    below = high is not None and least is not None and high < least  # a < b
    above = low is not None and most is not None and low > most
    if kind is n.EQ or kind is n.NE:
        if below or above:
            return const(truth, kind is n.NE)
        terms, constant = linear.gather(n.Sub(a, b))
        if not terms:
            return const(truth, (constant == 0) == (kind is n.EQ))
        return kind(a, b)
    if below or kind is n.LE and high is not None and least is not None and high <= least:
        return const(truth, True)
    if above or kind is n.LT and low is not None and most is not None and low >= most:
        return const(truth, False)
    if kind is n.LE:
        x, y = as_int(a), as_int(b)
        if y is not None:
            return n.LT(a, const(t, y + 1))
        if x is not None:
            return n.LT(const(t, x - 1), b)
    return kind(a, b)  # type: ignore[no-any-return]


def _linear_comparison(s: Simplifier, kind: Any, t: Type, a: n.Expr, b: n.Expr) -> n.Expr:
    """Of integers that may be assumed not to overflow."""
    truth = BOOL.with_lanes(t.lanes())
    terms, constant = linear.difference(a, b)
    if kind is n.LE:  # a - b <= 0 is a - b - 1 < 0
        constant -= 1
    if not terms:
        return const(truth, constant == 0 if kind is n.EQ else constant != 0 if kind is n.NE else constant < 0)
    opposite = {x: -c for x, c in terms.items()}
    low = s.least(terms, constant)
    equality = kind is n.EQ or kind is n.NE
    if low is not None and low >= (1 if equality else 0):
        return const(truth, kind is n.NE)
    low = s.least(opposite, -constant - 1)
    if low is not None and low >= 0:
        return const(truth, kind is not n.EQ)
    if t.is_vector():
        return _vector_comparison(s, kind, t, a, b)
    g = math.gcd(*terms.values())
    if equality:
        if constant % g:
            return const(truth, kind is n.NE)
        if next(iter(terms.values())) < 0:
            terms, constant = opposite, -constant
    k = -(constant // g)
    left = {x: c // g for x, c in terms.items() if c > 0}
    right = {x: -c // g for x, c in terms.items() if c < 0}
    if not t.can_represent_value(k) or not t.can_represent_value(-k) or any(map(is_large, terms.values())):
        return kind(a, b)  # type: ignore[no-any-return]
    if strays(s, t, left) or strays(s, t, right, k):
        return kind(a, b)  # type: ignore[no-any-return]
    if not left:
        rhs = combine(s, t, right, 0)
        out = kind(const(t, -k), rhs) if equality else n.LT(const(t, -k), rhs)
        return s.expr(out) if linear.form(rhs)[1] else out  # its terms had something in common that left a constant
    lhs = combine(s, t, left, 0)
    if linear.form(lhs)[1]:
        return s.expr(kind(lhs, combine(s, t, right, k)) if equality else n.LT(lhs, combine(s, t, right, k)))
    if equality:
        return kind(lhs, combine(s, t, right, k))  # type: ignore[no-any-return]
    if k == 1 and right:
        return n.LE(lhs, combine(s, t, right, 0))
    return n.LT(lhs, combine(s, t, right, k))


def _vector_comparison(s: Simplifier, kind: Any, t: Type, a: n.Expr, b: n.Expr) -> n.Expr:
    d = s.expr(n.Sub(a, b))
    if type(d) is n.Broadcast:
        return n.Broadcast(s.expr(kind(d.value, const(d.value.type, 0))), d.lanes)
    low, high = s.range(d)
    truth = BOOL.with_lanes(t.lanes())
    if kind is n.EQ or kind is n.NE:
        if low is not None and low > 0 or high is not None and high < 0:
            return const(truth, kind is n.NE)
        return kind(a, b)
    slack = 1 if kind is n.LE else 0
    if high is not None and high < slack:
        return const(truth, True)
    if low is not None and low >= slack:
        return const(truth, False)
    return _ramp_comparison(s, kind, d) or kind(a, b)


def _ramp_comparison(s: Simplifier, kind: Any, d: n.Expr) -> n.Expr | None:
    """A ramp against 0 whose base is a multiple of a step that no lane reaches: all lanes agree."""
    if type(d) is not n.Ramp or not d.base.type.is_scalar():
        return None
    step = as_int(d.stride)
    if step is None or not step:
        return None
    terms, constant = linear.gather(d.base)
    g = math.gcd(*terms.values()) if terms else 0
    if g <= 1:
        return None
    ends = (constant, constant + step * (d.lanes - 1))
    slack = 0 if kind is n.LT else 1  # d <= 0 is d - 1 < 0
    first, last = euclid_div(min(ends) - slack, g), euclid_div(max(ends) - slack, g)
    if first != last:
        return None
    inner = combine(s, d.base.type, {x: c // g for x, c in terms.items()}, first)
    return n.Broadcast(s.expr(n.LT(inner, const(inner.type, 0))), d.lanes)
