"""Elements that come from anywhere and go anywhere are copied one by one: no vector of them, or of their places, is put together to be
taken apart."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from c_texts import c_text

import halide_py as hl

x, y, xi, yi = (hl.Var(v) for v in ("x", "y", "xi", "yi"))
IMAGE = np.random.default_rng(0).integers(0, 60000, (54, 54)).astype(np.uint16)


def turned(size: int) -> tuple[hl.Func, hl.ImageParam]:
    """Blocks in vectors of vectors."""
    image, f = hl.ImageParam(hl.UInt(16), 2, "image"), hl.Func("f")
    f[x, y] = image[y, x]
    f.tile(x, y, x, y, xi, yi, size, size).vectorize(xi).vectorize(yi)
    image.set(hl.Buffer(IMAGE))
    return f, image


@pytest.mark.parametrize("size", [3, 6, 27])
def test_blocks_are_turned_element_by_element(size: int, tmp_path: Path) -> None:
    f, image = turned(size)
    np.testing.assert_array_equal(np.asarray(f.realize([54, 54])), IMAGE.T)
    text = c_text(f, [image], tmp_path)
    copies = re.findall(r"^ *f\w*\[.*\] = image\w*\[.*\];$", text, re.M)
    assert len(copies) >= size * size - 1  # the last may be a slice of its own
    assert not re.search(r"\b[iu](8|16|32)x\d+\b", text[text.index("for ("):])


def test_places_of_computed_values_are_sums() -> None:
    """Values are computed in vectors, their places are not."""
    image, f = hl.ImageParam(hl.UInt(16), 2, "image"), hl.Func("f")
    f[x, y] = image[y, x] * 3 + hl.u16(x)
    f.tile(x, y, x, y, xi, yi, 6, 6).vectorize(xi).vectorize(yi)
    image.set(hl.Buffer(IMAGE))
    wanted = IMAGE.T * np.uint16(3) + np.arange(54, dtype=np.uint16)
    np.testing.assert_array_equal(np.asarray(f.realize([54, 54])), wanted)


@pytest.mark.parametrize("strides", [(2, 3), (-2, 5), (4, 4)])
def test_strided_copies(strides: tuple[int, int]) -> None:
    there, here = strides
    image, f = hl.ImageParam(hl.Float(32), 1, "image"), hl.Func("f")
    f[x] = -1.0
    r = hl.RDom([(0, 40)])
    f[200 + there * r] = image[here * r]
    f.update().allow_race_conditions().vectorize(r, 8)
    values = np.arange(400, dtype=np.float32)
    image.set(hl.Buffer(values))
    wanted = np.full(400, -1, np.float32)
    wanted[200 + there * np.arange(40)] = values[here * np.arange(40)]
    np.testing.assert_array_equal(np.asarray(f.realize([400])), wanted)
