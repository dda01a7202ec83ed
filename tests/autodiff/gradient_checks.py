"""The derivative against central differences in float64, both run by the interpreter of the algorithm (no schedule, no C)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import halide_py as hl
from halide_py.lower.environment import environment
from halide_py.reference.algorithm import realize

Array = Any
_numbers = iter(range(1 << 30))


def image(dimensions: int, t: hl.Type = hl.Float(64)) -> hl.ImageParam:  # noqa: B008 (types are constants)
    """A fresh input."""
    return hl.ImageParam(t, dimensions, f"in{next(_numbers)}")


def run(f: hl.Func, shape: Sequence[int], inputs: dict[str, Array], mins: Sequence[int] | None = None) -> Array:
    """The only value of a Func over a box, dimension 0 first."""
    return realize([f.function], tuple(shape), None if mins is None else tuple(mins), inputs=inputs)[0]


def differences(loss: hl.Func, inputs: dict[str, Array], name: str, eps: float = 1e-6) -> Array:
    """Central differences of a scalar Func for one input."""
    x = inputs[name]
    out = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        ends = []
        for step in (eps, -eps):
            moved = x.copy()
            moved[i] += step
            ends.append(float(run(loss, (), {**inputs, name: moved})))
        out[i] = (ends[0] - ends[1]) / (2 * eps)
    return out


def check(build: Callable[..., hl.Func], *arrays: Array, tolerance: float = 1e-5, eps: float = 1e-6, compiled: bool = False) -> hl.Derivative:
    """The derivative of `build(images...)`, a scalar Func, for each float image, equals central differences, and the forward mode is its adjoint (the
    dot-product test); `arrays` have dimension 0 first."""
    images = [image(a.ndim, hl.Float(64) if a.dtype == np.float64 else hl.Int(32)) for a in arrays]
    inputs = {p.name(): a for p, a in zip(images, arrays)}
    loss = build(*images)
    d = hl.propagate_adjoints(loss)
    for p, a in zip(images, arrays):
        if a.dtype != np.float64:
            continue
        got = run(d[p], a.shape, inputs)
        np.testing.assert_allclose(got, differences(loss, inputs, p.name(), eps), rtol=tolerance, atol=tolerance)
        move, direction = np.cos(np.arange(a.size) * 1.7).reshape(a.shape), image(a.ndim)
        forward = run(hl.propagate_tangents(loss, [(p, direction)]), (), {**inputs, direction.name(): move})
        exact = max(1e-9, tolerance * 1e-3)
        np.testing.assert_allclose(float(forward), float((got * move).sum()), rtol=exact, atol=exact * float(np.abs(got * move).sum()) + 1e-12)
        if compiled:
            for q, c in zip(images, arrays):
                q.set(hl.Buffer(np.ascontiguousarray(c.T)))
            np.testing.assert_allclose(np.array(d[p].realize(list(a.shape))).T, got, rtol=1e-9, atol=1e-12)
    return d


def total(f: hl.Func, *extents: int, weight: Callable[..., Any] | None = None) -> hl.Func:
    """The sum of a Func over a box from 0, each value weighted so that none can hide behind another."""
    r = hl.RDom([(0, e) for e in extents])
    place = tuple(r)
    w: Any = hl.f64(1.0)
    for k, v in enumerate(place):
        w = w + hl.cast(hl.Float(64), v) * hl.f64(0.37 + k)
    loss = hl.Func("loss")
    loss[()] = hl.f64(0.0)
    loss[()] += f[place] * (w if weight is None else weight(*place))
    return loss


def is_gather(f: hl.Func) -> bool:
    """Whether a Func and all it depends on write plain variables only: no scatter."""
    return all(type(a).__name__ == "Variable" for g in environment([f.function]).values() for d in g.updates for a in d.args)

