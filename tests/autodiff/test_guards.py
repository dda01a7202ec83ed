"""Conditions that keep values and reads back: where they do not hold, derivatives are 0, not NaN, and nothing outside of an input is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradient_checks import check, image, run, total

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
rng = np.random.default_rng(11)
ZERO = hl.f64(0)


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


# What is singular, its value where it is used, and where it is not.
SINGULAR: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sqrt": (hl.sqrt, [0.0, -1, 4]),
    "log": (hl.log, [0.0, -2, 3]),
    "quotient": (lambda e: 1 / e, [0.0, -0.0, 2]),
    "exp": (lambda e: hl.exp(-1e3 * e), [-1.0, -5, 0.001]),
    "pow": (lambda e: hl.pow(e, hl.f64(1.5)), [-1.0, -2, 2]),
    "product": (lambda e: hl.log(e) * hl.sqrt(e) * e, [-1.0, 0, 2]),
    "remainder": (lambda e: 2 % e, [0.0, 0, 0.75]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_a_condition_in_another_func(name: str) -> None:
    """`g[x] = sqrt(a[x])`, then `select(a[x] > 0, g[x], 0)`: the adjoint of g is 0 where it has no derivative."""
    function, at = SINGULAR[name]
    p, data = image(1), np.array(at)
    apart = total(func("h", x, hl.select(p[x] > 0, func("g", x, function(p[x]))[x], ZERO)), 3)
    whole = total(func("h", x, hl.select(p[x] > 0, function(p[x]), ZERO)), 3)
    with np.errstate(all="ignore"):
        got, expected = (run(hl.propagate_adjoints(f)[p], (3,), {p.name(): data}) for f in (apart, whole))
    assert expected[2] != 0 and (expected[:2] == 0).all()
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    p.set(hl.Buffer(data))
    np.testing.assert_allclose(np.array(hl.propagate_adjoints(apart)[p].realize([3])), expected, rtol=1e-12)


def test_places_that_are_written_over_or_left_out() -> None:
    """`g[x] = log(a[x])`, `g[0] = 0`: the adjoint of the first values is 0 at 0. So it is at places that no consumer reads."""
    p, data = image(1), np.array([0.0, 2, 4, -1, 5])
    over = func("over", x, hl.log(p[x]))
    over[0] = ZERO
    over[hl.RDom([(3, 1)])] = p[1]
    strided = func("strided", x, hl.sqrt(p[x]) / p[x])
    r = hl.RDom([(0, 5)])
    r.where(p[r] > 0)
    left_out = func("left_out", hl.sum(func("g", x, hl.log(p[x]) * p[x])[r]))
    for f, size, expected in ((over, 5, [0, 1.5, 0.25, 0, 0.2]), (func("f", x, strided[2 * x + 2]), 2, [0, 0, -1 / 16, 0, -0.5 * 5**-1.5]),
                              (left_out, 0, [0, np.log(2) + 1, np.log(4) + 1, 0, np.log(5) + 1])):
        loss = total(f, size, weight=lambda i: 1) if size else f
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(run(hl.propagate_adjoints(loss)[p], (5,), {p.name(): data}), expected, rtol=1e-12)


def test_values_in_use_without_derivative_stay_nan() -> None:
    """The sum of exponentials that overflow: no condition leaves anything out, and no number may look like a derivative."""
    p, r = image(1), hl.RDom([(0, 3)])
    e = func("e", x, hl.exp(p[x]))
    loss = func("loss", hl.log(hl.sum(e[r])) - p[0])
    with np.errstate(all="ignore"):
        got = run(hl.propagate_adjoints(loss)[p], (3,), {p.name(): np.array([1.0, 2, 800])})
    assert np.isnan(got[2])


def test_products_with_values_of_other_funcs() -> None:
    """The force of a charge on itself is infinite, and left out later on."""
    def energy(places: Any, charges: Any) -> hl.Func:
        inverse = func("inverse", x, y, 1 / hl.abs(places[x] - places[y]))
        pair = func("pair", x, y, inverse[x, y] * charges[x] * charges[y])
        r = hl.RDom([(0, 4)])
        return total(func("sum", x, hl.sum(hl.select(r != x, pair[x, r], ZERO))), 4)

    with np.errstate(all="ignore"):
        check(energy, np.array([0.3, 1, 2.5, -1]), rng.normal(size=4), compiled=True)


def test_a_rule_of_ones_own_behind_a_condition() -> None:
    root = hl.custom_gradient(lambda v: hl.sqrt(v))
    root.backward(lambda adjoint, result, v: adjoint / (2 * result))
    p = image(1)
    h = total(func("h", x, hl.select(p[x] > 0, func("g", x, root(p[x]))[x], ZERO)), 2, weight=lambda i: 1)
    np.testing.assert_array_equal(run(hl.propagate_adjoints(h)[p], (2,), {p.name(): np.array([0.0, 4])}), [0, 0.25])


def test_an_adjoint_that_happens_to_be_zero_has_second_derivatives() -> None:
    """(sqrt(x) - 1)^2 at 1: the adjoint of the root is 0 there, and its second derivative 1/2."""
    p = image(1)
    root = func("root", x, hl.sqrt(p[x]))
    first = hl.propagate_adjoints(total(func("off", x, (root[x] - 1) * (root[x] - 1)), 2, weight=lambda i: 1))[p]
    second = hl.propagate_adjoints(total(first, 2, weight=lambda i: 1))[p]
    np.testing.assert_allclose(run(second, (2,), {p.name(): np.array([1.0, 4])}), [0.5, 0.0625], rtol=1e-12)


@pytest.mark.parametrize("name", ["sqrt", "pow", "log"])
def test_forward_mode_of_what_does_not_move(name: str) -> None:
    """`sqrt(max(a, 0))` where a < 0: the tangent of the maximum is 0, the partial of the root infinite."""
    function = SINGULAR[name][0]
    p, direction = image(1), image(1)
    f = total(func("f", x, hl.select(p[x] > -3, function(hl.max(p[x], ZERO)), ZERO)), 3, weight=lambda i: 1)
    inputs = {p.name(): np.array([-1.0, -2, 4]), direction.name(): np.array([1.0, 1, 2])}
    tangent = float(run(hl.propagate_tangents(f, [(p, direction)]), (), inputs))
    assert tangent == pytest.approx(float(run(hl.propagate_adjoints(f)[p], (3,), inputs) @ inputs[direction.name()]))


def variation(a: Any) -> hl.Func:
    """Total variation: each term reads a neighbour, and asks for its sign."""
    r = hl.RDom([(0, 5), (0, 4)])
    loss = func("loss", ZERO)
    loss[()] += hl.abs(a[r.x + 1, r.y] - a[r.x, r.y]) + hl.abs(a[r.x, r.y + 1] - a[r.x, r.y]) * 2
    return loss


def predicated(a: Any) -> hl.Func:
    r = hl.RDom([(0, 6), (0, 5)])
    r.where((r.x > 0) & (r.y > 1))
    loss = func("loss", ZERO)
    loss[()] += hl.max(a[r.x - 1, r.y] * 2, a[r.x, r.y - 2])
    return loss


def selected(a: Any) -> hl.Func:
    return total(func("f", x, y, hl.select(x > 0, hl.abs(a[x - 1, y] - a[x, y]), a[x, y])), 6, 5)


def selected_by_data(a: Any) -> hl.Func:
    """The first part of the condition keeps the second in range."""
    return total(func("f", x, y, hl.select((x > 0) & (a[x - 1, y] > 0), a[x - 1, y] * a[x, y], a[x, y])), 6, 5)


def scattered(a: Any) -> hl.Func:
    r = hl.RDom([(0, 6), (0, 5)])
    r.where(r.x > 0)
    f = func("f", x, ZERO)
    f[hl.clamp(hl.i32(a[r.x, r.y] * 3), -2, 2) + 2] += hl.abs(a[r.x - 1, r.y] - a[r.x, r.y])
    return total(f, 5)


def scanned(a: Any) -> hl.Func:
    r = hl.RDom([(0, 5)])
    f = func("f", x, a[x, 0])
    f[r + 1] = hl.max(f[r], a[r + 1, 1] - a[r, 2])
    return total(f, 6)


@pytest.mark.parametrize("build", [variation, predicated, selected, selected_by_data, scattered, scanned])
def test_conditions_read_no_more_than_the_forward_pass(build: Callable[..., hl.Func]) -> None:
    """The inputs are as large as the forward pass needs them."""
    check(build, rng.normal(size=(6, 5)), compiled=True)


@pytest.mark.parametrize("how", ["repeat_edge", "constant_exterior", "mirror_image", "repeat_image", "of_two"])
def test_places_that_data_says_behind_boundaries(how: str) -> None:
    """Warping by a flow that nothing limits: the derivative for the image scatters to where the boundary condition reads."""
    def warped(a: Any, flow: Any) -> hl.Func:
        edge = func("edge", x, a[hl.clamp(x, 0, 4)] * a[hl.clamp(x + 1, 0, 4)]) if how == "of_two" else (
            getattr(hl.BoundaryConditions, how)(a, *([hl.f64(0.5)] if how == "constant_exterior" else []), [(0, 5)]))
        place = hl.f64(x) + flow[x]
        low = hl.i32(hl.floor(place))
        part = place - hl.floor(place)
        return total(func("warped", x, edge[low] * (1 - part) + edge[low + 1] * part), 5)

    check(warped, rng.normal(size=5), rng.normal(size=5) * 2, compiled=True)


def test_a_func_without_region_has_no_derivative_of_its_own() -> None:
    a, at = hl.Buffer(np.arange(5.0)), hl.Buffer(np.array([7, -2, 1], np.int32))
    edge = hl.BoundaryConditions.repeat_edge(a)
    f = func("f", x, edge[at[x]])
    seed = hl.Buffer(np.array([1.0, 2, 4]))
    d = hl.propagate_adjoints(f, seed)
    np.testing.assert_array_equal(np.array(d[a].realize([5])), [2, 4, 0, 0, 1])
    with pytest.raises(hl.HalideError, match=r"no derivative for Func repeat_edge.* nothing limits the index"):
        d[edge]
    assert hl.check_gradients(f, [a], [(0, 3)])
    hl.check_dot_product(f, [a], [(0, 3)])


def test_places_that_a_func_limits() -> None:
    """The index is another Func's value, clamped there."""
    def build(a: Any, at: Any) -> hl.Func:
        near = func("near", x, a[hl.clamp(x, 0, 4)] * 2)
        index = func("index", x, hl.clamp(hl.i32(at[x]), 0, 4))
        return total(func("f", x, near[index[x]] * at[x]), 4)

    check(build, rng.normal(size=5), np.array([0.3, 2.5, 7.2, -3.1]), compiled=True)


def test_likely_conditions_of_data_keep_others_in_range() -> None:
    """A gather from a looked-up place (`likely(0 <= y && y < 3 && x == at[y])`), of a term that is guarded by data itself."""
    def build(a: Any, c: Any) -> hl.Func:
        r = hl.RDom([(0, 3)])
        f = func("f", x, hl.tanh(a[hl.clamp(x, 0, 4)]))
        kept = func("kept", x, hl.select(a[hl.clamp(x, 0, 4)] > -9, f[x], ZERO))
        out = func("out", x, ZERO)
        out[r] += hl.log(hl.abs(c[r + 2]) + 0.2) * c[r + 1] * kept[hl.clamp(hl.i32(c[r] * 2), 0, 4)]
        return total(out, 3)

    check(build, rng.normal(size=5), rng.normal(size=5), compiled=True)


def test_a_rule_under_a_condition_on_another_variable() -> None:
    """The adjoint of a call carries the condition it stands under, and so may what its rule gives."""
    cube = hl.extern("double cube1(double v)", source="double cube1(double v) { return v * v * v; }")
    cube.gradient(lambda adjoint, result, v: 3 * adjoint * v * v)

    def build(a: Any) -> hl.Func:
        return total(func("f", x, y, hl.select(y > 1, cube(a[x]), a[x])), 3, 4)

    check(build, rng.normal(size=3), compiled=True)


def test_what_is_read_where_conditions_never_hold() -> None:
    """A condition inside contradicts the one around it: nothing is read there, and the derivative is 0."""
    p, r, f = hl.ImageParam(hl.Float(64), 1, "p"), hl.RDom([(-2, 6)]), hl.Func("f")
    inside = hl.select((r - 2 >= 0) & (r - 2 < 5), p[r - 2], ZERO)
    f[()] = p[1] * p[3]
    f[()] += hl.select((r < -1) | (r > 3), hl.cos(inside) * 2, hl.f64(r))
    p.set(hl.Buffer(np.arange(5.0)))
    assert np.array(f.realize([])) == 3 + 2 + sum(range(-1, 4))
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(f)[p].realize([5])), [0, 3, 0, 1, 0])
