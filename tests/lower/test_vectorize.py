"""Vectorized loops do what the same loops do one iteration at a time. The interpreter refuses accesses out of range, so guards are tested too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import VECTOR, add, allocate, chain, kinds, load, loop, lt, mul, run, serial, store, sub, var  # noqa: E402

from halide_py.errors import CompileError  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.intrinsics import intrinsic  # noqa: E402
from halide_py.ir.printer import to_text  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402
from halide_py.ir.types import BOOL, INT32, UInt  # noqa: E402
from halide_py.lower.vectorize import vectorize  # noqa: E402

U8 = UInt(8)
SIZES = {"a": 64, "c": 64, "h": 64}


def v8(body: n.Stmt, name: str = "x") -> n.Stmt:
    return loop(name, 8, body, VECTOR)


def tail(limit: int, body: n.Stmt) -> n.Stmt:
    """A split loop over `limit` elements whose last vector is cut off by a guard."""
    base = n.LetStmt("base", mul("xo", 8), v8(n.IfThenElse(b.likely(lt(add("base", "x"), limit)), body)))
    return loop("xo", (limit + 7) // 8, base)


def if_then_else(c: n.Expr, x: n.Expr, y: n.Expr) -> n.Expr:
    return n.Call(x.type, "if_then_else", (c, x, y), n.CallType.PureIntrinsic)


# a bin that four operations choose
DEAR = n.Min(n.Max(n.Mod(mul(load("c", "x"), 3), b.i32(5)), b.i32(1)), b.i32(3))

x = "x"
narrow = n.Cast(INT32, n.Add(n.Cast(U8, mul(load("c", x), 30)), b.const(U8, 9)))
CASES: dict[str, n.Stmt] = {
    "a tail that allocates": tail(13, allocate("t", 3, b.block([store("t", 2, add(load("c", add("base", x)), 1)), store("a", add("base", x), load("t", 2))]))),
    "dense": v8(store("a", x, add(load("c", x), 1))),
    "strided": v8(store("a", mul(x, 2), load("c", sub(63, mul(x, 3))))),
    "from elsewhere": loop("x", 8, store("a", x, mul(x, x)), VECTOR, low=5),
    "casts": v8(store("a", x, narrow)),
    "gather": v8(store("a", x, load("c", load("h", x)))),
    "uniform load": v8(store("a", x, load("c", 3))),
    "lets": v8(n.LetStmt("i", add(x, 2), n.LetStmt("v", load("c", "i"), store("a", "i", mul("v", "v"))))),
    "let expression": v8(store("a", x, n.Let("t", load("c", x), mul("t", add("t", x))))),
    "select": v8(store("a", x, n.Select(lt(x, 3), load("c", x), b.i32(-1)))),
    "select by a scalar": loop("y", 4, v8(store("a", add(mul("y", 8), x), n.Select(lt("y", 2), load("c", x), b.i32(-1))))),
    "tail": tail(21, store("a", add("base", x), load("c", add("base", x)))),
    "guard": v8(n.IfThenElse(n.EQ(n.Mod(var(x), b.i32(3)), b.i32(1)), store("a", x, load("c", x)), store("h", x, 5))),
    "guard that protects a load": v8(n.IfThenElse(lt(x, 5), store("a", x, load("c", add(x, 59))))),
    "guard that reads what it stores": v8(n.IfThenElse(lt(load("a", x), 9), chain(store("a", x, 20), store("c", x, 21)))),
    "guarded uniform load": v8(n.IfThenElse(lt(x, -1), store("a", x, load("c", 1000)))),
    "lazy values": v8(store("a", x, if_then_else(lt(x, 5), load("c", add(x, 59)), load("h", add(x, 56))))),
    "lazy values by a scalar": loop("y", 2, v8(store("a", add(mul("y", 8), x), if_then_else(lt("y", 1), load("c", x), var(x))))),
    "inner loop": v8(loop("k", 3, store("a", add(x, mul("k", 8)), load("c", add(x, "k"))))),
    "inner loop of varying length": v8(loop("k", add(x, 1), store("a", add(mul(x, 8), "k"), load("c", add(x, "k"))))),
    "inner loop of varying start": v8(loop("k", 2, store("a", add("k", mul(x, 4)), "k"), low=mul(x, 2))),
    "private storage": v8(allocate("m", 3, chain(loop("k", 3, store("m", "k", add(mul(x, 10), "k"))), store("a", x, add(load("m", 2), load("m", 0)))))),
    "nested": loop("y", 4, v8(store("a", add(mul("y", 8), x), load("c", add(x, "y")))), VECTOR),
    "nested, transposed": loop("y", 4, v8(store("a", add(mul(x, 4), "y"), add(load("c", x), load("h", "y")))), VECTOR),
    "nested, a let between": loop("y", 4, n.LetStmt("r", load("h", "y"), v8(store("a", add(mul("y", 8), x), add("r", load("c", x))))), VECTOR),
    "nested, guard inside": loop("y", 4, v8(n.IfThenElse(lt(add(x, "y"), 6), store("a", add(mul("y", 8), x), load("c", add(x, "y"))))), VECTOR),
    "nested, guard between": loop("y", 4, n.IfThenElse(b.likely(lt("y", 3)), v8(store("a", add(mul("y", 8), x), load("c", x)))), VECTOR),
    "nested, private storage": loop("y", 2, allocate("m", 8, chain(v8(store("m", x, add(x, "y"))),
                                    v8(store("a", add(mul("y", 8), "z"), load("m", sub(7, "z"))), "z"))), VECTOR),
    "sum": v8(store("a", 0, add(load("a", 0), load("c", x)))),
    "sum, nested": loop("y", 4, v8(store("a", "y", add(load("a", "y"), load("c", x)))), VECTOR),
    "sum over the outer loop": loop("y", 4, v8(store("a", x, add(load("a", x), load("c", add(x, "y"))))), VECTOR),
    "maximum": v8(store("a", 3, n.Max(load("c", x), load("a", 3)))),
    "no simple reduction": v8(store("a", 0, sub(load("c", x), load("a", 0)))),
    "histogram": v8(store("a", n.Mod(load("c", x), b.i32(3)), add(load("a", n.Mod(load("c", x), b.i32(3))), 1))),
    "histogram behind a let": v8(n.LetStmt("bin", n.Mod(load("c", x), b.i32(3)), store("a", "bin", add(load("a", "bin"), x)))),
    "dear histogram": v8(store("a", DEAR, add(load("a", DEAR), mul(sub(load("h", x), 2), 3)))),
    "dear histogram, taken from": v8(store("a", DEAR, sub(load("a", DEAR), mul(x, 3)))),
    "dear histogram, taken away": v8(store("a", DEAR, sub(mul(x, 3), load("a", DEAR)))),
    "dear histogram that reads its bin elsewhere": v8(store("a", DEAR, add(load("a", DEAR), load("a", 2)))),
    "dear histogram, nested": loop("y", 4, v8(store("a", add(DEAR, "y"), add(load("a", add(DEAR, "y")), x))), VECTOR),
    "dear histogram behind a let": v8(n.LetStmt("bin", DEAR, chain(store("h", "bin", 2), store("a", "bin", n.Max(load("a", "bin"), mul("bin", x)))))),
    "dear histogram, guarded": v8(n.IfThenElse(b.likely(lt(x, 6)), store("a", DEAR, add(load("a", DEAR), x)))),
    "bits": v8(store("a", x, n.Cast(INT32, intrinsic("popcount", U8, n.Cast(U8, load("c", x)))))),
    "and, not": v8(store("a", x, n.Select(n.And(n.Not(lt(x, 2)), lt(load("c", x), 9)), var(x), b.i32(0)))),
}


@pytest.mark.parametrize("name", CASES)
def test_means_the_same(name: str) -> None:
    before = CASES[name]
    after = vectorize(before)
    assert "Vectorized" not in kinds(after)
    assert run(after, SIZES) == run(serial(before), SIZES)


TEXTS = ["dense", "tail", "nested", "nested, transposed", "private storage", "sum, nested", "lazy values", "guard that protects a load"]


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(to_text(vectorize(CASES[name])), "vectorize_" + name.replace(", ", "_").replace(" ", "_"))


def test_dense_accesses_are_ramps() -> None:
    for access in nodes_of(vectorize(CASES["lets"]), (n.Load, n.Store)):
        assert isinstance(access.index, n.Ramp) and b.as_int(access.index.stride) == 1


def test_serial_fallback_is_per_statement() -> None:
    after = vectorize(v8(chain(store("c", x, mul(x, 2)), CASES["histogram"].body)))  # type: ignore[attr-defined]
    vectors = [s for s in nodes_of(after, n.Store) if s.value.type.is_vector()]
    assert [s.name for s in vectors] == ["c"]


def test_lanes_that_may_collide_take_their_work_from_vectors() -> None:
    """In their order, 8 stores for 8 lanes; where what they write is read elsewhere, too, all of it is a loop."""
    after = vectorize(CASES["dear histogram"])
    (index, value), stores = nodes_of(after, n.LetStmt), nodes_of(after, n.Store)
    assert index.value.type.lanes() == value.value.type.lanes() == 8 and nodes_of((index.value, value.value), n.Mod)
    assert len(list(stores)) == 8 and "For" not in {type(s).__name__ for s in nodes_of(after, n.For)}
    assert nodes_of(vectorize(CASES["dear histogram that reads its bin elsewhere"]), n.For)


def test_prints_happen_once_a_lane(capsys: pytest.CaptureFixture[str]) -> None:
    shown = n.Call(INT32, "print", (var(x),), n.CallType.Intrinsic)
    run(vectorize(loop("x", 3, store("a", x, shown), VECTOR)), SIZES)
    assert capsys.readouterr().out == "0\n1\n2\n"


def test_extent_one_and_none() -> None:
    assert run(vectorize(loop("x", 1, store("a", x, 7), VECTOR, low=4)), SIZES)["a"][4] == 7
    assert vectorize(loop("x", 0, store("a", x, 7), VECTOR)) is b.NOTHING


def test_extent_must_be_constant() -> None:
    with pytest.raises(CompileError, match=r"Loop f\.s0\.x is vectorized, but its extent w is not a constant"):
        vectorize(loop("f.s0.x", "w", store("a", "f.s0.x", 1), VECTOR))


def test_predicates_are_vectors_of_bool() -> None:
    for access in nodes_of(vectorize(CASES["guard"]), (n.Load, n.Store)):
        assert access.predicate.type is BOOL.with_lanes(access.index.type.lanes())


def test_an_assertion_whose_message_differs_between_lanes() -> None:
    """What is asserted is the same for all lanes, what it says is not: it is asserted lane by lane, with the lane's own value."""
    says = n.Call(INT32, "halide_error_bad_extern_fold", (n.Call(INT32, "of", (var("i"),), n.CallType.PureExtern),), n.CallType.Extern)
    after = vectorize(v8(n.LetStmt("i", add("x", 2), b.block([n.Assert(lt("limit", 3), says), store("a", "i", 1)]))))
    (checked,) = nodes_of(after, n.For)
    (let,) = nodes_of(checked, n.LetStmt)
    assert checked.kind is n.ForType.Serial and let.name == "i" and nodes_of(checked, n.Assert)


def test_lets_of_one_name_and_the_same_value_in_all_lanes() -> None:
    """The second is bound by another name, but stays as scalar as it is: what reads it makes a vector of it."""
    lets = [n.Let("t", load("c", i), add("t", 1)) for i in (3, 5)]
    s = v8(b.block([store("a", x, add(load("h", x), let)) for let in lets]))
    for one in nodes_of(vectorize(s), n.Store):
        assert isinstance(one.value, n.Add) and isinstance(one.value.b, n.Broadcast) and one.value.b.value in lets
    assert list(run(vectorize(s), SIZES)["a"][:8]) == list(run(s, SIZES)["a"][:8])
