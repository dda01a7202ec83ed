"""Half floats in vectors: from memory, to memory, and rounded in place, by arithmetic on the bits of floats.

Scalars use helpers of the prelude with the same results. Source of the steps: Giesen, "Half to float done quick" (2012): a multiplication
by 2^112 moves the exponent, the addition of a number whose last place is worth 2^-24 rounds subnormals.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import Float, Type
from . import vectors as v
from .emitter import Emitter

_ROUND_F16 = ("const {u} bits = ({u})f, a = bits & 0x7fffffffu, tiny = ({u})((({f})a + 0.5f) - 0.5f), kept = (a + 0xfffu + ((a >> 13) & "
              "1u)) & 0xffffe000u, "
              "infinite = (a & 0u) + 0x7f800000u; {i} m = a < 0x38800000u; {u} r = HL_SELECT({u}, m, tiny, kept); m = r >= 0x47800000u; "
              "r = HL_SELECT({u}, m, infinite, r); m = a > 0x7f800000u; r = HL_SELECT({u}, m, a, r); return ({f})(r | (bits & "
              "0x80000000u));")
_NEAREST_BF16 = ("const {u} bits = ({u})f, kept = bits + 0x7fffu + ((bits >> 16) & 1u), quiet = bits | 0x400000u; const {i} m = f != f; "
                 "const {u} r = HL_SELECT({u}, m, quiet, kept); ")
_ROUND_BF16 = _NEAREST_BF16 + "return ({f})(r & 0xffff0000u);"
_F32_OF_F16 = ("const {u} h = {words}; const {u} moved = ({u})(({f})((h & 0x7fffu) << 13) * 0x1p+112f), infinite = "
               "moved | 0x7f800000u; "
               "const {i} m = (h & 0x7c00u) == 0x7c00u; return ({f})(HL_SELECT({u}, m, infinite, moved) | ((h & 0x8000u) << 16));")
_F32_OF_BF16 = "return ({f})({words} << 16);"
# Of rounded values, so exact: the exponent moves back by a multiplication with 2^-112.
_F16_OF_F32 = ("const {u} bits = ({u})f, a = bits & 0x7fffffffu, moved = ({u})(({f})a * 0x1p-112f) >> 13, special = (({u})(a > "
               "0x7f800000u) & 0x200u) | 0x7c00u; "
               "const {i} m = a >= 0x7f800000u; return HL_SELECT({u}, m, special, moved) | ((bits >> 16) & 0x8000u);")
_BF16_OF_F32 = _NEAREST_BF16 + "return r >> 16;"


def _instructions(em: Emitter, t: Type, count: int) -> tuple[str, str, str] | None:
    """Where the machine converts a whole register: the instruction set, and gcc's text to widen and to narrow; the narrow ones are
    halfwords."""
    if t.is_bfloat() or em.machine.compiler == "clang":
        return None
    if count == 8 and em.machine.has("f16c"):
        return "f16c", f"__builtin_ia32_vcvtph2ps256(({em.vector_type('i16', 8)}){{x}})", "__builtin_ia32_vcvtps2ph256({x}, 0)"
    if count == 16 and em.machine.has("avx512f"):
        f, i = em.vector_type("f32", 16), em.vector_type("i16", 16)
        return ("avx512f", f"__builtin_ia32_vcvtph2ps512_mask(({i}){{x}}, ({f}){{{{}}}}, (uint16_t)-1, 4)",
                f"__builtin_ia32_vcvtps2ph512_mask({{x}}, 0, ({i}){{{{}}}}, (uint16_t)-1)")
    return None


def _helper(em: Emitter, name: str, count: int, result: str, argument: str, body: str, needs: str = "", own: str = "") -> str:
    """A function of vectors; `own` is the expression that gcc has for it on machines with what it needs."""
    types = {k: em.vector_type(f"{k}32", count) for k in "fiu"}
    kind, letter = argument.split()
    text = body.format(**types, words=v.convert(em, "a", "u16", "u32", count) if kind == "u16" else "")
    return em.unit.vector_helper(f"{name}x{count}", types[result], f"{em.vector_type(kind, count)} {letter}",
                                 v.of_gcc(em, needs, f"return {own};", text) if own else text)


def rounded(em: Emitter, t: Type, count: int, text: str) -> str:
    """Floats rounded to half floats, still as floats."""
    whole = _instructions(em, t, count)
    floats = em.vector_type("f32", count)
    if whole is not None and em.machine.compiler == "gcc":
        return f"(({floats}){whole[1].format(x=whole[2].format(x=text))})"
    own = (whole[0], f"({floats}){whole[1].format(x=whole[2].format(x='f'))}") if whole is not None else ()
    name, body = ("hl_round_bf16", _ROUND_BF16) if t.is_bfloat() else ("hl_round_f16", _ROUND_F16)
    return f"{_helper(em, name, count, 'f', 'f32 f', body, *own)}({text})"


def of_doubles(em: Emitter, text: str, count: int) -> str:
    """Doubles as floats, those between two floats as the one with an odd last place: rounded again they are what they round to."""
    f, i, d, wide = (em.vector_type(kind, count) for kind in ("f32", "i32", "f64", "i64"))
    body = (f"const {f} f = __builtin_convertvector(d, {f}); const {d} back = {v.convert(em, 'f', 'f32', 'f64', count)}; "
            f"const {wide} clear = ({wide}){{}} + 0x7fffffffffffffffll, inexact = back != d, "
            f"beyond = ({d})(({wide})back & clear) > ({d})(({wide})d & clear); "
            f"return ({f})((({i})f + __builtin_convertvector(beyond, {i})) | (__builtin_convertvector(inexact, {i}) & 1));")
    return f"{em.unit.vector_helper(f'hl_odd_f32x{count}', f, f'{d} d', body)}({text})"


def from_memory(em: Emitter, t: Type, count: int, text: str) -> str:
    """Half floats as they lie in memory, as floats."""
    whole = _instructions(em, t, count)
    floats = em.vector_type("f32", count)
    if whole is not None and em.machine.compiler == "gcc":
        return f"(({floats}){whole[1].format(x=text)})"
    own = (whole[0], f"({floats}){whole[1].format(x='a')}") if whole is not None else ()
    name, body = ("hl_f32_of_bf16", _F32_OF_BF16) if t.is_bfloat() else ("hl_f32_of_f16", _F32_OF_F16)
    return f"{_helper(em, name, count, 'f', 'u16 a', body, *own)}({text})"


def stored(em: Emitter, e: n.Expr, start: int, count: int) -> str:
    """A slice of a half float vector as it is stored. Where what stores it rounds, the value need not be rounded before."""
    t, width = e.type, min(count, em.native(e.type))
    rounds = t.is_bfloat() or _instructions(em, t, width) is not None and em.machine.compiler == "gcc"
    if rounds and not em.is_shared(e):
        e = em.written_out((e, "stored"), lambda: _unrounded(e), tuple(e.children())) or e
    return to_memory(em, t, width, [em.emit(e, start + k, width) for k in range(0, count, width)])


def _unrounded(e: n.Expr) -> n.Expr | None:
    """The float that rounded once is the half float `e`; None if there is none."""
    whole = Float(32, e.type.lanes())
    if isinstance(e, (n.Add, n.Sub, n.Mul, n.Div)):
        return type(e)(n.Cast(whole, e.a), n.Cast(whole, e.b))
    if isinstance(e, n.Select):
        return n.Select(e.condition, *(_unrounded(side) or n.Cast(whole, side) for side in (e.true_value, e.false_value)))
    if not isinstance(e, n.Cast) or e.value.type.is_bool():
        return None
    s = e.value.type
    exact = s.bits() == 32 if s.is_float() else s.bits() <= 16
    return b.cast(whole, e.value) if exact else None


def to_memory(em: Emitter, t: Type, width: int, parts: list[str]) -> str:
    """Floats, `width` in each of the parts, as they are stored. For float16 they may have to be rounded before: see `stored`."""
    whole = _instructions(em, t, width)
    u16, floats = em.vector_type("u16", width), em.vector_type("f32", width)
    if whole is not None and em.machine.compiler == "gcc":
        return v.join(em, "u16", [em.name(u16, f"({u16}){whole[2].format(x=p)}") for p in parts], width)
    name, body = ("hl_bf16_of_f32", _BF16_OF_F32) if t.is_bfloat() else ("hl_f16_of_f32", _F16_OF_F32)
    helper = _helper(em, name, width, "u", "f32 f", body)
    if t.is_bfloat() and width == 16 and em.machine.compiler == "gcc" and em.machine.has("avx512bf16"):
        # the instruction takes subnormals for 0
        body = (f"if (HL_UNLIKELY(__builtin_ia32_fpclassps512_mask(f, 0x20, (uint16_t)-1))) "
                f"return __builtin_convertvector({helper}(f), {u16}); return ({u16})__builtin_ia32_cvtneps2bf16_v16sf(f);")
        stored_helper = em.unit.vector_helper("hl_stored_bf16x16", u16, f"{floats} f", body)
        return v.join(em, "u16", [em.name(u16, f"{stored_helper}({p})") for p in parts], width)
    if whole is not None:
        body = v.of_gcc(em, whole[0], f"return ({u16}){whole[2].format(x='f')};", f"return __builtin_convertvector({helper}(f), {u16});")
        stored_helper = em.unit.vector_helper(f"hl_stored_f16x{width}", u16, f"{floats} f", body)
        return v.join(em, "u16", [em.name(u16, f"{stored_helper}({p})") for p in parts], width)
    return v.narrow(em, [f"{helper}({p})" for p in parts], "u32", "u16", width)
