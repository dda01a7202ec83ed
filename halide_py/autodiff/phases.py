"""Phases: contributions of one value at different remainders of a coordinate, as one.

Each element of `f[2 * x] + f[2 * x + 1]` adds the same to both of its places: `d[u] += v[u / 2] where u % 2 == 0` and `... where u % 2 ==
1`. In: pure contributions. Out: those that differ in the remainder alone, and have all of them, are one without that condition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from .contributions import Placed


def together(found: Sequence[Placed]) -> list[Placed]:
    """The contributions, with phases put together, in the order of the first."""
    out = list(found)
    while True:
        joined = next((one for p in out for c in p.conditions if (one := _all_phases(p, c, out)) is not None), None)
        if joined is None:
            return out
        first, others = joined
        at = out.index(others[0])
        out = [p for p in out if p not in others]
        out.insert(at, first)


def _all_phases(p: Placed, c: n.Expr, found: Sequence[Placed]) -> tuple[Placed, list[Placed]] | None:
    """What a contribution is without the condition, and those that it then stands for; None where one is missing."""
    if not isinstance(c, n.EQ) or not isinstance(c.a, n.Mod):
        return None
    modulus, rest = b.as_int(c.a.b), [k for k in p.conditions if k is not c]
    phases: dict[int | None, Placed] = {}
    for q in found:
        if q.value is p.value and q.guard is p.guard and q.lhs == p.lhs:
            own = [k for k in q.conditions if k not in rest]
            if len(own) == 1 and len(q.conditions) == len(rest) + 1 and isinstance(own[0], n.EQ) and own[0].a is c.a:
                phases.setdefault(b.as_int(own[0].b), q)
    if modulus is None or set(phases) != set(range(modulus)):
        return None
    return dataclasses.replace(p, conditions=rest), [q for q in found if any(q is one for one in phases.values())]
