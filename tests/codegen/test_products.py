"""Products of narrow numbers in wide lanes: the instructions for halfwords give what full products do."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from c_texts import TARGET  # noqa: E402

import halide_py as hl  # noqa: E402

x = hl.Var("x")
EXTREMES = {"uint8": [0, 1, 127, 128, 255], "int8": [-128, -1, 0, 1, 127], "int16": [-32768, -129, 0, 255, 32767], "uint16": [0, 255, 32767, 32768, 65535]}


@pytest.mark.parametrize("lanes", [4, 8, 32])
@pytest.mark.parametrize("t", [hl.Int(32), hl.UInt(32)])
def test_all_extremes_of_narrow_types(t: hl.Type, lanes: int) -> None:
    """Alone, and added to something near the ends of the type, where sums wrap."""
    start = np.resize(np.array([0, 2**31 - 1, -2**31, -7], np.int64), 32).astype(np.uint32).view(np.int32)
    funcs, expected = [], []
    for a, c in itertools.combinations_with_replacement(EXTREMES, 2):
        pairs = np.array(list(itertools.product(EXTREMES[a], EXTREMES[c])) * 2)[:32]
        p, q, s = hl.Buffer(pairs[:, 0].astype(a)), hl.Buffer(pairs[:, 1].astype(c)), hl.Buffer(start)
        f, g = hl.Func("f"), hl.Func("g")
        f[x] = hl.cast(t, p[x]) * hl.cast(t, q[x])
        g[x] = hl.cast(t, s[x]) + hl.cast(t, p[x]) * hl.cast(t, q[x]) + hl.cast(t, q[x]) * 3
        product = pairs[:, 0].astype(np.int64) * pairs[:, 1]
        funcs += [f.vectorize(x, lanes), g.vectorize(x, lanes)]
        expected += [product, start + product + 3 * pairs[:, 1]]
    for got, wanted in zip(hl.Pipeline(funcs).realize([32]), expected):
        np.testing.assert_array_equal(np.array(got).astype(np.uint32), wanted.astype(np.uint32))


def test_which_products_take_the_instruction(tmp_path: Path) -> None:
    if hl.get_host_target().arch != hl.Target(TARGET).arch:
        pytest.skip("the compiler makes code for another kind of machine")

    def takes(first: hl.Type, second: hl.Type) -> bool:
        p, q, f = hl.ImageParam(first, 1), hl.ImageParam(second, 1), hl.Func("f")
        f[x] = hl.i32(p[x]) * hl.i32(q[x])
        f.vectorize(x, 8)
        f.compile_to_assembly(str(tmp_path / "f.s"), [p, q], "f", hl.Target(TARGET))
        return "vpmaddwd" in (tmp_path / "f.s").read_text()

    assert takes(hl.UInt(8), hl.UInt(8)) and takes(hl.UInt(8), hl.Int(16))
    assert not takes(hl.Int(8), hl.Int(8)) and not takes(hl.UInt(8), hl.UInt(16))
