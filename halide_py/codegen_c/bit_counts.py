"""Bits counted in vectors: by the instructions of x86 where the machine has them, else by sums of ever more bits.

Source: Warren, Hacker's Delight, chapter 5. Zeros on the right of x are the ones of ~x & (x - 1), zeros on the left the bits above those of
x smeared to the right.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.types import Type, TypeCode
from . import narrow_lanes
from . import vectors as v
from .ctypes_of import value_type
from .emitter import Emitter

_MODE = {8: "b", 16: "w", 32: "d", 64: "q"}
_LANES = {8: "qi", 16: "hi", 32: "si", 64: "di"}
# Zeros on the left of a byte by its high digit, and by its low one where the high one is 0; `pshufb` gives 0 for bytes from 128 on.
_BY_HIGH, _BY_LOW = (8, 3, 2, 2, *[1] * 4, *[0] * 8), (8, 7, 6, 6, *[5] * 4, *[4] * 8)


def count_bits(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """A slice of popcount, count_leading_zeros or count_trailing_zeros."""
    x = e.args[0]
    bits = x.type.bits()
    if count == 1:
        helper = em.unit.helper(f"hl_{_HELPER[e.name]}_u{bits}")
        return f"({value_type(e.type)}){helper}({f'(uint{bits}_t)' if x.type.is_int() else ''}{em.emit(x, start, 1)})"
    text = _instruction(em, e, start, count)
    if text is not None:
        return text
    wide = e.name == "count_leading_zeros" and bits == 16 and em.machine.has("avx512cd") and narrow_lanes.splits(x.type, count)
    made = em.written_out((e, "bits", wide), lambda: _in_pairs(x) if wide else _RULES[e.name](_unsigned(x), e.type), (x,))
    assert made is not None
    return em.emit(made, start, count)


_HELPER = {"popcount": "popcount", "count_leading_zeros": "clz", "count_trailing_zeros": "ctz"}


def _instruction(em: Emitter, e: n.Call, start: int, count: int) -> str | None:
    bits = e.args[0].type.bits()
    size = count * bits
    if em.machine.compiler != "gcc" or size not in (128, 256, 512) or size < 512 and not em.machine.has("avx512vl"):
        return None
    if e.name == "popcount" and em.machine.has("avx512bitalg" if bits < 32 else "avx512vpopcntdq"):
        name, vector = f"vpopcount{_MODE[bits]}_v{count}{_LANES[bits]}", _signed(em, bits, count)
        return f"(({em.c_type(e.type, count)})__builtin_ia32_{name}(({vector}){em.emit(e.args[0], start, count)}))"
    if e.name != "count_leading_zeros":
        return None
    if bits >= 32 and em.machine.has("avx512cd"):
        vector = _signed(em, bits, count)
        arguments = f"({vector}){em.emit(e.args[0], start, count)}, ({vector}){{}}, (uint{max(count, 8)}_t)-1"
        return f"(({em.c_type(e.type, count)})__builtin_ia32_vplzcnt{_MODE[bits]}_{size}_mask({arguments}))"
    return _zeros_of_bytes(em, e, start, count) if bits == 8 and em.machine.has("avx512bw") else None


def _zeros_of_bytes(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """Zeros on the left, looked up digit by digit."""
    c, u = em.vector_type("c8", count), em.vector_type("u8", count)

    def looked_up(table: tuple[int, ...], index: str) -> str:
        arguments = f"({c}){{{', '.join(map(str, table * (count // 16)))}}}, ({c})({index})"
        masked = f"512_mask({arguments}, ({c}){{}}, ~0ull)" if count == 64 else f"{8 * count}({arguments})"
        return f"({u})__builtin_ia32_pshufb{masked}"

    body = f"const {u} high = {looked_up(_BY_HIGH, 'a >> 4')}, low = {looked_up(_BY_LOW, 'a')}; return {v.minimum(em, u, 'high', 'low')};"
    helper = em.unit.vector_helper(f"hl_clz_u8x{count}", u, f"{u} a", body)
    return f"(({em.c_type(e.type, count)}){helper}(({u}){em.emit(e.args[0], start, count)}))"


def _signed(em: Emitter, bits: int, count: int) -> str:
    return em.vector_type({8: "c8", 64: "q64"}.get(bits, f"i{bits}"), count)


def _unsigned(x: n.Expr) -> n.Expr:
    return b.cast(x.type.with_code(TypeCode.UInt), x)


def _in_pairs(x: n.Expr) -> n.Expr:
    """Zeros on the left of halfwords, 16 less than those of words."""
    u = _unsigned(x)

    def of_words(args: list[n.Expr]) -> n.Expr:
        return n.Sub(intrinsic("count_leading_zeros", args[0].type, args[0]), b.const(args[0].type, 16))

    return b.cast(x.type, narrow_lanes.in_pairs(u.type, [u], of_words))


def _shifted(x: n.Expr, amount: int) -> n.Expr:
    return intrinsic("shift_right", x.type, x, b.const(x.type, amount))


def _and(x: n.Expr, mask: int) -> n.Expr:
    return intrinsic("bitwise_and", x.type, x, b.const(x.type, mask))


def _ones(x: n.Expr, t: Type) -> n.Expr:
    """Pairs of bits, then fours, bytes, ... as sums."""
    bits = x.type.bits()
    each = ((1 << bits) - 1) // 255
    x = n.Sub(x, _and(_shifted(x, 1), 0x55 * each))
    x = n.Add(_and(x, 0x33 * each), _and(_shifted(x, 2), 0x33 * each))
    x = _and(n.Add(x, _shifted(x, 4)), 0x0F * each)
    for amount in (8, 16, 32):
        if amount < bits:
            x = n.Add(x, _shifted(x, amount))
    return b.cast(t, _and(x, 2 * bits - 1) if bits > 8 else x)


def _left(x: n.Expr, t: Type) -> n.Expr:
    for amount in (1, 2, 4, 8, 16, 32):
        if amount < x.type.bits():
            x = intrinsic("bitwise_or", x.type, x, _shifted(x, amount))
    return n.Sub(b.const(t, t.bits()), b.cast(t, intrinsic("popcount", x.type, x)))


def _right(x: n.Expr, t: Type) -> n.Expr:
    below = intrinsic("bitwise_and", x.type, intrinsic("bitwise_not", x.type, x), n.Sub(x, b.const(x.type, 1)))
    return b.cast(t, intrinsic("popcount", x.type, below))


_RULES = {"popcount": _ones, "count_leading_zeros": _left, "count_trailing_zeros": _right}
