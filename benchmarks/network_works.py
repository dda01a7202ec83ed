"""Layers of networks, forward and backward, in halide_py, PyTorch and JAX: each maker gives a call that does the work, and one that gives
the results.

All run on float32 and on as many threads as HL_NUM_THREADS says. Orders of arrays are those of PyTorch and NumPy: (n, c, y, x), weights (k,
c, j, i).
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Run = tuple[Callable[[], Any], Callable[[], list[Array]]]
THREADS = int(os.environ.get("HL_NUM_THREADS", "1"))
rng = np.random.default_rng(0)

LOGITS, LABELS = 10 * rng.random((1024, 1024), dtype=np.float32), rng.integers(0, 1024, 1024).astype(np.int32)
IMAGES, WEIGHTS = rng.random((4, 64, 96, 96), dtype=np.float32), rng.random((64, 64, 3, 3), dtype=np.float32) - np.float32(0.5)
ADJOINT = rng.random((4, 64, 94, 94), dtype=np.float32)


def ours_cross_entropy() -> Run:
    """The losses and the derivative of their sum."""
    hl = importlib.import_module("halide_py")
    logits, labels = hl.Buffer(LOGITS), hl.Buffer(LABELS)
    loss = hl.nn.cross_entropy(logits, labels, LOGITS.shape[1])
    pipeline = hl.Pipeline([loss, hl.propagate_adjoints(loss)[logits]])
    return _realized(hl, pipeline, [np.zeros(len(LABELS), np.float32), np.zeros_like(LOGITS)])


def ours_convolution() -> Run:
    """The derivatives of a convolution layer for images and weights."""
    hl = importlib.import_module("halide_py")
    images, weights = hl.Buffer(IMAGES), hl.Buffer(WEIGHTS)
    d = hl.propagate_adjoints(hl.nn.conv2d(images, weights, 64, 3, 3), hl.Buffer(ADJOINT))
    return _realized(hl, hl.Pipeline([d[images], d[weights]]), [np.zeros_like(IMAGES), np.zeros_like(WEIGHTS)])


def ours_forward_convolution() -> Run:
    """The layer itself."""
    hl = importlib.import_module("halide_py")
    layer = hl.nn.conv2d(hl.Buffer(IMAGES), hl.Buffer(WEIGHTS), 64, 3, 3)
    return _realized(hl, hl.Pipeline([layer]), [np.zeros_like(ADJOINT)])


def _realized(hl: Any, pipeline: Any, results: list[Array]) -> Run:
    outputs = [hl.Buffer(a) for a in results]
    pipeline.compile_jit()
    return lambda: pipeline.realize(outputs), lambda: results


def _torch() -> Any:
    torch = importlib.import_module("torch")
    torch.set_num_threads(THREADS)
    return torch


def torch_cross_entropy() -> Run:
    """As above."""
    torch = _torch()
    z, k = torch.tensor(LOGITS, requires_grad=True), torch.tensor(LABELS).long()
    losses: list[Any] = []

    def run() -> None:
        z.grad = None
        loss = torch.nn.functional.cross_entropy(z, k, reduction="none")
        losses[:] = [loss]
        loss.sum().backward()

    return run, lambda: [losses[0].detach().numpy(), z.grad.numpy()]


def torch_convolution() -> Run:
    """As above; the layer's result is there already."""
    torch = _torch()
    images, weights = torch.tensor(IMAGES, requires_grad=True), torch.tensor(WEIGHTS, requires_grad=True)
    out, adjoint = torch.nn.functional.conv2d(images, weights), torch.tensor(ADJOINT)
    given: list[Any] = []

    def run() -> None:
        given[:] = torch.autograd.grad(out, (images, weights), adjoint, retain_graph=True)

    return run, lambda: [g.numpy() for g in given]


def torch_forward_convolution() -> Run:
    """As above."""
    torch = _torch()
    images, weights, given = torch.tensor(IMAGES), torch.tensor(WEIGHTS), [None]

    def run() -> None:
        given[0] = torch.nn.functional.conv2d(images, weights)

    return run, lambda: [given[0].numpy()]  # type: ignore[attr-defined]


def jax_cross_entropy() -> Run:
    """As above, compiled by jit."""
    jax = importlib.import_module("jax")

    def loss(z: Any, k: Any) -> Any:
        each = -jax.numpy.take_along_axis(jax.nn.log_softmax(z), k[:, None], 1)[:, 0]
        return each.sum(), each

    step = jax.jit(jax.value_and_grad(loss, has_aux=True))
    z, k = jax.numpy.array(LOGITS), jax.numpy.array(LABELS)
    given: list[Any] = [None]

    def run() -> None:
        given[0] = jax.block_until_ready(step(z, k))

    return run, lambda: [np.asarray(given[0][0][1]), np.asarray(given[0][1])]


def jax_convolution(forward: bool = False) -> Run:
    """As above, compiled by jit."""
    jax = importlib.import_module("jax")
    layer = functools.partial(
        jax.lax.conv_general_dilated, window_strides=(1, 1), padding="VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    images, weights, adjoint = map(jax.numpy.array, (IMAGES, WEIGHTS, ADJOINT))
    step = jax.jit(lambda a, b, up: (layer(a, b),) if forward else jax.vjp(layer, a, b)[1](up))
    given: list[Any] = [None]

    def run() -> None:
        given[0] = jax.block_until_ready(step(images, weights, adjoint))

    return run, lambda: list(map(np.asarray, given[0]))


NETWORKS: dict[str, dict[str, Callable[[], Run]]] = {
    "cross-entropy, both ways": {"halide_py": ours_cross_entropy, "torch": torch_cross_entropy, "jax": jax_cross_entropy},
    "convolution layer, backward": {"halide_py": ours_convolution, "torch": torch_convolution, "jax": jax_convolution},
    "convolution layer, "
    "forward": {"halide_py": ours_forward_convolution, "torch": torch_forward_convolution, "jax": functools.partial(jax_convolution, True)},
}
