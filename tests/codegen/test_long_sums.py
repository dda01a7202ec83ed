"""Sums of thousands of terms compile in seconds: the text tells gcc to leave out what takes quadratic time on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halide_py as hl


@pytest.mark.parametrize("terms", [20, 2000])
def test_long_sum_of_remainders(terms: int, tmp_path: Path) -> None:
    x, f = hl.Var("x"), hl.Func()
    total = hl.Expr(x)
    for k in range(terms):
        total += (x * k) % 7
    f[x] = total
    text = tmp_path / "sum.c"
    f.compile_to_c(str(text), [], "long_sum")
    assert ('#pragma GCC optimize("no-tree-ter", "no-tree-reassoc")\n' in text.read_text()) == (terms == 2000)
    at = np.arange(9)
    np.testing.assert_array_equal(np.array(f.realize([9])), at + sum(at * k % 7 for k in range(terms)))
