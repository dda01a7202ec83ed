"""Updates that read values they have written themselves: their adjoints run the loop backwards over a tape."""

from __future__ import annotations

from typing import Any

import numpy as np
from gradient_checks import check, total

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
rng = np.random.default_rng(3)


def func(name: str, *definition: Any) -> hl.Func:
    """A Func defined at once."""
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f



def test_prefix_sum() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 5)])
        s = func("s", x, a[x])
        s[r] += s[r - 1]
        return total(func("q", x, s[x] * s[x]), 6)

    d = check(build, rng.normal(size=6), compiled=True)
    assert len(d.notes) == 1 and "update 0 of Func s" in d.notes[0] and "5 iterations" in d.notes[0]


def test_running_product() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 5)])
        f = func("f", x, hl.f64(1))
        f[x] *= a[r.x] + a[x]
        return total(f, 3)

    check(build, rng.normal(size=5), compiled=True)


def test_nonlinear_recursion() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 3)])
        f = func("f", x, y, hl.f64(0))
        f[x, 0] = a[x]
        f[x, r + 1] = f[x, r] * f[x, r] + a[r] * f[x, 0]
        return total(f, 3, 4)

    check(build, rng.normal(size=3) * 0.5, compiled=True)


def test_recursion_in_place() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 6)])
        f = func("f", x, a[x])
        f[x] = hl.sin(f[x]) * a[r.x] + f[x] / 2
        return total(f, 3)

    check(build, rng.normal(size=6))


def test_horner() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 4)])
        poly = func("poly", x, y, hl.f64(0))
        poly[x, 3 - r] = poly[x, 4 - r] * (hl.f64(x) / 5) + a[r]
        return total(func("p0", x, poly[x, 0]), 6)

    check(build, rng.normal(size=4))


def test_recursion_over_two_dimensions_with_a_predicate() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 3), (1, 3)])
        r.where(r.x + r.y < 6)
        f = func("f", x, y, a[x, y])
        f[r.x, r.y] += f[r.x - 1, r.y] * f[r.x, r.y - 1]
        return total(f, 4, 4)

    check(build, rng.normal(size=(4, 4)))


def test_reversal_in_place() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(0, 5)])
        f = func("f", x, a[x])
        f[r] = f[4 - r]
        return total(f, 5)

    check(build, rng.normal(size=5))


def test_recursion_of_pairs() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 4)])
        f = hl.Func("f")
        f[x] = (a[x], a[x + 1] * 2)
        f[r] = (f[r - 1][0] * f[r][1], f[r - 1][0] + hl.sin(f[r][0]))
        return total(func("g", x, f[x][0] * f[x][1]), 5)

    check(build, rng.normal(size=6), compiled=True)


def test_a_place_that_depends_on_values_written() -> None:
    def build(a: Any) -> hl.Func:
        r = hl.RDom([(1, 4)])
        f = func("f", x, a[x])
        f[r] = f[hl.clamp(hl.i32(f[r - 1] * 2), 0, 4)] * a[r]
        return total(f, 5)

    check(build, np.array([0.7, 1.3, -0.4, 2.1, 0.2]))


def test_a_recursion_over_one_of_the_dimensions_of_an_input() -> None:
    """The adjoints of boundary conditions have the implicit dimensions _0 and _1; here _1 stays and _0 becomes places on the tape."""
    def build(a: Any) -> hl.Func:
        edge = hl.BoundaryConditions.repeat_image(a, [(0, 3), (0, 3)])
        r = hl.RDom([(1, 2)])
        f = hl.Func("f")
        f[hl._0, hl._1] = edge[hl._0, hl._1] * edge[hl._0, hl._1]
        f[r, hl._1] = f[r - 1, hl._1] * f[r, hl._1]
        return total(f, 3, 3)

    check(build, rng.normal(size=(3, 3)))


def test_a_running_product_beside_what_it_is_made_of() -> None:
    """Compositing along rays: the tape's places are remainders, and what is at the last of them is not in the input."""
    density, S = np.random.default_rng(5).uniform(0.1, 1.5, size=5), 5
    b, through, r, s, loss = hl.Buffer(density), hl.Func("through"), hl.RDom([(1, S)]), hl.RDom([(0, S)]), hl.Func("loss")
    through[x] = hl.f64(1)
    through[r] = through[r - 1] * hl.exp(-b[r - 1])
    loss[()] = hl.f64(0)
    loss[()] += through[s] * b[s]
    t = np.exp(-np.concatenate([[0], np.cumsum(density)[:-1]]))
    expected = t - np.array([(t * density)[i + 1:].sum() for i in range(S)])
    np.testing.assert_allclose(np.array(hl.propagate_adjoints(loss)[b].realize([S])), expected, rtol=1e-12)
