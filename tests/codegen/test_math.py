"""Our own math functions: errors in units in the last place, special values as in C, the same bits in scalar and vector code.

HL_TEST_ALL=1 tries every float. Source of the exact values: the C library at twice the precision or more.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Iterator

import numpy as np
import pytest
from c_run import CHECKS, FLAGS, ROOT, argument_block, build, call, function, load, loop, machine, store, var

import halide_py as hl
from halide_py.codegen_c import generate
from halide_py.codegen_c.externs import OWN_MATH
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import C_LIBRARY, EXTERNS, call_extern, find_extern, math_call
from halide_py.ir.module import LoweredModule
from halide_py.ir.types import Float

# Largest errors of floats and of doubles, as hl_math.h states them.
BOUNDS = {"exp": (1.1, 1.1), "log": (0.9, 0.9), "sin": (1.6, 1.6), "cos": (1.6, 1.6), "tan": (3.1, 3), "asin": (2.5, 2.5), "acos": (1.3, 1.3), "atan": (2, 2),
          "atan2": (2, 2), "sinh": (2.5, 2.5), "cosh": (1.6, 1.6), "tanh": (2.7, 2.7), "asinh": (2, 2), "acosh": (2.7, 2.7), "atanh": (2, 2), "pow": (1.0, 1.1),
          "hypot": (1.3, 1.3), "erf": (1.4,)}
CASES = [(name, bits) for name, bounds in BOUNDS.items() for bits in (32, 64)[:len(bounds)]]
VECTORS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")  # of the comparison with the exact values
BLOCK = 1 << 14  # elements for each call of compiled code
PLAIN = ("-O2", "-mavx2", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")  # no fused multiply-add
EXACT = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power"}
extended = pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long double is no wider than double here")


def binary(name: str) -> bool:
    return name in ("atan2", "pow", "hypot")


@functools.cache
def library(lanes: int = 8, vector_bytes: int = 32, flags: tuple[str, ...] = FLAGS, language: str = "c++") -> ctypes.CDLL:
    """Every function, over blocks of arrays."""
    x = n.Mul(var("x"), b.i32(lanes))
    functions = []
    for name, bits in CASES:
        t, names = Float(bits), ["a", "b"][:1 + binary(name)]
        value = math_call(name, *(load(t, k, x, lanes) for k in names))
        functions += function(f"{name}_{bits}", loop("x", BLOCK // lanes, store("out", value, x)), dict.fromkeys(names, t), {"out": t}).functions
    return build(generate(LoweredModule("math", functions), machine(vector_bytes)), flags, language)


def apply(name: str, *args: np.ndarray, compiled: ctypes.CDLL | None = None) -> np.ndarray:
    compiled = compiled or library()
    out = np.empty_like(args[0])
    for k in range(0, len(out), BLOCK):
        size = len(out[k:k + BLOCK])
        blocks = [np.resize(a[k:k + BLOCK], BLOCK) for a in args]
        result = np.empty_like(blocks[0])
        assert call(compiled, f"{name}_{out.dtype.itemsize * 8}", [*blocks, result]) == 0
        out[k:k + size] = result[:size]
    return out


def exact(name: str, *args: np.ndarray) -> np.ndarray:
    wide = np.float64 if args[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        if name == "erf":
            return pytest.importorskip("scipy.special").erf(args[0].astype(wide))
        return getattr(np, EXACT.get(name, name))(*(a.astype(wide) for a in args))


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units in the last place, where the exact value is finite; elsewhere, and about signs of 0, both must agree."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        keep = np.isfinite(rounded)
        np.testing.assert_array_equal(got[~keep], rounded[~keep])
        zero = rounded == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))
        unit = np.maximum(np.spacing(np.abs(rounded[keep])), np.finfo(got.dtype).smallest_subnormal).astype(want.dtype)
        return float(np.max(np.abs(got[keep].astype(want.dtype) - want[keep]) / unit, initial=0))


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 100.0, -100.0, 16777215.0, -16777216.0, 1e10, -1e10, 2.0**53]
TINY = {32: [1e-45, -1e-45, 1.1e-38, 3e38, -3e38], 64: [5e-324, -5e-324, 2.2e-308, 1.7e308, -1.7e308]}


def special(name: str, bits: int) -> list[np.ndarray]:
    t = np.float32 if bits == 32 else np.float64
    values = np.array([*SPECIAL, *TINY[bits]], t)
    return [np.array(a, t) for a in zip(*itertools.product(values, values))] if binary(name) else [values]


def samples(name: str, bits: int) -> Iterator[list[np.ndarray]]:
    """Arguments of all sizes, and more where the formulas change."""
    rng, t, count = np.random.default_rng(0), np.float32 if bits == 32 else np.float64, BLOCK

    def of(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(a, t) for a in arrays]

    def uniform(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, count)

    yield special(name, bits)
    if name == "pow":
        yield of(np.exp(uniform(-20, 20)), uniform(-30, 30))
        yield of(uniform(0.99, 1.01), uniform(-5000, 5000))
        yield of(uniform(-10, 10), rng.integers(-9, 9, count))
    elif binary(name):
        yield of(rng.normal(size=count), rng.normal(size=count))
        yield of(rng.normal(size=count) * np.exp(uniform(-40, 40)), rng.normal(size=count) * np.exp(uniform(-40, 40)))
        low, high = (-102, 86) if bits == 32 else (-740, 708)
        size = np.exp(uniform(low, high))
        yield of(rng.normal(size=count) * size, rng.normal(size=count) * size)
    else:
        word = np.uint32 if bits == 32 else np.uint64
        yield [rng.integers(0, 2**bits, 8 * count, dtype=np.uint64).astype(word).view(t)]
        for low, high in ((-1, 1), (0.99, 1.02), (-10, 10), (-750, 750), (-6000, 6000)):
            yield of(uniform(low, high))
        yield of(rng.integers(-4000, 4000, count) * (np.pi / 2))


@extended
@pytest.mark.parametrize("flags", [FLAGS, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize("name,bits", CASES)
def test_error_bounds(name: str, bits: int, flags: tuple[str, ...]) -> None:
    compiled = library(flags=flags)
    assert max(ulps(apply(name, *args, compiled=compiled), exact(name, *args)) for args in samples(name, bits)) <= BOUNDS[name][bits // 64]


@pytest.mark.skipif(os.environ.get("HL_TEST_ALL", "0") == "0", reason="every float: set HL_TEST_ALL=1")
@pytest.mark.parametrize("name", [name for name in BOUNDS if not binary(name)])
def test_every_float(name: str) -> None:
    error, where = largest_error(name, 0, 2**32)
    print(f"{name}: {error:.3f} units in the last place at {where!r}, at most {BOUNDS[name][0]} stated")
    assert error <= BOUNDS[name][0]


@pytest.mark.parametrize("name", [name for name in BOUNDS if not binary(name)])
def test_some_floats(name: str) -> None:
    """The same for one float in 256: all signs and exponents, each with a block of mantissas."""
    blocks = (largest_error(name, first, first + BLOCK) for first in range(0, 2**32, 256 * BLOCK))
    assert max(blocks)[0] <= BOUNDS[name][0]


def largest_error(name: str, first: int, end: int) -> tuple[float, float]:
    """The largest error over the floats of these bits, and where it is."""
    a, out, where = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float32), ctypes.c_float()
    block, _alive = argument_block([a, out])
    measure = build((ROOT / "tests/codegen/every_float.c").read_text(), VECTORS, "c").largest_error
    measure.restype = ctypes.c_double
    error = measure(name.encode(), ctypes.cast(getattr(library(), f"{name}_32_argv"), ctypes.c_void_p), block, ctypes.c_void_p(a.ctypes.data),
                    ctypes.c_void_p(out.ctypes.data), BLOCK, (ctypes.c_uint64 * 2)(first, end), ctypes.byref(where))
    assert error == error, "it failed"
    return error, where.value


@pytest.mark.parametrize("name,bits", CASES)
def test_scalar_and_vectors_agree(name: str, bits: int) -> None:
    """A schedule never changes a result: the same bits at every width, whatever the other lanes hold."""
    rng = np.random.default_rng(1)
    arguments = [np.concatenate(a) for a in zip(*samples(name, bits))]
    arguments = [a[rng.permutation(len(a))] for a in arguments][:BLOCK]
    want = apply(name, *arguments, compiled=library(lanes=1))
    for lanes, vector_bytes in ((8, 32), (4, 16), (16, 64), (16, 32)):
        np.testing.assert_array_equal(apply(name, *arguments, compiled=library(lanes, vector_bytes)), want)


def test_checked_and_as_c() -> None:
    for name, bits in CASES:
        args = [a[:64] for a in special(name, bits)]
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(apply(name, *args, compiled=library(flags=CHECKS)), apply(name, *args, compiled=library(language="c")), rtol=1e-6)


def test_no_function_calls_the_library() -> None:
    """Each has vector code of our own, but for those that are instructions, fast_* (which are others), erf of doubles, which the language lacks, and what only C sources call."""
    instructions = {"sqrt", "floor", "ceil", "trunc", "round"}
    assert {*CASES} == {(name, bits) for name, bits in OWN_MATH if not name.startswith("fast_")}
    assert {row.name for row in EXTERNS.values() if row.builtin and not row.name.startswith("fast_")} - {*C_LIBRARY} == instructions | {*BOUNDS}


FAST = {"fast_exp": (-80, 80), "fast_log": (1e-37, 1e37), "fast_sin": (-100, 100), "fast_cos": (-100, 100), "fast_inverse": (1e-37, 1e37),
        "fast_inverse_sqrt": (1e-37, 1e37)}


def test_fast_functions() -> None:
    """Within 1e-5, the same in scalars and vectors."""
    t, functions, count = Float(32), [], 1 << 12
    for name, lanes in itertools.product(FAST, (1, 8)):
        x = n.Mul(var("x"), b.i32(lanes))
        value = call_extern(find_extern(name, (t,)), load(t, "a", x, lanes))
        functions += function(f"{name}_{lanes}", loop("x", count // lanes, store("out", value, x)), {"a": t}, {"out": t}).functions
    compiled = build(generate(LoweredModule("fast", functions), machine()))
    for name, (low, high) in FAST.items():
        a = (np.exp(np.linspace(np.log(low), np.log(high), count)) if low > 0 else np.linspace(low, high, count)).astype(np.float32)
        scalar, vector = np.zeros_like(a), np.zeros_like(a)
        assert call(compiled, f"{name}_1", [a, scalar]) == 0 and call(compiled, f"{name}_8", [a, vector]) == 0
        np.testing.assert_array_equal(scalar, vector)
        wanted = {"fast_inverse": lambda v: 1 / v, "fast_inverse_sqrt": lambda v: v ** -0.5}.get(name) or getattr(np, name[5:])
        np.testing.assert_allclose(vector, wanted(a.astype(np.float64)), rtol=1e-5, atol=1e-6 if name in ("fast_sin", "fast_cos", "fast_log") else 0)


def test_fast_powers() -> None:
    """Within 1e-5 and 2e-7 for each power of 2, the same in scalars and vectors; 0 at 0."""
    rng, count = np.random.default_rng(0), 1 << 14
    base, power = np.exp(rng.uniform(-20, 20, count)).astype(np.float32), rng.uniform(-4, 4, count).astype(np.float32)
    base[:2], power[:2] = 0, (0.5, 3)
    x, vector, scalar = hl.Var("x"), hl.Func("vector"), hl.Func("scalar")
    for f in (vector, scalar):
        f[x] = hl.fast_pow(hl.Buffer(base)[x], hl.Buffer(power)[x])
    vector.vectorize(x, 16)
    got = np.asarray(vector.realize([count]))
    np.testing.assert_array_equal(got, np.asarray(scalar.realize([count])))
    assert got[0] == got[1] == 0
    exponent = power[2:] * np.log2(base[2:].astype(np.float64))
    inside = np.abs(exponent) < 125
    assert np.all(np.abs(got[2:] / 2**exponent - 1)[inside] <= (1e-5 + 2e-7 * np.abs(exponent))[inside])


def ordered(words: np.ndarray) -> np.ndarray:
    """Half floats given by their bits, as integers in the order of their values: neighbours differ by 1, zeros are one."""
    magnitude = (words & 0x7FFF).astype(np.int32)
    return np.where(words >> 15, -magnitude, magnitude)


@pytest.mark.parametrize("t", [hl.Float(16), hl.BFloat(16)], ids=["float16", "bfloat16"])
def test_every_half_float(t: hl.Type) -> None:
    """All unary functions on all half floats: the exact value rounded, or its neighbour; NaN and infinity where they belong."""
    words, names = np.arange(2**16, dtype=np.uint16), [name for name in BOUNDS if not binary(name)]
    x, f = hl.Var("x"), hl.Func("f")
    half = hl.reinterpret(t, hl.Buffer(words)[x])
    f[x] = hl.Tuple([hl.reinterpret(hl.UInt(16), hl.cast(t, getattr(hl, name)(half if name != "erf" else hl.f32(half)))) for name in names])
    f.vectorize(x, 16)
    brain = t.is_bfloat()
    a = (words.astype(np.uint32) << 16).view(np.float32) if brain else words.view(np.float16).astype(np.float32)
    infinity = 0x7F80 if brain else 0x7C00
    for name, result in zip(names, map(np.asarray, f.realize([2**16])), strict=True):
        want = exact(name, a)
        with np.errstate(all="ignore"):
            single = want.astype(np.float32)
            if brain:  # rounded to nearest by hand, ties to even
                bits = single.view(np.uint32)
                rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            else:
                rounded = want.astype(np.float16).view(np.uint16)
        nan = np.isnan(want)
        assert np.all((result[nan] & 0x7FFF) > infinity), name
        distance = np.abs(ordered(result[~nan]) - ordered(rounded[~nan]))
        assert distance.max() <= 1, f"{name}({a[~nan][distance.argmax()]})"


def test_half_floats_round_once() -> None:
    """Computed as floats, then rounded."""
    a = np.linspace(0.1, 0.9, 16).astype(np.float16)
    functions, t = [], Float(16)
    for name in BOUNDS:
        value = math_call(name, *(load(t, "a", 0, 16),) * (1 + binary(name)))
        functions += function(name, store("out", value, 0), {"a": t}, {"out": t}).functions
    compiled = build(generate(LoweredModule("half", functions), machine()))
    for name in BOUNDS:
        out = np.zeros_like(a)
        assert call(compiled, name, [a, out]) == 0
        wide = a.astype(np.float32)
        with np.errstate(all="ignore"):
            np.testing.assert_array_max_ulp(out, exact(name, *(wide,) * (1 + binary(name))).astype(np.float16), 1)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("exponent", [1.0, 2.0, -1.0, 0.5])
def test_powers_that_are_simpler(exponent: float, lanes: int) -> None:
    """As instructions: rounded once, with C's special values."""
    x, f = hl.Var("x"), hl.Func("f")
    for t, bits in ((np.float32, 32), (np.float64, 64)):
        a = np.concatenate([special("exp", bits)[0], np.random.default_rng(0).normal(size=997)]).astype(t)
        f = hl.Func("f")
        f[x] = hl.pow(hl.Buffer(a)[x], hl.cast(hl.Float(bits), exponent))
        if lanes > 1:
            f.vectorize(x, lanes)
        with np.errstate(all="ignore"):
            want = {1.0: lambda v: v, 2.0: lambda v: v * v, -1.0: lambda v: 1 / v, 0.5: np.sqrt}[exponent](a)
            if exponent == 0.5:
                want[a == 0], want[np.isneginf(a)] = 0, np.inf
        got = np.asarray(f.realize([len(a)]))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("flags", [FLAGS, PLAIN], ids=["fused", "plain"])
def test_powers_that_are_floats_are_exact(flags: tuple[str, ...]) -> None:
    """Squares, cubes, further powers and roots of small integers, and every number to the power of 1."""
    k = np.arange(1, 4097, dtype=np.float64)
    rng = np.random.default_rng(0)
    cases = [(k, 2.0), (k[:255], 3.0), (k[:63], 4.0), (k[:27], 5.0), (k * k, 0.5), (np.exp(rng.uniform(-80, 80, 1 << 16)), 1.0),
             (2.0 ** np.arange(-20, 20), -3.0), (2.0 ** np.arange(-60, 60, 2), 0.5)]
    for a, y in cases:
        x = a.astype(np.float32)
        got = apply("pow", x, np.full_like(x, y), compiled=library(flags=flags))
        want = x.astype(np.float64) ** np.float64(np.float32(y))
        assert np.array_equal(want.astype(np.float32), want)
        np.testing.assert_array_equal(got, want.astype(np.float32), f"power {y}")
