"""Forward mode, and the checks that users can run. That it agrees with the reverse mode for every rule and pipeline, `gradient_checks.check` sees to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
V = np.array([0.5, -1.25, 2, 0.75], np.float32)


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


def realized(f: hl.Func, *sizes: int) -> Any:
    return np.array(f.realize(list(sizes)))


def test_directions_of_every_kind_of_input() -> None:
    b, k = hl.Buffer(V), hl.Param(hl.Float(32), "k", 3.0)
    inner = func("inner", x, b[x] * k)
    f = func("f", x, inner[x] * inner[x])
    np.testing.assert_allclose(realized(hl.propagate_tangents(f, [(k, 1.0)]), 4), 2 * V ** 2 * 3, rtol=1e-6)
    along = hl.Buffer(np.array([1, 0, 2, 0], np.float32))
    np.testing.assert_allclose(realized(hl.propagate_tangents(f, {b: along}), 4), 2 * V * 9 * [1, 0, 2, 0], rtol=1e-6)
    both = hl.propagate_tangents(f, [(b, func("one", x, hl.f32(1))), (k, hl.f32(2) * k)])
    np.testing.assert_allclose(realized(both, 4), 2 * V * 9 + 2 * V ** 2 * 3 * 6, rtol=1e-6)
    np.testing.assert_allclose(realized(hl.propagate_tangents(f, [(inner, func("u", x, hl.f32(x)))]), 4), 2 * V * 3 * np.arange(4), rtol=1e-6)
    np.testing.assert_array_equal(realized(hl.propagate_tangents(func("g", x, b[x]), [(k, 1.0)]), 4), 0)


def test_tuples_and_stops() -> None:
    b = hl.Buffer(V)
    t = hl.Func("t")
    t[x] = (b[x] * 2, x, hl.stop_gradient(b[x]) * b[x])
    first, second = hl.propagate_tangents(t, [(b, func("one", x, hl.f32(1)))]).realize([4])
    np.testing.assert_array_equal(np.array(first), 2)
    np.testing.assert_array_equal(np.array(second), V)
    through = hl.propagate_tangents(func("s", x, hl.with_gradient(hl.round(b[x]), [(b[x], 5.0)])), [(b, func("one", x, hl.f32(1)))])
    np.testing.assert_array_equal(realized(through, 4), 5)


def test_second_order_forward_over_reverse() -> None:
    """A Hessian times a vector."""
    b, u = hl.Buffer(V.astype(np.float64)), np.array([1.0, -1, 0.5, 2])
    r = hl.RDom([(0, 3)])
    loss = hl.Func("loss")
    loss[()] = hl.f64(0)
    loss[()] += b[r] ** 2 * b[r + 1]
    product = realized(hl.propagate_tangents(hl.propagate_adjoints(loss)[b], [(b, hl.Buffer(u))]), 4)
    v, hessian = V.astype(float), np.zeros((4, 4))
    for i in range(3):
        hessian[i, i] += 2 * v[i + 1]
        hessian[i, i + 1] += 2 * v[i]
        hessian[i + 1, i] += 2 * v[i]
    np.testing.assert_allclose(product, hessian @ u)


def losses(rule: Any = None) -> tuple[hl.Func, hl.Buffer, hl.ImageParam, hl.Param]:
    """A pipeline of singles with a scan, a boundary, a maximum and a Param; with a function of a given rule in it."""
    b = hl.Buffer(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4) ** 3)
    b.set_min([2, -1])
    image, k = hl.ImageParam(hl.Float(32), 1, "weights"), hl.Param(hl.Float(32), "k", 0.7)
    image.set(hl.Buffer(V))
    near = hl.BoundaryConditions.repeat_edge(b)
    square = hl.custom_gradient(lambda v: v * v)
    square.backward(rule or (lambda adjoint, result, v: 2 * v * adjoint))
    f = func("f", x, y, near[x, y] * image[hl.clamp(x, 0, 3)] + square(k) + hl.tanh(near[x - 1, y + 1]))
    r = hl.RDom([(1, 5)])
    f[r, y] += f[r - 1, y] * k
    out = func("out", x, y, hl.max(f[x, y], f[x + 1, y]))
    return out, b, image, k


def test_check_gradients() -> None:
    out, b, image, k = losses()
    region = [(0, 5), (-2, 4)]
    report = hl.check_gradients(out, [b, image, k], region)
    assert report and len(report.entries) == 12 + 4 + 1 and str(report).startswith("17 derivatives, 0 differ"), str(report)
    assert {e.place for e in report.entries if e.name == b.name()} == {(i, j) for i in range(2, 6) for j in range(-1, 2)}
    assert len(hl.check_gradients(out, [b], region, elements=5).entries) == 5
    forward, reverse = hl.check_dot_product(out, [b, image, k], region)
    assert abs(forward - reverse) < 1e-4 * abs(forward)


def test_a_wrong_rule_is_found() -> None:
    out, b, image, k = losses(lambda adjoint, result, v: 3 * v * adjoint)
    report = hl.check_gradients(out, [b, k], [(0, 5), (-2, 4)])
    wrong = [e for e in report.entries if not e.agrees]
    assert not report and [e.name for e in wrong] == [k.name()] and f"WRONG {k.name()}: " in str(report)
    with pytest.raises(hl.CompileError, match="dot-product test of Func out.* fails"):
        hl.check_dot_product(out, [b, k], [(0, 5), (-2, 4)])


def test_what_is_single_only_is_said() -> None:
    knee = hl.extern("float check_knee(float v)", source="static float check_knee(float v) { return v > 1 ? 1 + (v - 1) / 2 : v; }")
    knee.gradient(lambda adjoint, result, v: adjoint * hl.select(v > 1, hl.f32(0.5), hl.f32(1)))
    b = hl.Buffer(V)
    report = hl.check_gradients(func("f", x, knee(b[x]) + hl.fast_exp(b[x]) + hl.erf(b[x])), [b], [(0, 4)])
    assert report and set(report.narrow) == {"check_knee()", "fast_exp()"} and "in single precision: " in str(report)


def forward_through_stage(tangent: Any = None) -> Any:
    b = hl.Buffer(V)
    f = hl.Func("stage")
    f.define_extern("c_stage", [b], hl.Float(32), 1, tangent=tangent)
    return hl.propagate_tangents(f, [(b, b)])


def test_through_extern_stages() -> None:
    """A stage of a Func that moves, an image that moves, one that does not, and a Param; its rule is for any stage of the name."""
    b, c, still = hl.Buffer(V.astype(np.float64)), hl.Buffer(np.array([1.0, 2, 3, 4])), hl.Buffer(np.full(4, 2.0))
    k = hl.Param(hl.Float(64), "k", 3.0)
    seen: list[Any] = []

    def stage(inner: Any, image: Any, other: Any, factor: Any, name: str = "combine") -> hl.Func:
        f = hl.Func("stage")
        f.define_extern(name, [inner, image, other, factor], hl.Float(64), 1, function=lambda a, i, o, s, out: s * a * i + o)
        return f.compute_root()

    @functools.partial(hl.register_extern_stage_tangent, "combine")
    def rule(tangents: Any, result: Any, inner: Any, image: Any, other: Any, factor: Any) -> Any:
        seen.append(tangents)
        return func("moved", x, factor * (tangents[0][x] * image[x] + inner[x] * tangents[1][x]) + tangents[3] * inner[x] * image[x])

    inner = func("inner", x, b[x] * b[x]).compute_root()
    out = func("out", x, hl.sin(stage(inner, c, still, k * k)[x]))
    u, w = np.array([1.0, -1, 0.5, 2]), np.array([0.5, 0, 1, -1])
    moves = [(b, hl.Buffer(u)), (c, hl.Buffer(w)), (k, 2.0)]
    got = realized(hl.propagate_tangents(out, moves), 4)
    v = V.astype(float)

    def value(t: float) -> Any:
        return np.sin((3 + 2 * t) ** 2 * (v + t * u) ** 2 * (np.array([1.0, 2, 3, 4]) + t * w) + 2)

    np.testing.assert_allclose(got, (value(1e-6) - value(-1e-6)) / 2e-6, rtol=1e-5)
    assert seen[0][2] is None and isinstance(seen[0][0], hl.Func)


def test_a_stage_with_a_rule_of_its_own_runs() -> None:
    """Rules given to one stage are no part of what is compiled."""
    b = hl.Buffer(V.astype(np.float64))
    f = hl.Func("f")
    f.define_extern("own_rules", [b], hl.Float(64), 1, function=lambda a, out: a * a, gradient=lambda adjoint, result, a: func("back", x, adjoint[x] * a[x] * 2),
                    tangent=lambda tangents, result, a: func("forth", x, tangents[0][x] * a[x] * 2))
    out = func("out", x, f.compute_root()[x] * 3)
    np.testing.assert_allclose(realized(out, 4), V.astype(float) ** 2 * 3)
    np.testing.assert_allclose(realized(hl.propagate_tangents(out, [(b, hl.Buffer(np.ones(4)))]), 4), V.astype(float) * 6)
    np.testing.assert_allclose(realized(hl.propagate_adjoints(out, hl.Buffer(np.ones(4)))[b], 4), V.astype(float) * 6)


def defined(value: Any) -> hl.Func:
    return func("f", x, value)


FLOATS, INTEGERS = hl.Buffer(V, name="single_floats"), hl.Buffer(np.zeros(4, np.int32), name="whole_numbers")
ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "extern stage": (forward_through_stage, r"Func stage.* computed by the C function c_stage.*register_extern_stage_tangent\('c_stage', lambda tangents, result, a0: \.\.\.\)"),
    "tangent of a stage": (lambda: forward_through_stage(lambda tangents, result, b: 3), "The tangent rule of c_stage.. .*returned 3; return a Func over the 1 dimensions of stage"),
    "type of the tangent": (lambda: forward_through_stage(lambda tangents, result, b: func("t", x, hl.f64(x))), "of 1 dimensions and types float64; return a Func .*of types float32"),
    "undefined": (lambda: hl.propagate_tangents(hl.Func("nothing"), []), "nothing.* has no definition"),
    "integers": (lambda: hl.propagate_tangents(defined(x), []), "whose values are integers"),
    "integer input": (lambda: hl.propagate_tangents(defined(FLOATS[x]), [(INTEGERS, INTEGERS)]), "whole_numbers has values of type int32"),
    "dimensions": (lambda: hl.propagate_tangents(defined(FLOATS[x]), [(FLOATS, func("t", x, y, hl.f32(0)))]), "has 2 dimensions and type float32, but single_floats has 1"),
    "type": (lambda: hl.propagate_tangents(defined(FLOATS[x]), [(FLOATS, func("t", x, hl.f64(0)))]), "type float64, but single_floats has 1 and float32"),
    "no Func": (lambda: hl.propagate_tangents(defined(FLOATS[x]), [(FLOATS, 1.0)]), "must be a Func or a Buffer over its 1 dimensions"),
    "Param": (lambda: hl.propagate_tangents(defined(FLOATS[x]), [(hl.Param(hl.Float(32), "k"), hl.f64(1))]), "must be one value of type float32"),
    "bits": (lambda: hl.propagate_tangents(defined(hl.reinterpret(hl.Float(32), hl.reinterpret(hl.UInt(32), FLOATS[x]))), [(FLOATS, FLOATS)]), "Reinterpret.*no gradient rule"),
    "no bounds": (lambda: hl.check_gradients(defined(FLOATS[x]), [FLOATS]), "has 1 dimensions; give bounds"),
    "no data": (lambda: hl.check_gradients(defined(FLOATS[x]), [hl.ImageParam(hl.Float(32), 1, "empty_row")], [(0, 4)]), "empty_row has no data"),
    "no value": (lambda: hl.check_gradients(defined(FLOATS[x]), [hl.Param(hl.Float(32), "unset_rate")], [(0, 4)]), "unset_rate has no value"),
    "wrt": (lambda: hl.check_gradients(defined(FLOATS[x]), [INTEGERS], [(0, 4)]), "wrt takes float"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    attempt, message = ERRORS[name]
    with pytest.raises(hl.CompileError, match=message):
        attempt()
