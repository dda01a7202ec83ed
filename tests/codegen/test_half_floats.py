"""Half floats in vectors: arithmetic as that of floats, rounded once, and conversions, against NumPy and rounding by hand, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl

X = hl.Var("x")
KINDS = [hl.Float(16), hl.BFloat(16)]
MACHINES = ("host", "x86-64-linux", "x86-64-linux-avx2-f16c-fma-avx-sse41")


def value(words: np.ndarray, t: hl.Type) -> np.ndarray:
    """Half floats, given by their bits, as floats."""
    return (words.astype(np.uint32) << 16).view(np.float32) if t.is_bfloat() else words.view(np.float16).astype(np.float32)


def rounded(a: np.ndarray, t: hl.Type) -> np.ndarray:
    """The bits of numbers of float or double as half floats, to nearest, ties to even; all NaNs are one."""
    with np.errstate(all="ignore"):
        if not t.is_bfloat():
            return np.where(np.isnan(a), np.uint16(0x7FFF), a.astype(np.float16).view(np.uint16))
        single = a.astype(np.float32)
        bits = single.view(np.uint32).astype(np.int64)
        back = single.astype(a.dtype)
        low = bits & 0xFFFF  # of a double the bits below count, too
        more = np.sign(np.abs(a) - np.abs(back)).astype(np.int64) if a.dtype == np.float64 else 0
        up = (2 * low + more > 0x10000) | ((2 * low + more == 0x10000) & (bits >> 16 & 1 == 1))
        return np.where(np.isnan(a), 0x7FFF, (bits >> 16) + up).astype(np.uint16)


def run(values: list[hl.Expr], t: hl.Type, count: int, lanes: int, target: str) -> list[np.ndarray]:
    """The bits of half floats, all NaNs one."""
    f = hl.Func("f")
    f[X] = hl.Tuple([hl.reinterpret(hl.UInt(16), hl.cast(t, v)) for v in values])
    f.vectorize(X, lanes)
    infinity = 0x7F80 if t.is_bfloat() else 0x7C00
    return [np.where(words & 0x7FFF > infinity, np.uint16(0x7FFF), words) for words in map(np.asarray, f.realize([count], hl.Target(target)))]


def check(values: dict[str, tuple[hl.Expr, np.ndarray]], t: hl.Type, lanes: int, target: str) -> None:
    count = len(next(iter(values.values()))[1])
    for name, got in zip(values, run([v for v, _ in values.values()], t, count, lanes, target), strict=True):
        np.testing.assert_array_equal(got, rounded(values[name][1], t), f"{name}, {lanes} lanes")


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
@pytest.mark.parametrize("t", KINDS, ids=str)
def test_arithmetic(t: hl.Type, lanes: int, target: str) -> None:
    """Every half float with another one of any size."""
    words = np.arange(1 << 16).astype(np.uint16)
    others = np.random.default_rng(0).permutation(words)
    x, y = (hl.reinterpret(t, hl.Buffer(w)[X]) for w in (words, others))
    a, c = value(words, t), value(others, t)

    def once(v: np.ndarray) -> np.ndarray:
        return value(rounded(v, t), t)

    with np.errstate(all="ignore"):
        wanted: dict[str, tuple[Any, np.ndarray]] = {
            "sum": (x + y, a + c), "difference": (x - y, a - c), "product": (x * y, a * c), "quotient": (x / y, a / c),
            "two": (x * y + x, once(a * c) + a), "choice": (hl.select(x > y, x, x + y), np.where(a > c, a, a + c)), "root": (hl.sqrt(x), np.sqrt(a)),
            "floor": (hl.floor(x), np.floor(a)), "size": (hl.abs(x), np.abs(a))}
    check(wanted, t, lanes, target)


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
@pytest.mark.parametrize("t", KINDS, ids=str)
def test_conversions(t: hl.Type, lanes: int, target: str) -> None:
    """Of floats: all half floats, halfway to the next, a bit less and more; subnormals, NaN, infinity. Rounded once also from doubles."""
    words = np.arange(1 << 16).astype(np.uint16)
    low, dropped = value(words, t), 16 if t.is_bfloat() else 13
    half = (low.view(np.uint32) + np.uint32(1 << dropped - 1)).view(np.float32)
    tiny = np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        floats = np.concatenate([low, half, np.nextafter(half, np.float32(0)), np.nextafter(half, np.float32(np.inf)), tiny]).astype(np.float32)
        doubles = np.concatenate([half.astype(np.float64) * s for s in (1, 1 - 2**-40, 1 + 2**-40)] + [floats[:1 << 17].astype(np.float64)])
    doubles = doubles[:len(floats)]
    ints = np.random.default_rng(2).integers(-2**31, 2**31, len(floats)) >> np.random.default_rng(3).integers(0, 31, len(floats))
    given: list[np.ndarray] = [floats, doubles, ints.astype(np.int16), ints.astype(np.uint8), ints.astype(np.int32)]
    check({a.dtype.name: (hl.cast(t, hl.Buffer(a)[X]), a.astype(np.float64) if a.dtype.kind in "iu" else a) for a in given}, t, lanes, target)


@pytest.mark.parametrize("lanes", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("t", KINDS, ids=str)
def test_what_half_floats_become(t: hl.Type, lanes: int) -> None:
    words = np.arange(1 << 16).astype(np.uint16)
    x, a = hl.reinterpret(t, hl.Buffer(words)[X]), value(words, t)
    whole: Callable[[Any], np.ndarray] = lambda kind: np.where(np.abs(a) < 100, a, 0).astype(kind)  # noqa: E731
    inside = hl.select(hl.abs(hl.f32(x)) < 100, hl.f32(x), hl.f32(0.0))
    with np.errstate(all="ignore"):
        wanted = {hl.Float(32): a, hl.Float(64): a.astype(np.float64)}
    for to, want in [*wanted.items(), *((k, whole(k_np)) for k, k_np in ((hl.Int(8), np.int8), (hl.Int(16), np.int16), (hl.Int(32), np.int32)))]:
        f = hl.Func("f")
        f[X] = hl.cast(to, x if to.is_float() else hl.cast(t, inside))
        if lanes > 1:
            f.vectorize(X, lanes)
        np.testing.assert_array_equal(np.asarray(f.realize([1 << 16])), want)
