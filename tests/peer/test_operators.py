"""Every operator and function of two numbers gives the type and the values that Halide gives, for pairs of all types.

Where Halide is known to be wrong (exp of infinity, pow of 0, int32 squares in hypot) or has types that nothing can hold, nothing is compared.
Runs with HL_TEST_ALL=1 only: Halide takes many seconds for each pair.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py

halide = pytest.importorskip("halide")

COUNT = 64
TYPES = [("Int", 8), ("Int", 16), ("Int", 32), ("Int", 64), ("UInt", 8), ("UInt", 16), ("UInt", 32), ("UInt", 64), ("Float", 16), ("Float", 32), ("Float", 64),
         ("UInt", 1)]
Type = tuple[str, int]
Binary = Callable[[Any, Any, Any], Any]

OPERATORS: dict[str, Binary] = {
    "+": lambda h, a, b: a + b, "-": lambda h, a, b: a - b, "*": lambda h, a, b: a * b, "/": lambda h, a, b: a / b, "//": lambda h, a, b: a // b,
    "%": lambda h, a, b: a % b, "&": lambda h, a, b: a & b, "|": lambda h, a, b: a | b, "^": lambda h, a, b: a ^ b, "<": lambda h, a, b: a < b,
    "<=": lambda h, a, b: a <= b, "==": lambda h, a, b: a == b, "!=": lambda h, a, b: a != b, ">": lambda h, a, b: a > b, ">=": lambda h, a, b: a >= b,
    "<<": lambda h, a, b: a << (b % 4), ">>": lambda h, a, b: a >> (b % 4), "-x": lambda h, a, b: -a, "~": lambda h, a, b: ~a,
    "x + 1": lambda h, a, b: a + 1, "1 - x": lambda h, a, b: 1 - a, "2.5 x": lambda h, a, b: a * 2.5, "x / 3": lambda h, a, b: a / 3, "x % 7": lambda h, a, b: a % 7,
    "x << 2": lambda h, a, b: a << 2, "x << -1": lambda h, a, b: a << -1, "x & 3": lambda h, a, b: a & 3, "x > 5": lambda h, a, b: a > 5, "x ** 2": lambda h, a, b: a**2,
    "x + 2 ** 33": lambda h, a, b: a + 2**33, "x + 300": lambda h, a, b: a + 300, "x - (-1)": lambda h, a, b: a - (-1),
    "numpy": lambda h, a, b: a * np.float32(1.5), "numpy int": lambda h, a, b: a + np.int32(3),
}


def _of_one(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a)


def _of_two(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a, b)


def _shift(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a, b % 4)


FUNCTIONS: dict[str, Binary] = {
    "div_round_to_zero": lambda h, a, b: h.div_round_to_zero(a, h.select(b == 0, h.cast(b.type(), 1), b)),
    "mod_round_to_zero": lambda h, a, b: h.mod_round_to_zero(a, h.select(b == 0, h.cast(b.type(), 1), b)),
    **{name: _of_two(name) for name in (
        "min", "max", "absd", "atan2", "widening_add", "widening_sub", "widening_mul", "widen_right_add", "widen_right_sub", "widen_right_mul", "saturating_add",
        "saturating_sub", "halving_add", "halving_sub", "rounding_halving_add")},
    **{name: _shift(name) for name in (
        "widening_shift_left", "widening_shift_right", "rounding_shift_left", "rounding_shift_right")},
    **{name: _of_one(name) for name in (
        "abs", "popcount", "count_leading_zeros", "count_trailing_zeros", "is_nan", "is_inf", "is_finite", "floor", "ceil", "round", "trunc", "fract", "sin", "u8", "i16",
        "u64", "f32", "f64", "u8_sat", "i16_sat", "u32_sat", "i64_sat", "likely", "strict_float")},
    "mul_shift_right": lambda h, a, b: h.mul_shift_right(a, b, 3), "rounding_mul_shift_right": lambda h, a, b: h.rounding_mul_shift_right(a, b, a.type().bits() - 1),
    "select": lambda h, a, b: h.select(a > b, a, b), "select 7": lambda h, a, b: h.select(a > 3, a, 7), "mux": lambda h, a, b: h.mux(h.i32(a % 3), [b, b, b]),
    "lerp": lambda h, a, b: h.lerp(a, b, h.u8(a)), "lerp by a third": lambda h, a, b: h.lerp(a, b, h.f32(0.3)), "clamp": lambda h, a, b: h.clamp(a, 0, 100),
    "concat_bits": lambda h, a, b: h.concat_bits([a, b]), "extract_bits": lambda h, a, b: h.extract_bits(h.UInt(8), a, 8), "max 0": lambda h, a, b: h.max(a, 0),
    "bool": lambda h, a, b: h.cast(h.Bool(), a), "half": lambda h, a, b: h.f32(h.cast(h.Float(16), a)), "reinterpret": lambda h, a, b: h.reinterpret(h.UInt(32), a),
    "cube": lambda h, a, b: h.pow(a, 3), "log": lambda h, a, b: h.log(h.abs(a) + 1), "sqrt": lambda h, a, b: h.sqrt(h.abs(a) / 2),
}
WORKS = {**OPERATORS, **FUNCTIONS}


def numpy_type(t: Type) -> Any:
    return np.bool_ if t[1] == 1 else np.dtype({"Int": "i", "UInt": "u", "Float": "f"}[t[0]] + str(t[1] // 8))


def data(t: Type, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if t[1] == 1:
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if t[0] == "Float":
        return (rng.integers(-200, 200, COUNT) / 8).astype(numpy_type(t))
    info = np.iinfo(numpy_type(t))
    values = rng.integers(info.min, info.max, COUNT, dtype=numpy_type(t), endpoint=True)
    values[:9] = [info.min, info.max, 0, 1, 7, max(info.min, -3), 2, 3, 100]
    return values


def element(h: Any, array: np.ndarray, x: Any) -> Any:
    """Element x of a buffer; Halide takes no uint64 arrays."""
    return h.u64(h.Buffer(array.view(np.int64))[x]) if array.dtype == np.uint64 else h.Buffer(array)[x]


def exprs(h: Any, a: np.ndarray, b: np.ndarray, x: Any) -> tuple[dict[str, Any], set[str]]:
    """The expression of each work, and the names of the works that are refused."""
    out, refused = {}, set()
    for name, work in WORKS.items():
        try:
            out[name] = work(h, element(h, a, x), element(h, b, x))
        except (h.HalideError, TypeError, ValueError):
            refused.add(name)
    return out, refused


def values(h: Any, e: dict[str, Any], x: Any, width: int) -> dict[str, np.ndarray]:
    f = h.Func("f")
    f[x] = h.Tuple(list(e.values()))
    if width > 1:
        f.vectorize(x, width)
    return {name: np.asarray(v) for name, v in zip(e, f.realize([COUNT]))}


def compared(e: Any) -> bool:
    """Whether a type can be held."""
    return bool(e.type().bits() in (1, 8, 16, 32, 64))


PAIRS = [*((t, t) for t in TYPES), *random.Random(2).sample(list(itertools.permutations(TYPES, 2)), 30)]


@pytest.mark.skipif(os.environ.get("HL_TEST_ALL", "0") == "0", reason="Halide takes long: set HL_TEST_ALL=1")
@pytest.mark.parametrize("t,u", PAIRS, ids=lambda t: f"{t[0]}{t[1]}")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_in_halide(t: Type, u: Type) -> None:
    a, b = data(t, 1), data(u, 2)
    with contextlib.redirect_stdout(io.StringIO()):
        their_x, our_x = halide.Var("x"), halide_py.Var("x")
        theirs, refused = exprs(halide, a, b, their_x)
        ours, refused_here = exprs(halide_py, a, b, our_x)
        floats, bools = "Float" in (t[0], u[0]), 1 in (t[1], u[1])
        unlike = refused ^ refused_here
        if floats or bools:  # shifts, halving and bits of floats, shifts of bools: taken there, but not compiled
            unlike -= {name for name in unlike if any(word in name for word in ("shift", "<<", ">>", "halving", "bits", "& 3", "&", "|", "^"))}
        if 64 in (t[1], u[1]):
            unlike -= {name for name in unlike if name.startswith(("widening", "widen_right", "concat"))}  # 128 bits
        assert not unlike
        both = [name for name in theirs if name in ours and compared(theirs[name])]
        assert {name: str(ours[name].type()) for name in both} == {name: str(theirs[name].type()) for name in both}
        if floats:
            both = [name for name in both if not any(word in name for word in ("halving", "bits", "saturating"))]
            both = [name for name in both if name not in ("u8", "u64", "lerp")]  # negative numbers as unsigned ones
        if 64 in (t[1], u[1]):
            both = [name for name in both if "mul_shift" not in name]
        want = values(halide, {name: theirs[name] for name in both}, their_x, 8)
        for width in (1, 13):
            got = values(halide_py, {name: ours[name] for name in both}, our_x, width)
            for name in both:
                tolerance = {"f": 2e-2 if want[name].dtype == np.float16 else 1e-5}.get(want[name].dtype.kind, 0)
                np.testing.assert_allclose(got[name].astype(np.float64), want[name].astype(np.float64), rtol=tolerance, atol=tolerance / 10, err_msg=f"{name}, width {width}")
                assert tolerance or np.array_equal(got[name], want[name]), name
