"""Rules for functions of Funcs, partials given by hand, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradient_checks import check, total

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
rng = np.random.default_rng(11)


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


@hl.custom_gradient
def softmax(logits: Any, classes: int) -> Any:
    """Over dimension 0 of a Func of (class, sample)."""
    r = hl.RDom([(0, classes)])
    top = func("top", y, hl.maximum(logits[r, y]))
    e = func("e", x, y, hl.exp(logits[x, y] - top[y]))
    return func("softmax", x, y, e[x, y] / hl.sum(e[r, y]))


@softmax.backward
def softmax_rule(adjoint: Any, p: Any, logits: Any, classes: int) -> Any:
    r = hl.RDom([(0, classes)])
    inner = func("inner", y, hl.sum(adjoint[r, y] * p[r, y]))
    return func("d_logits", x, y, p[x, y] * (adjoint[x, y] - inner[y])), None


def test_softmax_over_funcs_first_and_second_order() -> None:
    """Its argument is used elsewhere too; the rule is itself differentiable."""
    def build(a: Any) -> hl.Func:
        z = func("z", x, y, a[x, y] * a[x, y])
        p = softmax(z, 4)
        return total(func("out", x, y, p[x, y] * p[x, y] + z[x, y] / 3), 4, 3)

    def second(a: Any) -> hl.Func:
        d = hl.propagate_adjoints(build(a))[a]
        return total(func("square", x, y, d[x, y] * d[x, y]), 4, 3)

    check(build, rng.normal(size=(4, 3)), compiled=True)
    check(second, rng.normal(size=(4, 3)), tolerance=1e-4)


def test_arguments_of_every_kind_and_several_results() -> None:
    """A Func, an image, an Expr over Params; two results, of which one is a Tuple; a number is passed on."""
    seen: list[Any] = []

    @hl.custom_gradient
    def pair(f: Any, image: Any, k: Any, power: int) -> Any:
        seen.append(power)
        return func("first", x, f[x] ** power * k), func("second", x, (image[x] * f[x], hl.i32(x)))

    @pair.backward
    def _(adjoint: Any, result: Any, f: Any, image: Any, k: Any, power: int) -> Any:
        first, second = adjoint
        r = hl.RDom([(0, 4)])
        df = func("df", x, first[x] * hl.f64(power) * f[x] ** (power - 1) * k + second[x][0] * image[x])
        return df, func("di", x, second[x][0] * f[x]), hl.sum(first[r] * f[r] ** power), None

    k = hl.Param(hl.Float(64), "k", 1.5)

    def build(a: Any, b: Any) -> hl.Func:
        f = func("f", x, a[x] * 2)
        one, two = pair(f, b, k * k, 3)
        return total(func("out", x, one[x] * one[x] + two[x][0]), 4)

    a, b = rng.normal(size=4), rng.normal(size=4)
    p, q = hl.ImageParam(hl.Float(64), 1, "p"), hl.ImageParam(hl.Float(64), 1, "q")
    p.set(hl.Buffer(a)), q.set(hl.Buffer(b))
    loss = build(p, q)
    d = hl.propagate_adjoints(loss)
    for what, data in ((p, a), (q, b)):
        expected = np.zeros(4)
        for i in range(4):
            ends = []
            for step in (1e-6, -1e-6):
                moved = data.copy()
                moved[i] += step
                what.set(hl.Buffer(moved))
                ends.append(float(np.array(loss.realize([]))))
            expected[i] = (ends[0] - ends[1]) / 2e-6
        what.set(hl.Buffer(data))
        np.testing.assert_allclose(np.array(d[what].realize([4])), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    weight = 1 + np.arange(4) * 0.37
    np.testing.assert_allclose(float(np.array(d[k].realize([]))), (4 * 1.5 ** 3 * (2 * a) ** 6 * weight).sum(), rtol=1e-9)
    assert seen == [3]


def test_only_one_of_several_results_is_used() -> None:
    @hl.custom_gradient
    def both(f: Any) -> Any:
        return func("a", x, f[x] * 2), func("b", x, f[x] * 3)

    both.backward(lambda adjoint, result, f: func("df", x, adjoint[0][x] * 20 + adjoint[1][x] * 30))
    b = hl.Buffer(np.ones(3, np.float32))
    f = func("f", x, b[x])
    _, second = both(f)
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(second)[b].realize([3])), 30)


def test_the_identity_and_rules_upon_rules() -> None:
    """A rule for a Func that has a meaning of its own hangs at a copy."""
    scale = hl.custom_gradient(lambda f: f)
    scale.backward(lambda adjoint, result, f: func("ten", x, adjoint[x] * 10))
    b = hl.Buffer(np.ones(3, np.float32))
    f = func("f", x, b[x])
    twice = scale(scale(f))
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(twice)[b].realize([3])), 100)
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(f)[b].realize([3])), 1)


def test_with_gradient() -> None:
    b, k = hl.Buffer(np.array([0.4, 2.6], np.float32)), hl.Param(hl.Float(32), "k", 3.0)
    straight = func("straight", x, hl.with_gradient(hl.round(b[x]), [(b[x], 1.0)]))
    np.testing.assert_array_equal(np.array(straight.realize([2])), [0, 3])
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(straight)[b].realize([2])), 1)
    chain = func("chain", x, hl.with_gradient(b[x] * k, [(b[x] * b[x], hl.f32(x) * 5), (hl.f64(k), k)]))
    loss = func("loss", chain[0] + chain[1])
    d = hl.propagate_adjoints(loss)
    np.testing.assert_allclose(np.array(d[b].realize([2])), [0, 5 * 2 * 2.6], rtol=1e-6)
    assert float(np.array(d[k].realize([]))) == 6


def test_a_function_of_exprs_with_several_results() -> None:
    """Each use of a result adds its part; an integer among them is passed through."""
    asked: list[int] = []

    @hl.custom_gradient
    def polar(a: Any, b: Any) -> Any:
        return hl.hypot(a, b), hl.atan2(b, a), hl.i32(a)

    @polar.backward
    def _(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
        (dr, dt, _), (r, _, _) = adjoint, result
        asked.append(1)
        return dr * a / r - dt * b / (r * r), dr * b / r + dt * a / (r * r)

    def build(p: Any, q: Any) -> hl.Func:
        r, t, whole = polar(p[x] * p[x] + 0.5, q[x])
        f = func("f", x, r * t + hl.sin(t) + r * hl.f64(whole))
        f[x] = f[x] * polar(f[x], p[x])[0]  # of values of its own
        s = hl.RDom([(1, 3)])
        f[s] = polar(f[s - 1], f[s])[1]
        return total(f, 4)

    check(build, rng.normal(size=4), rng.normal(size=4), compiled=True)
    assert asked

    wrong_count = hl.custom_gradient(lambda a: (a, a * 2))
    wrong_count.backward(lambda adjoint, result, a: (adjoint[0], adjoint[1]))
    with pytest.raises(hl.CompileError, match="returned 5 adjoints for 4 arguments"):
        hl.propagate_adjoints(func("f", x, wrong_count(hl.Buffer(np.ones(3, np.float32))[x])[0]))


def wrong(rule: Callable[..., Any], function: Any = None) -> Callable[[], Any]:
    def attempt() -> Any:
        named = function or (lambda f, k: func("g", x, f[x] * k))
        if function is None:
            named.__name__ = "scaled"
        made = hl.custom_gradient(named)
        made.backward(rule)
        b = hl.Buffer(np.ones(3, np.float32))
        return hl.propagate_adjoints(made(func("f", x, b[x]), hl.Param(hl.Float(32), "k", 2.0)))
    return attempt


def without_rule() -> Any:
    f = hl.custom_gradient(lambda f: func("g", x, f[x] * 2))
    return hl.propagate_adjoints(f(func("f", x, hl.Buffer(np.ones(3, np.float32))[x])))


def inside_only() -> Any:
    b, hidden = hl.Buffer(np.ones(3, np.float32)), hl.Buffer(np.ones(3, np.float32), name="hidden")
    f = hl.custom_gradient(lambda f: func("g", x, f[x] * func("inside", x, hidden[x])[x]))
    f.backward(lambda adjoint, result, f: adjoint)
    return hl.propagate_adjoints(f(func("f", x, b[x])))[hidden]


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "count": (wrong(lambda a, r, f, k: a), r"The gradient rule of scaled\(\) .*test_custom.py:\d+.* returned 1 adjoints for 2 arguments"),
    "kind": (wrong(lambda a, r, f, k: (3.0, None)), "argument 1 a float; return a Func over the 1 dimensions of f"),
    "dimensions": (wrong(lambda a, r, f, k: (func("d", x, y, a[x]), None)), "argument 1 Func d.* of 2 dimensions and 1 values, but f.* has 1"),
    "type": (wrong(lambda a, r, f, k: (func("d", x, hl.f64(a[x])), None)), "Func d.* of type float64, but f.* is float32; cast it"),
    "free variable": (wrong(lambda a, r, f, k: (None, a[x])), "argument 2 uses x"),
    "Func for a Param": (wrong(lambda a, r, f, k: (None, a)), "argument 2 Func .*has dimensions"),
    "Param's type": (wrong(lambda a, r, f, k: (None, hl.f64(1.0))), "argument 2 an adjoint of type float64, but the argument is float32"),
    "no Func": (wrong(lambda *a: a, lambda f, k: f[x]), "has to return a Func or a tuple of Funcs"),
    "undefined": (wrong(lambda *a: a, lambda f, k: hl.Func("nothing")), "Func nothing.*which has no definition"),
    "no rule": (without_rule, "has no rule; register one"),
    "inside": (inside_only, "no derivative for hidden.*inside of a custom_gradient"),
    "integer argument": (lambda: hl.with_gradient(hl.f32(x), [(x, 1.0)]), "argument 1 is int32"),
    "partial's type": (lambda: hl.with_gradient(hl.f32(x), [(hl.f32(x), hl.f64(1.0))]), "its partial float64"),
    "integer value": (lambda: hl.with_gradient(x, []), "the value is int32"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    attempt, message = ERRORS[name]
    with pytest.raises(hl.CompileError, match=message):
        attempt()
