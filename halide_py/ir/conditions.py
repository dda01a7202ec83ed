"""What conditions say: the comparisons that hold in a branch, the intervals of variables and linear forms they limit, and what they do not
decide.

Only integers that do not overflow are believed; everything else limits nothing, which is safe.
"""

from __future__ import annotations

from . import nodes as n
from .bounds import Bounds
from .build import as_int, const, is_false, is_likely
from .interval_type import Interval
from .simplify import linear, logic
from .traverse import N, Rec, rewrite


def conjuncts(e: n.Expr, holds: bool) -> list[n.Expr]:
    """Conditions that all hold where `e` does (or does not), absolute values taken apart."""
    return [part for c in logic.conjuncts(e, holds) for part in _without_abs(c)]


def _without_abs(c: n.Expr) -> list[n.Expr]:
    """abs(e) <= k as -k <= e and e <= k."""
    first = c.a if type(c) in (n.LT, n.LE) else None  # type: ignore[attr-defined]
    if type(first) is n.Call and first.name == "abs" and first.args[0].type.overflow_is_undefined():
        e, k = c.a.args[0], as_int(c.b)  # type: ignore[attr-defined]
        if k is not None and k <= e.type.max_value():
            return [type(c)(const(e.type, -k), e), type(c)(e, const(e.type, k))]  # type: ignore[call-arg]
    return [c]


_CHOICE = n.symbol_bit("if_then_else")


def shared_choices(e: n.Call) -> list[n.Call]:
    """The choices that both values of an `if_then_else` make for certain: they are made whatever the condition is."""
    if len(e.args) != 3 or not e.args[1].symbols & e.args[2].symbols & _CHOICE:
        return []
    others = _choices(e.args[2])
    return [c for c in _choices(e.args[1]) if c in others]


def _choices(e: n.Expr) -> dict[n.Call, None]:
    """The choices a value makes for certain."""
    found: dict[n.Call, None] = {}
    seen: set[n.Expr] = set()
    stack = [e]
    while stack:
        x = stack.pop()
        if x in seen or not x.symbols & _CHOICE:
            continue
        seen.add(x)
        if type(x) is n.Call and x.name == "if_then_else":
            found[x] = None
        elif type(x) is not n.Let:
            stack.extend(x.children())
    return found


_LIKELY = n.symbol_bit("likely") | n.symbol_bit("likely_if_innermost")


def strip_likely(root: N, keep_vectors: bool = False) -> N:
    """`root` without marks of what is likely, or without those of scalars."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        marked = is_likely(c) and not (keep_vectors and c.type.is_vector())
        return rec(c.args[0]) if marked else c.map_children(rec)  # type: ignore[no-any-return]

    return rewrite(root, {n.Call: call}, _LIKELY)


def limit(b: Bounds, c: n.Expr) -> bool:
    """Narrow the scope by a comparison of integers that do not overflow, as it is marked and without marks: either may be what a place is
    made of. False if it holds for nothing in the scope."""
    plain = strip_likely(c)
    return _limit(b, c) and (plain is c or _limit(b, plain))


def _limit(b: Bounds, c: n.Expr) -> bool:
    if type(c) in (n.GT, n.GE):
        c = (n.LT if type(c) is n.GT else n.LE)(c.b, c.a)  # type: ignore[attr-defined]
    if type(c) not in (n.LT, n.LE, n.EQ) or not c.a.type.overflow_is_undefined():  # type: ignore[attr-defined]
        return not is_false(c)
    terms, k = linear.difference(c.b, c.a)  # type: ignore[attr-defined]
    if type(c) is n.LT:
        k -= 1
    directions = [(terms, k)]
    if type(c) is n.EQ:
        directions.append(({e: -w for e, w in terms.items()}, -k))
    for direction in directions:
        if _is_negative(b, *direction):
            return False
        for form in _each_side(b, *direction):
            _at_least(b, *form)
    return True


def _is_negative(b: Bounds, terms: linear.Terms, k: int) -> bool:
    """Whether terms + k is below 0 for everything in the scope, by constants alone."""
    for e, w in terms.items():
        low, high = b.range(b.bounds(e))
        end = high if w > 0 else low
        if end is None:
            return False
        k += w * end
    return k < 0


_MOST_SIDES = 8


def _each_side(b: Bounds, terms: linear.Terms, k: int) -> list[tuple[linear.Terms, int]]:
    """Linear forms that are not negative where terms + k is not: itself, and where it holds a varying `min`, the forms of either side.

    x <= min(p, q) says x <= p and x <= q, each of which may limit x where the interval of the min says nothing about x.
    """
    out = [(terms, k)]
    for form, constant in out:
        for e, w in form.items():
            if len(out) < _MOST_SIDES and type(e) is (n.Min if w > 0 else n.Max) and b.varies(e):
                for side in (e.a, e.b):
                    other, more = linear.gather(side)
                    sides = {t: c for t, c in form.items() if t is not e}
                    for t, c in other.items():
                        sides[t] = sides.get(t, 0) + w * c
                    out.append(({t: c for t, c in sides.items() if c}, constant + w * more))
                break
    return out


def _at_least(b: Bounds, terms: linear.Terms, k: int) -> None:
    """terms + k >= 0: a limit of the part made of scope variables, and of each of them alone."""
    varying = {e: w for e, w in terms.items() if b.varies(e) and not b.bounds(e).is_point()}
    if not varying:
        return
    rest = {e: w for e, w in terms.items() if e not in varying}
    t = next(iter(terms)).type
    fixed = b.sum_of(next(iter(terms)), rest, k)
    if fixed.max is not None:  # varying >= -fixed
        low = b.simple(n.Sub(const(t, 0), fixed.max))
        b.limits.append((varying, low, None))
        b.memo.clear()
    for e, w in varying.items():
        if type(e) is not n.Variable or e.name not in b.scope:
            continue
        others = b.sum_of(e, {x: c for x, c in terms.items() if x is not e}, k)
        if others.max is None:
            continue
        if w > 0:  # e >= -others / w, rounded up
            b.narrow(e.name, Interval(b.simple(n.Sub(const(t, 0), n.Div(others.max, const(t, w)))), None))
        else:
            b.narrow(e.name, Interval(None, b.simple(n.Div(others.max, const(t, -w)))))
