"""The verifier finds malformed IR and leaves well-formed IR alone."""

from __future__ import annotations

import pytest

from halide_py.errors import InternalError
from halide_py.ir import nodes as n
from halide_py.ir.build import TRUE, block, broadcast, const, i32
from halide_py.ir.module import ArgumentKind, LoweredArgument
from halide_py.ir.types import BOOL, INT32, INT64, Float
from halide_py.ir.verify import verify

ARGS = (LoweredArgument("f", ArgumentKind.OutputBuffer, INT32, 1), LoweredArgument("k", ArgumentKind.InputScalar, INT32))


def var(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def loop(body: n.Stmt) -> n.Stmt:
    return n.For("x", i32(0), var("f.extent.0"), n.ForType.Serial, n.Partition.Auto, body)


STORE = n.Store("f", n.Add(var("x"), var("k")), var("x"), TRUE)
ALLOCATE = n.Allocate("m", INT32, n.MemoryType.Heap, (i32(4),), TRUE, 0, n.Store("m", i32(0), i32(1), TRUE))


def test_well_formed() -> None:
    verify(block([loop(STORE), ALLOCATE, n.LetStmt("y", i32(1), n.Evaluate(n.Let("z", var("y"), var("z"))))]), ARGS)


@pytest.mark.parametrize("stmt,message", [
    (STORE, "x used by Store f but not in scope"),
    (n.Evaluate(n.Add(i32(1), const(INT64, 1))), "Add of int32 and int64"),
    (n.Evaluate(n.And(i32(1), i32(1))), "And of int32"),
    (n.Evaluate(n.Select(TRUE, i32(1), const(Float(32), 1))), "select between int32 and float32"),
    (n.Evaluate(n.Ramp(i32(0), const(INT64, 1), 4)), "ramp of 4 lanes from int32 by int64"),
    (n.Evaluate(n.Load(INT32, "m", i32(0), TRUE)), r"m\[\] used by Evaluate"),
    (n.Store("m", i32(0), i32(0), TRUE), "Store to m, which has no storage"),
    (n.Store("f", broadcast(i32(0), 4), i32(0), TRUE), "4 lanes at 1 indices of f"),
    (n.Store("f", i32(0), i32(0), broadcast(TRUE, 4)), "predicate of type boolx4"),
    (n.IfThenElse(i32(1), ALLOCATE), "if of type int32"),
    (loop(loop(STORE)), "x bound again inside its own scope"),
    (n.Evaluate(n.Cast(BOOL, broadcast(i32(1), 2))), "cast of int32x2 to bool"),
    (n.Evaluate(n.Shuffle((i32(1), i32(2)), (0, 2))), "shuffle"),
    (n.Evaluate(n.Reinterpret(INT64, i32(1))), "reinterpret of int32 as int64"),
    (n.Evaluate(n.Let("z", i32(1), n.Add(var("z"), var("w")))), "w used by Evaluate"),
])
def test_malformed(stmt: n.Stmt, message: str) -> None:
    with pytest.raises(InternalError, match=message) as caught:
        verify(stmt, ARGS, "a pass")
    assert "after a pass" in str(caught.value)


def test_early_passes_may_leave_names_open() -> None:
    verify(STORE, ARGS, scopes=False)
