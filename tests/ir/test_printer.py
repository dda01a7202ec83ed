"""The printer: Halide's style, and no explosion on shared parts."""

from __future__ import annotations

import math

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.printer import to_text
from halide_py.ir.types import BOOL, INT32, Float, Handle, Int, UInt

X, Y = n.Variable(INT32, "x"), n.Variable(INT32, "y")


def test_expressions() -> None:
    f = n.Call(UInt(8), "f", (X, Y), n.CallType.Halide)
    cases = {
        "(x + 1)": n.Add(X, b.i32(1)),
        "((x + 3)*((y/2) + 17))": n.Mul(n.Add(X, b.i32(3)), n.Add(n.Div(Y, b.i32(2)), b.i32(17))),
        "((uint8)f(x, y) + (uint8)3)": n.Add(f, b.const(UInt(8), 3)),
        "uint8(x + y)": n.Cast(UInt(8), n.Add(X, Y)),
        "uint1(x)": n.Cast(BOOL, X),
        "select(x > y, x, y)": n.Select(n.GT(X, Y), X, Y),
        "max(min(x, 7), 0)": n.Max(n.Min(X, b.i32(7)), b.i32(0)),
        "((x < 3) && !(y == 2))": n.And(n.LT(X, b.i32(3)), n.Not(n.EQ(Y, b.i32(2)))),
        "(uint32)abs(x % 4)": intrinsic("abs", UInt(32), n.Mod(X, b.i32(4))),
        "(int16)-3": b.const(Int(16), -3),
        "1.000000f": b.const(Float(32), 1.0),
        "1.000000e-09": b.const(Float(64), 1e-9),
        "2.500000h": b.const(Float(16), 2.5),
        "inff": b.const(Float(32), math.inf),
        "-0.000000f": b.const(Float(32), -0.0),
        "((float32)p + 1.000000f)": n.Add(n.Variable(Float(32), "p"), b.const(Float(32), 1)),
        "ramp(x, 2, 8)": n.Ramp(X, b.i32(2), 8),
        "(x4(x) + x4(1))": n.Add(n.Broadcast(X, 4), n.Broadcast(b.i32(1), 4)),
        "(let t = (x + y) in (t*t))": n.Let("t", n.Add(X, Y), n.Mul(n.Variable(INT32, "t"), n.Variable(INT32, "t"))),
        "(uint8)im[x + 1]": n.Load(UInt(8), "im", n.Add(X, b.i32(1)), b.TRUE),
        "((uint8)im[x] if (x < y))": n.Load(UInt(8), "im", X, n.LT(X, Y)),
        "extract_element(x4(x), 2)": n.Shuffle((n.Broadcast(X, 4),), (2,)),
        "(int32)vector_reduce_add(x4(x))": n.VectorReduce(n.ReduceOp.Add, n.Broadcast(X, 4), 1),
        '"a\\"b\\n\\xC3\\xA9"': n.StringImm(Handle(), 'a"b\né'),
        "reinterpret<float32>(x)": n.Reinterpret(Float(32), X),
    }
    for text, e in cases.items():
        assert to_text(e) == text


def test_statements() -> None:
    store = n.Store("buf", n.Div(n.Mul(X, b.i32(17)), n.Sub(X, b.i32(3))), n.Sub(Y, b.i32(1)), b.TRUE)
    loop = n.For("x", b.i32(-2), n.Add(Y, b.i32(2)), n.ForType.Parallel, n.Partition.Auto, store)
    use = n.Store("out", n.Add(n.Call(INT32, "buf", (n.Mod(X, b.i32(3)),), n.CallType.Extern), b.i32(1)), X, n.LT(X, Y))
    other = n.For("x", b.i32(0), Y, n.ForType.Vectorized, n.Partition.Auto, use)
    check = n.Assert(n.GE(Y, b.i32(3)), n.Call(INT32, "halide_error_x", (n.StringImm(Handle(), "y"), Y), n.CallType.Extern))
    body = b.block([check, n.Produce("buf", loop), n.IfThenElse(n.LT(Y, b.i32(9)), other, n.Evaluate(X))])
    s = n.Allocate("buf", Float(32), n.MemoryType.Stack, (b.i32(1023),), b.TRUE, 0, n.LetStmt("y", b.i32(17), body))
    assert to_text(s) == """\
allocate buf[float32 * 1023] in Stack
let y = 17
assert(y >= 3, halide_error_x("y", y))
produce buf {
 parallel (x, -2, y + 2) {
  buf[y - 1] = (x*17)/(x - 3)
 }
}
consume buf {
 if (y < 9) {
  vectorized (x, 0, y) {
   predicate (x < y)
    out[x] = buf(x % 3) + 1
  }
 } else {
  x
 }
}
"""


def test_realize_and_provide() -> None:
    p = n.Provide("f", (X, Y), (X, b.i32(0)), b.TRUE)
    s = n.Realize("f", (INT32, INT32), n.MemoryType.Heap, (b.i32(0), X), (Y, b.i32(4)), n.LT(X, Y), p)
    assert to_text(s) == "realize f([0, y], [x, 4]) in Heap if (x < y) {\n f(x, 0) = {x, y}\n}\n"


def test_shared_parts_are_named() -> None:
    e: n.Expr = X
    for _ in range(60):
        e = n.Add(e, n.Mul(e, Y))
    text = to_text(e)
    assert len(text) < 10_000
    assert text.startswith("let t0 = ")
    stmt = to_text(n.Provide("f", (e,), (X,), b.TRUE))
    assert len(stmt) < 10_000 and "let t0 = " in stmt


def test_deep_chain() -> None:
    e: n.Expr = X
    for i in range(20_000):
        e = n.Add(e, n.Variable(INT32, f"v{i % 97}"))
    assert len(to_text(e)) > 100_000
