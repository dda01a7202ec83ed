"""Reduction domains of definitions that are made: over intervals, and mentioned by what runs over them."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify import simplify
from ..ir.traverse import nodes_of
from ..lang.expr import Expr
from ..lang.rdom import RDom


def domain_over(ranges: Sequence[tuple[n.Expr, n.Expr]]) -> RDom:
    """The reduction domain over intervals (min, max)."""
    return RDom([(Expr.of(low), Expr.of(simplify(n.Add(n.Sub(high, low), b.i32(1))))) for low, high in ranges])


def mentions(domain: RDom, roots: Sequence[n.Expr]) -> bool:
    """Whether a definition of these expressions would run over the domain."""
    return any(v.rdom is domain.reduction for v in nodes_of(roots, n.Variable))


def mentioning(domain: RDom, value: n.Expr) -> n.Expr:
    """The same value, with the domain in it: an update runs over the domain it mentions."""
    return n.Select(n.GE(domain[0].as_node(), domain[0].min().as_node()), value, b.const(value.type, 0))
