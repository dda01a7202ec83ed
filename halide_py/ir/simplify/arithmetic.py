"""Sums, products, quotients and remainders.

Integer sums become their linear form. Quotients and remainders by a constant lose what the divisor divides, where the
type may be assumed not to overflow. Floats fold only where IEEE arithmetic is exact.
"""

from __future__ import annotations

import math
from typing import Any

from .. import nodes as n
from ..build import as_int, broadcast, const
from ..types import Type
from . import linear
from .compile_rules import apply_rules
from .fold import fold_binary
from .ranges import is_large, strays
from .residues import residue
from .simplify import Simplifier, handles
from .vectors import vector_terms

_BIG = 48


@handles(n.Add, n.Sub)
def sums(s: Simplifier, e: Any) -> n.Expr:
    """a + b, a - b; those of bools wrap."""
    if e.type.is_bool():
        return s.expr(n.NE(e.a, e.b))
    if not e.type.is_int_or_uint():
        return other(s, e)
    return combine(s, e.type, *linear.gather(e, s.expr, s.big))


@handles(n.Mul)
def product(s: Simplifier, e: n.Mul) -> n.Expr:
    """a * b."""
    if e.type.is_bool():
        return s.expr(n.And(e.a, e.b))
    if not e.type.is_int_or_uint():
        return other(s, e)
    if linear.edges(e) is not None:
        return combine(s, e.type, *linear.gather(e, s.expr, s.big))
    a, b = s.expr(e.a), s.expr(e.b)
    if as_int(a) is not None or as_int(b) is not None:
        return combine(s, e.type, *linear.gather(n.Mul(a, b), s.expr, s.big))
    a, k = _factor(a)
    b, m = _factor(b)
    if k * m != 1:
        return combine(s, e.type, {s.expr(n.Mul(a, b)): linear.centered(k * m, e.type)}, 0)
    lanes = _block(a, b)
    if lanes:
        x, y = _split(a, lanes), _split(b, lanes)
        if type(a) is n.Broadcast and type(b) is n.Broadcast:
            return n.Broadcast(s.expr(n.Mul(x, y)), lanes)
        step = n.Mul(a.stride, y) if type(a) is n.Ramp else n.Mul(x, b.stride)  # type: ignore[attr-defined]
        return s.expr(n.Ramp(s.expr(n.Mul(x, y)), s.expr(step), lanes))
    return apply_rules(s, e if a is e.a and b is e.b else n.Mul(a, b))


def _factor(e: n.Expr) -> tuple[n.Expr, int]:
    """A constant factor taken out of a simplified operand of a product."""
    if type(e) is n.Mul:
        k = as_int(e.b)
        if k is not None:
            return e.a, k
    elif type(e) is n.Sub and as_int(e.a) == 0:
        inner, k = _factor(e.b)
        return inner, -k
    return e, 1


def _block(a: n.Expr, b: n.Expr) -> int:
    """The number of equal blocks in which a ramp (or broadcast) and a broadcast can be combined; 0 if they cannot."""
    if type(b) is n.Ramp:
        a, b = b, a
    if type(b) is not n.Broadcast or type(a) not in (n.Ramp, n.Broadcast):
        return 0
    lanes = int(a.lanes)  # type: ignore[attr-defined]
    if type(a) is n.Broadcast and b.lanes != lanes:
        return 0
    return lanes if b.lanes == lanes or b.value.type.is_scalar() else 0


def _split(e: Any, lanes: int) -> n.Expr:
    """The first block of a ramp or broadcast."""
    if type(e) is n.Ramp:
        return e.base
    return broadcast(e.value, e.lanes // lanes)


def combine(s: Simplifier, t: Type, terms: linear.Terms, constant: int) -> n.Expr:
    """The expression of a linear form after what its terms have in common was used."""
    for _ in range(8):
        merged = None
        if t.lanes() > 1:
            merged = vector_terms(s, t, terms, constant)
        if merged is None and len(terms) > 1:
            merged = _merge(s, t, terms)
            if merged is not None:
                merged.append((const(t, 1), constant))
        if merged is None:
            break
        total: dict[n.Expr, int] = {}
        constant = 0
        for e, c in merged:
            more, k = linear.form(e)
            constant += c * k
            for term, f in more.items():
                total[term] = total.get(term, 0) + c * f
        terms = {e: w for e, c in total.items() if (w := linear.centered(c, t))}
        constant = linear.centered(constant, t)
    out = linear.rebuild(t, terms, constant)
    if len(terms) > _BIG:
        s.big.add(out)
    return out


Merged = list[tuple[n.Expr, int]]
_MERGES = n.Mod.bit | n.Div.bit | n.Min.bit | n.Max.bit | n.Select.bit


def _merge(s: Simplifier, t: Type, terms: linear.Terms) -> Merged | None:
    """One simplification among the terms of a sum, as a list of what to add up instead; None if there is none."""
    selects: dict[n.Expr, n.Select] = {}
    for e, c in terms.items():
        kind = type(e)
        if not kind.bit & _MERGES:
            continue
        found: Merged | None = None
        if kind is n.Mod or kind is n.Div:
            found = _merge_quotient(terms, e, c)
        elif kind is n.Select:
            before = selects.setdefault(e.condition, e)  # type: ignore[attr-defined,arg-type]
            if before is not e:
                found = _merge_selects(s, terms, before, e)  # type: ignore[arg-type]
        elif t.overflow_is_undefined():
            found = _merge_extremum(s, terms, e, c)
        if found is not None:
            return found
    return None


def _without(terms: linear.Terms, *gone: n.Expr) -> Merged:
    return [(e, c) for e, c in terms.items() if e not in gone]


def _merge_quotient(terms: linear.Terms, e: Any, c: int) -> Merged | None:
    """(x/d)*d + x%d is x; x - (x/d)*d is x%d."""
    d = as_int(e.b)
    if d is None or d <= 0:
        return None
    if type(e) is n.Mod:
        other_ = n.Div(e.a, e.b)
        return [*_without(terms, e, other_), (e.a, c)] if terms.get(other_) == c * d else None
    if c % d:
        return None
    inner, k = linear.form(e.a)
    times = -(c // d)
    if e in inner or not all(terms.get(t) == f * times for t, f in inner.items()):
        return None
    return [*_without(terms, e, *inner), (n.Mod(e.a, e.b), times), (const(e.type, -k), times)]


def _merge_selects(s: Simplifier, terms: linear.Terms, a: n.Select, b: n.Select) -> Merged:
    """Two choices by one condition are one choice."""
    j, k = terms[a], terms[b]
    yes = n.Add(linear.scaled(a.true_value, j), linear.scaled(b.true_value, k))
    no = n.Add(linear.scaled(a.false_value, j), linear.scaled(b.false_value, k))
    return [*_without(terms, a, b), (s.expr(n.Select(a.condition, yes, no)), 1)]


def _merge_extremum(s: Simplifier, terms: linear.Terms, e: Any, c: int) -> Merged | None:
    """max(x, y) + min(x, y) is x + y; max(x, y) - x is max(y - x, 0)."""
    twin = (n.Min if type(e) is n.Max else n.Max)(e.a, e.b)
    for t in (twin, type(twin)(e.b, e.a)):
        if terms.get(t) == c:
            return [*_without(terms, e, t), (e.a, c), (e.b, c)]
    for x, y in ((e.a, e.b), (e.b, e.a)):
        inner, _ = linear.form(x)
        if inner and all(terms.get(t) == -f * c for t, f in inner.items()) and not strays(s, e.type, *linear.difference(y, x)):
            rest = s.expr(n.Sub(y, x))
            more = type(e)(rest, const(e.type, 0))
            return [*_without(terms, e), (x, c), (s.expr(more), c)]
    return None


def other(s: Simplifier, e: Any) -> n.Expr:
    """Arithmetic on types other than integers."""
    a, b = s.expr(e.a), s.expr(e.b)
    folded = fold_binary(type(e), a, b)
    if folded is not None:
        return folded
    if type(a) is n.Broadcast and type(b) is n.Broadcast and a.lanes == b.lanes:
        return n.Broadcast(s.expr(type(e)(a.value, b.value)), a.lanes)
    return apply_rules(s, e if a is e.a and b is e.b else type(e)(a, b))


@handles(n.Div)
def quotient(s: Simplifier, e: n.Div) -> n.Expr:
    """a / b."""
    t = e.type
    if t.is_bool():
        return s.expr(n.And(e.a, e.b))
    if not t.is_int_or_uint():
        return other(s, e)
    a, b = s.expr(e.a), s.expr(e.b)
    folded = fold_binary(n.Div, a, b)
    if folded is not None:
        return folded
    d = as_int(b)
    if d is not None:
        if d == 0 or d == 1:
            return a if d else const(t, 0)
        low, high = s.range(a)
        if d > 0 and low is not None and high is not None and low // d == high // d:
            return const(t, low // d)
        if t.overflow_is_undefined():
            if d < 0:
                return s.expr(n.Sub(const(t, 0), n.Div(a, const(t, -d)))) if d != t.min_value() else n.Div(a, b)
            return _exact_quotient(s, e, a, b, d)
    return _blockwise(s, n.Div, a, b) or apply_rules(s, e if a is e.a and b is e.b else n.Div(a, b))


def _exact_quotient(s: Simplifier, e: n.Div, a: n.Expr, b: n.Expr, d: int) -> n.Expr:
    """a / d for d > 1 where a does not overflow."""
    t = e.type
    terms, constant = linear.form(a)
    if any(is_large(c) for c in terms.values()):  # a hash
        return n.Div(a, b)
    whole = {x: c // d for x, c in terms.items() if not c % d}
    rest = {x: c for x, c in terms.items() if c % d}
    q, r = divmod(constant, d)
    if (whole or q) and not strays(s, t, rest, r):
        if not rest:
            return combine(s, t, whole, q)
        inner = s.expr(n.Div(combine(s, t, rest, r), b))
        return s.expr(n.Add(combine(s, t, whole, q), inner))
    g = math.gcd(d, *terms.values())
    if g > 1:
        inner = combine(s, t, {x: c // g for x, c in terms.items()}, constant // g)
        return s.expr(n.Div(inner, const(t, d // g)))
    if type(a) is n.Div:  # (x / c) / d
        c = as_int(a.b)
        if c is not None and c > 0 and t.can_represent_value(c * d):
            return s.expr(n.Div(a.a, const(t, c * d)))
    return _blockwise(s, n.Div, a, b) or apply_rules(s, e if a is e.a and b is e.b else n.Div(a, b))


def _blockwise(s: Simplifier, kind: type[n.Div] | type[n.Mod], a: n.Expr, b: n.Expr) -> n.Expr | None:
    """Quotient or remainder of a ramp or broadcast by a broadcast, if it is a ramp or broadcast."""
    if type(b) is not n.Broadcast:
        return None
    if type(a) is n.Broadcast and (a.lanes == b.lanes or b.value.type.is_scalar()):
        return n.Broadcast(s.expr(kind(a.value, broadcast(b.value, b.lanes // a.lanes) if b.lanes != a.lanes else b.value)), a.lanes)
    if type(a) is not n.Ramp or not a.type.overflow_is_undefined() or not a.base.type.is_scalar():
        return None
    d, step = as_int(b), as_int(a.stride)
    if d is None or step is None or d <= 1:
        return None
    scalar = const(a.base.type, d)
    if step % d == 0:
        if kind is n.Mod:
            return n.Broadcast(s.expr(n.Mod(a.base, scalar)), a.lanes)
        return s.expr(n.Ramp(n.Div(a.base, scalar), const(a.base.type, step // d), a.lanes))
    if not 0 < step * (a.lanes - 1) < d:
        return None
    start = s.expr(n.Mod(a.base, scalar))
    most = s.range(start)[1]
    if most is None or most + step * (a.lanes - 1) >= d:
        return None
    return s.expr(n.Ramp(start, a.stride, a.lanes)) if kind is n.Mod else n.Broadcast(s.expr(n.Div(a.base, scalar)), a.lanes)


@handles(n.Mod)
def remainder(s: Simplifier, e: n.Mod) -> n.Expr:
    """a % b."""
    t = e.type
    if t.is_bool():
        return const(t, 0)
    if not t.is_int_or_uint():
        return other(s, e)
    a, b = s.expr(e.a), s.expr(e.b)
    folded = fold_binary(n.Mod, a, b)
    if folded is not None:
        return folded
    d = as_int(b)
    if d is not None and d != t.min_value():
        if abs(d) <= 1:
            return const(t, 0)
        if d < 0:
            return s.expr(n.Mod(a, const(t, -d)))
        low, high = s.range(a)
        if low is not None and high is not None and low // d == high // d:
            return s.expr(n.Sub(a, const(t, low // d * d)))
        if t.overflow_is_undefined():
            return _exact_remainder(s, e, a, b, d)
    return _blockwise(s, n.Mod, a, b) or apply_rules(s, e if a is e.a and b is e.b else n.Mod(a, b))


def _with(terms: linear.Terms, more: Merged) -> linear.Terms:
    out = dict(terms)
    for e, c in more:
        out[e] = out.get(e, 0) + c
    return out


def _exact_remainder(s: Simplifier, e: n.Mod, a: n.Expr, b: n.Expr, d: int) -> n.Expr:
    """a % d for d > 1 where a does not overflow."""
    t = e.type
    terms, constant = linear.form(a)
    if any(is_large(c) for c in terms.values()):
        return n.Mod(a, b)
    rest: linear.Terms = {}
    changed = constant != constant % d
    extra: list[tuple[n.Expr, int]] = []
    for x, c in terms.items():
        if not c % d:
            changed = True
            continue
        m = as_int(x.b) if type(x) is n.Mod else None
        if m is not None and m > 0 and not c * m % d:  # (y % m) * c is y * c, modulo d
            changed = True
            extra.append((x.a, c))  # type: ignore[attr-defined]
        elif (r := residue(s, x, d // math.gcd(c, d))) is not None:
            changed = True
            constant += c * r
        else:
            rest[x] = c
    if changed and not strays(s, t, _with(rest, extra), constant % d):
        inner = combine(s, t, rest, constant % d)
        for y, c in extra:
            inner = n.Add(inner, linear.scaled(y, c))
        return s.expr(n.Mod(inner, b))
    g = math.gcd(d, *terms.values())
    if g > 1:
        inner = combine(s, t, {x: c // g for x, c in terms.items()}, constant // g)
        return s.expr(n.Add(n.Mul(n.Mod(inner, const(t, d // g)), const(t, g)), const(t, constant % g)))
    return _blockwise(s, n.Mod, a, b) or apply_rules(s, e if a is e.a and b is e.b else n.Mod(a, b))
