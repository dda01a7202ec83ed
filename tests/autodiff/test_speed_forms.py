"""What makes derivatives fast, by its results: clamped scatters as gathers, sums in blocks, default loops. None of it may change a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import check, run, total

import halide_py as hl
from halide_py.lower.environment import environment

x, y = hl.Var("x"), hl.Var("y")
rng = np.random.default_rng(17)


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


@pytest.mark.parametrize("condition", ["repeat_edge", "mirror_image", "constant_exterior"])
def test_the_interior_of_a_boundary_condition_is_a_gather(condition: str) -> None:
    """In two dimensions, with the boundary wider than the image; the pure definition holds the interior, updates what is outside."""
    def build(a: Any) -> hl.Func:
        make = getattr(hl.BoundaryConditions, condition)
        edge = make(a, hl.f64(0), [(0, 3), (0, 4)]) if condition == "constant_exterior" else make(a, [(0, 3), (0, 4)])
        return total(func("f", x, y, edge[x - 4, y - 1] * edge[x, y + 2]), 9, 4)

    p = hl.ImageParam(hl.Float(64), 2, "p")
    d = check(build, rng.normal(size=(3, 4)), compiled=True)
    adjoint = hl.propagate_adjoints(build(p))[p]
    assert "adjoint" in str(adjoint.value()) and d.notes == []
    whole = [r for i in range(adjoint.num_update_definitions()) for r in [adjoint.rvars(i)] if len(r) == 2]
    assert condition != "constant_exterior" or not adjoint.has_update_definition()
    assert condition != "repeat_edge" or len(whole) == 4  # the corners only


def test_other_clamps_and_selections_of_coordinates() -> None:
    def build(a: Any) -> hl.Func:
        f = func("f", x, a[hl.max(x - 2, 0)] * a[hl.select((x < 2) | (x > 5), 7 - x, x)] + a[hl.min(2 * x, 7)] + a[hl.max(hl.min(9 - x, 5), 1)])
        return total(f, 8)

    check(build, rng.normal(size=8), compiled=True)


def test_clamped_data_is_still_a_scatter() -> None:
    def build(at: Any, a: Any) -> hl.Func:
        return total(func("f", x, a[hl.clamp(at[x] + x, 0, 3)] * 2), 6)

    check(build, np.array([-3, 0, 9, 1, -2, 4], np.int32), rng.normal(size=4), compiled=True)


def test_sums_of_many_terms_are_taken_in_blocks() -> None:
    """Weights, a bias and a parameter of a layer over an image whose size fits neither lanes nor blocks."""
    image, w, up = (rng.normal(size=s).astype(np.float32) for s in ((75, 71), (3, 3), (73, 69)))
    b, k, seed, bias = hl.Buffer(image), hl.Buffer(w), hl.Buffer(up), hl.Param(hl.Float(32), "bias", 0.5)
    r = hl.RDom([(0, 3), (0, 3)])
    conv = func("conv", x, y, bias)
    conv[x, y] += b[x + r.x, y + r.y] * k[r.x, r.y]
    d = hl.propagate_adjoints(conv, seed)
    expected = [[(up.astype(float) * image[j:j + 73, i:i + 69]).sum() for i in range(3)] for j in range(3)]
    np.testing.assert_allclose(np.array(d[k].realize([3, 3])), expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(float(np.array(d[bias].realize([]))), up.astype(float).sum(), rtol=1e-4, atol=1e-3)
    assert any("blocks" in name for name in environment([d[k].function]))
    line, factor = hl.Buffer(rng.normal(size=5001)), hl.Param(hl.Float(64), "factor", 2.0)
    loss = total(func("scaled", x, line[x] * factor), 5001, weight=lambda i: hl.f64(i))
    np.testing.assert_allclose(float(np.array(hl.propagate_adjoints(loss)[factor].realize([]))), (np.array(line) * np.arange(5001)).sum())


@pytest.mark.parametrize("size", [1, 15, 17, 40])
def test_default_loops_fit_any_size_and_can_be_replaced(size: int) -> None:
    data, up = rng.normal(size=(3, size, size)), rng.normal(size=(3, size, size))
    b, seed = hl.Buffer(data), hl.Buffer(up)
    c = hl.Var("c")

    def derivative() -> tuple[hl.Func, hl.Derivative]:
        near = hl.BoundaryConditions.repeat_edge(b)
        blur = func("blur", x, y, c, near[x - 1, y, c] * near[x, y + 1, c])
        out = func("out", x, y, c, blur[x, y, c] + blur[x + 1, y, c])
        return blur, hl.propagate_adjoints(out, seed)

    blur, d = derivative()
    default = np.array(d[b].realize([size, size, 3]))
    serial = np.array(hl.schedule_gradients(derivative()[1], loops=False)[b].realize([size, size, 3]))
    np.testing.assert_allclose(default, serial, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(default, run(d[b], (3, size, size)[::-1], {}).T, rtol=1e-9, atol=1e-12)
    blur, d = derivative()  # by hand: one inside the loops of another, which then has loops of its own
    d[b].split(hl.Var("_1"), hl.Var("yo"), hl.Var("yi"), 4, hl.TailStrategy.GuardWithIf)
    d[b].compute_root()
    d[blur].compute_at(d.funcs()[[f.name().startswith("repeat_edge") for f in d.funcs()].index(True)], hl.Var("_2"))
    np.testing.assert_allclose(np.array(d[b].realize([size, size, 3])), default, rtol=1e-9, atol=1e-12)
