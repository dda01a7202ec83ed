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
