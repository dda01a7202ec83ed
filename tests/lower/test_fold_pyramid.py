"""Storage of an upsampled chain folds along the loop of its output, though what is new differs from the first row to the next ones."""

from __future__ import annotations

import numpy as np

import halide_py as hl

x, y, yo = hl.Var("x"), hl.Var("y"), hl.Var("yo")


def upsampled(f: hl.Func, name: str) -> hl.Func:
    g = hl.Func(name)
    g[x, y] = f[x, y // 2] + f[x, y // 2 + 1] * (y % 2 + 1)
    return g


def pyramid(folded: bool) -> hl.Func:
    image = hl.Buffer(np.random.default_rng(0).integers(0, 9, (40, 8)).astype(np.int32))
    coarse, middle, fine = (hl.Func(name) for name in ("coarse", "middle", "fine"))
    coarse[x, y] = hl.BoundaryConditions.repeat_edge(image)[x, y] + 1
    middle[x, y] = upsampled(coarse, "up_middle")[x, y] + y
    fine[x, y] = upsampled(middle, "up_fine")[x, y] - x
    if folded:
        fine.split(y, yo, y, 16)
        for f in (coarse, middle):
            f.store_at(fine, yo).compute_at(fine, y).fold_storage(y, 4)
    return fine


def test_upsampled_chains_fold() -> None:
    np.testing.assert_array_equal(np.array(pyramid(True).realize([8, 64])), np.array(pyramid(False).realize([8, 64])))
