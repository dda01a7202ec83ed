"""Partitioned loops do what whole loops do, and their steady state has no boundary code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import (  # noqa: E402
    PARALLEL,
    VECTOR,
    add,
    chain,
    likely_clamp,
    load,
    loop,
    loops,
    lt,
    mul,
    names_bound_once,
    run,
    serial,
    store,
    sub,
    var,
)

from halide_py.errors import CompileError  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.printer import to_text  # noqa: E402
from halide_py.ir.simplify import simplify  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402
from halide_py.lower.partition_loops import partition_loops  # noqa: E402
from halide_py.lower.vectorize import vectorize  # noqa: E402

SIZES = {"a": 128, "c": 128}
WIDTHS = (0, 1, 2, 7, 8, 9, 30)


def stencil(kind: n.ForType = n.ForType.Serial, partition: n.Partition = n.Partition.Auto) -> n.Stmt:
    """a[x] = c[x - 1] + c[x + 2], clamped to c's first `w` elements (at least one)."""
    top = sub("w", 1)
    value = add(load("c", likely_clamp(sub("x", 1), 0, top)), load("c", likely_clamp(add("x", 2), 0, top)))
    return loop("x", "n", store("a", "x", value), kind, partition=partition)


def marked(e: n.Expr) -> n.Expr:
    return b.likely(e)


def rows(body: n.Stmt, kind: n.ForType = n.ForType.Serial) -> n.Stmt:
    return loop("y", 4, body, kind)


def if_innermost(e: n.Expr) -> n.Expr:
    return n.Call(e.type, "likely_if_innermost", (e,), n.CallType.PureIntrinsic)


def shifted(read: n.Expr) -> n.Stmt:
    """A ShiftInwards split, vectorized, that reads c[read]."""
    base = n.Min(if_innermost(mul("xo", 8)), sub("n", 8))
    inner = loop("xi", 8, store("a", add("base", "xi"), load("c", read)), VECTOR)
    return vectorize(loop("xo", b.div(add("n", 7), b.i32(8)), n.LetStmt("base", base, inner)))


reads_row = load("c", likely_clamp(add("y", "k"), 1, 3))
CASES: dict[str, n.Stmt] = {
    "stencil": stencil(),
    "parallel stencil": stencil(PARALLEL),
    "guard": loop("x", "n", n.IfThenElse(marked(lt(mul("x", 3), "w")), store("a", "x", load("c", mul("x", 3))))),
    "guard from below": loop("x", "n", n.IfThenElse(marked(n.GE(var("x"), var("w"))), store("a", "x", 5), store("a", "x", 6))),
    "guard by two": loop("x", "n", n.IfThenElse(marked(n.And(lt(2, "x"), lt("x", "w"))), store("a", "x", 5), store("a", "x", 6))),
    "falling": loop("x", "n", store("a", "x", load("c", likely_clamp(sub(40, mul("x", 2)), 0, "w")))),
    "select": loop("x", "n", store("a", "x", n.Select(lt("x", "w"), marked(load("c", "x")), b.i32(7)))),
    "select the other way": loop("x", "n", store("a", "x", n.Select(n.Or(lt("x", 3), lt("w", "x")), b.i32(7), marked(load("c", "x"))))),
    "inner loop": loop("y", "n", loop("k", 3, store("a", add(mul("y", 3), "k"), reads_row))),
    "rows and columns": rows(n.IfThenElse(marked(lt(0, "y")), loop("x", "n", store("a", add(mul("y", 30), "x"), load("c", likely_clamp(sub("x", 2), 0, "w")))),
                                          loop("z", "n", store("a", "z", load("c", likely_clamp(sub("z", 2), 0, "w")))))),
    "triangle": loop("y", "n", loop("x", "n", n.IfThenElse(marked(lt("x", "y")), store("a", add("x", "y"), mul("x", "y"))))),
    "lets": loop("x", "n", n.LetStmt("i", likely_clamp(sub("x", 3), 0, "w"), n.LetStmt("v", load("c", "i"), store("a", "x", add("v", "i"))))),
    "first iteration": rows(n.LetStmt("start", n.Select(marked(lt(0, "y")), add("y", 2), var("y")),
                                      loop("k", sub(add("y", 3), "start"), store("a", "k", add("y", "k")), low="start"))),
    "first rows": rows(loop("x", "n", n.LetStmt("start", n.Select(marked(lt(0, "y")), add("y", 2), var("y")),
                                                n.LetStmt("rows", sub(add("y", 3), "start"), loop("k", "rows", store("a", add("k", "x"), "y"), low="start"))))),
    "tail of vectors": vectorize(loop("xo", b.div(add("n", 7), b.i32(8)), n.LetStmt("base", mul("xo", 8), loop(
        "xi", 8, n.IfThenElse(marked(lt(add("base", "xi"), "n")), store("a", add("base", "xi"), load("c", add("base", "xi")))), VECTOR)))),
    "vectors around a loop": vectorize(loop("xo", "n", loop("r", 2, loop("xi", 8, store("a", add(mul("xo", 4), "xi"), add("r", load(
        "c", likely_clamp(sub(add(mul("xo", 4), "xi"), 3), 0, "w")))), VECTOR)))),
    "shifted vectors in tiles": vectorize(loop("t", b.div(add("n", 7), b.i32(8)), n.LetStmt("base", n.Min(if_innermost(mul("t", 8)), sub("n", 8)), loop(
        "k", 2, loop("xi", 4, store("a", add(add("base", "xi"), mul("k", 4)), load("c", likely_clamp(sub(add(add("base", "xi"), mul("k", 4)), 3), 0, sub("w", 1)))),
                     VECTOR))))),
    "shifted vectors": shifted(likely_clamp(sub(add("base", "xi"), 3), 0, sub("w", 1))),
    "shifted vectors alone": shifted(add("base", add("xi", "w"))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("w", WIDTHS)
@pytest.mark.parametrize("size", [8, 1, 29])
def test_means_the_same(name: str, w: int, size: int) -> None:
    if "shifted vectors" in name and size < 8 or "clamp" in name and w == 0:
        pytest.skip("no such loop")
    if name in ("stencil", "parallel stencil", "shifted vectors", "shifted vectors in tiles"):
        w = max(w, 1)
    after = partition_loops(CASES[name])
    assert after is not CASES[name], "not split"
    assert names_bound_once(after)
    assert run(after, SIZES, n=size, w=w) == run(serial(CASES[name]), SIZES, n=size, w=w)


@pytest.mark.parametrize("name", ["stencil", "guard", "first iteration", "tail of vectors", "rows and columns", "shifted vectors alone"])
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(to_text(partition_loops(CASES[name])), "partition_" + name.replace(" ", "_"))


def steady(s: n.Stmt, name: str) -> n.For:
    (found,) = [f for f in loops(s) if f.name == name]
    return found


@pytest.mark.parametrize("name,variable", [("stencil", "x"), ("falling", "x"), ("shifted vectors", "xo"), ("shifted vectors alone", "xo"), ("lets", "x")])
def test_steady_state_has_no_boundary_code(name: str, variable: str) -> None:
    assert not steady(partition_loops(CASES[name]), variable).body.mask & (n.Min.bit | n.Max.bit | n.IfThenElse.bit)


def test_tiles_moved_inwards_are_split_too() -> None:
    """min(8 t, n - 8) has its limits: from below both sides must satisfy them, from above one of them. The other copy is split again inside."""
    after = partition_loops(CASES["shifted vectors in tiles"])
    (tiles,) = [f for f in loops(after) if f.name == "t"]
    assert isinstance(tiles.body, n.IfThenElse) and not tiles.body.then_case.mask & n.Max.bit
    assert any(f.name.startswith("k") and f.name.endswith("prologue") for f in loops(after))


def test_the_tightest_limit_is_enough() -> None:
    (first, _, _) = loops(partition_loops(CASES["stencil"]))
    assert to_text(partition_loops(CASES["stencil"])).split("\n")[0] == "let x.steady = min(1, n)" and first.name == "x.prologue"


def test_loop_invariant_boundaries_stay() -> None:
    s = rows(loop("x", "n", store("a", "x", load("c", likely_clamp("y", 0, "w")))))
    assert partition_loops(s) is s


def test_shifts_alone_copy_nothing() -> None:
    """The steady state and the iterations moved inwards go through one loop, which has no minimum."""
    parts, inner = loops(partition_loops(CASES["shifted vectors alone"]))
    assert parts.name == "xo.part" and inner.name == "xo" and not inner.body.mask & n.Min.bit
    tail_of_tails = loop("x", "n", n.LetStmt("w", load("c", "x"), store("a", n.Min(if_innermost(var("x")), var("w")), 3)))
    assert partition_loops(tail_of_tails) is tail_of_tails  # the limit is not known before the loop


def test_cold_copies_are_not_split_again() -> None:
    after = partition_loops(CASES["rows and columns"])
    assert sorted(f.name for f in loops(after)) == ["x", "x.epilogue", "x.prologue", "y", "y.prologue", "z"]


def test_never_and_always() -> None:
    never = stencil(partition=n.Partition.Never)
    assert partition_loops(never) is never
    assert len(loops(partition_loops(stencil(partition=n.Partition.Always)))) == 3
    with pytest.raises(CompileError, match=r"Loop x is scheduled partition\(Always\)"):
        partition_loops(loop("x", "n", store("a", "x", 1), partition=n.Partition.Always))


def test_always_splits_loops_around_the_boundary_too() -> None:
    """A condition on y in the loop over x is split off the loop over y, and the loop over x is split in both copies."""
    e = add(load("c", likely_clamp(sub("x", 1), 0, "w")), load("c", likely_clamp(add("y", 1), 0, "w")))
    both = loop("y", "n", loop("x", 5, store("a", add(mul("y", 5), "x"), e), partition=n.Partition.Always), partition=n.Partition.Always)
    after = partition_loops(both)
    assert names_bound_once(after)
    (rows,) = [f for f in loops(after) if f.name == "y"]
    assert isinstance(rows.body, n.IfThenElse) and rows.body.else_case is not None
    assert all(sum("prologue" in f.name for f in loops(part)) == 1 for part in (rows.body.then_case, rows.body.else_case))
    assert run(after, SIZES, n=7, w=4) == run(serial(both), SIZES, n=7, w=4)


def test_data_dependent_boundaries_stay() -> None:
    s = loop("x", "n", store("a", "x", load("c", likely_clamp(load("c", "x"), 0, "w"))))
    assert partition_loops(s) is s
    both = partition_loops(loop("x", "n", chain(s.body, stencil().body)))  # type: ignore[attr-defined]
    assert steady(both, "x").body.mask & n.Max.bit


def test_a_constant_is_the_likely_side_too() -> None:
    stmt = simplify(loop("x", "n", store("a", "x", n.Select(lt("x", 10), load("c", "x"), b.likely(b.i32(7))))))
    cold, steady = loops(partition_loops(stmt))
    assert list(nodes_of(cold, n.Load)) and not list(nodes_of(steady, n.Load))
