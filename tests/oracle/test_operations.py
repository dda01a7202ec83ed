"""The two definitions of each operation, on one value and on arrays, agree; and both give Halide's documented values."""

from __future__ import annotations

import numpy as np
import pytest

from halide_py.ir import nodes as n
from halide_py.ir.types import BFloat, Bool, Float, Int, Type, UInt
from halide_py.reference import arrays, scalar

TYPES = [Int(8), Int(16), Int(32), Int(64), UInt(8), UInt(16), UInt(32), UInt(64), Float(16), Float(32), Float(64), BFloat(16), Bool()]


def samples(t: Type, rng: np.random.Generator, count: int = 60) -> list[object]:
    if t.is_float():
        return [scalar.fit(v, t) for v in [0.0, -0.0, 1.5, -2.25, 3e4, *rng.normal(0, 50, count)]]
    low, high = int(t.min_value()), int(t.max_value())
    edges = [low, high, 0, 1, max(low, -1), max(low, -3), min(high, 7)]
    return [min(max(v, low), high) for v in edges + [int(v) for v in rng.integers(low, high, count, dtype=np.uint64 if low == 0 else np.int64)]]


def as_array(values: list[object], t: Type) -> np.ndarray:
    return np.array(values, dtype=object).astype(arrays.value_dtype(t))


@pytest.mark.parametrize("t", TYPES, ids=str)
@pytest.mark.parametrize("kind", scalar.BINARY, ids=lambda k: k.__name__)
def test_binary(t: Type, kind: type[n.Expr]) -> None:
    if kind in (n.And, n.Or) and not t.is_bool():
        pytest.skip("logic is of bools")
    rng = np.random.default_rng(1)
    a, b = samples(t, rng), samples(t, rng)[::-1]
    a, b = a + a[:7], b + samples(t, rng)[:7]
    op = scalar.binary(kind, t)
    with np.errstate(all="ignore"):
        got = arrays.binary(kind, t, as_array(a, t), as_array(b, t))
    want = [op(x, y) for x, y in zip(a, b)]
    np.testing.assert_array_equal(got.astype(np.float64) if t.is_float() else got.astype(object), np.array(want, object).astype(
        np.float64 if t.is_float() else object))


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("target", TYPES, ids=str)
def test_convert(source: Type, target: Type) -> None:
    values = samples(source, np.random.default_rng(2))
    with np.errstate(all="ignore"):
        got = arrays.convert(as_array(values, source), source, target)
    want = as_array([*map(scalar.conversion(source, target), values)], target)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("a,b,quotient,remainder", [(7, -3, -2, 1), (-7, -3, 3, 2), (-7, 3, -3, 2), (7, 3, 2, 1), (5, 0, 0, 0), (-128, -1, -128, 0)])
def test_division_is_euclidean(a: int, b: int, quotient: int, remainder: int) -> None:
    assert scalar.binary(n.Div, Int(8))(a, b) == quotient
    assert scalar.binary(n.Mod, Int(8))(a, b) == remainder


@pytest.mark.parametrize("name,t,types,args,want", [
    ("abs", UInt(8), (Int(8),), (-128,), 128),
    ("absd", UInt(8), (Int(8), Int(8)), (-128, 127), 255),
    ("shift_left", Int(32), (Int(32), Int(32)), (-3, 2), -12),
    ("shift_right", Int(32), (Int(32), Int(32)), (-3, 1), -2),
    ("shift_right", Int(32), (Int(32), Int(32)), (3, -1), 6),
    ("count_leading_zeros", UInt(8), (UInt(8),), (0,), 8),
    ("count_trailing_zeros", Int(16), (Int(16),), (-8,), 3),
    ("popcount", Int(16), (Int(16),), (-1,), 16),
    ("mul_shift_right", Int(16), (Int(16), Int(16), UInt(16)), (-32768, -32768, 15), 32767),
    ("saturating_cast", UInt(8), (Int(32),), (-5,), 0),
    ("saturating_add", Int(8), (Int(8), Int(8)), (100, 100), 127),
    ("halving_sub", UInt(8), (UInt(8), UInt(8)), (0, 3), 254),
    ("lerp", UInt(8), (UInt(8), UInt(8), UInt(8)), (0, 255, 128), 128),
    ("lerp", Int(8), (Int(8), Int(8), UInt(8)), (-128, 127, 255), 127),
    ("mux", Int(32), (Int(32), Int(32), Int(32)), (9, 4, 5), 5),
    ("concat_bits", UInt(16), (UInt(8), UInt(8)), (1, 2), 513),
    ("div_round_to_zero", Int(32), (Int(32), Int(32)), (-7, 3), -2),
    ("mod_round_to_zero", Int(32), (Int(32), Int(32)), (-7, 3), -1),
])
def test_intrinsics(name: str, t: Type, types: tuple[Type, ...], args: tuple[int, ...], want: int) -> None:
    assert scalar.intrinsic(name, t, types)(*args) == want
    got = arrays.intrinsic(name, t, types, *(as_array([a], at) for a, at in zip(args, types)))
    assert got.tolist() == [want] and got.dtype == arrays.value_dtype(t)


def test_bits_round_trip() -> None:
    for t in TYPES:
        for v in samples(t, np.random.default_rng(3)):
            assert repr(scalar.from_bits(scalar.to_bits(v, t), t)) == repr(v)
