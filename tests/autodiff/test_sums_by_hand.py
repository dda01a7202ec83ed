"""Sums that autodiff puts into Funcs of their own: who schedules the updates of a derivative by hand gets them, as in Halide."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl

x, y, xo, xi = hl.vars("x y xo xi")
IMAGE = np.random.default_rng(1).random((70, 80), dtype=np.float32)


def gradient() -> tuple[hl.Func, np.ndarray]:
    """The derivative of sum(conv^2) for 3x3 weights behind a Func, and its values."""
    weights = hl.Buffer(np.arange(9, dtype=np.float32).reshape(3, 3))
    image, fw, conv, loss = hl.Buffer(IMAGE), hl.Func("fw"), hl.Func("conv"), hl.Func("loss")
    r, s = hl.RDom([(0, 3), (0, 3)]), hl.RDom([(0, 78), (0, 68)])
    fw[x, y] = weights[x, y]
    conv[x, y] += image[x + r.x, y + r.y] * fw[r.x, r.y]
    loss[()] += conv[s.x, s.y] * conv[s.x, s.y]
    w, wide = np.arange(9.0).reshape(3, 3), IMAGE.astype(np.float64)
    out = sum(wide[j:j + 68, i:i + 78] * w[j, i] for j in range(3) for i in range(3))
    return hl.propagate_adjoints(loss)[fw], np.array([[2 * (wide[j:j + 68, i:i + 78] * out).sum() for i in range(3)] for j in range(3)])


@pytest.mark.parametrize("how", ["as it is", "update", "wrapper"])
def test_values(how: str) -> None:
    d, want = gradient()
    assert d.num_update_definitions() == 0  # it reads a Func that adds up
    out = d
    if how != "as it is":
        out = hl.Func("out")
        out[x, y] = d[x, y]
        out.bound(x, 0, 3).bound(y, 0, 3)
        where = d.in_(out) if how == "wrapper" else out
        where.compute_root()
        d.compute_at(where, where.args()[1]).vectorize(d.args()[0], 4)
        assert len(d.rvars(0)) == 2
        d.update().reorder([*d.args(), *d.rvars(0)]).unroll(d.rvars(0)[0], 2)
        assert d.num_update_definitions() == 1
    np.testing.assert_allclose(np.array(out.realize([3, 3])), want, rtol=1e-4)


def test_updates_beside_sums_are_not_added_twice() -> None:
    """Asked for its updates, an adjoint that has some already, besides a Func that adds up, is defined anew with all of them."""
    weights = np.random.default_rng(1).normal(size=(64, 5))
    q, i, j = hl.ImageParam(hl.Float(64), 1, "q"), hl.Var("i"), hl.Var("j")
    q.set(hl.Buffer(np.arange(5.0)))
    f, loss, r, read = hl.Func("f"), hl.Func("loss"), hl.RDom([(0, 5), (0, 64)]), hl.Func("read")
    f[i, j] = q[i] * hl.Buffer(weights)[i, j]
    f[3, j] += q[2]
    loss[()] = hl.f64(0)
    loss[()] += f[r.x, r.y] * (1 + r.x)
    d = hl.propagate_adjoints(loss)[q]
    assert d.num_update_definitions() == 1
    d.compute_root().update(0).unscheduled()
    read[i] = d[i]
    want = weights.sum(0) * np.arange(1, 6) + np.array([0, 0, 4 * 64, 0, 0])
    np.testing.assert_allclose(np.array(read.realize([5])), want, rtol=1e-12)
