"""The price of gradients: time of the reverse pass, as it comes, over that of the forward pass. `python benchmarks/gradients.py`

Forward pipelines have a schedule, derivatives the default one. `work` is the arithmetic of the derivative in units of the forward pass, so
that `ratio / work` says how well the default schedule does. Where PyTorch is installed, forward and backward of softmax with cross-entropy are
compared with it, on the same threads.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
SIZE = 1024
rng = np.random.default_rng(0)


def best(run: Callable[[], Any], times: int = 7) -> float:
    """Milliseconds of the fastest run after a first one."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found) * 1e3


def buffer(*shape: int) -> hl.Buffer:
    """Random numbers, the last extent that of dimension 0."""
    return hl.Buffer(rng.random(shape).astype(np.float32))


def into(f: hl.Func, *shape: int) -> Callable[[], Any]:
    """A run of a Func into memory of a shape."""
    out = buffer(*shape)
    return lambda: f.realize(out)


def stencils(condition: str) -> tuple[hl.Func, hl.Buffer]:
    """Four blurs of five points, one after the other, behind a boundary condition."""
    image = buffer(SIZE, SIZE)
    make = getattr(hl.BoundaryConditions, condition)
    f = make(image, 0) if condition == "constant_exterior" else make(image)
    for i in range(4):
        g = hl.Func(f"blur{i}")
        g[x, y] = (f[x - 1, y] + 2 * f[x, y] + f[x + 1, y] + f[x, y - 1] + f[x, y + 1]) * hl.f32(1 / 6)
        g.compute_root().parallel(y, 16).vectorize(x, 8)
        f = g
    return f, image


def convolution() -> tuple[hl.Func, hl.Buffer, hl.Buffer]:
    """3x3 weights over one image."""
    image, weights, r = buffer(SIZE + 2, SIZE + 2), buffer(3, 3), hl.RDom([(0, 3), (0, 3)])
    f = hl.Func("convolution")
    f[x, y] = 0.0
    f[x, y] += image[x + r.x, y + r.y] * weights[r.x, r.y]
    f.compute_root().parallel(y, 16).vectorize(x, 8)
    f.update().reorder([r.x, r.y, x, y]).parallel(y, 16).vectorize(x, 8)
    return f, image, weights


def row(name: str, output: hl.Func, wrt: hl.Buffer, shape: tuple[int, ...], work: float) -> None:
    """Time one derivative."""
    forward = best(into(output, SIZE, SIZE))
    start = time.perf_counter()
    derivative = hl.propagate_adjoints(output, buffer(SIZE, SIZE))[wrt]
    derivative.compile_jit()
    compiled = (time.perf_counter() - start) * 1e3
    backward = best(into(derivative, *shape))
    print(f"{name:32} forward {forward:7.2f} ms   backward {backward:7.2f} ms   ratio {backward / forward:5.1f}   work {work:3.1f}   compile {compiled:6.0f} ms")


def cross_entropy() -> None:
    """Forward and backward of 1024 samples of 1024 classes."""
    logits, labels = buffer(SIZE, SIZE), hl.Buffer(rng.integers(0, SIZE, SIZE).astype(np.int32))
    loss = hl.nn.cross_entropy(logits, labels, SIZE)
    both = hl.Pipeline([loss, hl.propagate_adjoints(loss)[logits]])
    outputs = [buffer(SIZE), buffer(SIZE, SIZE)]
    ours = best(lambda: both.realize(outputs))
    print(f"softmax cross-entropy, both ways {ours:7.2f} ms")
    if importlib.util.find_spec("torch") is None:
        print("   PyTorch is not installed: nothing to compare with")
        return
    torch = importlib.import_module("torch")
    torch.set_num_threads(hl.get_num_threads())
    z, k = torch.tensor(np.array(logits), requires_grad=True), torch.tensor(np.array(labels)).long()

    def theirs() -> None:
        z.grad = None
        torch.nn.functional.cross_entropy(z, k, reduction="sum").backward()

    other = best(theirs)
    print(f"   PyTorch                       {other:7.2f} ms, ours is {ours / other:.2f} of it")


def main() -> None:
    """Print the table."""
    for condition in ("constant_exterior", "repeat_edge", "mirror_image"):
        f, image = stencils(condition)
        row(f"four stencils, {condition}", f, image, (SIZE, SIZE), 1)
    f, image, weights = convolution()
    row("convolution, for the image", f, image, (SIZE + 2, SIZE + 2), 1)
    row("convolution, for the weights", f, weights, (3, 3), 1)
    cross_entropy()


if __name__ == "__main__":
    main()
