"""How int32 expressions move with a loop variable: which way, and how far back a value lies."""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify import prove, simplify
from ..ir.simplify.linear import gather, rebuild
from ..ir.traverse import Rec, mentions, rewrite, substitute
from ..ir.types import INT32

_MOST_EXTREMA = 4  # in one sum: both sides of each are looked at


def monotonic(e: n.Expr, name: str) -> int | None:
    """1: `e` never falls as variable `name` grows; -1: never rises; 0: does not depend on it; None: unknown."""
    return _Movement(name).of(e)


class _Movement:
    """With a variable; each node is asked once, as regions of long chains share most of what they are made of."""

    def __init__(self, name: str) -> None:
        self.name, self.bit = name, n.symbol_bit(name)
        self.known: dict[n.Expr, int | None] = {}

    def of(self, e: n.Expr) -> int | None:
        if not e.symbols & self.bit:
            return 0
        if e not in self.known:
            moves = self.moves(e)
            self.known[e] = 0 if moves is None and not mentions(e, self.name) else moves
        return self.known[e]

    def moves(self, e: n.Expr) -> int | None:
        if isinstance(e, n.Variable):
            return int(e.name == self.name)
        if isinstance(e, (n.Min, n.Max)):
            return _join(self.of(e.a), self.of(e.b))
        if isinstance(e, (n.Add, n.Sub)):
            right = self.of(e.b)
            one_way = _join(self.of(e.a), right if right is None or isinstance(e, n.Add) else -right)
            return self.sum_of_extremum(e) if one_way is None else one_way
        if isinstance(e, (n.Mul, n.Div)):
            factor, left = b.as_int(e.b), self.of(e.a)
            if isinstance(e, n.Mul) and factor is None:
                factor, left = b.as_int(e.a), self.of(e.b)
            return None if factor is None or left is None else left * ((factor > 0) - (factor < 0))
        if isinstance(e, n.Select):
            return self.choice(e)
        return self.of(e.args[0]) if b.is_likely(e) else None  # type: ignore[attr-defined]

    def sum_of_extremum(self, e: n.Expr) -> int | None:
        """A sum moves one way if it does with either side of an extremum in it: x + min(y - x, 2) is min(y, x + 2)."""
        terms, constant = gather(e)
        extrema = [t for t, k in terms.items() if isinstance(t, (n.Min, n.Max)) and abs(k) == 1 and t.symbols & self.bit]
        if not 0 < len(extrema) <= _MOST_EXTREMA:
            return None
        one = extrema[0]
        assert isinstance(one, (n.Min, n.Max))
        sign = terms.pop(one)
        rest = rebuild(e.type, terms, constant)
        return _join(*(self.of(simplify(b.add(rest, side) if sign > 0 else b.sub(rest, side))) for side in (one.a, one.b)))

    def choice(self, e: n.Select) -> int | None:
        """A Select moves one way if both values do, and it decides once and for all, or first for one value and then for one that goes on
        from there."""
        name, moves = self.name, _join(self.of(e.true_value), self.of(e.false_value))
        if moves is None or not mentions(e.condition, name):
            return moves
        c = e.condition.args[0] if b.is_likely(e.condition) else e.condition  # type: ignore[attr-defined]
        if not isinstance(c, n.LT) or not isinstance(c.b, n.Variable) or c.b.name != name or mentions(c.a, name):
            return None
        before, after = substitute({name: c.a}, e.false_value), substitute({name: b.add(c.a, b.i32(1))}, e.true_value)
        if moves >= 0 and prove(b.le(before, after)):
            return 1
        return -1 if moves <= 0 and prove(b.le(after, before)) else None


def _join(a: int | None, c: int | None) -> int | None:
    if a is None or c is None or a * c < 0:
        return None
    return a or c


def unclamped(e: n.Expr, name: str) -> n.Expr:
    """`e` as it moves with variable `name` away from what limits it: of an extremum the side that moves, of a choice the value of the
    first iterations."""

    def extremum(m: n.Min | n.Max, rec: Rec) -> n.Expr:
        moving = [side for side in (m.a, m.b) if mentions(side, name)]
        return rec(moving[0]) if len(moving) == 1 else m.map_children(rec)  # type: ignore[no-any-return]

    def choice(s: n.Select, rec: Rec) -> n.Expr:
        return rec(s.false_value) if mentions(s.condition, name) else s.map_children(rec)  # type: ignore[no-any-return]

    return simplify(rewrite(e, {n.Min: extremum, n.Max: extremum, n.Select: choice}))


def latest(e: n.Expr, name: str, limit: n.Expr, sign: int = 1) -> n.Expr | None:
    """A value of variable `name` up to which `sign * e`, which does not fall and is taken without what clamps it, is at most `limit`; the
    greatest one where `e` moves by itself alone. None where that is not known."""
    if isinstance(e, n.Variable) and e.name == name:
        return limit if sign > 0 else None
    if isinstance(e, (n.Min, n.Max)):
        found = [latest(side, name, limit, sign) for side in (e.a, e.b) if mentions(side, name)] or [None]
        one, two = found[0], found[-1]
        return None if one is None or two is None else simplify(b.min_(one, two))
    if isinstance(e, n.Div):
        k = b.as_int(e.b)
        if k is None or k <= 0:
            return None
        scaled = b.mul(limit, b.i32(k))
        return latest(e.a, name, b.add(scaled, b.i32(k - 1)) if sign > 0 else scaled, sign)
    terms, constant = gather(e)
    moving = [t for t in terms if mentions(t, name)]
    if len(moving) != 1 or moving[0] is e:
        return None
    factor = sign * terms.pop(moving[0])
    rest = b.sub(limit, b.mul(rebuild(INT32, terms, constant), b.i32(sign)))
    return latest(moving[0], name, simplify(b.div(rest, b.i32(abs(factor)))), 1 if factor > 0 else -1)
