"""RDoms, inline reductions and boundary conditions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.reference import algorithm

x, y = hl.vars("x y")
DATA = np.random.default_rng(5).integers(-9, 9, (7, 5)).astype(np.int32)  # dimension 0 first


def image() -> hl.ImageParam:
    return hl.ImageParam(hl.Int(32), 2)


def run(f: hl.Func, shape: tuple[int, ...], im: hl.ImageParam | None = None, mins: tuple[int, ...] | None = None, data: Any = DATA) -> list[np.ndarray]:
    return algorithm.realize([f.function], shape, mins, inputs={im.name(): data} if im is not None else {})


@pytest.mark.parametrize("name, want", [
    ("sum", DATA.sum(1)), ("product", DATA.prod(1, dtype=np.int32)), ("maximum", DATA.max(1)), ("minimum", DATA.min(1))])
def test_folds(name: str, want: np.ndarray) -> None:
    im, f = image(), hl.Func()
    r = hl.RDom([(0, 5)])
    f[x] = getattr(hl, name)(im[x, r])
    np.testing.assert_array_equal(run(f, (7,), im)[0], want)


def test_folds_over_nothing() -> None:
    f = hl.Func()
    r = hl.RDom([(0, 0)])
    f[()] = (hl.sum(r.x), hl.product(r.x), hl.maximum(hl.u8(r.x)), hl.minimum(hl.f32(r.x)))
    assert [a.item() for a in run(f, ())] == [0, 1, 0, np.inf]


def test_sums_keep_their_type() -> None:
    r = hl.RDom([(0, 10)])
    e = hl.sum(hl.u8(r.x) + 200)
    assert e.type() == hl.UInt(8)
    f = hl.Func()
    f[()] = e
    assert run(f, ())[0].item() == (2000 + 45) % 256


def test_argmax_takes_the_first_winner() -> None:
    im, f, g = image(), hl.Func(), hl.Func()
    q = hl.RDom([(0, 7), (0, 5)])
    f[()] = hl.argmin(im[q.x, q.y])
    i, j, m = (a.item() for a in run(f, (), im))
    jj, ii = np.unravel_index(DATA.T.argmin(), DATA.T.shape)
    assert (i, j, m) == (ii, jj, DATA.min())
    g[()] = hl.argmax(im[q.x, q.y] * 0)
    assert [a.item() for a in run(g, (), im)] == [0, 0, 0]
    assert type(hl.argmax(q.x + q.y)) is tuple


def test_explicit_domains_and_outer_variables() -> None:
    im, f = image(), hl.Func()
    r, s = hl.RDom([(0, 5)], "inner_r"), hl.RDom([(0, 3)], "outer_s")
    f[x] = 0
    f[x] += hl.sum(r, im[x, r] * (s + 1)) * 10  # s is a loop of the update, not of the sum
    np.testing.assert_array_equal(run(f, (7,), im)[0], DATA.sum(1) * 60)
    g = hl.Func()
    g[x] = hl.sum(r, x, "without_mention")
    np.testing.assert_array_equal(run(g, (4,))[0], np.arange(4) * 5)
    h = hl.Func()
    h[x] = hl.sum(hl.sum(r, im[x, r] * s), "nested")
    np.testing.assert_array_equal(run(h, (7,), im)[0], DATA.sum(1) * 3)


def test_names_and_targets() -> None:
    r = hl.RDom([(0, 5)])
    assert repr(hl.sum(x + r, "mysum")) == "<halide.Expr of type int32: mysum(x)>"
    assert "prod2(x)" in repr(hl.product(rdom=r, expr=x + r, name="prod2"))
    f = hl.Func("given")
    assert repr(hl.maximum(r, x, f)) == "<halide.Expr of type int32: given(x)>" and f.num_update_definitions() == 1


def test_bounds_of_an_rdom_that_are_read_from_an_image() -> None:
    counts, data, g, f = hl.ImageParam(hl.UInt(8), 1), hl.Buffer(np.array([2, 5], np.uint8)), hl.Func("g"), hl.Func("f")
    counts.set(data)
    r = hl.RDom([(counts[0], hl.clamp(counts[1], 0, 9))])
    g[x] = x * x
    f[x] = 0
    f[x] += g[r]
    g.compute_root()
    assert np.array(f.realize([3])).tolist() == [sum(i * i for i in range(2, 7))] * 3
    data[1] = 0
    assert np.array(f.realize([3])).tolist() == [0] * 3


def test_rdom_of_images_and_predicates() -> None:
    im, f = image(), hl.Func()
    r = hl.RDom(im)
    r.where((r.x != r.y) & (r.x < 5))
    f[()] = hl.sum(im[r.x, r.y])
    i, j = np.mgrid[0:7, 0:5]
    assert run(f, (), im)[0].item() == DATA[(i != j) & (i < 5)].sum()
    assert r.dimensions() == 2 and len(r) == 2 and r.x.name() == r[0].name() and [v.name() for v in r] == [r.x.name(), r.y.name()]
    with pytest.raises(KeyError):
        r[2]
    with pytest.raises(KeyError):
        r[-1]
    with pytest.raises(TypeError):
        r["x"]  # type: ignore[index]
    many = hl.RDom([(0, 1)] * 6, "many")  # "many" alone if it is the first of that name in the process
    assert len(many) == 6 and many[0].name().startswith("many") and many[5].name() == many[0].name()[:-1] + "5"


MODES = {"repeat_edge": "edge", "repeat_image": "wrap", "mirror_image": "symmetric", "mirror_interior": "reflect"}


@pytest.mark.parametrize("name", [*MODES, "constant_exterior"])
@pytest.mark.parametrize("source", ["image", "func", "bounds", "one dimension"])
def test_boundary_conditions(name: str, source: str) -> None:
    im = image()
    make = getattr(hl.BoundaryConditions, name)
    extra = {"exterior": 42} if name == "constant_exterior" else {}
    pad = ((4, 4), (0, 0) if source == "one dimension" else (3, 3))
    if source == "image":
        f = make(im, **extra)
    elif source == "func":
        inner = hl.Func()
        inner[x, y] = im[x, y]
        f = make(inner, bounds=[(0, 7), (0, 5)], **extra)
    elif source == "bounds":
        f = make(im, bounds=[hl.Range(0, 7), (0, 5)], **extra)
    else:
        f = make(im, bounds=[(0, 7), (hl.Expr(), hl.Expr())], **extra)
    shape, mins = tuple(n + lo + hi for n, (lo, hi) in zip(DATA.shape, pad)), tuple(-lo for lo, _ in pad)
    want = np.pad(DATA, pad, constant_values=42) if extra else np.pad(DATA, pad, mode=MODES[name])  # type: ignore[call-overload]
    np.testing.assert_array_equal(run(f, shape, im, mins)[0], want)
    assert f.name().startswith(name)


def test_mirrors_of_a_single_element() -> None:
    data = np.array([[5]], np.int32)
    for name in MODES:
        im = image()
        f = getattr(hl.BoundaryConditions, name)(im)
        assert (run(f, (5, 5), im, (-2, -2), data)[0] == 5).all(), name


def test_exterior_of_tuples() -> None:
    f = hl.Func()
    f[x] = (x + 1, hl.f32(x))
    g = hl.BoundaryConditions.constant_exterior(f, (7, 1.5), [(0, 2)])
    assert [a.tolist() for a in run(g, (4,), None, (-1,))] == [[7, 1, 2, 7], [1.5, 0, 1, 1.5]]
