"""Functions of the C library that C sources call: the table's rows for most, Exprs for those that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...ir import build as b
from ...ir import nodes as n
from ...ir.intrinsics import EXTERNS, ExternFunction, call_extern, intrinsic, math_call
from ...ir.types import BOOL, INT32, INT64, Type
from .arithmetic import DOUBLE, FLOAT, convert
from .source import Refusal

_TESTS = {"isnan": "is_nan", "isinf": "is_inf", "isfinite": "is_finite", "isinf_sign": "is_inf", "finite": "is_finite"}
_ROUNDED = {"lrint": "rint", "llrint": "rint", "lround": "round", "llround": "round"}
_NUMBERS = {"inf": math.inf, "huge_val": math.inf, "nan": math.nan}
_NEAREST = ("rint", "nearbyint", "roundeven")


def half_away(x: n.Expr) -> n.Expr:
    """C's round(): halfway cases away from zero."""
    whole = math_call("trunc", x)
    far = n.GE(intrinsic("abs", x.type, n.Sub(x, whole)), b.const(x.type, 0.5))
    return n.Select(far, n.Add(whole, n.Select(n.LT(x, b.const(x.type, 0)), b.const(x.type, -1), b.const(x.type, 1))), whole)


def sign_bit(x: n.Expr) -> n.Expr:
    """Whether the sign bit of a float is set."""
    t = INT64 if x.type is DOUBLE else INT32
    return n.LT(n.Reinterpret(t, x), b.const(t, 0))


def _absolute(t: Type) -> Callable[[n.Expr], n.Expr]:
    return lambda x: n.Select(n.LT(x, b.const(t, 0)), n.Sub(b.const(t, 0), x), x)


_OTHERS: dict[str, tuple[tuple[Type, ...], Callable[..., n.Expr]]] = {
    "abs": ((INT32,), _absolute(INT32)), "labs": ((INT64,), _absolute(INT64)), "llabs": ((INT64,), _absolute(INT64)),
    "expect": ((INT64, INT64), lambda x, usual: x),
}


def library_call(name: str, args: Sequence[n.Expr]) -> n.Expr | None:
    """The value of a call of the C library, None for a function that is not known. Arguments are as they were given, of any type."""
    short = name.removeprefix("__builtin_")
    if short in _OTHERS:
        types, make = _OTHERS[short]
        return make(*_converted(name, types, args))
    if short in _TESTS or short == "signbit":
        return convert(INT32, _test(name, short, args))
    base, t = short, DOUBLE
    if short.endswith("f") and not _known(base, t):
        base, t = short[:-1], FLOAT
    if base in _NUMBERS:
        return b.const(t, _NUMBERS[base]) if name != short or base == "nan" else None
    if not _known(base, t):
        return None
    if base in _ROUNDED:
        return convert(INT64, _rounding(_ROUNDED[base], *_converted(name, (t,), args)))
    if base == "fabs":
        return intrinsic("abs", t, *_converted(name, (t,), args))
    if base in (*_NEAREST, "round"):
        return _rounding(base, *_converted(name, (t,), args))
    row = _row(base, t)
    assert row is not None
    return call_extern(row, *_converted(name, row.args, args))


def _rounding(base: str, x: n.Expr) -> n.Expr:
    return half_away(x) if base == "round" else math_call("round", x)


def _row(base: str, t: Type) -> ExternFunction | None:
    """The table's row of a function of the C library. `round` is another function there, fast_* are no C."""
    if base == "round" or base.startswith("fast_"):
        return None
    return next((row for k in (1, 2, 3) if (row := EXTERNS.get((base, (t,) * k))) is not None and row.builtin), None)


def _known(base: str, t: Type) -> bool:
    return base in _NUMBERS or base in _ROUNDED or base in ("fabs", "round", *_NEAREST) or _row(base, t) is not None


def _test(name: str, short: str, args: Sequence[n.Expr]) -> n.Expr:
    """A classification takes a float of either type."""
    x, = _converted(name, (args[0].type if args and args[0].type.is_float() else DOUBLE,), args)
    return sign_bit(x) if short == "signbit" else intrinsic(_TESTS[short], BOOL, x)


def _converted(name: str, types: Sequence[Type], args: Sequence[n.Expr]) -> list[n.Expr]:
    if len(types) != len(args):
        raise Refusal(f"{name}() takes {len(types)} arguments, but is given {len(args)}")
    return [convert(t, a) for t, a in zip(types, args)]
