"""Pieces: a contribution whose coordinates are clamped or mirrored, as several whose coordinates can be solved.

`f[x] = g[clamp(x, lo, hi)]` contributes to dg at x where lo <= x <= hi, at lo for the sum of all x < lo, and at hi for the sum of all x >
hi: a gather, and two sums over the few values outside. In general each Min, Max and Select of integers in a coordinate gives a piece for
each of its sides, under the condition that chooses it; the intervals of the axes are narrowed by these conditions. Limits: coordinates that
read data stay whole (a scatter), and so do contributions that would fall into too many pieces or that do not become easier.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import boxes_required
from ..ir.conditions import strip_likely
from ..ir.interval import Interval
from ..ir.intrinsics import intrinsic
from ..ir.simplify import simplify
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import INT32
from .contributions import Contribution, Placed, place

_MOST = 27  # three for each of three dimensions
_CHOICES = (n.Min, n.Max, n.Select)


def placed_pieces(c: Contribution, target: Sequence[n.Variable]) -> list[Placed]:
    """A contribution in the target's own variables: in pieces if that makes it easier, else whole."""
    whole = place(c, target)
    if not whole.is_scatter() or not any(map(_choice, c.coordinates)):
        return [whole]
    bare = dataclasses.replace(c, coordinates=tuple(strip_likely(e) for e in c.coordinates))
    pieces: list[Placed] = []
    for one in _split(bare):
        narrowed = _narrowed(one)
        if narrowed is None:
            continue
        placed = place(narrowed, target)
        if len(pieces) == _MOST or not _is_easy(placed, target, narrowed, c):
            return [whole]
        pieces.append(placed)
    return pieces


def _is_easy(p: Placed, target: Sequence[n.Variable], narrowed: Contribution, c: Contribution) -> bool:
    """Whether what is still scattered are axes of which only a part counts."""
    part = {a.name for a, old in zip(narrowed.axes, c.axes) if a.interval != old.interval}
    loops = {a.name for a in p.axes} - part
    scattered = [e for e, t in zip(p.lhs, target) if e is not t]
    return not any(v.name in loops for v in nodes_of(scattered, n.Variable))


def _choice(e: n.Expr) -> n.Expr | None:
    """What to split next in a coordinate: a Select from the outside in, else a Min or Max from the inside out, whose condition is free of
    remainders. None without any, or where data decides."""
    if any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call)):
        return None
    found = [c for c in nodes_of(e, _CHOICES) if c.type is INT32 and not _sides(c)[0][0].mask & n.Mod.bit]
    selects = [c for c in found if isinstance(c, n.Select)]
    return (selects or found[::-1] or [None])[0]


def _sides(e: n.Expr) -> list[tuple[n.Expr, n.Expr]]:
    """(condition, value) of each side of a choice; a condition of alternatives gives a side for each."""
    if isinstance(e, n.Select):
        if isinstance(e.condition, n.Or):
            first, second = e.condition.a, e.condition.b
            return [(first, e.true_value), (b.and_(b.not_(first), second), e.true_value), (b.not_(e.condition), e.false_value)]
        return [(e.condition, e.true_value), (b.not_(e.condition), e.false_value)]
    assert isinstance(e, (n.Min, n.Max))
    first = n.LE(e.a, e.b) if isinstance(e, n.Min) else n.LE(e.b, e.a)
    return [(first, e.a), (b.not_(first), e.b)]


def _split(c: Contribution) -> Iterator[Contribution]:
    """The contribution without choices in its coordinates, as far as they can be split."""
    simpler = _where_it_counts(c)
    if simpler is None:
        return
    choice = next((found for found in map(_choice, simpler.coordinates) if found is not None), None)
    if choice is None:
        yield simpler
        return
    for condition, value in _sides(choice):
        coordinates = tuple(_replaced({choice: value}, k) for k in simpler.coordinates)
        yield from _split(dataclasses.replace(simpler, coordinates=coordinates, conditions=(*simpler.conditions, condition)))


def _where_it_counts(c: Contribution) -> Contribution | None:
    """The contribution with its coordinates simplified as its conditions allow; None when these cannot hold, for images that have
    elements."""
    conditions = [simplify(k) for k in c.conditions]
    extents = {v for v in nodes_of(c.coordinates, n.Variable) if v.param is not None and v.param.is_buffer and ".extent." in v.name}
    facts = simplify(b.all_of([*(n.LE(b.i32(1), v) for v in extents), *conditions, c.term.guard]))
    if b.is_false(facts):
        return None
    stmt = simplify(b.if_(facts, n.Provide("coordinates", c.coordinates, (), b.TRUE)))
    if isinstance(stmt, n.IfThenElse):
        stmt = stmt.then_case
    if not isinstance(stmt, n.Provide):
        return None
    return dataclasses.replace(c, coordinates=stmt.values, conditions=tuple(k for k in conditions if not b.is_true(k)))


def _replaced(known: dict[n.Expr, n.Expr], e: n.Expr) -> n.Expr:
    def choice(one: n.Expr, rec: Rec) -> n.Expr:
        return rec(known[one]) if one in known else one.map_children(rec)  # type: ignore[no-any-return]

    return rewrite(e, {n.Min: choice, n.Max: choice, n.Select: choice})


def _narrowed(c: Contribution) -> Contribution | None:
    """The same with the intervals of its axes as its conditions limit them; None when nothing is left."""
    if not c.conditions:
        return c
    condition = simplify(b.and_(b.all_of(c.conditions), c.term.guard))
    if b.is_false(condition):
        return None
    scope = {a.name: a.interval for a in c.axes}
    probes = [n.Call(INT32, f"probe {a.name}", (a.variable(),), n.CallType.Halide) for a in c.axes]
    total: n.Expr = b.i32(0)
    for p in probes:
        total = n.Add(total, p)
    boxes = boxes_required(intrinsic("if_then_else", INT32, condition, total, b.i32(0)), scope)
    if any(p.name not in boxes for p in probes):  # the conditions hold nowhere
        return None
    axes = []
    for a, p in zip(c.axes, probes):
        interval = Interval(*(_end(e, old) for e, old in zip(_ends(boxes[p.name].intervals[0]), _ends(a.interval))))
        if interval.min is not None and interval.max is not None and b.is_true(simplify(n.LT(interval.max, interval.min))):
            return None
        axes.append(dataclasses.replace(a, interval=interval))
    return dataclasses.replace(c, axes=tuple(axes))


def _ends(i: Interval) -> tuple[n.Expr | None, n.Expr | None]:
    return i.min, i.max


def _end(e: n.Expr | None, old: n.Expr | None) -> n.Expr | None:
    """A narrower end if a reduction domain can have it: constants and parameters."""
    return old if e is None or any(v.param is None for v in nodes_of(e, n.Variable)) or e.mask & n.Call.bit else simplify(e)

