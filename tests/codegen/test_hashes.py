"""Hashes in int32: products that leave the type wrap around in data and in what indices are limited to, and no rule assumes they do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl

FACTORS = (1103515245, -1640531527, 214013, 16807 * 16807)
COUNT = 1000

FORMS: dict[str, Callable[[hl.Expr | np.ndarray], hl.Expr | np.ndarray]] = {
    "remainder": lambda e: e % 100, "quotient": lambda e: e // 100, "factor and divisor": lambda e: e * 5 % 1000, "two factors": lambda e: e * 1103515245 // 4,
    "sign": lambda e: (e < 0) + 0 * e if isinstance(e, np.ndarray) else hl.i32(e < 0),
    "compared": lambda e: (e * 2 < e + 8) + 0 * e if isinstance(e, np.ndarray) else hl.i32(e * 2 < e + 8),
    "clamped": lambda e: np.clip(e, 0, 255) if isinstance(e, np.ndarray) else hl.clamp(e, 0, 255)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("known", [False, True])
def test_wraps(form: str, factor: int, known: bool) -> None:
    x, f = hl.Var("x"), hl.Func("f")
    f[x] = FORMS[form](x * factor + 12345)
    if known:  # the range of x is
        f.bound(x, 0, COUNT)
    with np.errstate(over="ignore"):
        expected = FORMS[form](np.arange(COUNT, dtype=np.int32) * np.int32(factor) + np.int32(12345))
    assert np.array_equal(np.asarray(f.realize([COUNT])), expected)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("start", [0, 5, 100])
@pytest.mark.parametrize("reduction", [False, True])
def test_limited_index(factor: int, start: int, reduction: bool) -> None:
    """The region of what is read holds every index, or it is an error."""
    x, f, g = hl.Var("x"), hl.Func("f"), hl.Func("g")
    r = hl.RDom([(0, COUNT)])
    g[x] = x * 3
    if reduction:
        f[x] = 0
        f[r.x] += g[hl.clamp((r.x + start) * factor + 7, 0, 255)]
    else:
        f[x] = g[hl.clamp((x + start) * factor + 7, 0, 255)]
    g.compute_root()
    with np.errstate(over="ignore"):
        index = (np.arange(COUNT, dtype=np.int32) + np.int32(start)) * np.int32(factor) + np.int32(7)
    assert np.array_equal(np.asarray(f.realize([COUNT])), np.clip(index, 0, 255) * 3)
