"""Pipelines that lean on one directive each, in the common interface of halide_py and Halide: see `pipelines`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pipelines import Array, Work

SIZE = 1024


def _image(hl: Any, dtype: type[np.generic] = np.float32, height: int = SIZE, width: int = SIZE) -> tuple[Any, Array]:
    data = np.random.default_rng(1).integers(0, 200, (height, width)).astype(dtype)
    types = {np.float32: hl.Float(32), np.uint8: hl.UInt(8), np.uint16: hl.UInt(16), np.int32: hl.Int(32)}
    return hl.ImageParam(types[dtype], 2, "input"), data


def transpose(hl: Any, variant: int = 0) -> Work:
    """Blocks of 16 x 16, rows of vectors unrolled."""
    image, data = _image(hl, np.uint16)
    x, y, xi, yi = (hl.Var(v) for v in ("x", "y", "xi", "yi"))
    out = hl.Func("transpose")
    out[x, y] = image[y, x] + variant
    out.tile(x, y, xi, yi, 16, 16).vectorize(xi).unroll(yi)
    return Work(out, {image: data}, np.zeros((SIZE, SIZE), np.uint16), lambda: data.T + np.uint16(variant), 0.0)


def asynchronous(hl: Any, variant: int = 0) -> Work:
    """A producer one row ahead of its consumer, in a thread of its own."""
    image, data = _image(hl)
    x, y = hl.Var("x"), hl.Var("y")
    first, out = hl.Func("first"), hl.Func("out")
    first[x, y] = hl.sqrt(image[x, y] + 1.0)
    out[x, y] = first[x, y] + first[x, y + 1] + hl.f32(float(variant))
    out.vectorize(x, 8)
    first.store_root().compute_at(out, y).fold_storage(y, 8).vectorize(x, 8).async_()
    return Work(out, {image: data}, np.zeros((SIZE - 1, SIZE), np.float32),
                lambda: (r := np.sqrt(data + 1))[:-1] + r[1:] + np.float32(variant), 1e-6)


def memoized(hl: Any, variant: int = 0) -> Work:
    """A table that is found in the cache of results."""
    image, data = _image(hl, np.uint8)
    x, y, i = hl.Var("x"), hl.Var("y"), hl.Var("i")
    table, out = hl.Func("table"), hl.Func("out")
    table[i] = hl.pow(hl.f32(i) / 255.0, hl.f32(1.8)) + hl.f32(float(variant))
    out[x, y] = table[hl.i32(image[x, y])]
    table.compute_root().memoize().vectorize(i, 8)
    out.vectorize(x, 8)
    return Work(out, {image: data}, np.zeros((SIZE, SIZE), np.float32),
                lambda: ((np.arange(256) / 255) ** 1.8 + variant).astype(np.float32)[data], 1e-5)


def prefetched(hl: Any, variant: int = 0) -> Work:
    """Rows of a large image, one of the next prefetched."""
    image, data = _image(hl)
    x, y = hl.Var("x"), hl.Var("y")
    out = hl.Func("out")
    out[x, y] = image[x, y] * 2.0 + hl.f32(float(variant))
    out.vectorize(x, 8).prefetch(image, y, y, 4)
    return Work(out, {image: data}, np.zeros((SIZE, SIZE), np.float32), lambda: data * 2 + np.float32(variant), 0.0)


def together(hl: Any, variant: int = 0) -> Work:
    """Two stages in one loop: sums and differences of neighbours."""
    image, data = _image(hl)
    x, y = hl.Var("x"), hl.Var("y")
    sums, differences, out = hl.Func("sums"), hl.Func("differences"), hl.Func("out")
    sums[x, y] = image[x, y] + image[x + 1, y]
    differences[x, y] = image[x, y] - image[x + 1, y]
    out[x, y] = sums[x, y] * differences[x, y] + hl.f32(float(variant))
    sums.compute_root().vectorize(x, 8)
    differences.compute_root().vectorize(x, 8).compute_with(sums, x)
    out.vectorize(x, 8)
    return Work(out, {image: data}, np.zeros((SIZE, SIZE - 1), np.float32),
                lambda: (data[:, :-1] + data[:, 1:]) * (data[:, :-1] - data[:, 1:]) + np.float32(variant), 1e-5)


def factored(hl: Any, variant: int = 0) -> Work:
    """The dot product of two rows, lanes kept apart until the end."""
    image, data = _image(hl, height=2, width=SIZE * SIZE)
    r, u = hl.RDom([(0, SIZE * SIZE)]), hl.Var("u")
    ro, ri, y = hl.RVar("ro"), hl.RVar("ri"), hl.Var("y")
    out = hl.Func("out")
    out[y] = hl.f32(float(variant))
    out[y] += image[r, 0] * image[r, 1]
    out.update().split(r, ro, ri, 32)
    partial = out.update().rfactor(ri, u)
    partial.compute_root().vectorize(u, 32)
    partial.update().reorder(u, ro, y).vectorize(u, 32)
    return Work(out, {image: data}, np.zeros(1, np.float32), lambda: data[0].astype(np.float64) @ data[1] + np.array([variant]), 1e-4)


def horizontal(hl: Any, variant: int = 0) -> Work:
    """Sums of products of bytes along vectors."""
    image, data = _image(hl, np.uint8)
    r, y = hl.RDom([(0, SIZE)]), hl.Var("y")
    out = hl.Func("out")
    out[y] = hl.i32(variant)
    out[y] += hl.i32(image[r, y]) * hl.i32(image[r, y])
    out.update().atomic().vectorize(r, 32)
    return Work(out, {image: data}, np.zeros(SIZE, np.int32), lambda: (data.astype(np.int32) ** 2).sum(axis=1) + variant, 0.0)


def sliding(hl: Any, variant: int = 0) -> Work:
    """Windows of three rows that slide through two stages, kept in folded storage."""
    image, data = _image(hl, np.uint16)
    x, y = hl.Var("x"), hl.Var("y")
    rows, blurred, out = hl.Func("rows"), hl.Func("blurred"), hl.Func("out")
    rows[x, y] = image[x, y] + image[x + 1, y] + image[x + 2, y]
    blurred[x, y] = rows[x, y] + rows[x, y + 1] + rows[x, y + 2]
    out[x, y] = hl.max(blurred[x, y], hl.max(blurred[x, y + 1], blurred[x, y + 2])) + hl.u16(variant)
    out.vectorize(x, 16)
    for stage in (rows, blurred):
        stage.store_root().compute_at(out, y).vectorize(x, 16)

    def reference() -> Array:
        a = data[:, :-2] + data[:, 1:-1] + data[:, 2:]
        s = a[:-2] + a[1:-1] + a[2:]
        highest: Array = np.maximum(s[:-2], np.maximum(s[1:-1], s[2:])) + np.uint16(variant)
        return highest

    return Work(out, {image: data}, np.zeros((SIZE - 4, SIZE - 2), np.uint16), reference, 0.0)


SCHEDULES: dict[str, Callable[..., Work]] = {
    "transpose": transpose, "async": asynchronous, "memoize": memoized, "prefetch": prefetched, "compute_with": together,
    "rfactor": factored, "vector reduction": horizontal, "sliding window": sliding}
