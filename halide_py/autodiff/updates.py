"""Reversing one update: from the adjoint of a Func behind it to that in front of it, and what it contributes to others.

Four kinds, tried in this order, the first that applies:
1. `f[p] = f[p] + h`, a sum: the adjoint passes unchanged.
2. Independent iterations: each place is written once and nothing written is read. What was written over gets no adjoint; values in front of
the
   update, where needed, come from a copy of the Func that stops there.
3. A selection, `f[p] = select(c, h, f[p])`, max(f[p], h), or a plain overwrite with repeated places: a companion Func records which
iteration
   wrote last (for a maximum: the first of the largest), and the adjoint goes there.
4. Anything else (`tape`): the loop is run again saving what it reads, then backwards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.simplify import prove, simplify
from ..ir.traverse import nodes_of
from ..ir.types import INT32, INT64, Type
from ..lang.func import Func
from .adjoints import AdjointSum, at_root, define, define_over, plain, reads
from .contributions import Axis, Contribution, check_bounded, place
from .stages import Stage, boxes_of, is_own, replace_own, stage_of
from .sweep import Term, reverse


class Context(Protocol):
    """What reversing an update needs of the pass over all Funcs."""

    notes: list[str]
    adjoints: set[str]

    def spread(self, stage: Stage, leaves: Sequence[tuple[n.Expr, Term]]) -> None:
        """Add contributions of a stage to the adjoints of the Funcs, images and parameters it read."""

    def adjoint_sum(self, f: Function, stage: int) -> AdjointSum:
        """An empty sum for the adjoint of a Func behind a stage."""

    def add(self, target: AdjointSum, stage: Stage, leaf: n.Call, term: Term) -> None:
        """Add one contribution of a stage to a sum."""

    def finish(self, s: AdjointSum) -> Func:
        """The Func of a sum."""


def seeds(stage: Stage, values: Sequence[n.Expr], adjoint: Sequence[n.Expr], guard: n.Expr) -> list[tuple[n.Expr, Term]]:
    """Each float value of a stage with its adjoint."""
    return [(v, Term(a, guard)) for v, a in zip(values, adjoint) if v.type.is_float()]


def mentions_own(stage: Stage, roots: Sequence[n.Expr]) -> bool:
    """Whether values of the Func itself are read."""
    return any(is_own(stage.function, c) for c in nodes_of(roots, n.Call))


def reverse_update(ctx: Context, stage: Stage, adjoint: Func) -> Func | None:
    """The adjoint in front of the update, given that behind it, for the first three kinds; None when the update is none of them."""
    if is_sum(ctx, stage, adjoint):
        return adjoint
    if is_independent(stage):
        return _independent(ctx, stage, adjoint)
    choice = selection(stage)
    return None if choice is None else _selection(ctx, stage, adjoint, *choice)


# ---------------------------------------------------------------------------------------------------------------
# 1. Sums


def is_sum(ctx: Context, stage: Stage, adjoint: Func) -> bool:
    """Whether the update only adds to what is there; then its contributions have been spread."""
    if [c.args for c in stage.own] != [stage.args] or mentions_own(stage, [*stage.args, stage.predicate]):
        return False
    at = reads(adjoint, stage.args)
    leaves = reverse(seeds(stage, stage.values, at, stage.predicate), stage.where(), None, stage.perhaps_unused)
    own = {leaf.value_index: term for leaf, term in leaves if isinstance(leaf, n.Call) and is_own(stage.function, leaf)}
    others = [(leaf, term) for leaf, term in leaves if not (isinstance(leaf, n.Call) and is_own(stage.function, leaf))]
    predicate = simplify(stage.predicate)
    for i, v in enumerate(stage.values):
        if v.type.is_float() and (i not in own or own[i].value is not at[i] or simplify(own[i].guard) is not predicate):
            return False
    if mentions_own(stage, [e for leaf, term in others for e in (*leaf.children(), term.value, term.guard)]):
        return False
    ctx.spread(stage, others)
    return True


# ---------------------------------------------------------------------------------------------------------------
# 2. Independent iterations


def writes(stage: Stage) -> Contribution:
    """The places a stage writes, as if it contributed there; pure variables run over everything."""
    axes = tuple(dataclasses.replace(a, interval=Interval.everything()) if a.pure else a for a in stage.axes)
    return Contribution(stage.args, Term(b.const(INT32, 1), stage.predicate), axes)


def is_independent(stage: Stage) -> bool:
    """Whether no iteration reads or writes what another one writes."""
    variables = tuple(n.Variable(INT32, a) for a in stage.function.args)
    if not stage.loops():
        return True
    if mentions_own(stage, [*stage.args, stage.predicate]) or place(writes(stage), variables).axes:
        return False
    return all(c.args == stage.args or _apart(stage, c.args) for c in stage.own)


def _apart(stage: Stage, read: tuple[n.Expr, ...]) -> bool:
    """Whether what is read is certainly outside of what the stage writes."""
    write_box, read_box = boxes_of(stage, [stage.args]), boxes_of(stage, [read])
    return any(d not in stage.pure and _disjoint(w, r) for d, (w, r) in enumerate(zip(write_box, read_box)))


def _disjoint(p: Interval, q: Interval) -> bool:
    below = p.max is not None and q.min is not None and prove(n.LT(p.max, q.min))
    return below or (q.max is not None and p.min is not None and prove(n.LT(q.max, p.min)))


def _independent(ctx: Context, stage: Stage, adjoint: Func) -> Func:
    f = stage.function
    before = in_front_of(f, stage.index)
    value = {(c.args, i): e for c in stage.own for i, e in enumerate(reads(before, c.args))}
    args, values = (tuple(replace_own(f, e, value) for e in each) for each in (stage.args, stage.values))
    now = dataclasses.replace(stage, args=args, values=values, predicate=replace_own(f, stage.predicate, value), own=())
    leaves = reverse(seeds(now, values, reads(adjoint, args), now.predicate), stage.where(), None, stage.perhaps_unused)
    s = ctx.adjoint_sum(f, stage.index - 1)
    written = place(writes(now), s.variables())
    s.base = [b.select(written.condition(), b.const(a.type, 0), a) for a in reads(adjoint, s.variables())]
    others = []
    for leaf, term in leaves:
        if isinstance(leaf, n.Call) and leaf.func is before.function:
            ctx.add(s, now, leaf, term)
        else:
            others.append((leaf, term))
    ctx.spread(now, others)
    return ctx.finish(s)


def in_front_of(f: Function, index: int) -> Func:
    """A copy of a Func that has only the stages in front of stage `index`, computed at the root."""
    copy = Func(f"{plain(f.name)}_in_front_of_update{index - 1}")
    for k in range(index):
        stage = stage_of(f, k, (Interval.everything(),) * len(f.args))
        value = {(c.args, i): e for c in stage.own for i, e in enumerate(reads(copy, c.args))} if k else {}
        args, values = ([replace_own(f, e, value) for e in each] for each in (stage.args, stage.values))
        define_over(copy, stage, args, values, replace_own(f, stage.predicate, value))
    return at_root(copy)


# ---------------------------------------------------------------------------------------------------------------
# 3. Selections



def selection(stage: Stage) -> tuple[n.Expr, tuple[n.Expr, ...]] | None:
    """(c, h) when the update is, for every value i, `select(c, h[i], own value i)`, one c for all, with nothing of its own in h."""
    own = {i: n.Call(v.type, stage.function.name, stage.args, n.CallType.Halide, None, i) for i, v in enumerate(stage.values)}
    if mentions_own(stage, [*stage.args, stage.predicate]):
        return None
    parts = [_choice(v, own[i]) for i, v in enumerate(stage.values)]
    conditions = {c for c, _ in parts}
    new = tuple(h for _, h in parts)
    return (parts[0][0], new) if len(conditions) == 1 and not mentions_own(stage, new) else None


def _choice(value: n.Expr, own: n.Expr) -> tuple[n.Expr, n.Expr]:
    """Condition and new value of one element; the first of equal extrema wins."""
    if isinstance(value, n.Select) and value.false_value is own:
        return value.condition, value.true_value
    if isinstance(value, n.Select) and value.true_value is own:
        return b.not_(value.condition), value.false_value
    if isinstance(value, (n.Max, n.Min)) and own in (value.a, value.b):
        other = value.b if value.a is own else value.a
        return (n.LT(own, other) if isinstance(value, n.Max) else n.LT(other, own)), other
    return b.TRUE, value


def _selection(ctx: Context, stage: Stage, adjoint: Func, condition: n.Expr, new: tuple[n.Expr, ...]) -> Func:
    f = stage.function
    check_bounded(stage.loops(), f"Func {f.name}", stage.where())
    number = iteration(stage.loops(), INT32 if iterations(stage.loops()) < 1 << 31 else INT64)
    own_needed = mentions_own(stage, [condition])
    winner = Func(f"{plain(f.name)}_winner_of_update{stage.index - 1}")
    s = ctx.adjoint_sum(f, stage.index - 1)
    start = reads(in_front_of(f, stage.index), s.variables()) if own_needed else []
    define(winner, s.variables(), [*start, b.const(number.type, -1)])
    value = {(c.args, i): e for c in stage.own for i, e in enumerate(reads(winner, c.args))} if own_needed else {}
    chosen = replace_own(f, condition, value) if own_needed else condition
    kept = reads(winner, stage.args)
    updated = [b.select(chosen, e, k) for e, k in zip([*new, number] if own_needed else [number], kept)]
    define_over(winner, stage, stage.args, updated, stage.predicate)
    at_root(winner)

    def last(at: Sequence[n.Expr]) -> n.Expr:
        return reads(winner, at)[-1]

    guard = b.and_(stage.predicate, n.EQ(last(stage.args), number))
    leaves = reverse(seeds(stage, new, reads(adjoint, stage.args), guard), stage.where(), None, stage.perhaps_unused)
    ctx.spread(stage, leaves)
    untouched = n.LT(last(s.variables()), b.const(number.type, 0))
    s.base = [b.select(untouched, a, b.const(a.type, 0)) for a in reads(adjoint, s.variables())]
    return ctx.finish(s)


def iterations(loops: Sequence[Axis]) -> int:
    """How many iterations there are, a very large number when that is no constant."""
    count = 1
    for a in loops:
        count *= a.size() + 1
    return count


def iteration(loops: Sequence[Axis], t: Type) -> n.Expr:
    """The number of an iteration, from 0, the first axis fastest."""
    number, stride = b.const(t, 0), b.const(t, 1)
    for a in loops:
        assert a.interval.min is not None and a.interval.max is not None
        number = b.add(number, b.mul(b.cast(t, b.sub(a.variable(), a.interval.min)), stride))
        stride = b.mul(stride, b.cast(t, simplify(b.add(b.sub(a.interval.max, a.interval.min), b.i32(1)))))
    return simplify(number)
