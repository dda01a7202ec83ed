"""The meaning of every operation on whole NumPy arrays: the same as `scalar` on each element, faster for the common ones.

An element of type `t` is held in `value_dtype(t)`; bfloat16 is held as float32. Arrays broadcast. A test compares each
function here with its twin in `scalar` on random values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import nodes as n
from ..ir.types import Type
from . import scalar
from .scalar import Operation
from .storage import numpy_type

Array = np.ndarray[Any, Any]

_COMPARE: dict[type[n.Expr], np.ufunc] = {
    n.EQ: np.equal, n.NE: np.not_equal, n.LT: np.less, n.LE: np.less_equal, n.GT: np.greater, n.GE: np.greater_equal,
    n.And: np.logical_and, n.Or: np.logical_or,
}
_WRAPPING: dict[type[n.Expr], np.ufunc] = {n.Add: np.add, n.Sub: np.subtract, n.Mul: np.multiply}
_BITWISE: dict[str, np.ufunc] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert}
_IDENTITY = (
    "likely",
    "likely_if_innermost",
    "strict_float",
    "unsafe_promise_clamped",
    "memoize_tag",
    "print",
    "stop_gradient",
    "custom_gradient",
)


def value_dtype(t: Type) -> np.dtype[Any]:
    """The dtype in which elements of scalar type `t` are computed."""
    return np.dtype(object) if t.is_handle() else np.dtype(np.float32) if t.is_bfloat() else numpy_type(t)


def _native(t: Type) -> bool:
    """Whether NumPy's own arithmetic on the dtype is that of the type."""
    return not (t.is_bool() or t.is_bfloat() or t.is_handle()) and t.bits() in (8, 16, 32, 64)


def each(op: Operation, t: Type, *args: Array) -> Array:
    """Apply a function of scalars to each element; the result has type `t`."""
    plain = [(a.astype(np.uint8) if a.dtype == np.bool_ else a).astype(object) for a in args]
    result = np.frompyfunc(op, len(plain), 1)(*plain) if plain else op()
    return np.asarray(result, dtype=value_dtype(t))


def _euclid(kind: type[n.Expr], a: Array, b: Array) -> Array:
    """Quotient or remainder with the remainder in [0, |b|); 0 where b is 0."""
    safe = np.where(b == 0, np.ones_like(b), b)
    rest = np.remainder(a, safe)
    if kind is n.Mod:
        return np.where(b == 0, np.zeros_like(rest), np.where(rest < 0, rest - safe, rest))
    quotient = np.floor_divide(a, safe)
    return np.where(b == 0, np.zeros_like(quotient), np.where(rest < 0, quotient + np.ones_like(quotient), quotient))


def binary(kind: type[n.Expr], t: Type, a: Array, b: Array) -> Array:
    """An arithmetic, comparison or logic node on operands of scalar type `t`."""
    if kind in _COMPARE and not t.is_handle():
        return np.asarray(_COMPARE[kind](a, b))
    if not _native(t):
        return each(scalar.binary(kind, t), t, a, b)
    if kind in _WRAPPING:
        return np.asarray(_WRAPPING[kind](a, b))
    if kind is n.Min:
        return np.where(a < b, a, b)
    if kind is n.Max:
        return np.where(a > b, a, b)
    if not t.is_float():
        return _euclid(kind, a, b)
    return np.asarray(np.divide(a, b)) if kind is n.Div else each(scalar.binary(kind, t), t, a, b)


def convert(a: Array, source: Type, target: Type) -> Array:
    """The Cast of an array."""
    if source.is_int_or_uint() and _native(target) or source.is_float() and target.is_float() and _native(target):
        return a.astype(value_dtype(target))
    if source.is_float() and _native(target) and np.all(np.abs(a.astype(np.float64)) < 2.0**62):
        return a.astype(np.int64).astype(value_dtype(target))
    return each(scalar.conversion(source, target), target, a)


def reinterpret(a: Array, source: Type, target: Type) -> Array:
    """The bits of an array read as another type of the same width."""
    return each(lambda v: scalar.from_bits(scalar.to_bits(v, source), target), target, a)


def intrinsic(name: str, t: Type, types: tuple[Type, ...], *args: Array) -> Array:
    """An intrinsic without lazily evaluated arguments."""
    if name in _IDENTITY:
        return args[0]
    if name in _BITWISE and not t.is_bool():
        return np.asarray(_BITWISE[name](*args))
    return each(scalar.intrinsic(name, t, types), t, *args)


def math(name: str, t: Type, *args: Array) -> Array | None:
    """A built-in math function of result type `t`, computed in double and rounded once; None if the name is not one."""
    function = scalar.math_ufunc(name)
    if function is not None and _native(t):
        return np.asarray(function(*(a.astype(np.float64) for a in args))).astype(value_dtype(t))
    one = scalar.math_function(name, t)
    return None if one is None else each(one, t, *args)


def from_memory(memory: Array, t: Type) -> Array:
    """The values in a buffer's array (bfloat16 lies there as bits)."""
    return each(lambda v: scalar.from_bits(v, t), t, memory) if t.is_bfloat() and memory.dtype == np.uint16 else memory


def to_memory(values: Array, t: Type) -> Array:
    """The array of a buffer that holds these values."""
    if not t.is_bfloat():
        return values.astype(numpy_type(t))
    return np.asarray(np.frompyfunc(lambda v: scalar.to_bits(v, t), 1, 1)(values.astype(object)), dtype=np.uint16)
