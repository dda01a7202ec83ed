"""Integer operations that vectors do by other means than scalars, at all widths, on all bytes and all pairs of bytes: as NumPy computes them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_texts import c_text

import halide_py as hl

X = hl.Var("x")
WIDTHS = (1, 4, 6, 16, 64)  # scalars, part of a register, pieces of two sizes, one register of most machines, several
BYTES = [hl.Int(8), hl.UInt(8)]
ALL = [t(bits) for bits in (8, 16, 32, 64) for t in (hl.Int, hl.UInt)]
MACHINES = ("host", "x86-64-linux", "x86-64-linux-sse41", "x86-64-linux-avx2-f16c-fma")


def dtype(t: hl.Type) -> np.dtype[Any]:
    return np.dtype(f"{'int' if t.is_int() else 'uint'}{t.bits()}")


def compute(values: list[hl.Expr], count: int, lanes: int, target: str = "host") -> list[np.ndarray]:
    f = hl.Func("f")
    f[X] = hl.Tuple(values) if len(values) > 1 else values[0]
    if lanes > 1:
        f.vectorize(X, lanes)
    out = f.realize([count], hl.Target(target))
    return [np.asarray(o) for o in out] if len(values) > 1 else [np.asarray(out)]


def pairs(t: hl.Type) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of bytes; of wider types all corners with each other, and random numbers of all sizes."""
    of, info = dtype(t), np.iinfo(dtype(t))
    if t.bits() == 8:
        values = np.arange(info.min, info.max + 1).astype(of)
        return np.repeat(values, 256), np.tile(values, 256)
    corners = np.array([0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 2 + 1], of)
    rng = np.random.default_rng(t.bits())
    many = rng.integers(info.min, info.max, 2000, of, endpoint=True) >> rng.integers(0, t.bits(), 2000).astype(of)
    a, c = (np.array(list(itertools.product(corners, corners)), of)).T
    return np.concatenate([a, many[:1000], many[1000:]]), np.concatenate([c, many[1000:], many[1000:][::-1]])


def wide(a: np.ndarray) -> Any:
    return a.astype(object) if a.dtype.itemsize == 8 else a.astype(np.int64)


def wrapped(a: Any, t: hl.Type) -> np.ndarray:
    return (np.asarray(a, object) & (1 << t.bits()) - 1).astype(f"uint{t.bits()}").view(dtype(t))


def limited(a: Any, t: hl.Type) -> np.ndarray:
    info = np.iinfo(dtype(t))
    return np.clip(a, info.min, info.max).astype(dtype(t))


def truncated(x: Any, d: int) -> Any:
    """x / d rounded to 0."""
    return np.sign(x) * np.sign(d) * (abs(x) // abs(d))


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("t", ALL, ids=str)
def test_averages_and_sums(t: hl.Type, lanes: int) -> None:
    a, c = pairs(t)
    x, y, p, q = hl.Buffer(a)[X], hl.Buffer(c)[X], wide(a), wide(c)
    wanted = {"halving_add": wrapped(p + q >> 1, t), "rounding_halving_add": wrapped(p + q + 1 >> 1, t), "halving_sub": wrapped(p - q >> 1, t),
              "saturating_add": limited(p + q, t), "saturating_sub": limited(p - q, t), "absd": wrapped(abs(p - q), hl.UInt(t.bits()))}
    for name, got in zip(wanted, compute([getattr(hl, name)(x, y) for name in wanted], len(a), lanes), strict=True):
        np.testing.assert_array_equal(got, wanted[name], name)


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("t", ALL, ids=str)
def test_division_by_constants(t: hl.Type, target: str) -> None:
    a, _ = pairs(t)
    a = np.unique(a) if t.bits() == 8 else np.arange(1 << 16).astype(np.uint16).view(dtype(t)) if t.bits() == 16 else a
    a = np.resize(a, len(a) // 64 * 64 + 64)
    info = np.iinfo(dtype(t))
    few = [3, 7, 10, 37, 641, -1, -7]  # wide ones are divided lane by lane by some machines, which takes long to compile
    divisors = [*range(3, 128, 1 if t.bits() == 8 else 8), *few, 100, 255, 32767, 40503, 65535, -3, -100] if t.bits() < 32 else few
    divisors = [d for d in divisors if info.min < d <= info.max]
    operations = (lambda x, d: x / d, lambda x, d: x % d, hl.div_round_to_zero, hl.mod_round_to_zero)
    exact = (lambda x, d: (x - x % abs(d)) // d, lambda x, d: x % abs(d), truncated, lambda x, d: x - truncated(x, d) * d)
    values = [f(hl.Buffer(a)[X], hl.cast(t, d)) for d in divisors for f in operations]
    wanted = [f(wide(a), d) for d in divisors for f in exact]
    for k in range(0, len(values), 16):
        for i, got in enumerate(compute(values[k:k + 16], len(a), 64 if t.bits() < 32 else 8, target), k):
            np.testing.assert_array_equal(got, wrapped(wanted[i], t), f"{i % 4} by {divisors[i // 4]}")


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("t", ALL, ids=str)
def test_shifts_by_vectors(t: hl.Type, target: str) -> None:
    """Amounts of either sign, also beyond the width, and with limits that are known."""
    rng, bits = np.random.default_rng(0), t.bits()
    a = pairs(t)[0][:4096]
    amounts = rng.integers(-bits - 3, bits + 4, len(a))
    x, signed, unsigned = hl.Buffer(a)[X], hl.Buffer(amounts.astype(f"int{bits}"))[X], hl.Buffer(abs(amounts).astype(f"uint{bits}"))[X]
    p, up = a.astype(object), np.abs(amounts).astype(object)

    def shifted(amounts: Any) -> np.ndarray:
        return wrapped([v << k if k >= 0 else v >> -k for v, k in zip(p, amounts)], t)

    def rounded(amounts: Any) -> np.ndarray:
        return wrapped([v + (1 << k >> 1) >> k for v, k in zip(p, amounts)], t)

    known = up & 7
    both = amounts.astype(object)
    wanted = [shifted(both), shifted(-both), shifted(up), shifted(-up), shifted(known), shifted(-known), rounded(up), rounded(known),
              *(rounded(np.full_like(up, k)) for k in (1, bits - 1, 3))]
    few, one = unsigned & 7, lambda k: hl.cast(hl.UInt(bits), k)
    values = [x << signed, x >> signed, x << unsigned, x >> unsigned, x << few, x >> few,
              *(hl.rounding_shift_right(x, s) for s in (unsigned, few, one(1), one(bits - 1), one(3)))]
    for lanes in (1, 4, 64):
        for i, got in enumerate(compute(values, len(a), lanes, target)):
            np.testing.assert_array_equal(got, wanted[i], f"{i}, {lanes} lanes")


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("t", ALL[:6], ids=str)
def test_products_shifted(t: hl.Type, target: str) -> None:
    a, c = pairs(t)
    x, y, product = hl.Buffer(a)[X], hl.Buffer(c)[X], a.astype(object) * c.astype(object)
    amounts = [0, 1, t.bits() // 2, t.bits() - 1, t.bits(), t.bits() + 3, 2 * t.bits() - 1]
    values = [f(x, y, hl.cast(hl.UInt(t.bits()), q)) for q in amounts for f in (hl.mul_shift_right, hl.rounding_mul_shift_right)]
    wanted = [limited(product + r >> q, t) for q in amounts for r in (0, (1 << q) >> 1)]
    for lanes in (1, 8, 64):
        for i, got in enumerate(compute(values, len(a), lanes, target)):
            np.testing.assert_array_equal(got, wanted[i], f"{'rounding ' if i % 2 else ''}{amounts[i // 2]}, {lanes} lanes")


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("t", ALL, ids=str)
def test_bits_are_counted(t: hl.Type, target: str) -> None:
    bits = t.bits()
    a = np.arange(1 << bits).astype(dtype(t)) if bits <= 16 else np.concatenate([pairs(t)[0], np.array([1 << k for k in range(bits - 1)], dtype(t))])
    x, words = hl.Buffer(a)[X], [int(w) & (1 << bits) - 1 for w in a]
    wanted = [[w.bit_count() for w in words], [bits - w.bit_length() for w in words], [(w & -w).bit_length() - 1 if w else bits for w in words]]
    for lanes in (1, 6, 64):
        counts = compute([hl.popcount(x), hl.count_leading_zeros(x), hl.count_trailing_zeros(x)], len(a), lanes, target)
        for got, want in zip(counts, wanted):
            np.testing.assert_array_equal(got.astype(np.int64), want)


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("bits", [32, 64])
def test_floats_saturate(bits: int, target: str) -> None:
    """At the ends of every type, a float beside them, NaN and infinity, which become the largest number; and what integers are as floats."""
    of = np.dtype(f"float{bits}")
    ends = np.array([s * 2.0**k for k in (0, 7, 8, 15, 16, 31, 32, 63, 64, 100) for s in (1, -1)], of)
    a = np.concatenate([ends, np.nextafter(ends, of.type(0)), np.nextafter(ends, 2 * ends), np.array([0.5, -0.5, -0.0, np.inf, -np.inf, np.nan, 99.9], of)])
    a = np.resize(a, 128)
    for lanes in (1, 4, 32):
        for t, got in zip(ALL, compute([hl.saturating_cast(t, hl.Buffer(a)[X]) for t in ALL], len(a), lanes, target), strict=True):
            info = np.iinfo(dtype(t))
            want = [info.max if np.isnan(v) or v >= info.max else info.min if v <= info.min else int(v) for v in a.astype(np.longdouble)]
            np.testing.assert_array_equal(got, np.array(want, dtype(t)), f"{t}, {lanes} lanes")
        for t in ALL:
            ints = pairs(t)[0][:1024]
            np.testing.assert_array_equal(compute([hl.cast(hl.Float(bits), hl.Buffer(ints)[X])], len(ints), lanes, target)[0], ints.astype(of))


def test_no_byte_goes_its_own_way(tmp_path: Path) -> None:
    """gcc takes the generic forms of these apart into scalars."""
    x, y = (hl.ImageParam(hl.UInt(8), 1, name) for name in "xy")
    for value in (x[X] / 7, x[X] % 7, x[X] << (y[X] & 7), hl.popcount(x[X]), hl.count_trailing_zeros(x[X]), hl.count_leading_zeros(x[X])):
        f = hl.Func("f")
        f[X] = hl.cast(hl.UInt(8), value)
        f.vectorize(X, 32)
        text = c_text(f, [x, y], tmp_path)
        assert not re.search(r"/ \(uint8_t\)7|hl_(popcount|clz|ctz)_u8\(|\[31\]", text)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("low", [-1000.0, 0.0])
def test_floats_become_integers_by_way_of_others(low: float, lanes: int) -> None:
    """A negative number that an unsigned type is given by way of a signed one wraps: it is not limited as a float would be."""
    x = hl.Var("x")
    values = np.linspace(-1200, 1200, 64).astype(np.float32)
    limited = np.clip(values, low, 1000).astype(np.int64)
    source = hl.Buffer(values)
    types = [hl.Int(16), hl.Int(32), hl.Int(64), hl.UInt(16), hl.UInt(32), hl.UInt(64)]
    pairs = [(inner, outer) for inner in types for outer in types if low >= 0 or inner.is_int()]
    out = hl.Func("out")
    out[x] = tuple(hl.cast(outer, hl.cast(inner, hl.clamp(source[x], low, 1000.0))) for inner, outer in pairs)
    if lanes > 1:
        out.vectorize(x, lanes)
    for got, (inner, outer) in zip(out.realize([64]), pairs):
        found = np.asarray(got)
        np.testing.assert_array_equal(found, limited.astype(found.dtype), err_msg=f"{outer} of {inner}")
