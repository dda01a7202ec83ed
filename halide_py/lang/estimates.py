"""What is promised and expected of an argument, read from its data: ArgumentEstimates, BufferConstraint."""

from __future__ import annotations

from typing import NamedTuple

from ..ir.parameter import DimConstraint
from ..ir.parameter import Parameter as ParameterData
from .expr import Expr
from .rdom import Range


class ArgumentEstimates:
    """Typical values of an argument, for autoschedulers: `scalar_def`, `scalar_min`, `scalar_max`, `scalar_estimate` (undefined where
    nothing was said), `buffer_estimates` (a Range a dimension)."""

    __slots__ = ("scalar_def", "scalar_min", "scalar_max", "scalar_estimate", "buffer_estimates")

    def __init__(self) -> None:
        self.scalar_def = Expr()
        self.scalar_min = Expr()
        self.scalar_max = Expr()
        self.scalar_estimate = Expr()
        self.buffer_estimates: list[Range] = []

    @staticmethod
    def of(p: ParameterData) -> ArgumentEstimates:
        """What was said about a parameter."""
        e = ArgumentEstimates()
        e.scalar_def, e.scalar_min, e.scalar_max, e.scalar_estimate = map(Expr.of, (p.default, p.minimum, p.maximum, p.estimate))
        e.buffer_estimates = [Range(Expr.of(d.min_estimate), Expr.of(d.extent_estimate)) for d in p.dims]
        return e


class BufferConstraint(NamedTuple):
    """What is promised (`min`, `extent`, `stride`) and typical (`min_estimate`, `extent_estimate`) of one dimension; undefined where
    nothing is."""

    min: Expr
    extent: Expr
    stride: Expr
    min_estimate: Expr
    extent_estimate: Expr

    @staticmethod
    def of(d: DimConstraint) -> BufferConstraint:
        """What was said about a dimension."""
        return BufferConstraint(*map(Expr.of, (d.min, d.extent, d.stride, d.min_estimate, d.extent_estimate)))
