"""Integer sums in canonical linear form: coefficient x term + ... + constant, so that differences cancel by construction.

Integers of every width form a ring modulo 2^bits, so the form is exact for wrapping types too; their coefficients are kept
in the signed range. Those of types that may not overflow stay exact (comparisons rely on it), and are written as several
constants where one would not fit. Terms are simplified expressions that are no sums themselves, in the order in which the program mentions
them. `gather` walks the DAG of sums once, pushing coefficients down in topological order: linear in its distinct nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import NamedTuple

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


_SMALL = 48  # visits after which sharing is looked for


def gather(
    root: n.Expr, leaf: Callable[[n.Expr], n.Expr] | None = None, opaque: frozenset[n.Expr] | set[n.Expr] = frozenset()
) -> tuple[Terms, int]:
    """The linear form of `root`. `leaf` simplifies the parts that are no sums; sums in `opaque` are taken as terms."""
    terms: Terms = {}
    constant = 0
    stack = [(root, 1)]
    visits = 0
    while stack:
        e, w = stack.pop()
        kind = type(e)
        if kind is n.Variable and leaf is None:
            terms[e] = terms.get(e, 0) + w
            continue
        if kind is n.IntImm or kind is n.UIntImm:
            constant += w * e.value  # type: ignore[attr-defined]
            continue
        if kind is n.Add or kind is n.Sub:
            if not opaque or e not in opaque or e is root:
                visits += 1
                if visits > _SMALL:
                    return _gather_shared(root, leaf or _keep, opaque)
                stack.append((e.b, w if kind is n.Add else -w))  # type: ignore[attr-defined]
                stack.append((e.a, w))  # type: ignore[attr-defined]
                continue
        else:
            here = edges(e) if kind is n.Mul and (e is root or e not in opaque) else None
            if here is not None:
                stack.append((here[0][0], w * here[0][1]))
                continue
            if kind is n.Broadcast:
                value = as_int(e)
                if value is not None:
                    constant += w * value
                    continue
            if leaf is not None:
                simpler = leaf(e)
                if simpler is not e:  # a leaf may have become a sum, or another leaf seen before
                    stack.append((simpler, w))
                    continue
        terms[e] = terms.get(e, 0) + w
    return _settle(terms, constant, root.type)


class Found(NamedTuple):
    """What was worked out in one lowering."""

    forms: dict[n.Expr, tuple[Terms, int]]
    sums: dict[tuple[object, ...], n.Expr]


found: ContextVar[Found | None] = ContextVar("found", default=None)


def form(e: n.Expr) -> tuple[Mapping[n.Expr, int], int]:
    """The linear form of `e` as it stands, found once a lowering (`simplify.remembering`): not to be changed."""
    memo = found.get()
    if memo is None:
        return gather(e)
    known = memo.forms.get(e)
    if known is None:
        memo.forms[e] = known = gather(e)
    return known


def _settle(terms: Terms, constant: int, t: Type) -> tuple[Terms, int]:
    """Coefficients in their range, none of them 0."""
    if -64 < constant < 64 and t.bits() >= 8:
        for c in terms.values():
            if not c or not -64 < c < 64:
                break
        else:
            return terms, constant
    return {e: c for e, w in terms.items() if (c := centered(w, t))}, centered(constant, t)


def _gather_shared(root: n.Expr, leaf: Callable[[n.Expr], n.Expr], opaque: frozenset[n.Expr] | set[n.Expr]) -> tuple[Terms, int]:
    """`gather` in time linear in the distinct nodes: coefficients go down in topological order."""
    below: dict[n.Expr, Edges] = {}
    uses: dict[n.Expr, int] = {root: 0}
    terms: Terms = {}
    stack = [root]
    while stack:
        e = stack.pop()
        here = edges(e) if e not in opaque or e is root else None
        if here is None and as_int(e) is None:
            simpler = leaf(e)
            if simpler is not e:
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
    return _settle(terms, constant, root.type)


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
    if -64 < constant < 64 or not t.overflow_is_undefined():
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
    """The expression of a linear form: terms with the same factor share one multiplication, subtraction where a factor is negative, the
    constant last."""
    memo = found.get()
    if memo is None:
        return _rebuilt(t, terms, constant)
    key = (t, constant, *terms, *terms.values())
    known = memo.sums.get(key)
    if known is None:
        memo.sums[key] = known = _rebuilt(t, terms, constant)
    return known


def _rebuilt(t: Type, terms: Terms, constant: int) -> n.Expr:
    if not terms:
        return const(t, constant)
    groups: dict[int, list[tuple[n.Expr, bool]]] = {}
    for e, c in terms.items():
        size = c if c > 0 else -c
        members = groups.get(size)
        if members is None:
            groups[size] = [(e, c < 0)]
        else:
            members.append((e, c < 0))
    parts: list[tuple[n.Expr, bool]] = []
    for factor, members in groups.items():
        if len(members) == 1:
            e, negative = members[0]
            parts.append((scaled(e, factor), negative))
        elif factor == 1 and len(groups) == 1:
            parts = members
        else:
            negative = all(sign for _, sign in members)
            parts.append((scaled(_signed_sum([(e, False) for e, _ in members] if negative else members), factor), negative))
    constant = centered(constant, t)
    if len(terms) == 1 and not constant:
        (e, c), = terms.items()
        if c != -1 and t.can_represent_value(c):
            return scaled(e, c)
    if all(negative for _, negative in parts):
        first = max(int(t.min_value()), min(int(t.max_value()), constant)) if t.overflow_is_undefined() else constant
        return offset(_signed_sum([(const(t, first), False), *parts]), constant - first)
    return offset(_signed_sum(parts), constant)


def difference(a: n.Expr, b: n.Expr) -> tuple[Terms, int]:
    """The linear form of a - b over the integers: each side on its own is in the type's range, the difference may not be."""
    shared, constant = form(a)
    others, other = form(b)
    terms = dict(shared)
    for e, c in others.items():
        c = terms.get(e, 0) - c
        if c:
            terms[e] = c
        else:
            del terms[e]
    return terms, constant - other
