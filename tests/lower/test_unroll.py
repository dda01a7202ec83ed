"""Unrolled loops do what the same loops do one iteration at a time, and bind every name once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import UNROLLED, add, chain, kinds, load, loop, mul, names_bound_once, run, serial, store  # noqa: E402

from halide_py.errors import CompileError  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.printer import to_text  # noqa: E402
from halide_py.lower.constant_extents import constant_extents  # noqa: E402
from halide_py.lower.unroll import unroll  # noqa: E402

SIZES = {"a": 64, "c": 64}
LETS = n.LetStmt("i", add("k", 2), n.LetStmt("v", load("c", "i"), store("a", "i", mul("v", "v"))))
CASES = {
    "plain": loop("k", 3, store("a", "k", mul("k", 5)), UNROLLED, low=4),
    "lets": loop("k", 3, LETS, UNROLLED),
    "nested": loop("j", 2, loop("k", 2, n.LetStmt("i", add(mul("j", 8), "k"), store("a", "i", add("i", "j"))), UNROLLED), UNROLLED),
    "a loop inside": loop("k", 3, loop("x", add("k", 1), store("a", add(mul("k", 8), "x"), "x")), UNROLLED),
    "order kept": loop("k", 4, store("a", 0, add(mul(load("a", 0), 3), "k")), UNROLLED),
    "implied bound": loop("w", 5, loop("k", n.Min(n.Variable(b.i32(0).type, "w"), b.i32(3)), store("a", add(mul("w", 4), "k"), "k"), UNROLLED)),
}


@pytest.mark.parametrize("name", CASES)
def test_means_the_same(name: str) -> None:
    after = unroll(constant_extents(CASES[name]))
    assert "Unrolled" not in kinds(after) and names_bound_once(after)
    assert run(after, SIZES) == run(serial(CASES[name]), SIZES)


def test_text() -> None:
    assert to_text(unroll(chain(loop("k", 2, LETS, UNROLLED)))).split("\n")[:3] == ["let i.0 = 0 + 2", "let v.0 = (int32)c[i.0]", "a[i.0] = v.0*v.0"]


def test_unknown_extent_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"Loop f\.s0\.c is unrolled, but its extent channels is not a constant"):
        unroll(loop("f.s0.c", "channels", store("a", "f.s0.c", 1), UNROLLED))
