"""Promotion: what type Python numbers and mixed operands take next to each other (Halide's rules), on IR expressions.

Same type stays; an int meeting a float takes the float's type; the wider of two floats or two unsigned ints wins; a signed and an unsigned
int give the signed type of the wider width. A Python int next to a value takes the value's type and must fit it; a Python float is float32.
Source: Halide's IROperator.cpp, match_types and check_representable.
"""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import numpy as np

from .. import ir
from ..errors import user_error, user_frame
from ..ir import build as b
from ..ir import nodes as n
from ..ir.printer import to_text
from ..ir.types import BOOL, INT32, INT64, Float, Int, Type

FLOAT32 = Float(32)


def checked_type(t: Any, what: str) -> Type:
    """`t`, which must be a Type. Raises TypeError, which names the Type that a NumPy dtype or a Python type stands for."""
    if isinstance(t, Type):
        return t
    try:
        dtype = None if t is None or isinstance(t, str) and t == "a" else np.dtype(t)  # NumPy warns of its old name of a type
    except TypeError:
        dtype = None
    name = {"u": "UInt", "i": "Int", "f": "Float", "b": "Bool"}.get(dtype.kind) if dtype is not None else None
    example = "hl.Float(32)" if dtype is None or name is None else "hl.Bool()" if name == "Bool" else f"hl.{name}({8 * dtype.itemsize})"
    raise TypeError(f"{what} takes a type such as {example}, not {t!r}")


def literal(x: Any) -> int | float | bool | None:
    """The Python number behind a literal operand; None for everything else. NumPy scalars count as the Python numbers they hold."""
    if isinstance(x, (bool, int, float)):
        return x
    if isinstance(x, np.generic):
        if isinstance(x, np.bool_):
            return bool(x)
        if isinstance(x, np.integer):
            return int(x)
        if isinstance(x, np.floating):
            return float(x)
    return None


def float_literal(value: float) -> n.Expr:
    """A Python float as float32, with a RuntimeWarning at the user's line when digits are lost."""
    rounded = b.round_float(value, FLOAT32)
    if rounded != value and value == value:
        message = (f"The floating-point value {value!r} will be interpreted as a float32 and lose precision (it becomes {rounded!r}); add "
                   "an explicit f32() or f64() cast to avoid this warning.")
        frame = user_frame() or sys._getframe()
        warnings.warn_explicit(message, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno)
    return b.const(FLOAT32, rounded)


def number_node(value: int | float | bool) -> n.Expr:
    """A Python number on its own: bool, int32 (int64, else float32, when it does not fit) or float32."""
    if isinstance(value, bool):
        return b.const(BOOL, value)
    if isinstance(value, float):
        return float_literal(value)
    for t in (INT32, INT64):
        if t.can_represent_value(value):
            return b.const(t, value)
    return float_literal(float(value))


def exact(t: Type, value: int) -> bool:
    """Whether the integer `value` survives being stored in `t` unchanged."""
    if t.is_float():
        return t.can_represent_value(value) and b.round_float(float(value), t) == value
    return t.can_represent_value(value)


def literal_node(value: int | float | bool, other: Type) -> n.Expr:
    """A Python number as an operand next to a value of type `other`. Raises CompileError for an int (of 32 bits) that the type cannot
    hold."""
    if isinstance(value, float):
        return float_literal(value)
    value = int(value)
    if not INT32.can_represent_value(value):
        return number_node(value)
    element = other.element_of()
    if element.is_handle():
        raise user_error(f"Integer constant {value} will be implicitly coerced to type {element}, but there is no pointer arithmetic")
    if not exact(element, value):
        became = to_text(b.const(element, value))
        raise user_error(f"Integer constant {value} will be implicitly coerced to type {element}, which changes its value to {became}. "
                         f"Cast the other operand to a wider type, or the constant: hl.cast(t, {value})")
    return b.const(other, value)


def convert(t: Type, e: n.Expr) -> n.Expr:
    """`e` cast to type `t`; constants convert at once."""
    if e.type is t:
        return e
    value = b.as_const(e)
    if isinstance(value, float) and t.is_int_or_uint() and (not math.isfinite(value) or not t.can_represent_value(math.trunc(value))):
        return b.cast(t, e)  # what it becomes is not specified; the machine decides
    if value is not None and not t.is_handle() and t.lanes() in (1, e.type.lanes()):
        return b.const(t, math.trunc(value) if isinstance(value, float) and t.is_int_or_uint() else value)
    return b.cast(t, e)


def lossless(t: Type, e: n.Expr) -> n.Expr | None:
    """`e` as type `t` if every value it can have survives the cast, else None."""
    if t.can_represent(e.type.with_lanes(t.lanes())):
        return convert(t, e)
    value = b.as_const(e)
    if value is not None:
        fits = exact(t, int(value)) if value == value and abs(value) != math.inf and value == int(value) else t.is_float()
        return convert(t, e) if fits else None
    if e.type.is_int_or_uint() and t.is_int_or_uint():
        low, high = ir.simplify.constant_bound(e, False), ir.simplify.constant_bound(e, True)
        if low is not None and high is not None and t.can_represent_value(low) and t.can_represent_value(high):
            return convert(t, e)
    return None


def match_lanes(a: n.Expr, c: n.Expr) -> tuple[n.Expr, n.Expr]:
    """A scalar next to a vector is broadcast."""
    p, q = a.type.lanes(), c.type.lanes()
    if p == q:
        return a, c
    if p == 1:
        return b.broadcast(a, q), c
    if q == 1:
        return a, b.broadcast(c, p)
    raise user_error(f"Vectors of different lanes meet: {to_text(a)} of type {a.type} and {to_text(c)} of type {c.type}")


def match_bits(a: n.Expr, c: n.Expr) -> tuple[n.Expr, n.Expr]:
    """The narrower of two is widened, each keeping its own kind of type."""
    p, q = a.type.bits(), c.type.bits()
    if p < q:
        return convert(a.type.with_bits(q), a), c
    return (a, c) if p == q else (a, convert(c.type.with_bits(p), c))


def match_types(a: n.Expr, c: n.Expr) -> tuple[n.Expr, n.Expr]:
    """Bring two values to one type. Raises CompileError for handles."""
    if a.type is c.type:
        return a, c
    if a.type.is_handle() or c.type.is_handle():
        raise user_error(f"Can't do arithmetic on opaque pointer types: {to_text(a)}, {to_text(c)}")
    a, c = match_lanes(a, c)
    s, t = a.type, c.type
    if s is t:
        return a, c
    if s.is_float() != t.is_float():
        u = s if s.is_float() else t
    elif s.is_float() or (s.is_uint() and t.is_uint()):
        u = s if s.bits() > t.bits() else t
    else:
        u = Int(max(s.bits(), t.bits()), s.lanes())
    return convert(u, a), convert(u, c)


def match_bitwise(a: n.Expr, c: n.Expr, operation: str) -> tuple[n.Expr, n.Expr]:
    """Bring two integers of one signedness to one width."""
    for e, which in ((a, "first"), (c, "second")):
        if not e.type.is_int_or_uint():
            raise user_error(f"The {which} argument to {operation} must be an integer or unsigned integer, but {to_text(e)} has type "
                             f"{e.type}")
    if a.type.is_int() != c.type.is_int():
        raise user_error(f"Arguments to {operation} must both be signed or both be unsigned; cast one of them.\n"
                         f"LHS type: {a.type} RHS type: {c.type}\nLHS value: {to_text(a)} RHS value: {to_text(c)}")
    return match_bits(*match_lanes(a, c))
