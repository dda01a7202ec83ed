"""Lane accumulators: what vector reductions combine stays in vectors while their loops run; lanes are combined once, at the end.

Before: `for r { f[i] = f[i] + vector_reduce(v) }`. After: `allocate f.lanes { f.lanes[0 ..] = identity; for r { f.lanes[0 ..] = f.lanes[0
..] + v }; f[i] = f[i] + vector_reduce(f.lanes[0 ..]) }`, around the outermost loop that does nothing else and in which `i` stays the same.

Whoever makes a reduction a vector, as `atomic().vectorize(r)` does, has said that its order is free. Limits: sums and products, minima and
maxima of integers (those of floats have a rule for NaN to keep), accumulators that fit the registers, floats that are not strict.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..ir import build as b
from ..ir import nodes as n
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import Rec, free_variables, mentions, rewrite

LARGEST = 2048  # bytes of one loop's accumulators: the register file of AVX-512
_NODES: dict[n.ReduceOp, type[n.Add | n.Mul | n.Min | n.Max]] = {
    n.ReduceOp.Add: n.Add, n.ReduceOp.Mul: n.Mul, n.ReduceOp.Min: n.Min, n.ReduceOp.Max: n.Max}


@dataclass(frozen=True)
class _Update:
    """`store`, which is `name[index] = name[index] op reduced`, and may be done in any order."""

    store: n.Store
    reduced: n.VectorReduce

    def bytes(self) -> int:
        """The size of its accumulators."""
        t = self.reduced.value.type
        return t.lanes() * t.bytes()

    def old(self) -> n.Load:
        """What it adds to."""
        return n.Load(self.store.value.type, self.store.name, self.store.index, self.store.predicate, self.store.param)

    def combined(self, old: n.Expr, new: n.Expr) -> n.Expr:
        """Two values of one type as one."""
        return _NODES[self.reduced.op](old, new)

    def identity(self) -> n.Expr:
        """What changes nothing; of float sums -0, since 0 would change -0."""
        op, t = self.reduced.op, self.reduced.value.type
        neutral = {n.ReduceOp.Add: -0.0 if t.is_float() else 0, n.ReduceOp.Mul: 1}
        return b.const(t, neutral[op] if op in neutral else t.max_value() if op is n.ReduceOp.Min else t.min_value())


def _update(s: n.Store) -> _Update | None:
    op, t = next((op for op, kind in _NODES.items() if type(s.value) is kind), None), s.value.type
    if op is None or not b.is_true(s.predicate) or t.is_bool() or (t.is_float() and op in (n.ReduceOp.Min, n.ReduceOp.Max)):
        return None
    for mine, other in itertools.permutations(s.value.children()):
        if isinstance(other, n.VectorReduce) and other.op is op and not mentions(other, s.name):
            found = _Update(s, other)
            return found if found.old() is mine else None
    return None


def _updates(s: n.Stmt, bound: set[str]) -> list[_Update] | None:
    """The updates that a statement consists of, None if there is something else; the names it binds go to `bound`."""
    if isinstance(s, n.Store):
        one = _update(s)
        return None if one is None else [one]
    if isinstance(s, n.LetStmt) or isinstance(s, n.For) and s.kind is n.ForType.Serial:
        bound.add(s.name)
        return _updates(s.body, bound)
    if isinstance(s, n.IfThenElse) and s.else_case is None:
        return _updates(s.then_case, bound)
    found: list[_Update] = []
    for part in s.stmts if isinstance(s, n.Block) else ():
        inside = _updates(part, bound)
        if inside is None:
            return None
        found += inside
    return found or None


def _movable(loop: n.For) -> dict[n.Store, _Update]:
    """The updates that a loop consists of, if their accumulators may be outside of it."""
    bound: set[str] = set()
    found = {one.store: one for one in _updates(loop, bound) or ()}
    ops = {one.store.name: one.reduced.op for one in found.values()}
    steady = all(not free_variables(s.index).keys() & bound and one.reduced.op is ops[s.name] for s, one in found.items())
    apart = not any(mentions(one.reduced, name) for one in found.values() for name in ops)
    return found if steady and apart and sum(one.bytes() for one in found.values()) <= LARGEST else {}


def _around(loop: n.For, updates: dict[n.Store, _Update], numbers: Iterator[int]) -> n.Stmt:
    """A loop between where its accumulators begin and where their lanes are combined."""
    names = {s: f"{s.name}.lanes{next(numbers)}" for s in updates}

    def lanes(s: n.Store) -> n.Load:
        t = updates[s].reduced.value.type
        return n.Load(t, names[s], n.Ramp(b.i32(0), b.i32(1), t.lanes()), b.true(t.lanes()))

    def written(at: n.Load, value: n.Expr) -> n.Store:
        return n.Store(at.name, value, at.index, at.predicate)

    def store(s: n.Store, rec: Rec) -> n.Stmt:
        return written(lanes(s), updates[s].combined(lanes(s), updates[s].reduced.value))

    first, last = [], []
    for s, one in updates.items():
        first.append(written(lanes(s), one.identity()))
        total = n.VectorReduce(one.reduced.op, lanes(s), one.reduced.lanes)
        last.append(n.Store(s.name, one.combined(one.old(), total), s.index, s.predicate, s.param))
    body = b.block([*first, rewrite(loop, {n.Store: store}), *last])
    for s, one in updates.items():
        t = one.reduced.value.type
        body = n.Allocate(names[s], t.element_of(), n.MemoryType.Stack, (b.i32(t.lanes()),), b.TRUE, 0, body)
    return body


def lane_accumulators(stmt: n.Stmt, target: Target) -> n.Stmt:
    """Move what vector reductions combine out of their loops. Names must be bound once."""
    if target.has_feature(TargetFeature.StrictFloat):
        return stmt
    numbers = itertools.count()

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        if not f.mask & n.VectorReduce.bit:
            return f
        updates = _movable(f) if f.kind is n.ForType.Serial else {}
        return _around(f, updates, numbers) if updates else f.map_children(rec)

    return rewrite(stmt, {n.For: loop})
