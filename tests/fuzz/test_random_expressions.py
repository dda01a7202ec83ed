"""Random expressions over all types at all vector widths, against the interpreter; HL_TEST_ALL=1 tries many more, `make fuzz` for as long as you like."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import expressions  # noqa: E402

import halide_py as hl  # noqa: E402

SEEDS = 400 if os.environ.get("HL_TEST_ALL", "0") != "0" else 6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_compiled_is_as_interpreted(seed: int) -> None:
    script = expressions.draw(seed)
    wrong = expressions.failure(script)
    assert not wrong, f"{wrong}\n{expressions.minimal(script, steps=60).text()}"


def test_scripts_stand_alone_and_shrink() -> None:
    """What a failure prints can be run; the smallest failing part is found."""
    script = expressions.draw(3)
    names: dict[str, object] = {}
    exec(script.text(), names)
    wanted = expressions.build(script).realize([expressions.SIZE])
    for got, want in zip(names["f"].realize([expressions.SIZE]), wanted, strict=True):  # type: ignore[attr-defined]
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    leaf, other = expressions.Tree("u8", "u8_in[x + 1]"), expressions.Tree("u8", "u8_in[x + 2]")
    product = expressions.Tree("u8", "({0} * {1})", (leaf, other))
    tree = expressions.Tree("i32", "hl.i32({0})", (expressions.Tree("u8", "hl.max({0}, {1})", (expressions.Tree("u8", "(~{0})", (product,)), leaf)),))
    small = expressions.minimal(expressions.Script((tree,), ("",), (False,), 8, 0), lambda s: "bad" if "*" in s.text() else "")
    assert small.width == 1 and small.value(0) == "hl.i32((u8_in[x + 1] * u8_in[x + 2]))"
    assert isinstance(expressions.build(small), hl.Func)
