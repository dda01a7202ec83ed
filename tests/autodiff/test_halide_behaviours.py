"""The behaviours that Halide's own test of automatic differentiation (test/correctness/autodiff.cpp) covers, one test of ours each.

Pipelines and numbers are ours; what a test is about is in its name and in the list. Each derivative is compared with central differences in double
precision and with forward mode (the dot-product test), by `gradient_checks.check`; GATHERS are those whose adjoints have to be free of scatters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradient_checks import check, image, is_gather, run, total

import halide_py as hl

x, y, u, v = hl.Var("x"), hl.Var("y"), hl.Var("u"), hl.Var("v")
rng = np.random.default_rng(44)
F64 = hl.Float(64)


def f64(e: Any) -> Any:
    return hl.cast(F64, e)


def func(name: str, *definition: Any) -> hl.Func:
    """A Func defined at once."""
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


def near(a: Any, size: int) -> hl.Func:
    """An input, clamped."""
    return func("clamped", x, a[hl.clamp(x, 0, size - 1)])


def squares(f: hl.Func, *extents: int) -> hl.Func:
    """The sum of squares, weighted."""
    at = (x, y)[:len(extents)]
    return total(func("squared", *at, f[at] * f[at]), *extents)


Build = Callable[..., hl.Func]
CASES: dict[str, tuple[Build, list[Any]]] = {}
GATHERS: set[str] = set()


def case(*arrays: Any, gather: bool = False) -> Callable[[Build], Build]:
    """Decorator: a behaviour, with the inputs to try it at."""
    def add(build: Build) -> Build:
        CASES[build.__name__] = build, list(arrays)
        if gather:
            GATHERS.add(build.__name__)
        return build
    return add


def of_one(name: str, function: Callable[[Any], Any], *at: float) -> None:
    """A scalar behaviour: a function of one number."""
    def build(a: Any) -> hl.Func:
        return total(func("value", x, function(a[x])), len(at))
    CASES[name] = build, [np.array(at)]


# -- scalars

of_one("scalar_arithmetic", lambda e: e * e - 2 * e + 5 + 3 / e, 5.0, -1.5)
of_one("scalar_special_functions", lambda e: hl.sin(e) + hl.cos(e) + hl.tan(e) + hl.exp(e) + hl.log(e) + hl.sqrt(e) + hl.pow(e, f64(1.5)) + hl.pow(f64(1.5), e) + hl.asin(e)
       + 1.25 * hl.acos(e) + hl.atan(e) + hl.atan2(e, f64(2)) + 1.5 * hl.atan2(f64(2), e) + hl.sinh(e) + 1.25 * hl.cosh(e) + hl.tanh(e) + hl.asinh(e) + hl.acosh(e + 1) + hl.atanh(e),
       0.5, 0.3)
of_one("scalar_floor_ceil_round_trunc", lambda e: hl.floor(e) + hl.ceil(e) + hl.round(e) + hl.trunc(e) + e * hl.floor(e), 2.3, -1.7)
of_one("scalar_max_min", lambda e: 2 * hl.max(e, f64(5)) + 3 * hl.max(e, f64(1)) + 5 * hl.min(e, f64(3)) + 7 * hl.min(e, f64(2)), 2.5, 0.25, 6.0)
of_one("scalar_abs", lambda e: 2 * hl.abs(e) + 3 * hl.abs(-e), -2.5, 1.25)
of_one("scalar_select", lambda e: hl.select(e > 0, 2 * e, 3 * e) + hl.select(e < 0, 5 * e, 7 * e), 5.0, -5.0)


@case(np.array([2.0, 6, 0.1]))
def scalar_lerp(a: Any) -> hl.Func:
    return func("mixed", hl.lerp(a[hl.Expr(0)], a[hl.Expr(1)], a[hl.Expr(2)]))


# -- stencils and convolutions


@case(rng.normal(size=4), gather=True)
def box_1d_no_clamp(a: Any) -> hl.Func:
    return squares(func("blur", x, a[x] + a[x + 1]), 3)


@case(rng.normal(size=3))
def box_1d(a: Any) -> hl.Func:
    c = near(a, 3)
    return squares(func("blur", x, c[x] + c[x + 1]), 4)


@case(rng.normal(size=(5, 5)))
def box_2d(a: Any) -> hl.Func:
    c = func("clamped", x, y, a[hl.clamp(x, 0, 4), hl.clamp(y, 0, 4)])
    across = func("across", x, y, c[x, y] + c[x + 1, y] + c[x + 2, y])
    return squares(func("down", x, y, across[x, y - 1] + across[x, y] + across[x, y + 1]), 5, 5)


@case(rng.normal(size=4), rng.normal(size=2))
def rdom_conv(a: Any, kernel: Any) -> hl.Func:
    c, r = near(a, 4), hl.RDom([(0, 2)])
    conv = func("conv", x, f64(0))
    conv[x] += c[x + r] * kernel[r]
    return squares(conv, 4)


@case(rng.normal(size=3), gather=True)
def one_to_two_dimensions(a: Any) -> hl.Func:
    return squares(func("outer", x, y, (f64(x) + 1) * a[y]), 2, 3)


@case(rng.normal(size=5), gather=True)
def input_bounds(a: Any) -> hl.Func:
    f, g = func("f", x, f64(0)), func("g", x, f64(0))
    f[x] += a[x] * a[x + 1]
    g[x] += f[x] * a[x]
    return total(g, 4)


# -- updates


@case(rng.normal(size=3))
def update(a: Any) -> hl.Func:
    c = near(a, 3)
    blur = func("blur", x, c[x])
    blur[x] += c[x + 1]
    return squares(blur, 3)


@case(rng.normal(size=3))
def nonlinear_update(a: Any) -> hl.Func:
    c = near(a, 3)
    f = func("f", x, y, f64(0))
    f[x, 0] = c[x]
    f[x, 1] = f[x, 0] * f[x, 0] + c[x + 1]
    return total(func("row", x, f[x, 1]), 3)


@case(rng.normal(size=6))
def horner_polynomial(a: Any) -> hl.Func:
    r = hl.RDom([(0, 6)])
    poly = func("poly", x, y, f64(0))
    poly[x, 5 - r] = poly[x, 6 - r] * (f64(x) / 9) + a[r]
    return total(func("value", x, poly[x, 0]), 10)


@case(rng.normal(size=2))
def nonlinear_order_dependent_rdom(a: Any) -> hl.Func:
    r = hl.RDom([(0, 2)])
    f = func("f", x, y, f64(0))
    f[x, 0] = a[x]
    f[x, r + 1] = f[x, r] * f[x, r] + a[r]
    return total(func("end", x, f[x, 2]), 2)


@case(rng.normal(size=3))
def sparse_update(a: Any) -> hl.Func:
    source = func("source", x, a[x])
    out = func("out", x, source[x])
    out[1] = f64(0)
    out[2] = 2 * source[1]
    return total(out, 3)


@case(rng.normal(size=3))
def rdom_update(a: Any) -> hl.Func:
    first, second = hl.RDom([(1, 2)]), hl.RDom([(3, 4)])
    out = func("out", x, a[hl.clamp(x, 0, 2)])
    out[first] = a[first - 1]
    out[second] = f64(0)
    return total(out, 5)


def histogram_of(bins: Any, weights: Any, updates: int) -> hl.Func:
    r = hl.RDom([(0, 4)])
    h = func("h", x, f64(0))
    for _ in range(updates):
        h[bins(r)] += weights[r] * weights[r]
    return total(h, 4)


@case(np.array([2, 2, 1, 3], np.int32), rng.normal(size=5))
def histogram(bins: Any, weights: Any) -> hl.Func:
    return histogram_of(lambda r: hl.clamp(bins[r], 0, 3), weights, 1)


@case(rng.normal(size=5))
def histogram_no_bounds(weights: Any) -> hl.Func:
    bins = func("bins", x, 0)
    for i, b in enumerate((2, 2, 1, 3)):
        bins[i] = b
    return histogram_of(lambda r: bins[r], weights, 1)


@case(np.array([2, 2, 1, 3], np.int32), rng.normal(size=5))
def multiple_updates_histogram(bins: Any, weights: Any) -> hl.Func:
    return histogram_of(lambda r: hl.clamp(bins[r], 0, 3), weights, 10)


@case(rng.normal(size=(7, 7)))
def rdom_predicate(a: Any) -> hl.Func:
    r = hl.RDom([(0, 7), (0, 7)])
    r.where((r.x - 3) * (r.x - 3) + (r.y - 3) * (r.y - 3) <= 10)
    circle = func("circle", x, y, a[x, y])
    circle[r.x, r.y] *= f64(2)
    return total(circle, 7, 7)


@case(rng.normal(size=5))
def reverse_scan(a: Any) -> hl.Func:
    r = hl.RDom([(0, 5)])
    f = func("f", x, a[x])
    f[r] = f[4 - r]
    return total(f, 5)


@case(rng.normal(size=5))
def diagonal(a: Any) -> hl.Func:
    r = hl.RDom([(0, 4)])
    f = func("f", x, y, f64(0))
    f[r, r] = a[r] + a[r + 1]
    return total(f, 4, 4)


# -- resampling and layout


@case(np.array([0.3, 1.8]), rng.normal(size=3))
def linear_resampling_1d(at: Any, values: Any) -> hl.Func:
    here = func("here", x, at[hl.clamp(x, 0, 1)])
    there = near(values, 3)
    low = hl.cast(hl.Int(32), hl.clamp(hl.floor(here[x]), f64(0), f64(1)))
    w = here[x] - f64(low)
    return total(func("mixed", x, there[low] * (1 - w) + there[low + 1] * w), 2)


@case(np.array([[0.3], [1.8]]), rng.normal(size=(3, 1)))
def linear_resampling_2d(at: Any, values: Any) -> hl.Func:
    here = func("here", x, y, at[hl.clamp(x, 0, 1), hl.clamp(y, 0, 0)])
    there = func("there", x, y, values[hl.clamp(x, 0, 2), hl.clamp(y, 0, 0)])
    low = hl.cast(hl.Int(32), hl.clamp(hl.floor(here[x, y]), f64(0), f64(1)))
    w = here[x, y] - f64(low)
    return total(func("mixed", x, y, there[low, y] * (1 - w) + there[low + 1, y] * w), 2, 1)


@case(rng.normal(size=3))
def floor_ceil(a: Any) -> hl.Func:
    low = func("low", x, a[hl.cast(hl.Int(32), hl.floor(hl.f32(x) / 4))])
    high = func("high", x, a[hl.cast(hl.Int(32), hl.ceil(hl.f32(x) / 4))])
    return total(func("out", x, low[x] + high[x]), 8)


@case(rng.normal(size=10), gather=True)
def downsampling(a: Any) -> hl.Func:
    r = hl.RDom([(0, 4)])
    out = func("out", x, f64(0))
    out[x] += a[4 * x + r]
    return total(out, 2)


@case(rng.normal(size=4), gather=True)
def upsampling(a: Any) -> hl.Func:
    return total(func("out", x, a[x / 4]), 16)


@case(rng.normal(size=(4, 5)), rng.normal(size=(5, 4)), gather=True)
def transpose(a: Any, target: Any) -> hl.Func:
    out = func("out", x, y, a[y, x])
    return total(func("off", x, y, hl.pow(out[x, y] - target[x, y], f64(2))), 5, 4)


@case(rng.normal(size=(5, 5)), rng.normal(size=(5, 5)), gather=True)
def change_var(a: Any, target: Any) -> hl.Func:
    xy = func("xy", x, y, a[x, y])
    uv = func("uv", u, v, xy[u, v])
    return total(func("off", x, y, (uv[x, y] - target[x, y]) * (uv[x, y] - target[x, y])), 5, 5)


@case(rng.normal(size=3), gather=True)
def implicit_vars(a: Any) -> hl.Func:
    copy = hl.Func("copy")
    copy[hl._] = a[hl._]
    return squares(copy, 3)


@case(rng.normal(size=3), gather=True)
def tuples(a: Any) -> hl.Func:
    pair = hl.Func("pair")
    pair[x] = (a[x], a[x + 1] * a[x])
    pair[x] = (pair[x][0] + 1, pair[x][1] + 1)
    return squares(func("both", x, pair[x][0] + pair[x][1]), 2)


# -- boundary conditions


def bounded(condition: str) -> None:
    def build(a: Any) -> hl.Func:
        make = getattr(hl.BoundaryConditions, condition)
        edge = make(a, f64(0), [(0, 3)]) if condition == "constant_exterior" else make(a, [(0, 3)])
        return squares(func("blur", x, edge[x] + edge[x + 1]), 5)
    CASES[condition] = build, [rng.normal(size=3)]


for _condition in ("repeat_edge", "constant_exterior", "repeat_image", "mirror_image", "mirror_interior"):
    bounded(_condition)


# -- second order, guards, effects


@case(np.array([1.0, -2]))
def second_order(a: Any) -> hl.Func:
    inner = func("inner", x, a[x])
    d = hl.propagate_adjoints(total(func("poly", x, inner[x] * inner[x] * inner[x] + 3 * inner[x] + 4), 2, weight=lambda i: 1))[inner]
    return total(d, 2)


@case(rng.normal(size=6), rng.normal(size=6), rng.normal(size=3))
def second_order_conv(a: Any, target: Any, kernel: Any) -> hl.Func:
    edge, r = hl.BoundaryConditions.repeat_edge(a, [(0, 6)]), hl.RDom([(0, 3)])
    conv = func("conv", x, f64(0))
    conv[x] += edge[x + r - 1] * kernel[r]
    first = hl.propagate_adjoints(total(func("off", x, hl.pow(conv[x] - target[x], f64(2))), 5))[a]
    return total(first, 5)


@case(np.array([0.4, 1.0, -1.5]))
def select_guard(a: Any) -> hl.Func:
    e = a[x]
    f = (hl.select(e > 0, (f64(x) + 1) / e, e) + hl.select(e > 0, hl.sqrt(e), f64(1)) + hl.select(e > 0, hl.atan2(f64(1), e), 2 * e)
         + hl.select(e > 0, hl.log(e), 3 * e))
    return total(func("f", x, f), 3)


@case(np.array([0.75]))
def printed(a: Any) -> hl.Func:
    return func("out", hl.print_when(a[hl.Expr(0)] > 100, a[hl.Expr(0)] * a[hl.Expr(0)]))


@case(rng.normal(size=3))
def random_float(a: Any) -> hl.Func:
    r = hl.RDom([(0, 2)])
    out = func("out", x, f64(0))
    out[x] += f64(hl.random_float()) * a[x] + f64(r.x)
    return total(out, 3)


APART = ("param", "custom_adjoint_buffer", "scalar_fast_inverse")  # of another shape: tests of their own, below


@pytest.mark.parametrize("name", CASES)
def test_behaviour(name: str) -> None:
    build, arrays = CASES[name]
    check(build, *arrays, tolerance=1e-4 if name.startswith("second") else 1e-5)
    if name in GATHERS:
        images = [image(a.ndim, F64 if a.dtype == np.float64 else hl.Int(32)) for a in arrays]
        d = hl.propagate_adjoints(build(*images))
        assert all(is_gather(d[p]) for p in images if p.type() == F64), f"{name} has a scatter"


def test_select_guard_at_the_guarded_point() -> None:
    """Where 0 is, differences have no meaning; the branch that is taken has."""
    p = image(1)
    got = run(hl.propagate_adjoints(select_guard(p))[p], (3,), {p.name(): np.array([0.0, 1, 0])})
    weight = 1 + np.arange(3) * 0.37
    np.testing.assert_allclose(got, weight * [6, -2 + 0.5 - 0.5 + 1, 6], rtol=1e-12)


def test_scalar_fast_inverse() -> None:
    """In single precision only."""
    b = hl.Buffer(np.array([2.5, 0.75], np.float32))
    f = func("f", x, hl.fast_inverse(b[x]) + hl.fast_inverse_sqrt(b[x]))
    report = hl.check_gradients(f, [b], [(0, 2)])
    assert report and set(report.narrow) == {"fast_inverse()", "fast_inverse_sqrt()"}
    hl.check_dot_product(f, [b], [(0, 2)])


def test_param() -> None:
    """Of a number and of an image whose width is used as a number."""
    k, im = hl.Param(F64, "k", 2.0), hl.ImageParam(F64, 1, "im")
    im.set(hl.Buffer(np.array([1.0, 0])))
    f = func("f", k * k * f64(im.width()) * im[hl.Expr(0)])
    d = hl.propagate_adjoints(f)
    assert float(np.array(d[k].realize([]))) == 8
    np.testing.assert_array_equal(np.array(d[im].realize([2])), [8, 0])
    assert hl.check_gradients(f, [k, im]) and hl.check_dot_product(f, [k, im])


@pytest.mark.parametrize("low", [0, 1])
def test_custom_adjoint_buffer(low: int) -> None:
    b, up = hl.Buffer(np.array([1.0, 2, 3, 4])), np.array([0.5, -2])
    seed = hl.Buffer(up)
    seed.set_min([low])
    blur = func("blur", x, b[x] * b[x + 1])
    d = hl.propagate_adjoints(blur, seed)
    np.testing.assert_array_equal(np.array(d[blur].realize([2 + low]))[low:], up)
    values, expected = np.array([1.0, 2, 3, 4]), np.zeros(4)
    for i, a in enumerate(up):
        expected[low + i] += a * values[low + i + 1]
        expected[low + i + 1] += a * values[low + i]
    np.testing.assert_array_equal(np.array(d[b].realize([4])), expected)
    assert is_gather(d[b])


def test_the_list_is_whole() -> None:
    """Halide's list, in its words; ours has at least one test for each."""
    theirs = """scalar_arithmetic scalar_special_functions scalar_fast_inverse scalar_floor_ceil_round_trunc scalar_max_min scalar_abs scalar_select scalar_lerp box_1d_no_clamp
        box_1d box_2d update nonlinear_update rdom_conv horner_polynomial nonlinear_order_dependent_rdom one_to_two_dimensions linear_resampling_1d linear_resampling_2d
        sparse_update histogram histogram_no_bounds multiple_updates_histogram rdom_update repeat_edge constant_exterior repeat_image mirror_image mirror_interior
        second_order second_order_conv implicit_vars tuples floor_ceil downsampling upsampling transpose change_var rdom_predicate reverse_scan diagonal
        input_bounds select_guard param custom_adjoint_buffer printed random_float"""
    assert set(theirs.split()) == {*CASES, *APART}
