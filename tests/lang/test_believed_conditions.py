"""Conditions limit what is read: each program gets an input just as large as its predicates and selects say it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import halide_py as hl
from halide_py.reference import algorithm

x = hl.Var("x")


def buffer(*shape: int) -> hl.Buffer:
    return hl.Buffer(np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape))


def choosing(*arguments: object) -> hl.Func:
    f = hl.Func("choosing")
    f[x] = hl.select(*arguments)
    return f


def summing(r: hl.RDom, predicates: Sequence[hl.Expr], value: Callable[[], object]) -> hl.Func:
    for p in predicates:
        r.where(p)
    f = hl.Func("summing")
    f[x] = 0
    f[x] += value()
    return f


def domain(*pairs: tuple[int, int]) -> hl.RDom:
    return hl.RDom(list(pairs))


def through_a_func() -> hl.Func:
    a, g = buffer(9), hl.Func("g")
    g[x] = a[x] * 2
    g.compute_root()
    return choosing((x > 0) & (x < 10), g[x - 1], 0)


def where_with_vars() -> hl.Func:
    r, a = domain((0, 8)), buffer(8)
    return summing(r, [r.x + x < 8], lambda: a[r.x + x])


def where_of_two() -> hl.Func:
    r, a = domain((0, 8), (0, 8)), buffer(6, 7)
    return summing(r, [r.x > r.y, r.y >= 2], lambda: a[r.x - r.y - 1, r.y - 2])


def where_of_a_parameter() -> hl.Func:
    r, a, p = domain((0, 20)), buffer(6), hl.Param(hl.Int(32), "p", 6)
    return summing(r, [r.x < p], lambda: a[r.x])


def where(low: int, extent: int, size: int, condition: Callable[[hl.RVar], hl.Expr], index: Callable[[hl.RVar], hl.Expr]) -> Callable[[], hl.Func]:
    def make() -> hl.Func:
        r, a = domain((low, extent)), buffer(size)
        return summing(r, [condition(r.x)], lambda: a[index(r.x)])

    return make


def far_and_near() -> hl.Buffer:
    return hl.Buffer(np.resize(np.array([3, -2, 4, 5, 0, 90, -1, 2], np.int32), 24))


def placed(at: hl.Expr) -> hl.Expr:
    return hl.select((at >= 0) & (at < 5), buffer(5)[at], 7)


def data_and_a_constant() -> hl.Func:
    at = far_and_near()[x]
    return choosing((at - 1 >= 1) & (at < 7), buffer(5)[at - 2], 7)


def data_through_a_func(condition: bool) -> Callable[[], hl.Func]:
    """A condition on a Var that becomes one on data when the Func is computed inline; alone, or in a predicate."""
    def make() -> hl.Func:
        g, at = hl.Func("g"), far_and_near()
        g[x] = placed(x + 1)
        if not condition:
            return choosing(x >= 0, g[at[x]], 0)
        r = domain((0, 20))
        return summing(r, [(r.x > 1) & (hl.max(g[at[r.x]], 4) > 4)], lambda: r.x)

    return make


def inside() -> hl.Expr:
    return (x >= 2) & (x < 12)


def odd() -> hl.Expr:
    return buffer(10)[x - 2] % 2 == 1


CASES: dict[str, Callable[[], hl.Func]] = {
    "and": lambda: choosing((x >= 2) & (x <= 11), buffer(10)[x - 2], 7),
    "or, otherwise": lambda: choosing((x < 2) | (x > 11), 7, buffer(10)[x - 2]),
    "nested": lambda: choosing(x < 3, 0, hl.select(x < 13, buffer(10)[x - 3], -1)),
    "equal": lambda: choosing(x == 5, buffer(1)[x - 5], 7),
    "a multiple": lambda: choosing(2 * x < 19, buffer(10)[x], 7),
    "near": lambda: choosing(hl.abs(x - 7) <= 2, buffer(5)[x - 5], 0),
    "not far": lambda: choosing(hl.abs(7 - x) > 2, 0, buffer(5)[x - 5]),
    "through a Func": through_a_func,
    "where a quotient": where(0, 20, 5, lambda r: r // 2 < 5, lambda r: r // 2),
    "where near": where(-20, 40, 5, lambda r: hl.abs(r) < 3, lambda r: r + 2),
    "not all of": lambda: choosing(~(inside() & odd()), 1, 2), "none of": lambda: choosing(~((x < 2) | odd() | (x >= 12)), 1, 2),
    "either": lambda: choosing((x < 2) | ((x >= 12) | odd()), 1, 2), "both, in another": lambda: choosing(~(~(inside() & odd()) & (x > 3)), 1, 2),
    "contradicting": lambda: choosing(x < 2, hl.abs(hl.select((x - 2 >= 0) & (x < 12), buffer(10)[x - 2], 3)), 4),
    "data": lambda: choosing(x >= 0, placed(far_and_near()[x]), 0), "data and a constant": data_and_a_constant,
    "a sum with data": lambda: choosing(x >= 0, placed(far_and_near()[x] - 2), 0),
    "data through a Func": data_through_a_func(False), "where data through a Func": data_through_a_func(True),
    "where, with a Var": where_with_vars, "where of two RVars": where_of_two, "where, with a Param": where_of_a_parameter,
}


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("name", CASES)
def test_no_more_is_read(name: str, width: int) -> None:
    f = CASES[name]()
    if width > 1:
        f.vectorize(x, width)
    size = 8 if name.startswith("where") else 16
    (want,) = algorithm.realize([f.function], (size,))
    np.testing.assert_array_equal(np.asarray(f.realize([size])), want)


@pytest.mark.parametrize("name", ["and", "near", "where near"])
def test_an_element_less_is_too_little(name: str) -> None:
    smaller = {"and": lambda: choosing((x >= 2) & (x <= 11), buffer(9)[x - 2], 7), "near": lambda: choosing(hl.abs(x - 7) <= 2, buffer(4)[x - 5], 0),
               "where near": where(-20, 40, 4, lambda r: hl.abs(r) < 3, lambda r: r + 2)}
    with pytest.raises(hl.HalideError, match="beyond the max"):
        smaller[name]().realize([16])


STEPS: dict[str, Callable[[hl.Expr, int], hl.Expr]] = {
    "conditions on values": lambda e, i: hl.select(e > i, e - i, e + 1),
    "guarded reads": lambda e, i: hl.select((x >= i) & (x < i + 9), buffer(9)[x - i] + e, e),
    "reads where data allows": lambda e, i: hl.select((e >= 0) & (e < 9), buffer(9)[e], e - 7),
    "alternatives": lambda e, i: hl.select((e < 5) | (buffer(10)[hl.clamp(e, 0, 9)] > i), e + 1, e - 2),
}


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("name", STEPS)
def test_a_tree_of_shared_choices(name: str, width: int) -> None:
    """2^40 nodes as a tree, some hundred as they are: each is looked at, and written in C, once."""
    def built(depth: int) -> hl.Func:
        f, e = hl.Func("f"), hl.Expr(x)
        for i in range(depth):
            e = STEPS[name](e, i)
        f[x] = e
        return f.vectorize(x, width) if width > 1 else f

    small = built(8)
    np.testing.assert_array_equal(np.asarray(small.realize([16])), algorithm.realize([small.function], (16,))[0])
    assert np.asarray(built(40).realize([16])).shape == (16,)


@pytest.mark.parametrize("place", [lambda x, y: hl.clamp(x - 1, 0, 4), lambda x, y: hl.likely(x) * 2 - 3], ids=["clamped", "likely"])
def test_marks_of_what_is_likely_do_not_hide_what_a_condition_says(place: Callable[[hl.Var, hl.Var], hl.Expr]) -> None:
    """Of a coordinate behind a boundary condition, too: the condition and the place it guards are marked differently."""
    x, y, f, g = hl.Var("x"), hl.Var("y"), hl.Func("f"), hl.Func("g")
    values = np.arange(1, 6, dtype=np.int32)
    image = hl.ImageParam(hl.Int(32), 1, "image")
    image.set(hl.Buffer(values))
    f[x] = hl.select((x - 1 >= 0) & (x - 1 < 5) & (image[x - 1] > 2), image[x - 1], -1)
    g[x, y] = f[place(x, y)]
    at = np.array([[hl.evaluate(place(hl.Expr(i), hl.Expr(j))) for i in range(6)] for j in range(6)], int) - 1
    inside = (at >= 0) & (at < 5) & (values[at.clip(0, 4)] > 2)
    np.testing.assert_array_equal(np.asarray(g.realize([6, 6])), np.where(inside, values[at.clip(0, 4)], -1))
