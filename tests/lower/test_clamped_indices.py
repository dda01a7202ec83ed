"""Clamps written by hand are boundary conditions: loops split into a steady state without them; lookups stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower

x, y = hl.Var("x"), hl.Var("y")
DATA = np.random.default_rng(2).integers(0, 99, (9, 40)).astype(np.int32)


def loads(out: hl.Func, name: str) -> list[n.Load]:
    body = lower([out.function], out.pipeline()._arguments(), "out", Target.host()).body
    return [e for e in nodes_of(body, n.Load) if e.name == name]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("coordinate", ["hl.clamp(x - 1, 0, im.width() - 1)", "hl.min(hl.max(x - 1, 0), im.width() - 1)", "hl.clamp(2 * x, 1, 38) - 1"])
def test_the_steady_state_reads_without_the_clamp(coordinate: str, lanes: int) -> None:
    im, out = hl.ImageParam(hl.Int(32), 2, "im"), hl.Func("out")
    out[x, y] = im[eval(coordinate, {"hl": hl, "im": im, "x": x}), y]
    if lanes > 1:
        out.vectorize(x, lanes)
    assert any(not e.index.mask & (n.Min.bit | n.Max.bit) for e in loads(out, im.name()))
    im.set(hl.Buffer(DATA))
    i, j = np.arange(60), np.arange(9)
    columns = np.clip(2 * i, 1, 38) - 1 if "2" in coordinate else np.clip(i - 1, 0, 39)
    np.testing.assert_array_equal(np.array(out.realize([60, 9])), DATA[np.ix_(j, columns)])


def test_lookups_are_left_alone() -> None:
    im, table, out = hl.ImageParam(hl.Int(32), 1, "im"), hl.ImageParam(hl.Int(32), 1, "table"), hl.Func("out")
    out[x] = table[hl.clamp(im[x], 0, 38)]
    (one,) = loads(out, table.name())
    im.set(hl.Buffer(DATA[0]))
    table.set(hl.Buffer(DATA[1]))
    np.testing.assert_array_equal(np.array(out.realize([40])), DATA[1][np.clip(DATA[0], 0, 38)])
