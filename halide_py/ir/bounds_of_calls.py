"""The interval of each kind of call from those of its arguments. Source: Halide's src/Bounds.cpp for what is considered bounded."""

from __future__ import annotations

from collections.abc import Callable

from . import nodes as n
from .bounds import RULES, Bounds
from .bounds_rules import sign
from .build import as_int, const
from .interval_type import Interval, type_interval
from .simplify.ranges import FIXED_POINT
from .traverse import nodes_of
from .types import Type


def _first(b: Bounds, e: n.Call) -> Interval:
    return b.bounds(e.args[0])


def _second(b: Bounds, e: n.Call) -> Interval:
    return b.bounds(e.args[1])


def _promise(b: Bounds, e: n.Call) -> Interval:
    x, low, high = map(b.bounds, e.args)
    return Interval(low.min if x.min is None else x.min if low.min is None else b.simple(n.Max(x.min, low.min)),
                    high.max if x.max is None else x.max if high.max is None else b.simple(n.Min(x.max, high.max)))


def _values(b: Bounds, e: n.Call) -> Interval:
    """if_then_else: values follow conditions, a last one may stand alone; mux: all after the first."""
    if e.name == "mux":
        return b.join(map(b.bounds, e.args[1:]))
    chosen = [e.args[i] for i in range(1, len(e.args), 2)] + ([e.args[-1]] if len(e.args) % 2 else [])
    return b.join(map(b.bounds, chosen))


def _any(b: Bounds, e: n.Call) -> Interval:
    """gather, scatter: each of the arguments in turn."""
    return b.join(map(b.bounds, e.args))


def _abs(b: Bounds, e: n.Call) -> Interval:
    x = b.bounds(e.args[0])
    t, source = e.type.element_of(), e.args[0].type.element_of()
    zero = const(t, 0)
    if not x.is_bounded():
        return Interval(zero, const(t, t.max_value() // 2 + 1) if t.is_int_or_uint() and t.bits() < 32 else None)

    def size(p: n.Expr | None) -> n.Expr:
        assert p is not None
        return n.Cast(t, n.Max(p, n.Sub(const(source, 0), p))) if source.bits() >= 32 else n.Call(t, "abs", (p,), e.call_type)

    s = sign(b, x)
    if s:
        low, high = (x.min, x.max) if s > 0 else (x.max, x.min)
        return Interval(b.simple(size(low)), b.simple(size(high)))
    return Interval(zero, b.simple(n.Max(size(x.min), size(x.max))))


def _lerp(b: Bounds, e: n.Call) -> Interval:
    return b.join([b.bounds(e.args[0]), b.bounds(e.args[1])])


def _masked(b: Bounds, name: str, x: Interval, mask: int, t: Type) -> Interval:
    """`x` with some bits kept or set by a constant: what the bits of the mask are worth is all that it can move. With the last bits
    cleared, or set, it is rounded down, or up to just before the next multiple."""
    if mask < 0 and name == "bitwise_or":
        return b.constant(t, (mask, -1))
    worth = mask if mask >= 0 else ~mask
    if worth & (worth + 1) == 0:
        size, rest = const(t, worth + 1), const(t, max(mask, 0))
        return b.monotone(x, lambda end: n.Add(n.Mul(n.Div(end, size), size), rest))
    down, up = (worth, 0) if name == "bitwise_and" else (0, worth)
    low = None if x.min is None else b.simple(n.Sub(x.min, const(t, down)))
    high = None if x.max is None else b.simple(n.Add(x.max, const(t, up)))
    return Interval(low, high)


def _flipped(b: Bounds, x: Interval, mask: int, t: Type) -> Interval:
    """`x` with some bits flipped: it moves by no more than they are worth, and stays in its block of a power of two."""
    worth = mask if mask >= 0 else ~mask
    last = (1 << worth.bit_length()) - 1
    if last >= t.max_value():
        return type_interval(t)
    size = const(t, last + 1)

    def limit(end: n.Expr, place: int, move: int, nearer: type[n.Max | n.Min]) -> n.Expr:
        block = n.Add(n.Mul(n.Div(end, size), size), const(t, place))
        return b.simple(block if worth == last else nearer(block, n.Add(end, const(t, move))))

    low = None if x.min is None else limit(x.min, 0, -worth, n.Max)
    high = None if x.max is None else limit(x.max, last, worth, n.Min)
    return _complemented(b, Interval(low, high), t) if mask < 0 else Interval(low, high)


def _complemented(b: Bounds, x: Interval, t: Type) -> Interval:
    last = const(t, -1 if t.is_int() else t.max_value())
    low, high = (None if end is None else b.simple(n.Sub(last, end)) for end in (x.max, x.min))
    return Interval(low, high)


def _not(b: Bounds, e: n.Call) -> Interval:
    return _complemented(b, b.bounds(e.args[0]), e.type.element_of())


def _bitwise(b: Bounds, e: n.Call) -> Interval:
    t = e.type.element_of()
    x, y = b.bounds(e.args[0]), b.bounds(e.args[1])
    mask = as_int(e.args[1])
    if mask is not None and t.overflow_is_undefined() and (mask < 0 or e.name != "bitwise_and"):
        moved = _flipped(b, x, mask, t) if e.name == "bitwise_xor" else _masked(b, e.name, x, mask, t)
        return moved.intersection(_of_signs(b, e.name, x, y, t))
    return _of_signs(b, e.name, x, y, t)


def _of_signs(b: Bounds, name: str, x: Interval, y: Interval, t: Type) -> Interval:
    """What the signs of two numbers, and their lengths in bits, say of their bits together."""
    sides = [i for i in (x, y) if b.nonnegative(i)]
    zero = const(t, 0)
    if name == "bitwise_and" and sides:
        highs = [i.max for i in sides if i.max is not None]
        if not highs:
            return Interval(zero, None)
        return Interval(zero, highs[0] if len(highs) == 1 else b.simple(n.Min(highs[0], highs[1])))
    if len(sides) == 2:
        tops = [r[1] for r in (b.range(x), b.range(y))]
        if None not in tops:
            return Interval(zero, const(t, (1 << max(int(k).bit_length() for k in tops if k is not None)) - 1))
        return Interval(zero, type_interval(t).max)
    return type_interval(t)


def _shift(b: Bounds, e: n.Call) -> Interval:
    """By an amount that is not constant: a right shift of what is not negative shrinks it."""
    x, amount = b.bounds(e.args[0]), b.bounds(e.args[1])
    if e.name == "shift_right" and b.nonnegative(amount):
        if b.nonnegative(x):
            return Interval(const(e.type.element_of(), 0), x.max)
        if x.is_bounded():
            zero = const(e.type.element_of(), 0)
            return Interval(b.simple(n.Min(x.min, zero)), b.simple(n.Max(x.max, zero)))  # type: ignore[arg-type]
    return type_interval(e.type)


def _saturate(b: Bounds, e: n.Call) -> Interval:
    t, source = e.type.element_of(), e.args[0].type.element_of()
    x = b.bounds(e.args[0])
    if not source.is_int_or_uint() or not t.is_int_or_uint():
        return type_interval(t)
    out = type_interval(t)
    low, high = b.range(x)
    if low is not None and low >= t.min_value() and x.min is not None and low <= t.max_value():
        out = Interval(b.simple(n.Call(t, e.name, (x.min,), e.call_type)), out.max)
    if high is not None and high <= t.max_value() and x.max is not None and high >= t.min_value():
        out = Interval(out.min, b.simple(n.Call(t, e.name, (x.max,), e.call_type)))
    return out


def _monotone_call(b: Bounds, e: n.Call) -> Interval:
    if not e.type.element_of().is_float():
        return type_interval(e.type)
    t = e.type.element_of()
    return b.monotone(b.bounds(e.args[0]), lambda p: n.Call(t, e.name, (p,), e.call_type, e.func))


def _unit(b: Bounds, e: n.Call) -> Interval:
    t = e.type.element_of()
    return Interval(const(t, -1), const(t, 1))


def _fixed_point(b: Bounds, e: n.Call) -> Interval:
    """Of numbers with constant ranges, which narrow types have; the distance of int32 is symbolic too."""
    t, parts = e.type.element_of(), [b.bounds(a) for a in e.args]
    r = FIXED_POINT[e.name](t, *map(b.range, parts))
    x, y = parts[:2]
    if e.name == "absd" and r[1] == t.max_value() and e.args[0].type.overflow_is_undefined() and x.is_bounded() and y.is_bounded():
        largest = b.simple(n.Max(n.Sub(x.max, y.min), n.Sub(y.max, x.min)))  # type: ignore[arg-type]
        return Interval(const(t, r[0] or 0), b.simple(n.Cast(t, largest)))
    if t.bits() < 32:
        return b.constant(t, r)
    low, high = (None if v is None or abs(v) >= t.max_value() else v for v in r)  # the ends of a wide type are no limits
    return b.constant(t, (low, high))


def _counted(b: Bounds, e: n.Call) -> Interval:
    return Interval(const(e.type.element_of(), 0), const(e.type.element_of(), e.args[0].type.bits()))


_CALLS: dict[str, Callable[[Bounds, n.Call], Interval]] = {
    **dict.fromkeys(FIXED_POINT, _fixed_point),
    "likely": _first, "likely_if_innermost": _first, "strict_float": _first, "memoize_tag": _first, "print": _first,
    "return_second": _second, "require": _second, "print_when": _second, "unsafe_promise_clamped": _promise,
    "if_then_else": _values, "mux": _values, "gather": _any, "scatter": _any, "abs": _abs, "lerp": _lerp,
    "bitwise_and": _bitwise, "bitwise_or": _bitwise, "bitwise_xor": _bitwise, "bitwise_not": _not,
    "shift_left": _shift, "shift_right": _shift,
    "saturating_cast": _saturate, "popcount": _counted, "count_leading_zeros": _counted, "count_trailing_zeros": _counted,
    "floor": _monotone_call, "ceil": _monotone_call, "round": _monotone_call, "trunc": _monotone_call, "sqrt": _monotone_call,
    "exp": _monotone_call, "log": _monotone_call, "tanh": _monotone_call, "atan": _monotone_call, "sin": _unit, "cos": _unit}


def _call(b: Bounds, e: n.Call) -> Interval:
    if e.call_type is n.CallType.Halide:
        found = b.func_values.get((e.name, e.value_index))
        return type_interval(e.type) if found is None else found
    if e.call_type is n.CallType.Image:
        return Interval(e, e) if _is_given_element(e) else type_interval(e.type)
    builtin = e.call_type is not n.CallType.PureExtern or getattr(e.func, "builtin", False)
    rule = _CALLS.get(e.name) if builtin and e.call_type is not n.CallType.Extern else None
    if rule is not None:
        return rule(b, e)
    if e.call_type is n.CallType.PureIntrinsic and e.type.is_scalar() and not b.varies(e) and _fixed(e):
        return Interval(e, e)
    return type_interval(e.type)


def _is_given_element(e: n.Call) -> bool:
    """Whether a read of an image is of one element for the whole pipeline, as `offset[0]` is: at constants and parameters."""
    leaves = nodes_of(e.args, (n.Variable, n.Call, n.Load, n.Let))
    return e.type.is_scalar() and all(type(leaf) is n.Variable and leaf.param is not None for leaf in leaves)


def _fixed(e: n.Expr) -> bool:
    """Whether an expression reads no memory: parameters and arithmetic only."""
    stack, seen = [e], {e}
    while stack:
        one = stack.pop()
        if (
            type(one) in (n.Load, n.Let)
            or type(one) is n.Call
            and (one.call_type is not n.CallType.PureIntrinsic or one.name in ("undef", "random"))
        ):
            return False
        for k in one.children():
            if k not in seen:
                seen.add(k)
                stack.append(k)
    return True


RULES[n.Call] = _call
