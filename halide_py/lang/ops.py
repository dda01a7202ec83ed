"""Functions on Exprs: casts, selection, clamping, interpolation, markers. Each checks its operand types and says what is wrong.

Float functions live in `math`, operations on bits and fixed-point values in `bits`, those with effects in `effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.types import BOOL, Float, Int, Type, TypeCode, UInt
from .expr import Expr, absolute, to_node
from .promotion import checked_type, convert, literal, lossless, match_lanes, match_types
from .tuples import Tuple, is_tuple_like, to_tuple

# ---------------------------------------------------------------------------------------------------------------
# Casts


def cast(t: Type, e: Any) -> Expr:
    """`e` converted to type `t`: floats to ints truncate, narrowing ints wrap, ints to bool keep the low bit.

    Raises CompileError for casts between handles and numbers; `reinterpret` them through uint64.
    """
    t, node = checked_type(t, "cast()"), to_node(e)
    if node.type.is_handle() != t.is_handle():
        way = f"reinterpret(Handle(), u64({to_text(node)}))" if t.is_handle() else f"reinterpret(UInt(64), {to_text(node)})"
        raise user_error(f"Can't cast {to_text(node)} of type {node.type} to {t}. The only legal way is {way}")
    if t.is_scalar() and node.type.is_vector():
        t = t.with_lanes(node.type.lanes())
    return Expr.of(convert(t, node))


def reinterpret(t: Type, e: Any) -> Expr:
    """The bits of `e` read as type `t`. Raises CompileError when the widths differ.

    >>> hl.evaluate(hl.reinterpret(hl.UInt(32), hl.f32(1)))
    1065353216
    """
    t, node = checked_type(t, "reinterpret()"), to_node(e)
    if node.type.bits() * node.type.lanes() != t.bits() * t.lanes():
        raise user_error(f"Reinterpret cast from type {node.type} which has {node.type.bits() * node.type.lanes()} bits, to type {t} which "
                         f"has {t.bits() * t.lanes()} bits")
    return Expr.of(node if node.type is t else n.Reinterpret(t, node))


def saturating_cast(t: Type, e: Any) -> Expr:
    """`e` converted to type `t`, clamped to its range first.

    >>> hl.evaluate(hl.saturating_cast(hl.UInt(8), hl.i32(-5)))
    0
    """
    t, node = checked_type(t, "saturating_cast()"), to_node(e)
    return Expr.of(node if node.type is t else intrinsic("saturating_cast", t.with_lanes(node.type.lanes()), node))


def _caster(t: Type) -> Callable[[Any], Expr]:
    def convert_to(e: Any) -> Expr:
        value = literal(e)
        if isinstance(value, float) and t.is_float():
            return Expr.of(b.const(t, value))  # said explicitly, so no digits are lost on the way
        if isinstance(value, int) and not t.is_float():
            return Expr.of(b.const(t, int(value)))
        return cast(t, e)

    convert_to.__name__ = f"{'f' if t.is_float() else 'i' if t.is_int() else 'u'}{t.bits()}"
    name, text = convert_to.__name__, f"`e` as {t}: a number of that type (never range-checked), or a cast."
    example = f">>> hl.{name}(3).type().bits()\n{t.bits()}"
    convert_to.__doc__ = f"{text}\n\nThe same as `hl.cast(type, e)`, but that a Python number keeps all its digits.\n\n{example}"
    return convert_to


def _saturating(t: Type) -> Callable[[Any], Expr]:
    def convert_to(e: Any) -> Expr:
        return saturating_cast(t, e)

    convert_to.__name__ = f"{'i' if t.is_int() else 'u'}{t.bits()}_sat"
    low = f">>> hl.evaluate(hl.{convert_to.__name__}(hl.f32(-1e30)))\n{t.min_value()}"
    convert_to.__doc__ = f"`e` clamped to the range of {t} and converted.\n\nThe same as `hl.saturating_cast(type, e)`.\n\n{low}"
    return convert_to


i8, i16, i32, i64 = (_caster(Int(w)) for w in (8, 16, 32, 64))
u8, u16, u32, u64 = (_caster(UInt(w)) for w in (8, 16, 32, 64))
f16, f32, f64 = (_caster(Float(w)) for w in (16, 32, 64))
i8_sat, i16_sat, i32_sat, i64_sat = (_saturating(Int(w)) for w in (8, 16, 32, 64))
u8_sat, u16_sat, u32_sat, u64_sat = (_saturating(UInt(w)) for w in (8, 16, 32, 64))

# ---------------------------------------------------------------------------------------------------------------
# Smallest, largest, limits


def _fold(kind: Callable[[n.Expr, n.Expr], n.Expr], name: str, args: Sequence[Any]) -> Expr:
    if len(args) < 2:
        raise ValueError(f"{name}() must have at least 2 arguments")
    out = to_node(args[-1])
    for a in reversed(args[:-1]):
        x, y = match_types(to_node(a), out)
        if x.type.is_handle():
            raise user_error(f"{name}() is not defined for handles")
        out = kind(x, y)
    return Expr.of(out)


def min(*args: Any) -> Expr:
    """The smallest of two or more values, under the promotion rules; a Python number counts by its own type.

    Two values compare as select(a < b, a, b), so b where either is NaN; simplification may exchange them, but not inside strict_float()."""
    return _fold(n.Min, "min", args)


def max(*args: Any) -> Expr:
    """The largest of two or more values, under the promotion rules; a Python number counts by its own type. NaN: as for min().

    >>> hl.evaluate(hl.max(3, 7, 5))
    7
    """
    return _fold(n.Max, "max", args)


def _limit(value: n.Expr, limit: Any, call: str, argument: str) -> n.Expr:
    node = to_node(limit)
    found = lossless(value.type, node)
    if found is None:
        raise user_error(f"Type mismatch in call to {call}. First argument ({to_text(value)}) has type {value.type}, but {argument} "
                         f"argument ({to_text(node)}) has type {node.type}, which it cannot hold. Use an explicit cast.")
    return found


def clamp(e: Any, low: Any, high: Any) -> Expr:
    """`e` limited to [low, high]; the bounds take its type and must fit it. Bounds inference believes it.

    >>> hl.evaluate(hl.clamp(hl.i32(300), 0, 255))
    255
    """
    node = to_node(e)
    bottom, top = _limit(node, low, "clamp", "second"), _limit(node, high, "clamp", "third")
    return Expr.of(n.Max(n.Min(node, top), bottom))


def unsafe_promise_clamped(e: Any, low: Any, high: Any) -> Expr:
    """`e`, promised to lie in [low, high]: bounds inference believes it, no code is emitted. An undefined Expr leaves a side open.

    A value outside makes the program read or write memory that is not its own; with the target feature `CheckUnsafePromises` it is a
    PipelineError that shows the promise and the value.

    >>> hl.evaluate(hl.unsafe_promise_clamped(hl.i32(5), 0, 9))
    5
    """
    node = to_node(e)
    ends = []
    for x, argument, far in ((low, "min", node.type.min_value()), (high, "max", node.type.max_value())):
        open_end = isinstance(x, Expr) and not x.defined()
        ends.append(b.const(node.type, far) if open_end else _limit(node, x, "unsafe_promise_clamped", argument))
    return Expr.of(intrinsic("unsafe_promise_clamped", node.type, node, *ends))


def abs(e: Any) -> Expr:
    """|e|; of a signed integer the unsigned type of its width.

    >>> hl.evaluate(hl.abs(hl.i8(-128)))
    128
    """
    return absolute(e)


def absd(x: Any, y: Any) -> Expr:
    """|x - y| without overflow; unsigned for integers.

    >>> hl.evaluate(hl.absd(hl.u8(3), hl.u8(200)))
    197
    """
    a, c = match_types(to_node(x), to_node(y))
    if a.type.is_float():
        return absolute(Expr.of(n.Sub(a, c)))
    return Expr.of(intrinsic("absd", a.type.with_code(TypeCode.UInt), a, c))


def lerp(zero_value: Any, one_value: Any, weight: Any) -> Expr:
    """zero_value where weight is 0, one_value where it is 1 (or the largest of an unsigned type), between them otherwise; integers are
    rounded.

    Raises CompileError for different value types, signed weights, 64-bit integers, constant weights outside [0, 1].
    """
    a, c, w = to_node(zero_value), to_node(one_value), to_node(weight)
    if isinstance(a, n.IntImm):
        a = convert(c.type, a)
    if isinstance(c, n.IntImm):
        c = convert(a.type, c)
    if a.type is not c.type:
        raise user_error(f"Can't lerp between {to_text(a)} of type {a.type} and {to_text(c)} of different type {c.type}")
    if not (w.type.is_uint() or w.type.is_float()):
        raise user_error(f"A lerp weight must be an unsigned integer or a float, but lerp weight {to_text(w)} has type {w.type}")
    if a.type.is_int_or_uint() and a.type.bits() > 32:
        raise user_error(f"Lerping between 64-bit integers is not supported; {to_text(a)} has type {a.type}")
    value = b.as_const(w)
    if not a.type.is_float() and isinstance(value, float) and not 0 <= value <= 1:
        raise user_error(f"Floating-point weight for lerp with integer arguments is {value}, which is not in the range [0.0, 1.0]")
    a, c = match_lanes(a, c)
    a, w = match_lanes(a, w)
    a, c = match_lanes(a, c)
    return Expr.of(intrinsic("lerp", a.type, a, c, w))


# ---------------------------------------------------------------------------------------------------------------
# Selection


def _is_int_constant(e: n.Expr) -> bool:
    return b.as_int(e) is not None


def _select_one(c: Any, x: Any, y: Any) -> Expr:
    condition, a, d = to_node(c), to_node(x), to_node(y)
    if _is_int_constant(condition):
        condition = convert(BOOL, condition)
    if _is_int_constant(a) and not d.type.is_handle():
        a = convert(d.type, a)
    if _is_int_constant(d) and not a.type.is_handle():
        d = convert(a.type, d)
    if not condition.type.is_bool():
        raise user_error(f"The first argument to a select must be a boolean:\n  {to_text(condition)} has type {condition.type}")
    a, d = match_lanes(a, d)
    if a.type is not d.type:
        raise user_error(f"The second and third arguments to a select do not have a matching type:\n  {to_text(a)} has type {a.type}\n"
                         f"  {to_text(d)} has type {d.type}\nCast one of them.")
    condition, a = match_lanes(condition, a)
    _, d = match_lanes(condition, d)
    return Expr.of(n.Select(condition, a, d))


def _select_tuple(args: Sequence[Any]) -> tuple[Expr, ...]:
    conditions, values = args[:-1:2], [*args[1::2], args[-1]]
    if not all(map(is_tuple_like, values)):
        raise user_error("select() between a Tuple and a single value; all values need as many elements")
    tuples = [to_tuple(v) for v in values]
    by_element = [is_tuple_like(c) for c in conditions]
    if any(by_element) and not all(by_element):
        single = to_text(to_node(next(c for c, tuples_ in zip(conditions, by_element) if not tuples_)))
        raise user_error("select() on Tuples may not mix Expr and Tuple for the condition elements. select(): Expected Tuple but got Expr: "
                         f"{single}")
    each = [to_tuple(c) if all(by_element) else [c] * len(tuples[0]) for c in conditions]
    sizes = {len(t) for t in (*tuples, *each)}
    if len(sizes) > 1:
        raise user_error(f"select() on Tuples requires all Tuples to have identical sizes. These have {', '.join(map(str, sorted(sizes)))} "
                         "elements")
    out = tuples[-1]
    for c, v in reversed(list(zip(each, tuples))):
        out = [_select_one(k, p, q) for k, p, q in zip(c, v, out)]
    return tuple(out)


def select(*args: Any) -> Any:
    """`select(c1, v1, c2, v2, ..., otherwise)`: the value of the first condition that holds. An int constant takes the type of the other
    value.

    Values may be tuples of one size (then a Python tuple comes back), the conditions Exprs or tuples of that size. All sides may be
    evaluated,
    except calls of Funcs and loads that can be skipped. Raises CompileError for a condition that is no bool and for values of different
    types;
    ValueError for an even number of arguments.
    """
    if len(args) < 3:
        raise ValueError("select() must have at least 3 arguments")
    if len(args) % 2 == 0:
        raise ValueError("select() must have an odd number of arguments")
    if any(map(is_tuple_like, args)):
        return _select_tuple(args)
    out = args[-1]
    for i in range(len(args) - 3, -1, -2):
        out = _select_one(args[i], args[i + 1], out)
    return out


def _mux_one(index: n.Expr, values: Sequence[Any]) -> Expr:
    nodes = [to_node(v) for v in values]
    if len(nodes) == 1:
        return Expr.of(nodes[0])
    if len({e.type for e in nodes}) > 1:
        raise user_error(f"mux() requires all the values to have the same type, not {', '.join(str(e.type) for e in nodes)}; cast them")
    if not index.type.is_int_or_uint():
        raise user_error(f"The index of mux() must be an integer, but {to_text(index)} has type {index.type}")
    return Expr.of(intrinsic("mux", nodes[0].type, index, *nodes))


def mux(index: Any, values: Any) -> Any:
    """`values[index]`, the last value when out of range. `values` is a sequence of Exprs of one type, a Tuple, or a sequence of Tuples (a
    Tuple comes back)."""
    choices: list[Any] = list(to_tuple(values)) if getattr(values, "is_tuple_ref", False) else [values[i] for i in range(len(values))]
    if not choices:
        raise user_error("mux() requires a non-empty vector of values")
    i = to_node(index)
    if not any(map(is_tuple_like, choices)):
        return _mux_one(i, choices)
    tuples = [to_tuple(c) for c in choices]
    if len({len(t) for t in tuples}) > 1:
        raise user_error("mux() on Tuples requires all Tuples to have identical sizes")
    return Tuple([_mux_one(i, [t[k] for t in tuples]) for k in range(len(tuples[0]))])


# ---------------------------------------------------------------------------------------------------------------
# Markers


def likely(e: Any) -> Expr:
    """`e`, marked as what holds in the steady state of the loops around: they are split there.

    The value is unchanged, so is every result.

    >>> hl.evaluate(hl.likely(hl.i32(3)))
    3
    """
    node = to_node(e)
    return Expr.of(intrinsic("likely", node.type, node))


def likely_if_innermost(e: Any) -> Expr:
    """Like likely(), for the innermost loop only.

    >>> hl.evaluate(hl.likely_if_innermost(hl.i32(3)))
    3
    """
    node = to_node(e)
    return Expr.of(intrinsic("likely_if_innermost", node.type, node))


def strict_float(e: Any) -> Expr:
    """`e` with all float arithmetic in it exactly as written: neither reassociated nor contracted.

    >>> hl.evaluate(hl.strict_float(hl.f32(1e8) + hl.f32(1) - hl.f32(1e8)))
    0.0
    """
    node = to_node(e)
    return Expr.of(intrinsic("strict_float", node.type, node))


def undef(t: Type) -> Expr:
    """No value: a definition of it stores nothing.

    As one side of a select it keeps what was stored before.

    >>> f = hl.Func()
    >>> f[x] = x
    >>> r = hl.RDom([(0, 3)])
    >>> f[r.x] = hl.select(r.x == 1, 7, hl.undef(hl.Int(32)))
    >>> [f.realize([3])[i] for i in range(3)]
    [0, 7, 2]
    """
    return Expr.of(intrinsic("undef", checked_type(t, "undef()")))


def logical_not(e: Any) -> Expr:
    """The negation of a condition.

    The same as `~c`. Raises CompileError for what is no bool.

    >>> hl.evaluate(hl.logical_not(hl.Expr(3) < 2))
    True
    """
    return Expr.of(to_node(e)).logical_not()

