"""Loops over RVars that run at once: refused unless proved or promised to do no harm, exact when atomic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halide_py as hl
from halide_py.reference import algorithm

x, y = hl.Var("x"), hl.Var("y")
SIZE = 20_000
DATA = np.random.default_rng(5).integers(0, 250, SIZE).astype(np.uint8)


def c_text(f: hl.Func, folder: Path) -> str:
    f.compile_to_c(str(folder / "f.c"), f.infer_arguments(), "f")
    return (folder / "f.c").read_text()


def test_a_histogram_in_parallel_is_exact(tmp_path: Path) -> None:
    image, r = hl.Buffer(DATA.reshape(100, 200)), hl.RDom([(0, 200), (0, 100)])
    h = hl.Func("histogram")
    h[x] = hl.u16(0)
    h[hl.i32(image[r.x, r.y]) // 2] += hl.u16(1)
    with pytest.raises(hl.CompileError, match="race condition"):
        h.update().parallel(r.y)
    h.update().atomic().parallel(r.y).vectorize(r.x, 8)
    text = c_text(h, tmp_path)
    assert "halide_do_par_for" in text and "__atomic_fetch_add" in text
    for _ in range(5):
        assert (np.array(h.realize([128])) == np.bincount(DATA // 2, minlength=128)).all()


INTEGER = ["f * (e % 2 * 2 + 1)", "f ^ e", "f & (e | 1)", "hl.select(f < e, e, f)"]
ANY = ["f + e", "f - e", "hl.max(f, e)", "hl.min(e, f)", "hl.select(e > 3, f + e, f)"]


@pytest.mark.parametrize("t", [hl.UInt(8), hl.Int(64), hl.Float(16), hl.Float(32)], ids=str)
def test_every_operation_of_every_type(t: hl.Type) -> None:
    """Three elements, met by all threads all the time."""
    image, r, h = hl.Buffer(DATA), hl.RDom([(0, 1500)]), hl.Func()
    ops = ANY if t.is_float() else ANY + INTEGER
    h[x] = [hl.cast(t, 100)] * len(ops)
    at, e = r % 3, hl.cast(t, image[r] % 4)
    h[at] = [hl.cast(t, eval(op, {"hl": hl, "f": h[at][i], "e": e})) for i, op in enumerate(ops)]
    want = algorithm.realize([h.function], (3,))
    h.update().atomic().parallel(r, 4)
    for op, got, wanted in zip(ops, h.realize([3]), want):
        np.testing.assert_array_equal(np.array(got), wanted, err_msg=op)


def test_tuples_whose_elements_depend_on_each_other_are_updated_as_one(tmp_path: Path) -> None:
    image, r, h = hl.Buffer(DATA), hl.RDom([(0, 3000)]), hl.Func("product")
    h[x] = (hl.u32(1), hl.u32(3))
    a, b = hl.u32(image[r]), hl.u32(image[SIZE - 1 - r]) * 2 + 1
    h[r % 3] = (h[r % 3][0] * a - h[r % 3][1] * b, h[r % 3][0] * b + h[r % 3][1] * a)
    want = algorithm.realize([h.function], (3,))
    h.update().atomic().parallel(r, 16)
    assert "hl_lock_of" in c_text(h, tmp_path)
    np.testing.assert_array_equal(np.array([np.array(o) for o in h.realize([3])]), np.array(want))


@pytest.mark.parametrize("widths", [(8,), (4, 4)], ids=str)
def test_lanes_do_not_come_between_the_stores_of_a_tuple(widths: tuple[int, ...]) -> None:
    """At one place, at places that are data, and at some of a few in order."""
    image = hl.Buffer(DATA[:384].reshape(16, 24))
    at = [lambda r: 0, lambda r: hl.i32(image[r.x, r.y]) % 3, lambda r: r.x // 9]
    for place in at:
        r, h = hl.RDom([(0, 24), (0, 16)]), hl.Func("product")
        h[x] = (hl.u32(1), hl.u32(3))
        i, a, b = place(r), hl.u32(image[r.x, r.y]), hl.u32(r.x) * 2 + 1
        h[i] = (h[i][0] * a - h[i][1] * b, h[i][0] * b + h[i][1] * a)
        want = algorithm.realize([h.function], (3,))
        h.update().atomic()
        for v, width in zip((r.x, r.y), widths):
            h.update().vectorize(v, width)
        np.testing.assert_array_equal(np.array([np.array(o) for o in h.realize([3])]), np.array(want))


def test_elements_that_do_not_depend_on_each_other_need_no_lock(tmp_path: Path) -> None:
    image, r, h = hl.Buffer(DATA), hl.RDom([(0, SIZE)]), hl.Func("moments")
    h[()] = (0, hl.f64(0), hl.u8(255))
    v = image[r]
    h[()] = (h[()][0] + 1, h[()][1] + hl.f64(v), hl.min(h[()][2], v))
    h.update().atomic().parallel(r, 100)
    text = c_text(h, tmp_path)
    assert "hl_lock" not in text and "__atomic_compare_exchange" in text
    assert [b[()] for b in h.realize([])] == [SIZE, float(DATA.astype(np.int64).sum()), int(DATA.min())]


@pytest.mark.parametrize("width", [16, 23])
def test_lanes_are_combined_before_they_are_stored(width: int, tmp_path: Path) -> None:
    """`f(x) - e - e'` over vectors of r: each step is one horizontal sum."""
    image, r = hl.Buffer(DATA), hl.RDom([(0, width)])
    f = hl.Func("lanes")
    f[x] = 0
    f[x] = f[x] - hl.i32(image[x + r]) + r
    f.update().atomic().vectorize(r, 8)
    f.compile_to_lowered_stmt(str(tmp_path / "stmt"), [])
    assert (tmp_path / "stmt").read_text().count("vector_reduce_add") >= 1
    windows = np.lib.stride_tricks.sliding_window_view(DATA[:9 + width].astype(int), width)
    assert np.array(f.realize([10])).tolist() == [-int(w.sum()) + width * (width - 1) // 2 for w in windows]


@pytest.mark.parametrize("update, words", [
    ("h[x] * 2 + r", "its new value is not the old value combined"), ("r - h[x]", "its new value"), ("hl.select(h[x] > r, h[x] + r, h[x])", "its new value"),
])
def test_what_depends_on_the_order_is_refused(update: str, words: str) -> None:
    r, h = hl.RDom([(0, 9)]), hl.Func("ordered")
    h[x] = 0
    h[x] = eval(update, {"hl": hl, "h": h, "r": r, "x": x})
    with pytest.raises(hl.CompileError, match="can't prove associativity or commutativity.*" + words):
        h.update().atomic().vectorize(r)
    h.update().atomic(override_associativity_test=True).vectorize(r, 4).parallel(x)
    h.realize([4])


def test_refusals_name_the_reason() -> None:
    r, h, best = hl.RDom([(0, 9)]), hl.Func("indirect"), hl.Func("best")
    h[x] = 0
    h[hl.Expr(h[r])] += 1
    with pytest.raises(hl.CompileError, match="the place it updates depends on the values of indirect"):
        h.update().atomic().parallel(r)
    best[()] = (0, 0)
    better = best[()][0] < r % 4
    best[()] = (hl.select(better, r % 4, best[()][0]), hl.select(better, r, best[()][1]))
    with pytest.raises(hl.CompileError, match="which of equal values wins depends on the order"):
        best.update().atomic().parallel(r)
    swapped = hl.Func("swapped")
    swapped[x, y] = (x, y)
    swapped[x, y] = (swapped[x, y][1] + 1, swapped[x, y][0] + 2)  # not associative, but no order is lost where each element has its place
    swapped.update().parallel(y).atomic()
    assert [np.array(b)[2, 1] for b in swapped.realize([2, 3])] == [3, 3]
    g = hl.Func("promised")
    g[x] = 0
    g[r % 3] = 7
    g.update().allow_race_conditions().parallel(r)
    assert np.array(g.realize([3])).tolist() == [7, 7, 7]
    pure = hl.Func("pure")
    pure[x] = x
    assert np.array(pure.atomic().parallel(x).realize([3])).tolist() == [0, 1, 2]
