"""The pipelines that are timed, in the common interface of halide_py and Halide: `hl` is the module to use.

Each maker gives the output Func, the inputs as NumPy arrays by ImageParam, and the shape and type of the output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass
class Work:
    """A pipeline with its data. `reference` gives the expected output."""

    output: Any
    inputs: dict[Any, Array]
    result: Array
    reference: Callable[[], Array]
    tolerance: float


def blur(hl: Any, variant: int = 0, width: int = 2560, height: int = 1536) -> Work:
    """3x3 box blur, uint16, a sliding window in parallel strips. `variant` makes pipelines that no cache has seen."""
    image = hl.ImageParam(hl.UInt(16), 2, "input")
    x, y, yi = hl.Var("x"), hl.Var("y"), hl.Var("yi")
    rows, out = hl.Func("rows"), hl.Func("blur")
    rows[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) // 3
    out[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) // 3 + variant
    out.split(y, y, yi, 32).parallel(y).vectorize(x, 16)
    rows.store_at(out, y).compute_at(out, x).vectorize(x, 16)
    data = np.random.default_rng(1).integers(0, 4096, (height + 2, width + 8), dtype=np.uint16)

    def reference() -> Array:
        r = (data[:, :-2] + data[:, 1:-1] + data[:, 2:]) // np.uint16(3)
        b: Array = (r[:-2] + r[1:-1] + r[2:]) // np.uint16(3) + np.uint16(variant)
        return b[:height, :width]

    return Work(out, {image: data}, np.zeros((height, width), np.uint16), reference, 0.0)


def unsharp(hl: Any, variant: int = 0, width: int = 1536, height: int = 2560) -> Work:
    """Unsharp mask of planar float RGB: 7-tap separable Gaussian of the luminance, edges repeated."""
    sigma = 1.5
    taps = [math.exp(-i * i / (2 * sigma * sigma)) / (math.sqrt(2 * math.pi) * sigma) for i in range(4)]
    image = hl.ImageParam(hl.Float(32), 3, "input")
    x, y, c, yo, yi = (hl.Var(name) for name in ("x", "y", "c", "yo", "yi"))
    k = [hl.f32(tap) for tap in taps]
    near = hl.BoundaryConditions.repeat_edge(image)
    gray, columns, soft, ratio, out = (hl.Func(name) for name in ("gray", "columns", "soft", "ratio", "unsharp"))
    gray[x, y] = hl.f32(0.299) * near[x, y, 0] + hl.f32(0.587) * near[x, y, 1] + hl.f32(0.114) * near[x, y, 2]
    columns[x, y] = (k[0] * gray[x, y] + k[1] * (gray[x, y - 1] + gray[x, y + 1]) + k[2] * (gray[x, y - 2] + gray[x, y + 2])
                     + k[3] * (gray[x, y - 3] + gray[x, y + 3]))
    soft[x, y] = (k[0] * columns[x, y] + k[1] * (columns[x - 1, y] + columns[x + 1, y])
                  + k[2] * (columns[x - 2, y] + columns[x + 2, y]) + k[3] * (columns[x - 3, y] + columns[x + 3, y]))
    ratio[x, y] = (2 * gray[x, y] - soft[x, y]) / gray[x, y]
    out[x, y, c] = ratio[x, y] * image[x, y, c] + hl.f32(float(variant))
    out.bound(c, 0, 3).reorder(c, x, y).unroll(c).split(y, yo, yi, 64).vectorize(x, 8).parallel(yo)
    for stage in (gray, columns):
        stage.store_at(out, yo).compute_at(out, yi).vectorize(x, 8)
    ratio.compute_at(out, x).vectorize(x, 8)
    data = np.random.default_rng(1).random((3, height, width), dtype=np.float32) * np.float32(0.9) + np.float32(0.1)

    def reference() -> Array:
        p = np.pad(data.astype(np.float64), ((0, 0), (3, 3), (3, 3)), mode="edge")
        g = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]
        v = sum(taps[abs(d)] * g[3 + d:3 + d + height] for d in range(-3, 4))
        s = sum(taps[abs(d)] * v[:, 3 + d:3 + d + width] for d in range(-3, 4))
        inner = g[3:-3, 3:-3]
        sharp: Array = (2 * inner - s) / inner * data + variant
        return sharp

    return Work(out, {image: data}, np.zeros((3, height, width), np.float32), reference, 2e-5)


def tiny(hl: Any, variant: int = 0) -> Work:
    """One addition over 16 elements: what is timed is the call."""
    image = hl.ImageParam(hl.Int(32), 1, "input")
    x, out = hl.Var("x"), hl.Func("tiny")
    out[x] = image[x] + 1 + variant
    data = np.arange(16, dtype=np.int32)
    return Work(out, {image: data}, np.zeros(16, np.int32), lambda: data + 1 + variant, 0.0)


def math_functions(hl: Any, variant: int = 0, bits: int = 32, size: int = 1 << 14) -> Work:
    """exp, log, sin and atan2 of an array that stays in the cache."""
    t = hl.Float(bits)
    image = hl.ImageParam(t, 1, "input")
    x, out = hl.Var("x"), hl.Func("math")
    v = image[x]
    out[x] = hl.exp(v) + hl.log(v) + hl.sin(v) + hl.atan2(v, v + hl.cast(t, 1)) + hl.cast(t, variant)
    out.vectorize(x, 256 // bits)
    data = np.random.default_rng(1).uniform(0.1, 0.9, size).astype(np.float32 if bits == 32 else np.float64)

    def reference() -> Array:
        v = data.astype(np.float64)
        r: Array = np.exp(v) + np.log(v) + np.sin(v) + np.arctan2(v, v + 1) + variant
        return r

    return Work(out, {image: data}, np.zeros_like(data), reference, 1e-5)


def stencil_chain(hl: Any, stages: int = 50) -> Any:
    """A chain of 3x3 stencils, each computed and stored per strip of the last one. Gives the output Func."""
    image = hl.ImageParam(hl.UInt(16), 2, "input")
    x, y, yi = hl.Var("x"), hl.Var("y"), hl.Var("yi")
    chain = [hl.BoundaryConditions.repeat_edge(image)]
    for k in range(stages):
        f, previous = hl.Func(f"stage{k}"), chain[-1]
        e: Any = hl.cast(hl.UInt(16), 0)
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                e = e + previous[x + i, y + j] * ((k + i + 2 * j) % 5 + 1)
        f[x, y] = e
        chain.append(f)
    out = chain[-1]
    out.split(y, y, yi, 64).parallel(y).vectorize(x, 16)
    for f in chain[1:-1]:
        f.compute_at(out, y).vectorize(x, 16)
    return out


WORKS: dict[str, Callable[..., Work]] = {"blur": blur, "unsharp": unsharp, "tiny": tiny, "math": math_functions,
                                     "math of doubles": functools.partial(math_functions, bits=64)}
