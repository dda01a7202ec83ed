"""Calls in C: intrinsics, built-in math, the user's own functions, the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction
from ..ir.types import Type
from .ctypes_of import short_type, value_bits, value_type

if TYPE_CHECKING:
    from .expressions import Emitter

_ROUND_MODE = {"round": 0, "floor": 1, "ceil": 2, "trunc": 3}


def _scalar_shift(em: Emitter, e: n.Call, start: int, name: str) -> str:
    left = name == "shift_left"
    a, t = em.lane(e.args[0], start), e.type
    amount = b.as_int(e.args[1])
    if amount is not None and 0 <= amount < t.bits():
        u = f"uint{max(t.bits(), 32)}_t"
        return em.temp(value_type(t), f"({value_type(t)})(({u}){a} << {amount})" if left else f"({value_type(t)})({a} >> {amount})")
    helper = em.helper(f"hl_{'shl' if left else 'shr'}_{short_type(t)}")
    return em.temp(value_type(t), f"{helper}({a}, (int64_t){em.lane(e.args[1], start)})")


def _shift(em: Emitter, e: n.Call, start: int, count: int) -> str:
    amount = b.as_int(e.args[1])
    if count == 1:
        return _scalar_shift(em, e, start, e.name)
    if amount is not None and 0 <= amount < e.type.bits():
        return em.temp(em.c_type(e.type, count), f"{em.emit(e.args[0], start, count)} {'<<' if e.name == 'shift_left' else '>>'} {amount}")
    return em.by_lanes(e.type, count, lambda i: _scalar_shift(em, e, start + i, e.name))


def _bitwise(op: str) -> Any:
    def emit(em: Emitter, e: n.Call, start: int, count: int) -> str:
        a, c = em.emit(e.args[0], start, count), em.emit(e.args[1], start, count)
        ctype = em.c_type(e.type, count)
        return em.temp(ctype, f"({ctype})({a} {op} {c})")

    return emit


def _bitwise_not(em: Emitter, e: n.Call, start: int, count: int) -> str:
    ctype = em.c_type(e.type, count)
    return em.temp(ctype, f"({ctype})(~{em.emit(e.args[0], start, count)})")


def _abs(em: Emitter, e: n.Call, start: int, count: int) -> str:
    a, s = em.emit(e.args[0], start, count), e.args[0].type
    ctype = em.c_type(e.type, count)
    if s.is_float():
        if count == 1:
            return em.temp(ctype, f"__builtin_fabs{'' if s.bits() == 64 else 'f'}({a})")
        bits = value_bits(s)
        whole = em.vector_type(f"u{bits}", count)
        mask = f"0x7fffffff{'ffffffffull' if bits == 64 else 'u'}"
        return em.temp(ctype, f"({ctype})(({whole}){a} & {mask})")
    if count == 1:
        return em.temp(ctype, f"({ctype})({a} < 0 ? 0 - ({ctype}){a} : ({ctype}){a})")
    signed = em.c_type(s, count)
    flipped = em.temp(signed, f"({signed}){{}} - {a}")
    return em.temp(ctype, f"({ctype})({a} < ({signed}){{}} ? {flipped} : {a})")


def _lanewise(text: Callable[[Any, n.Call, list[str]], str]) -> Any:
    """An intrinsic as a scalar expression of its scalar arguments, applied lane by lane."""
    def emit(em: Emitter, e: n.Call, start: int, count: int) -> str:
        def one(i: int) -> str:
            return text(em, e, [em.lane(a, start + i if a.type.is_vector() else 0) for a in e.args])

        if count == 1:
            return em.temp(value_type(e.type), one(0))
        return em.remember_mask(em.by_lanes(e.type, count, one), e.type, count)

    return emit


def _bit_count(name: str) -> Any:
    def text(em: Any, e: n.Call, args: list[str]) -> str:
        bits = e.type.bits()
        return f"({value_type(e.type)}){em.helper(f'hl_{name}_u{bits}')}((uint{bits}_t)({args[0]}))"

    return _lanewise(text)


def _c_division(name: str) -> Any:
    def text(em: Any, e: n.Call, args: list[str]) -> str:
        if e.type.is_uint():
            return f"{em.helper(f'hl_{name[1:]}_{short_type(e.type)}')}({args[0]}, {args[1]})"
        return f"{em.helper(f'hl_{name}_{short_type(e.type)}')}({args[0]}, {args[1]})"

    return _lanewise(text)


def _classify(em: Emitter, e: n.Call, start: int, count: int) -> str:
    a, t = em.emit(e.args[0], start, count), e.args[0].type
    suffix = "" if t.bits() == 64 else "f"
    if count == 1:
        text = {"is_nan": f"{a} != {a}", "is_inf": f"__builtin_fabs{suffix}({a}) == __builtin_inf{suffix}()",
                "is_finite": f"__builtin_fabs{suffix}({a}) < __builtin_inf{suffix}()"}[e.name]
        return em.temp("uint8_t", text)
    if e.name == "is_nan":
        return em.named_mask(f"{a} != {a}", value_bits(t), count)
    zero = em.temp(em.c_type(t, count), f"{a} - {a}")  # NaN for infinities and NaN, 0 otherwise
    if e.name == "is_finite":
        return em.named_mask(f"{zero} == {zero}", value_bits(t), count)
    return em.named_mask(f"({zero} != {zero}) & ({a} == {a})", value_bits(t), count)


def _if_then_else(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """Only the chosen side is evaluated."""
    condition = em.scalar(e.args[0]) if e.args[0].type.is_scalar() else None
    if condition is None:
        return em.emit(n.Select(e.args[0], e.args[1], e.args[2] if len(e.args) > 2 else b.const(e.type, 0)), start, count)
    ctype = em.c_type(e.type, count) if not e.type.is_bool() or count == 1 else em.vector_type("i32", count)
    name = f"t{em.unit.count()}"
    em.line(f"{ctype} {name};")
    sides = [e.args[1], e.args[2] if len(e.args) > 2 else b.const(e.type, 0)]
    for head, side in zip((f"if ({condition}) {{", "} else {"), sides):
        em.open(head)
        value = em.mask(side, start, count, 32) if e.type.is_bool() and count > 1 else em.emit(side, start, count)
        em.line(f"{name} = {value};")
        em.scopes.pop()
        em.loaded.pop()
        em.indent -= 1
    em.line("}")
    if e.type.is_bool() and count > 1:
        em.unit.mask_width[name] = 32
    return name


def _return_second(em: Emitter, e: n.Call, start: int, count: int) -> str:
    em.emit(e.args[0], start if e.args[0].type.is_vector() else 0, count if e.args[0].type.is_vector() else 1)
    return em.emit(e.args[1], start, count)


def _require(em: Emitter, e: n.Call, start: int, count: int) -> str:
    for i in range(count):
        c = em.lane(e.args[0], start + i if e.args[0].type.is_vector() else 0)
        em.open(f"if (!({c})) {{")
        em.line(f"return {em.scalar(e.args[2])};")
        em.close()
    return em.emit(e.args[1], start, count)


def _print_arguments(em: Emitter, args: tuple[n.Expr, ...], lane: int) -> tuple[str, str]:
    """The letters of the kinds and the arguments for the runtime's variadic printer."""
    kinds, values = "", []
    for a in args:
        t = a.type.element_of()
        v = em.lane(a, lane if a.type.is_vector() else 0)
        if isinstance(a, n.StringImm):
            letter = "s"
        elif t.is_handle():
            letter = "p"
        elif t.is_bool():
            letter, v = "b", f"(int){v}"
        elif t.is_float():
            letter, v = ("e" if t.bits() == 64 else "f"), f"(double){v}"
        else:
            letter, v = ("i", f"(int64_t){v}") if t.is_int() else ("u", f"(uint64_t){v}")
        kinds += letter
        values.append(v)
    return kinds, ", ".join(values)


def _print(em: Emitter, e: n.Call, start: int, count: int) -> str:
    args = e.args[1:] if e.name == "print_when" else e.args
    for i in range(start, start + count):
        kinds, values = _print_arguments(em, args, i)
        call = f'hl_print({em.context}, "{kinds}", {values});'
        em.line(f"if ({em.lane(e.args[0], i if e.args[0].type.is_vector() else 0)}) {call}" if e.name == "print_when" else call)
    return em.emit(args[0], start, count)


def _stringify(em: Emitter, e: n.Call, start: int, count: int) -> str:
    kinds, values = _print_arguments(em, e.args, start)
    return f'(void *)hl_stringify("{kinds}"{", " + values if values else ""})'


def _random(em: Emitter, e: n.Call, start: int, count: int) -> str:
    def one(i: int) -> str:
        text = "0u"
        for a in e.args:
            text = f"hl_random_step({text}, (uint32_t)({em.lane(a, start + i if a.type.is_vector() else 0)}))"
        return text

    em.unit.helpers.add("hl_random")
    return em.by_lanes(e.type, count, one) if count > 1 else em.temp("uint32_t", one(0))


def _undef(em: Emitter, e: n.Call, start: int, count: int) -> str:
    return em.temp(em.c_type(e.type, count), "0" if count == 1 else "{}")


INTRINSICS: dict[str, Callable[[Any, n.Call, int, int], str]] = {
    "shift_left": _shift, "shift_right": _shift, "bitwise_and": _bitwise("&"), "bitwise_or": _bitwise("|"), "bitwise_xor": _bitwise("^"),
    "bitwise_not": _bitwise_not, "abs": _abs, "popcount": _bit_count("popcount"), "count_leading_zeros": _bit_count("clz"),
    "count_trailing_zeros": _bit_count("ctz"), "div_round_to_zero": _c_division("cdiv"), "mod_round_to_zero": _c_division("cmod"),
    "is_nan": _classify, "is_inf": _classify, "is_finite": _classify, "if_then_else": _if_then_else, "return_second": _return_second,
    "require": _require, "print": _print, "print_when": _print, "stringify": _stringify, "random": _random, "undef": _undef,
}


def call(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """A slice of a call's value."""
    if isinstance(e.func, ExternFunction):
        return _extern(em, e, e.func, start, count)
    found = INTRINSICS.get(e.name)
    if found is not None:
        return found(em, e, start, count)
    if e.call_type is n.CallType.Extern:
        return _runtime(em, e)
    raise InternalError(f"code generation has no form for the intrinsic {e.name}")


_STRING_AND_CONTEXT = ("halide_error", "halide_trace")


def _runtime(em: Emitter, e: n.Call) -> str:
    args = [em.scalar(a) for a in e.args]
    if e.name.startswith(_STRING_AND_CONTEXT):
        args = [em.context] + [f"(const char *){a}" if x.type.is_handle() and not isinstance(x, n.StringImm) else a for a, x in zip(args, e.args)]
    text = f"{e.name}({', '.join(args)})"
    return text if e.name.startswith("halide_error") else em.temp(value_type(e.type), text)


def _vector_builtin(em: Emitter, row: ExternFunction, t: Type, count: int, args: list[str]) -> str | None:
    """A math function with an instruction of its own, None when there is none for this width."""
    wide = count * value_bits(t) // 8
    if em.machine.compiler == "gcc" and wide == 32 and "avx2" in em.machine.features and t.element_of().bits() in (32, 64):
        kind = "pd" if t.bits() == 64 else "ps"
        if row.name == "sqrt":
            return f"__builtin_ia32_sqrt{kind}256({args[0]})"
        if row.name in _ROUND_MODE:
            return f"__builtin_ia32_round{kind}256({args[0]}, {_ROUND_MODE[row.name]})"
    if t.element_of().bits() == 32 and (row.name, len(row.args)) in VECTOR_MATH:
        em.unit.math.add((row.name, count))
        return f"hl_{row.name}_f32x{count}({', '.join(args)})"
    return None


VECTOR_MATH: set[tuple[str, int]] = set()


def _extern(em: Emitter, e: n.Call, row: ExternFunction, start: int, count: int) -> str:
    """A C function; for a vector, lane by lane unless there is a vector form."""
    em.unit.declare(row)
    t = e.type
    name = row.c_name if not row.builtin or row.name.startswith("fast_") else f"__builtin_{row.c_name}"
    name = _FAST.get(row.name, name)
    if count > 1 and row.builtin and not any(a.type.is_scalar() for a in e.args):
        text = _vector_builtin(em, row, t, count, [em.emit(a, start, count) for a in e.args])
        if text is not None:
            return em.temp(em.c_type(t, count), text)

    def one(i: int) -> str:
        args = [em.lane(a, start + i if a.type.is_vector() else 0) for a in e.args]
        if name == "FAST_INVERSE":
            return f"1.0f / {args[0]}"
        if name == "FAST_INVERSE_SQRT":
            return f"1.0f / __builtin_sqrtf({args[0]})"
        # Effects and costs stay visible: each lane is a call of its own, in order.
        return em.temp(value_type(row.result), f"{name}({', '.join(args)})") if row.result.bits() else f"{name}({', '.join(args)})"

    if count == 1:
        return em.finish(t, 1, one(0)) if row.builtin else one(0)
    return em.remember_mask(em.by_lanes(t, count, one), t, count)


_FAST = {"fast_exp": "__builtin_expf", "fast_log": "__builtin_logf", "fast_pow": "__builtin_powf", "fast_sin": "__builtin_sinf", "fast_cos": "__builtin_cosf",
         "fast_inverse": "FAST_INVERSE", "fast_inverse_sqrt": "FAST_INVERSE_SQRT"}

