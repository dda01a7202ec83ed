"""Calls in C, third part: built-in math and the user's own C functions."""

from __future__ import annotations

from math import inf

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction, math_call
from . import expressions
from . import vectors as v
from .ctypes_of import is_half, memory_type, short_type, value_bits, value_type
from .emitter import Emitter

_ROUND_MODE = {"round": 8, "floor": 9, "ceil": 10, "trunc": 11}  # 8: no exceptions
_ELEMENTWISE = {"round": "roundeven", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_REGISTERS = {("f32", 4): "ps", ("f32", 8): "ps256", ("f64", 2): "pd", ("f64", 4): "pd256"}
# Functions with a vector form of our own in hl_math.h, which scalars use too: a schedule never changes a result.
_OWN = "exp log pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot".split()
OWN_MATH = frozenset({*((name, bits) for name in _OWN for bits in (32, 64)),
                      *((name, 32) for name in ("erf", *(f"fast_{what}" for what in "exp log pow sin cos inverse inverse_sqrt".split())))})


def call(em: Emitter, e: n.Call, row: ExternFunction, start: int, count: int) -> str:
    """A slice of the value of a C function."""
    if row.builtin:
        return _math(em, e, row, start, count)
    if count == 1 or not row.pure or not row.source:
        texts = [_call_once(em, e, row, start + i) for i in range(count)]
        return em.from_lanes(e.type, count, texts)
    return _vector_wrapper(em, e, row, start, count)


def _call_once(em: Emitter, e: n.Call, row: ExternFunction, lane: int) -> str:
    """One call. One with effects is made here and now, exactly once."""
    args = [_argument(em, a, lane if a.type.is_vector() else 0) for a in e.args]
    if row.stage:
        args = [f"(struct halide_buffer_t *){text}" if a.type.is_handle() else text for a, text in zip(e.args, args)]
    text = f"{em.unit.extern(row)}({', '.join(args)})"
    if row.result.bits() == 0:
        em.line(f"{text};")
        return "0"
    if is_half(row.result):
        text = f"{em.unit.helper('hl_f32_of_bf16' if row.result.is_bfloat() else 'hl_f32_of_f16')}({text})"
    if row.pure:
        return text
    name = em.name(value_type(row.result), text)
    em.remember((e, lane, 1), name, e)
    em.written(-1)
    em.memo[(e, lane, 1)] = name
    return name


def _argument(em: Emitter, e: n.Expr, lane: int) -> str:
    text = em.emit(e, lane, 1)
    if is_half(e.type):
        return f"{em.unit.helper('hl_bf16_of_f32' if e.type.is_bfloat() else 'hl_f16_of_f32')}({text})"
    return text


def _vector_wrapper(em: Emitter, e: n.Call, row: ExternFunction, start: int, count: int) -> str:
    """A loop over lanes in memory around a function whose source is in this unit: the C compiler inlines and vectorizes it."""
    vector = em.c_type(e.type, count)
    name = f"hl_lanes_{row.c_name}_{count}"
    types = [em.c_type(a.type, count) for a in e.args]
    params = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    loads = "".join(f" {memory_type(a.type)} x{i}[{count}] __attribute__((aligned(64))); __builtin_memcpy(x{i}, &a{i}, sizeof "
                    f"x{i});" for i, a in enumerate(e.args))
    values = ", ".join(f"x{i}[i]" for i in range(len(e.args)))
    body = (f"{loads} {memory_type(row.result)} r[{count}] __attribute__((aligned(64))); for (int i = 0; i < {count}; i++) r[i] = "
            f"{em.unit.extern(row)}({values}); {vector} v; __builtin_memcpy(&v, r, sizeof v); return v;")
    if is_half(row.result) or any(is_half(a.type) or a.type.is_bool() or a.type.is_handle() for a in e.args):
        return em.from_lanes(e.type, count, [_call_once(em, e, row, start + i) for i in range(count)])
    em.unit.vector_helper(name, vector, params, body)
    args = [em.emit(a, start, count) if a.type.is_vector() else expressions.splat_of(em, a, count) for a in e.args]
    return f"{name}({', '.join(args)})"


# ---- built-in math


def _math(em: Emitter, e: n.Call, row: ExternFunction, start: int, count: int) -> str:
    t, name = e.type, row.name
    bits = value_bits(t)
    simpler = em.written_out((e, "power"), lambda: _simpler_power(e), e.args) if name == "pow" else None
    if simpler is not None:
        return em.emit(simpler, start, count)
    if count > 1:
        text = _register_form(em, e, name, start, count)
        if text is not None:
            return expressions.round_half(em, t, count, text) if is_half(t) else text
    if (name, bits) in OWN_MATH:
        return _own(em, e, name, start, count)
    function = f"__builtin_{_libm(name, row)}{'' if bits == 64 else 'f'}"
    if count == 1:
        text = f"{function}({', '.join(em.emit(a, start if a.type.is_vector() else 0, 1) for a in e.args)})"
        return expressions.round_half(em, t, 1, text) if is_half(t) else text
    text = expressions.lane_by_lane(em, t, count, function, [em.lanes(a, start, count) for a in e.args])
    return expressions.round_half(em, t, count, text) if is_half(t) else text


def _simpler_power(e: n.Call) -> n.Expr | None:
    """A power that an instruction or two give exactly rounded; C's special values stay."""
    x, t = e.args[0], e.type
    exponent = b.as_const(e.args[1])
    if exponent == 1:
        return x
    if exponent == 2:
        return n.Mul(x, x)
    if exponent == -1:
        return n.Div(b.const(t, 1.0), x)
    if exponent != 0.5:
        return None
    root = math_call("sqrt", n.Add(x, b.const(t, 0.0)))  # of -0, 0
    return n.Select(n.EQ(x, b.const(t, -inf)), b.const(t, inf), root)


def _libm(name: str, row: ExternFunction) -> str:
    return "rint" if name == "round" else name


def _vector_args(em: Emitter, e: n.Call, start: int, count: int) -> list[str]:
    return [em.emit(a, start, count) if a.type.is_vector() else expressions.splat_of(em, a, count) for a in e.args]


def _register_form(em: Emitter, e: n.Call, name: str, start: int, count: int) -> str | None:
    """sqrt and roundings have instructions."""
    if name != "sqrt" and name not in _ROUND_MODE or em.machine.compiler == "any":
        return None
    kind = short_type(e.type)
    ctype = em.vector_type(kind, count)
    args = _vector_args(em, e, start, count)
    if em.machine.compiler == "clang":  # before clang 17 there is no elementwise square root; it joins the lanes itself
        return None if name == "sqrt" else f"__builtin_elementwise_{_ELEMENTWISE[name]}({args[0]})"
    register = _REGISTERS.get((kind, count))
    if register is not None and em.machine.has("avx" if register.endswith("256") else "sse4_1"):
        return (
            f"__builtin_ia32_sqrt{register}({args[0]})"
            if name == "sqrt"
            else f"__builtin_ia32_round{register}({args[0]}, {_ROUND_MODE[name]})"
        )
    wide = {"f32": 16, "f64": 8}[kind]
    if count == wide and em.machine.has("avx512f"):
        suffix = "ps512" if kind == "f32" else "pd512"
        if name == "sqrt":
            return f"__builtin_ia32_sqrt{suffix}_mask({args[0]}, ({ctype}){{}}, ({'uint16_t' if wide == 16 else 'uint8_t'})-1, 4)"
        return (f"__builtin_ia32_rndscale{'ps' if kind == 'f32' else 'pd'}_mask({args[0]}, {_ROUND_MODE[name]}, ({ctype}){{}}, "
                f"({'uint16_t' if wide == 16 else 'uint8_t'})-1, 4)")
    return None


def _own(em: Emitter, e: n.Call, name: str, start: int, count: int) -> str:
    """A function of hl_math.h, made for the vector type; a scalar is a vector of one lane."""
    t, short = e.type, short_type(e.type)
    if count > 1:
        text = f"{_own_function(em, name, short, count)}({', '.join(_vector_args(em, e, start, count))})"
        return expressions.round_half(em, t, count, text) if is_half(t) else text
    function, vector, scalar = _own_function(em, name, short, 1), em.vector_type(short, 1), value_type(t)
    args = [em.emit(a, start if a.type.is_vector() else 0, 1) for a in e.args]
    names = [f"a{k}" for k in range(len(args))]
    body = " ".join(
        [
            *(f"const {vector} v{k} = {{{a}}};" for k, a in enumerate(names)),
            f"return {function}({', '.join(f'v{k}' for k in range(len(args)))})[0];",
        ]
    )
    em.unit.vector_helper(f"hl_{name}_{short}", scalar, ", ".join(f"{scalar} {a}" for a in names), body)
    text = f"hl_{name}_{short}({', '.join(args)})"
    return expressions.round_half(em, t, 1, text) if is_half(t) else text


def _own_function(em: Emitter, name: str, short: str, count: int) -> str:
    """The function of a vector type, defined by a macro."""
    bits = short[1:]
    if (name, bits) == ("pow", "32"):
        return _float_power(em, count)
    macro = f"HL_MATH_{name.upper()}" + ("_64" if name == "pow" else "")
    types = [em.vector_type(k, count) for k in (f"f{bits}", f"i{bits}", f"u{bits}")]
    function = f"hl_{name}_{types[0]}"
    em.unit.math[f"{macro}({', '.join([function, *types, bits])})"] = None
    return function


def _float_power(em: Emitter, count: int) -> str:
    """pow of floats. What it computes in doubles takes half as many at once, as fit a register."""
    floats, integers, width = em.vector_type("f32", count), em.vector_type("i32", count), min(count, em.machine.native_lanes(64))
    part = f"hl_pow_{em.vector_type('f32', width)}"
    types = ", ".join(em.vector_type(kind, width) for kind in ("f32", "i32", "f64", "i64"))
    em.unit.math[f"HL_POW_PARTS({part}, {types})"] = None
    function = f"hl_pow_{floats}"
    if count > width:
        places, all_lanes = [range(k, k + width) for k in range(0, count, width)], range(count)
        m, e, x, y = ([v.shuffle(a, a, lanes) for lanes in places] for a in "mexy")
        piece, pieces = em.vector_type("f32", width), len(places)
        exponents = "".join(f"const {piece} r{k} = {part}_exponents({m[k]}, {e[k]}, {y[k]}, &n{k}); " for k in range(pieces))
        powers = "".join(f"const {piece} r{k} = {part}_any({x[k]}, {y[k]}); " for k in range(pieces))
        joined = {of: v.shuffle(f"{of}0", f"{of}1", all_lanes) for of in "nr"}
        em.unit.math[f"HL_MATH_FUNCTION {floats} {function}_exponents({floats} m, {integers} e, {floats} y, {floats} *n) {{ "
                     f"{piece} n0, n1; {exponents}*n = {joined['n']}; return {joined['r']}; }}"] = None
        em.unit.math[f"HL_MATH_RARELY {floats} {function}_any({floats} x, {floats} y) {{ {powers}return {joined['r']}; }}"] = None
    whole = f"{function}, {floats}, {integers}, {em.vector_type('u32', count)}, {function}_exponents, {function}_any"
    em.unit.math[f"HL_MATH_POW_32({whole})"] = None
    return function
