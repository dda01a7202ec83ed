"""The meaning of every operation on one value: integers are Python ints in range, bools 0 or 1, floats are Python floats rounded to their
type.

Floats compute in double and round once per operation, which for +, -, *, / and sqrt of float16 and float32 is the IEEE result.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import nodes as n
from ..ir.build import euclid_div, euclid_mod, round_float, wrap
from ..ir.types import Float, Type

Value = Any  # int, float, str or an opaque handle
Operation = Callable[..., Value]

_NUMPY_MATH = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
               "atan2": "arctan2", "round": "rint", "pow": "power"}
_FAST = {"fast_exp": "exp", "fast_log": "log", "fast_pow": "pow", "fast_sin": "sin", "fast_cos": "cos"}


def fit(value: Value, t: Type) -> Value:
    """A Python number brought into the scalar type `t`: integers wrap, floats round."""
    if t.is_float():
        if isinstance(value, int) and abs(value) >> 53 and t.bits() == 32:
            return float(np.array(value).astype(np.float32))  # one rounding, not first to double
        return round_float(float(value), t)
    return value if t.is_handle() else wrap(int(value), t)


def wrapping(exact: Operation, t: Type) -> Operation:
    """An operation on ints, its result brought into the integer type `t`; what lies in its range, as most does, is left as it is."""
    low = -(1 << t.bits() - 1) if t.is_int() else 0
    high = low + (1 << t.bits()) - 1

    def run(*values: int) -> int:
        value: int = exact(*values)
        return value if low <= value <= high else wrap(value, t)

    return run


def conversion(source: Type, target: Type) -> Operation:
    """The Cast, as a function of one value. Out of range floats, undefined in the language, give 0 when not finite and wrap otherwise."""
    if source.is_handle() or target.is_handle():
        return lambda value: value
    if source.is_float() and not target.is_float():
        return lambda value: wrap(int(value), target) if math.isfinite(value) else 0
    if not target.is_float():
        return wrapping(int, target)
    return lambda value: fit(value, target)


def to_bits(value: Value, t: Type) -> int:
    """The bit pattern of one value, as an unsigned integer."""
    if not t.is_float():
        return int(value) & ((1 << t.bits()) - 1)
    if t.is_bfloat():
        return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
    form = {16: "<e", 32: "<f", 64: "<d"}[t.bits()]
    return int.from_bytes(struct.pack(form, value), "little")


def from_bits(bits: int, t: Type) -> Value:
    """The value of scalar type `t` with this bit pattern."""
    if not t.is_float():
        return wrap(bits, t)
    if t.is_bfloat():
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    form = {16: "<e", 32: "<f", 64: "<d"}[t.bits()]
    return struct.unpack(form, bits.to_bytes(t.bits() // 8, "little"))[0]


def _float_div(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _float_mod(t: Type) -> Operation:
    """a - b * floor(a / b), the quotient rounded, the rest at once: where the quotient has more digits than the type, this is not below
    b."""
    of = np.float64 if t.bits() == 64 else np.float32

    def modulo(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            quotient = float(np.floor(of(a) / of(b)))
            if all(map(math.isfinite, (a, b, quotient))):
                return float(of(Fraction(a) - Fraction(b) * Fraction(quotient)))
            return float(of(a) - of(b) * of(quotient))

    return modulo


def _divide(t: Type) -> Operation:
    return _float_div if t.is_float() else euclid_div


def _modulo(t: Type) -> Operation:
    return _float_mod(t) if t.is_float() else euclid_mod


_ARITHMETIC: dict[type[n.Expr], Callable[[Type], Operation]] = {
    n.Add: lambda t: operator.add,
    n.Sub: lambda t: operator.sub,
    n.Mul: lambda t: operator.mul,
    n.Div: _divide,
    n.Mod: _modulo,
    n.Min: lambda t: lambda a, b: a if a < b else b,
    n.Max: lambda t: lambda a, b: a if a > b else b,
}
_LOGIC: dict[type[n.Expr], Operation] = {
    n.EQ: lambda a, b: int(a == b),
    n.NE: lambda a, b: int(a != b),
    n.LT: lambda a, b: int(a < b),
    n.LE: lambda a, b: int(a <= b),
    n.GT: lambda a, b: int(a > b),
    n.GE: lambda a, b: int(a >= b),
    n.And: lambda a, b: a & b,
    n.Or: lambda a, b: a | b,
}
BINARY = tuple(_ARITHMETIC) + tuple(_LOGIC)


def binary(kind: type[n.Expr], t: Type) -> Operation:
    """The function of two values of scalar type `t` for an arithmetic, comparison or logic node."""
    logic = _LOGIC.get(kind)
    if logic is not None:
        return logic
    exact = _ARITHMETIC[kind](t)
    if kind in (n.Min, n.Max):
        return exact
    if t.is_float():
        return exact if t.bits() == 64 else lambda a, b: round_float(exact(a, b), t)
    return wrapping(exact, t)


def _shift(a: int, amount: int) -> int:
    """a * 2^amount, rounded down, without limit of width."""
    return a << amount if amount >= 0 else a >> -amount


def _rounding_shift_right(a: int, amount: int) -> int:
    return _shift(a + (1 << (amount - 1)), -amount) if amount > 0 else _shift(a, -amount)


def _truncated_div(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _saturate(value: Value, t: Type) -> Value:
    """Clamp into the range of `t`, infinities of floats included; NaN becomes 0 in integers."""
    if t.is_float():
        limit = t.largest_finite()
        return round_float(min(max(float(value), -limit), limit), t)
    if isinstance(value, float) and math.isnan(value):
        return 0
    return int(min(max(value, t.min_value()), t.max_value()))


def _lerp(a: Value, b: Value, weight: Value, t: Type, wt: Type) -> Value:
    """(1 - w) * a + w * b. Integer results are rounded to nearest from the weight scaled to the width of `t`."""
    if t.is_float():
        w = weight if wt.is_float() else round_float(round_float(weight, t) / ((1 << wt.bits()) - 1), t)
        inverse = round_float(1 - w, t)
        return round_float(round_float(a * inverse, t) + round_float(b * w, t), t)
    top = (1 << t.bits()) - 1
    if wt.is_float():
        w = int(top * float(weight)) if t.bits() == 32 else int(round_float(top * float(weight), Float(32)))
    else:
        w = weight * top // ((1 << wt.bits()) - 1)
    if t.is_bool():
        return b if w else a
    low = int(t.min_value())
    total = (a - low) * (top - w) + (b - low) * w
    return wrap((total + top // 2) // top + low, t)


def _random(*terms: int) -> int:
    """The permutation polynomial hash: one round per term, then the better high bits mixed into the low ones."""
    mask, h = 0xFFFFFFFF, 0
    for i, term in enumerate(terms):
        x = ((h if i else 0) + term) & mask
        h = ((1040796640 * x + 1121052041) * x + 576942909) & mask
    return h ^ (h >> 16)


def _random_as(t: Type) -> Operation:
    if t.is_float():
        return lambda *terms: from_bits((127 << 23) | (_random(*terms) >> 9), Float(32)) - 1.0
    return lambda *terms: wrap(_random(*terms), t)


def _mux(index: int, *values: Value) -> Value:
    return values[index] if 0 <= index < len(values) else values[-1]


def _exact_intrinsics(t: Type, args: tuple[Type, ...]) -> dict[str, Operation]:
    """Integer and float intrinsics computed without limit of width; the caller fits the result into `t`."""
    first = args[0] if args else t
    width = first.bits()
    mask = (1 << width) - 1
    return {
        "abs": abs,
        "absd": lambda a, b: abs(a - b),
        "bitwise_and": lambda a, b: a & b,
        "bitwise_or": lambda a, b: a | b,
        "bitwise_xor": lambda a, b: a ^ b,
        "bitwise_not": lambda a: ~a,
        "shift_left": _shift,
        "shift_right": lambda a, b: _shift(a, -b),
        "popcount": lambda a: (a & mask).bit_count(),
        "count_leading_zeros": lambda a: width - (a & mask).bit_length(),
        "count_trailing_zeros": lambda a: ((a & mask) & -(a & mask)).bit_length() - 1 if a & mask else width,
        "div_round_to_zero": _float_div if first.is_float() else _truncated_div,
        "mod_round_to_zero": math.fmod if first.is_float() else lambda a, b: a - b * _truncated_div(a, b) if b else 0,
        "likely": lambda a: a,
        "likely_if_innermost": lambda a: a,
        "strict_float": lambda a: a,
        "unsafe_promise_clamped": lambda a, low, high: a,
        "return_second": lambda a, b: b,
        "memoize_tag": lambda a, *keys: a,
        "is_nan": math.isnan,
        "is_inf": math.isinf,
        "is_finite": math.isfinite,
        "mux": _mux,
        "widening_add": lambda a, b: a + b,
        "widening_sub": lambda a, b: a - b,
        "widening_mul": lambda a, b: a * b,
        "widen_right_add": lambda a, b: a + b,
        "widen_right_sub": lambda a, b: a - b,
        "widen_right_mul": lambda a, b: a * b,
        "widening_shift_left": _shift,
        "widening_shift_right": lambda a, b: _shift(a, -b),
        "rounding_shift_left": lambda a, b: _rounding_shift_right(a, -b),
        "rounding_shift_right": _rounding_shift_right,
        "halving_add": lambda a, b: (a + b) >> 1,
        "halving_sub": lambda a, b: (a - b) >> 1,
        "rounding_halving_add": lambda a, b: (a + b + 1) >> 1,
    }


def _special_intrinsics(name: str, t: Type, args: tuple[Type, ...]) -> Operation | None:
    """Intrinsics whose result needs more than fitting into the result type."""
    if name in ("saturating_add", "saturating_sub", "saturating_cast", "mul_shift_right", "rounding_mul_shift_right"):
        exact: dict[str, Operation] = {
            "saturating_add": lambda a, b: a + b,
            "saturating_sub": lambda a, b: a - b,
            "saturating_cast": lambda a: a,
            "mul_shift_right": lambda a, b, q: _shift(a * b, -q),
            "rounding_mul_shift_right": lambda a, b, q: _rounding_shift_right(a * b, q),
        }
        compute = exact[name]
        return lambda *values: _saturate(compute(*values), t)
    if name == "lerp":
        return lambda a, b, w: _lerp(a, b, w, t, args[2])
    if name == "random":
        return _random_as(t)
    if name == "extract_bits":
        return lambda a, offset: from_bits(_shift(to_bits(a, args[0]), -offset) & ((1 << t.bits()) - 1), t)
    if name == "concat_bits":
        return lambda *parts: from_bits(sum(to_bits(p, args[0]) << (i * args[0].bits()) for i, p in enumerate(parts)), t)
    return None


def intrinsic(name: str, t: Type, args: tuple[Type, ...]) -> Operation:
    """The function for an intrinsic with result and argument types given (scalar types)."""
    special = _special_intrinsics(name, t, args)
    if special is not None:
        return special
    exact = _exact_intrinsics(t, args).get(name)
    if exact is None:
        raise InternalError(f"The reference interpreter has no meaning for the intrinsic {name}")
    return lambda *values: fit(exact(*values), t)


def math_ufunc(name: str) -> np.ufunc | None:
    """The NumPy function that computes a built-in math function in double; None if there is none of that name."""
    name = _FAST.get(name, name)
    function = None if name in _EXACT else getattr(np, _NUMPY_MATH.get(name, name), None)
    return function if isinstance(function, np.ufunc) else None


def _remainder(x: float, y: float) -> float:
    return math.remainder(x, y) if math.isfinite(x) and y else math.nan


def _fma(x: float, y: float, z: float) -> float:
    if all(map(math.isfinite, (x, y, z))):
        total = Fraction(x) * Fraction(y) + Fraction(z)
        return float(total) if total else x * y + z
    return x * y + z


_EXACT: dict[str, Operation] = {"erf": math.erf, "erfc": math.erfc, "remainder": _remainder, "fma": _fma,
                                "fdim": lambda x, y: x - y if x > y else 0.0 if x <= y else math.nan}


def math_function(name: str, t: Type) -> Operation | None:
    """A built-in math function at scalar type `t`, computed in double and rounded once; None if the name is not one."""
    if name in ("fast_inverse", "fast_inverse_sqrt"):
        return lambda a: round_float(_float_div(1.0, a if name == "fast_inverse" else math.sqrt(a)), t)
    if name in _EXACT:
        exact = _EXACT[name]
        return lambda *values: round_float(exact(*values), t)
    function = math_ufunc(name)
    if function is None:
        return None

    def apply(*values: float) -> float:
        with np.errstate(all="ignore"):
            return round_float(float(function(*(np.float64(v) for v in values))), t)

    return apply
