"""Remainders that are numbers: what an index is modulo m, found through the lets that define it.

A region that `align_bounds` rounds outwards starts at `let f.s0.x.min = (g.min / 2) * 2`; what the unrolled copies of its loop ask,
`(f.s0.x.min + 1) % 2`, is 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import nodes as n
from ..build import as_int
from . import linear

if TYPE_CHECKING:
    from .simplify import Simplifier

_MOST_TERMS = 16  # looked at for one answer


def residue(s: Simplifier, e: n.Expr, m: int) -> int | None:
    """The r with `e` = r modulo `m`, 0 <= r < m, for all values of the variables without a definition; None if there is none or it is
    not seen. `e` does not overflow."""
    return _Search(s).of(e, m)


class _Search:
    """One search, which ends when it has seen too much."""

    def __init__(self, s: Simplifier) -> None:
        self.s, self.left = s, _MOST_TERMS

    def of(self, e: n.Expr, m: int) -> int | None:
        """The residue of a sum."""
        terms, total = linear.gather(e)
        for x, c in terms.items():
            rest = m // math.gcd(c, m)
            if rest == 1:
                continue
            r = self.of_term(x, rest)
            if r is None:
                return None
            total += c * r
        return total % m

    def of_term(self, x: n.Expr, m: int) -> int | None:
        """The residue of what is no sum."""
        self.left -= 1
        if self.left < 0:
            return None
        if isinstance(x, n.Variable):
            low, high = self.s.limits.get(x.name, (None, None))
            return self.of(low, m) if low is not None and low is high else None
        if isinstance(x, n.Mod):
            d = as_int(x.b)
            return self.of(x.a, m) if d is not None and d > 0 and d % m == 0 else None
        if isinstance(x, (n.Min, n.Max)):
            return self.common(x.a, x.b, m)
        if isinstance(x, n.Select):
            return self.common(x.true_value, x.false_value, m)
        return None

    def common(self, a: n.Expr, b: n.Expr, m: int) -> int | None:
        """The residue that two expressions share."""
        r = self.of(a, m)
        return r if r is not None and r == self.of(b, m) else None
