"""Operations on narrow elements that machines have for elements twice as wide: on even and odd elements apart.

Before: `a / 7` of 64 bytes. After: 32 halfwords hold the even bytes of `a`, 32 more the odd ones; both are divided by a multiplication, and
put together by a shift. Widening the vector instead would move every byte to another place and back.
Source of the divisions: Warren, Hacker's Delight, chapter 10; rounded down, with a saturating increment: Robison, "N-bit unsigned
division via N-bit multiply-add" (2005).
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.types import Type, TypeCode

Pair = Callable[[list[n.Expr]], n.Expr]


def splits(t: Type, count: int) -> bool:
    """Whether a slice of `count` lanes of vectors of type `t` is made of pairs."""
    return t.is_int_or_uint() and not t.is_bool() and t.bits() <= 32 and t.lanes() % 4 == 0 and count >= 4 and count & (count - 1) == 0


def in_pairs(t: Type, args: list[n.Expr], form: Pair) -> n.Expr:
    """`form` of arguments twice as wide, for even lanes and for odd lanes; the low halves of what it gives, as a vector of type `t`."""
    bits = t.bits()
    wide = t.with_code(TypeCode.UInt).with_bits(2 * bits).with_lanes(t.lanes() // 2)
    words = [n.Reinterpret(wide, a) for a in args]
    even = b.cast(wide, form([_low(w, bits, a.type.is_int()) for w, a in zip(words, args)]))
    odd = b.cast(wide, form([_high(w, bits, a.type.is_int()) for w, a in zip(words, args)]))
    low = intrinsic("bitwise_and", wide, even, b.const(wide, (1 << bits) - 1))
    return n.Reinterpret(t, intrinsic("bitwise_or", wide, low, _shift("shift_left", odd, bits)))


def _shift(name: str, x: n.Expr, bits: int) -> n.Expr:
    return intrinsic(name, x.type, x, b.const(x.type.with_code(TypeCode.UInt), bits))


def _low(word: n.Expr, bits: int, signed: bool) -> n.Expr:
    if not signed:
        return intrinsic("bitwise_and", word.type, word, b.const(word.type, (1 << bits) - 1))
    return _high(_shift("shift_left", word, bits), bits, True)


def _high(word: n.Expr, bits: int, signed: bool) -> n.Expr:
    if not signed:
        return _shift("shift_right", word, bits)
    return _shift("shift_right", n.Reinterpret(word.type.with_code(TypeCode.Int), word), bits)


def quotient(x: n.Expr, d: int) -> n.Expr | None:
    """x / d of vectors of unsigned halfwords, by one multiplication; None where compilers find that themselves."""
    t = x.type
    for bits in range(16):
        factor = -(-(1 << 16 + bits) // d)
        if factor < 1 << 16 and (factor * d - (1 << 16 + bits)) << 16 <= 1 << 16 + bits:
            return None
    bits = d.bit_length() - 1
    more = intrinsic("saturating_add", t, x, b.const(t, 1))
    return _shift("shift_right", _times(more, (1 << 16 + bits) // d), bits)


def _times(x: n.Expr, factor: int) -> n.Expr:
    """The high half of a product of halfwords."""
    return intrinsic("mul_shift_right", x.type, x, b.const(x.type, factor), b.const(x.type, 16))


def byte_division(x: n.Expr, d: int, is_div: bool) -> n.Expr:
    """x / d or x % d, rounded down, of vectors of bytes, 2 < d < 256 no power of 2. Signed: complement negative numbers, so that truncation
    rounds down."""
    t = x.type

    def of_halfwords(args: list[n.Expr]) -> n.Expr:
        q = _times(args[0], -(-(1 << 16) // d))  # exact below 2^8, as the error of the factor times that is less than 2^16 / d
        return q if is_div else n.Sub(args[0], n.Mul(q, b.const(q.type, d)))

    if t.is_uint():
        return in_pairs(t, [x], of_halfwords)
    u = t.with_code(TypeCode.UInt)
    negative = n.Reinterpret(u, intrinsic("shift_right", t, x, b.const(u, 7)))
    positive = intrinsic("bitwise_xor", u, n.Reinterpret(u, x), negative)
    if is_div:
        return n.Reinterpret(t, intrinsic("bitwise_xor", u, in_pairs(u, [positive], of_halfwords), negative))
    # of the complement -x - 1 the remainder is d - 1 - x % d
    rest = intrinsic("bitwise_xor", u, in_pairs(u, [positive], of_halfwords), negative)
    return n.Reinterpret(t, n.Add(rest, intrinsic("bitwise_and", u, negative, b.const(u, d))))


def byte_truncated(x: n.Expr, d: int) -> n.Expr:
    """x / d of vectors of signed bytes, 2 < d < 128, rounded to 0: of the size of x, with its sign."""
    t, u = x.type, x.type.with_code(TypeCode.UInt)
    sign = b.cast(u, intrinsic("shift_right", t, x, b.const(u, 7)))
    size = n.Sub(intrinsic("bitwise_xor", u, b.cast(u, x), sign), sign)
    quotient = in_pairs(u, [size], lambda args: _times(args[0], -(-(1 << 16) // d)))
    return b.cast(t, n.Sub(intrinsic("bitwise_xor", u, quotient, sign), sign))


def byte_product(e: n.Call) -> n.Expr | None:
    """mul_shift_right or rounding_mul_shift_right of bytes by a constant, which halfwords hold; else None."""
    t, amount = e.type, b.as_int(e.args[2])
    if t.bits() != 8 or amount is None:
        return None
    name = "shift_right" if e.name == "mul_shift_right" else "rounding_shift_right"

    def of_halfwords(args: list[n.Expr]) -> n.Expr:
        wide = args[0].type
        shifted = intrinsic(name, wide, n.Mul(*args), b.const(wide.with_code(TypeCode.UInt), amount))
        if amount >= 8:
            return shifted
        limited = n.Min(shifted, b.const(wide, int(t.max_value())))
        return n.Max(limited, b.const(wide, int(t.min_value()))) if t.is_int() else limited

    return in_pairs(t, list(e.args[:2]), of_halfwords)
