"""Lanes that take turns become vectors of their own: a store whose value depends on `x % m` along its lanes is m stores at stride m.

Before: `f[ramp(x, 1, 16)] = select(ramp(x, 1, 16) % 2 == 0, a, c)`. After: `f[ramp(x, 2, 8)] = select(x % 2 == 0, even lanes of a, ..)` and
`f[ramp(x + 1, 2, 8)] = ..`: the remainder is one for all lanes, mostly a constant, so half the work goes, and `ramp / m` is a dense ramp.
The C text writes such stores as dense ones again. Needs: a dividend that is a ramp; 2 <= m <= 4; a value that does not read what is stored
and has no effects. Behaviour: Halide's Deinterleave.cpp.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import Rec, mentions, nodes_of, rewrite

_PURE = (n.CallType.PureIntrinsic, n.CallType.PureExtern)
_FEWEST = 4  # lanes that are worth a vector


def _period(s: n.Store) -> int | None:
    """The m of the remainders that a store's value depends on."""
    lanes = s.value.type.lanes()
    if lanes == 1 or not s.value.mask & n.Mod.bit or mentions(s.value, s.name):
        return None
    if any(c.call_type not in _PURE for c in nodes_of((s.value, s.index, s.predicate), n.Call)):
        return None
    for remainder in nodes_of(s.value, n.Mod):
        m, x = b.as_int(remainder.b), remainder.a
        if m is None or not 2 <= m <= 4 or lanes % m or lanes // m < _FEWEST or remainder.type.lanes() != lanes:
            continue
        if isinstance(x, n.Ramp) and x.base.type.is_scalar() and (stride := b.as_int(x.stride)) is not None and stride % m:
            return m
    return None


class _Phase:
    """Lanes `first`, `first + step`, ... of expressions."""

    def __init__(self, first: int, step: int) -> None:
        self.first, self.step = first, step
        self.found: dict[n.Expr, n.Expr] = {}

    def of(self, e: n.Expr) -> n.Expr:
        """The lanes of a vector; a scalar as it is."""
        if e.type.is_scalar():
            return e
        if e not in self.found:
            self.found[e] = self._of(e)
        return self.found[e]

    def _of(self, e: n.Expr) -> n.Expr:
        t = e.type.with_lanes(e.type.lanes() // self.step)
        if isinstance(e, n.Ramp):
            return self._ramp(e)
        if isinstance(e, n.Broadcast) and (e.value.type.is_scalar() or e.value.type.lanes() % self.step == 0):
            scalar = e.value.type.is_scalar()
            return n.Broadcast(e.value, e.lanes // self.step) if scalar else n.Broadcast(self.of(e.value), e.lanes)
        if isinstance(e, (n.Cast, n.Reinterpret)):
            return type(e)(t, self.of(e.value))
        if isinstance(e, n.Load):
            return n.Load(t, e.name, self.of(e.index), self.of(e.predicate), e.param)
        if isinstance(e, n.Call):
            return n.Call(t, e.name, tuple(map(self.of, e.args)), e.call_type, e.func, e.value_index, e.param)
        if isinstance(e, n.Let):
            return n.Let(e.name, e.value, self.of(e.body))
        if isinstance(e, n.Shuffle):
            return n.Shuffle(e.vectors, e.indices[self.first::self.step])
        if isinstance(e, (n.Variable, n.VectorReduce, n.Broadcast)):
            return n.Shuffle((e,), tuple(range(self.first, e.type.lanes(), self.step)))
        return e.map_children(self.of)  # type: ignore[no-any-return]

    def _ramp(self, e: n.Ramp) -> n.Expr:
        if e.base.type.is_scalar() and e.lanes % self.step == 0:
            first, step = (b.mul(e.stride, b.const(e.stride.type, k)) for k in (self.first, self.step))
            return n.Ramp(b.add(e.base, first), step, e.lanes // self.step)
        if not e.base.type.is_scalar() and e.base.type.lanes() % self.step == 0:
            return n.Ramp(self.of(e.base), self.of(e.stride), e.lanes)
        return n.Shuffle((e,), tuple(range(self.first, e.type.lanes(), self.step)))


def lane_phases(stmt: n.Stmt) -> n.Stmt:
    """`stmt` with such stores split."""

    def store(s: n.Store, rec: Rec) -> n.Stmt:
        m = _period(s)
        if m is None:
            return s
        phases = [_Phase(k, m) for k in range(m)]
        return b.block(n.Store(s.name, p.of(s.value), p.of(s.index), p.of(s.predicate), s.param) for p in phases)

    return rewrite(stmt, {n.Store: store}) if stmt.mask & n.Mod.bit else stmt
