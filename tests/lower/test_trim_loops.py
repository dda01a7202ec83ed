"""Trimmed loops do what guarded ones do, with one copy of the body."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import PARALLEL, add, load, loop, loops, lt, mul, run, store, sub, var  # noqa: E402

from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.printer import to_text  # noqa: E402
from halide_py.lower.trim_loops import trim_loops  # noqa: E402

SIZES = {"a": 128, "c": 128}
columns = loop("x", 3, store("a", add(mul("y", 3), "x"), add("y", load("c", "x"))))


def rows(condition: n.Expr, body: n.Stmt = columns, kind: n.ForType = n.ForType.Serial, low: int = 0) -> n.Stmt:
    return loop("y", 8, n.IfThenElse(b.likely(condition), body), kind, low=low)


TRIMMED = {
    "tail": rows(lt(add("y", mul(4, "t")), "n")),
    "inclusive": rows(n.LE(var("y"), sub("n", "t"))),
    "from two": rows(lt("y", "n"), low=2),
    "both": rows(n.And(lt("y", "n"), n.LE(add("y", "t"), mul("t", 3)))),
    "one of two": rows(n.And(lt("y", "n"), n.NE(var("t"), b.i32(1)))),
}
KEPT = {
    "from below": rows(lt("n", "y")),
    "twice": rows(lt(mul("y", 2), "n")),
    "data": rows(lt("y", load("c", 0))),
    "product": rows(lt(add("y", mul("y", "t")), "n")),
    "innermost": rows(lt("y", "n"), store("a", "y", 1)),
    "parallel": rows(lt("y", "n"), kind=PARALLEL),
    "else": loop("y", 8, n.IfThenElse(lt("y", "n"), columns, store("a", "y", 7))),
    "never": n.For("y", b.i32(0), b.i32(8), n.ForType.Serial, n.Partition.Never, n.IfThenElse(lt("y", "n"), columns)),
}


@pytest.mark.parametrize("name", TRIMMED)
@pytest.mark.parametrize("size", [-1, 0, 1, 5, 8, 20])
@pytest.mark.parametrize("t", [0, 1, 2])
def test_means_the_same(name: str, size: int, t: int) -> None:
    after = trim_loops(TRIMMED[name])
    outer = loops(after)[0]
    assert to_text(outer.extent) != "8" and (name == "one of two" or not after.mask & n.IfThenElse.bit)
    assert run(after, SIZES, n=size, t=t) == run(TRIMMED[name], SIZES, n=size, t=t)


@pytest.mark.parametrize("name", KEPT)
def test_other_guards_stay(name: str) -> None:
    assert trim_loops(KEPT[name]) is KEPT[name]
