"""Every intrinsic and node kind, scalar and vector, against the reference interpreter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from c_run import build, call, function, load, loop, machine, ramp, store, var

from halide_py.codegen_c import generate
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.build import round_float
from halide_py.ir.intrinsics import intrinsic, math_call
from halide_py.ir.module import LoweredModule
from halide_py.ir.printer import to_text
from halide_py.ir.types import BOOL, INT32, BFloat, Float, Int, Type, TypeCode, UInt
from halide_py.reference.loop_ir import run_lowered
from halide_py.reference.storage import numpy_type

COUNT = 64
LANES = (1, 8, 16, 3, 32)


def values(t: Type, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if t.is_bool():
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if t.is_float():
        return (rng.integers(-200, 200, COUNT) / 8).astype(numpy_type(t))
    return rng.integers(int(t.min_value()), int(t.max_value()), COUNT, dtype=numpy_type(t), endpoint=True)


class Case(NamedTuple):
    e: n.Expr
    types: dict[str, Type]
    arrays: dict[str, np.ndarray]
    tolerance: float


CASES: list[Case] = []


def agree(e: n.Expr, types: dict[str, Type], arrays: dict[str, np.ndarray] | None = None, tolerance: float = 0) -> None:
    """Note that compiled code and the interpreter should agree on `e` over loads of the named inputs; `compare` finds out."""
    CASES.append(Case(e, types, arrays or {}, tolerance))


@pytest.fixture(autouse=True)
def compare(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiles the expressions a test noted, all in one unit, and compares."""
    CASES.clear()
    yield
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    vector_bytes = parameters.get("vector_bytes", 32)
    functions = []
    for k, c in enumerate(CASES):
        functions += function(f"f{k}", store("out", c.e, 0), c.types, {"out": c.e.type.element_of()}).functions
    library = build(generate(LoweredModule("f", functions), machine(vector_bytes)))
    for f, c in zip(functions, CASES):
        given = [c.arrays.get(k, values(t, i)) for i, (k, t) in enumerate(c.types.items())]
        got, want = (np.zeros(COUNT, numpy_type(c.e.type.element_of())) for _ in range(2))
        run_lowered(f, [*given, want])
        assert call(library, f.name, [*given, got]) == 0
        np.testing.assert_allclose(got, want, rtol=c.tolerance, err_msg=to_text(c.e))


def unary(name: str, result: Type, t: Type, lanes: int) -> n.Expr:
    return intrinsic(name, result.with_lanes(lanes), load(t, "a", 0, lanes))


def binary(name: str, result: Type, t: Type, lanes: int, second: Type | None = None) -> n.Expr:
    return intrinsic(name, result.with_lanes(lanes), load(t, "a", 0, lanes), load(second or t, "b", 3, lanes))


SMALL = [Int(8), Int(16), Int(32), UInt(8), UInt(16), UInt(32)]


@pytest.mark.parametrize("lanes", LANES)
def test_widening(lanes: int) -> None:
    for t in SMALL:
        wide = t.with_bits(2 * t.bits())
        for name in ("widening_add", "widening_mul"):
            agree(binary(name, wide, t, lanes), {"a": t, "b": t})
        agree(binary("widening_sub", wide.with_code(TypeCode.Int), t, lanes), {"a": t, "b": t})
        agree(intrinsic("widen_right_add", wide.with_lanes(lanes), load(wide, "w", 0, lanes), load(t, "b", 0, lanes)), {"w": wide, "b": t})


@pytest.mark.parametrize("lanes", LANES)
def test_shifts(lanes: int) -> None:
    for t, signed in itertools.product(SMALL, (False, True)):
        u = t.with_code(TypeCode.Int if signed else TypeCode.UInt)
        limit = t.bits() + 9  # amounts beyond the width move everything out
        amounts = np.random.default_rng(4).integers(-limit if signed else 0, limit + 1, COUNT).astype(numpy_type(u))
        for name in ("shift_left", "shift_right", "rounding_shift_right", "rounding_shift_left"):
            agree(binary(name, t, t, lanes, u), {"a": t, "b": u}, {"b": amounts})
        agree(binary("widening_shift_left", t.with_bits(2 * t.bits()), t, lanes, u), {"a": t, "b": u}, {"b": amounts})


@pytest.mark.parametrize("lanes", LANES)
def test_lerp(lanes: int) -> None:
    for t, weight in itertools.product([UInt(8), UInt(16), UInt(32), Int(8), Int(16), Int(32)], [UInt(8), UInt(16), UInt(32), Float(32)]):
        w = np.linspace(0, 1, COUNT).astype(np.float32) if weight.is_float() else values(weight, 9)
        e = intrinsic("lerp", t.with_lanes(lanes), load(t, "a", 0, lanes), load(t, "b", 0, lanes), load(weight, "w", 0, lanes))
        agree(e, {"a": t, "b": t, "w": weight}, {"w": w})
    f = Float(32)
    agree(intrinsic("lerp", f.with_lanes(lanes), load(f, "a", 0, lanes), load(f, "b", 0, lanes), load(UInt(8), "w", 0, lanes)),
          {"a": f, "b": f, "w": UInt(8)}, tolerance=1e-5)


@pytest.mark.parametrize("lanes", LANES)
def test_random(lanes: int) -> None:
    for t in (UInt(32), Int(32), Float(32)):
        e = intrinsic("random", t.with_lanes(lanes), load(UInt(32), "a", 0, lanes), b.broadcast(b.const(UInt(32), 7), lanes))
        agree(e, {"a": UInt(32)})


@pytest.mark.parametrize("lanes", LANES)
def test_classification(lanes: int) -> None:
    special = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-40, 3e38] * (COUNT // 8))
    for t in (Float(32), Float(64)):
        for name in ("is_nan", "is_inf", "is_finite"):
            agree(unary(name, BOOL, t, lanes), {"a": t}, {"a": special.astype(numpy_type(t))})


@pytest.mark.parametrize("lanes", LANES)
def test_bits(lanes: int) -> None:
    for t in (UInt(8), UInt(16), UInt(32)):
        parts = [load(t, "a", 0, lanes), load(t, "b", 1, lanes)]
        agree(intrinsic("concat_bits", t.with_bits(2 * t.bits()).with_lanes(lanes), *parts), {"a": t, "b": t})
        for s in (t.with_bits(2 * t.bits()), t.with_bits(2 * t.bits()).with_code(TypeCode.Int)):
            for at in (t.bits(), 2 * t.bits() - 3):  # what lies beyond the end is zero
                agree(intrinsic("extract_bits", t.with_lanes(lanes), load(s, "a", 0, lanes), b.const(UInt(32, lanes), at)), {"a": s})
            for at in (-3, -t.bits() - 1, 2 * t.bits() + 9):  # below 0 zeros come in
                agree(intrinsic("extract_bits", t.with_lanes(lanes), load(s, "a", 0, lanes), b.const(Int(32, lanes), at)), {"a": s})
                agree(intrinsic("extract_bits", s.with_lanes(lanes), load(t, "a", 0, lanes), b.const(Int(32, lanes), at)), {"a": t})


@pytest.mark.parametrize("lanes", LANES)
def test_choices(lanes: int) -> None:
    t = Float(32)
    index = n.Mod(load(INT32, "i", 0, lanes), b.const(INT32.with_lanes(lanes), 5))
    three = [load(t, "a", k, lanes) for k in range(3)]
    agree(intrinsic("mux", t.with_lanes(lanes), index, *three), {"i": INT32, "a": t})
    guard = n.GT(load(INT32, "i", 0, 1), b.i32(0))
    agree(intrinsic("if_then_else", t.with_lanes(lanes), guard, three[0], three[1]), {"i": INT32, "a": t})
    agree(intrinsic("return_second", t.with_lanes(lanes), three[0], three[1]), {"a": t})
    for name in ("likely", "strict_float"):
        agree(intrinsic(name, t.with_lanes(lanes), n.Add(three[0], three[1])), {"a": t})


@pytest.mark.parametrize("t", [*SMALL, Int(64), UInt(64)])
def test_mul_shift_right(t: Type) -> None:
    for lanes, shift in itertools.product((1, 16), (1, t.bits() - 1, t.bits(), 2 * t.bits(), 2 * t.bits() + 40)):
        for name in ("mul_shift_right", "rounding_mul_shift_right"):
            agree(intrinsic(name, t.with_lanes(lanes), load(t, "a", 0, lanes), load(t, "b", 0, lanes),
                            b.const(t.with_code(TypeCode.UInt).with_lanes(lanes), shift)), {"a": t, "b": t})


@pytest.mark.parametrize("bits", (16, 32, 64))
def test_float_conversions(bits: int) -> None:
    """From floats to integers in range, from integers to floats with one rounding."""
    rng = np.random.default_rng(1)
    for lanes in (1, 8, 16):
        f = Float(bits)
        for t in (Int(8), UInt(8), Int(16), UInt(16), Int(32), UInt(32), Int(64)):
            low, high = max(int(t.min_value()), -60000), min(int(t.max_value()), 60000)
            agree(n.Cast(t.with_lanes(lanes), load(f, "a", 0, lanes)), {"a": f}, {"a": rng.uniform(low, high, COUNT).astype(numpy_type(f))})
            agree(n.Cast(f.with_lanes(lanes), load(t, "a", 0, lanes)), {"a": t})
        agree(n.Cast(Float(16, lanes), load(Float(64), "a", 0, lanes)), {"a": Float(64)}, {"a": rng.uniform(-9, 9, COUNT)})


@pytest.mark.parametrize("lanes,vector_bytes", [(8, 32), (16, 32), (32, 32), (16, 16), (64, 64), (5, 32)])
def test_saturating_narrowing(lanes: int, vector_bytes: int) -> None:
    """Clamps before a narrowing cast, which become saturating packs, floats beyond the integers and NaN included."""
    wild = np.array([1e20, -1e20, 300.7, -5.0, 12.9, 255.0, 256.0, np.inf] * (COUNT // 8), np.float32)
    for s, t in itertools.product([Int(16), Int(32), Float(32), Int(64)], [UInt(8), Int(8), UInt(16), Int(16)]):
        if s.bits() <= t.bits():
            continue
        x, low, high = load(s, "a", 0, lanes), b.const(s.with_lanes(lanes), t.min_value()), b.const(s.with_lanes(lanes), t.max_value())
        arrays = {"a": wild} if s.is_float() else {}
        for e in (n.Max(n.Min(x, high), low), n.Min(n.Max(x, low), high)):
            agree(n.Cast(t.with_lanes(lanes), e), {"a": s}, arrays)
        if not s.is_float():
            agree(intrinsic("saturating_cast", t.with_lanes(lanes), x), {"a": s}, arrays)


@pytest.mark.parametrize("lanes", [8, 16, 32, 12])
def test_widened_averages(lanes: int) -> None:
    """(u16(a) + u16(b) + 1) / 2 and (u32(a) * u32(b)) >> 16 at their own width."""
    for t in (UInt(8), UInt(16)):
        wide = t.with_bits(2 * t.bits()).with_lanes(lanes)
        x, y = n.Cast(wide, load(t, "a", 0, lanes)), n.Cast(wide, load(t, "b", 0, lanes))
        agree(n.Cast(t.with_lanes(lanes), n.Div(n.Add(n.Add(x, y), b.const(wide, 1)), b.const(wide, 2))), {"a": t, "b": t})
        agree(n.Cast(t.with_lanes(lanes), n.Div(n.Add(x, y), b.const(wide, 2))), {"a": t, "b": t})
    for t in (UInt(16), Int(16)):
        wide = t.with_bits(32).with_lanes(lanes)
        product = n.Mul(n.Cast(wide, load(t, "a", 0, lanes)), n.Cast(wide, load(t, "b", 0, lanes)))
        agree(n.Cast(t.with_lanes(lanes), n.Div(product, b.const(wide, 65536))), {"a": t, "b": t})


@pytest.mark.parametrize("op", list(n.ReduceOp))
def test_vector_reduce(op: n.ReduceOp) -> None:
    logic = op in (n.ReduceOp.And, n.ReduceOp.Or)
    shapes = [(8, 1), (32, 1), (24, 1), (7, 1), (32, 8), (32, 4), (12, 4), (64, 16)]
    for (lanes, groups), t in itertools.product(shapes, (BOOL,) if logic else (Int(32), UInt(8), Float(32), Int(64))):
        if logic:
            e: n.Expr = n.GT(load(INT32, "a", 0, lanes), b.const(INT32.with_lanes(lanes), -(10**9)))
            agree(n.VectorReduce(op, e, groups), {"a": INT32})
        elif not (t.is_float() and op is n.ReduceOp.Mul):
            agree(n.VectorReduce(op, load(t, "a", 0, lanes), groups), {"a": t})


@pytest.mark.parametrize("t", [UInt(8), Int(16), Float(32), Float(64)])
def test_shuffles(t: Type) -> None:
    rng = np.random.default_rng(5)
    for lanes in (1, 2, 4, 7, 16, 32, 48):
        vectors = (load(t, "a", 0, 16), load(t, "b", 5, 8), load(t, "a", 3, 16), load(t, "b", 0, 3))
        agree(n.Shuffle(vectors, tuple(int(i) for i in rng.integers(0, 43, lanes))), {"a": t, "b": t})
        agree(n.Shuffle(vectors[:3:2], tuple(int(i) for i in rng.integers(0, 32, lanes))), {"a": t})


def test_ramps_and_broadcasts_of_vectors() -> None:
    base = load(INT32, "a", 0, 4)
    agree(n.Ramp(base, b.const(INT32.with_lanes(4), 10), 4), {"a": INT32})
    agree(n.Broadcast(base, 3), {"a": INT32})
    agree(n.Add(n.Ramp(load(INT32, "a", 0, 1), load(INT32, "b", 2, 1), 16), n.Broadcast(load(INT32, "b", 0, 8), 2)), {"a": INT32, "b": INT32})
    agree(n.Select(n.Broadcast(n.GT(base, b.const(INT32.with_lanes(4), 0)), 4), n.Ramp(b.i32(0), b.i32(-3), 16), n.Broadcast(base, 4)), {"a": INT32})


@pytest.mark.parametrize("lanes", LANES)
def test_reinterpret(lanes: int) -> None:
    agree(n.Reinterpret(UInt(32, lanes), load(Float(32), "a", 0, lanes)), {"a": Float(32)})
    agree(n.Reinterpret(Float(32, lanes), load(UInt(32), "a", 0, lanes)), {"a": UInt(32)}, {"a": np.arange(COUNT, dtype=np.uint32) << 23})
    agree(n.Reinterpret(UInt(16, lanes), load(Float(16), "a", 0, lanes)), {"a": Float(16)})
    agree(n.Reinterpret(Int(16, lanes), load(UInt(16), "a", 0, lanes)), {"a": UInt(16)})
    agree(n.Reinterpret(UInt(16, 2 * lanes), load(UInt(32), "a", 0, lanes)), {"a": UInt(32)})


@pytest.mark.parametrize("name", ["sqrt", "floor", "ceil", "trunc", "round"])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_roundings(name: str, vector_bytes: int) -> None:
    special = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1e9, np.inf] * (COUNT // 8))
    for bits, lanes in itertools.product((32, 64), (1, 4, 8, 16)):
        t = Float(bits)
        positive = np.abs(special) if name == "sqrt" else special
        agree(math_call(name, load(t, "a", 0, lanes)), {"a": t}, {"a": positive.astype(numpy_type(t))})


@pytest.mark.parametrize("lanes", LANES)
def test_lets(lanes: int) -> None:
    t = Float(32)
    e = n.Let("x", n.Add(load(t, "a", 0, lanes), load(t, "a", 1, lanes)), n.Mul(n.Variable(t.with_lanes(lanes), "x"), n.Variable(t.with_lanes(lanes), "x")))
    agree(e, {"a": t}, {"a": np.arange(COUNT, dtype=np.float32)})
    agree(n.Let("k", n.Add(load(INT32, "i", 0, 1), b.i32(1)), n.Cast(t.with_lanes(lanes), n.Mul(b.broadcast(var("k"), lanes), ramp(var("k"), lanes)))),
          {"i": INT32}, {"i": np.arange(5, 5 + COUNT, dtype=np.int32)})


@pytest.mark.parametrize("t", [Float(16), BFloat(16)])
def test_every_half_float(t: Type) -> None:
    """In vectors as in scalars, through memory and rounded: all of them, what lies between them, beyond them, and NaN."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    count, lanes = len(halves), 8
    if t.is_bfloat():
        exact = (halves.astype(np.uint32) << 16).view(np.float32)
    else:
        exact = halves.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        between = np.nextafter(np.concatenate([exact * np.float32(1 + 2 ** -(8 if t.is_bfloat() else 11)), exact * 2]), np.float32(0))
    floats = np.concatenate([exact, between, np.linspace(-1e-7, 1e-7, count, dtype=np.float32)])

    def run(make: Callable[[int, n.Expr], n.Expr], types: tuple[Type, Type], given: np.ndarray, out: np.ndarray, width: int) -> np.ndarray:
        x = n.Mul(var("x"), b.i32(width))
        module = function("f", loop("x", len(given) // width, store("out", make(width, x), x)), {"a": types[0]}, {"out": types[1]})
        assert call(build(generate(module, machine())), "f", [given, out]) == 0
        return out

    f = Float(32)
    for width in (1, lanes, 16):
        widened = run(lambda w, x: n.Cast(f.with_lanes(w), load(t, "a", x, w)), (t, f), halves, np.zeros(count, np.float32), width)
        np.testing.assert_array_equal(widened, exact)
        kept = run(lambda w, x: load(t, "a", x, w), (t, t), halves, np.zeros(count, np.uint16), width)
        number = ~np.isnan(exact)
        np.testing.assert_array_equal(kept[number], halves[number])
        assert np.isnan(run(lambda w, x: n.Cast(f.with_lanes(w), load(t, "a", x, w)), (t, f), kept, np.zeros(count, np.float32), 1)[~number]).all()
        rounded = run(lambda w, x: n.Cast(f.with_lanes(w), n.Cast(t.with_lanes(w), load(f, "a", x, w))), (f, f), floats, np.zeros_like(floats), width)
        with np.errstate(all="ignore"):
            want = np.array([round_float(float(v), t) for v in floats[::7]]) if t.is_bfloat() else floats.astype(np.float16).astype(np.float32)[::7]
        np.testing.assert_array_equal(rounded[::7], want.astype(np.float32))
