"""The algorithm interpreter on Functions made by hand, against NumPy written out."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl
from halide_py.errors import PipelineError
from halide_py.ir import nodes as n
from halide_py.ir.build import FALSE, const, i32
from halide_py.ir.function import Definition, Function, ReductionDomain, ReductionVariable
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.parameter import Parameter
from halide_py.ir.types import INT32, Handle, UInt
from halide_py.reference.algorithm import realize

U8, U16 = UInt(8), UInt(16)


def var(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def func(name: str, args: str, *values: n.Expr) -> Function:
    f = Function(name, tuple(args), tuple(v.type for v in values))
    f.pure = Definition(tuple(map(var, args)), values)
    return f


def call(f: Function, *at: n.Expr, element: int = 0) -> n.Expr:
    return n.Call(f.types[element], f.name, at, n.CallType.Halide, f, element)


def self_call(f: Function, *at: n.Expr, element: int = 0) -> n.Expr:
    return n.Call(f.types[element], f.name, at, n.CallType.Halide, None, element)


def domain(name: str, *ranges: tuple[str, int, int]) -> ReductionDomain:
    return ReductionDomain(name, tuple(ReductionVariable(v, i32(low), i32(extent)) for v, low, extent in ranges))


def image(name: str, at: tuple[n.Expr, ...]) -> tuple[n.Expr, Parameter]:
    p = Parameter(name, U8, True, len(at))
    return n.Call(U8, name, at, n.CallType.Image, param=p), p


def test_stencil_over_an_image_with_mins() -> None:
    x, y = var("x"), var("y")
    p = Parameter("in", U8, True, 2)
    a = n.Cast(U16, n.Call(U8, "in", (x, y), n.CallType.Image, param=p))
    g = func("g", "xy", a)
    f = func("f", "xy", n.Add(call(g, x, y), call(g, n.Add(x, i32(1)), n.Sub(y, i32(2)))))
    data = np.random.default_rng(0).integers(0, 255, (6, 7), dtype=np.uint8)
    (got,) = realize([f], (5, 5), (3, 7), inputs={"in": (data, [3, 5])})
    np.testing.assert_array_equal(got, data[0:5, 2:7].astype(np.uint16) + data[1:6, 0:5])
    with pytest.raises(PipelineError, match="Input buffer in is accessed at 9, which is beyond the max"):
        realize([f], (6, 5), (3, 7), inputs={"in": (data, [3, 5])})


def test_histogram_grows_to_what_is_written() -> None:
    r = n.Variable(INT32, "r$x")
    h = func("h", "i", const(INT32, 0))
    value, _ = image("in", (r,))
    index = n.Cast(INT32, value)
    h.updates.append(Definition((index,), (n.Add(self_call(h, index), i32(1)),), domain("r", ("r$x", 0, 50))))
    data = np.random.default_rng(1).integers(0, 20, 50, dtype=np.uint8)
    (got,) = realize([h], (4,), (2,), inputs={"in": data})
    np.testing.assert_array_equal(got, np.bincount(data, minlength=20)[2:6])


def test_scan_with_free_variable_and_predicate() -> None:
    r, x = n.Variable(INT32, "r$x"), var("x")
    s = func("s", "xt", x)
    s.updates.append(Definition((x, r), (n.Add(self_call(s, x, n.Sub(r, i32(1))), r),), domain("r", ("r$x", 1, 4)), n.NE(r, i32(3))))
    (got,) = realize([s], (3, 5))
    want = np.repeat(np.arange(3)[:, None], 5, 1)
    for t in (1, 2, 4):
        want[:, t] = want[:, t - 1] + t
    np.testing.assert_array_equal(got, want)


def test_first_reduction_variable_is_innermost() -> None:
    a, b = n.Variable(INT32, "r$x"), n.Variable(INT32, "r$y")
    f = func("f", "", i32(0))
    step = n.Add(n.Mul(self_call(f), i32(10)), n.Add(a, n.Mul(i32(2), b)))
    f.updates.append(Definition((), (step,), domain("r", ("r$x", 0, 2), ("r$y", 0, 2))))
    assert realize([f], ())[0] == 123


def test_tuple_is_read_before_written_and_undef_stores_nothing() -> None:
    x = var("x")
    t = func("t", "x", x, n.Mul(x, x))
    t.updates.append(Definition((x,), (self_call(t, x, element=1), self_call(t, x))))
    keep = n.Select(n.LT(x, i32(2)), intrinsic("undef", INT32), i32(-1))
    t.updates.append(Definition((x,), (keep, keep)))
    a, b = realize([t], (4,))
    assert a.tolist() == [0, 1, -1, -1] and b.tolist() == [0, 1, -1, -1]


def test_scatter_reads_all_before_writing() -> None:
    x = var("x")
    f = func("f", "x", x)
    def at(name: str) -> n.Expr:
        return intrinsic(name, INT32, i32(0), i32(3))
    swapped = intrinsic("gather", INT32, i32(3), i32(0))
    f.updates.append(Definition((at("scatter"),), (self_call(f, swapped),)))
    assert realize([f], (4,))[0].tolist() == [3, 1, 2, 0]


def test_untaken_branch_reads_nothing() -> None:
    x = var("x")
    value, _ = image("in", (n.Sub(x, i32(1)),))
    f = func("f", "x", n.Select(n.GT(x, i32(0)), value, const(U8, 9)))
    data = np.arange(4, dtype=np.uint8)
    assert realize([f], (4,), inputs={"in": data})[0].tolist() == [9, 0, 1, 2]


def test_require_and_missing_values() -> None:
    x = var("x")
    message = n.Call(INT32, "halide_error_requirement_failed", (n.StringImm(Handle(), "no"), n.StringImm(Handle(), "way")), n.CallType.Extern)
    f = func("f", "x", intrinsic("require", INT32, FALSE, x, message))
    with pytest.raises(PipelineError, match="Requirement Failed"):
        realize([f], (1,))
    k = Parameter("k", INT32, False)
    g = func("g", "x", n.Variable(INT32, "k", param=k))
    with pytest.raises(PipelineError, match="Parameter k has no value"):
        realize([g], (1,))
    assert realize([g], (1,), scalars={"k": 7})[0].tolist() == [7]


def test_two_sources_define_a_function_of_one_name() -> None:
    x, values = hl.Var("x"), []
    for factor in (2, 5):
        scaled = hl.extern("int32_t scaled(int32_t v)", source=f"#include <stdint.h>\nint32_t scaled(int32_t v) {{ return v * {factor}; }}")
        f = hl.Func("f")
        f[x] = scaled(x)
        values += [*realize([f.function], (4,))]
    np.testing.assert_array_equal(values, [[0, 2, 4, 6], [0, 5, 10, 15]])
