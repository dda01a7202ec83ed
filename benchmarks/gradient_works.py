"""Gradient pipelines in the common interface of halide_py and Halide: `hl` is the module to use.

Each maker gives the derivatives with the Funcs behind them, the inputs as NumPy arrays by ImageParam, and arrays for the results. For
halide_py they run as they come. Halide needs a schedule: `by_hand` is what one writes who knows the pipeline (everything at root, vectors
along x, threads along y, loops over terms inside), `by_autoscheduler` takes Li2018, which Halide has for gradients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
VECTOR = 16  # floats
MARGIN = 16
rng = np.random.default_rng(0)


@dataclass
class GradientWork:
    """Derivatives with their data. `funcs`: what Halide is to schedule, producers first; `forward`: those of the forward pass."""

    outputs: list[Any]
    inputs: dict[Any, Array]
    results: list[Array]
    forward: list[Any] = field(default_factory=list)
    funcs: list[Any] = field(default_factory=list)
    tolerance: float = 1e-4


def random(*shape: int) -> Array:
    """Numbers between 0 and 1."""
    return rng.random(shape, dtype=np.float32)


def padded(*shape: int) -> Array:
    """An input with a margin: Halide's derivatives read a little more than there is to it, and multiply it by 0."""
    return random(*(n + MARGIN for n in shape))


def param(hl: Any, dimensions: int, name: str, kind: Any = None) -> tuple[Any, Any]:
    """An input, and a Func of it: Halide has derivatives for Funcs alone."""
    image = hl.ImageParam(kind or hl.Float(32), dimensions, name)
    f = hl.Func(f"{name}_in")
    at = [hl.Var(v) for v in "xyzw"[:dimensions]]
    f[tuple(at)] = image[tuple(at)]
    return image, f


def derivatives(hl: Any, output: Any, seed: Array, forward: Sequence[Any], wanted: Sequence[Any], inputs: dict[Any, Array]) -> GradientWork:
    """The derivatives of an output, weighted by `seed`, for the Funcs wanted. `forward`: the Funcs of the forward pass, producers first."""
    weights = hl.ImageParam(hl.Float(32), seed.ndim, "seed")
    given = hl.BoundaryConditions.constant_exterior(weights, 0)
    d = hl.propagate_adjoints(output, given, [hl.Range(0, extent) for extent in reversed(seed.shape)])
    inputs[weights] = seed
    named: dict[str, Any] = {}
    for f in reversed(forward):
        for k in (*reversed(range(f.num_update_definitions())), -1):
            a = d[f, k]
            named[a.name()] = a
    return GradientWork([d[f] for f in wanted], inputs, [], list(forward[1:-1]), list(named.values()))


def by_hand(hl: Any, work: GradientWork) -> None:
    """Halide's schedule: every stage at root, x in vectors, the last dimension in threads; reductions inside."""
    for f in (*work.forward, *work.funcs):
        f.compute_root()
        args = f.args()
        _loops(hl, f, args, ())
        for k in range(f.num_update_definitions()):
            free = [a for a, e in zip(args, f.update_args(k)) if str(e) == a.name()]
            _loops(hl, f.update(k), free if len(free) == len(args) else (), f.rvars(k))


def _loops(hl: Any, stage: Any, args: Sequence[Any], rvars: Sequence[Any]) -> None:
    if not args:
        stage.unscheduled()  # a scatter: without a word Halide prints a warning
        return
    if rvars:
        stage.reorder([*rvars, *args])
    stage.vectorize(args[0], VECTOR, hl.TailStrategy.GuardWithIf)
    if len(args) > 1:
        stage.parallel(args[-1])


def stencils(hl: Any, size: int = 1024) -> GradientWork:
    """Four blurs of five points, one after the other, behind a zero boundary."""
    image, source = param(hl, 2, "image")
    x, y = hl.Var("x"), hl.Var("y")
    f = hl.BoundaryConditions.constant_exterior(source, 0, [(0, size), (0, size)])
    chain = [source, f]
    for i in range(4):
        g = hl.Func(f"blur{i}")
        g[x, y] = (f[x - 1, y] + 2 * f[x, y] + f[x + 1, y] + f[x, y - 1] + f[x, y + 1]) * hl.f32(1 / 6)
        f = g
        chain.append(f)
    work = derivatives(hl, f, random(size, size), chain, [source], {image: padded(size, size)})
    return dataclasses.replace(work, results=[np.zeros((size, size), np.float32)])


def convolution_1d(hl: Any, size: int = 1 << 20, taps: int = 9) -> GradientWork:
    """A filter along a signal: derivatives for signal and filter."""
    (signal, s), (weights, w) = param(hl, 1, "signal"), param(hl, 1, "weights")
    x, r = hl.Var("x"), hl.RDom([(0, taps)])
    f = hl.Func("filtered")
    f[x] = 0.0
    f[x] += s[x + r.x] * w[r.x]
    work = derivatives(hl, f, random(size), [s, w, f], [s, w], {signal: padded(size + taps - 1), weights: padded(taps)})
    return dataclasses.replace(work, results=[np.zeros(size + taps - 1, np.float32), np.zeros(taps, np.float32)])


def convolution_2d(hl: Any, size: int = 1024) -> GradientWork:
    """3x3 weights over one image: derivatives for both."""
    (image, s), (weights, w) = param(hl, 2, "image"), param(hl, 2, "weights")
    x, y, r = hl.Var("x"), hl.Var("y"), hl.RDom([(0, 3), (0, 3)])
    f = hl.Func("convolved")
    f[x, y] = 0.0
    f[x, y] += s[x + r.x, y + r.y] * w[r.x, r.y]
    work = derivatives(hl, f, random(size, size), [s, w, f], [s, w], {image: padded(size + 2, size + 2), weights: padded(3, 3)})
    return dataclasses.replace(work, results=[np.zeros((size + 2, size + 2), np.float32), np.zeros((3, 3), np.float32)])


def product(hl: Any, size: int = 512) -> GradientWork:
    """A matrix product: derivatives for both factors."""
    (left, a), (right, b) = param(hl, 2, "left"), param(hl, 2, "right")
    x, y, r = hl.Var("x"), hl.Var("y"), hl.RDom([(0, size)])
    f = hl.Func("product")
    f[x, y] = 0.0
    f[x, y] += a[r.x, y] * b[x, r.x]
    work = derivatives(hl, f, random(size, size), [a, b, f], [a, b], {left: padded(size, size), right: padded(size, size)})
    return dataclasses.replace(work, results=[np.zeros((size, size), np.float32) for _ in range(2)])


def downsampled(hl: Any, size: int = 1024) -> GradientWork:
    """Two steps of a pyramid, and up again by linear interpolation: the derivative for the image."""
    image, source = param(hl, 2, "image")
    x, y = hl.Var("x"), hl.Var("y")
    f = source
    chain = [source]
    for i in range(2):
        g = hl.Func(f"down{i}")
        g[x, y] = (f[2 * x, 2 * y] + f[2 * x + 1, 2 * y] + f[2 * x, 2 * y + 1] + f[2 * x + 1, 2 * y + 1]) * hl.f32(0.25)
        f = g
        chain.append(f)
    up = hl.Func("up")
    up[x, y] = (f[x // 4, y // 4] * hl.f32(0.75) + f[x // 4 + 1, y // 4] * hl.f32(0.25)) * source[x, y]
    chain.append(up)
    work = derivatives(hl, up, random(size, size), chain, [source], {image: padded(size + VECTOR, size + VECTOR)})
    return dataclasses.replace(work, results=[np.zeros((size + VECTOR, size + VECTOR), np.float32)])


def histogram(hl: Any, size: int = 1 << 20, bins: int = 256) -> GradientWork:
    """Weights added up by the bin of their value: the derivative for the weights, a gather of data-dependent places."""
    (values, v), (weights, w) = param(hl, 1, "values", hl.Int(32)), param(hl, 1, "weights")
    x, r = hl.Var("x"), hl.RDom([(0, size)])
    f = hl.Func("histogram")
    f[x] = 0.0
    f[hl.clamp(v[r.x], 0, bins - 1)] += w[r.x]
    work = derivatives(
        hl, f, random(bins), [w, f], [w], {values: rng.integers(0, bins, size + MARGIN).astype(np.int32), weights: padded(size)}
    )
    return dataclasses.replace(work, results=[np.zeros(size, np.float32)])


def bilateral_slice(hl: Any, size: int = 512, cell: int = 16, depth: int = 8) -> GradientWork:
    """A grid looked up by place and brightness, trilinearly: derivatives for grid and brightness. Source of the pipeline: Gharbi et al.,
    HDRnet, 2017.

    The cell is computed in floats. With `x // cell` instead, Halide 21 gives wrong derivatives: it inverts an index that is affine in x (of
    `g[x + r, b[x]]`, too) and leaves another one, which depends on x through data, as it was."""
    (grid, g), (guide, b) = param(hl, 3, "grid"), param(hl, 2, "guide")
    x, y, r = hl.Var("x"), hl.Var("y"), hl.RDom([(0, 2), (0, 2), (0, 2)])

    def weight(e: Any) -> Any:
        return hl.max(1 - hl.abs(e), 0)

    gx, gy = (x + hl.f32(0.5)) / hl.f32(cell), (y + hl.f32(0.5)) / hl.f32(cell)
    gz = hl.clamp(b[x, y], hl.f32(0), hl.f32(1)) * hl.f32(depth - 1)
    fz = hl.cast(hl.Int(32), hl.floor(gz))
    cx, cy = hl.cast(hl.Int(32), hl.floor(gx)) + r.x, hl.cast(hl.Int(32), hl.floor(gy)) + r.y
    cz = hl.clamp(fz + r.z, 0, depth - 1)
    f = hl.Func("sliced")
    f[x, y] = 0.0
    f[x, y] += g[cx, cy, cz] * weight(gx - cx) * weight(gy - cy) * weight(gz - (fz + r.z))
    cells = size // cell + 2  # one more than are used: floor() of a float has wide bounds
    inputs = {grid: padded(depth, cells, cells), guide: padded(size, size)}
    work = derivatives(hl, f, random(size, size), [g, b, f], [g, b], inputs)
    return dataclasses.replace(
        work, results=[np.zeros((depth, cells, cells), np.float32), np.zeros((size, size), np.float32)], tolerance=1e-3
    )


GRADIENTS: dict[str, Callable[..., GradientWork]] = {
    "stencils": stencils,
    "1-d convolution": convolution_1d,
    "2-d convolution": convolution_2d,
    "product": product,
    "downsampled": downsampled,
    "histogram": histogram,
    "bilateral slice": bilateral_slice,
}
