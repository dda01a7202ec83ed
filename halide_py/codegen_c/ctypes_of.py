"""Types, constants and names in C."""

from __future__ import annotations

import math
import re

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.types import Type

TAKEN = frozenset(
    # keywords of C and C++, macros of their libraries and of GNU compilers, the types of hl_runtime.h
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long main mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq NULL EOF errno stdin stdout stderr assert linux "
    "unix i386 int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t size_t ptrdiff_t".split())
_OURS = re.compile(r"_?hl_|_?halide_|HL_|__|_[A-Z]|[uifcq]\d+x\d+u?$")


def c_identifier(name: str) -> str:
    """A C identifier for an IR name, none that means something already."""
    clean = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not clean or clean[0].isdigit() or clean in TAKEN:
        return "_" + clean.lower() if clean in TAKEN else "_" + clean
    return "v" + clean if _OURS.match(clean) else clean


def value_type(t: Type) -> str:
    """The C type a scalar value is computed in; half floats compute in float."""
    if t.is_handle():
        return "void *"
    if t.is_bool():
        return "uint8_t"
    if t.is_float():
        return "double" if t.bits() == 64 else "float"
    if t.bits() not in (8, 16, 32, 64):
        raise CompileError(f"Values of type {t} cannot be compiled; integers have 8, 16, 32 or 64 bits")
    return f"{'int' if t.is_int() else 'uint'}{t.bits()}_t"


def memory_type(t: Type) -> str:
    """The C type of an element in memory."""
    return "uint16_t" if t.is_float() and t.bits() == 16 else value_type(t)


def is_half(t: Type) -> bool:
    """float16 and bfloat16: two bytes in memory, float in computation."""
    return t.is_float() and t.bits() == 16


def value_bits(t: Type) -> int:
    """Width of a computed value."""
    return 8 if t.is_bool() else 32 if is_half(t) else t.bits()


def short_type(t: Type) -> str:
    """`u8`, `i32`, `f32`, ... of the computed value."""
    return ("f" if t.is_float() else "i" if t.is_int() else "u") + str(value_bits(t))


def c_string(text: str) -> str:
    """A string literal."""
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\?' else "".join(f"\\{o:03o}" for o in c.encode()) for c in text) + '"'


def constant(e: n.Expr) -> str:
    """A literal."""
    if isinstance(e, n.StringImm):
        return c_string(e.value)
    t = e.type
    if isinstance(e, n.FloatImm):
        return _float(e.value, t.bits() == 64)
    assert isinstance(e, (n.IntImm, n.UIntImm))
    value = e.value
    if t.is_handle():
        return f"((void *){value}ull)"
    if t.is_int():
        if t.bits() == 64:
            return "(-9223372036854775807ll - 1)" if value == -(1 << 63) else f"{value}ll" if value >= 0 else f"({value}ll)"
        if value == -(1 << 31):
            return "(-2147483647 - 1)"
        return str(value) if value >= 0 else f"({value})"
    return f"{value}ull" if t.bits() == 64 else f"{value}u" if t.bits() == 32 else str(value)


def _float(value: float, double: bool) -> str:
    """The shortest decimal that gives this number."""
    suffix = "" if double else "f"
    if value != value:
        return f'__builtin_nan{suffix}("")'
    if value in (math.inf, -math.inf):
        return f"__builtin_inf{suffix}()" if value > 0 else f"(-__builtin_inf{suffix}())"
    text = repr(value)
    if not double:  # within a quarter of the distance to the next float
        text = next(
            (t for t in (f"{value:.{digits}g}" for digits in range(1, 9)) if abs(float(t) - value) <= abs(value) * 2.0**-26), f"{value:.9g}"
        )
    if not any(c in text for c in ".e"):
        text += ".0"
    return f"({text}{suffix})" if text[0] == "-" else text + suffix


def comment(name: str) -> str:
    """An IR name in a comment."""
    return name.replace("*/", "* /")
