"""Integer functions on Exprs: bit counts, C-like division, and the fixed-point family (widening, halving, saturating, rounding)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.types import Type, TypeCode
from .expr import Expr, shift_amount, to_node
from .promotion import checked_type, convert, exact, literal, match_bits, match_lanes, match_types


def _example(doc: str, call: str, result: object) -> str:
    return f"{doc}\n\nRaises CompileError for what is no integer, unless it says otherwise.\n\n>>> hl.evaluate(hl.{call})\n{result}"


def _integer(name: str, e: n.Expr) -> n.Expr:
    if not e.type.is_int_or_uint():
        raise user_error(f"Argument to {name} must be an integer, but {to_text(e)} has type {e.type}")
    return e


def _count(name: str, doc: str, result: int) -> Callable[[Any], Expr]:
    def call(x: Any) -> Expr:
        e = _integer(name, to_node(x))
        return Expr.of(intrinsic(name, e.type, e))

    call.__name__, call.__doc__ = name, _example(doc, f"{name}(hl.u8(40))", result)
    return call


popcount = _count("popcount", "The number of ones, in the type of x.", 2)
count_leading_zeros = _count("count_leading_zeros", "Zeros before the highest one, in the type of x; the width for 0.", 2)
count_trailing_zeros = _count("count_trailing_zeros", "Zeros after the lowest one, in the type of x; the width for 0.", 3)


def div_round_to_zero(x: Any, y: Any) -> Expr:
    """C's integer division: the quotient's fraction is dropped; 0 when dividing by 0.

    The operands are brought to one integer type. `//` rounds down instead.

    >>> hl.evaluate(hl.div_round_to_zero(-7, 2)), hl.evaluate(hl.Expr(-7) // 2)
    (-3, -4)
    """
    a, c = match_types(_integer("div_round_to_zero", to_node(x)), _integer("div_round_to_zero", to_node(y)))
    return Expr.of(n.Div(a, c) if a.type.is_uint() else intrinsic("div_round_to_zero", a.type, a, c))


def mod_round_to_zero(x: Any, y: Any) -> Expr:
    """C's remainder, with the sign of x; 0 when dividing by 0.

    The operands are brought to one integer type. `%` is never negative instead.

    >>> hl.evaluate(hl.mod_round_to_zero(-7, 2)), hl.evaluate(hl.Expr(-7) % 2)
    (-1, 1)
    """
    a, c = match_types(_integer("mod_round_to_zero", to_node(x)), _integer("mod_round_to_zero", to_node(y)))
    return Expr.of(n.Mod(a, c) if a.type.is_uint() else intrinsic("mod_round_to_zero", a.type, a, c))


def extract_bits(t: Type, e: Any, lsb: Any) -> Expr:
    """The bits of `e` from bit `lsb` on, as type `t`; bits beyond the end are zero.

    >>> hl.evaluate(hl.extract_bits(hl.UInt(8), hl.u32(0x12345678), 8))
    86
    """
    node, offset = to_node(e), _integer("extract_bits", to_node(lsb))
    return Expr.of(intrinsic("extract_bits", checked_type(t, "extract_bits()").with_lanes(node.type.lanes()), node, offset))


def concat_bits(exprs: Sequence[Any]) -> Expr:
    """Integers of one type side by side in one of that kind and as wide as all, the first lowest. Their number must be a power of two,
    their bits 64 at most."""
    nodes = [_integer("concat_bits", to_node(e)) for e in exprs]
    if not nodes or len(nodes) & (len(nodes) - 1):
        raise user_error(f"concat_bits received {len(nodes)} arguments, which is not a power of two")
    if len({e.type for e in nodes}) > 1:
        raise user_error(f"concat_bits needs arguments of one type, not {', '.join(str(e.type) for e in nodes)}")
    bits = nodes[0].type.bits() * len(nodes)
    if bits > 64:
        raise user_error(f"concat_bits of {len(nodes)} values of type {nodes[0].type} has {bits} bits; 64 is the most")
    return Expr.of(intrinsic("concat_bits", nodes[0].type.with_bits(bits), *nodes))


# ---------------------------------------------------------------------------------------------------------------
# Fixed point


def _wide(name: str, e: n.Expr) -> Type:
    if e.type.bits() > 32:
        raise user_error(f"{name} of {to_text(e)} of type {e.type}: there is no type of twice its width")
    return e.type.with_bits(8 if e.type.is_bool() else e.type.bits() * 2)


def widening_add(x: Any, y: Any) -> Expr:
    """x + y at twice the width.

    >>> hl.evaluate(hl.widening_add(hl.u8(200), hl.u8(100)))
    300
    """
    a, c = match_types(to_node(x), to_node(y))
    return Expr.of(intrinsic("widening_add", _wide("widening_add", a), a, c))


def widening_sub(x: Any, y: Any) -> Expr:
    """x - y at twice the width; signed also for unsigned operands.

    >>> hl.evaluate(hl.widening_sub(hl.u8(100), hl.u8(200)))
    -100
    """
    a, c = match_types(to_node(x), to_node(y))
    t = _wide("widening_sub", a)
    return Expr.of(intrinsic("widening_sub", t.with_code(TypeCode.Int) if t.is_uint() else t, a, c))


def widening_mul(x: Any, y: Any) -> Expr:
    """x * y at twice the width; the signs of the types may differ, then the result is signed.

    >>> hl.evaluate(hl.widening_mul(hl.u8(200), hl.i8(-2)))
    -400
    """
    a, c = match_lanes(*match_bits(to_node(x), to_node(y)))
    if a.type.is_float() != c.type.is_float():  # each to the wide type by itself: no integer is rounded to a half float on the way
        t = _wide("widening_mul", a if a.type.is_float() else c)
        return Expr.of(n.Mul(convert(t, a), convert(t, c)))
    t = _wide("widening_mul", a)
    return Expr.of(intrinsic("widening_mul", t.with_code(TypeCode.Int) if t.is_uint() and c.type.is_int() else t, a, c))


def _widen_right(name: str, sign: str, result: int) -> Callable[[Any, Any], Expr]:
    def call(x: Any, y: Any) -> Expr:
        a, c = match_lanes(_integer(name, to_node(x)), _integer(name, to_node(y)))
        if _wide(name, c) is not a.type:
            raise user_error(f"{name} type mismatch: {to_text(a)} has type {a.type}, but must be {_wide(name, c)}, twice as wide as "
                             f"{to_text(c)} of type {c.type}")
        return Expr.of(intrinsic(name, a.type, a, c))

    call.__name__, call.__doc__ = name, _example(f"x {sign} y, where y has half the width of x.", f"{name}(hl.u16(300), hl.u8(2))", result)
    return call


widen_right_add = _widen_right("widen_right_add", "+", 302)
widen_right_sub = _widen_right("widen_right_sub", "-", 298)
widen_right_mul = _widen_right("widen_right_mul", "*", 600)


def _shift(name: str, widen: bool, doc: str, result: int) -> Callable[[Any, Any], Expr]:
    def call(x: Any, y: Any) -> Expr:
        what, a, c = shift_amount(name, _integer(name, to_node(x)), y)
        return Expr.of(intrinsic(what, _wide(name, a) if widen else a.type, a, c))

    call.__name__, call.__doc__ = name, _example(doc, f"{name}(hl.u8(131), 2)", result)
    return call


widening_shift_left = _shift("widening_shift_left", True, "x at twice the width, shifted left by y; a negative signed y shifts right.", 524)
widening_shift_right = _shift("widening_shift_right", True, "x at twice the width, shifted right by y; a negative signed y shifts "
                                                            "left.", 32)
rounding_shift_left = _shift("rounding_shift_left", False, "x shifted left by y; for a negative signed y right, rounded to nearest, halves "
                                                           "up.", 12)
rounding_shift_right = _shift("rounding_shift_right", False, "x shifted right by y, rounded to nearest, halves up; a negative signed y "
                                                             "shifts left.", 33)


def _same(name: str, doc: str, result: int) -> Callable[[Any, Any], Expr]:
    def call(x: Any, y: Any) -> Expr:
        a, c = match_types(to_node(x), to_node(y))
        if "halving" in name:
            _integer(name, a)
        return Expr.of(intrinsic(name, a.type, a, c))

    call.__name__, call.__doc__ = name, _example(doc, f"{name}(hl.u8(200), hl.u8(101))", result)
    return call


saturating_add = _same("saturating_add", "x + y, clamped to the range of the type.", 255)
saturating_sub = _same("saturating_sub", "x - y, clamped to the range of the type.", 99)
halving_add = _same("halving_add", "(x + y) / 2 without overflow, rounded down.", 150)
halving_sub = _same("halving_sub", "(x - y) / 2 without overflow, rounded down.", 49)
rounding_halving_add = _same("rounding_halving_add", "(x + y + 1) / 2 without overflow.", 151)


def _mul_shift(name: str, doc: str, result: int) -> Callable[[Any, Any, Any], Expr]:
    def call(x: Any, y: Any, q: Any) -> Expr:
        a, c = match_types(_integer(name, to_node(x)), _integer(name, to_node(y)))
        amount = literal(q)
        if amount is not None:
            t = a.type.with_code(TypeCode.UInt)
            if isinstance(amount, float) or not exact(t.element_of(), int(amount)):
                raise user_error(f"{name} shift must be unsigned and fit {t}, not {amount}")
            s = b.const(t, int(amount))
        else:
            s = to_node(q)
            if not s.type.is_uint():
                raise user_error(f"{name} shift must be unsigned, but {to_text(s)} has type {s.type}")
            a, s = match_bits(*match_lanes(a, s))
            a, c = match_types(a, c)
        return Expr.of(intrinsic(name, a.type, a, c, s))

    call.__name__, call.__doc__ = name, _example(doc, f"{name}(hl.i16(1000), hl.i16(1001), 4)", result)
    return call


mul_shift_right = _mul_shift("mul_shift_right", "x * y >> q computed at twice the width, clamped to the type; q is unsigned.", 32767)
rounding_mul_shift_right = _mul_shift(
    "rounding_mul_shift_right", "x * y >> q computed at twice the width, rounded to nearest, clamped to the type; q is unsigned.", 32767)
