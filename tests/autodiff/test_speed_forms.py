"""What makes derivatives fast, by its results: clamped scatters as gathers, sums in blocks, default loops. None of it may change a value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gradient_checks import check, run, total

import halide_py as hl
from halide_py.ir.printer import to_text
from halide_py.lower.default_loops import with_default_loops
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


def layer(images: Any, weights: Any, channels: int, size: int) -> hl.Func:
    """A convolution over channels, written out: nothing schedules it."""
    k, n = hl.Var("k"), hl.Var("n")
    r = hl.RDom([(0, size), (0, size), (0, channels)])
    f = hl.Func("layer")
    f[x, y, k, n] = hl.f32(0)
    f[x, y, k, n] += images[x + r.x, y + r.y, r.z, n] * weights[r.x, r.y, r.z, k]
    return f


@pytest.mark.parametrize("shape, known", [((2, 3, 5, 20, 37), True), ((2, 3, 5, 20, 37), False), ((1, 17, 9, 9, 18), True)])
def test_derivatives_of_layers_in_tiles(shape: tuple[int, ...], known: bool) -> None:
    """Both derivatives equal those of NumPy, by default loops and by none, for sizes known and not, that fit no tile; a part of one is that part."""
    count, channels, filters, height, width = shape
    images, w = (rng.normal(size=s).astype(np.float32) for s in ((count, channels, height, width), (filters, channels, 3, 3)))
    up = rng.normal(size=(count, filters, height - 2, width - 2)).astype(np.float32)
    a, b = (hl.Buffer(images), hl.Buffer(w)) if known else (hl.ImageParam(hl.Float(32), 4, name) for name in "ab")
    if not known:
        a.set(hl.Buffer(images))
        b.set(hl.Buffer(w))
    d = hl.propagate_adjoints(layer(a, b, channels, 3), hl.Buffer(up))
    expected = [np.zeros(images.shape), np.zeros(w.shape)]
    for j in range(3):
        for i in range(3):
            window = np.s_[:, :, j:j + height - 2, i:i + width - 2]
            expected[0][window] += np.einsum("nkyx,kc->ncyx", up.astype(float), w[:, :, j, i])
            expected[1][:, :, j, i] = np.einsum("nkyx,ncyx->kc", up.astype(float), images[window])
    for loops in (True, False):
        hl.schedule_gradients(d, loops)
        for of, e in zip((a, b), expected, strict=True):
            np.testing.assert_allclose(np.array(d[of].realize(list(e.shape[::-1]))), e, rtol=1e-4, atol=1e-4 * np.abs(e).max())
    part = hl.Buffer(np.zeros((1, channels, 2, 2), np.float32))
    part.set_min([1, 1, 0, filters - 1])
    d[b].realize(part)
    np.testing.assert_allclose(np.array(part), expected[1][-1:, :, 1:, 1:], rtol=1e-4, atol=1e-4 * np.abs(expected[1]).max())


def test_a_known_layer_has_no_conditions_in_its_loops() -> None:
    images, w, up = (hl.Buffer(rng.normal(size=s).astype(np.float32)) for s in ((2, 32, 34, 34), (32, 32, 3, 3), (2, 32, 32, 32)))
    d = hl.propagate_adjoints(layer(images, w, 32, 3), up)
    for of in (images, w):
        sums = [f for name, f in environment([d[of].function]).items() if name.endswith("_sum") and f.updates[0].rdom is not None]
        assert len(sums) == 1
        assert len(sums[0].schedule.bounds) == (2 if of is images else 4)
        assert "select" not in to_text(sums[0].updates[0].values[0])


@pytest.mark.parametrize("rows, columns, inner, count", [(300, 71, 260, 1), (17, 70, 270, 1), (300, 70, 15, 0), (40, 300, 50, 0)])
def test_sums_along_adjacent_memory_read_packed_copies(rows: int, columns: int, inner: int, count: int) -> None:
    """A product of matrices: the derivative for the left factor sums over what is adjacent in both that it reads. Copied where elements are used often."""
    left, right, up = (rng.normal(size=s).astype(np.float32) for s in ((rows, inner), (inner, columns), (rows, columns)))
    a, w, r = hl.Buffer(left), hl.Buffer(right), hl.RDom([(0, inner)])
    product = func("product", x, y, hl.f32(0))
    product[x, y] += a[r, y] * w[x, r]
    d = hl.propagate_adjoints(product, hl.Buffer(up))
    expected = up.astype(float) @ right.T
    assert len([name for name in environment([d[a].function]) if "packed" in name]) == count
    found = np.array(d[a].realize([inner, rows]))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(run(d[a], (inner, rows), {}).T, expected, rtol=1e-4, atol=1e-3)
    part = hl.Buffer(np.zeros((5, 7), np.float32))
    part.set_min([3, rows - 5])
    d[a].realize(part)
    np.testing.assert_array_equal(np.array(part), found[-5:, 3:10])


def test_what_data_says_is_not_packed() -> None:
    """A copy of what is read at places that data says would have to hold them all."""
    table, places, up = rng.normal(size=(5, 40)).astype(np.float32), rng.integers(0, 5, 300).astype(np.int32), rng.normal(size=(300, 40)).astype(np.float32)
    w = hl.Buffer(rng.normal(size=(300, 300)).astype(np.float32))
    t, at, r = hl.Buffer(table), hl.Buffer(places), hl.RDom([(0, 40)])
    f = func("f", x, y, hl.f32(0))
    f[x, y] += w[y, x] * t[r, hl.clamp(at[y], 0, 4)]
    d = hl.propagate_adjoints(f, hl.Buffer(np.ascontiguousarray(up[:, :40])))
    expected = np.zeros((300, 300))
    expected[:40] = (table.astype(float).sum(1)[places] * up[:, :40].T)
    np.testing.assert_allclose(np.array(d[w].realize([300, 300])), expected, rtol=1e-4, atol=1e-3)
    s = func("s", x, hl.f32(0))
    k = hl.RDom([(0, 300)])
    s[x] += t[x, hl.clamp(at[k], 0, 4)] * w[k, x]
    d = hl.propagate_adjoints(s, hl.Buffer(np.ones(40, np.float32)))
    full = np.zeros((300, 300))
    full[:40] = table.T[:, places]
    np.testing.assert_allclose(np.array(d[w].realize([300, 300])), full, rtol=1e-4, atol=1e-3)


def domains_of(derivative: hl.Func, name: str) -> list[int]:
    """The number of turns of each update of the Funcs made for an input."""
    made = [f for f in environment([derivative.function]).values() if f.name.startswith(name)]
    return [math.prod(int(to_text(v.extent)) for v in d.rdom.variables) for f in made for d in f.updates if d.rdom]


@pytest.mark.parametrize("data", [False, True])
def test_places_behind_a_division_are_gathered(data: bool) -> None:
    """A grid that is looked up by place: its derivative visits each place of the image once, not all of them for each cell. Where data says
    one of the coordinates, it is a scatter: a gather of the others saves nothing."""
    def build(guide: Any, grid: Any) -> hl.Func:
        r = hl.RDom([(0, 2), (0, 2)])
        f = func("f", x, y, hl.f64(0))
        f[x, y] += grid[x // 4 + r.x, y // 4, hl.clamp(guide[x, y] + r.y, 0, 2) if data else r.y] * (r.x + 2 * r.y + 1) * (guide[x, y] + 1)
        return total(f, 8, 8)

    check(build, rng.integers(0, 3, (8, 8)).astype(np.int32), rng.normal(size=(3, 2, 3)), compiled=True)
    guide, grid = hl.Buffer(rng.integers(0, 3, (8, 8)).astype(np.int32)), hl.Buffer(rng.normal(size=(3, 2, 3)))
    derivative = hl.propagate_adjoints(build(guide, grid))[grid]
    assert max(domains_of(derivative, grid.name())) <= (8 * 8 * 2 * 2 if data else 4 * 4 * 2)


def float_cells(a: Any) -> hl.Func:
    r = hl.RDom([(0, 2)])
    f = func("f", x, y, hl.f64(0))
    cell = hl.cast(hl.Int(32), hl.floor((x + hl.f32(0.5)) / 4))
    f[x, y] += a[cell + r.x, y // 4] * (r.x + 1) * (x + 1)
    return f


def test_places_found_by_floats_are_scattered() -> None:
    """Solved for the two values of r, each cell would visit the whole image; the scatter visits it once, with the loop over r inside, unrolled."""
    check(lambda a: total(float_cells(a), 64, 8), rng.normal(size=(17, 2)), compiled=True)
    b = hl.Buffer(rng.normal(size=(2, 17)))
    derivative = hl.propagate_adjoints(total(float_cells(b), 64, 8))[b]
    (update,) = derivative.function.updates
    extents = [int(to_text(v.extent)) for v in update.rdom.variables]
    assert extents[0] == 2 and math.prod(extents) == 2 * 64 * 8
    scheduled = with_default_loops(environment([derivative.function]), {derivative.name()}, hl.get_jit_target_from_environment())
    kinds = [dim.for_type.name for u in scheduled[derivative.name()].updates for dim in u.schedule.dims]
    assert kinds[0] == "Unrolled" and set(kinds[1:]) == {"Serial"}


@pytest.mark.parametrize("rows", [64, 61])
def test_scatters_of_many_terms_run_in_blocks(rows: int) -> None:
    """Each block of rows has a copy of all cells; the number of rows need not be one of blocks. Who schedules by hand gets the updates."""
    shape = (17, (rows + 3) // 4)
    grid, up = hl.Buffer(rng.normal(size=shape[::-1])), rng.normal(size=(rows, 4096))
    places = np.clip(rng.integers(-2, 20, 4096), 0, 16).astype(np.int32)
    at = hl.Buffer(places)
    f = func("f", x, y, grid[hl.clamp(at[x], 0, 16), y // 4] * hl.f64(3))
    expected = np.zeros(shape)
    np.add.at(expected, (places[None, :], np.arange(rows)[:, None] // 4), 3 * up)
    d = hl.propagate_adjoints(f, hl.Buffer(up))
    blocks = [g for name, g in environment([d[grid].function]).items() if name.endswith("_scatter")]
    assert len(blocks) == 1 and len(d[grid].function.updates) == 0
    found = np.array(d[grid].realize(list(shape))).T
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.array(hl.schedule_gradients(d, loops=False)[grid].realize(list(shape))).T, found)
    part = hl.Buffer(np.zeros((1, 5)))
    part.set_min([3, 2])
    d[grid].realize(part)
    np.testing.assert_array_equal(np.array(part)[0], found[3:8, 2])
    by_hand = hl.propagate_adjoints(f, hl.Buffer(up))[grid]
    by_hand.update().unscheduled()
    np.testing.assert_allclose(np.array(by_hand.realize(list(shape))).T, expected, rtol=1e-9, atol=1e-9)


def test_phases_of_a_pyramid_come_together() -> None:
    """All remainders with one value are one gather without conditions; with different values they stay apart."""
    def build(weight: float) -> Any:
        def make(a: Any) -> hl.Func:
            f = func("f", x, y, a[2 * x, 2 * y] + a[2 * x + 1, 2 * y] * weight + a[2 * x, 2 * y + 1] + a[2 * x + 1, 2 * y + 1] * weight)
            return total(func("g", x, y, f[x, y] * f[x, y]), 4, 3)
        return make

    for weight, remainders in ((1.0, False), (0.5, True)):
        check(build(weight), rng.normal(size=(8, 6)), compiled=True)
        b = hl.Buffer(rng.normal(size=(6, 8)))
        assert ("%" in str(hl.propagate_adjoints(build(weight)(b))[b].value())) == remainders


def test_dear_funcs_of_the_forward_pass_are_computed_once() -> None:
    image = hl.ImageParam(hl.Float(32), 2, "image")
    cheap = func("cheap", x, y, image[x, y] * 2 + 1)
    near = [cheap[x + i, y + j] for i in range(4) for j in range(4)]
    dear = func("dear", x, y, sum(near[1:], near[0]))
    out = func("out", x, y, dear[x, y] * dear[x + 1, y])
    kept = func("kept", x, y, sum(near[1:], near[0])).compute_inline()
    both = func("both", x, y, out[x, y] * kept[x, y] * cheap[x, y])
    hl.propagate_adjoints(both, hl.Buffer(np.ones((4, 4), np.float32)))
    assert dear.function.schedule.compute_level.is_root()
    assert cheap.function.schedule.compute_level.is_inline() and kept.function.schedule.compute_level.is_inline()


def test_adjoints_read_the_forward_pass_inside_of_their_regions_only() -> None:
    """Between two convolutions: the adjoint in front of the activation reads the layer, which has no values beyond its edges."""
    size, r = 9, hl.RDom([(0, 3)])
    data, w = hl.Buffer(rng.normal(size=size)), rng.normal(size=3)

    def build(a: Any) -> hl.Func:
        first = func("first", x, hl.f64(0))
        first[x] += data[x + r.x] * a[r.x]
        active = func("active", x, hl.select(first[x] > 0, first[x] * first[x], 0))
        second = func("second", x, hl.f64(0))
        second[x] += active[x + r.x] * a[2 - r.x]
        return total(second, size - 4)

    weights = hl.Buffer(w)
    d = hl.propagate_adjoints(build(weights))
    found = np.array(d[data].realize([size]))
    x0, adjoint, inputs = np.array(data), np.zeros(size - 2), np.zeros(size)
    first = np.array([x0[i:i + 3] @ w for i in range(size - 2)])
    for i in range(size - 4):
        adjoint[i:i + 3] += w[::-1] * (1 + 0.37 * i)
    for i, value in enumerate(adjoint * 2 * np.maximum(first, 0)):
        inputs[i:i + 3] += w * value
    np.testing.assert_allclose(found, inputs, rtol=1e-9, atol=1e-12)
    check(build, w, compiled=True)
