"""A tiny evaluator of Exprs, one value (or list of lanes) at a time: the meaning the simplifier must keep. Raises Overflow where signed
arithmetic of 32 or 64 bits leaves its type, which the simplifier may assume away."""

from __future__ import annotations

import math
from typing import Any

from halide_py.ir import nodes as n
from halide_py.ir.build import euclid_div, euclid_mod, round_float, wrap
from halide_py.ir.types import Type


class Overflow(Exception):
    """A signed 32 or 64-bit result that does not fit."""


def _fit(v: int, t: Type) -> int:
    if t.overflow_is_undefined() and not t.min_value() <= v <= t.max_value():
        raise Overflow
    return wrap(v, t)


def _float(kind: type[n.Node], x: float, y: float, t: Type) -> float:
    if kind is n.Div:
        if y == 0:
            r = math.nan if x == 0 or x != x else math.copysign(math.inf, math.copysign(1, x) * math.copysign(1, y))
        else:
            r = x / y
    elif kind is n.Mod:
        if y == 0 or not math.isfinite(x) or not math.isfinite(y):
            raise Overflow
        r = x - round_float(y * math.floor(round_float(x / y, t)), t)
    else:
        r = {n.Add: lambda: x + y, n.Sub: lambda: x - y, n.Mul: lambda: x * y, n.Min: lambda: min(x, y), n.Max: lambda: max(x, y)}[kind]()
    return round_float(r, t)


_INT: dict[type[n.Node], Any] = {
    n.Add: lambda x, y: x + y, n.Sub: lambda x, y: x - y, n.Mul: lambda x, y: x * y, n.Div: euclid_div, n.Mod: euclid_mod,
    n.Min: min, n.Max: max, n.And: lambda x, y: x & y, n.Or: lambda x, y: x | y}
_CMP: dict[type[n.Node], Any] = {
    n.EQ: lambda x, y: x == y, n.NE: lambda x, y: x != y, n.LT: lambda x, y: x < y, n.LE: lambda x, y: x <= y,
    n.GT: lambda x, y: x > y, n.GE: lambda x, y: x >= y}


def _binary(e: Any, x: Any, y: Any) -> Any:
    t = e.a.type.element_of()
    if type(e) in _CMP:
        return int(_CMP[type(e)](x, y))
    if t.is_float():
        return _float(type(e), x, y, t)
    return _fit(_INT[type(e)](x, y), t)


def _cast(t: Type, source: Type, x: Any) -> Any:
    t, source = t.element_of(), source.element_of()
    if t.is_float():
        return round_float(float(x), t)
    if source.is_float():
        if not math.isfinite(x) or not t.can_represent_value(math.trunc(x)):
            raise Overflow
        return math.trunc(x)
    if t.overflow_is_undefined():
        return _fit(x, t) if source.bits() > t.bits() or source.is_uint() else x
    return wrap(x, t)


def _call(e: n.Call, a: list[Any]) -> Any:
    t = e.type.element_of()
    s = e.args[0].type.element_of()
    name = e.name
    if name in ("likely", "likely_if_innermost", "strict_float"):
        return a[0]
    if name == "unsafe_promise_clamped":
        if not a[1] <= a[0] <= a[2]:
            raise Overflow
        return a[0]
    if name == "abs":
        return abs(a[0]) if t.is_float() else wrap(abs(a[0]), t)
    if name == "absd":
        return wrap(abs(a[0] - a[1]), t)
    if name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        return wrap({"bitwise_and": a[0] & a[-1], "bitwise_or": a[0] | a[-1], "bitwise_xor": a[0] ^ a[-1]}[name], t)
    if name == "bitwise_not":
        return wrap(~a[0], t)
    if name in ("shift_left", "shift_right"):
        left = (name == "shift_left") == (a[1] >= 0)
        by = abs(a[1])
        if by >= t.bits():
            raise Overflow
        return _fit(a[0] << by, t) if left else a[0] >> by
    if name == "if_then_else":
        return a[1] if a[0] else a[2]
    if name == "mux":
        return a[1 + a[0]] if 0 <= a[0] < len(a) - 1 else a[-1]
    if name == "popcount":
        return bin(a[0] & ((1 << s.bits()) - 1)).count("1")
    if name == "count_leading_zeros":
        return s.bits() - (a[0] & ((1 << s.bits()) - 1)).bit_length()
    if name == "saturating_cast":
        return max(t.min_value(), min(t.max_value(), a[0]))
    raise KeyError(name)


def evaluate(e: n.Expr, env: dict[str, Any]) -> Any:
    """The value of `e`; a list for vectors. `env` gives variables and, by (name, index), elements of memory."""
    memo: dict[n.Expr, Any] = {}

    def lanes(v: Any, count: int) -> list[Any]:
        return v if isinstance(v, list) else [v] * count

    def zipped(e: n.Expr, f: Any, *values: Any) -> Any:
        if e.type.is_scalar():
            return f(*values)
        count = e.type.lanes()
        return [f(*x) for x in zip(*(lanes(v, count) for v in values))]

    def rec(e: Any) -> Any:
        if e in memo:
            return memo[e]
        k = type(e)
        if k in (n.IntImm, n.UIntImm, n.FloatImm):
            r: Any = e.value
        elif k is n.Variable:
            r = env[e.name]
        elif k is n.Cast:
            r = zipped(e, lambda x: _cast(e.type, e.value.type, x), rec(e.value))
        elif k is n.Not:
            r = zipped(e, lambda x: 1 - x, rec(e.a))
        elif k is n.Select:
            r = zipped(e, lambda c, x, y: x if c else y, rec(e.condition), rec(e.true_value), rec(e.false_value))
        elif k is n.Broadcast:
            v = rec(e.value)
            r = (v if isinstance(v, list) else [v]) * e.lanes
        elif k is n.Ramp:
            b, s = rec(e.base), rec(e.stride)
            b, s = (b if isinstance(b, list) else [b]), (s if isinstance(s, list) else [s])
            t = e.type.element_of()
            r = [_fit(x + y * i, t) for i in range(e.lanes) for x, y in zip(b, s)]
        elif k is n.Let:
            env[e.name] = rec(e.value)
            r = evaluate(e.body, env)
        elif k is n.Shuffle:
            flat = [x for v in e.vectors for x in lanes(rec(v), 1)]
            r = [flat[i] for i in e.indices]
            r = r if e.type.is_vector() else r[0]
        elif k is n.VectorReduce:
            v = rec(e.value)
            size = len(v) // e.lanes
            f = {"add": n.Add, "mul": n.Mul, "min": n.Min, "max": n.Max, "and": n.And, "or": n.Or}[e.op.value]
            out = []
            t = e.type.element_of()
            for i in range(e.lanes):
                x = v[i * size]
                for y in v[i * size + 1:(i + 1) * size]:
                    x = _float(f, x, y, t) if t.is_float() else _fit(_INT[f](x, y), t)
                out.append(x)
            r = out if e.type.is_vector() else out[0]
        elif k is n.Call:
            r = zipped(e, lambda *a: _call(e, list(a)), *[rec(a) for a in e.args])
        else:
            r = zipped(e, lambda x, y: _binary(e, x, y), rec(e.a), rec(e.b))
        memo[e] = r
        return r

    return rec(e)


def same(x: Any, y: Any) -> bool:
    """Equal values; NaNs are alike, zeros are told apart by sign."""
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return x != x and y != y or x == y and math.copysign(1, x) == math.copysign(1, y)
    return bool(x == y)
