"""Conversions between types, the narrowing ones by packing whole registers."""

from __future__ import annotations

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import INT32, Int, Type
from . import halves, memory, patterns
from . import vectors as v
from .ctypes_of import is_half, short_type, value_bits, value_type
from .emitter import HANDLERS, MASKS, Emitter
from .expressions import finish, mask_at_width, round_half

# Saturating packs: (source, target, register bytes) -> builtin; the halves of 32 byte registers interleave.
_PACKS = {
    ("i32", "i16", 32): "packssdw256",
    ("i32", "u16", 32): "packusdw256",
    ("i16", "i8", 32): "packsswb256",
    ("i16", "u8", 32): "packuswb256",
    ("i32", "i16", 16): "packssdw128",
    ("i32", "u16", 16): "packusdw128",
    ("i16", "i8", 16): "packsswb128",
    ("i16", "u8", 16): "packuswb128",
}


def cast(em: Emitter, e: n.Cast, start: int, count: int) -> str:
    """A conversion: floats to integers truncate, narrowing integers wrap."""
    t, s = e.type, e.value.type
    better = patterns.match(e) or _direct(em, e)
    if better is not None:
        return em.emit(better, start, count)
    if count == 1:
        text = em.emit(e.value, start, 1)
        if s.is_float() and t.is_int_or_uint() and not t.is_bool() and _fits(em, e.value, t):
            return f"({value_type(t)})({text})" if t.is_int() and t.bits() >= 32 else f"({value_type(t)})(int32_t)({text})"
        return scalar_cast(em, t, s, text)
    target, source = short_type(t), short_type(s)
    if s.is_bool():
        bits = value_bits(t)
        ones = f"({em.mask(e.value, start, count, bits)} & {v.typed_constant(b.const(Int(bits), 1))})"
        return v.convert(em, ones, f"i{bits}", target, count)
    if target == source:
        text = em.emit(e.value, start, count)
        return round_half(em, t, count, text) if is_half(t) and not (is_half(s) and s.code() == t.code()) else text
    if isinstance(e.value, n.Load) and s.is_int_or_uint() and s.bits() in (8, 16) and t.bits() >= 2 * s.bits():
        words = memory.every_second(em, e.value, start, count)
        if words:
            return v.convert(em, words, f"{source[0]}{2 * s.bits()}", target, count)
    width = em.native(s)
    if count <= width or t.is_float():
        return _in_slices(em, e, start, count, source, target)
    if not can_pack(em, "i32" if source == "f32" else source, target, count):
        return _narrow(em, e.value, start, count, source, target, False)
    limited = patterns.limits(e.value, t)
    return _narrow(em, limited or e.value, start, count, source, target, limited is not None or _fits(em, e.value, t))


def _in_slices(em: Emitter, e: n.Cast, start: int, count: int, source: str, target: str) -> str:
    t, width = e.type, min(count, em.native(e.value.type))
    if is_half(t) and (source == "f64" or t.is_bfloat() and source[0] != "f" and int(source[1:]) >= 32):  # one rounding, not two
        width = min(count, em.machine.native_lanes(64))
        doubles = [v.convert(em, em.emit(e.value, start + k, width), source, "f64", width) for k in range(0, count, width)]
        parts = [halves.of_doubles(em, d, width) for d in doubles]
    else:
        parts = [v.convert(em, em.emit(e.value, start + k, width), source, target, width) for k in range(0, count, width)]
    text = v.join(em, target, parts, width)
    return round_half(em, t, count, text) if is_half(t) else text


def _narrow(em: Emitter, value: n.Expr, start: int, count: int, source: str, target: str, saturate: bool) -> str:
    """Registers of wide elements to one of narrow ones. `saturate`: values beyond the target's range go to its ends."""
    width = em.native(value.type)
    parts = [em.emit(value, start + k, width) for k in range(0, count, width)]
    if source[0] == "f":
        whole = "i64" if target == "u32" and source == "f64" else "i32"
        parts = [v.convert(em, p, source, whole, width) for p in parts]
        if source == "f64" and whole == "i32":  # half registers
            parts = [v.join(em, whole, parts[k:k + 2], width) for k in range(0, len(parts), 2)]
            width *= 2
        source = whole
    if saturate:
        packed = _pack(em, parts, source, target, width)
        if packed is not None:
            return packed
        raise InternalError("saturation was dropped without an instruction that does it; please report this with the program")
    return v.narrow(em, parts, source, target, width)


def can_pack(em: Emitter, source: str, target: str, count: int) -> bool:
    """Whether saturating packs lead from one element type to the other for `count` lanes in full registers."""
    width = em.machine.native_lanes(int(source[1:]))
    if em.machine.vector_bytes > 32 or count < 2 * width or not em.machine.has("sse4_1"):
        return False
    while source[1:] != target[1:]:
        step = _step(source, target)
        if (source, step, em.machine.vector_bytes) not in _PACKS:
            return False
        source, width = step, width * 2
    return source == target and count == width


def _step(source: str, target: str) -> str:
    """Intermediate packs are signed: the next one then saturates to what the target wants."""
    half = int(source[1:]) // 2
    return target if half == int(target[1:]) else f"i{half}"


def _pack(em: Emitter, parts: list[str], source: str, target: str, width: int) -> str | None:
    """Pairs of registers packed until one is left; one permutation at the end puts 32 byte registers in order."""
    times = 0
    while source != target:
        step = _step(source, target)
        builtin = _PACKS.get((source, step, em.machine.vector_bytes))
        if builtin is None:
            return None
        out = em.vector_type(step, width * 2)
        argument = em.vector_type("c8", width) if source == "i8" else em.vector_type(source, width)
        parts = [f"({out})__builtin_ia32_{builtin}(({argument}){x}, ({argument}){y})" for x, y in zip(parts[::2], parts[1::2])]
        source, width, times = step, width * 2, times + 1
    text = parts[0]
    if em.machine.vector_bytes == 32:
        lanes, order = ("i64x4", (0, 2, 1, 3)) if times == 1 else ("i32x8", (0, 4, 1, 5, 2, 6, 3, 7))
        wide = em.name(em.vector_type(lanes[:3], int(lanes[4:])), f"({lanes}){text}")
        text = f"({em.vector_type(target, width)}){v.shuffle(wide, wide, order)}"
    return text


def cast_mask(em: Emitter, e: n.Cast, start: int, count: int, bits: int) -> str:
    """To bool: the low bit of integers, not zero for floats."""
    s = e.value.type
    if s.is_bool():
        return em.mask(e.value, start, count, bits)

    def make(first: int, size: int) -> str:
        x = em.emit(e.value, first, size)
        if s.is_float():
            whole = f"i{value_bits(s)}"
            x = v.convert(em, x, short_type(s), whole, size)
            return f"(({x} & 1) != 0)"
        return f"(({x} & {v.const_operand(e.value, 1)}) != {v.const_operand(e.value, 0)})"

    return mask_at_width(em, make, value_bits(s), start, count, bits)


def _fits(em: Emitter, e: n.Expr, t: Type) -> bool:
    """Whether a float is never NaN and always an integer that `t` and int32 hold, when it is truncated."""
    return em.unit.float_ranges.fits(e, t) and em.unit.float_ranges.fits(e, INT32)


def _direct(em: Emitter, e: n.Cast) -> n.Cast | None:
    """A float that becomes a wider integer by way of a narrow one: both hold it."""
    inner = e.value
    if not isinstance(inner, n.Cast) or not inner.value.type.is_float() or not e.type.is_int_or_uint() or inner.type.is_bool():
        return None
    wider = inner.type.is_int_or_uint() and e.type.bits() >= inner.type.bits()
    return n.Cast(e.type, inner.value) if wider and all(_fits(em, inner.value, t) for t in (inner.type, e.type)) else None


def scalar_cast(em: Emitter, t: Type, s: Type, text: str) -> str:
    """A scalar conversion, defined for all values."""
    if t.is_handle() or s.is_handle():
        return f"({value_type(t)})(uintptr_t){text}"
    if s.is_float() and not t.is_float():
        helper = em.unit.helper(f"hl_{short_type(t) if not t.is_bool() else 'i32'}_of_f{value_bits(s)}")
        return f"({helper}({text}) & 1)" if t.is_bool() else f"{helper}({text})"
    if t.is_bool():
        return text if s.is_bool() else f"(uint8_t)({text} & 1)"
    if is_half(t):
        if is_half(s) and s.code() == t.code():
            return text
        if s.bits() >= 32 and not (s.is_float() and s.bits() == 32):  # one rounding, not two
            return f"{em.unit.helper('hl_bf16_of_f64' if t.is_bfloat() else 'hl_f16_of_f64')}((double){text})"
        return finish(em, t, 1, f"(float){text}")
    if value_type(t) == value_type(s):
        return text
    return f"({value_type(t)}){text}"


def reinterpret(em: Emitter, e: n.Reinterpret, start: int, count: int) -> str:
    """The same bits as another type."""
    t, s = e.type, e.value.type
    if t.is_bool() or s.is_bool():
        raise InternalError("bools have no bits to reinterpret; please report this with the program")
    if t.lanes() != s.lanes():
        return _regroup(em, e, start, count)
    if is_half(t) or is_half(s):
        return _half_bits(em, t, s, em.emit(e.value, start, 1)) if count == 1 else _halves_bits(em, e, start, count)
    text = em.emit(e.value, start, count)
    if count > 1:
        return f"({em.c_type(t, count)}){text}"
    if not t.is_float() and not s.is_float():
        return scalar_cast(em, t, s, text)
    return f"{_bit_copy(em, t, s)}({text})"


def _bit_copy(em: Emitter, t: Type, s: Type) -> str:
    to, source = value_type(t), value_type(s)
    body = f"{to} r; __builtin_memcpy(&r, &a, sizeof r); return r;"
    return em.unit.vector_helper(f"hl_bits_{short_type(t)}_{short_type(s)}", to, f"{source} a", body)


def _half_bits(em: Emitter, t: Type, s: Type, text: str) -> str:
    if is_half(t) and is_half(s):
        text, s = _half_bits(em, Int(16), s, text), Int(16)
    if is_half(t):
        return f"{em.unit.helper('hl_f32_of_bf16' if t.is_bfloat() else 'hl_f32_of_f16')}((uint16_t){text})"
    return f"({value_type(t)}){em.unit.helper('hl_bf16_of_f32' if s.is_bfloat() else 'hl_f16_of_f32')}({text})"


def _halves_bits(em: Emitter, e: n.Reinterpret, start: int, count: int) -> str:
    """The same for vectors, by the way through what memory holds."""
    t, s, words = e.type, e.value.type, em.vector_type("u16", count)
    width = min(count, em.machine.native_lanes(32))
    if not is_half(s):
        text = em.named(words, f"({words}){em.emit(e.value, start, count)}")
    else:
        text = em.name(words, halves.stored(em, e.value, start, count))
    if not is_half(t):
        return f"(({em.c_type(t, count)}){text})"
    part = em.vector_type("u16", width)
    texts = [text] if count == width else [em.name(part, v.shuffle(text, text, range(k, k + width))) for k in range(0, count, width)]
    return v.join(em, "f32", [em.name(em.vector_type("f32", width), halves.from_memory(em, t, width, x)) for x in texts], width)


def _regroup(em: Emitter, e: n.Reinterpret, start: int, count: int) -> str:
    """Elements of another width: those of the same registers, else through memory, in whole."""
    t, s = e.type, e.value.type
    if is_half(t) or is_half(s):
        raise InternalError("half floats cannot be reinterpreted as elements of another width; please report this with the program")
    s_start, s_count = start * t.bits() // s.bits(), count * t.bits() // s.bits()
    if count > 1 < s_count and s_count & (s_count - 1) == 0 and s_count * s.bits() <= 8 * em.machine.vector_bytes:
        if s_count * s.bits() == count * t.bits() and s_start * s.bits() == start * t.bits():
            return f"(({em.c_type(t, count)}){em.emit(e.value, s_start, s_count)})"
    key = (e, "regrouped")
    name = em.memo.get(key)
    if name is None:
        values = em.lanes(e.value, 0, s.lanes()) if s.is_vector() else [em.scalar(e.value)]
        source, name = em.unit.temporary(), em.unit.temporary()
        em.line(f"const {value_type(s)} {source}[{s.lanes()}] = {{{', '.join(values)}}};")
        em.line(f"{value_type(t)} {name}[{t.lanes()}];")
        em.line(f"__builtin_memcpy({name}, {source}, sizeof {name});")
        em.remember(key, name, e)
    return em.from_lanes(t, count, [f"{name}[{start + i}]" for i in range(count)])


HANDLERS.update({n.Cast: cast, n.Reinterpret: reinterpret})
MASKS.update({n.Cast: cast_mask})
