"""Intervals hold every value; what Halide bounds is bounded; correlated terms cancel."""

from __future__ import annotations

import itertools
import random

import pytest
from evaluate import Overflow, evaluate
from random_exprs import FLOATS, INTS, Maker, environment

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.interval import Interval, bounds_of_expr
from halide_py.ir.intrinsics import intrinsic, math_call
from halide_py.ir.printer import to_text
from halide_py.ir.simplify import constant_bound
from halide_py.ir.simplify.ranges import FIXED_POINT
from halide_py.ir.traverse import free_variables
from halide_py.ir.types import BOOL, INT32, Float, Int, Type, UInt
from halide_py.reference import scalar

K = b.i32
X, Y, Z = (n.Variable(INT32, v) for v in "xyz")
A, S, M, Q, R = n.Add, n.Sub, n.Mul, n.Div, n.Mod
LOW, HIGH = n.Variable(INT32, "a"), n.Variable(INT32, "b")
SCOPE = {"x": Interval(LOW, HIGH), "y": Interval(K(0), K(7)), "e": Interval.everything()}
E_ = n.Variable(INT32, "e")


def image(t: Type, *args: n.Expr) -> n.Expr:
    return n.Call(t, "im", args, n.CallType.Image)


def text(i: Interval) -> str:
    return f"[{'-inf' if i.min is None else to_text(i.min)}, {'inf' if i.max is None else to_text(i.max)}]"


CASES: list[tuple[n.Expr, str]] = [
    # Numbers that leave int32 are no ends: the sum may wrap.
    (A(M(n.Cast(INT32, image(Int(16), X)), K(40000)), n.Cast(INT32, image(Int(16), Y))), "[-1310752768, 1310712767]"),
    (A(M(n.Cast(INT32, image(Int(16), X)), K(50000)), M(n.Cast(INT32, image(Int(16), Y)), K(50000))), "[-inf, inf]"),
    (M(M(n.Cast(INT32, image(Int(16), X)), n.Cast(INT32, image(Int(16), Y))), K(4)), "[-inf, inf]"),
    (n.Cast(Int(16), Q(M(M(n.Cast(INT32, image(Int(16), X)), n.Cast(INT32, image(Int(16), Y))), K(4)), K(256))), "[(int16)-32768, (int16)32767]"),
    (X, "[a, b]"),
    (Z, "[z, z]"),
    (S(A(M(X, K(2)), K(1)), M(X, K(2))), "[1, 1]"),
    (A(M(X, K(8)), Y), "[(a*8), ((b*8) + 7)]"),
    (S(Z, X), "[(z - b), (z - a)]"),
    (S(X, M(Q(X, K(8)), K(8))), "[0, 7]"),
    (Q(X, K(2)), "[(a/2), (b/2)]"),
    (R(E_, K(8)), "[0, 7]"),
    (R(E_, Z), "[0, (max(max(z, 0 - z), 1) + -1)]"),
    (M(Y, Z), "[(min(z, 0)*7), (max(z, 0)*7)]"),
    (n.Max(n.Min(E_, K(7)), K(0)), "[0, 7]"),
    (n.Min(E_, Z), "[-inf, z]"),
    (n.Select(n.LT(E_, K(3)), X, Z), "[min(a, z), max(b, z)]"),
    (n.Select(n.LT(E_, K(0)), K(0), n.Select(n.LT(K(9), E_), K(9), E_)), "[0, 9]"),  # a clamp, spelled out
    (n.Select(n.And(n.LE(K(2), E_), n.LT(E_, K(5))), M(E_, K(2)), K(7)), "[4, 8]"),
    (n.Select(n.And(n.GE(E_, K(2)), n.GT(K(5), E_)), M(E_, K(2)), K(7)), "[4, 8]"),
    (n.Ramp(X, K(2), 4), "[a, (b + 6)]"),
    (n.Broadcast(X, 4), "[a, b]"),
    (image(UInt(8), X), "[(uint8)0, (uint8)255]"),
    (n.Cast(INT32, image(UInt(8), X)), "[0, 255]"),
    (n.Cast(INT32, image(Int(8), X)), "[-128, 127]"),
    (image(INT32, X), "[-inf, inf]"),
    (image(UInt(32), X), "[(uint32)0, inf]"),
    (n.Cast(INT32, n.Min(image(UInt(32), X), b.const(UInt(32), 9))), "[0, 9]"),
    (n.Cast(INT32, intrinsic("shift_right", UInt(32), image(UInt(32), X), b.const(UInt(32), 29))), "[0, 7]"),
    (A(image(UInt(8), X), b.const(UInt(8), 1)), "[(uint8)0, (uint8)255]"),
    (A(n.Cast(UInt(16), image(UInt(8), X)), b.const(UInt(16), 1)), "[(uint16)1, (uint16)256]"),
    (n.Cast(UInt(8), Y), "[(uint8)0, (uint8)7]"),
    (n.Cast(UInt(8), X), "[(uint8)0, (uint8)255]"),
    (intrinsic("bitwise_and", INT32, E_, K(15)), "[0, 15]"),
    (intrinsic("bitwise_and", INT32, X, K(-4)), "[((a/4)*4), ((b/4)*4)]"),
    (intrinsic("bitwise_or", INT32, X, K(7)), "[(((a/8)*8) + 7), (((b/8)*8) + 7)]"),
    (intrinsic("bitwise_and", INT32, X, K(-6)), "[(a + -5), b]"),
    (intrinsic("bitwise_or", INT32, X, K(6)), "[a, (b + 6)]"),
    (intrinsic("bitwise_or", INT32, E_, K(-6)), "[-6, -1]"),
    (intrinsic("bitwise_xor", INT32, X, K(5)), "[max((a/8)*8, a + -5), (min((b/8)*8, b + -2) + 7)]"),
    (intrinsic("bitwise_xor", INT32, X, K(7)), "[((a/8)*8), (((b/8)*8) + 7)]"),
    (intrinsic("bitwise_not", INT32, X), "[(-1 - b), (-1 - a)]"),
    (intrinsic("bitwise_not", UInt(8), n.Cast(UInt(8), Y)), "[(uint8)248, (uint8)255]"),
    (intrinsic("shift_right", UInt(8), image(UInt(8), X), b.const(UInt(8), 4)), "[(uint8)0, (uint8)15]"),
    (intrinsic("likely", INT32, X), "[a, b]"),
    (intrinsic("unsafe_promise_clamped", INT32, E_, K(0), Z), "[0, z]"),
    (intrinsic("if_then_else", INT32, n.LT(E_, K(2)), X, Z), "[min(a, z), max(b, z)]"),
    (intrinsic("abs", UInt(32), Y), "[(uint32)0, (uint32)7]"),
    (intrinsic("absd", UInt(32), X, K(4)), "[(uint32)0, uint32(max(b, 8 - a) + -4)]"),
    (n.Cast(INT32, math_call("floor", M(n.Cast(Float(32), Y), b.const(Float(32), 0.5)))), "[0, 3]"),
    (n.LT(E_, K(2)), "[(uint1)0, (uint1)1]"),
    (n.Let("t", A(X, K(1)), M(n.Variable(INT32, "t"), K(2))), "[((a*2) + 2), ((b*2) + 2)]"),
    (n.Call(INT32, "g", (X,), n.CallType.Halide), "[3, z]"),
    (n.Call(UInt(16), "h", (X,), n.CallType.Halide), "[(uint16)0, (uint16)65535]"),
    (n.VectorReduce(n.ReduceOp.Max, n.Ramp(Y, K(1), 4), 1), "[0, 10]"),
]


@pytest.mark.parametrize("e, expected", CASES, ids=[f"{i}" for i in range(len(CASES))])
def test_bounds(e: n.Expr, expected: str) -> None:
    assert text(bounds_of_expr(e, SCOPE, {("g", 0): Interval(K(3), Z)})) == expected


@pytest.mark.parametrize("name", sorted(FIXED_POINT))
def test_fixed_point_values_lie_inside(name: str) -> None:
    """Every value for arguments between random numbers lies in the interval; both ends are reached where the result is monotone."""
    rng = random.Random(name)
    reached = 0
    for _ in range(60):
        t = rng.choice([UInt(8), Int(8), UInt(16), Int(16)][:2 if name == "widen_right_mul" else 4])  # int32 overflows
        wide = t.with_bits(2 * t.bits())
        types = [wide if name.startswith("widen_right") else t, t] + [UInt(t.bits())] * ("mul_shift_right" in name)
        if "shift_right" in name and len(types) == 2:
            types[1] = UInt(t.bits())
        result = {"absd": UInt(t.bits()), "widening_sub": Int(wide.bits())}.get(name, wide if name.startswith("widen") else t)
        ends = []
        for k, u in enumerate(types):
            top = t.bits() - 1 if "shift_right" in name and k == len(types) - 1 else u.max_value()
            ends.append(sorted(rng.randint(max(u.min_value(), -top - 1), top) for _ in range(2)))
        call = n.Call(result, name, tuple(n.Variable(u, f"v{k}") for k, u in enumerate(types)), n.CallType.PureIntrinsic)
        i = bounds_of_expr(call, {f"v{k}": Interval(*(b.const(u, v) for v in e)) for k, (u, e) in enumerate(zip(types, ends))})
        low, high = b.as_int(i.min), b.as_int(i.max)
        values = [scalar.intrinsic(name, result, tuple(types))(*point) for point in
                  [*itertools.product(*ends), *([rng.randint(*e) for e in ends] for _ in range(30))]]
        assert low <= min(values) and max(values) <= high, (name, types, ends, text(i))
        reached += low == min(values) and high == max(values)
    assert reached > 10 or "shift" in name or name == "widen_right_mul"  # which mostly wraps


def test_interval_operations() -> None:
    i, j = Interval(K(0), X), Interval(K(3), Y)
    assert text(i.union(j)) == "[0, max(x, y)]"
    assert text(i.intersection(j)) == "[3, min(x, y)]"
    assert Interval.everything().union(i) == Interval.everything()
    assert Interval.everything().intersection(i) == i
    assert Interval.point(X).is_point() and not Interval(K(0), None).is_bounded()


@pytest.mark.parametrize("block", range(6))
def test_random_values_lie_inside(block: int) -> None:
    """x and y range over constant or symbolic intervals; the bounds mention neither."""
    checked = 0
    for seed in range(block * 100, block * 100 + 100):
        rng = random.Random(seed)
        t = rng.choice([*INTS, *[INT32] * 6])
        e = Maker(rng, [t] if rng.random() < 0.6 else None, small=True).expr(t.with_lanes(rng.choice([1, 1, 1, 4])), rng.randint(1, 4))
        scope: dict[str, Interval] = {}
        ranges: dict[str, tuple[Type, int, int, bool]] = {}
        for v in "xy":
            for u in INTS:
                low = rng.randint(0 if u.is_uint() else -20, 20)
                high = low + rng.randint(0, 12)
                symbolic = u is INT32 and rng.random() < 0.5
                z = n.Variable(u, f"z_{u}")
                ends = [n.Add(z, b.const(u, k)) if symbolic else b.const(u, k) for k in (low, high)]
                scope[f"{v}_{u}"] = Interval(*ends)
                ranges[f"{v}_{u}"] = (u, low, high, symbolic)
            for u in FLOATS:
                scope[f"{v}_{u}"] = Interval(b.const(u, -10), b.const(u, 10))
            scope["b" + v] = Interval(b.FALSE, b.const(BOOL, 1))
        i = bounds_of_expr(e, scope)
        least, most = constant_bound(e, False, scope), constant_bound(e, True, scope)
        for end in (i.min, i.max):
            assert end is None or end.type is t and not set(free_variables(end)) & set(scope)
        for _ in range(15):
            env = environment(rng)
            env["z_int32"] %= 1 << 20
            for k, (_, low, high, symbolic) in ranges.items():
                env[k] = rng.choice([low, high, rng.randint(low, high)]) + (env["z_int32"] if symbolic else 0)
            for v in "xy":
                for u in FLOATS:
                    env[f"{v}_{u}"] = b.round_float(rng.uniform(-10, 10), u)
            try:
                values = evaluate(e, dict(env))
                ends = [None if end is None else evaluate(end, dict(env)) for end in (i.min, i.max)]  # type: ignore[misc]
            except Overflow:
                continue
            for v in values if isinstance(values, list) else [values]:
                assert ends[0] is None or ends[0] <= v, f"seed {seed}: {to_text(e)} in {text(i)}: {v} with {env}"  # type: ignore[operator]
                assert ends[1] is None or v <= ends[1], f"seed {seed}: {to_text(e)} in {text(i)}: {v} with {env}"  # type: ignore[operator]
                assert (least is None or least <= v) and (most is None or v <= most), f"seed {seed}: {to_text(e)}: {v}"
                checked += 1
    assert checked > 500


def test_ends_beyond_the_type_are_no_ends() -> None:
    """Sums and products of constants are exact; folded, they would wrap around and be wrong limits."""
    half = Interval(K(-(1 << 30)), K(1 << 30))
    scope = {"x": half, "y": half, "e": half}
    three = A(A(X, Y), E_)
    assert text(bounds_of_expr(three, scope)) == "[-inf, inf]"
    assert text(bounds_of_expr(M(X, K(4)), scope)) == "[-inf, inf]" and text(bounds_of_expr(M(X, Y), scope)) == "[-inf, inf]"
    narrow = n.Max(n.Min(n.Cast(Int(16), Q(three, K(256))), b.const(Int(16), 1023)), b.const(Int(16), 0))
    assert text(bounds_of_expr(n.Cast(INT32, narrow), scope)) == "[0, 1023]"


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_under_a_mask(name: str) -> None:
    """Of all short ranges and masks: every value lies inside, and no end is further off than the bits of the mask are worth."""
    meaning = {"bitwise_and": int.__and__, "bitwise_or": int.__or__, "bitwise_xor": int.__xor__}[name]
    for mask, low, size in itertools.product(range(-9, 10), range(-12, 12), (1, 2, 5, 9)):
        scope = {"x": Interval(K(low), K(low + size - 1))}
        i = bounds_of_expr(intrinsic(name, INT32, X, K(mask)), scope)
        assert i.min is not None and i.max is not None
        values = [meaning(v, mask) for v in range(low, low + size)]
        first, last = b.as_int(i.min), b.as_int(i.max)
        assert first is not None and last is not None and first <= min(values) and max(values) <= last
        assert last - first <= size + 2 * max(mask, ~mask)
