"""Scalar and vector types of the language: a code, a width in bits and a number of lanes.

Every distinct type is one object (`Type(...)` interns), so `is` and `==` agree and a type may key a dict.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..errors import CompileError, expect


class TypeCode(enum.IntEnum):
    """What the bits of a type mean; values are those of the runtime's `halide_type_code_t`."""

    Int = 0
    UInt = 1
    Float = 2
    Handle = 3
    BFloat = 4


_LETTER = {TypeCode.Int: "int", TypeCode.UInt: "uint", TypeCode.Float: "float", TypeCode.Handle: "handle", TypeCode.BFloat: "bfloat"}
_FLOAT_MAX = {
    (TypeCode.Float, 16): 65504.0,
    (TypeCode.Float, 32): 3.4028234663852886e38,
    (TypeCode.Float, 64): 1.7976931348623157e308,
    (TypeCode.BFloat, 16): 3.3895313892515355e38,
}
_TABLE: dict[tuple[int, int, int], Type] = {}


class Type:
    """A type of an Expr or of a buffer element: `Type(TypeCode.Int, 32, 1)`; see `Int`, `UInt`, `Float`, `Bool`, ...

    Raises CompileError when bits or lanes cannot be represented (bits 1 to 64, lanes 0 to 65535).
    """

    __slots__ = ("_code", "_bits", "_lanes", "_scalar")
    to_expr: ClassVar[Callable[[Type, int | float], Any]]  # what min() and max() make of a number; set by the front end, which is above
    _code: TypeCode
    _bits: int
    _lanes: int
    _scalar: Type

    def __new__(cls, code: TypeCode = TypeCode.Handle, bits: int = 0, lanes: int = 0) -> Type:
        key = (int(code), int(bits), int(lanes))
        found = _TABLE.get(key)
        if found is not None:
            return found
        if not 0 <= key[1] <= 255:
            raise CompileError(f"Type has {bits} bits; between 0 and 255 can be represented")
        if not 0 <= key[2] <= 65535:
            raise CompileError(f"Type has {lanes} lanes; between 0 and 65535 can be represented")
        self = object.__new__(cls)
        self._code, self._bits, self._lanes = TypeCode(code), key[1], key[2]
        self._scalar = self if key[2] == 1 else cls(code, bits, 1)
        return _TABLE.setdefault(key, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Type, (self._code, self._bits, self._lanes)

    def code(self) -> TypeCode:
        """What the bits mean.

        >>> hl.UInt(8).code()
        <TypeCode.UInt: 1>
        """
        return self._code

    def bits(self) -> int:
        """Width of one element in bits.

        >>> hl.Int(16, 4).bits()
        16
        """
        return self._bits

    def bytes(self) -> int:
        """Width of one element in memory, in bytes; a bool takes one.

        >>> hl.Int(16).bytes(), hl.Bool().bytes()
        (2, 1)
        """
        return (self._bits + 7) // 8

    def lanes(self) -> int:
        """Number of elements: 1 for a scalar.

        >>> hl.Int(8, 4).lanes(), hl.Int(8).lanes()
        (4, 1)
        """
        return self._lanes

    def element_of(self) -> Type:
        """The scalar type of one lane.

        >>> hl.Float(32, 8).element_of()
        <halide.Type float32>
        """
        return self._scalar

    def with_lanes(self, lanes: int) -> Type:
        """The same element type with another number of lanes.

        >>> hl.UInt(8).with_lanes(4)
        <halide.Type uint8x4>
        """
        return self if lanes == self._lanes else Type(self._code, self._bits, lanes)

    def with_bits(self, bits: int) -> Type:
        """The same kind of type at another width.

        >>> hl.UInt(8, 4).with_bits(16)
        <halide.Type uint16x4>
        """
        return Type(self._code, bits, self._lanes)

    def with_code(self, code: TypeCode) -> Type:
        """A type of the same width and lanes with another meaning of its bits.

        >>> hl.UInt(8, 4).with_code(hl.TypeCode.Int)
        <halide.Type int8x4>
        """
        return Type(code, self._bits, self._lanes)

    def is_bool(self) -> bool:
        """An unsigned integer of one bit.

        >>> hl.Bool().is_bool(), hl.UInt(8).is_bool()
        (True, False)
        """
        return self._code == TypeCode.UInt and self._bits == 1

    def is_int(self) -> bool:
        """A signed integer.

        >>> hl.Int(8).is_int(), hl.UInt(8).is_int()
        (True, False)
        """
        return self._code == TypeCode.Int

    def is_uint(self) -> bool:
        """An unsigned integer; bool is one.

        >>> hl.UInt(8).is_uint(), hl.Bool().is_uint()
        (True, True)
        """
        return self._code == TypeCode.UInt

    def is_int_or_uint(self) -> bool:
        """An integer of either signedness, bool included."""
        return self._code <= TypeCode.UInt

    def is_float(self) -> bool:
        """An IEEE or brain float of any width.

        >>> hl.Float(64).is_float(), hl.BFloat(16).is_float()
        (True, True)
        """
        return self._code == TypeCode.Float or self._code == TypeCode.BFloat

    def is_bfloat(self) -> bool:
        """A brain float: eight bits of exponent, seven of fraction.

        >>> hl.BFloat(16).is_bfloat(), hl.Float(16).is_bfloat()
        (True, False)
        """
        return self._code == TypeCode.BFloat

    def is_handle(self) -> bool:
        """An opaque pointer.

        >>> hl.Handle().is_handle(), hl.UInt(64).is_handle()
        (True, False)
        """
        return self._code == TypeCode.Handle

    def is_scalar(self) -> bool:
        """One lane.

        >>> hl.Int(8).is_scalar(), hl.Int(8, 4).is_scalar()
        (True, False)
        """
        return self._lanes == 1

    def is_vector(self) -> bool:
        """More than one lane.

        >>> hl.Int(8, 4).is_vector(), hl.Int(8).is_vector()
        (True, False)
        """
        return self._lanes > 1

    def same_handle_type(self, other: Type) -> bool:
        """True when both or neither are handles; handles are all `void *` here.

        >>> hl.Handle().same_handle_type(hl.Handle()), hl.Handle().same_handle_type(hl.UInt(64))
        (True, False)
        """
        return self.is_handle() == expect(other, Type, "same_handle_type()").is_handle()

    def overflow_is_undefined(self) -> bool:
        """Signed integers of 32 bits and more may be assumed not to overflow in index arithmetic."""
        return self._code == TypeCode.Int and self._bits >= 32

    def min_value(self) -> int | float:
        """Smallest value as a Python number; -inf for floats."""
        if self._code == TypeCode.Int:
            return -(1 << (self._bits - 1))
        return 0 if self._code == TypeCode.UInt else -math.inf

    def max_value(self) -> int | float:
        """Largest value as a Python number; inf for floats."""
        if self._code == TypeCode.Int:
            return (1 << (self._bits - 1)) - 1
        return (1 << self._bits) - 1 if self._code == TypeCode.UInt else math.inf

    def min(self) -> Any:
        """Smallest value as a `lang.Expr`; -inf for floats.

        >>> hl.evaluate(hl.Int(16).min())
        -32768
        """
        return type(self).to_expr(self, self.min_value())

    def max(self) -> Any:
        """Largest value as a `lang.Expr`; inf for floats.

        >>> hl.evaluate(hl.Int(16).max())
        32767
        """
        return type(self).to_expr(self, self.max_value())

    def largest_finite(self) -> int | float:
        """Largest value that is not infinite."""
        return _FLOAT_MAX[self._code, self._bits] if self.is_float() else self.max_value()

    def is_max(self, value: int) -> bool:
        """Whether `value` is the largest one of this integer type.

        >>> hl.UInt(8).is_max(255), hl.Int(8).is_max(255)
        (True, False)
        """
        return self.is_int_or_uint() and value == self.max_value()

    def is_min(self, value: int) -> bool:
        """Whether `value` is the smallest one of this integer type.

        >>> hl.UInt(8).is_min(0), hl.Int(8).is_min(0)
        (True, False)
        """
        return self.is_int_or_uint() and value == self.min_value()

    def can_represent_value(self, value: int | float) -> bool:
        """Whether a Python number survives being stored in this type: exact for integers, finite range for floats."""
        if self.is_float():
            return value != value or abs(value) == math.inf or abs(value) <= self.largest_finite()
        if isinstance(value, float) and (value != value or math.isinf(value) or value != int(value)):
            return False
        return not self.is_handle() and self.min_value() <= value <= self.max_value()

    def can_represent(self, other: Type) -> bool:
        """Whether every value of `other` has an exact counterpart in this type (lanes must agree).

        >>> hl.Int(16).can_represent(hl.UInt(8)), hl.Float(32).can_represent(hl.Int(32))
        (True, False)
        """
        if self is other:
            return True
        if self._lanes != expect(other, Type, "can_represent()")._lanes or self.is_handle() or other.is_handle():
            return False
        if self.is_int():
            return (other.is_int() and other._bits <= self._bits) or (other.is_uint() and other._bits < self._bits)
        if self.is_uint():
            return other.is_uint() and other._bits <= self._bits
        if self.is_bfloat():
            return (other.is_bfloat() and other._bits <= self._bits) or (not other.is_float() and other._bits <= 8)
        if other.is_bfloat():
            return self._bits >= 32
        if other.is_float():
            return other._bits <= self._bits
        fraction = {16: 11, 32: 24, 64: 53}.get(self._bits, 0)
        return other._bits - other.is_int() <= fraction

    def __repr__(self) -> str:
        lanes = "" if self._lanes == 1 else f"x{self._lanes}"
        return f"<halide.Type {self}>" if self._bits or lanes else "<halide.Type undefined>"

    def __str__(self) -> str:
        lanes = "" if self._lanes == 1 else f"x{self._lanes}"
        if self._code == TypeCode.Handle:
            return f"(void *){lanes}"
        return ("bool" if self.is_bool() else f"{_LETTER[self._code]}{self._bits}") + lanes


def Int(bits: int, lanes: int = 1) -> Type:
    """A signed integer type.

    `bits` is 8, 16, 32 or 64; `lanes` more than 1 makes a vector type.

    >>> hl.Int(32).is_int(), hl.Int(32, 8).lanes()
    (True, 8)
    """
    return Type(TypeCode.Int, bits, lanes)


def UInt(bits: int, lanes: int = 1) -> Type:
    """An unsigned integer type.

    `bits` is 1, 8, 16, 32 or 64; of one bit it is a bool.

    >>> hl.UInt(1) == hl.Bool()
    True
    """
    return Type(TypeCode.UInt, bits, lanes)


def Float(bits: int, lanes: int = 1) -> Type:
    """An IEEE floating point type.

    `bits` is 16, 32 or 64. Half floats are computed as float32 and rounded after each operation.

    >>> hl.Float(16).bytes()
    2
    """
    return Type(TypeCode.Float, bits, lanes)


def BFloat(bits: int, lanes: int = 1) -> Type:
    """A brain floating point type.

    The upper half of a float32: computed as float32 and rounded after each operation.

    >>> hl.BFloat(16).bits()
    16
    """
    return Type(TypeCode.BFloat, bits, lanes)


def Bool(lanes: int = 1) -> Type:
    """A boolean: an unsigned integer of one bit, stored in a byte.

    What comparisons give and `select` takes.

    >>> (hl.Var('x') < 3).type() == hl.Bool()
    True
    """
    return Type(TypeCode.UInt, 1, lanes)


def Handle(lanes: int = 1) -> Type:
    """An opaque pointer.

    Handles go from parameters to C functions; nothing can be computed with them.

    >>> hl.Handle().bits()
    64
    """
    return Type(TypeCode.Handle, 64, lanes)


INT32 = Int(32)
INT64 = Int(64)
BOOL = Bool()
