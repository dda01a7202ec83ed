"""Constant ranges of integer expressions: the numbers every value lies between, from types, loop ranges and the operations.

A range is `(low, high)`, inclusive, None for unknown. Found once per distinct node and set of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import nodes as n
from ..build import as_int
from ..traverse import nodes_of
from ..types import Type

if TYPE_CHECKING:
    from .simplify import Simplifier

Range = tuple[int | None, int | None]
UNKNOWN: Range = (None, None)
_LARGEST = 1 << 14  # factors below are those of indices: the smallest generator of random numbers in use multiplies by 16807


def type_range(t: Type) -> Range:
    """What the type alone says; signed types of 32 bits and more are left open, as if they were the integers."""
    if t.overflow_is_undefined() or not t.is_int_or_uint():
        return UNKNOWN
    return int(t.min_value()), int(t.max_value())


def fit(r: Range, t: Type) -> Range:
    """A range computed in unbounded integers, as a range of values of `t`: all of the type where it may have wrapped."""
    if t.overflow_is_undefined():  # what leaves it for certain is a hash, and wraps
        return UNKNOWN if r[0] is not None and r[0] < t.min_value() or r[1] is not None and r[1] > t.max_value() else r
    low, high = type_range(t)
    if low is None or high is None:
        return UNKNOWN
    return r if r[0] is not None and r[1] is not None and low <= r[0] and r[1] <= high else (low, high)


def union(r: Range, s: Range) -> Range:
    """A range holding both."""
    low = None if r[0] is None or s[0] is None else min(r[0], s[0])
    high = None if r[1] is None or s[1] is None else max(r[1], s[1])
    return low, high


def intersect(r: Range, s: Range) -> Range:
    """The range of values in both."""
    low = s[0] if r[0] is None else r[0] if s[0] is None else max(r[0], s[0])
    high = s[1] if r[1] is None else r[1] if s[1] is None else min(r[1], s[1])
    return low, high


def add(r: Range, s: Range) -> Range:
    """Sums."""
    return None if r[0] is None or s[0] is None else r[0] + s[0], None if r[1] is None or s[1] is None else r[1] + s[1]


def times(r: Range, factor: int) -> Range:
    """Multiples."""
    if not factor:
        return 0, 0
    low, high = (r[0], r[1]) if factor > 0 else (r[1], r[0])
    return None if low is None else low * factor, None if high is None else high * factor


def _product(r: Range, s: Range) -> Range:
    for x, y in ((r, s), (s, r)):
        if y[0] is not None and y[0] == y[1]:
            return times(x, y[0])
    if None in r or None in s:
        nonnegative = r[0] is not None and s[0] is not None and r[0] >= 0 and s[0] >= 0
        return (r[0] * s[0] if nonnegative else None, None)  # type: ignore[operator]
    corners = [x * y for x in r for y in s]  # type: ignore[operator]
    return min(corners), max(corners)


def _div(r: Range, s: Range) -> Range:
    if s[0] is not None and s[0] == s[1]:
        c = s[0]
        if c == 0:
            return 0, 0
        q = (None if r[0] is None else r[0] // abs(c), None if r[1] is None else r[1] // abs(c))
        return q if c > 0 else times(q, -1)
    if s[0] is not None and s[0] >= 0:  # towards zero as the divisor grows; x/0 is 0
        least = max(s[0], 1)
        most = None if s[1] is None else max(s[1], least)  # facts that exclude each other leave no range
        low = None if r[0] is None else r[0] // least if r[0] < 0 else 0 if most is None or s[0] == 0 else r[0] // most
        high = (
            None
            if r[1] is None
            else r[1] // least
            if r[1] >= 0
            else (0 if s[0] == 0 else -1)
            if most is None or s[0] == 0
            else r[1] // most
        )
        return low, high
    if r[0] is None or r[1] is None:
        return UNKNOWN
    size = max(abs(r[0]), abs(r[1]))
    return -size, size


def _mod(r: Range, s: Range) -> Range:
    most = None if s[0] is None or s[1] is None else max(abs(s[0]), abs(s[1]), 1) - 1
    if r[0] is not None and r[0] >= 0:
        if r[1] is not None and s[0] is not None and s[0] > r[1]:
            return r
        most = r[1] if most is None else most if r[1] is None else min(most, r[1])
    return 0, most


def _min(r: Range, s: Range) -> Range:
    low = None if r[0] is None or s[0] is None else min(r[0], s[0])
    return low, s[1] if r[1] is None else r[1] if s[1] is None else min(r[1], s[1])


def _max(r: Range, s: Range) -> Range:
    high = None if r[1] is None or s[1] is None else max(r[1], s[1])
    return s[0] if r[0] is None else r[0] if s[0] is None else max(r[0], s[0]), high


def _binary(op: Callable[[Range, Range], Range]) -> Callable[[Simplifier, Any], Range]:
    return lambda s, e: fit(op(s.range(e.a), s.range(e.b)), e.type)


def is_large(factor: int) -> bool:
    """Whether a factor is that of a hash or a generator of random numbers rather than of an index: such products wrap on purpose."""
    return not -_LARGEST < factor < _LARGEST


def strays(s: Simplifier, t: Type, terms: Mapping[n.Expr, int], constant: int = 0) -> bool:
    """Whether a sum that nobody wrote may overflow: one of values from memory, which may be as large as their type; indices are not."""
    first, last = int(t.min_value()), int(t.max_value())
    low = high = constant
    for e, c in terms.items():
        least, most = s.range(e)
        ends = c * (first if least is None else least), c * (last if most is None else most)
        low += min(ends)
        high += max(ends)
    return not first <= low <= high <= last and any(map(_is_data, terms))


def _is_data(e: n.Expr) -> bool:
    """Whether a value reads memory."""
    if e.mask & n.Load.bit or not e.mask & n.Call.bit:
        return bool(e.mask & n.Load.bit)
    return any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))


def wraps(s: Simplifier, e: n.Expr, factor: int) -> bool:
    """Whether `e * factor` is the product of a hash, which leaves a signed type on purpose: for certain, or by a factor no index has."""
    t = e.type
    if not t.overflow_is_undefined() or not is_large(factor):
        return False
    low, high = times(s.range(e), factor)
    if low is None or high is None:
        return abs(factor) >> (t.bits() - 8) > 0
    return low < t.min_value() or high > t.max_value()


def _mul(s: Simplifier, e: n.Mul) -> Range:
    for x, y in ((e.a, e.b), (e.b, e.a)):
        factor = as_int(y)
        if factor is not None and wraps(s, x, factor):
            return UNKNOWN
    return fit(_product(s.range(e.a), s.range(e.b)), e.type)


def _choice(op: Callable[[Range, Range], Range]) -> Callable[[Simplifier, Any], Range]:
    return lambda s, e: op(s.range(e.a), s.range(e.b))


def _variable(s: Simplifier, e: n.Variable) -> Range:
    known = s.known_range(e.name)
    return type_range(e.type) if known is None else intersect(known, type_range(e.type))


def _cast(s: Simplifier, e: n.Cast) -> Range:
    if not e.value.type.is_int_or_uint():
        return type_range(e.type)
    if e.type.is_bool():
        r = s.range(e.value)
        return r if r in ((0, 0), (1, 1), (0, 1)) else (0, 1)
    r = s.range(e.value)
    if e.type.overflow_is_undefined() and e.value.type.is_uint() and e.value.type.bits() >= e.type.bits():
        low, high = r
        return r if low is not None and high is not None and high <= e.type.max_value() else UNKNOWN
    if e.type.overflow_is_undefined() and e.value.type.bits() > e.type.bits():
        low, high = r
        inside = low is not None and high is not None and e.type.min_value() <= low and high <= e.type.max_value()
        return r if inside else UNKNOWN
    return fit(r, e.type)


def _ramp(s: Simplifier, e: n.Ramp) -> Range:
    step = s.range(e.stride)
    return fit(add(s.range(e.base), union((0, 0), times(step, e.lanes - 1))), e.type)


def _let(s: Simplifier, e: n.Let) -> Range:
    s.note_range(e.name, s.range(e.value))
    return s.range(e.body)


def _reduce(s: Simplifier, e: n.VectorReduce) -> Range:
    if e.op in (n.ReduceOp.Min, n.ReduceOp.Max):
        return s.range(e.value)
    if e.op is n.ReduceOp.Add:
        return fit(times(s.range(e.value), e.value.type.lanes() // e.lanes), e.type)
    return type_range(e.type)


def _shuffle(s: Simplifier, e: n.Shuffle) -> Range:
    r = s.range(e.vectors[0])
    for v in e.vectors[1:]:
        r = union(r, s.range(v))
    return r


def _abs(s: Simplifier, e: n.Call) -> Range:
    low, high = s.range(e.args[0])
    if low is None or high is None:
        return 0, None if e.type.bits() >= 32 else int(e.type.max_value())
    return _distance((low, high))


def _bitwise_and(s: Simplifier, e: n.Call) -> Range:
    highs = [r[1] for r in map(s.range, e.args) if r[0] is not None and r[0] >= 0]
    if not highs:
        return type_range(e.type)
    known = [h for h in highs if h is not None]
    return 0, min(known) if known else None


def _shift(s: Simplifier, e: n.Call) -> Range:
    amount = as_int(e.args[1])
    if amount is None or not 0 <= amount < e.type.bits():
        return type_range(e.type)
    low, high = s.range(e.args[0])
    if e.name == "shift_right":
        return None if low is None else low >> amount, None if high is None else high >> amount
    return fit(times((low, high), 1 << amount), e.type)


def _promise(s: Simplifier, e: n.Call) -> Range:
    value, low, high = (s.range(a) for a in e.args)
    return intersect(value, (low[0], high[1]))


def _bits(s: Simplifier, e: n.Call) -> Range:
    return 0, e.args[0].type.bits()


def _saturate(s: Simplifier, e: n.Call) -> Range:
    r = s.range(e.args[0])
    low, high = int(e.type.min_value()), int(e.type.max_value())
    return (max(low, min(high, r[0])) if r[0] is not None else low), (max(low, min(high, r[1])) if r[1] is not None else high)


def _sub(r: Range, s: Range) -> Range:
    return add(r, times(s, -1))


def _clamp(r: Range, t: Type) -> Range:
    """A range computed in unbounded integers and then saturated."""
    low, high = int(t.min_value()), int(t.max_value())
    return (low if r[0] is None else max(low, min(high, r[0]))), (high if r[1] is None else max(low, min(high, r[1])))


def _shifted(r: Range, amount: Range, rounding: bool) -> Range:
    """r >> amount for an amount that is not negative."""
    half = 1 << amount[0] >> 1 if rounding and amount[0] is not None and amount[0] == amount[1] else 0
    ends = [None if v is None else [(v + half) >> a for a in (amount[0] or 0, 80 if amount[1] is None else amount[1])] for v in r]
    return None if ends[0] is None else min(ends[0]), None if ends[1] is None else max(ends[1]) + (rounding and amount[0] != amount[1])


def _by(rounding: bool, saturating: bool) -> Callable[..., Range]:
    """A product, or one number, shifted right."""
    def rule(t: Type, *args: Range) -> Range:
        *factors, amount = args
        if amount[0] is None or amount[0] < 0:
            return type_range(t)
        out = _shifted(_product(*factors) if len(factors) > 1 else factors[0], amount, rounding)
        return _clamp(out, t) if saturating else fit(out, t)
    return rule


def _halved(r: Range) -> Range:
    return None if r[0] is None else r[0] >> 1, None if r[1] is None else r[1] >> 1


def _distance(r: Range) -> Range:
    low, high = r
    if low is None or high is None:
        return 0, None
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


# The fixed-point functions: their result type and the ranges of their arguments give the range of the result.
FIXED_POINT: dict[str, Callable[..., Range]] = {
    "absd": lambda t, r, s: intersect(_distance(_sub(r, s)), type_range(t)),
    **dict.fromkeys(("widening_add", "widen_right_add"), lambda t, r, s: fit(add(r, s), t)),
    **dict.fromkeys(("widening_sub", "widen_right_sub"), lambda t, r, s: fit(_sub(r, s), t)),
    **dict.fromkeys(("widening_mul", "widen_right_mul"), lambda t, r, s: fit(_product(r, s), t)),
    "saturating_add": lambda t, r, s: _clamp(add(r, s), t), "saturating_sub": lambda t, r, s: _clamp(_sub(r, s), t),
    "halving_add": lambda t, r, s: fit(_halved(add(r, s)), t), "halving_sub": lambda t, r, s: fit(_halved(_sub(r, s)), t),
    "rounding_halving_add": lambda t, r, s: fit(_halved(add(add(r, s), (1, 1))), t),
    "mul_shift_right": _by(False, True), "rounding_mul_shift_right": _by(True, True),
    "widening_shift_right": _by(False, False), "rounding_shift_right": _by(True, False)}


_CALLS: dict[str, Callable[[Simplifier, n.Call], Range]] = {
    **{name: (lambda s, e: FIXED_POINT[e.name](e.type, *map(s.range, e.args))) for name in FIXED_POINT},
    "likely": lambda s, e: s.range(e.args[0]), "likely_if_innermost": lambda s, e: s.range(e.args[0]),
    "if_then_else": lambda s, e: union(s.range(e.args[1]), s.range(e.args[2])) if len(e.args) == 3 else type_range(e.type),
    "unsafe_promise_clamped": _promise, "abs": _abs, "bitwise_and": _bitwise_and, "shift_left": _shift, "shift_right": _shift,
    "popcount": _bits, "count_leading_zeros": _bits, "count_trailing_zeros": _bits, "saturating_cast": _saturate}


def _call(s: Simplifier, e: n.Call) -> Range:
    if e.call_type is n.CallType.PureIntrinsic:
        rule = _CALLS.get(e.name)
        if rule is not None:
            return rule(s, e)
    return type_range(e.type)


def _imm(s: Simplifier, e: Any) -> Range:
    return e.value, e.value


RANGES: dict[type[n.Node], Callable[[Simplifier, Any], Range]] = {
    n.IntImm: _imm, n.UIntImm: _imm, n.Variable: _variable,
    n.Add: _binary(add), n.Sub: _binary(lambda r, s: add(r, times(s, -1))), n.Mul: _mul,
    n.Div: _binary(_div), n.Mod: _binary(_mod), n.Min: _choice(_min), n.Max: _choice(_max),
    n.Select: lambda s, e: union(s.range(e.true_value), s.range(e.false_value)),
    n.Cast: _cast, n.Broadcast: lambda s, e: s.range(e.value), n.Ramp: _ramp, n.Let: _let, n.Shuffle: _shuffle,
    n.VectorReduce: _reduce, n.Call: _call}


def range_of(s: Simplifier, e: n.Expr) -> Range:
    """The constant range of a whole expression (not memoised; `Simplifier.range` is)."""
    rule = RANGES.get(type(e))
    return type_range(e.type) if rule is None or not e.type.is_int_or_uint() else rule(s, e)
