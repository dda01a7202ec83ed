"""Packed copies: what a sum reads, with another dimension innermost, where vectors could not be loaded otherwise.

`s[k, c] += a(x, k) * b(x, c)` reads adjacent memory along x, the sum, and not along k or c. After a copy `a_packed(k, x) = a(x, k)`,
vectors run over k and a tile of them meets several c. The copy is made once, so it pays where each element is used often. The order of the
terms stays what it is.
Source of the packing: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import nodes as n
from ..ir.simplify import linear
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite
from ..ir.types import INT32
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.var import Var
from .contributions import Axis

_USES = 256  # of an element, that are worth its copy


@dataclass(frozen=True)
class Packing:
    """What to copy: the reads that use variable `along`, all of them in dimension `dimension`."""

    along: str
    dimension: int
    calls: tuple[n.Call, ...]

    def pack(self, name: str, value: n.Expr) -> n.Expr:
        """The value with the reads replaced by those of the copies, which are made here."""
        copies: dict[tuple[str, int], Func] = {}

        def call(c: n.Call, rec: Rec) -> n.Expr:
            if c not in self.calls:
                return c.map_children(rec)  # type: ignore[no-any-return]
            key = c.name, c.value_index
            if key not in copies:
                copies[key] = self._copy(f"{name}_packed", c)
            f = copies[key]
            return n.Call(c.type, f.name(), self._turned(c.args), n.CallType.Halide, f.function)

        return rewrite(value, {n.Call: call})

    def _turned(self, args: Sequence[n.Expr]) -> tuple[n.Expr, ...]:
        d = self.dimension
        return (args[d], *args[:d], *args[d + 1:])

    def _copy(self, name: str, c: n.Call) -> Func:
        f = Func(name)
        at = tuple(n.Variable(INT32, f"_{i}") for i in range(len(c.args)))
        read = n.Call(c.type, c.name, at, c.call_type, c.func, c.value_index, c.param)
        f[tuple(Var(v.name) for v in self._turned(at) if isinstance(v, n.Variable))] = Expr.of(read)
        f.compute_root()
        f.function.schedule.default_loops = True
        return f


def packing(value: n.Expr, sizes: Mapping[str, int | None], axes: Sequence[Axis], lanes: int) -> Packing | None:
    """The copy that makes adjacent values along a free variable adjacent in memory, at `lanes` of them or more; None where none pays.

    `sizes`: how many values the free variables have, as far as that is known."""
    known = {**sizes, **{a.name: a.size() + 1 for a in axes}}
    reads = [c for c in nodes_of([value], n.Call) if c.call_type in (n.CallType.Halide, n.CallType.Image)]
    best: tuple[int, Packing] | None = None
    for v, size in sizes.items():
        calls = tuple(c for c in reads if v in free_variables(c.args))
        dimensions = {_dimension(c, v) for c in calls}
        d = dimensions.pop() if len(dimensions) == 1 else None
        if d is None or (size or 0) < lanes:
            continue
        uses = min(math.prod(known[u] or 1 for u in known if u not in free_variables(c.args)) for c in calls)
        if uses >= _USES and (best is None or uses > best[0]):
            best = uses, Packing(v, d, calls)
    return None if best is None else best[1]


def _dimension(c: n.Call, v: str) -> int | None:
    """The one dimension in which a read is at `v` plus what does not depend on it; else None, also where data says the place."""
    if any(k.call_type in (n.CallType.Halide, n.CallType.Image) for k in nodes_of(c.args, n.Call)):
        return None
    at = [d for d, e in enumerate(c.args) if v in free_variables(e)]
    terms, _ = linear.gather(c.args[at[0]])
    alone = [factor for term, factor in terms.items() if v in free_variables(term) and isinstance(term, n.Variable)]
    others = any(v in free_variables(term) for term in terms if not isinstance(term, n.Variable))
    return at[0] if len(at) == 1 and alone == [1] and not others else None
