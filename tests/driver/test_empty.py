"""Arrays without elements are arrays: nothing is computed, the shapes are kept."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")


@pytest.mark.parametrize("sizes", [[4, 0], [0, 4], [0, 0]])
def test_realize_nothing(sizes: list[int]) -> None:
    f = hl.Func("nothing")
    f[x, y] = x + y
    assert np.array(f.realize(sizes)).shape == tuple(sizes[::-1])
    f.realize(hl.Buffer(np.zeros(sizes[::-1], np.int32)))


def test_an_empty_input_is_not_read() -> None:
    image = hl.ImageParam(hl.Int(32), 1, "empty_image")
    image.set(hl.Buffer(np.zeros(0, np.int32)))
    f = hl.Func("of_nothing")
    f[x] = image[x] + 1
    assert np.array(f.realize([0])).shape == (0,)
    with pytest.raises(hl.HalideError, match="beyond the max"):
        f.realize([1])
