"""Sums in blocks: a sum of very many terms into few places, as partial sums in vectors and threads, and the sum of these.

A gradient of weights sums over whole images. In: one update `f[x] += v(x, i, ..., j)` over a reduction domain with the axes i (innermost) to j. Out: a Func
with `p[lane, x, block] += v(x, 16 * t + lane, ..., rows of the block)`, and `f[x] += p[lane, x, block]` over all lanes and blocks. The order of the terms is
that of the blocks, whatever the schedule; it also rounds less than one long sum. Limits: gathers only, and places that are known to be few.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify import simplify
from ..ir.traverse import substitute
from ..ir.types import INT32
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.rdom import RDom, RVar
from ..lang.var import Var
from .contributions import Axis, Placed

LANES = 16
_BLOCKS = 64
_FEW = 4096  # places
_MANY = 4096  # terms


def is_large_sum(p: Placed, places: int | None) -> bool:
    """Whether a contribution sums many terms into few places; `places` is their number, None where it is not known."""
    if p.is_scatter() or not p.axes or places is None or places > _FEW:
        return False
    terms = 1
    for a in p.axes:
        terms *= a.size() + 1
    return terms >= _MANY and all(a.interval.is_bounded() for a in p.axes)


def partial_sums(name: str, args: Sequence[str], p: Placed, value: n.Expr) -> tuple[Func, Expr]:
    """The Func of partial sums, and what is to be added up at the places `args`: an Expr over a domain of its own. `value` is a term, over the axes of `p`."""
    first, last = p.axes[0], p.axes[-1]
    lane, block = _fresh("lane", args), _fresh("block", args)
    count, low = _extent(first), _low(first)
    several = len(p.axes) > 1
    rows = simplify(b.div(b.add(_extent(last), b.i32(_BLOCKS - 1)), b.i32(_BLOCKS))) if several else b.i32(1)
    steps = simplify(b.div(b.add(count, b.i32(LANES - 1)), b.i32(LANES)))
    middle = p.axes[1:-1]
    domain = RDom([(0, Expr.of(steps)), *((Expr.of(_low(a)), Expr.of(_extent(a))) for a in middle), *([(0, Expr.of(rows))] if several else [])])
    r = [domain[i].as_node() for i in range(domain.dimensions())]
    at: dict[str, n.Expr] = {a.name: r[1 + i] for i, a in enumerate(middle)}
    at[first.name] = b.add(low, b.add(b.mul(r[0], b.i32(LANES)), n.Variable(INT32, lane)))
    inside: list[n.Expr] = [b.likely(n.LE(at[first.name], _high(first)))]
    if several:
        at[last.name] = b.add(_low(last), b.add(b.mul(n.Variable(INT32, block), rows), r[-1]))
        inside.append(b.likely(n.LE(at[last.name], _high(last))))
    f = Func(f"{name}_blocks")
    zero = b.const(value.type, 0)
    dims = [Var(v) for v in (lane, *args, block)]
    f[tuple(dims)] = Expr.of(zero)
    term = b.select(b.all_of(inside), substitute(at, value), zero)
    f[tuple(dims)] = Expr.of(n.Add(n.Call(value.type, f.name(), tuple(d.as_node() for d in dims), n.CallType.Halide, f.function), term))
    blocks = simplify(b.div(b.add(_extent(last), b.sub(rows, b.i32(1))), rows)) if several else b.i32(1)
    f.bound(dims[0], 0, LANES).compute_root().vectorize(dims[0]).parallel(dims[-1])
    f.update(0).reorder([dims[0], *(RVar(v.name()) for v in domain), *dims[1:]]).vectorize(dims[0]).parallel(dims[-1])
    over = RDom([(0, LANES), (0, Expr.of(blocks))])
    places = [n.Variable(INT32, a) for a in args]
    total = n.Call(value.type, f.name(), (over[0].as_node(), *places, over[1].as_node()), n.CallType.Halide, f.function)
    return f, Expr.of(total)


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


def _extent(a: Axis) -> n.Expr:
    return simplify(b.add(b.sub(_high(a), _low(a)), b.i32(1)))
