"""Limits of linear forms: how small can `b - a` be, which answers `a <= b`.

First by the constant ranges of the terms. Then terms are replaced, the innermost variables first, by what limits them: a loop
variable by its symbolic bounds, max(x, y) from below by x or by y, min(x, y) by both in turn, a quotient by what it is a
quotient of. What cancels then cancels in the linear form. `budget` bounds the number of replacements tried.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING

from .. import nodes as n
from ..build import as_int
from . import linear
from .ranges import Range, is_large, wraps
from .samples import refuted

if TYPE_CHECKING:
    from .simplify import Simplifier

Form = tuple[linear.Terms, int]
_LARGE = 1 << 16
_IDENTITIES = ("likely", "likely_if_innermost", "strict_float")


def _plain(s: Simplifier, terms: linear.Terms, constant: int) -> int | None:
    """What constant ranges say. A hash leaves its type on purpose: nothing is known of it."""
    total: int | None = constant
    for e, c in terms.items():
        if is_large(c) and wraps(s, e, c):
            return None
        if total is not None:
            r: Range = s.range(e)
            limit = r[0] if c > 0 else r[1]
            total = None if limit is None else total + c * limit
    return total


def _with(terms: linear.Terms, constant: int, e: n.Expr, factor: int, replacement: n.Expr, extra: int = 0) -> Form:
    """The form with `factor * e` replaced by `factor * replacement`, and a constant added."""
    more, k = linear.form(replacement)
    out = dict(terms)
    rest = out.pop(e) - factor
    if rest:
        out[e] = rest
    for t, c in more.items():
        total = out.get(t, 0) + factor * c
        if total:
            out[t] = total
        else:
            out.pop(t, None)
    return out, constant + factor * k + extra


def _expansions(s: Simplifier, terms: linear.Terms, constant: int, e: n.Expr, c: int) -> tuple[bool, list[Form]] | None:
    """What the form may be replaced by to bound it from below: (all of them needed, alternatives); None if nothing is known of `e`."""
    kind = type(e)
    if kind is n.Variable:
        low, high = s.limits.get(e.name, (None, None))  # type: ignore[attr-defined]
        limit = low if c > 0 else high
        return None if limit is None else (False, [_with(terms, constant, e, c, limit)])
    if kind is n.Min or kind is n.Max:
        both = [_with(terms, constant, e, c, x) for x in (e.a, e.b)]  # type: ignore[attr-defined]
        return (kind is n.Min) == (c > 0), both
    if kind is n.Select:
        return True, [_with(terms, constant, e, c, x) for x in (e.true_value, e.false_value)]  # type: ignore[attr-defined]
    if kind is n.Call:
        args = e.args  # type: ignore[attr-defined]
        if e.name in _IDENTITIES:  # type: ignore[attr-defined]
            return False, [_with(terms, constant, e, c, args[0])]
        if e.name == "unsafe_promise_clamped":  # type: ignore[attr-defined]
            return False, [_with(terms, constant, e, c, args[0]), _with(terms, constant, e, c, args[1] if c > 0 else args[2])]
        return None
    if kind is n.Div:
        return _quotient(terms, constant, e, c)
    return None


def _scale(e: n.Expr, c: int) -> int:
    """What to multiply a form by so that the factor `c` of a term is a multiple of what the term is divided by; 1 for other terms."""
    d = as_int(e.b) if type(e) is n.Div else None
    return d // math.gcd(c, d) if d is not None and 1 < d < _LARGE else 1


def _quotient(terms: linear.Terms, constant: int, e: n.Expr, c: int) -> tuple[bool, list[Form]] | None:
    """x - (d - 1) <= (x/d)*d <= x for the part of the factor that is a multiple of d."""
    d = as_int(e.b)  # type: ignore[attr-defined]
    if d is None or d <= 1 or c % d:
        return None
    part = c // d
    form = dict(terms)
    del form[e]
    inner, more = linear.form(e.a)  # type: ignore[attr-defined]
    for t, f in inner.items():
        total = form.get(t, 0) + part * f
        if total:
            form[t] = total
        else:
            form.pop(t, None)
    return False, [(form, constant + part * more - (part * (d - 1) if part > 0 else 0))]


def _rank(s: Simplifier, e: n.Expr, c: int) -> int:
    """Which term to replace first: the innermost variables, then what splits into cases (so that each case may choose for itself),
    then choices, then quotients; -1 for those that cannot be."""
    kind = type(e)
    if kind is n.Variable:
        return 1000 + s.order[e.name] if e.name in s.limits else -1  # type: ignore[attr-defined]
    if kind is n.Min or kind is n.Max:
        return 950 if (kind is n.Min) == (c > 0) else 900
    return 970 if kind is n.Select else 800 if kind in (n.Div, n.Call) else -1


def lower_limit(s: Simplifier, terms: linear.Terms, constant: int, budget: int, target: int = 0) -> int | None:
    """The largest number found that the form is never below; stops once `target` is reached. None: unbounded as far as is known."""
    best = _plain(s, terms, constant)
    if not terms or best is not None and best >= target or target == 0 and refuted(s, terms, constant):
        return best
    return _Search(s, budget, target).run(terms, constant)


class _Search:
    def __init__(self, s: Simplifier, budget: int, target: int) -> None:
        self.s, self.left, self.target = s, budget, target

    def run(self, terms: linear.Terms, constant: int) -> int | None:
        if any(map(is_large, terms.values())) and any(wraps(self.s, e, c) for e, c in terms.items()):
            return None
        best = _plain(self.s, terms, constant)
        if not terms or best is not None and best >= self.target or self.left <= 0:
            return best
        for fact, k in self.s.facts:
            best = self.better(best, self.by_fact(terms, constant, fact, k))
            if best is not None and best >= self.target:
                return best
        ranks = [(-rank, e) for e, c in terms.items() if (rank := _rank(self.s, e, c)) >= 0]
        for _, e in sorted(ranks, key=itemgetter(0)) if len(ranks) > 1 else ranks:
            if self.left <= 0:
                break
            scale = _scale(e, terms[e])
            if scale > 1:  # of forms, not of quotients: y/2 - (y + 1)/2 is half of 2*(y/2) - 2*((y + 1)/2)
                self.left -= 1
                found_scaled = self.run({t: k * scale for t, k in terms.items()}, constant * scale)
                return self.better(best, None if found_scaled is None else -(-found_scaled // scale))
            found = _expansions(self.s, terms, constant, e, terms[e])
            if found is None:
                continue
            self.left -= 1
            needed, forms = found
            results = []
            for form, k in forms:
                r = self.run(form, k)
                if needed and r is None:
                    return best
                results.append(r)
                if not needed and r is not None and r >= self.target:
                    return r
            if needed:
                return self.better(best, min(r for r in results if r is not None))
            for r in results:
                best = self.better(best, r)
            return best
        return best

    @staticmethod
    def better(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else max(a, b)

    def by_fact(self, terms: linear.Terms, constant: int, fact: linear.Terms, k: int) -> int | None:
        """The limit of what is left after taking out a fact `fact + k >= 0` that shares a term."""
        for e, c in fact.items():
            w = terms.get(e)
            if w is None or w * c <= 0 or w % c:
                continue
            times = w // c
            rest = dict(terms)
            for t, f in fact.items():
                total = rest.get(t, 0) - times * f
                if total:
                    rest[t] = total
                else:
                    rest.pop(t, None)
            return _plain(self.s, rest, constant - times * k)
        return None
