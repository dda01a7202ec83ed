"""Scatters in blocks: a sum that goes to places that its terms say, as a Func with a copy of all places for each block of terms.

In: a contribution `f[p(i, j)] += v(i, j)` over axes i (innermost) to j, with many more terms than places. Out: a Func `s[x, block]`, with
`s[p(i, j), block] += v(i, j)` where j runs over the rows of a block, so that blocks run in threads; the value at x is their sum. The order
of the terms is fixed here, whatever the schedule. Limits: no coordinate is solved (else that dimension can run in threads), and sizes are
known. Source: privatization of histograms, for example Podlozhnyuk, Histogram calculation in CUDA, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify import simplify
from ..ir.traverse import substitute
from ..ir.types import INT32
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.rdom import RDom
from ..lang.var import Var
from .contributions import Placed
from .domains import mentioning, mentions

_BLOCKS = 16
_TERMS = 2  # of a place in a block, that are worth it
_LONG = 1 << 31  # an axis of a size that is not known
_PLACES = 1 << 18  # that there may be copies of


def scatter_apart(name: str, args: Sequence[str], p: Placed, sizes: Sequence[int | None]) -> n.Expr | None:
    """The value of a contribution at the places `args`, from a Func that is made for it; None where that does not pay. `sizes`: how many
    places there are in each dimension, None where that is not known."""
    places = math.prod(size if size is not None else _PLACES + 1 for size in sizes)
    if not p.axes or any(isinstance(e, n.Variable) and e.name == v for e, v in zip(p.lhs, args)) or places > _PLACES:
        return None
    last = p.axes[-1]
    if last.size() < _BLOCKS or not all(a.interval.is_bounded() and a.size() < _LONG for a in p.axes):
        return None
    if math.prod(a.size() + 1 for a in p.axes) < _TERMS * _BLOCKS * places:
        return None
    block = "block"
    while block in args:
        block += "_"
    rows = -(-(last.size() + 1) // _BLOCKS)
    ranges = [(a.interval.min, a.size() + 1) for a in p.axes[:-1]]
    domain = RDom([*((Expr.of(low), extent) for low, extent in ranges if low is not None), (0, rows)])
    r = [domain[i].as_node() for i in range(domain.dimensions())]
    assert last.interval.min is not None and last.interval.max is not None
    row = b.add(last.interval.min, b.add(b.mul(n.Variable(INT32, block), b.i32(rows)), r[-1]))
    at: dict[str, n.Expr] = {a.name: r[i] for i, a in enumerate(p.axes[:-1])} | {last.name: row}
    domain.where(Expr.of(simplify(b.and_(b.likely(n.LE(row, last.interval.max)), substitute(at, p.condition())))))
    f = Func(f"{name}_scatter")
    zero = b.const(p.value.type, 0)
    f[tuple(Var(v) for v in (*args, block))] = Expr.of(zero)
    where = tuple(simplify(substitute(at, e)) for e in (*p.lhs, n.Variable(INT32, block)))
    old = n.Call(p.value.type, f.name(), where, n.CallType.Halide, f.function)
    value = simplify(substitute(at, p.value))
    f[tuple(map(Expr.of, where))] = Expr.of(n.Add(old, value if mentions(domain, [*where, value]) else mentioning(domain, value)))
    f.bound(Var(block), 0, _BLOCKS)
    for v, size in zip(args, sizes):
        f.set_estimate(Var(v), 0, size)
    f.compute_root()
    f.function.schedule.default_loops = True
    here = [n.Variable(INT32, v) for v in args]
    parts = [n.Call(p.value.type, f.name(), (*here, b.i32(k)), n.CallType.Halide, f.function) for k in range(_BLOCKS)]
    total: n.Expr = parts[0]
    for part in parts[1:]:
        total = n.Add(total, part)
    return total
