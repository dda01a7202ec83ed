"""Numbers that have to come out: known losses and derivatives of small cases, in single precision within 1e-5 unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
LOGITS = np.array([0.5, -1.25, 2, 0, 3.5], np.float32)
LOSS, SLOPES = 1.771374555, [0.037954221, 0.006595455, -0.829900982, 0.023020399, 0.762330908]


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


def values(f: hl.Func, *sizes: int) -> Any:
    return np.array(f.realize(list(sizes)))


def of_reductions(z: hl.Buffer, label: int, size: int) -> hl.Func:
    """Written out: maximum, sum of exponentials, logarithm."""
    r = hl.RDom([(0, size)])
    top = func("top", hl.maximum(z[r, 0]))
    return func("loss", hl.log(hl.sum(hl.exp(z[r, 0] - top[()]))) + top[()] - z[label + hl.Expr(0), 0])


def of_nn(z: hl.Buffer, label: int, size: int) -> hl.Func:
    """The ready-made block."""
    losses = hl.nn.cross_entropy(z, hl.Buffer(np.array([label], np.int32)), size)
    return func("loss", losses[0])


@hl.custom_gradient
def custom(z: Any, label: int, size: int) -> hl.Func:
    return of_reductions(z, label, size)


@custom.backward
def _(adjoint: Any, loss: Any, z: Any, label: int, size: int) -> Any:
    r = hl.RDom([(0, size)])
    top = func("top", hl.maximum(z[r, 0]))
    whole = func("whole", hl.sum(hl.exp(z[r, 0] - top[()])))
    d = func("d", x, y, adjoint[()] * (hl.exp(z[x, y] - top[()]) / whole[()] - hl.select(x == label, hl.f32(1), hl.f32(0))))
    return d, None, None


FORMS = pytest.mark.parametrize("form", [of_reductions, of_nn, custom])


def softmax(z: Any) -> Any:
    e = np.exp(z.astype(np.float64) - z.max())
    return e / e.sum()


@FORMS
def test_cross_entropy(form: Callable[..., hl.Func]) -> None:
    z = hl.Buffer(LOGITS[None])
    loss = form(z, 2, 5)
    np.testing.assert_allclose(float(values(loss)), LOSS, rtol=1e-5)
    np.testing.assert_allclose(values(hl.propagate_adjoints(loss)[z], 5, 1)[0], SLOPES, rtol=1e-5)


@FORMS
@pytest.mark.parametrize("logits", [[1000, -1000, 0, 1000, 250], [-1000, -1000, -1000, -1000, -1000], [1000, 999, 1000, 998.5, -1000]])
def test_logits_of_a_thousand(form: Callable[..., hl.Func], logits: list[float]) -> None:
    """Finite, and the softmax minus one at the label."""
    at = np.array(logits, np.float32)
    z = hl.Buffer(at[None])
    loss = form(z, 2, 5)
    d = values(hl.propagate_adjoints(loss)[z], 5, 1)[0]
    assert np.isfinite(d).all() and np.isfinite(float(values(loss)))
    np.testing.assert_allclose(d, softmax(at) - np.eye(5)[2], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", [of_reductions, of_nn])
def test_masked_logits(form: Callable[..., hl.Func]) -> None:
    """A logit of -inf is a class that is left out: 0 there, no NaN, and the others as without it."""
    at = np.array([0.5, -np.inf, 2, 0, -np.inf], np.float32)
    z = hl.Buffer(at[None])
    d = values(hl.propagate_adjoints(form(z, 2, 5))[z], 5, 1)[0]
    assert not np.isnan(d).any() and d[1] == 0 and d[4] == 0
    np.testing.assert_allclose(d[[0, 2, 3]], softmax(at[[0, 2, 3]]) - [0, 1, 0], rtol=1e-5)


SOFTPLUS = """
#include <math.h>
double softplus_of_numbers(double v) { return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)); }
"""


@pytest.mark.parametrize("rule", ["by hand", "auto"])
def test_extern_softplus(rule: str) -> None:
    name = "softplus_of_numbers" if rule == "auto" else "softplus_by_hand"
    softplus = hl.extern(f"double {name}(double v)", source=SOFTPLUS.replace("softplus_of_numbers", name), gradient="auto" if rule == "auto" else None)
    if rule == "by hand":
        softplus.gradient(lambda adjoint, result, v: adjoint / (1 + hl.exp(-v)))
    b, seed = hl.Buffer(np.array([-800.0, -2, 0, 3, 800])), hl.Buffer(np.array([1.0, 2, 3, 4, 5]))
    f = func("f", x, softplus(b[x]))
    np.testing.assert_allclose(values(hl.propagate_adjoints(f, seed)[b], 5), [0, 0.238405844, 1.5, 3.810296507, 5], rtol=1e-8)


def test_a_rule_that_is_wrong_is_used_as_given() -> None:
    square = hl.extern("double square_seven(double v)", source="static double square_seven(double v) { return v * v; }", gradient=lambda adjoint, result, v: 7 * adjoint)
    b = hl.Buffer(np.array([1.0, 5]))
    np.testing.assert_array_equal(values(hl.propagate_adjoints(func("f", x, square(b[x])))[b], 2), 7)


def test_two_consumers_accumulate() -> None:
    b = hl.Buffer(np.array([1.0, 2, 3]))
    f = func("f", x, b[x] * b[x])
    g, h = func("g", x, f[x] * 3), func("h", x, f[x] * f[x])
    d = hl.propagate_adjoints(func("out", x, g[x] + h[x]), hl.Buffer(np.ones(3)))
    np.testing.assert_allclose(values(d[f], 3), 3 + 2 * np.array([1, 4, 9]))
    np.testing.assert_allclose(values(d[b], 3), 2 * np.array([1, 2, 3]) * (3 + 2 * np.array([1, 4, 9])))


def test_none_for_an_index() -> None:
    power = hl.extern("double power_of_numbers(double v, int n)", source="static double power_of_numbers(double v, int n) { double p = 1; while (n-- > 0) p *= v; return p; }")
    power.gradient(lambda adjoint, result, v, k: (adjoint * hl.f64(k) * power(v, k - 1), None))
    b, k = hl.Buffer(np.array([2.0, 3])), hl.Buffer(np.array([3, 2], np.int32))
    np.testing.assert_array_equal(values(hl.propagate_adjoints(func("f", x, power(b[x], k[x])))[b], 2), [12, 6])


def test_an_implicit_solver_uses_its_result() -> None:
    """The derivative of sqrt(v) is 1 / (2 * result): what the solver found is asked for, not computed again by another way."""
    root = hl.extern("double root_of_numbers(double v)", source="#include <math.h>\nstatic double root_of_numbers(double v) { return sqrt(v) + 1; }  /* off by one, on purpose */")
    root.gradient(lambda adjoint, result, v: adjoint / (2 * result))
    b = hl.Buffer(np.array([4.0, 9]))
    np.testing.assert_allclose(values(hl.propagate_adjoints(func("f", x, root(b[x])))[b], 2), [1 / 6, 1 / 8], rtol=1e-12)
