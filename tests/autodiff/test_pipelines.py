"""Whole pipelines: what Halide's own autodiff tests cover and more, each by central differences, and how the adjoints are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import check, is_gather, total

import halide_py as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
rng = np.random.default_rng(3)


def f64(e: Any) -> Any:
    return hl.cast(hl.Float(64), e)


def func(name: str, *definition: Any) -> hl.Func:
    """A Func defined at once."""
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


# -- stencils, resampling, layout: the adjoint is a gather


def test_stencil_without_clamp() -> None:
    def build(a: Any) -> hl.Func:
        blur = func("blur", x, a[x] + 3 * a[x + 1] * a[x + 2])
        return total(func("square", x, blur[x] * blur[x]), 4)

    p = hl.ImageParam(hl.Float(64), 1, "p")
    d = check(build, rng.normal(size=6), compiled=True)
    assert is_gather(hl.propagate_adjoints(build(p))[p])
    assert d.notes == []


def test_two_dimensional_stencils() -> None:
    def build(a: Any) -> hl.Func:
        clamped = func("clamped", x, y, a[hl.clamp(x, 0, 4), hl.clamp(y, 0, 4)])
        bx = func("bx", x, y, clamped[x, y] + 2 * clamped[x + 1, y] + clamped[x + 2, y])
        by = func("by", x, y, bx[x, y - 1] - bx[x, y] + 0.5 * bx[x, y + 1])
        return total(func("square", x, y, by[x, y] * by[x, y]), 5, 5)

    check(build, rng.normal(size=(5, 5)))


def test_convolution_and_its_kernel() -> None:
    def build(a: Any, k: Any) -> hl.Func:
        r = hl.RDom([(0, 3), (0, 3)])
        conv = hl.Func("conv")
        conv[x, y] = f64(0)
        conv[x, y] += a[x + r.x, y + r.y] * k[r.x, r.y]
        return total(func("square", x, y, conv[x, y] * conv[x, y]), 4, 3)

    check(build, rng.normal(size=(6, 5)), rng.normal(size=(3, 3)), compiled=True)
    p, q = hl.ImageParam(hl.Float(64), 2, "p"), hl.ImageParam(hl.Float(64), 2, "q")
    d = hl.propagate_adjoints(build(p, q))
    assert is_gather(d[p]) and is_gather(d[q])


def test_strided_convolution() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 4)])
        down = hl.Func("down")
        down[x] = f64(0)
        down[x] += a[2 * x + r] * f64(r + 1)
        return total(func("square", x, down[x] * down[x]), 9)

    check(build, rng.normal(size=20))
    p = hl.ImageParam(hl.Float(64), 1, "p")
    assert is_gather(hl.propagate_adjoints(build(p))[p])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_upsampling(k: int) -> None:
    def build(a: Any) -> hl.Func:
        up = func("up", x, a[x / k] * a[x / k + 1])
        return total(up, 3 * k + 1)

    check(build, rng.normal(size=6))
    p = hl.ImageParam(hl.Float(64), 1, "p")
    assert is_gather(hl.propagate_adjoints(build(p))[p])


def test_reversal_stride_and_offset() -> None:
    check(lambda a: total(func("f", x, a[7 - x] * a[2 * x] + a[9 - 3 * x + 3]), 4), rng.normal(size=13))


def test_transpose_and_renamed_dimensions() -> None:
    def build(a: Any) -> hl.Func:
        t = func("t", y, x, a[y, x] * a[x, y])
        return total(func("u", c, x, t[x, c] * t[x, c]), 4, 4)

    check(build, rng.normal(size=(4, 4)))


def test_broadcast_and_outer_product() -> None:
    def build(a: Any, b: Any) -> hl.Func:
        outer = func("outer", x, y, (f64(x) + 1) * a[y] * b[x])
        return total(func("square", x, y, outer[x, y] * outer[x, y]), 3, 4)

    check(build, rng.normal(size=4), rng.normal(size=3))


def test_matrix_product() -> None:
    def build(a: Any, b: Any) -> hl.Func:
        k = hl.RDom([(0, 3)])
        m = hl.Func("m")
        m[x, y] = f64(0)
        m[x, y] += a[x, k] * b[k, y]
        return total(func("s", x, y, hl.tanh(m[x, y])), 4, 5)

    check(build, rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), compiled=True)


def test_implicit_variables() -> None:
    def build(a: Any) -> hl.Func:
        copy = hl.Func("copy")
        copy[hl._] = a[hl._] * 2
        return total(copy, 3, 2)

    check(build, rng.normal(size=(3, 2)))


def test_diagonal() -> None:
    def build(a: Any) -> hl.Func:
        d = func("d", x, a[x, x] * a[x, 2])
        return total(d, 4)

    check(build, rng.normal(size=(4, 4)))


def test_diagonal_update() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, y, f64(0))
        r = hl.RDom([(0, 4)])
        f[r, r] = a[r] + a[r + 1]
        return total(f, 4, 4)

    check(build, rng.normal(size=5))


# -- boundaries and data-dependent indices: scatters


@pytest.mark.parametrize("condition", ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant_exterior"])
def test_boundary_conditions(condition: str) -> None:
    def build(a: Any) -> hl.Func:
        make = getattr(hl.BoundaryConditions, condition)
        bounds = [(0, 4)]
        edge = make(a, f64(1.5), bounds) if condition == "constant_exterior" else make(a, bounds)
        f = func("f", x, edge[x - 3] * edge[x + 1] + edge[x])
        return total(f, 8)

    check(build, rng.normal(size=4), compiled=condition == "mirror_image")


def test_clamped_access_accumulates_at_the_edges() -> None:
    check(lambda a: total(func("f", x, a[hl.clamp(x - 2, 0, 3)]), 9), rng.normal(size=4))


def test_linear_resampling() -> None:
    """The index depends on data, the weight too."""
    def build(a: Any, at: Any) -> hl.Func:
        here = at[x]
        i = hl.clamp(hl.i32(hl.floor(here)), 0, 3)
        w = here - f64(i)
        return total(func("f", x, a[i] * (1 - w) + a[i + 1] * w), 4)

    check(build, rng.normal(size=5), np.array([0.3, 2.8, 1.1, 3.9]))


def test_floor_and_ceil_as_indices() -> None:
    def build(a: Any) -> hl.Func:
        low = func("low", x, a[hl.i32(hl.floor(hl.f32(x) / 4))])
        high = func("high", x, a[hl.i32(hl.ceil(hl.f32(x) / 4))])
        return total(func("f", x, low[x] * high[x]), 8)

    check(build, rng.normal(size=3))


def test_histogram() -> None:
    def build(bins: Any, k: Any) -> hl.Func:
        r = hl.RDom([(0, 5)])
        h = func("h", x, f64(0))
        h[hl.clamp(bins[r], 0, 3)] += k[r] * k[r]
        return total(func("s", x, h[x] * h[x]), 4)

    check(build, np.array([2, 2, 1, 3, 0], np.int32), rng.normal(size=5), compiled=True)


def test_gather_through_a_table() -> None:
    def build(at: Any, table: Any) -> hl.Func:
        return total(func("f", x, table[hl.clamp(at[x], 0, 2)] * f64(x + 1)), 6)

    check(build, np.array([0, 2, 2, 1, 2, 0], np.int32), rng.normal(size=3))


def test_bins_without_bounds() -> None:
    def build(k: Any) -> hl.Func:
        bins = func("bins", x, 0)
        for i, v in enumerate((2, 2, 1, 3)):
            bins[i] = v
        h = func("h", x, f64(0))
        r = hl.RDom([(0, 4)])
        h[bins[r]] += k[r]
        return total(h, 4)

    check(build, rng.normal(size=5))


# -- updates


def test_several_updates() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, a[x])
        f[x] += a[x + 1] * a[x]
        f[x] -= 2 * a[x + 2]
        return total(func("s", x, f[x] * f[x]), 4)

    assert check(build, rng.normal(size=6)).notes == []


def test_values_in_front_of_an_update() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, hl.sin(a[x]))
        f[x] = f[x] * f[x] + f[x] * a[x]
        f[x] = hl.exp(f[x])
        return total(f, 4)

    check(build, rng.normal(size=4), compiled=True)


def test_places_written_over() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, a[x] * a[x])
        f[1] = f64(3)
        f[2] = 2 * a[1] * f[0]
        r = hl.RDom([(3, 2)])
        f[r] = a[r - 1] * f[r]
        return total(f, 6)

    check(build, rng.normal(size=6))


def test_an_update_of_other_places() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, y, f64(0))
        f[x, 0] = a[x]
        f[x, 1] = f[x, 0] * f[x, 0] + a[x + 1]
        r = hl.RDom([(0, 3)])
        f[r, 2] = f[r, 1] * f[2 - r, 0]
        return total(f, 3, 3)

    assert check(build, rng.normal(size=4)).notes == []


def test_domain_with_a_predicate() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 5), (0, 5)])
        r.where((r.x - 2) * (r.x - 2) + (r.y - 2) * (r.y - 2) <= 4)
        circle = func("circle", x, y, a[x, y])
        circle[r.x, r.y] *= 2 * a[r.y, r.x]
        return total(circle, 5, 5)

    check(build, rng.normal(size=(5, 5)))


def test_a_predicate_with_a_sum() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 6)])
        r.where((r.x % 2 == 0) & (a[r.x] > 0))
        f = func("f", x, f64(0))
        f[x] += a[r.x] * a[x]
        return total(f, 3)

    check(build, rng.normal(size=6))


def test_a_selection_writes_the_last_value() -> None:
    """Several iterations write one place."""
    def build(at: Any, a: Any) -> hl.Func:
        r = hl.RDom([(0, 6)])
        f = func("f", x, a[x] * 5)
        f[hl.clamp(at[r], 0, 3)] = a[r] * a[r]
        return total(f, 5)

    check(build, np.array([1, 3, 1, 1, 0, 3], np.int32), rng.normal(size=6), compiled=True)


@pytest.mark.parametrize("reduce", [hl.maximum, hl.minimum, hl.sum, hl.product])
def test_inline_reductions(reduce: Any) -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 4)])
        m = func("m", x, reduce(a[r, x] * a[r, x] + a[r, x]))
        return total(func("s", x, m[x] * m[x]), 3)

    check(build, rng.normal(size=(4, 3)), compiled=True)


@pytest.mark.parametrize("reduce", [hl.argmax, hl.argmin])
def test_argument_of_the_extremum(reduce: Any) -> None:
    """The value's adjoint goes to the winner; so does that of what is gathered there."""
    def build(a: Any, b: Any) -> hl.Func:
        r = hl.RDom([(0, 5)])
        best = hl.Func("best")
        best[x] = reduce(a[r, x])
        return total(func("f", x, best[x][1] * b[hl.clamp(best[x][0], 0, 4)]), 3)

    assert check(build, rng.normal(size=(5, 3)), rng.normal(size=5)).notes == []


def test_ties_go_to_the_first() -> None:
    v = np.array([1, 3, 3, 3, 0], np.float32)
    for reduce, winner in ((hl.maximum, 1), (hl.minimum, 4)):
        b = hl.Buffer(v)
        r = hl.RDom([(0, 5)])
        m = func("m", reduce(b[r]))
        np.testing.assert_array_equal(np.array(hl.propagate_adjoints(m)[b].realize([5])), np.eye(5)[winner])


def test_running_maximum_in_place() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 5)])
        m = func("m", x, a[x])
        m[r] = hl.max(m[r], m[r - 1])
        return total(m, 6)

    check(build, rng.normal(size=6))


# -- several values, consumers, inputs


def test_tuples() -> None:
    def build(a: Any) -> hl.Func:
        t = hl.Func("t")
        t[x] = (a[x], a[x + 1], hl.i32(3))
        t[x] = (t[x][0] + a[x] * 2, t[x][1] + 1, t[x][2])
        return total(func("r", x, t[x][0] * t[x][1]), 3)

    check(build, rng.normal(size=4), compiled=True)


def test_consumers_accumulate() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, a[x] * a[x])
        g, h = func("g", x, hl.sin(f[x])), func("h", x, f[x + 1] * f[x])
        return total(func("k", x, g[x] * h[x] + f[x]), 3)

    check(build, rng.normal(size=4))


def test_what_reads_an_input_and_its_own_result() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, a[x] * a[x + 1])
        g = func("g", x, f[x] * a[x])
        return total(g, 4)

    check(build, rng.normal(size=5))


def test_parameters_and_shapes() -> None:
    k, im = hl.Param(hl.Float(32), "k", 2.0), hl.ImageParam(hl.Float(32), 1, "shaped")
    im.set(hl.Buffer(np.array([1, 0], np.float32)))
    f = func("f", k * k * hl.f32(im.width()) * im[0])
    d = hl.propagate_adjoints(f)
    assert float(np.array(d[k].realize([]))) == 8
    np.testing.assert_array_equal(np.array(d[im].realize([2])), [8, 0])


def test_a_parameter_is_summed_over_the_region() -> None:
    k = hl.Param(hl.Float(32), "k", 3.0)
    loss = hl.Func("loss")
    r = hl.RDom([(0, 5), (0, 2)])
    f = func("f", x, y, k * hl.f32(x) + k * k)
    loss[()] = 0.0
    loss[()] += f[r.x, r.y]
    assert float(np.array(hl.propagate_adjoints(loss)[k].realize([]))) == 2 * 10 + 10 * 6


def test_an_update_that_ignores_its_domain() -> None:
    k = hl.Param(hl.Float(32), "k", 3.0)
    r = hl.RDom([(0, 5)])
    f = func("f", x, 0.0)
    f[x] += k * hl.f32(1 + 0 * r.x)
    g = func("g", f[2])
    assert float(np.array(hl.propagate_adjoints(g)[k].realize([]))) == 5


# -- seeds


def test_seed_buffer_with_mins() -> None:
    v, up = rng.normal(size=8).astype(np.float32), rng.normal(size=3).astype(np.float32)
    b, seed = hl.Buffer(v), hl.Buffer(up)
    seed.set_min(2)
    out = func("out", x, b[x] * b[x + 1])
    expected = np.zeros(8)
    for i in range(3):
        expected[2 + i] += up[i] * v[3 + i]
        expected[3 + i] += up[i] * v[2 + i]
    np.testing.assert_allclose(np.array(hl.propagate_adjoints(out, seed)[b].realize([8])), expected, rtol=1e-5)


def test_seed_func_counts_within_its_bounds() -> None:
    b, k = hl.Buffer(np.ones(6, np.float32)), hl.Param(hl.Float(32), "k", 1.0)
    out = func("out", x, b[x] * k)
    d = hl.propagate_adjoints(out, func("seed", x, hl.f32(x)), [(1, 3)])
    np.testing.assert_array_equal(np.array(d[b].realize([6])), [0, 1, 2, 3, 0, 0])
    assert float(np.array(d[k].realize([]))) == 6


def test_adjoints_of_stages() -> None:
    """`d[f]` is for the pure definition, `d[f, k]` for the values behind update k; all are 0 outside."""
    b = hl.Buffer(np.array([1, 2, 3], np.float32))
    f = func("f", x, b[x])
    f[0] = 4.0
    d = hl.propagate_adjoints(total(func("g", x, hl.f64(f[x]) * 5), 3, weight=lambda i: 1))
    np.testing.assert_array_equal(np.array(d[f].realize([5])), [0, 5, 5, 0, 0])
    np.testing.assert_array_equal(np.array(d[f, 0].realize([5])), [5, 5, 5, 0, 0])
    assert len(d.funcs()) == len(set(d.funcs())) >= 5


def test_adjoint_of_something_without_influence_is_zero() -> None:
    b = hl.Buffer(np.array([1.5, 2, 3], np.float32))
    f = func("f", x, hl.f32(hl.i32(b[x])))
    d = hl.propagate_adjoints(total(func("g", x, hl.f64(f[x])), 3))
    np.testing.assert_array_equal(np.array(d[b].realize([3])), 0)


# -- second order


def test_second_order() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 3)])
        conv = hl.Func("conv")
        conv[x] = f64(0)
        conv[x] += a[x + r] * a[x] * f64(r + 1)
        first = hl.propagate_adjoints(total(func("s", x, conv[x] * conv[x]), 4))[a]
        return total(func("t", x, first[x] * first[x]), 6)

    check(build, rng.normal(size=6), tolerance=1e-4)


def test_second_order_of_a_recursion() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 2)])
        f = func("f", x, a[x])
        f[r] = f[r - 1] * a[r] + f[r]
        return total(hl.propagate_adjoints(total(func("s", x, f[x] * f[x]), 3))[a], 3)

    check(build, rng.normal(size=3), tolerance=1e-4)


def test_stable_softmax_with_cross_entropy() -> None:
    z = np.array([0.5, -1.25, 2, 0, 3.5], np.float32)
    for logits, label in ((z, 2), (np.array([-1000, 0, 1000, 997.5], np.float32), 1), (np.array([-np.inf, 0, 1], np.float32), 1)):
        b = hl.Buffer(logits)
        r = hl.RDom([(0, logits.size)])
        top = func("top", hl.maximum(b[r]))
        s = hl.Func("s")
        s[()] = 0.0
        s[()] += hl.exp(b[r] - top[()])
        loss = func("loss", hl.log(s[()]) + top[()] - b[label + hl.Expr(0)])
        p = np.exp(logits.astype(float) - logits.max())
        p /= p.sum()
        p[label] -= 1
        np.testing.assert_allclose(np.array(hl.propagate_adjoints(loss)[b].realize([logits.size])), p, rtol=1e-5, atol=1e-7)
