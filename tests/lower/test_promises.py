"""`check_unsafe_promises`: what `unsafe_promise_clamped` promises is asked for at run time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl

x = hl.Var("x")
CHECKED = hl.get_jit_target_from_environment().with_feature(hl.TargetFeature.CheckUnsafePromises)
DATA = (np.arange(100) * 20).astype(np.uint16)
TABLE = np.arange(1024, dtype=np.float32)


def looked_up() -> hl.Func:
    f = hl.Func("f")
    f[x] = hl.Buffer(TABLE)[hl.unsafe_promise_clamped(hl.Buffer(DATA)[x], 0, 1023)]
    return f


def vectors() -> hl.Func:
    return looked_up().vectorize(x, 8)


def open_below() -> hl.Func:
    f = hl.Func("f")
    f[x] = hl.f32(hl.unsafe_promise_clamped(hl.i32(hl.Buffer(DATA)[x]), hl.Expr(), 1023))
    return f


@pytest.mark.parametrize("make, fits", [(looked_up, 52), (vectors, 52), (open_below, 52)])
def test_broken_promises_are_told(make: Callable[[], hl.Func], fits: int) -> None:
    np.testing.assert_array_equal(np.asarray(make().realize([fits], CHECKED)), DATA[:fits])
    with pytest.raises(hl.PipelineError, match=r"Requirement Failed: .*<= .*1023.* from unsafe_promise_clamped, of 1040"):
        make().realize([100], CHECKED)
    assert make().realize([52]) is not None


def test_promises_of_updates_and_their_domains() -> None:
    f, count = hl.Func("f"), hl.Param(hl.Int(32), "count")
    r = hl.RDom([(0, hl.unsafe_promise_clamped(count, 0, 10))])
    f[x] = 0
    f[hl.unsafe_promise_clamped(r.x, 0, 5)] += 1
    count.set(6)
    assert np.asarray(f.realize([8], CHECKED)).tolist() == [1] * 6 + [0] * 2
    count.set(7)
    with pytest.raises(hl.PipelineError, match="<= 5"):
        f.realize([8], CHECKED)
    count.set(11)
    with pytest.raises(hl.PipelineError, match="<= 10"):
        f.realize([8], CHECKED)


def test_promises_that_cannot_be_checked_are_told() -> None:
    f, image = hl.Func("f"), hl.ImageParam(hl.Int(32), 1, "image")
    f[x] = 0
    f[x] += hl.RDom([(0, hl.unsafe_promise_clamped(image[0], 0, 10))]).x
    with pytest.raises(hl.HalideError, match=r"bounds of a reduction domain that read image\S* cannot be checked"):
        f.compile_jit(CHECKED)


def test_requirements_do_not_read_images() -> None:
    f, image = hl.Func("f"), hl.ImageParam(hl.Int(32), 1, "image")
    f[x] = image[x]
    with pytest.raises(hl.HalideError, match=r"must not depend on .* but this one uses image\S*; ask"):
        hl.Pipeline([f]).add_requirement(image[1] > 3)


def test_requirements_may_promise() -> None:
    f, p = hl.Func("f"), hl.Param(hl.Int(32), "p")
    f[x] = x
    out = hl.Pipeline([f])
    out.add_requirement(hl.unsafe_promise_clamped(p, 0, 5) < 6)
    p.set(3)
    out.realize([4], CHECKED)
    p.set(9)
    with pytest.raises(hl.PipelineError, match="<= 5"):
        out.realize([4], CHECKED)
