"""What values an update can leave, and what many updates read: bounds by induction, boxes united once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")


def test_the_place_of_an_argmax_is_an_index() -> None:
    """It stays inside its RDom, whatever the data: no clamp is needed. A sum of indices does not, and is refused."""
    image = np.random.default_rng(1).integers(0, 99, (4, 7)).astype(np.int32)
    photo, best, total = hl.Buffer(image), hl.Func("best"), hl.Func("total")
    r = hl.RDom([(0, 7)])
    best[y] = photo[hl.argmax(photo[r.x, y])[0], y] - photo[hl.argmin(photo[r.x, y])[0], y]
    np.testing.assert_array_equal(np.array(best.realize([4])), image.max(1) - image.min(1))
    total[y] = photo[hl.sum(r.x), y]
    with pytest.raises(hl.HalideError, match="unbounded way in dimension 0"):
        total.realize([4])


def test_updates_cost_no_more_than_their_number(effort: Callable[[Callable[[], object]], int], tmp_path: Path) -> None:
    """What they read is united once a stage: 300 of them took half a minute when it was united pair by pair."""

    def updated(count: int) -> hl.Func:
        f, r = hl.Func("f"), hl.RDom([(0, 5)])
        f[x] = x
        for k in range(count):
            f[r.x] = f[r.x] * 3 + f[(r.x + k) % 5]
        return f

    def lower(count: int) -> None:
        updated(count).compile_to_lowered_stmt(str(tmp_path / "f.stmt"), [])

    lower(10)
    assert effort(lambda: lower(60)) < 4 * effort(lambda: lower(30))  # distinct ends of every stage before: quadratic, and little of it
    wanted = np.arange(5)
    for k in range(20):
        for i in range(5):
            wanted[i] = (wanted[i] * 3 + wanted[(i + k) % 5]) & 0xffffffff
    np.testing.assert_array_equal(np.array(updated(20).realize([5])), wanted.astype(np.uint32).view(np.int32))


def test_regions_of_updates_are_those_of_the_last(effort: Callable[[Callable[[], object]], int], tmp_path: Path) -> None:
    """Each needs what all later ones do: 60 of them took half a minute, their regions being united one by one."""

    def updated(count: int) -> hl.Func:
        f = hl.Func("f")
        f[x] = hl.u32(x)
        for k in range(count):
            f[x] = f[x] * 3 + k
        return f

    def lower(count: int) -> None:
        updated(count).compile_to_lowered_stmt(str(tmp_path / "f.stmt"), [])

    lower(10)
    assert effort(lambda: lower(80)) < 3 * effort(lambda: lower(40))
    wanted = np.arange(5, dtype=np.uint32)
    for k in range(20):
        wanted = wanted * 3 + k
    np.testing.assert_array_equal(np.array(updated(20).realize([5])), wanted)


def test_an_element_of_an_input_moves_what_is_read() -> None:
    """`im[x + offset[1]]`: the region is where the offset says; it is read before the region is checked, so it is checked first itself."""
    image, offset, p = hl.ImageParam(hl.Int(32), 1, "image"), hl.ImageParam(hl.Int(32), 1, "offset"), hl.Param(hl.Int(32), "p", 1)
    double, cropped = hl.Func("double"), hl.Func("cropped")
    double[x] = image[x] * 2
    cropped[x] = double[x % 4 + offset[p]] + image[hl.clamp(image[x], 0, offset[p])]
    double.compute_root()
    data = np.arange(20, dtype=np.int32)
    image.set(hl.Buffer(data))
    offset.set(hl.Buffer(np.array([3, 7], np.int32)))
    for k, start in ((1, 7), (0, 3)):
        p.set(k)
        at = np.arange(9)
        np.testing.assert_array_equal(np.array(cropped.realize([9])), 2 * (at % 4 + start) + np.minimum(at, start))
    p.set(2)
    with pytest.raises(hl.HalideError, match=r"Input buffer offset is accessed at 2, which is beyond the max \(1\) in dimension 0"):
        cropped.realize([9])
    p.set(1)
    offset.set(hl.Buffer(np.array([3, 17], np.int32)))
    with pytest.raises(hl.HalideError, match=r"Input buffer image is accessed at 20, which is beyond the max \(19\) in dimension 0"):
        cropped.realize([9])


def test_indices_with_bits_kept_set_and_flipped() -> None:
    """What a constant mask does to an index moves it by a constant at most: no clamp is needed."""
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = x * 3
    g[x] = f[x ^ 5] + 100 * f[x & -4] + 10000 * f[x | 2] + 1000000 * f[~x]
    f.compute_root()
    at = np.arange(13)
    np.testing.assert_array_equal(np.array(g.realize([13])), 3 * ((at ^ 5) + 100 * (at & -4) + 10000 * (at | 2) + 1000000 * ~at))
