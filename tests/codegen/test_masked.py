"""Masked loads of every width, in vectors that are as many registers as they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halide_py as hl


@pytest.mark.parametrize("t", [hl.Int(64), hl.UInt(64), hl.Float(64), hl.Int(32)])
def test_masked_loads_beside_narrower_values(tmp_path: Path, t: hl.Type) -> None:
    """The derivative is a sum in 16 lanes with a masked tail, whose 64-bit values are of two registers."""
    x, p, k, factor, f = hl.Var("x"), hl.ImageParam(t, 1, "p"), hl.Param(t, "k"), hl.Param(hl.Float(32), "factor"), hl.Func("f")
    f[x] = hl.f32(p[x]) * factor + hl.f32(k)
    hl.compile_to_pytorch(f, str(tmp_path / "masked"), [p, k, factor])
    values = (np.arange(37) * 3).astype(np.dtype(str(t)))
    gradient = hl.load_library(tmp_path / "masked_pipelines.so", "masked_gradient")
    results = [np.zeros((37,) if t.is_float() and i == 0 else (), np.float64 if t.is_float() and i < 2 else np.float32) for i in range(3 if t.is_float() else 1)]
    gradient(values, 3, 1.0, np.ones(37, np.float32), *results)
    assert results[-1] == values.sum()
