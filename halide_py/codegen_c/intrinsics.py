"""Calls in C, second part: intrinsics that are operators of C, and those the machine has an instruction for (a table)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.simplify import constant_bound
from ..ir.types import Type, TypeCode
from . import narrow_lanes, x86_words
from . import vectors as v
from .bit_counts import count_bits
from .ctypes_of import short_type, value_bits, value_type
from .emitter import Emitter
from .expressions import finish, is_splat, lane_by_lane, mask_at_width

# (intrinsic, element, register bytes) -> gcc's builtin, without its prefix. Arguments are signed vectors of the element's width.
_GCC = {
    **{(f"saturating_{op}", short, size): f"p{op}{s}{w}{8 * size}" for size in (16, 32, 64) for op in ("add", "sub")
       for short, s, w in (("u8", "us", "b"), ("i8", "s", "b"), ("u16", "us", "w"), ("i16", "s", "w"))},
    **{("rounding_halving_add", short, size): f"pavg{w}{8 * size}" for size in (16, 32, 64) for short, w in (("u8", "b"), ("u16", "w"))},
    **{("mul_shift_right", short, size): f"pmulh{s}w{8 * size}" for size in (16, 32, 64) for short, s in (("u16", "u"), ("i16", ""))},
}
_NEEDS = {16: "sse2", 32: "avx2", 64: "avx512bw"}


def instruction(em: Emitter, e: n.Call, start: int, count: int) -> str | None:
    """An intrinsic as one instruction; None where the machine or the compiler has none."""
    t = e.type
    if e.name == "rounding_mul_shift_right" and short_type(t) == "i16" and b.as_int(e.args[2]) == 15:
        return _rounded_product(em, e, start, count)
    if e.name == "mul_shift_right" and t.bits() == 32:
        return _high_product(em, e, start, count)
    size = count * t.bits() // 8
    builtin = _GCC.get((e.name, short_type(t), size)) if t.bits() in (8, 16) and not t.is_float() and not t.is_bool() else None
    if builtin is None or em.machine.compiler == "clang" or not em.machine.has(_NEEDS[size]):
        return None
    if e.name == "mul_shift_right" and b.as_int(e.args[2]) != 16:
        return None
    element, result = em.vector_type("c8" if t.bits() == 8 else "i16", count), em.c_type(t, count)

    def own(x: str, y: str) -> str:
        masked = f", ({element}){{}}, (uint{count}_t)-1" if size == 64 else ""
        return f"(({result})__builtin_ia32_{builtin}{'_mask' if masked else ''}(({element}){x}, ({element}){y}{masked}))"

    args = [em.emit(a, start, count) for a in e.args[:2]]
    if em.machine.compiler == "gcc":
        return own(*args)
    body = v.of_gcc(em, _NEEDS[size], f"return {own('a', 'b')};", _in_twice_the_bits(em, e.name, t, count))
    return f"{em.unit.vector_helper(f'hl_{builtin}', result, f'{result} a, {result} b', body)}({', '.join(args)})"


def _high_product(em: Emitter, e: n.Call, start: int, count: int) -> str | None:
    amount = b.as_int(e.args[2])
    if amount is None or not 32 <= amount < 64:
        return None
    high = x86_words.high_product(em, e.type, count, *(em.emit(a, start, count) for a in e.args[:2]))
    return high if high is None or amount == 32 else f"({high} >> {amount - 32})"


def _rounded_product(em: Emitter, e: n.Call, start: int, count: int) -> str | None:
    """(a b + 2^14) >> 15 of halfwords, of which the only one that does not fit becomes the lowest number."""
    size = 2 * count
    needs = {**_NEEDS, 16: "ssse3"}.get(size)
    if em.machine.compiler != "gcc" or needs is None or not em.machine.has(needs):
        return None
    t = em.vector_type("i16", count)
    masked = f"512_mask(a, b, ({t}){{}}, (uint32_t)-1)" if size == 64 else f"{8 * size}(a, b)"
    body = f"const {t} r = __builtin_ia32_pmulhrsw{masked}; return r ^ (r == (int16_t)-32768);"
    args = ", ".join(em.emit(a, start, count) for a in e.args[:2])
    return f"{em.unit.vector_helper(f'hl_pmulhrsw{8 * size}', t, f'{t} a, {t} b', body)}({args})"


def _in_twice_the_bits(em: Emitter, name: str, t: Type, count: int) -> str:
    """The body of a helper for an operation of `_GCC`, by arithmetic that no value leaves."""
    sign = "u" if name == "mul_shift_right" and t.is_uint() else "i"
    wide, result = em.vector_type(f"{sign}{2 * t.bits()}", count), em.c_type(t, count)
    low, high = (-1 << t.bits() - 1, (1 << t.bits() - 1) - 1) if t.is_int() else (0, (1 << t.bits()) - 1)
    x, y = (f"__builtin_convertvector({operand}, {wide})" for operand in "ab")
    value = {"rounding_halving_add": f"({x} + {y} + 1) >> 1", "mul_shift_right": f"({x} * {y}) >> 16"}.get(name)
    if value is not None:
        return f"return __builtin_convertvector({value}, {result});"
    return (f"{wide} v = {x} {'+' if name.endswith('add') else '-'} {y}; const {wide} low = ({wide}){{}} + ({low}), high = ({wide}){{}} + "
            f"{high}; const {wide} below = v < low, above = v > high; v = HL_SELECT({wide}, below, low, v); return "
            f"__builtin_convertvector(HL_SELECT({wide}, above, high, v), {result});")


def _bitwise(op: str) -> Any:
    def form(em: Emitter, e: n.Call, start: int, count: int) -> str:
        x, y = e.args
        if count == 1:
            return finish(em, e.type, 1, f"{em.emit(x, start, 1)} {op} {em.emit(y, start, 1)}")
        if is_splat(x):
            x, y = y, x
        return f"({em.emit(x, start, count)} {op} {v.operand(em, y, start, count)})"

    return form


def _bitwise_mask(op: str) -> Any:
    def form(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
        return f"({em.mask(e.args[0], start, count, bits)} {op} {em.mask(e.args[1], start, count, bits)})"

    return form


def _bitwise_not(em: Emitter, e: n.Call, start: int, count: int) -> str:
    if e.type.is_bool():
        return f"(!{em.emit(e.args[0], start, 1)})"
    return finish(em, e.type, count, f"~{em.emit(e.args[0], start, count)}")


def _bitwise_not_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    return f"(~{em.mask(e.args[0], start, count, bits)})"


# ---- shifts


def _shift(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """Negative amounts shift the other way; amounts beyond the width are taken modulo it where that is cheapest."""
    t, amount = e.type, b.as_int(e.args[1])
    left = e.name == "shift_left"
    if amount is not None:
        if amount < 0 and e.args[1].type.is_int():
            left, amount = not left, -amount
        amount = min(amount, t.bits())
        if amount < t.bits():
            return _shift_by(em, e.args[0], t, start, count, left, amount)
    if count == 1:
        helper = em.unit.helper(f"hl_{'shl' if e.name == 'shift_left' else 'shr'}_{short_type(t)}")
        return f"{helper}({em.emit(e.args[0], start, 1)}, {_amount(em, e.args[1], start)})"
    wide = em.written_out((e, "shift", narrow_lanes.splits(t, count)), lambda: _vector_shift(em, e, count), e.args)
    assert wide is not None
    if isinstance(wide, n.Call) and wide.name in ("shift_left", "shift_right"):
        return _vector_shift_by(em, wide, start, count)
    return em.emit(wide, start, count)


def _vector_shift_by(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """By a vector of unsigned amounts. What C leaves open, an amount of the width or more, moves everything out, as for scalars."""
    t, amount = e.type, e.args[1]
    bits, left = t.bits(), e.name == "shift_left"
    x, y = em.emit(e.args[0], start, count), em.atom(amount, start, count)
    ctype, operator = em.c_type(t, count), "<<" if left else ">>"
    high = constant_bound(amount, upper=True)
    if high is not None and high < bits:
        return f"({x} {operator} {y if short_type(amount.type) == short_type(t) else f'({ctype}){y}'})"
    text = x86_words.shift(em, t, count, left, x, y) if amount.type.bits() == bits else None
    if text is not None:
        return text
    last, wide = v.const_operand(amount, bits - 1), em.c_type(amount.type, count)
    kept = f"HL_SELECT({wide}, {y} < {last}, {y}, {last} - ({wide}){{}})"
    if not left and t.is_int():
        return f"({x} >> ({ctype})({kept}))"
    within = f"({y} <= {last})"
    mask = em.vector_type(f"i{bits}", count)
    return f"(({ctype})(({mask}){within} & ({mask})({x} {operator} ({ctype})({y} & {last}))))"


def _amount(em: Emitter, e: n.Expr, start: int) -> str:
    """The amount as an argument of the helpers, which take int64_t; a huge unsigned one stays huge."""
    text = em.emit(e, start, 1)
    return f"(int64_t)({text} > 64 ? 64 : {text})" if e.type.is_uint() and e.type.bits() == 64 else text


def _shift_by(em: Emitter, e: n.Expr, t: Type, start: int, count: int, left: bool, amount: int) -> str:
    if amount == 0:
        return em.emit(e, start, count)
    x = em.emit(e, start, count)
    if left and count == 1 and t.is_int():  # in C a shift of a negative number to the left is not defined
        unsigned = f"uint{max(t.bits(), 32)}_t"
        return f"({value_type(t)})(({unsigned}){x} << {amount})"
    return finish(em, t, count, f"{x} {'<<' if left else '>>'} {amount}")


def _vector_shift(em: Emitter, e: n.Call, count: int) -> n.Expr:
    """A shift by a vector: narrow elements in pairs, signed amounts by choosing the direction."""
    x, y = e.args
    least, most = constant_bound(y, upper=False), constant_bound(y, upper=True)
    if y.type.is_int() and least is not None and least >= 0:
        y = b.cast(y.type.with_code(TypeCode.UInt), y)
    if e.type.bits() < (16 if em.machine.has("avx512bw") else 32):
        if narrow_lanes.splits(e.type, count):
            if e.name == "shift_left" and y.type.is_uint():
                x = b.cast(e.type.with_code(TypeCode.UInt), x)
            made = narrow_lanes.in_pairs(x.type, [x, y], lambda args: intrinsic(e.name, args[0].type, args[0], _kept_small(args[1], most)))
            return b.cast(e.type, made)
        wide = e.type.with_bits(32)
        return b.cast(e.type, intrinsic(e.name, wide, b.cast(wide, x), b.cast(y.type.with_bits(32), y)))
    if y.type.is_uint():
        return intrinsic(e.name, e.type, x, y)
    unsigned = y.type.with_code(TypeCode.UInt)
    back = "shift_right" if e.name == "shift_left" else "shift_left"
    forth = intrinsic(e.name, e.type, x, b.cast(unsigned, y))
    other = intrinsic(back, e.type, x, b.cast(unsigned, n.Sub(b.const(y.type, 0), y)))
    return n.Select(n.LT(y, b.const(y.type, 0)), other, forth)


def _kept_small(amount: n.Expr, most: int | None) -> n.Expr:
    """An amount that is known to be at most `most`, so that what is made of it shows that."""
    if amount.type.is_int() or most is None or most >= amount.type.bits():
        return amount
    return intrinsic("bitwise_and", amount.type, amount, b.const(amount.type, (1 << most.bit_length()) - 1))


# ---- arithmetic


def _abs(em: Emitter, e: n.Call, start: int, count: int) -> str:
    x, s = em.emit(e.args[0], start, count), e.args[0].type
    bits = value_bits(s)
    if s.is_uint():
        return x
    if s.is_float():
        if count == 1:
            return f"__builtin_fabs{'' if bits == 64 else 'f'}({x})"
        without_sign = f"{(1 << (bits - 1)) - 1}{'ull' if bits == 64 else 'u'}"
        return f"(({em.c_type(e.type, count)})(({em.vector_type(f'u{bits}', count)}){x} & {without_sign}))"
    ctype = em.c_type(s, count)
    zero = "0" if count == 1 else f"({ctype}){{}}"
    value = "a < 0 ? 0 - a : a" if count == 1 else f"HL_SELECT({ctype}, a < {zero}, -a, a)"
    helper = em.unit.vector_helper(f"hl_abs_{short_type(s)}x{count}", ctype, f"{ctype} a", f"return ({ctype})({value});")
    return f"({em.c_type(e.type, count)}){helper}({x})"


def _c_division(name: str) -> Any:
    """C's own division, x/0 = x%0 = 0."""
    def form(em: Emitter, e: n.Call, start: int, count: int) -> str:
        t, d = e.type, b.as_int(e.args[1])
        if t.is_float():
            return _float_division(em, e, start, count, name)
        if d is not None and d > 0 and t.bits() == 8 and d & (d - 1) and narrow_lanes.splits(t, count):
            return em.emit(_bytes_divided(em, e, d), start, count)
        if d is not None and d > 0:
            return finish(em, t, count, f"{em.emit(e.args[0], start, count)} {'/' if name == 'div' else '%'} {v.const_operand(e, d)}")
        helper = em.unit.helper(f"hl_{'c' if t.is_int() else ''}{name}_{short_type(t)}")
        if count == 1:
            return f"{helper}({em.emit(e.args[0], start, 1)}, {em.emit(e.args[1], start, 1)})"
        return lane_by_lane(em, t, count, helper, [em.lanes(a, start, count) for a in e.args])

    return form


def _bytes_divided(em: Emitter, e: n.Call, d: int) -> n.Expr:
    def make() -> n.Expr:
        x, is_div = e.args[0], e.name == "div_round_to_zero"
        if e.type.is_uint():
            return narrow_lanes.byte_division(x, d, is_div)
        quotient = narrow_lanes.byte_truncated(x, d)
        return quotient if is_div else n.Sub(x, n.Mul(quotient, b.const(e.type, d)))

    made = em.written_out((e, "bytes"), make, e.args)
    assert made is not None
    return made


def _float_division(em: Emitter, e: n.Call, start: int, count: int, name: str) -> str:
    if name == "div":
        return em.emit(n.Div(*e.args), start, count)
    function = "__builtin_fmod" if value_bits(e.type) == 64 else "__builtin_fmodf"
    return lane_by_lane(em, e.type, count, function, [em.lanes(a, start, count) for a in e.args])


def _wide_product(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """mul_shift_right of 64 bits, through the 128 bits that C has for scalars."""
    helper = em.unit.helper(f"hl_mulshr_{short_type(e.type)}")
    lanes = [em.lanes(a, start, count) if a.type.is_vector() else [em.scalar(a)] * count for a in e.args]
    rounding = int(e.name == "rounding_mul_shift_right")
    texts = [f"{helper}({x}, {y}, (uint64_t){q}, {rounding})" for x, y, q in zip(*lanes)]
    return em.from_lanes(e.type, count, texts) if count > 1 else texts[0]


def form_of(e: n.Call) -> Callable[[Emitter, n.Call, int, int], str] | None:
    """The form of an intrinsic that needs no writing out."""
    if e.type.bits() == 64 and e.name in ("mul_shift_right", "rounding_mul_shift_right"):
        return _wide_product
    return FORMS.get(e.name)


def _classify(em: Emitter, e: n.Call, start: int, count: int) -> str:
    x, t = em.atom(e.args[0], start, 1), e.args[0].type
    if e.name == "is_nan":
        return f"({x} != {x})"
    suffix = "" if value_bits(t) == 64 else "f"
    return f"(__builtin_fabs{suffix}({x}) {'==' if e.name == 'is_inf' else '<'} __builtin_inf{suffix}())"


def _classify_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    """Of the bits: no exceptions, and nothing for a compiler to reason away."""
    t = e.args[0].type
    width = value_bits(t)
    infinity = f"{0x7F800000:#x}" if width == 32 else f"{0x7FF0000000000000:#x}ll"
    compare = {"is_nan": ">", "is_inf": "==", "is_finite": "<"}[e.name]

    def make(first: int, size: int) -> str:
        whole = em.vector_type(f"i{width}", size)
        clear = f"{(1 << (width - 1)) - 1:#x}{'ll' if width == 64 else ''}"
        return f"((({whole}){em.emit(e.args[0], first, size)} & {clear}) {compare} {infinity})"

    return mask_at_width(em, make, width, start, count, bits)


FORMS: dict[str, Callable[[Emitter, n.Call, int, int], str]] = {
    "bitwise_and": _bitwise("&"),
    "bitwise_or": _bitwise("|"),
    "bitwise_xor": _bitwise("^"),
    "bitwise_not": _bitwise_not,
    "shift_left": _shift,
    "shift_right": _shift,
    "abs": _abs,
    "popcount": count_bits,
    "count_leading_zeros": count_bits,
    "count_trailing_zeros": count_bits,
    "div_round_to_zero": _c_division("div"),
    "mod_round_to_zero": _c_division("mod"),
    "is_nan": _classify,
    "is_inf": _classify,
    "is_finite": _classify,
}
MASK_FORMS: dict[str, Callable[[Emitter, n.Call, int, int, int], str]] = {
    "bitwise_and": _bitwise_mask("&"),
    "bitwise_or": _bitwise_mask("|"),
    "bitwise_xor": _bitwise_mask("^"),
    "bitwise_not": _bitwise_not_mask,
    "is_nan": _classify_mask,
    "is_inf": _classify_mask,
    "is_finite": _classify_mask,
}
