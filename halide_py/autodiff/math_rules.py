"""The gradient rules of built-in math and of the C library's functions."""

from __future__ import annotations

import math
from typing import Any

from ..lang.float_math import is_nan
from ..lang.ops import select
from .rule_table import call, number, operation, where


@operation("sin fast_sin")
def _sin(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("cos", x)


@operation("cos fast_cos")
def _cos(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * call("sin", x)


@operation("tan")
def _tan(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * (1 + result * result)


@operation("asin")
def _asin(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / call("sqrt", 1 - x * x)


@operation("acos")
def _acos(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint / call("sqrt", 1 - x * x)


@operation("atan")
def _atan(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (1 + x * x)


@operation("sinh")
def _sinh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("cosh", x)


@operation("cosh")
def _cosh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("sinh", x)


@operation("tanh")
def _tanh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * (1 - result * result)


@operation("asinh")
def _asinh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / call("sqrt", x * x + 1)


@operation("acosh")
def _acosh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (call("sqrt", x - 1) * call("sqrt", x + 1))


@operation("atanh")
def _atanh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (1 - x * x)


@operation("exp fast_exp")
def _exp(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * result


@operation("log fast_log")
def _log(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / x


@operation("sqrt")
def _sqrt(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (result + result)


@operation("erf")
def _erf(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("exp", -x * x) * number(2 / math.sqrt(math.pi), x)


@operation("log1p")
def _log1p(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (1 + x)


@operation("expm1")
def _expm1(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * (result + 1)


@operation("exp2")
def _exp2(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * result * number(math.log(2), x)


@operation("log2")
def _log2(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (x * number(math.log(2), x))


@operation("log10")
def _log10(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (x * number(math.log(10), x))


@operation("cbrt")
def _cbrt(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (3 * result * result)


@operation("erfc")
def _erfc(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("exp", -x * x) * number(-2 / math.sqrt(math.pi), x)


@operation("fmod")
def _fmod(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return adjoint, -adjoint * call("trunc", x / y)


@operation("remainder")
def _remainder(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return adjoint, -adjoint * call("round", x / y)


@operation("copysign")
def _copysign(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(x != 0, select((x > 0) == (result > 0), adjoint, -adjoint)), None


@operation("fdim")
def _fdim(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(x > y, adjoint), where(x > y, -adjoint)


@operation("fmin")
def _fmin(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    first = (x <= y) | is_nan(y)
    return where(first, adjoint), where(~first, adjoint)


@operation("fmax")
def _fmax(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    first = (x >= y) | is_nan(y)
    return where(first, adjoint), where(~first, adjoint)


@operation("fma")
def _fma(adjoint: Any, result: Any, x: Any, y: Any, z: Any) -> Any:
    return adjoint * y, adjoint * x, adjoint


@operation("pow fast_pow")
def _pow(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(y != 0, adjoint * y * call("pow", x, y - 1)), where(x != 0, adjoint * result * call("log", x))


@operation("atan2")
def _atan2(adjoint: Any, result: Any, y: Any, x: Any) -> Any:
    square = x * x + y * y
    return adjoint * x / square, -adjoint * y / square


@operation("hypot")
def _hypot(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(result > 0, adjoint * x / result), where(result > 0, adjoint * y / result)


@operation("fast_inverse")
def _inverse(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * result * result


@operation("fast_inverse_sqrt")
def _inverse_sqrt(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * result * result * result / 2
