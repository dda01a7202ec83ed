"""Works of one and two numbers of all types, as Exprs of Halide or of ours, and numbers for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

SPECIAL = 6
COUNT = SPECIAL * SPECIAL + 12
TYPES = [("Int", 8), ("Int", 16), ("Int", 32), ("Int", 64), ("UInt", 8), ("UInt", 16), ("UInt", 32), ("UInt", 64), ("Float", 16), ("Float", 32), ("Float", 64),
         ("UInt", 1)]
Type = tuple[str, int]
Name = TypeVar("Name")
Binary = Callable[[Any, Any, Any], Any]



def _of_one(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a)


def _of_two(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a, b)


def _shift(name: str) -> Binary:
    return lambda h, a, b: getattr(h, name)(a, b % 4)


ONE: dict[str, Binary] = {
    "-x": lambda h, a, b: -a, "~": lambda h, a, b: ~a, "x + 1": lambda h, a, b: a + 1, "1 - x": lambda h, a, b: 1 - a, "2.5 x": lambda h, a, b: a * 2.5,
    "x / 3": lambda h, a, b: a / 3, "x // -3": lambda h, a, b: a // -3, "x % 7": lambda h, a, b: a % 7, "7 % x": lambda h, a, b: 7 % a,
    "100 // x": lambda h, a, b: 100 // a, "x << 2": lambda h, a, b: a << 2, "x << -1": lambda h, a, b: a << -1, "x >> 1": lambda h, a, b: a >> 1,
    "x & 3": lambda h, a, b: a & 3, "x > 5": lambda h, a, b: a > 5, "x == 1.5": lambda h, a, b: a == 1.5, "x ** 2": lambda h, a, b: a**2, "True & x": lambda h, a, b: a & True,
    "x + 2 ** 33": lambda h, a, b: a + 2**33, "x + 300": lambda h, a, b: a + 300, "x - (-1)": lambda h, a, b: a - (-1), "x * 255": lambda h, a, b: a * 255,
    "numpy": lambda h, a, b: a * np.float32(1.5), "numpy int": lambda h, a, b: a + np.int32(3),
    **{name: _of_one(name) for name in (
        "abs", "popcount", "count_leading_zeros", "count_trailing_zeros", "is_nan", "is_inf", "is_finite", "floor", "ceil", "round", "trunc", "fract", "sin", "u8", "i16",
        "u64", "f32", "f64", "u8_sat", "i16_sat", "u32_sat", "i64_sat", "likely", "strict_float")},
    "select 7": lambda h, a, b: h.select(a > 3, a, 7), "clamp": lambda h, a, b: h.clamp(a, 0, 100), "max 0": lambda h, a, b: h.max(a, 0),
    "extract_bits": lambda h, a, b: h.extract_bits(h.UInt(8), a, 8), "bool": lambda h, a, b: h.cast(h.Bool(), a), "half": lambda h, a, b: h.f32(h.cast(h.Float(16), a)),
    "reinterpret": lambda h, a, b: h.reinterpret(h.UInt(32), a), "cube": lambda h, a, b: h.pow(a, 3), "log": lambda h, a, b: h.log(h.abs(a) + 1),
    "sqrt": lambda h, a, b: h.sqrt(h.abs(a) / 2)}
TWO: dict[str, Binary] = {
    "+": lambda h, a, b: a + b, "-": lambda h, a, b: a - b, "*": lambda h, a, b: a * b, "/": lambda h, a, b: a / b, "//": lambda h, a, b: a // b,
    "%": lambda h, a, b: a % b, "&": lambda h, a, b: a & b, "|": lambda h, a, b: a | b, "^": lambda h, a, b: a ^ b, "<": lambda h, a, b: a < b,
    "<=": lambda h, a, b: a <= b, "==": lambda h, a, b: a == b, "!=": lambda h, a, b: a != b, ">": lambda h, a, b: a > b, ">=": lambda h, a, b: a >= b,
    "<<": lambda h, a, b: a << (b % 4), ">>": lambda h, a, b: a >> (b % 4),
    "div_round_to_zero": lambda h, a, b: h.div_round_to_zero(a // 2, h.select(b == 0, h.cast(b.type(), 1), b)),
    "mod_round_to_zero": lambda h, a, b: h.mod_round_to_zero(a // 2, h.select(b == 0, h.cast(b.type(), 1), b)),
    **{name: _of_two(name) for name in (
        "min", "max", "absd", "atan2", "widening_add", "widening_sub", "widening_mul", "widen_right_add", "widen_right_sub", "widen_right_mul", "saturating_add",
        "saturating_sub", "halving_add", "halving_sub", "rounding_halving_add")},
    **{name: _shift(name) for name in ("widening_shift_left", "widening_shift_right", "rounding_shift_left", "rounding_shift_right")},
    "mul_shift_right": lambda h, a, b: h.mul_shift_right(a, b, 3), "rounding_mul_shift_right": lambda h, a, b: h.rounding_mul_shift_right(a, b, a.type().bits() - 1),
    "select": lambda h, a, b: h.select(a > b, a, b), "mux": lambda h, a, b: h.mux(h.i32(a % 3), [b, b, b]), "lerp": lambda h, a, b: h.lerp(a, b, h.u8(a)),
    "lerp by a third": lambda h, a, b: h.lerp(a, b, h.f32(0.3)), "concat_bits": lambda h, a, b: h.concat_bits([a, b])}
PAIRS = list(itertools.product(TYPES, TYPES))


def works(t: Type, u: Type) -> dict[str, Binary]:
    """What is tried on a pair of types: works of one number where both are the same."""
    return {**ONE, **TWO} if t == u else TWO


def numpy_type(t: Type) -> Any:
    return np.bool_ if t[1] == 1 else np.dtype({"Int": "i", "UInt": "u", "Float": "f"}[t[0]] + str(t[1] // 8))


def data(t: Type, second: bool) -> np.ndarray:
    """Numbers for the first or the second operand: every pair of special ones, then some at random."""
    rng = np.random.default_rng(second)
    of, rest = numpy_type(t), COUNT - SPECIAL * SPECIAL
    if t[1] == 1:
        special, others = np.array([0, 1, 0, 1, 1, 0], of), rng.integers(0, 2, rest).astype(of)
    elif t[0] == "Float":
        special, others = np.array([0, 1, -2.5, 0.125, 20, -7.5], of), (rng.integers(-200, 200, rest) / 8).astype(of)
    else:
        info = np.iinfo(of)
        special = np.array([info.min, info.max, 0, 1, max(info.min, -3) or 7, 100], of)
        others = rng.integers(info.min, info.max, rest, dtype=of, endpoint=True)
    return np.concatenate([np.tile(special, SPECIAL) if second else np.repeat(special, SPECIAL), others])


def element(h: Any, array: np.ndarray, x: Any) -> Any:
    """Element x of a buffer; Halide takes no uint64 arrays."""
    return h.u64(h.Buffer(array.view(np.int64))[x]) if array.dtype == np.uint64 else h.Buffer(array)[x]


def exprs(h: Any, t: Type, u: Type, x: Any) -> tuple[dict[str, Any], set[str]]:
    """The expression of each work, and the names of the works that are refused."""
    out, refused, a, b = {}, set(), data(t, False), data(u, True)
    for name, work in works(t, u).items():
        try:
            out[name] = work(h, element(h, a, x), element(h, b, x))
        except (h.HalideError, TypeError, ValueError):
            refused.add(name)
    return out, refused


def values(h: Any, e: Mapping[Name, Any], x: Any, width: int) -> dict[Name, np.ndarray]:
    f = h.Func("f")
    f[x] = h.Tuple(list(e.values()))
    if width > 1:
        f.vectorize(x, width)
    got = f.realize([COUNT])
    return {name: np.asarray(v) for name, v in zip(e, got if isinstance(got, (tuple, list)) else [got], strict=True)}


def compared(e: Any) -> bool:
    """Whether a type can be held."""
    return bool(e.type().bits() in (1, 8, 16, 32, 64))


