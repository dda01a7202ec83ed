"""Activation functions of Exprs, float32 or float64, whose derivatives are as stable as their values."""

from __future__ import annotations

import math
from typing import Any

from ..autodiff.custom import custom_gradient
from ..ir.build import const
from ..lang.expr import Expr, to_expr
from ..lang.float_math import erf, exp, log
from ..lang.ops import abs, max, select, strict_float


def _number(value: float, like: Any) -> Expr:
    return Expr.of(const(like.type(), value))


def _log1p(e: Any) -> Expr:
    """log(1 + e) for e in [0, 1], to full precision for small e. Source: Higham, Accuracy and Stability of Numerical Algorithms, section
    1.14.1."""
    u = strict_float(1 + e)
    return select(u == 1, e, log(u) * e / strict_float(u - 1))  # type: ignore[no-any-return]


@custom_gradient
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)); exp is taken of nothing above 0. Derivative: s (1 - s)."""
    x = to_expr(x)
    e = exp(-abs(x))
    return select(x >= 0, 1 / (1 + e), e / (1 + e))


@sigmoid.backward
def _(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * result * sigmoid(-x)


@custom_gradient
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|)). Derivative: sigmoid(x)."""
    x = to_expr(x)
    return max(x, _number(0, x)) + _log1p(exp(-abs(x)))


@softplus.backward
def _(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * sigmoid(x)


@custom_gradient
def relu(x: Any) -> Any:
    """max(x, 0). Its derivative at 0 is 0."""
    x = to_expr(x)
    return max(x, _number(0, x))


@relu.backward
def _(adjoint: Any, result: Any, x: Any) -> Any:
    return select(x > 0, adjoint, _number(0, adjoint))


def _normal(x: Any) -> Expr:
    """The distribution function of the standard normal distribution."""
    return (1 + erf(x * _number(math.sqrt(0.5), x))) * _number(0.5, x)  # type: ignore[no-any-return]


@custom_gradient
def gelu(x: Any) -> Any:
    """x times the normal distribution function of x. Source: Hendrycks and Gimpel, arXiv:1606.08415."""
    x = to_expr(x)
    return x * _normal(x)


@gelu.backward
def _(adjoint: Any, result: Any, x: Any) -> Any:
    density = exp(-x * x * _number(0.5, x)) * _number(1 / math.sqrt(2 * math.pi), x)
    return adjoint * (_normal(x) + x * density)
