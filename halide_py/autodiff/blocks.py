"""Sums apart: a sum of many terms as a Func of its own, over exactly the places that have one, in vectors and blocks where that pays.

A gradient of weights sums over whole images. In: a contribution `f[x] += v(x, i, ..., j)` where lo <= x <= hi, over the axes i (innermost)
to j. Out: a Func `s` of x in [lo, hi] without these conditions, `s[x] += v(x, i, ..., j)`, and its value at x, 0 elsewhere. Where adjacent
terms are adjacent in memory, and adjacent places are not, s reads a copy where they are, if that pays (`packed`); else it has a dimension
more, `s[lane, x] += v(x, 16 * t + lane, ..., j)`. Where places are few, it has one more, `block`, for rows of the last axis. These are then
added up. The order of the terms is fixed here, whatever the schedule; sums in parts round less than one long sum. Limits: gathers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval
from ..ir.simplify import simplify
from ..ir.traverse import free_variables, substitute
from ..ir.types import INT32
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.rdom import RDom
from ..lang.var import Var
from ..lower.register_tiles import Read, dense_along, reads_of
from .contributions import Axis, Placed
from .domains import mentioning, mentions
from .packed import packing

LANES = 16
_BLOCKS = 64
_FEW = 4096  # places
_MANY = 4096  # terms that are worth blocks
_SOME = 64  # terms that are worth a Func


def sum_apart(name: str, args: Sequence[str], p: Placed, sizes: Sequence[int | None]) -> n.Expr | None:
    """The value of a contribution at the places `args`, from a Func that is made for it; None where that does not pay. `sizes`: how many
    places there are in each dimension, None where that is not known."""
    if p.is_scatter() or not p.axes or not all(a.interval.is_bounded() for a in p.axes):
        return None
    terms = math.prod(a.size() + 1 for a in p.axes)
    if terms < _SOME:
        return None
    ends, conditions = _ends(p, args)
    reads = reads_of([p.value])
    few = math.prod(_FEW + 1 if size is None else size for size in sizes) <= _FEW and terms >= _MANY
    known = dict(zip(args, sizes))
    along = _lane_axis(p, args, known, reads)
    if along is None and not few and not ends:
        return None
    packed = packing(p.value, known, p.axes, LANES) if along is not None and not few else None
    value = p.value if packed is None else packed.pack(name, p.value)
    term = b.select(b.and_(simplify(b.all_of(conditions)), p.guard), value, b.const(p.value.type, 0))
    if packed is not None:
        args = [packed.along, *(v for v in args if v != packed.along)]
    make = _Maker(name, args, ends, known)
    if packed is not None or along is None and not few:
        total = make.whole(p.axes, term)
    else:
        total = make.parts((along or p.axes[0], *(a for a in p.axes if a is not (along or p.axes[0]))), term, few)
    at: dict[str, n.Expr] = {v: n.Variable(INT32, v) for v in args}
    inside = []
    for dimension, i in ends.items():
        assert i.min is not None and i.max is not None
        inside += [n.LE(i.min, at[dimension]), n.LE(at[dimension], i.max)]
        at[dimension] = b.max_(b.min_(at[dimension], i.max), i.min)
    value = n.Call(p.value.type, total.name(), tuple(at[v] for v in args), n.CallType.Halide, total.function)
    return b.select(b.likely(b.all_of(inside)), value, b.const(p.value.type, 0)) if inside else value


def _ends(p: Placed, args: Sequence[str]) -> tuple[dict[str, Interval], list[n.Expr]]:
    """The places there are, as far as conditions say so for one dimension, and the other conditions."""
    low: dict[str, n.Expr] = {}
    high: dict[str, n.Expr] = {}
    rest: list[n.Expr] = []
    unknown = {*args, *(a.name for a in p.axes)}
    work = [*((c, True) for c in p.conditions), *((c, False) for c in p.regions)]
    while work:
        c, needed = work.pop()
        if isinstance(c, n.And):
            work += [(c.a, needed), (c.b, needed)]
            continue
        if isinstance(c, (n.LE, n.LT)) and c.a.type is INT32:
            strict = b.i32(1 if isinstance(c, n.LT) else 0)
            for variable, end, found, value in ((c.b, c.a, low, b.add(c.a, strict)), (c.a, c.b, high, b.sub(c.b, strict))):
                if (
                    isinstance(variable, n.Variable)
                    and variable.name in args
                    and variable.name not in found
                    and not unknown & set(free_variables(end))
                ):
                    found[variable.name] = simplify(value)
                    break
            else:
                rest += [c] if needed else []
            continue
        rest += [c] if needed else []
    both = {v: Interval(low[v], high[v]) for v in args if v in low and v in high}
    rest += [n.LE(end, n.Variable(INT32, v)) for v, end in low.items() if v not in both]
    rest += [n.LE(n.Variable(INT32, v), end) for v, end in high.items() if v not in both]
    return both, rest


def _lane_axis(p: Placed, args: Sequence[str], sizes: Mapping[str, int | None], reads: Sequence[Read]) -> Axis | None:
    """The axis whose adjacent terms are adjacent in memory, where this does not hold for a dimension that is known to be as long as a
    vector."""
    for v in args:
        if dense_along(reads, v) and (sizes[v] or 0) >= LANES:
            return None
    return next((a for a in p.axes if a.pure and a.size() >= LANES and dense_along(reads, a.name)), None)


@dataclass(frozen=True)
class _Maker:
    """Makes the Funcs of one sum."""

    name: str
    args: Sequence[str]
    ends: Mapping[str, Interval]
    sizes: Mapping[str, int | None]

    def accumulate(self, f: Func, at: Sequence[Var], value: n.Expr, ends: Mapping[str, Interval]) -> Func:
        """`f[at] = 0; f[at] += value`, computed once, over all places there are."""
        f[tuple(at)] = Expr.of(b.const(value.type, 0))
        f[tuple(at)] = Expr.of(n.Add(n.Call(value.type, f.name(), tuple(v.as_node() for v in at), n.CallType.Halide, f.function), value))
        for v in at:
            size, known = self.sizes.get(v.name()), ends.get(v.name())
            if known is not None:
                assert known.min is not None
                f.bound(v, Expr.of(known.min), Expr.of(_extent(known)))
            elif size is not None:
                f.set_estimate(v, 0, size)
        f.compute_root()
        f.function.schedule.default_loops = True
        return f

    def whole(self, axes: Sequence[Axis], term: n.Expr) -> Func:
        """The sum as it is."""
        domain = RDom([(Expr.of(_low(a)), Expr.of(_extent(a.interval))) for a in axes])
        value = simplify(substitute({a.name: domain[i].as_node() for i, a in enumerate(axes)}, term))
        value = value if mentions(domain, [value]) else mentioning(domain, value)
        return self.accumulate(Func(f"{self.name}_sum"), [Var(v) for v in self.args], value, self.ends)

    def parts(self, axes: Sequence[Axis], term: n.Expr, few: bool) -> Func:
        """Sums in lanes of the first of the axes, and, if places are `few`, in blocks of the last one; then of these."""
        first, last = axes[0], axes[-1]
        lane, block = _fresh("lane", self.args), _fresh("block", self.args)
        several = few and len(axes) > 1
        rows = simplify(b.div(b.add(_extent(last.interval), b.i32(_BLOCKS - 1)), b.i32(_BLOCKS)))
        steps = simplify(b.div(b.add(_extent(first.interval), b.i32(LANES - 1)), b.i32(LANES)))
        middle = axes[1:-1] if several else axes[1:]
        domain = RDom(
            [
                (0, Expr.of(steps)),
                *((Expr.of(_low(a)), Expr.of(_extent(a.interval))) for a in middle),
                *([(0, Expr.of(rows))] if several else []),
            ]
        )
        r = [domain[i].as_node() for i in range(domain.dimensions())]
        at: dict[str, n.Expr] = {a.name: r[1 + i] for i, a in enumerate(middle)}
        at[first.name] = b.add(_low(first), b.add(b.mul(r[0], b.i32(LANES)), n.Variable(INT32, lane)))
        inside: list[n.Expr] = [b.likely(n.LE(at[first.name], _high(first)))]
        ends = {**self.ends, lane: Interval(b.i32(0), b.i32(LANES - 1))}
        if several:
            at[last.name] = b.add(_low(last), b.add(b.mul(n.Variable(INT32, block), rows), r[-1]))
            inside.append(b.likely(n.LE(at[last.name], _high(last))))
            blocks = simplify(b.div(b.add(_extent(last.interval), b.sub(rows, b.i32(1))), rows))
            ends[block] = Interval(b.i32(0), simplify(b.sub(blocks, b.i32(1))))
        dims = [Var(v) for v in (lane, *self.args, *([block] if several else []))]
        value = simplify(b.select(b.all_of(inside), substitute(at, term), b.const(term.type, 0)))
        f = self.accumulate(Func(f"{self.name}_{'blocks' if several else 'lanes'}"), dims, value, ends)
        over = RDom([(0, LANES), *([(0, Expr.of(blocks))] if several else [])])
        where = (over[0].as_node(), *(n.Variable(INT32, a) for a in self.args), *([over[1].as_node()] if several else []))
        total = n.Call(term.type, f.name(), where, n.CallType.Halide, f.function)
        return self.accumulate(Func(f"{self.name}_sum"), [Var(v) for v in self.args], total, self.ends)


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _low(a: Axis) -> n.Expr:
    assert a.interval.min is not None
    return a.interval.min


def _high(a: Axis) -> n.Expr:
    assert a.interval.max is not None
    return a.interval.max


def _extent(i: Interval) -> n.Expr:
    assert i.min is not None and i.max is not None
    return simplify(b.add(b.sub(i.max, i.min), b.i32(1)))
