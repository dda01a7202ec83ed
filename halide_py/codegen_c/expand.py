"""Intrinsics written out in plain arithmetic: what the emitter has no instruction for becomes nodes it has.

Source of the formulas: Warren, Hacker's Delight, chapter 2 (averages without overflow, saturation).
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.simplify import constant_bound
from ..ir.types import BOOL, Float, Type, TypeCode, UInt

Rule = Callable[[n.Call], n.Expr]


def _wide(t: Type) -> Type:
    return t.with_bits(t.bits() * 2)


def _unsigned(t: Type) -> Type:
    return t.with_code(TypeCode.UInt)


def _pred(t: Type) -> Type:
    return BOOL.with_lanes(t.lanes())


def _c(like: n.Expr, value: int | float) -> n.Expr:
    return b.const(like.type, value)


def _widening(kind: type[n.Expr]) -> Rule:
    def rule(e: n.Call) -> n.Expr:
        x, y = e.args
        return kind(b.cast(e.type, x), b.cast(e.type, y))  # type: ignore[call-arg]

    return rule


def _bit(name: str, x: n.Expr, y: n.Expr) -> n.Expr:
    return intrinsic(name, x.type, x, y)


def _averages(t: Type) -> bool:
    """Whether machines have an instruction for the rounded average of unsigned vectors of these bits."""
    return t.is_vector() and t.bits() in (8, 16)


def _average(x: n.Expr, y: n.Expr, of_x: int = 0, of_y: int = 0, of_result: int = 0) -> n.Expr:
    """The rounded average, with bits flipped of each and of the result. Of numbers with a sign that is flipped, too: then they are in the
    order of those without."""
    u = _unsigned(x.type)
    sign = 1 << u.bits() - 1 if x.type.is_int() else 0
    p, q = (_flipped(b.cast(u, v), mask ^ sign) for v, mask in ((x, of_x), (y, of_y)))
    return b.cast(x.type, _flipped(intrinsic("rounding_halving_add", u, p, q), of_result ^ sign))


def _flipped(x: n.Expr, mask: int) -> n.Expr:
    return _bit("bitwise_xor", x, b.const(x.type, mask)) if mask else x


def _halving_add(e: n.Call) -> n.Expr:
    x, y = e.args
    if _averages(e.type):  # ~x is ones - x
        ones = (1 << e.type.bits()) - 1
        return _average(x, y, ones, ones, ones)
    return b.add(_bit("bitwise_and", x, y), _bit("shift_right", _bit("bitwise_xor", x, y), _c(x, 1)))


def _rounding_halving_add(e: n.Call) -> n.Expr:
    x, y = e.args
    if _averages(e.type) and e.type.is_int():
        return _average(x, y)
    return n.Sub(_bit("bitwise_or", x, y), _bit("shift_right", _bit("bitwise_xor", x, y), _c(x, 1)))


def _halving_sub(e: n.Call) -> n.Expr:
    x, y = e.args
    if _averages(e.type):  # of x and ~y it is (x - y) / 2 and the highest bit
        bits = e.type.bits()
        return _average(x, y, 0, (1 << bits) - 1, 0 if e.type.is_int() else 1 << bits - 1)
    half = n.Sub(_bit("shift_right", x, _c(x, 1)), _bit("shift_right", y, _c(x, 1)))
    borrow = _bit("bitwise_and", _bit("bitwise_and", intrinsic("bitwise_not", x.type, x), y), _c(x, 1))
    return n.Sub(half, borrow)


def _saturating_add(e: n.Call) -> n.Expr:
    x, y = e.args
    total, t = n.Add(x, y), x.type
    if t.is_float():
        return total
    if t.is_uint():
        return n.Select(n.LT(total, x), _c(x, t.max_value()), total)
    limit = n.Select(n.LT(x, _c(x, 0)), _c(x, t.min_value()), _c(x, t.max_value()))
    over = n.LT(_bit("bitwise_and", _bit("bitwise_xor", x, total), _bit("bitwise_xor", y, total)), _c(x, 0))
    return n.Select(over, limit, total)


def _saturating_sub(e: n.Call) -> n.Expr:
    x, y = e.args
    total, t = n.Sub(x, y), x.type
    if t.is_float():
        return total
    if t.is_uint():
        return n.Select(n.LT(x, y), _c(x, 0), total)
    limit = n.Select(n.LT(x, _c(x, 0)), _c(x, t.min_value()), _c(x, t.max_value()))
    over = n.LT(_bit("bitwise_and", _bit("bitwise_xor", x, y), _bit("bitwise_xor", x, total)), _c(x, 0))
    return n.Select(over, limit, total)


def _saturated_float(x: n.Expr, t: Type) -> n.Expr:
    """Floats as integers of 32 bits, the largest of which no float is: what is not below 2^31 or 2^32 becomes that, NaN, too."""
    end = float(int(t.max_value()) + 1)
    inside = n.Max(n.Min(x, b.const(x.type, end * (1 - 2.0**-24))), b.const(x.type, float(t.min_value())))
    return n.Select(n.LT(x, b.const(x.type, end)), n.Cast(t, inside), b.const(t, t.max_value()))


def _saturating_cast(e: n.Call) -> n.Expr:
    x, t = e.args[0], e.type
    s = x.type
    if t.is_float():
        return n.Cast(t, x)
    low, high = t.min_value(), t.max_value()
    if s.is_float():
        if s.bits() == 32 == t.bits() and s.is_vector():
            return _saturated_float(x, t)
        wide = x if s.bits() == 64 or t.bits() <= 16 else n.Cast(Float(64, s.lanes()), x)
        top = float(high) if t.bits() < 64 else float(high) - (1024 if t.is_int() else 2048)
        clamped = n.Max(n.Min(wide, b.const(wide.type, top)), b.const(wide.type, float(low)))
        limited = n.Cast(t, clamped)
        return limited if t.bits() < 64 else n.Select(n.LT(wide, b.const(wide.type, float(high))), limited, b.const(t, high))
    if s.max_value() > high:
        x = n.Min(x, b.const(s, high))
    if s.min_value() < low:
        x = n.Max(x, b.const(s, max(low, int(s.min_value()))))
    return b.cast(t, x)


def _rounded_shift(x: n.Expr, amount: int) -> n.Expr:
    """(x + 2^(amount - 1)) >> amount without overflow: the average of (x >> amount - 1) and 0. Numbers with a sign are moved up by
    2^(bits - 1) before, and back after."""
    u, top = _unsigned(x.type), 1 << x.type.bits() - 1
    up = _flipped(b.cast(u, x), top) if x.type.is_int() else x
    high = _bit("shift_right", up, b.const(u, amount - 1)) if amount > 1 else up
    half = intrinsic("rounding_halving_add", u, high, b.const(u, 0))
    return b.cast(x.type, n.Sub(half, b.const(u, top >> amount))) if x.type.is_int() else half


def _shift(left: bool, rounding: bool) -> Rule:
    def rule(e: n.Call) -> n.Expr:
        x, y = e.args
        t = x.type
        if rounding:
            known = b.as_int(y)
            if not left and known is not None and 0 < known < t.bits() and _averages(t):
                return _rounded_shift(x, known)
            if not left and y.type.is_uint() and (t.is_uint() or (constant_bound(y, upper=True) or 99) <= t.bits()):
                # moved by one less as a number without sign, by 2^bits - 1 for 0, it has the last bit that goes
                last = intrinsic("shift_right", _unsigned(t), b.cast(_unsigned(t), x), n.Sub(y, b.const(y.type, 1)))
                return n.Add(intrinsic("shift_right", t, x, y), b.cast(t, _bit("bitwise_and", last, _c(last, 1))))
            zero = b.const(y.type, 0)
            one = b.const(t, 1)
            amount = y if left else n.Sub(zero, y) if y.type.is_int() else y
            if left and y.type.is_uint():
                return intrinsic("shift_left", t, x, y)
            negative = n.LT(amount, zero) if y.type.is_int() else b.const(_pred(t), 1)
            back = n.Sub(zero, amount) if y.type.is_int() else y  # how far right
            some = n.GT(back, zero)
            # (x >> s) + ((x >> (s - 1)) & 1): no overflow of the addition of half
            low = _bit("bitwise_and", intrinsic("shift_right", t, x, n.Sub(back, b.const(y.type, 1))), one)
            right = n.Add(intrinsic("shift_right", t, x, back), n.Select(some, low, b.const(t, 0)))
            return n.Select(negative, right, intrinsic("shift_left", t, x, amount)) if y.type.is_int() else right
        wide = b.cast(e.type, x)
        return intrinsic("shift_left" if left else "shift_right", e.type, wide, b.cast(y.type.with_bits(e.type.bits()), y))

    return rule


def _lerp(e: n.Call) -> n.Expr:
    """zero + (one - zero) * weight, exact: integers weigh by integers of their own width, rounded to nearest at the end."""
    zero, one, w = e.args
    t = zero.type
    if t.is_float():
        weight = w if w.type.is_float() else n.Div(n.Cast(t, w), b.const(t, float(w.type.max_value())))
        return n.Add(n.Mul(zero, n.Sub(b.const(t, 1.0), weight)), n.Mul(one, weight))
    if t.is_bool():
        full = 1.0 if w.type.is_float() else float(w.type.max_value())
        return n.Select(n.GE(w, b.const(w.type, full)), one, zero)
    weight = _integer_weight(w, _unsigned(t))
    u, wide = _unsigned(t), _unsigned(t).with_bits(2 * t.bits())
    top, bias = int(u.max_value()), int(t.min_value())

    def unbiased(x: n.Expr) -> n.Expr:
        return b.cast(wide, n.Add(b.cast(u, x), b.const(u, -bias)) if bias else b.cast(u, x))

    weight = b.cast(wide, weight)
    total = n.Add(n.Mul(unbiased(zero), n.Sub(b.const(wide, top), weight)), n.Mul(unbiased(one), weight))
    mixed = b.cast(u, n.Div(n.Add(total, b.const(wide, top // 2)), b.const(wide, top)))
    return b.cast(t, n.Add(mixed, b.const(u, bias)) if bias else mixed)


def _integer_weight(w: n.Expr, u: Type) -> n.Expr:
    """A weight in 0 .. 1 (float, or unsigned with its maximum standing for 1) scaled to the range of `u`."""
    top = int(u.max_value())
    if w.type.is_float():
        f = Float(64 if u.bits() >= 32 else 32, u.lanes())
        scaled = n.Cast(f, w) if w.type is not f else w
        return n.Cast(u, n.Mul(scaled, b.const(f, float(top))))
    mine = int(w.type.max_value())
    if mine == top:
        return b.cast(u, w)
    if mine < top and top % mine == 0:
        return n.Mul(b.cast(u, w), b.const(u, top // mine))
    return b.cast(u, n.Div(w, b.const(w.type, mine // top)))


def _random(e: n.Call) -> n.Expr:
    """The permutation polynomial hash: one round a term, then the better high bits mixed into the low ones."""
    u = UInt(32, e.type.lanes())

    def c(value: int) -> n.Expr:
        return b.const(u, value)

    h: n.Expr = c(0)
    for k, term in enumerate(e.args):
        term = b.cast(u, term) if term.type.lanes() == u.lanes() else n.Broadcast(b.cast(UInt(32), term), u.lanes())
        x = n.Add(h, term) if k else term
        h = n.Add(n.Mul(n.Add(n.Mul(c(1040796640), x), c(1121052041)), x), c(576942909))
    h = _bit("bitwise_xor", h, _bit("shift_right", h, c(16)))
    if not e.type.is_float():
        return b.cast(e.type, h)
    unit = _bit("bitwise_or", _bit("shift_right", h, c(9)), c(127 << 23))
    return n.Sub(n.Reinterpret(e.type, unit), b.const(e.type, 1.0))


def _mul_shift_right(rounding: bool) -> Rule:
    def rule(e: n.Call) -> n.Expr:
        x, y, shift = e.args
        wide = _wide(x.type)
        product = n.Mul(b.cast(wide, x), b.cast(wide, y))
        s = b.cast(shift.type.with_bits(wide.bits()), shift)
        name = "rounding_shift_right" if rounding else "shift_right"
        return _saturating_cast(intrinsic("saturating_cast", e.type, intrinsic(name, wide, product, s)))  # type: ignore[arg-type]

    return rule


def _absd(e: n.Call) -> n.Expr:
    x, y = e.args
    if x.type.is_float():
        return intrinsic("abs", e.type, n.Sub(x, y))
    return n.Sub(b.cast(e.type, n.Max(x, y)), b.cast(e.type, n.Min(x, y)))


def _mux(e: n.Call) -> n.Expr:
    index, *values = e.args
    out = values[-1]
    for k in range(len(values) - 2, -1, -1):
        out = n.Select(n.EQ(index, b.const(index.type, k)), values[k], out)
    return out


def _concat_bits(e: n.Call) -> n.Expr:
    bits = e.args[0].type.bits()
    u = _unsigned(e.type)
    out: n.Expr = b.const(u, 0)
    for k, a in enumerate(e.args):
        part = b.cast(u, b.cast(_unsigned(a.type), a))
        out = _bit("bitwise_or", out, intrinsic("shift_left", u, part, b.const(u, k * bits)))
    return b.cast(e.type, out)


def _extract_bits(e: n.Call) -> n.Expr:
    x, at = e.args
    u = _unsigned(x.type)
    bits: n.Expr = x if x.type is u else n.Reinterpret(u, x)
    if at.type.is_int():  # below 0 it shifts to the left, in as many bits as there are in the result
        u = u.with_bits(max(u.bits(), e.type.bits()))
        most = b.const(at.type, u.bits())
        inside = b.max_(b.min_(at, most), b.const(at.type, -u.bits())) if u.bits() < at.type.bits() else at
        bits, at = b.cast(u, bits), b.cast(u.with_code(TypeCode.Int), inside)
    return b.cast(e.type, intrinsic("shift_right", u, bits, b.cast(u, at) if at.type.is_uint() else at))


RULES: dict[str, Rule] = {
    "widening_add": _widening(n.Add), "widening_sub": _widening(n.Sub), "widening_mul": _widening(n.Mul),
    "widen_right_add": _widening(n.Add), "widen_right_sub": _widening(n.Sub), "widen_right_mul": _widening(n.Mul),
    "widening_shift_left": _shift(True, False), "widening_shift_right": _shift(False, False),
    "rounding_shift_left": _shift(True, True), "rounding_shift_right": _shift(False, True),
    "halving_add": _halving_add, "halving_sub": _halving_sub, "rounding_halving_add": _rounding_halving_add,
    "saturating_add": _saturating_add, "saturating_sub": _saturating_sub, "saturating_cast": _saturating_cast,
    "mul_shift_right": _mul_shift_right(False), "rounding_mul_shift_right": _mul_shift_right(True),
    "random": _random, "absd": _absd, "mux": _mux, "concat_bits": _concat_bits, "extract_bits": _extract_bits, "lerp": _lerp,
}
IDENTITIES = frozenset({"likely", "likely_if_innermost", "unsafe_promise_clamped", "strict_float", "memoize_tag"})
