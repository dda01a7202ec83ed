"""Leaves, lets, casts and calls: constants fold with the meaning of the type, shifts become products and quotients, choices that are known
are made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import nodes as n
from ..build import as_const, as_int, const, is_false, is_true
from ..traverse import mentions
from . import linear
from .fold import fold_cast
from .ranges import UNKNOWN
from .simplify import Simplifier, handles
from .vectors import make_broadcast

IMPURE = (n.CallType.Extern, n.CallType.Intrinsic)
_READS = n.Load.bit | n.Call.bit


@handles(n.IntImm, n.UIntImm, n.FloatImm, n.StringImm)
def leaf(s: Simplifier, e: n.Expr) -> n.Expr:
    """Constants."""
    return e


@handles(n.Variable)
def variables(s: Simplifier, e: n.Variable) -> n.Expr:
    """A variable: its value where a let is substituted or its range is one number."""
    value = s.values.get(e.name)
    if value is not None and value.type is e.type:
        return value
    known = s.known.get(e.name)
    if known is not None and known[0] is not None and known[0] == known[1] and e.type.is_int_or_uint():
        return const(e.type, known[0])
    truth = s.truths.get(e) if s.truths and e.type.is_bool() else None
    return e if truth is None else const(e.type, truth)


def is_trivial(e: n.Expr) -> bool:
    """Whether computing `e` again costs nothing worth a name: constants, variables, small sums of them (which cancel better where they
    are used), and these broadcast or in a ramp."""
    kind = type(e)
    if kind in (n.Variable, n.IntImm, n.UIntImm, n.FloatImm, n.StringImm):
        return True
    if kind is n.Broadcast:
        return is_trivial(e.value)  # type: ignore[attr-defined]
    if kind is n.Ramp:
        return is_trivial(e.base) and is_trivial(e.stride)  # type: ignore[attr-defined]
    if (kind is n.Add or kind is n.Sub or kind is n.Mul) and e.type.is_int_or_uint() and e.type.is_scalar():
        terms, _ = linear.gather(e)
        return len(terms) <= 2 and all(type(x) is n.Variable for x in terms)
    return False


@handles(n.Let)
def lets(s: Simplifier, e: n.Let) -> n.Expr:
    """A let: substituted when its value is trivial or used once."""
    value = s.expr(e.value)
    if s.is_bound(e.name):
        with s.layer(n.symbol_bit(e.name)):
            return _let(s, e, value)
    return _let(s, e, value)


def _let(s: Simplifier, e: n.Let, value: n.Expr) -> n.Expr:
    before = s.values.pop(e.name, None), s.known.pop(e.name, UNKNOWN)
    s.bind(e.name, value.symbols)
    uses = s.uses.get(e.name, 2)
    if is_trivial(value) or uses == 1 or not uses:
        s.values[e.name] = value
    elif value.type.is_int_or_uint():
        s.note_range(e.name, s.range(value))
    body = s.expr(e.body)
    substituted = s.values.pop(e.name, None) is not None
    if before[0] is not None:
        s.values[e.name] = before[0]
    if before[1] is not UNKNOWN:
        s.known[e.name] = before[1]
    if substituted or not mentions(body, e.name):
        return body
    return e if value is e.value and body is e.body else n.Let(e.name, value, body)


@handles(n.Cast)
def casts(s: Simplifier, e: n.Cast) -> n.Expr:
    """Conversions: of constants, of conversions that lost nothing, of broadcasts and ramps."""
    t, value = e.type, s.expr(e.value)
    source = value.type
    if source is t:
        return value
    folded = fold_cast(t, value)
    if folded is not None:
        return folded
    if type(value) is n.Broadcast:
        return make_broadcast(s.expr(n.Cast(t.with_lanes(t.lanes() // value.lanes), value.value)), value.lanes)
    if type(value) is n.Cast:
        middle, inner = source, value.value.type
        narrowing = t.is_int_or_uint() and middle.is_int_or_uint() and inner.is_int_or_uint() and t.bits() <= middle.bits()
        if not inner.is_handle() and middle.can_represent(inner) or narrowing and t.bits() > 1 and middle.bits() > 1:
            if not (t.is_int_or_uint() and middle.is_float()) or t.can_represent(inner):
                return s.expr(n.Cast(t, value.value))
    if type(value) is n.Ramp and t.overflow_is_undefined() and source.overflow_is_undefined() and t.bits() >= source.bits():
        base = s.expr(n.Cast(t.with_lanes(value.base.type.lanes()), value.base))
        return s.expr(n.Ramp(base, s.expr(n.Cast(t.with_lanes(value.base.type.lanes()), value.stride)), value.lanes))
    return e if value is e.value else n.Cast(t, value)


@handles(n.Reinterpret)
def reinterprets(s: Simplifier, e: n.Reinterpret) -> n.Expr:
    """Bits read as another type: of integers it is a cast."""
    value = s.expr(e.value)
    t, source = e.type, value.type
    if t is source:
        return value
    if type(value) is n.Reinterpret:
        return s.expr(n.Reinterpret(t, value.value))
    if t.is_int_or_uint() and source.is_int_or_uint() and t.bits() == source.bits() and t.lanes() == source.lanes():
        return s.expr(n.Cast(t, value))
    return e if value is e.value else n.Reinterpret(t, value)


CallRule = Callable[[Simplifier, n.Call, tuple[n.Expr, ...]], "n.Expr | None"]
CALLS: dict[str, CallRule] = {}


def call_rule(*names: str) -> Callable[[CallRule], CallRule]:
    """Register the simplification of intrinsics or math functions by name."""
    def register(f: CallRule) -> CallRule:
        for name in names:
            CALLS[name] = f
        return f
    return register


@handles(n.Call)
def calls(s: Simplifier, e: n.Call) -> n.Expr:
    """A call: its arguments, then what is known of the function."""
    if e.name == "if_then_else" and e.call_type is n.CallType.PureIntrinsic:
        return _if_then_else(s, e)
    args = tuple([s.expr(a) for a in e.args])
    if e.call_type is n.CallType.PureIntrinsic or e.call_type is n.CallType.PureExtern:
        rule = CALLS.get(e.name)
        if rule is not None:
            simpler = rule(s, e, args)
            if simpler is not None:
                return simpler
    if all(a is b for a, b in zip(args, e.args)):
        return e
    return n.Call(e.type, e.name, args, e.call_type, e.func, e.value_index, e.param)


def _if_then_else(s: Simplifier, e: n.Call) -> n.Expr:
    """Conditions and values in turn, a last value perhaps: what is known false goes."""
    args: list[n.Expr] = []
    pairs = len(e.args) // 2
    for i in range(pairs):
        condition = s.expr(e.args[2 * i])
        if is_false(condition):
            continue
        if is_true(condition):
            args.append(s.expr(e.args[2 * i + 1]))
            break
        args += [condition, s.expr(e.args[2 * i + 1])]
    else:
        if len(e.args) % 2:
            args.append(s.expr(e.args[-1]))
    if len(args) == 1:
        return args[0]
    if not args:
        return const(e.type, 0) if not e.type.is_handle() else e
    same = len(args) == len(e.args) and all(a is b for a, b in zip(args, e.args))
    return e if same else n.Call(e.type, e.name, tuple(args), e.call_type)


@call_rule("likely", "likely_if_innermost")
def _likely(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    """A mark on a constant condition means nothing, nor does a second one; on a constant value it still says which side is taken."""
    a = args[0]
    if e.type.is_bool() and as_const(a) is not None or type(a) is n.Call and a.name == e.name:
        return a
    return None


@call_rule("unsafe_promise_clamped")
def _promise(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    return args[0] if as_const(args[0]) is not None else None


@call_rule("abs")
def _abs(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    a = args[0]
    value = as_const(a)
    if value is not None:
        return const(e.type, abs(value))
    if a.type.is_uint():
        return a
    low = s.range(a)[0] if a.type.is_int() else None
    return s.expr(n.Cast(e.type, a)) if low is not None and low >= 0 else None


@call_rule("absd")
def _absd(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    if args[0].type.is_bool():
        return s.expr(n.NE(*args))
    x, y = as_int(args[0]), as_int(args[1])
    return const(e.type, abs(x - y)) if x is not None and y is not None else None


@call_rule("bitwise_and", "bitwise_or", "bitwise_xor")
def _bitwise(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    a, b = args
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return const(e.type, x & y if e.name == "bitwise_and" else x | y if e.name == "bitwise_or" else x ^ y)
    if x is not None and y is None:  # constants on the right
        return s.expr(n.Call(e.type, e.name, (b, a), e.call_type))
    if a is b:
        return const(e.type, 0) if e.name == "bitwise_xor" else a
    ones = -1 if e.type.is_int() else e.type.max_value()
    if y == 0:
        return b if e.name == "bitwise_and" else a
    if y == ones and e.name != "bitwise_xor":
        return a if e.name == "bitwise_and" else b
    if y is None or e.name != "bitwise_and":
        return None
    low, high = s.range(a)
    if y > 0 and not y & (y + 1) and low is not None and low >= 0 and high is not None and high <= y:
        return a  # a mask of all the bits there are
    if type(a) is n.Call and a.name == "bitwise_and" and as_int(a.args[1]) is not None:
        return s.expr(n.Call(e.type, e.name, (a.args[0], const(e.type, y & (as_int(a.args[1]) or 0))), e.call_type))
    return None


@call_rule("bitwise_not")
def _bitwise_not(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    a = args[0]
    x = as_int(a)
    if x is not None:
        return const(e.type, ~x)
    return a.args[0] if type(a) is n.Call and a.name == "bitwise_not" else None


@call_rule("shift_left", "shift_right")
def _shift(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    """Shifts by a constant are products and (rounding down) quotients."""
    a, amount = args[0], as_int(args[1])
    if amount is None or not abs(amount) < e.type.bits():
        return None
    left = (e.name == "shift_left") == (amount >= 0)
    amount = abs(amount)
    if not amount:
        return a
    if amount == e.type.bits() - 1 and e.type.is_int():  # the factor has no place in the type
        value = as_int(a)
        return None if value is None else const(e.type, value << amount if left else value >> amount)
    if left:
        return s.expr(n.Mul(a, const(e.type, 1 << amount)))
    return s.expr(n.Div(a, const(e.type, 1 << amount)))


@call_rule("popcount", "count_leading_zeros", "count_trailing_zeros")
def _bits(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    x = as_int(args[0])
    if x is None:
        return None
    bits = args[0].type.bits()
    x &= (1 << bits) - 1
    if e.name == "popcount":
        return const(e.type, bin(x).count("1"))
    if e.name == "count_leading_zeros":
        return const(e.type, bits - x.bit_length())
    return const(e.type, (x & -x).bit_length() - 1 if x else bits)


@call_rule("div_round_to_zero", "mod_round_to_zero")
def _c_division(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    x, y = as_int(args[0]), as_int(args[1])
    if y is None or x is None:
        return None
    if not y:
        return const(e.type, 0)
    q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return const(e.type, q if e.name == "div_round_to_zero" else x - q * y)


@call_rule("saturating_cast")
def _saturate(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    a = args[0]
    if a.type is e.type:
        return a
    if a.type.is_int_or_uint() and e.type.is_int_or_uint():
        low, high = s.range(a)
        if low is not None and high is not None and e.type.min_value() <= low and high <= e.type.max_value():
            return s.expr(n.Cast(e.type, a))
        value = as_int(a)
        if value is not None:
            return const(e.type, max(e.type.min_value(), min(e.type.max_value(), value)))
    return None


@call_rule("mux")
def _mux(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    i = as_int(args[0])
    values = args[1:]
    if i is not None:
        return values[i] if 0 <= i < len(values) else values[-1]
    return values[0] if len(set(values)) == 1 else None


@call_rule("is_nan", "is_inf", "is_finite")
def _classify(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    value = as_const(args[0])
    if value is None:
        return None
    test: Callable[[Any], bool] = {"is_nan": math.isnan, "is_inf": math.isinf, "is_finite": math.isfinite}[e.name]
    return const(e.type, test(value))


@call_rule("floor", "ceil", "trunc", "round", "sqrt")
def _exact_math(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    """Functions whose result is exactly rounded, of constants."""
    value = as_const(args[0])
    if value is None or not math.isfinite(value):
        return None
    if e.name == "sqrt":
        return const(e.type, math.sqrt(value)) if value > 0 else None
    whole: Any = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round}[e.name]
    return const(e.type, math.copysign(float(whole(value)), value)) if abs(value) < 2**53 else args[0]


@call_rule("strict_float")
def _strict(s: Simplifier, e: n.Call, args: tuple[n.Expr, ...]) -> n.Expr | None:
    a = args[0]
    return a if as_const(a) is not None or type(a) is n.Variable or type(a) is n.Call and a.name == "strict_float" else None


def is_pure(e: n.Expr) -> bool:
    """Whether dropping or repeating the evaluation of `e` goes unnoticed."""
    if not e.mask & n.Call.bit:
        return True
    stack, seen = [e], {e}
    while stack:
        one = stack.pop()
        if type(one) is n.Call and one.call_type in IMPURE:
            return False
        for k in one.children():
            if k.mask & n.Call.bit and k not in seen:
                seen.add(k)
                stack.append(k)
    return True


def reads_memory(e: n.Expr) -> bool:
    """Whether the value of `e` may depend on when it is evaluated."""
    if e.mask & n.Load.bit:
        return True
    if not e.mask & n.Call.bit:
        return False
    stack, seen = [e], {e}
    movable = (n.CallType.PureIntrinsic, n.CallType.PureExtern)
    while stack:
        one = stack.pop()
        if type(one) is n.Call and one.call_type not in movable:
            return True
        for k in one.children():
            if k not in seen:
                seen.add(k)
                stack.append(k)
    return False

