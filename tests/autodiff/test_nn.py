"""hl.nn: values and derivatives against float64 NumPy, for logits of every size."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

import halide_py as hl

rng = np.random.default_rng(23)
x, y = hl.Var("x"), hl.Var("y")


def realized(f: hl.Func, *sizes: int) -> Any:
    return np.array(f.realize(list(sizes)))



def sig(v: Any) -> Any:
    return np.where(v >= 0, 1 / (1 + np.exp(-np.abs(v))), np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))))


def phi(v: Any) -> Any:
    return np.array([(1 + float(e)) / 2 for e in map(erf, v * np.sqrt(0.5))])


ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sigmoid": (sig, lambda v: sig(v) * sig(-v)),
    "softplus": (lambda v: np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v))), sig),
    "relu": (lambda v: np.maximum(v, 0), lambda v: (v > 0).astype(float)),
    "gelu": (lambda v: v * phi(v), lambda v: phi(v) + v * np.exp(-v * v / 2) / np.sqrt(2 * np.pi)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    v = np.array([-1e4, -800, -88, -20, -3, -0.5, -1e-4, 0, 1e-4, 0.7, 3, 20, 88, 1e4], np.float32)
    value, slope = ACTIVATIONS[name]
    b, f = hl.Buffer(v), hl.Func("f")
    f[x] = getattr(hl.nn, name)(b[x])
    wide = v.astype(np.float64)
    floor = 1e-6 if name == "gelu" else 1e-37  # 1 + erf loses what is below
    np.testing.assert_allclose(realized(f, 14), value(wide), rtol=3e-6, atol=floor)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(f)[b], 14), slope(wide), rtol=3e-6, atol=floor)


def row_softmax(z: Any) -> Any:
    with np.errstate(invalid="ignore"):
        e = np.exp(z - np.where(np.isfinite(z.max(-1, keepdims=True)), z.max(-1, keepdims=True), 0))
        s = e.sum(-1, keepdims=True)
        return np.where(s > 0, e / np.where(s > 0, s, 1), 0)


def row_lse(z: Any) -> Any:
    top = z.max(-1)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(z - np.where(np.isfinite(top), top, 0)[..., None]).sum(-1)) + np.where(np.isfinite(top), top, 0)


WIDE = np.concatenate([rng.normal(size=(3, 37)) * 3, rng.normal(size=(3, 37)) * 1e4, rng.normal(size=(3, 37)) + 1000])
MASKED = np.where(rng.random((6, 19)) < 0.4, -np.inf, rng.normal(size=(6, 19)) * 5)
MASKED[0] = -np.inf
LOGITS = {"wide": WIDE, "masked": MASKED}


@pytest.mark.parametrize("name", LOGITS)
def test_rows(name: str) -> None:
    z = LOGITS[name].astype(np.float32)
    rows, size = z.shape
    wide, b = z.astype(np.float64), hl.Buffer(z)
    up, up1 = rng.normal(size=(rows, size)).astype(np.float32), rng.normal(size=rows).astype(np.float32)
    p = row_softmax(wide)
    near = {"rtol": 1e-5, "atol": 1e-6}
    lse = hl.nn.logsumexp(b, size)
    np.testing.assert_allclose(realized(lse, rows), row_lse(wide), rtol=1e-5)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(lse, hl.Buffer(up1))[b], size, rows), up1[:, None] * p, **near)
    soft = hl.nn.softmax(b, size)
    np.testing.assert_allclose(realized(soft, size, rows), p, **near)
    expected = p * (up - (up * p).sum(-1, keepdims=True))
    np.testing.assert_allclose(realized(hl.propagate_adjoints(soft, hl.Buffer(up))[b], size, rows), expected, **near)
    if name == "masked":
        return
    logs = hl.nn.log_softmax(b, size)
    scale = max(1.0, np.abs(wide).max())
    np.testing.assert_allclose(realized(logs, size, rows), wide - row_lse(wide)[:, None], rtol=1e-5, atol=1e-6 * scale)
    expected = up - p * up.sum(-1, keepdims=True)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(logs, hl.Buffer(up))[b], size, rows), expected, rtol=1e-4, atol=1e-5 * max(1, scale / 100))


@pytest.mark.parametrize("name", LOGITS)
def test_cross_entropy(name: str) -> None:
    z = LOGITS[name].astype(np.float32)
    rows, size = z.shape
    labels = np.array([int(np.argmax(r)) if i % 2 else int(np.nonzero(np.isfinite(r))[0][0]) if np.isfinite(r).any() else 0 for i, r in enumerate(z)], np.int32)
    b, k = hl.Buffer(z), hl.Buffer(labels)
    loss = hl.nn.cross_entropy(b, k, size)
    wide = z.astype(np.float64)
    good = np.isfinite(wide).any(-1)
    picked = wide[np.arange(rows), labels]
    np.testing.assert_allclose(realized(loss, rows)[good], (row_lse(wide) - np.where(good, picked, 0))[good], rtol=1e-5, atol=1e-6)
    onehot = np.eye(size)[labels]
    np.testing.assert_allclose(realized(hl.propagate_adjoints(loss)[b], size, rows), row_softmax(wide) - onehot, rtol=1e-5, atol=1e-6)


def test_the_numbers_of_the_specification() -> None:
    b = hl.Buffer(np.array([0.5, -1.25, 2, 0, 3.5], np.float32))
    loss = hl.nn.cross_entropy(b, hl.Buffer(np.array(2, np.int32)), 5)
    np.testing.assert_allclose(float(realized(loss)), 1.771374555, rtol=1e-6)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(loss)[b], 5), [0.037954221, 0.006595455, -0.829900982, 0.023020399, 0.762330908], rtol=1e-5)
    big = hl.Buffer(np.array([-1000, 1000, 999, -1000], np.float32))
    loss = hl.nn.cross_entropy(big, hl.Buffer(np.array(0, np.int32)), 4)
    np.testing.assert_allclose(float(realized(loss)), 2000 + np.log1p(np.exp(-1)), rtol=1e-6)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(loss)[big], 4), [-1, 1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0], rtol=1e-5)


def test_layer_norm_and_second_derivatives() -> None:
    v, up = rng.normal(size=(3, 21)) + 5, rng.normal(size=(3, 21))
    b = hl.Buffer(v)
    f = hl.nn.layer_norm(b, 21)
    mean, std = v.mean(-1, keepdims=True), np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    h = (v - mean) / std
    np.testing.assert_allclose(realized(f, 21, 3), h, rtol=1e-9, atol=1e-12)
    expected = (up - up.mean(-1, keepdims=True) - h * (up * h).mean(-1, keepdims=True)) / std
    np.testing.assert_allclose(realized(hl.propagate_adjoints(f, hl.Buffer(up))[b], 21, 3), expected, rtol=1e-9, atol=1e-12)
    z = hl.Buffer(rng.normal(size=(2, 6)))
    soft, g = hl.nn.softmax(z, 6), hl.Func("g")
    g[x, y] = soft[x, y] * soft[x, y]
    r = hl.RDom([(0, 6), (0, 2)])
    loss, slope = hl.Func("loss"), hl.Func("slope")
    loss[()] = hl.f64(0)
    loss[()] += g[r.x, r.y]
    first = hl.propagate_adjoints(loss)[z]
    slope[()] = hl.f64(0)
    slope[()] += first[r.x, r.y] * first[r.x, r.y]
    report = hl.check_gradients(slope, [z])
    assert report, report


def test_layers() -> None:
    a, w = rng.normal(size=(7, 5)).astype(np.float32), rng.normal(size=(5, 9)).astype(np.float32)
    left, right, up = hl.Buffer(a), hl.Buffer(w), rng.normal(size=(7, 9)).astype(np.float32)
    product = hl.nn.matmul(left, right, 5)
    np.testing.assert_allclose(realized(product, 9, 7), a @ w, rtol=1e-5, atol=1e-6)
    d = hl.propagate_adjoints(product, hl.Buffer(up))
    np.testing.assert_allclose(realized(d[left], 5, 7), up @ w.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(realized(d[right], 9, 5), a.T @ up, rtol=1e-5, atol=1e-5)
    image, k, bias = (hl.Buffer(rng.normal(size=s)) for s in ((2, 3, 8, 9), (4, 3, 3, 3), (4,)))
    out = hl.nn.conv2d(image, k, 3, 3, 3, bias)
    padded = np.lib.stride_tricks.sliding_window_view(np.array(image), (3, 3), axis=(2, 3))
    np.testing.assert_allclose(realized(out, 7, 6, 4, 2), np.einsum("ncyxji,kcji->nkyx", padded, np.array(k)) + np.array(bias)[:, None, None], rtol=1e-9)
    report = hl.check_gradients(out, [image, k, bias], [(0, 7), (0, 6), (0, 4), (0, 2)], elements=12)
    assert report, report


@pytest.mark.parametrize("attempt", [lambda: hl.nn.softmax(hl.Buffer(np.zeros(4, np.int32)), 4), lambda: hl.nn.conv2d(hl.Func("undefined"), 1, 1, 1, 1),
                                     lambda: hl.nn.matmul(hl.Buffer(np.zeros(4, np.float32)), hl.Buffer(np.zeros(4, np.float32)), 4)])
def test_errors(attempt: Callable[[], Any]) -> None:
    with pytest.raises(hl.CompileError, match=r"hl\.nn\.\w+ takes a Func or image of floats"):
        attempt()
