"""Errors of our own math functions in units in the last place, their special values, and equality of scalar and vector code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from c_run import CHECKS, FLAGS, build, call, function, load, loop, machine, store, var

from halide_py.codegen_c import generate
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import call_extern, find_extern, math_call
from halide_py.ir.types import Float

F32 = Float(32)
BOUNDS = {"exp": 1.0, "log": 1.0, "sin": 2.0, "cos": 2.0, "tanh": 2.0, "pow": 0.6}


def apply(name: str, *args: np.ndarray, lanes: int = 8, vector_bytes: int = 32, flags: tuple[str, ...] = FLAGS, language: str = "c++") -> np.ndarray:
    """The function on arrays whose length is a multiple of `lanes`."""
    x = n.Mul(var("x"), b.i32(lanes))
    names = [f"a{k}" for k in range(len(args))]
    value = math_call(name, *(load(F32, k, x, lanes) for k in names))
    module = function("f", loop("x", b.i32(len(args[0]) // lanes), store("out", value, x)), dict.fromkeys(names, F32), {"out": F32})
    out = np.zeros_like(args[0])
    assert call(build(generate(module, machine(vector_bytes)), flags, language), "f", [*args, out]) == 0
    return out


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error, where the exact value is finite, in units in the last place of it."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        keep = np.isfinite(rounded) & np.isfinite(want)
        assert np.array_equal(got[~keep], rounded[~keep], equal_nan=True)
        unit = np.maximum(np.spacing(np.abs(rounded[keep])), np.float32(1e-45)).astype(np.float64)
        return float(np.max(np.abs(got[keep].astype(np.float64) - want[keep]) / unit))


def arguments(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    count = 1 << 16
    if name == "exp":
        return [np.concatenate([rng.uniform(-105, 90, count), rng.uniform(-1, 1, count)]).astype(np.float32)]
    if name == "log":
        return [np.concatenate([np.exp(rng.uniform(-103, 88, count)), rng.uniform(0.5, 2, count)]).astype(np.float32)]
    if name in ("sin", "cos"):
        near = (rng.integers(-3000, 3000, count) * (np.pi / 2)).astype(np.float32)
        return [np.concatenate([rng.uniform(-6000, 6000, count), rng.uniform(-7, 7, count), rng.uniform(-1e6, 1e6, 64), near]).astype(np.float32)]
    if name == "tanh":
        return [np.concatenate([rng.uniform(-10, 10, count), rng.uniform(-1, 1, count), rng.uniform(-1e-6, 1e-6, count)]).astype(np.float32)]
    return [np.exp(rng.uniform(-10, 10, count)).astype(np.float32), rng.uniform(-9, 9, count).astype(np.float32)]


PLAIN = ("-O2", "-mavx2", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")  # no fused multiply-add


@pytest.mark.parametrize("flags", [FLAGS, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize("name", list(BOUNDS))
def test_error_bounds(name: str, flags: tuple[str, ...]) -> None:
    args = arguments(name)
    with np.errstate(all="ignore"):
        want = getattr(np, {"pow": "power"}.get(name, name))(*(a.astype(np.float64) for a in args))
    assert ulps(apply(name, *args, flags=flags), want) <= BOUNDS[name]


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 16777215.0, -16777216.0, 2.5, -2.5,
                    1e10, -1e10, 100.0], np.float32)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_special_values(name: str) -> None:
    """Zeros, infinities, NaN, signs: as C has them."""
    args = [SPECIAL] if name != "pow" else [np.ascontiguousarray(a) for a in np.array(list(itertools.product(SPECIAL, SPECIAL)), np.float32).T]
    with np.errstate(all="ignore"):
        want = getattr(np, {"pow": "power"}.get(name, name))(*(a.astype(np.float64) for a in args)).astype(np.float32)
    got = apply(name, *args)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-45)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("name", list(BOUNDS))
def test_scalar_and_vectors_agree(name: str) -> None:
    """A schedule never changes a result: the same bits at every width."""
    args = [a[:4096] for a in arguments(name)]
    want = apply(name, *args, lanes=1)
    for lanes, vector_bytes in ((8, 32), (4, 16), (16, 64), (16, 32)):
        np.testing.assert_array_equal(apply(name, *args, lanes=lanes, vector_bytes=vector_bytes), want)


def test_checked_and_as_c() -> None:
    for name in BOUNDS:
        args = [a[:64] for a in arguments(name)]
        np.testing.assert_allclose(apply(name, *args, flags=CHECKS), apply(name, *args, language="c"), rtol=1e-6)


@pytest.mark.parametrize("name", ["fast_exp", "fast_log", "fast_sin", "fast_cos", "fast_inverse", "fast_inverse_sqrt"])
def test_fast_functions(name: str) -> None:
    a = np.linspace(0.1, 3, 64).astype(np.float32)
    x = n.Mul(var("x"), b.i32(8))
    value = call_extern(find_extern(name, (F32,)), load(F32, "a", x, 8))
    out = np.zeros_like(a)
    assert call(build(generate(function("f", loop("x", 8, store("out", value, x)), {"a": F32}, {"out": F32}), machine())), "f", [a, out]) == 0
    exact = {"fast_inverse": lambda v: 1 / v, "fast_inverse_sqrt": lambda v: v ** -0.5}.get(name) or getattr(np, name[5:])
    np.testing.assert_allclose(out, exact(a.astype(np.float64)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["tan", "asin", "atan", "sinh", "erf", "asinh", "acosh", "atanh", "acos", "cosh"])
def test_library_functions(name: str) -> None:
    for bits, lanes in itertools.product((16, 32, 64), (1, 8)):
        t = Float(bits)
        value = math_call(name, load(t, "a", 0, lanes))
        a = np.full(lanes, 0.5 if name != "acosh" else 1.5, f"f{bits // 8}")
        out = np.zeros_like(a)
        assert call(build(generate(function("f", store("out", value, 0), {"a": t}, {"out": t}), machine())), "f", [a, out]) == 0
        want = 0.5204998778130465 if name == "erf" else getattr(np, {"asin": "arcsin", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
                                                                        "acos": "arccos"}.get(name, name))(a.astype(np.float64))
        np.testing.assert_allclose(out, np.broadcast_to(want, out.shape), rtol=1e-3 if bits == 16 else 1e-6)
