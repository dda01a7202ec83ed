"""Float functions on Exprs: trigonometry, exponentials, rounding, classification. Integers become float32; float64 and float16 stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic, math_call
from ..ir.printer import to_text
from ..ir.types import BOOL
from .expr import Expr, integer_power, power, to_node
from .promotion import FLOAT32, convert, match_lanes, match_types


def _as_float(x: Any) -> n.Expr:
    """An argument as a float the C library knows: ints and brain floats as float32."""
    e = x if isinstance(x, n.Expr) else to_node(x)
    if e.type.is_handle():
        raise user_error(f"A math function of {to_text(e)}, which is a handle; it takes numbers")
    return e if e.type.is_float() and not e.type.is_bfloat() else convert(FLOAT32.with_lanes(e.type.lanes()), e)


def _one(name: str, doc: str, argument: float, result: float) -> Callable[[Any], Expr]:
    def call(x: Any) -> Expr:
        return Expr.of(math_call(name, _as_float(x)))

    text = "The result has the type of the argument: float16, float32 or float64; integers and brain floats count as float32."
    call.__name__, call.__doc__ = name, f"{doc}\n\n{text}\n\n>>> round(hl.evaluate(hl.{name}(hl.f64({argument}))), 4)\n{result}"
    return call


sin = _one("sin", "Sine of x radians.", 0.5, 0.4794)
cos = _one("cos", "Cosine of x radians.", 0.5, 0.8776)
tan = _one("tan", "Tangent of x radians.", 0.5, 0.5463)
asin = _one("asin", "The angle whose sine is x.", 0.5, 0.5236)
acos = _one("acos", "The angle whose cosine is x.", 0.5, 1.0472)
atan = _one("atan", "The angle whose tangent is x.", 0.5, 0.4636)
sinh = _one("sinh", "Hyperbolic sine.", 0.5, 0.5211)
cosh = _one("cosh", "Hyperbolic cosine.", 0.5, 1.1276)
tanh = _one("tanh", "Hyperbolic tangent.", 0.5, 0.4621)
asinh = _one("asinh", "Inverse hyperbolic sine.", 0.5, 0.4812)
acosh = _one("acosh", "Inverse hyperbolic cosine.", 2.0, 1.317)
atanh = _one("atanh", "Inverse hyperbolic tangent.", 0.5, 0.5493)
exp = _one("exp", "e to the x.", 1.0, 2.7183)
log = _one("log", "Natural logarithm.", 10.0, 2.3026)
sqrt = _one("sqrt", "Square root.", 2.0, 1.4142)
floor = _one("floor", "The largest integer not above x, as a float.", -1.5, -2.0)
ceil = _one("ceil", "The smallest integer not below x, as a float.", -1.5, -1.0)
round = _one("round", "The nearest integer, halfway cases to even, as a float.", 2.5, 2.0)
trunc = _one("trunc", "x without its fraction, as a float.", -1.5, -1.0)


def _pair(name: str, x: Any, y: Any) -> Expr:
    """Of two arguments of one type, which an integer takes from a float; two integers are floats on their own."""
    a, c = to_node(x), to_node(y)
    if not a.type.is_float() and not c.type.is_float():
        a, c = _as_float(a), _as_float(c)
    a, c = match_types(a, c)
    return Expr.of(math_call(name, _as_float(a), _as_float(c)))


def atan2(y: Any, x: Any) -> Expr:
    """The angle of the point (x, y).

    The float type of y decides, as in Halide: x is converted to it, integers y count as float32. The quadrant follows from the signs.

    >>> round(hl.evaluate(hl.atan2(1.0, -1.0)), 4)
    2.3562
    """
    a = _as_float(y)
    a, c = match_lanes(a, convert(a.type.with_lanes(to_node(x).type.lanes()), _as_float(x)))
    return Expr.of(math_call("atan2", a, c))


def hypot(x: Any, y: Any) -> Expr:
    """The square root of x*x + y*y.

    Without overflow or underflow on the way.

    >>> hl.evaluate(hl.hypot(3.0, 4.0))
    5.0
    """
    return _pair("hypot", x, y)


def fma(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c of float32 or float64, rounded once: also inside `strict_float`, and on processors without such an instruction.

    Numbers take the type of the Exprs. Raises CompileError for other types, and for two that differ.

    >>> small = hl.f32(2.0 ** -13)
    >>> hl.evaluate(hl.fma(1 + small, 1 - small, -1.0)) == -2.0 ** -26
    True
    """
    t = next((to_node(e).type for e in (a, b, c) if not isinstance(e, (int, float))), FLOAT32)
    args = [convert(t, to_node(e)) if isinstance(e, (int, float)) else to_node(e) for e in (a, b, c)]
    if any(e.type is not t for e in args) or not t.is_float() or t.bits() < 32:
        raise user_error(f"fma takes three float32 or three float64, not {', '.join(str(e.type) for e in args)}")
    return Expr.of(math_call("fma", *args))


def pow(x: Any, y: Any) -> Expr:
    """x to the y: an integer constant y multiplies out in x's own type, the rest is floats.

    >>> hl.evaluate(hl.pow(hl.u8(3), 2)), round(hl.evaluate(hl.pow(2.0, 0.5)), 4)
    (9, 1.4142)
    """
    return power(x, y)


def fract(x: Any) -> Expr:
    """The fraction of x, with the sign of x: x - trunc(x).

    >>> hl.evaluate(hl.fract(hl.f32(-2.25)))
    -0.25
    """
    a = _as_float(x)
    return Expr.of(n.Sub(a, math_call("trunc", a)))


_INTEGERS_TOO = ("fast_sin", "fast_cos")


def _only_float32(name: str, x: Any) -> n.Expr:
    e = to_node(x)
    if e.type.is_int_or_uint() and name in _INTEGERS_TOO:
        e = _as_float(x)
    if e.type.element_of() is not FLOAT32:
        raise user_error(f"{name} only works for float32, but {to_text(e)} has type {e.type}; cast it with f32()")
    return e


def erf(x: Any) -> Expr:
    """The error function of a float32.

    Raises CompileError for floats of another width.

    >>> round(hl.evaluate(hl.erf(0.5)), 4)
    0.5205
    """
    return Expr.of(math_call("erf", _only_float32("erf", x)))


def _fast(name: str) -> Callable[[Any], Expr]:
    def call(x: Any) -> Expr:
        return Expr.of(math_call(name, _only_float32(name, x)))

    what = name[5:].replace("_", " ")
    call.__name__, call.__doc__ = name, (
        f"A quicker {what} of a float32, exact to 1e-5 where argument and result are normal numbers; nothing is said of others"
        f"{', and the error grows with x beyond 100' if name in _INTEGERS_TOO else ''}.\n\n"
        f"Integers count as float32. Raises CompileError for floats of another width.\n\n>>> hl.{name}(hl.f32(0.5)).type() == "
        f"hl.Float(32)\nTrue")
    return call


fast_exp, fast_log = _fast("fast_exp"), _fast("fast_log")
fast_sin, fast_cos = _fast("fast_sin"), _fast("fast_cos")
fast_inverse, fast_inverse_sqrt = _fast("fast_inverse"), _fast("fast_inverse_sqrt")


def fast_pow(x: Any, y: Any) -> Expr:
    """A quicker pow of float32, exact to about 1e-5; an integer constant y multiplies out. Ints become float32.

    >>> round(hl.evaluate(hl.fast_pow(hl.f32(2), 0.5)), 3)
    1.414
    """
    a, c = to_node(x), to_node(y)
    exponent = b.as_int(c)
    if exponent is not None and not c.type.is_bool():
        return Expr.of(integer_power(a, exponent))
    for e in (a, c):
        if e.type.is_float() and e.type.element_of() is not FLOAT32:
            raise user_error(f"fast_pow only works for float32, but {to_text(e)} has type {e.type}; cast it with f32()")
    return Expr.of(math_call("fast_pow", *match_types(_as_float(x), _as_float(y))))


def _classify(name: str, doc: str, special: str) -> Callable[[Any], Expr]:
    def call(x: Any) -> Expr:
        e = to_node(x)
        if not e.type.is_float():
            raise user_error(f"{name} only works for float, but {to_text(e)} has type {e.type}")
        return Expr.of(intrinsic(name, BOOL.with_lanes(e.type.lanes()), e))

    call.__name__, call.__doc__ = (
        name,
        f"{doc}\n\nRaises CompileError for what is no float.\n\n>>> hl.evaluate(hl.{name}(hl.f32({special})))\nTrue",
    )
    return call


is_nan = _classify("is_nan", "Whether x is not a number.", "float('nan')")
is_inf = _classify("is_inf", "Whether x is infinite.", "float('-inf')")
is_finite = _classify("is_finite", "Whether x is neither infinite nor NaN.", "1")
