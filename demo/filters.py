"""The two filters of the demo, as anyone would write them: under halide_py, under Halide from PyPI, in NumPy and in SciPy.

`hl` is the module to use: both have the same interface, so there is one text. Without a schedule everything is computed where it is
used, once for each use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Array = npt.NDArray[Any]

SIGMA = 1.5
TAPS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]
GRAY = (0.299, 0.587, 0.114)


def blur(hl: Any, photo: Any, scheduled: bool) -> Any:
    """3x3 box blur of an 8-bit photograph (x, y, channel), edges repeated."""
    x, y, c, yo, yi = (hl.Var(name) for name in ("x", "y", "c", "yo", "yi"))
    rows, out = hl.Func("rows"), hl.Func("blur")
    clamped = hl.BoundaryConditions.repeat_edge(photo)
    wide = hl.Func("wide")
    wide[x, y, c] = hl.cast(hl.UInt(16), clamped[x, y, c])
    rows[x, y, c] = wide[x - 1, y, c] + wide[x, y, c] + wide[x + 1, y, c]
    out[x, y, c] = hl.cast(hl.UInt(8), (rows[x, y - 1, c] + rows[x, y, c] + rows[x, y + 1, c]) // 9)
    if scheduled:
        out.split(y, yo, yi, 32).parallel(yo).parallel(c).vectorize(x, 32)
        rows.store_at(out, yo).compute_at(out, yi).vectorize(x, 16)
    return out


def unsharp(hl: Any, photo: Any, scheduled: bool) -> Any:
    """Unsharp mask of a float32 photograph (x, y, channel): the luminance is blurred with 7x7 taps and its detail doubled."""
    x, y, c, yo, yi = (hl.Var(name) for name in ("x", "y", "c", "yo", "yi"))
    k = [hl.f32(tap) for tap in TAPS]
    gray, columns, soft, ratio, out = (hl.Func(name) for name in ("gray", "columns", "soft", "ratio", "unsharp"))
    near = hl.BoundaryConditions.repeat_edge(photo)
    gray[x, y] = hl.f32(GRAY[0]) * near[x, y, 0] + hl.f32(GRAY[1]) * near[x, y, 1] + hl.f32(GRAY[2]) * near[x, y, 2]
    columns[x, y] = k[0] * gray[x, y] + sum_of([k[i] * (gray[x, y - i] + gray[x, y + i]) for i in (1, 2, 3)])
    soft[x, y] = k[0] * columns[x, y] + sum_of([k[i] * (columns[x - i, y] + columns[x + i, y]) for i in (1, 2, 3)])
    ratio[x, y] = (2 * gray[x, y] - soft[x, y]) / gray[x, y]
    out[x, y, c] = hl.clamp(ratio[x, y] * photo[x, y, c], hl.f32(0.0), hl.f32(1.0))
    if scheduled:
        out.bound(c, 0, 3).reorder(c, x, y).unroll(c).split(y, yo, yi, 64).vectorize(x, 8).parallel(yo)
        for stage in (gray, columns):
            stage.store_at(out, yo).compute_at(out, yi).vectorize(x, 8)
        ratio.compute_at(out, x).vectorize(x, 8)
    return out


def sum_of(terms: list[Any]) -> Any:
    """The sum of Exprs."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def numpy_blur(photo: Array) -> Array:
    """The same blur on (3, height, width) in NumPy."""
    p = np.pad(photo, ((0, 0), (1, 1), (1, 1)), mode="edge").astype(np.uint16)
    rows = p[:, :, :-2] + p[:, :, 1:-1] + p[:, :, 2:]
    result: Array = ((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) // 9).astype(np.uint8)
    return result


def scipy_blur(photo: Array) -> Array:
    """The same blur in SciPy."""
    box = np.ones(3, np.uint16)
    rows = ndimage.correlate1d(photo.astype(np.uint16), box, axis=2, mode="nearest")
    result: Array = (ndimage.correlate1d(rows, box, axis=1, mode="nearest") // 9).astype(np.uint8)
    return result


def numpy_unsharp(photo: Array) -> Array:
    """The same unsharp mask on (3, height, width) in NumPy."""
    weights = np.array(TAPS[:0:-1] + TAPS, np.float32)
    gray = np.float32(GRAY[0]) * photo[0] + np.float32(GRAY[1]) * photo[1] + np.float32(GRAY[2]) * photo[2]
    h, w = gray.shape
    p = np.pad(gray, 3, mode="edge")
    columns = sum(weights[i] * p[i:i + h] for i in range(7))
    soft = sum(weights[i] * columns[:, i:i + w] for i in range(7))
    result: Array = np.clip((2 * gray - soft) / gray * photo, 0, 1).astype(np.float32)
    return result


def scipy_unsharp(photo: Array) -> Array:
    """The same unsharp mask in SciPy."""
    weights = np.array(TAPS[:0:-1] + TAPS, np.float32)
    gray = np.float32(GRAY[0]) * photo[0] + np.float32(GRAY[1]) * photo[1] + np.float32(GRAY[2]) * photo[2]
    columns = ndimage.correlate1d(gray, weights, axis=0, mode="nearest")
    soft = ndimage.correlate1d(columns, weights, axis=1, mode="nearest")
    result: Array = np.clip((2 * gray - soft) / gray * photo, 0, 1).astype(np.float32)
    return result


FILTERS: dict[str, tuple[Callable[..., Any], Callable[[Array], Array], Callable[[Array], Array]]] = {
    "blur": (blur, numpy_blur, scipy_blur),
    "unsharp": (unsharp, numpy_unsharp, scipy_unsharp),
}
