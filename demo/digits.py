"""Train two classifiers on scikit-learn's handwritten digits: softmax regression, and a network of two convolutions. `python
demo/digits.py`.

Loss and gradients are one pipeline, compiled once; each step only changes the weights. Both are trained a second time by NumPy in double
precision, with derivatives written by hand, from the same start: the losses must agree. The plot goes to demo_output/digits.png.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from tqdm import tqdm

import halide_py as hl

matplotlib.use("Agg")

Array = npt.NDArray[Any]
OUTPUT = Path(__file__).resolve().parents[1] / "demo_output"
CLASSES = 10


def mean_loss(logits: hl.Func, labels: hl.Buffer, samples: int) -> hl.Func:
    """The mean cross-entropy of logits over (class, sample)."""
    losses, r = hl.nn.cross_entropy(logits, labels, CLASSES), hl.RDom([(0, samples)])
    loss = hl.Func("loss")
    loss[()] = 0.0
    loss[()] += losses[r.x] / float(samples)
    return loss


def linear(images: hl.Buffer, weights: list[hl.ImageParam]) -> hl.Func:
    """Logits of softmax regression: `images` over (pixel, sample)."""
    c, n, r = hl.Var("c"), hl.Var("n"), hl.RDom([(0, 64)])
    logits = hl.Func("logits")
    logits[c, n] = weights[1][c]
    logits[c, n] += images[r.x, n] * weights[0][c, r.x]
    return logits


def convolutions(images: hl.Buffer, weights: list[hl.ImageParam]) -> hl.Func:
    """Logits of the network: 8x8x1 -> 6x6x8 -> 4x4x12 -> 10; `images` over (x, y, 1, sample)."""
    x, y, k, n, c = (hl.Var(v) for v in "xyknc")
    first, second, logits = hl.Func("first"), hl.Func("second"), hl.Func("logits")
    first[x, y, k, n] = hl.nn.relu(hl.nn.conv2d(images, weights[0], 1, 3, 3)[x, y, k, n])
    first.compute_root()
    second[x, y, k, n] = hl.nn.relu(hl.nn.conv2d(first, weights[1], 8, 3, 3)[x, y, k, n])
    second.compute_root()
    r = hl.RDom([(0, 4), (0, 4), (0, 12)])
    logits[c, n] = 0.0
    logits[c, n] += second[r.x, r.y, r.z, n] * weights[2][r.x, r.y, r.z, c]
    return logits


def train(
    model: Callable[..., hl.Func], images: Array, labels: Array, start: list[Array], rate: float, steps: int
) -> tuple[list[float], list[Array]]:
    """Gradient descent on all samples at once. Gives the losses and the weights."""
    values = [w.astype(np.float32) for w in start]
    weights = [hl.ImageParam(hl.Float(32), w.ndim, f"weights{i}") for i, w in enumerate(values)]
    for p, w in zip(weights, values):
        p.set(hl.Buffer(w))
    logits = model(hl.Buffer(images.astype(np.float32)), weights)
    loss = mean_loss(logits, hl.Buffer(labels.astype(np.int32)), len(labels))
    d = hl.propagate_adjoints(loss)
    step = hl.Pipeline([loss, *(d[p] for p in weights)])
    found, slopes = np.zeros((), np.float32), [np.zeros_like(w) for w in values]
    outputs = [hl.Buffer(found), *map(hl.Buffer, slopes)]
    losses = []
    with tqdm(range(steps), desc=f"   {model.__name__}", unit="step", ncols=100) as bar:
        for _ in bar:
            step.realize(outputs)
            losses.append(float(found))
            for w, slope in zip(values, slopes):
                w -= np.float32(rate) * slope
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses, values


def numpy_loss(logits: Array, labels: Array) -> tuple[float, Array]:
    """The loss and its derivative for the logits, (sample, class), in double precision."""
    e = np.exp(logits - logits.max(1, keepdims=True))
    p, at = e / e.sum(1, keepdims=True), np.arange(len(labels))
    loss = float(-np.log(p[at, labels]).mean())
    p[at, labels] -= 1
    return loss, p / len(labels)


def numpy_linear(images: Array, labels: Array, w: list[Array]) -> tuple[float, list[Array]]:
    """Loss and derivatives of softmax regression, by hand."""
    loss, d = numpy_loss(images @ w[0] + w[1], labels)
    return loss, [images.T @ d, d.sum(0)]


def windows(a: Array) -> Array:
    """All 3x3 windows of (n, c, y, x)."""
    view: Any = np.lib.stride_tricks.sliding_window_view  # the types of NumPy 2.2, the last for Python 3.10, know no lists of axes
    found: Array = view(a, (3, 3), axis=(2, 3))
    return found


def numpy_convolutions(images: Array, labels: Array, w: list[Array]) -> tuple[float, list[Array]]:
    """Loss and derivatives of the network, by hand."""
    a = np.einsum("ncyxji,kcji->nkyx", windows(images), w[0], optimize=True)
    h = np.maximum(a, 0)
    b = np.einsum("ncyxji,kcji->nkyx", windows(h), w[1], optimize=True)
    g = np.maximum(b, 0)
    loss, d = numpy_loss(np.einsum("nkyx,ckyx->nc", g, w[2], optimize=True), labels)
    db = np.einsum("nc,ckyx->nkyx", d, w[2], optimize=True) * (b > 0)
    padded = np.pad(db, ((0, 0), (0, 0), (2, 2), (2, 2)))
    da = np.einsum("nkyxji,kcji->ncyx", windows(padded), w[1][..., ::-1, ::-1], optimize=True) * (a > 0)
    return loss, [
        np.einsum("ncyxji,nkyx->kcji", windows(images), da, optimize=True),
        np.einsum("ncyxji,nkyx->kcji", windows(h), db, optimize=True),
        np.einsum("nc,nkyx->ckyx", d, g, optimize=True),
    ]


def numpy_train(
    model: Callable[..., tuple[float, list[Array]]], images: Array, labels: Array, start: list[Array], rate: float, steps: int
) -> list[float]:
    """The same descent in double precision."""
    weights, losses = [w.astype(np.float64) for w in start], []
    for _ in range(steps):
        loss, slopes = model(images.astype(np.float64), labels, weights)
        losses.append(loss)
        weights = [w - rate * s for w, s in zip(weights, slopes)]
    return losses


def plot(curves: dict[str, tuple[list[float], list[float]]]) -> str:
    """Write the losses of both as one figure. Gives its path."""
    figure, axes = plt.subplots(1, len(curves), figsize=(4.5 * len(curves), 3.4), layout="constrained")
    for axis, (title, (ours, reference)) in zip(axes, curves.items(), strict=True):
        axis.semilogy(reference, color="orange", linewidth=5, label="NumPy, float64")
        axis.semilogy(ours, color="black", label="halide_py, float32")
        axis.set(title=title, xlabel="step", ylabel="mean cross-entropy")
        axis.legend()
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / "digits.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"demo_output/{path.name}"


def run(samples: int = 1024, steps: int = 80) -> None:
    """Train both, compare with NumPy, plot."""
    data, labels = load_digits(return_X_y=True)
    flat, labels = data[:samples] / 16, labels[:samples]
    rng = np.random.default_rng(0)
    shapes = [(8, 1, 3, 3), (12, 8, 3, 3), (10, 12, 4, 4)]
    start = [rng.normal(size=s) * np.sqrt(2 / np.prod(s[1:])) for s in shapes]
    curves = {}
    for title, model, by_hand, images, weights, rate in (
            ("softmax regression", linear, numpy_linear, flat, [np.zeros((64, 10)), np.zeros(10)], 0.5),
            ("two convolutions", convolutions, numpy_convolutions, flat.reshape(-1, 1, 8, 8), start, 0.1)):
        ours, _ = train(model, images, labels, weights, rate, steps)
        reference = numpy_train(by_hand, images, labels, weights, rate, steps)
        apart = float(np.max(np.abs(np.array(ours) / np.array(reference) - 1)))
        print(f"   {title}: loss {ours[0]:.4f} -> {ours[-1]:.4f}; NumPy in double precision {reference[-1]:.4f}; largest difference "
              f"{apart:.1e}")
        if apart > 1e-3 or ours[-1] > 0.5 * ours[0]:
            raise SystemExit("The losses do not agree, or do not fall.")
        curves[title] = (ours, reference)
    print("   wrote", plot(curves))


if __name__ == "__main__":
    run()
