"""Functions on Exprs: casts, selection, clamping, math, bits. Each checks its operand types and says what is wrong."""

from __future__ import annotations

import builtins
from typing import Any, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic, math_call
from ..ir.printer import to_text
from ..ir.types import BOOL, INT32, Float, Int, Type, TypeCode, UInt
from .expr import Expr, absolute, binary, cast_const, integer_power, literal, literal_node, match_types, number_node, operands, power, to_node
from .tuples import Tuple, is_tuple_like, to_tuple

_min, _max, _round = builtins.min, builtins.max, builtins.round


def _as_value(x: Any) -> n.Expr:
    """An argument that is an Expr of its own type: Python ints are int32 here, as in Halide's min, max, select."""
    value = literal(x)
    return number_node(value) if value is not None else to_node(x)


def cast(t: Type, e: Any) -> Expr:
    """`e` converted to type `t`: floats to ints truncate, narrowing ints wrap, ints to bool keep the low bit... exactly as Halide casts.

    Raises CompileError for casts between handles and numbers.
    """
    value = literal(e)
    node = to_node(e) if value is None else (b.const(Float(64), value) if isinstance(value, float) else number_node(value))
    if node.type.is_handle() != t.is_handle() and node.type.bits() != 64:
        raise CompileError(f"Cannot cast {node.type} to {t}; use reinterpret() between handles and uint64")
    if value is not None and not t.is_handle():
        return Expr.of(b.const(t, int(value) if not t.is_float() else value))
    if t.is_vector() is False and node.type.is_vector():
        t = t.with_lanes(node.type.lanes())
    return Expr.of(cast_const(t, node))


def reinterpret(t: Type, e: Any) -> Expr:
    """The bits of `e` read as type `t` of the same width."""
    node = to_node(e)
    if node.type.bits() * node.type.lanes() != t.bits() * t.lanes():
        raise CompileError(f"reinterpret needs equal widths, but {node.type} has {node.type.bits()} bits and {t} has {t.bits()}")
    return Expr.of(node if node.type is t else n.Reinterpret(t, node))


def saturating_cast(t: Type, e: Any) -> Expr:
    """`e` converted to type `t`, clamped to its range first."""
    node = to_node(e)
    return Expr.of(node if node.type is t else intrinsic("saturating_cast", t.with_lanes(node.type.lanes()), node))


def _caster(t: Type, doc: str) -> Any:
    def convert(e: Any) -> Expr:
        return cast(t, e)

    convert.__doc__ = doc
    return convert


i8, i16, i32, i64 = (_caster(Int(w), f"`e` as int{w}.") for w in (8, 16, 32, 64))
u8, u16, u32, u64 = (_caster(UInt(w), f"`e` as uint{w}.") for w in (8, 16, 32, 64))
f16, f32, f64 = (_caster(Float(w), f"`e` as float{w}; a Python float keeps all its digits that fit.") for w in (16, 32, 64))


def _saturating(t: Type, doc: str) -> Any:
    def convert(e: Any) -> Expr:
        return saturating_cast(t, e)

    convert.__doc__ = doc
    return convert


i8_sat, i16_sat, i32_sat, i64_sat = (_saturating(Int(w), f"`e` clamped to int{w}.") for w in (8, 16, 32, 64))
u8_sat, u16_sat, u32_sat, u64_sat = (_saturating(UInt(w), f"`e` clamped to uint{w}.") for w in (8, 16, 32, 64))


def _fold(kind: Any, name: str, args: Sequence[Any]) -> Expr:
    if len(args) < 2:
        raise ValueError(f"{name}() takes at least two arguments")
    out = _as_value(args[0])
    for a in args[1:]:
        x, y = match_types(out, _as_value(a))
        if x.type.is_handle():
            raise CompileError(f"{name}() is not defined for handles")
        out = kind(x, y)
    return Expr.of(out)


def min(*args: Any) -> Expr:
    """The smallest of two or more values (a < b ? a : b, so which NaN wins is not specified)."""
    return _fold(n.Min, "min", args)


def max(*args: Any) -> Expr:
    """The largest of two or more values."""
    return _fold(n.Max, "max", args)


def _limit(x: Any, t: Type, what: str) -> n.Expr:
    node = _as_value(x)
    value = b.as_const(node)
    if value is not None and not t.can_represent_value(value):
        raise CompileError(f"{what} of clamp(), {value}, cannot be represented as {t}; cast the value to a wider type first ({user_location()})")
    return cast_const(t, node)


def clamp(e: Any, low: Any, high: Any) -> Expr:
    """`e` limited to [low, high]; the bounds take its type and must fit it. Bounds inference believes it."""
    node = to_node(e)
    return Expr.of(n.Max(n.Min(node, _limit(high, node.type, "the upper bound")), _limit(low, node.type, "the lower bound")))


def unsafe_promise_clamped(e: Any, low: Any, high: Any) -> Expr:
    """`e`, promised to lie in [low, high]: bounds inference believes it, no code is emitted. An undefined Expr leaves a side open."""
    node = to_node(e)
    ends = [node if isinstance(x, Expr) and not x.defined() else _limit(x, node.type, "a bound") for x in (low, high)]
    return Expr.of(intrinsic("unsafe_promise_clamped", node.type, node, *ends))


def abs(e: Any) -> Expr:
    """|e|; of a signed integer the unsigned type of its width."""
    return absolute(e)


def absd(a: Any, c: Any) -> Expr:
    """|a - c| without overflow; unsigned for integers."""
    x, y = operands(a, c)
    t = x.type.with_code(TypeCode.UInt) if x.type.is_int() else x.type
    return Expr.of(intrinsic("absd", t, x, y))


def _condition(c: Any) -> n.Expr:
    node = _as_value(c)
    if not node.type.is_bool():
        raise CompileError(f"The first argument to a select must be a boolean: {to_text(node)} is {node.type} ({user_location()})")
    return node


def _select(c: Any, x: Any, y: Any) -> Any:
    if is_tuple_like(x) or is_tuple_like(y):
        if not (is_tuple_like(x) and is_tuple_like(y)):
            raise CompileError("select() between a tuple and a single value; both sides need as many elements")
        left, right = to_tuple(x), to_tuple(y)
        if len(left) != len(right):
            raise CompileError(f"select() on tuples requires all Tuples to have identical sizes; these have {len(left)} and {len(right)} elements")
        each = to_tuple(c) if is_tuple_like(c) else [c] * len(left)
        if len(each) != len(left):
            raise CompileError(f"select() has a condition of {len(each)} elements for values of {len(left)}")
        return Tuple([_select(k, p, q) for k, p, q in zip(each, left, right)])
    condition = _condition(c)
    a, d = _as_value(x), _as_value(y)
    p, q = literal(x), literal(y)
    if isinstance(p, int) and not isinstance(p, bool) and not d.type.is_handle():
        a = cast_const(d.type, a)
    elif isinstance(q, int) and not isinstance(q, bool) and not a.type.is_handle():
        d = cast_const(a.type, d)
    if a.type is not d.type:
        if a.type.is_handle() or d.type.is_handle():
            raise CompileError(f"select() between {a.type} and {d.type}")
        a, d = match_types(a, d)
    if condition.type.is_vector() and a.type.is_scalar():
        a, d = b.broadcast(a, condition.type.lanes()), b.broadcast(d, condition.type.lanes())
    return Expr.of(n.Select(condition, a, d))


def select(*args: Any) -> Any:
    """`select(c1, v1, c2, v2, ..., otherwise)`: the value of the first condition that holds. Values may be tuples; all sides may be
    evaluated, except loads that a condition keeps out of range, which are skipped.

    Raises CompileError for conditions that are no bools and for tuples of unequal size; ValueError for an even number of arguments.
    """
    if len(args) < 3 or len(args) % 2 == 0:
        raise ValueError("select() must have an odd number of arguments, at least three")
    out = args[-1]
    for i in range(len(args) - 3, -1, -2):
        out = _select(args[i], args[i + 1], out)
    return out


def mux(index: Any, values: Any) -> Any:
    """`values[index]`, the last value when out of range. Values may be tuples."""
    chosen = [to_tuple(v) if is_tuple_like(v) else v for v in (to_tuple(values) if is_tuple_like(values) and not isinstance(values, (list, tuple)) else values)]
    if not chosen:
        raise CompileError("mux() needs at least one value")
    i = to_node(index)
    out: Any = chosen[-1]
    for k in range(len(chosen) - 2, -1, -1):
        out = _select(Expr.of(n.EQ(i, b.const(i.type, k))), chosen[k], out)
    return out if is_tuple_like(out) else Expr.of(to_node(out))


def _floats(name: str, *args: Any) -> list[n.Expr]:
    """Arguments of a float function: ints become float32, widths are brought together."""
    nodes = [_as_value(a) for a in args]
    nodes = [e if e.type.is_float() else b.cast(Float(32, e.type.lanes()), e) for e in nodes]
    if len(nodes) == 2:
        nodes = list(match_types(*nodes))
    if any(e.type.is_bfloat() for e in nodes):
        nodes = [b.cast(Float(32, e.type.lanes()), e) for e in nodes]
    return nodes


def _math(name: str, doc: str, arity: int = 1) -> Any:
    if arity == 1:
        def one(x: Any) -> Expr:
            return Expr.of(math_call(name, *_floats(name, x)))

        one.__name__, one.__doc__ = name, doc
        return one

    def two(x: Any, y: Any) -> Expr:
        return Expr.of(math_call(name, *_floats(name, x, y)))

    two.__name__, two.__doc__ = name, doc
    return two


sin, cos, tan = _math("sin", "Sine, radians."), _math("cos", "Cosine, radians."), _math("tan", "Tangent, radians.")
asin, acos, atan = _math("asin", "Arc sine."), _math("acos", "Arc cosine."), _math("atan", "Arc tangent.")
sinh, cosh, tanh = _math("sinh", "Hyperbolic sine."), _math("cosh", "Hyperbolic cosine."), _math("tanh", "Hyperbolic tangent.")
asinh, acosh, atanh = _math("asinh", "Inverse of sinh."), _math("acosh", "Inverse of cosh."), _math("atanh", "Inverse of tanh.")
exp, log, sqrt = _math("exp", "e to the x."), _math("log", "Natural logarithm."), _math("sqrt", "Square root.")
floor, ceil, trunc = _math("floor", "Round down."), _math("ceil", "Round up."), _math("trunc", "Round towards zero.")
round = _math("round", "Round to the nearest integer, halfway cases to even.")
atan2, hypot = _math("atan2", "Angle of the point (y, x).", 2), _math("hypot", "sqrt(x*x + y*y) without overflow.", 2)


def pow(x: Any, y: Any) -> Expr:
    """x to the y; small integer constant exponents multiply out."""
    exponent = literal(y) if literal(y) is not None else b.as_int(to_node(y))
    if isinstance(exponent, int):
        base = _floats("pow", x)[0]
        return Expr.of(integer_power(base, exponent))
    return power(x, y)


def fract(x: Any) -> Expr:
    """The fraction of x, with the sign of x: x - trunc(x)."""
    a = _floats("fract", x)[0]
    return Expr.of(n.Sub(a, math_call("trunc", a)))


def _only_float32(name: str, *args: Any) -> list[n.Expr]:
    nodes = [_as_value(a) for a in args]
    for e in nodes:
        if e.type.element_of() is not Float(32):
            raise CompileError(f"{name}() takes float32 only, but {to_text(e)} is {e.type}; cast it with f32()")
    return nodes


def erf(x: Any) -> Expr:
    """The error function; float32."""
    return Expr.of(math_call("erf", *_only_float32("erf", x)))


def _fast(name: str, arity: int = 1) -> Any:
    def call(*args: Any) -> Expr:
        if len(args) != arity:
            raise TypeError(f"{name}() takes {arity} arguments, {len(args)} given")
        return Expr.of(math_call(name, *_only_float32(name, *args)))

    call.__name__, call.__doc__ = name, f"A quicker, less exact {name[5:]} of float32 values."
    return call


fast_exp, fast_log, fast_pow = _fast("fast_exp"), _fast("fast_log"), _fast("fast_pow", 2)
fast_sin, fast_cos = _fast("fast_sin"), _fast("fast_cos")
fast_inverse, fast_inverse_sqrt = _fast("fast_inverse"), _fast("fast_inverse_sqrt")


def _classify(name: str, doc: str) -> Any:
    def call(x: Any) -> Expr:
        e = to_node(x)
        if not e.type.is_float():
            raise CompileError(f"{name}() takes floats, but {to_text(e)} is {e.type}")
        return Expr.of(intrinsic(name, BOOL.with_lanes(e.type.lanes()), e))

    call.__name__, call.__doc__ = name, doc
    return call


is_nan, is_inf = _classify("is_nan", "Whether x is not a number."), _classify("is_inf", "Whether x is infinite.")
is_finite = _classify("is_finite", "Whether x is neither infinite nor NaN.")


def _bits(name: str, doc: str) -> Any:
    def call(x: Any) -> Expr:
        e = to_node(x)
        if not e.type.is_int_or_uint():
            raise CompileError(f"{name}() takes integers, but {to_text(e)} is {e.type}")
        return Expr.of(intrinsic(name, e.type, e))

    call.__name__, call.__doc__ = name, doc
    return call


popcount = _bits("popcount", "Number of ones.")
count_leading_zeros = _bits("count_leading_zeros", "Zeros before the highest one; the width for 0.")
count_trailing_zeros = _bits("count_trailing_zeros", "Zeros after the lowest one; the width for 0.")


def _integer_pair(name: str, a: Any, c: Any) -> tuple[n.Expr, n.Expr]:
    x, y = operands(a, c)
    if not x.type.is_int_or_uint():
        raise CompileError(f"{name}() takes integers, but {to_text(x)} is {x.type}")
    return x, y


def div_round_to_zero(a: Any, c: Any) -> Expr:
    """C's integer division; 0 when dividing by 0."""
    x, y = _integer_pair("div_round_to_zero", a, c)
    return Expr.of(intrinsic("div_round_to_zero", x.type, x, y))


def mod_round_to_zero(a: Any, c: Any) -> Expr:
    """C's remainder, with the sign of `a`; 0 when dividing by 0."""
    x, y = _integer_pair("mod_round_to_zero", a, c)
    return Expr.of(intrinsic("mod_round_to_zero", x.type, x, y))


def lerp(zero_value: Any, one_value: Any, weight: Any) -> Expr:
    """zero_value where weight is 0, one_value where it is 1 (or the largest of an unsigned type), between them otherwise; integers are rounded.

    Raises CompileError for different value types, signed weights, 64-bit integers, constant weights outside [0, 1].
    """
    p, q = literal(zero_value), literal(one_value)
    a = to_node(zero_value) if p is None else literal_node(p, _as_value(one_value).type)
    c = to_node(one_value) if q is None else literal_node(q, a.type)
    w = _as_value(weight)
    if a.type is not c.type:
        raise CompileError(f"lerp() needs both values of one type, but {to_text(a)} is {a.type} and {to_text(c)} is {c.type}")
    if not (w.type.is_uint() or w.type.is_float()):
        raise CompileError(f"lerp() needs an unsigned integer or float weight, but {to_text(w)} is {w.type}")
    if a.type.is_float() and w.type.is_float():
        w = cast_const(a.type, w)
    if a.type.is_int_or_uint() and a.type.bits() > 32:
        raise CompileError(f"lerp() of {a.type} is not possible; use 32 bits or fewer")
    value = b.as_const(w)
    if value is not None and w.type.is_float() and not 0 <= value <= 1 and not a.type.is_float():
        raise CompileError(f"lerp() needs a floating point weight in [0.0, 1.0], not {value}")
    return Expr.of(intrinsic("lerp", a.type, a, c, w))


def likely(e: Any) -> Expr:
    """`e`, marked as what holds in the steady state of the loops around: they are split there."""
    node = to_node(e)
    return Expr.of(intrinsic("likely", node.type, node))


def likely_if_innermost(e: Any) -> Expr:
    """Like likely(), for the innermost loop only."""
    node = to_node(e)
    return Expr.of(intrinsic("likely_if_innermost", node.type, node))


def strict_float(e: Any) -> Expr:
    """`e` with all float arithmetic in it exactly as written."""
    node = to_node(e)
    return Expr.of(intrinsic("strict_float", node.type, node))


def undef(t: Type) -> Expr:
    """No value: a definition of it stores nothing."""
    return Expr.of(intrinsic("undef", t))


def logical_not(e: Any) -> Expr:
    """The negation of a condition."""
    return Expr.of(to_node(e)).logical_not()


def _printable(args: Sequence[Any]) -> list[n.Expr]:
    return [b.string(a) if isinstance(a, str) else _as_value(a) for a in args]


def print(*args: Any) -> Expr:
    """The first argument; when it is computed, all are printed, separated by spaces. Strings may be among the others."""
    nodes = _printable(args)
    return Expr.of(intrinsic("print", nodes[0].type, *nodes))


def print_when(condition: Any, *args: Any) -> Expr:
    """The first argument after the condition; all are printed when the condition holds."""
    nodes = _printable(args)
    return Expr.of(intrinsic("print_when", nodes[0].type, _condition(condition), *nodes))


def require(condition: Any, value: Any, *args: Any) -> Expr:
    """`value`, or, when the condition does not hold, the end of the pipeline with an error that shows it and `args`."""
    c = _condition(condition)
    v = _as_value(value)
    message = intrinsic("stringify", b.string("").type, *[v, *_printable(args)])
    error = n.Call(INT32, "halide_error_requirement_failed", (b.string(to_text(c)), message), n.CallType.Extern)
    return Expr.of(intrinsic("require", v.type, c, v, error))


def memoize_tag(result: Any, *args: Any) -> Expr:
    """`result`; the other arguments key the memoization cache."""
    node = _as_value(result)
    return Expr.of(intrinsic("memoize_tag", node.type, node, *[_as_value(a) for a in args]))


def gather(*args: Any) -> Any:
    """Several reads in one update; with `scatter`."""
    raise CompileError("gather() is not supported yet; use one update a read")


def equal(a: Any, c: Any) -> Expr:
    """a == c."""
    return binary(n.EQ, a, c)
