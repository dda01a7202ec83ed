"""fma rounds once: in scalars and vectors, with and without an instruction for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x = hl.Var("x")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("target", ["host", "x86-64-linux"])
def test_products_are_not_rounded(dtype: Any, lanes: int, target: str, strict: bool) -> None:
    if target.startswith("x86") and hl.get_host_target().arch is not hl.TargetArch.X86:
        pytest.skip("x86")
    rng, n = np.random.default_rng(3), 160
    a, b = ((rng.random(n) + 1).astype(dtype) for _ in range(2))
    c = np.where(rng.random(n) < 0.7, -(a * b), rng.random(n)).astype(dtype)  # mostly all but cancelled
    f = hl.Func("f")
    e = hl.fma(*(hl.Buffer(v)[x] for v in (a, b, c)))
    f[x] = hl.strict_float(e) if strict else e
    if lanes > 1:
        f.vectorize(x, lanes)
    want = [float(dtype(float(Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r))))) for p, q, r in zip(a, b, c)]
    assert np.asarray(f.realize([n], hl.Target(target))).tolist() == want
    assert (a * b + c).tolist() != want


def test_what_fma_takes() -> None:
    assert hl.fma(hl.f64(2), 3, 4).type() == hl.Float(64) and hl.evaluate(hl.fma(0.5, hl.f32(3), 1)) == 2.5
    g = hl.Func("g")
    g[x] = hl.f32(x)
    assert hl.evaluate(hl.fma(g[3], 2, g[1])) == 7
    for args in ((hl.f32(1), hl.f64(1), 1), (hl.i32(1), 2, 3), (hl.f16(1), hl.f16(2), 3.0), (hl.f32(1), 2.0, hl.u8(3))):
        with pytest.raises(hl.CompileError, match="fma takes three float32 or three float64, not "):
            hl.fma(*args)
