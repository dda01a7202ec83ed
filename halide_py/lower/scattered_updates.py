"""Updates `a[i] = a[i] op e` of which several lanes may write the same element: i and e are computed as vectors, the rest lane by lane.

For `vectorize`, which makes a loop over the lanes of all else whose lanes may collide. Lanes keep their order, so results are those of the
loop. Limit: where i and e are little work, taking lanes out of vectors costs more than computing them one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import Rec, mentions, nodes_of
from .lanes import BINARY

_WORK = (n.Add, n.Sub, n.Mul, n.Div, n.Mod, n.Min, n.Max, n.Select, n.Call)
_WORTH, _MOST_LANES = 4, 16  # operations in vectors that are worth it; lanes, since each is a statement


def scattered(s: n.Store, rec: Rec, count: int, fresh: Callable[[], str]) -> n.Stmt | None:
    """The store `s` for `count` lanes, `rec` giving the widened form of an expression and `fresh` names for vectors; None where it has
    another form, or is not worth it."""
    kind, e = type(s.value), s.value
    if kind not in BINARY or e.type.is_vector() or rec(s.predicate) is not s.predicate or count > _MOST_LANES:
        return None
    first = isinstance(e.a, n.Load) and e.a.name == s.name  # type: ignore[attr-defined]
    own, other = (e.a, e.b) if first else (e.b, e.a)  # type: ignore[attr-defined]
    if not isinstance(own, n.Load) or own.index is not s.index or any(mentions(x, s.name) for x in (s.index, other)):
        return None
    wide = [rec(x) for x in (s.index, other)]
    if sum(x.type.is_vector() for x in nodes_of(wide, _WORK)) < _WORTH:
        return None
    lets: list[tuple[str, n.Expr]] = []
    lanes: list[list[n.Expr]] = []
    for x in wide:
        if x.type.is_vector():
            lets.append((fresh(), x))
            vector = n.Variable(x.type, lets[-1][0])
            lanes.append([n.Shuffle((vector,), (k,)) for k in range(count)])
        else:
            lanes.append([x] * count)
    stores = []
    for i, operand in zip(*lanes):
        mine = n.Load(own.type, s.name, i, own.predicate, own.param)
        value = kind(mine, operand) if first else kind(operand, mine)  # type: ignore[call-arg]
        stores.append(n.Store(s.name, value, i, s.predicate, s.param))
    return b.let_stmts(lets, b.block(stores))
