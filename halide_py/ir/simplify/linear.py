"""Integer sums in canonical linear form: coefficient x term + ... + constant, so that differences cancel by construction.

Integers of every width form a ring modulo 2^bits, so the form is exact for wrapping types too; their coefficients are kept
in the signed range. Those of types that may not overflow stay exact (comparisons rely on it), and are written as several
constants where one would not fit. Terms are simplified expressions that are no sums themselves, in the order in which the program mentions
them. `gather` walks the DAG of sums once, pushing coefficients down in topological order: linear in its distinct nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import nodes as n
from ..build import as_int, const
from ..types import Type

Terms = dict[n.Expr, int]
Edges = tuple[tuple[n.Expr, int], ...]


def centered(value: int, t: Type) -> int:
    """How coefficients are kept: modulo 2^bits in the signed range; for types that may not overflow as they are, within reason."""
    if t.overflow_is_undefined() and not abs(value) >> (t.bits() + 2):
        return value
    half = 1 << (t.bits() - 1)
    return ((value + half) & (2 * half - 1)) - half


def edges(e: n.Expr) -> Edges | None:
    """The operands of a sum with their factors; None for an expression that is no sum."""
    kind = type(e)
    if kind is n.Add:
        return (e.a, 1), (e.b, 1)  # type: ignore[attr-defined]
    if kind is n.Sub:
        return (e.a, 1), (e.b, -1)  # type: ignore[attr-defined]
    if kind is n.Mul:
        factor = as_int(e.b)  # type: ignore[attr-defined]
        if factor is not None:
            return ((e.a, factor),)  # type: ignore[attr-defined]
        factor = as_int(e.a)  # type: ignore[attr-defined]
        if factor is not None:
            return ((e.b, factor),)  # type: ignore[attr-defined]
    return None


def _keep(e: n.Expr) -> n.Expr:
    return e


def gather(root: n.Expr, leaf: Callable[[n.Expr], n.Expr] = _keep, opaque: frozenset[n.Expr] | set[n.Expr] = frozenset()) -> tuple[Terms, int]:
    """The linear form of `root`. `leaf` simplifies the parts that are no sums; sums in `opaque` are taken as terms."""
    below: dict[n.Expr, Edges] = {}
    uses: dict[n.Expr, int] = {root: 0}
    terms: Terms = {}
    stack = [root]
    while stack:
        e = stack.pop()
        here = edges(e) if e not in opaque or e is root else None
        if here is None:
            value = as_int(e)
            if value is None:
                simpler = leaf(e)
                if simpler is not e:  # a leaf may have become a sum, or another leaf seen before
                    here = ((simpler, 1),)
                else:
                    terms[e] = 0
        if here is None:
            continue
        below[e] = here
        for k, _ in reversed(here):
            count = uses.get(k)
            uses[k] = 1 if count is None else count + 1
            if count is None:
                stack.append(k)
    weight: dict[n.Expr, int] = {root: 1}
    constant = 0
    ready = [root]
    while ready:
        e = ready.pop()
        w = weight[e]
        here = below.get(e)
        if here is None:
            if e in terms:
                terms[e] = w
            else:
                constant += w * (as_int(e) or 0)
            continue
        for k, factor in here:
            weight[k] = weight.get(k, 0) + w * factor
            uses[k] -= 1
            if not uses[k]:
                ready.append(k)
    t = root.type
    return {e: c for e, w in terms.items() if (c := centered(w, t))}, centered(constant, t)


_CHUNK = 1 << 30


def scaled(e: n.Expr, factor: int) -> n.Expr:
    """e * factor."""
    if factor == 1:
        return e
    if e.type.overflow_is_undefined() and not e.type.can_represent_value(factor):
        high, low = divmod(factor, _CHUNK)
        out: n.Expr = n.Mul(scaled(e, high), const(e.type, _CHUNK))
        return n.Add(out, scaled(e, low)) if low else out
    return n.Mul(e, const(e.type, factor))


def offset(e: n.Expr, constant: int) -> n.Expr:
    """e + constant."""
    if not constant:
        return e
    t = e.type
    if not t.overflow_is_undefined():
        return n.Add(e, const(t, constant))
    low, high = int(t.min_value()), int(t.max_value())
    while not low <= constant <= high:
        part = high if constant > 0 else low
        e = n.Add(e, const(t, part))
        constant -= part
    return n.Add(e, const(t, constant)) if constant else e


def _signed_sum(parts: list[tuple[n.Expr, bool]]) -> n.Expr:
    """The sum of parts with their signs (True: negative); at least one is positive, and the first of those leads."""
    lead = next(i for i, (_, negative) in enumerate(parts) if not negative)
    total = parts[lead][0]
    for i, (e, negative) in enumerate(parts):
        if i != lead:
            total = n.Sub(total, e) if negative else n.Add(total, e)
    return total


def rebuild(t: Type, terms: Terms, constant: int) -> n.Expr:
    """The expression of a linear form: terms with the same factor share one multiplication, subtraction where a factor is negative, the constant last."""
    if not terms:
        return const(t, constant)
    groups: dict[int, list[tuple[n.Expr, bool]]] = {}
    for e, c in terms.items():
        groups.setdefault(abs(c), []).append((e, c < 0))
    parts: list[tuple[n.Expr, bool]] = []
    for factor, members in groups.items():
        negative = all(sign for _, sign in members)
        if negative:
            members = [(e, False) for e, _ in members]
        parts.append((scaled(_signed_sum(members), factor), negative))
    constant = centered(constant, t)
    if all(negative for _, negative in parts):
        first = max(int(t.min_value()), min(int(t.max_value()), constant)) if t.overflow_is_undefined() else constant
        return offset(_signed_sum([(const(t, first), False), *parts]), constant - first)
    return offset(_signed_sum(parts), constant)


def difference(a: n.Expr, b: n.Expr) -> tuple[Terms, int]:
    """The linear form of a - b over the integers: each side on its own is in the type's range, the difference may not be."""
    terms, constant = gather(a)
    others, other = gather(b)
    for e, c in others.items():
        c = terms.get(e, 0) - c
        if c:
            terms[e] = c
        else:
            del terms[e]
    return terms, constant - other
