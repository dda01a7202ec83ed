"""The loop IR interpreter on statements made by hand, before and after flattening, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from halide_py.errors import InternalError, PipelineError
from halide_py.ir import nodes as n
from halide_py.ir.build import FALSE, TRUE, block, broadcast, const, i32
from halide_py.ir.intrinsics import math_call
from halide_py.ir.module import ArgumentKind, LoweredArgument, LoweredFunction
from halide_py.ir.types import INT32, Bool, Float, Handle, Int, UInt
from halide_py.reference.loop_expressions import TooMuchWork
from halide_py.reference.loop_ir import run_lowered, run_stmt
from halide_py.reference.storage import BufferArgument

HEAP = n.MemoryType.Heap


def var(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def loop(name: str, low: n.Expr, extent: n.Expr, body: n.Stmt, kind: n.ForType = n.ForType.Serial) -> n.Stmt:
    return n.For(name, low, extent, kind, n.Partition.Auto, body)


def call(name: str, *at: n.Expr) -> n.Expr:
    return n.Call(INT32, name, at, n.CallType.Halide)


def produce_consume(realized: int, produced: int) -> n.Stmt:
    """g(x) = x * x realized over `realized` and produced over `produced` elements; f(x) = g(x) + g(x + 1)."""
    gx, x = var("g.s0.x"), var("f.s0.x")
    producer = loop("g.s0.x", i32(0), i32(produced), n.Provide("g", (n.Mul(gx, gx),), (gx,), TRUE), n.ForType.Parallel)
    consumer = loop("f.s0.x", i32(0), var("f.extent.0"), n.Provide("f", (n.Add(call("g", x), call("g", n.Add(x, i32(1)))),), (x,), TRUE))
    return n.Realize("g", (INT32,), n.MemoryType.Auto, (i32(0),), (i32(realized),), TRUE, n.Block((n.Produce("g", producer), consumer)))


def test_realize_and_provide() -> None:
    out = np.zeros(4, np.int32)
    run_stmt(produce_consume(5, 5), {"f": out})
    assert out.tolist() == [1, 5, 13, 25]


@pytest.mark.parametrize("realized,produced,message", [
    (4, 5, r"Write of g at \(4,\): dimension 0 was realized from 0 to 3"),
    (5, 4, r"Read of g at \(4,\), which was never written"),
    (4, 4, r"Read of g at \(4,\): dimension 0 was realized"),
])
def test_accesses_of_a_realization_are_checked(realized: int, produced: int, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        run_stmt(produce_consume(realized, produced), {"f": np.zeros(4, np.int32)})


def test_iterations_may_be_limited() -> None:
    """Those of all loops together."""
    inner = loop("x", i32(0), i32(5), n.Evaluate(i32(0)))
    fn = LoweredFunction("f", (), block([inner, loop("y", i32(0), i32(2), inner)]))
    run_lowered(fn, [], iterations=17)
    with pytest.raises(TooMuchWork):
        run_lowered(fn, [], iterations=16)


def test_write_outside_an_output() -> None:
    with pytest.raises(InternalError, match="outside its mins"):
        run_stmt(loop("x", i32(0), i32(5), n.Provide("f", (var("x"),), (var("x"),), TRUE)), {"f": (np.zeros(4, np.int32), [1])})


def test_tuple_provide_swaps() -> None:
    s = n.Provide("t", (n.Call(INT32, "t", (i32(0),), n.CallType.Halide, None, 1), call("t", i32(0))), (i32(0),), TRUE)
    a, b = np.array([3], np.int32), np.array([4], np.int32)
    run_stmt(s, {"t.0": a, "t.1": b})
    assert (a[0], b[0]) == (4, 3)


def test_vector_code() -> None:
    lanes = 4
    index = n.Ramp(i32(0), i32(2), lanes)
    loaded = n.Load(INT32.with_lanes(lanes), "m", index, broadcast(TRUE, lanes))
    total = n.VectorReduce(n.ReduceOp.Add, loaded, 2)
    mask = n.Shuffle((n.Broadcast(TRUE, 2), n.Broadcast(FALSE, 2)), (0, 3, 1, 2))
    body = block([
        n.Store("m", n.Mul(n.Ramp(i32(0), i32(1), 8), n.Broadcast(i32(10), 8)), n.Ramp(i32(0), i32(1), 8), broadcast(TRUE, 8)),
        n.Store("f", total, n.Ramp(i32(0), i32(1), 2), broadcast(TRUE, 2)),
        n.Store("f", loaded, n.Ramp(i32(2), i32(1), lanes), mask),
    ])
    out = np.full(6, -1, np.int32)
    run_stmt(n.Allocate("m", INT32, HEAP, (i32(8),), TRUE, 0, body), {"f": out})
    assert out.tolist() == [20, 100, 0, -1, 40, -1]


def test_flat_accesses_are_checked() -> None:
    read = n.Store("f", n.Load(INT32, "m", i32(1), TRUE), i32(0), TRUE)
    with pytest.raises(InternalError, match="never written"):
        run_stmt(n.Allocate("m", INT32, HEAP, (i32(2),), TRUE, 0, read), {"f": np.zeros(1, np.int32)})
    with pytest.raises(InternalError, match="outside its 1 elements"):
        run_stmt(n.Allocate("m", INT32, HEAP, (i32(1),), TRUE, 0, n.Store("m", i32(0), i32(1), TRUE)), {})
    with pytest.raises(InternalError, match="no storage"):
        run_stmt(read, {"f": np.zeros(1, np.int32)})
    with pytest.raises(InternalError, match="no element"):
        run_stmt(n.Store("f", i32(0), i32(1), TRUE), {"f": np.zeros((2, 2), np.int32)[:, :1]})


def test_names_leave_scope() -> None:
    with pytest.raises(InternalError, match="Variable x is not bound"):
        run_stmt(block([n.LetStmt("x", i32(1), n.Evaluate(n.Add(var("x"), i32(1)))), n.Evaluate(n.Add(var("x"), i32(2)))]), {})


def test_types_wrap_and_round() -> None:
    u8, f32 = UInt(8), Float(32)
    out8, out32 = np.zeros(2, np.uint8), np.zeros(1, np.float32)
    stores = [n.Store("a", n.Add(const(u8, 250), const(u8, 10)), i32(0), TRUE),
              n.Store("a", n.Cast(u8, n.Div(i32(-7), i32(2))), i32(1), TRUE),
              n.Store("b", math_call("sqrt", n.Add(const(f32, 16777216.0), const(f32, 1.0))), i32(0), TRUE)]
    run_stmt(block(stores), {"a": out8, "b": out32})
    assert out8.tolist() == [4, 252] and out32[0] == 4096.0


def lowered(body: n.Stmt) -> LoweredFunction:
    args = (LoweredArgument("k", ArgumentKind.InputScalar, Int(8)), LoweredArgument("f", ArgumentKind.OutputBuffer, INT32, 1))
    return LoweredFunction("p", args, body)


def buffer_call(name: str, *args: n.Expr) -> n.Expr:
    return n.Call(INT32, f"_halide_buffer_{name}", (n.Variable(Handle(), "f.buffer"), *args), n.CallType.Extern)


def test_run_lowered_asserts_and_queries() -> None:
    extent = buffer_call("get_extent", i32(0))
    error = n.Call(INT32, "halide_error_access_out_of_bounds", (
        n.StringImm(Handle(), "Output buffer f"), i32(0), i32(0), i32(4), i32(0), n.Sub(extent, i32(1))), n.CallType.Extern)
    query = n.Call(Bool(), "_halide_buffer_is_bounds_query", (n.Variable(Handle(), "f.buffer"),), n.CallType.Extern)
    shape = n.Evaluate(buffer_call("answer", i32(0 | 32 << 8 | 1 << 16), i32(1), i32(0), i32(5), i32(1)))
    work = n.Block((n.Assert(n.GE(extent, i32(5)), error), n.Store("f", n.Cast(INT32, n.Variable(Int(8), "k")), i32(4), TRUE)))
    fn = lowered(n.IfThenElse(query, shape, work))
    out = np.zeros(5, np.int32)
    run_lowered(fn, [200, out])
    assert out[4] == -56
    with pytest.raises(PipelineError, match="Output buffer f is accessed at 4, which is beyond the max \\(2\\) in dimension 0") as caught:
        run_lowered(fn, [0, np.zeros(3, np.int32)])
    assert caught.value.code == -4
    asked = BufferArgument(None)
    run_lowered(fn, [0, asked])
    assert (asked.mins, asked.extents, asked.strides) == ([0], [5], [1])
