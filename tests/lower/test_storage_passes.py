"""Storage: flattening, tuples, small allocations, folding, undefined stores, atomic stages, buffer symbols."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from statements import add, as_expr, chain, loop, lt, mul, provide, store, var  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.errors import CompileError  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.function import FuncSchedule, Function, StorageDim  # noqa: E402
from halide_py.ir.intrinsics import intrinsic  # noqa: E402
from halide_py.ir.module import ArgumentKind, LoweredArgument  # noqa: E402
from halide_py.ir.parameter import Parameter  # noqa: E402
from halide_py.ir.printer import to_text  # noqa: E402
from halide_py.ir.target import Target  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402
from halide_py.ir.types import INT32  # noqa: E402
from halide_py.lower.pipeline import lower  # noqa: E402
from halide_py.lower.small_allocations import LARGEST, bound_small_allocations  # noqa: E402
from halide_py.lower.storage_flattening import storage_flattening  # noqa: E402
from halide_py.lower.tuples import split_tuples  # noqa: E402
from halide_py.lower.undef import remove_undef  # noqa: E402
from halide_py.lower.unpack_buffers import unpack_buffers  # noqa: E402
from halide_py.reference import algorithm  # noqa: E402
from halide_py.reference.loop_ir import run_stmt  # noqa: E402

AUTO = n.MemoryType.Auto


def call(name: str, *args: n.Expr | int | str, index: int = 0) -> n.Expr:
    return n.Call(INT32, name, tuple(map(as_expr, args)), n.CallType.Halide, None, index)


def realize(name: str, extents: list[n.Expr | int | str], body: n.Stmt, mins: list[n.Expr | int | str] | None = None,
            memory: n.MemoryType = AUTO, types: int = 1) -> n.Realize:
    low = tuple(map(as_expr, mins or [0] * len(extents)))
    return n.Realize(name, (INT32,) * types, memory, low, tuple(map(as_expr, extents)), b.TRUE, body)


def function(name: str, args: str, values: int = 1, storage: list[StorageDim] | None = None) -> Function:
    dims = storage or [StorageDim(a) for a in args]
    return Function(name, tuple(args), (INT32,) * values, schedule=FuncSchedule(storage_dims=dims))


def output(name: str, dimensions: int, stride: n.Expr | None = None) -> LoweredArgument:
    param = Parameter(name, INT32, True, dimensions)
    param.dims[0].stride = stride
    return LoweredArgument(name, ArgumentKind.OutputBuffer, INT32, dimensions, param)


# ---- flattening and unpacking

PRODUCE = loop("y", 3, loop("x", 5, provide("g", [add("x", 2), "y"], add(mul("y", 10), "x"))))
CONSUME = loop("y", 3, loop("x", 5, provide("f", ["x", "y"], call("g", add("x", 2), "y"))))


def flattened(storage: list[StorageDim] | None = None, stride: n.Expr | None = None) -> n.Stmt:
    g, f = function("g", "xy", storage=storage), function("f", "xy")
    args = [output("f", 2, stride)]
    body = realize("g", ["w", 3], chain(PRODUCE, CONSUME), mins=[2, 0])
    return unpack_buffers(storage_flattening(body, {"g": g, "f": f}, args), args)


@pytest.mark.parametrize("storage", [[StorageDim("x"), StorageDim("y")], [StorageDim("y"), StorageDim("x")], [StorageDim("x", alignment=b.i32(4)), StorageDim("y")]])
def test_flattened_storage_holds_the_same(storage: list[StorageDim]) -> None:
    out = np.zeros((5, 3), np.int32)
    run_stmt(flattened(storage), {"f": out}, {"w": 5})
    assert out.T.tolist() == [[10 * y + x for x in range(5)] for y in range(3)]


def test_offsets_of_the_output_count() -> None:
    out = np.zeros((9, 5), np.int32)
    run_stmt(flattened(), {"f": (out, [-2, -1])}, {"w": 5})
    assert out[2:7, 1:4].T.tolist() == [[10 * y + x for x in range(5)] for y in range(3)] and out.sum() == out[2:7, 1:4].sum()


def test_flattened_text(golden: Callable[[str, str], None]) -> None:
    golden(to_text(flattened(stride=b.i32(1))), "flattening")


def test_storage_order_decides_the_dense_dimension() -> None:
    for order, dense in (("xy", "x"), ("yx", "y")):
        stmt = flattened([StorageDim(v) for v in order])
        (first,) = [s for s in nodes_of(stmt, n.Store) if s.name == "g"]
        products = {m.a.name for m in nodes_of(first.index, n.Mul) if isinstance(m.a, n.Variable)} | {
            v for m in nodes_of(first.index, n.Mul) for v in {x.name for x in nodes_of(m.a, n.Variable)}}
        assert dense not in products


def test_storage_bound_is_checked() -> None:
    stmt = flattened([StorageDim("x", bound=b.i32(4)), StorageDim("y")])
    with pytest.raises(hl.HalideError, match="bound"):
        run_stmt(stmt, {"f": np.zeros((5, 3), np.int32)}, {"w": 5})


def test_unused_storage_disappears() -> None:
    stmt = storage_flattening(realize("g", [4], store("a", 0, 1)), {"g": function("g", "x")}, [])
    assert isinstance(stmt, n.Store)


def test_fields_that_are_used_are_read_once() -> None:
    text = to_text(flattened(stride=b.i32(1)))
    assert text.count("_halide_buffer_get_stride(") == 1 and text.count("_halide_buffer_get_host(") == 1


# ---- tuples


def test_swap_reads_before_it_stores() -> None:
    f = function("t", "x", 2)
    swap = loop("x", 3, provide("t", ["x"], call("t", "x", index=1), call("t", "x")))
    after = split_tuples(swap, {"t": f})
    lows, highs = np.arange(3, dtype=np.int32), np.arange(10, 13, dtype=np.int32)
    run_stmt(after, {"t.0": lows, "t.1": highs})
    assert (lows.tolist(), highs.tolist()) == ([10, 11, 12], [0, 1, 2])
    assert len(list(nodes_of(after, n.LetStmt))) == 1


def test_tuples_without_conflict_need_no_lets() -> None:
    after = split_tuples(provide("t", ["x"], call("t", "x"), call("t", "x", index=1)), {"t": function("t", "x", 2)})
    assert not after.mask & n.LetStmt.bit and [p.name for p in nodes_of(after, n.Provide)] == ["t.0", "t.1"]


def test_realizations_of_tuples_split() -> None:
    after = split_tuples(realize("t", [4], provide("t", [0], 1, 2), types=2), {"t": function("t", "x", 2)})
    assert [r.name for r in nodes_of(after, n.Realize)] == ["t.0", "t.1"]
    single = provide("f", [0], 1)
    assert split_tuples(single, {"f": function("f", "x")}) is single


# ---- small allocations


def small(extent: n.Expr, memory: n.MemoryType = AUTO, env: Mapping[str, Function] = {}) -> n.Realize:
    s = loop("x", 8, n.LetStmt("e", extent, realize("g", ["e", 2], provide("g", [0, 0], "x"), memory=memory)))
    s = bound_small_allocations(s, env)
    (found,) = nodes_of(s, n.Realize)
    assert isinstance(found, n.Realize)
    return found


def test_small_extents_become_constants() -> None:
    assert [b.as_int(e) for e in small(n.Min(var("w"), add("x", 3))).extents] == [10, 2]
    assert [b.as_int(e) for e in small(n.Min(var("w"), b.i32(LARGEST))).extents] == [None, 2]
    assert [b.as_int(e) for e in small(var("w")).extents] == [None, 2]
    assert [b.as_int(e) for e in small(n.Min(var("w"), b.i32(9)), n.MemoryType.Heap).extents] == [None, 2]
    assert [b.as_int(e) for e in small(n.Min(var("w"), b.i32(LARGEST)), n.MemoryType.Stack).extents] == [LARGEST, 2]


def test_storage_outside_loops_is_left() -> None:
    s = realize("g", [n.Min(var("w"), b.i32(9))], provide("g", [0], 1))
    assert bound_small_allocations(s, {}) is s


def test_registers_need_a_bound() -> None:
    with pytest.raises(CompileError, match="Func g is stored in registers, but"):
        small(var("w"), n.MemoryType.Register)


def test_a_bound_of_the_storage_is_a_bound_of_registers() -> None:
    g = function("g", "xy", storage=[StorageDim("x", bound=b.i32(8)), StorageDim("y")])
    found = small(var("w"), n.MemoryType.Register, {"g": g})
    assert [b.as_int(e) for e in found.extents] == [None, 2]  # what is needed stays, to be checked against the bound


# ---- undefined values


def undef() -> n.Expr:
    return intrinsic("undef", INT32)


def test_undefined_stores_vanish() -> None:
    assert remove_undef(provide("f", ["x"], add(undef(), 1))) is b.NOTHING
    s = provide("f", ["x"], 1)
    assert remove_undef(s) is s


def test_a_choice_with_undef_is_a_guard() -> None:
    s = remove_undef(loop("x", 6, provide("f", ["x"], n.Select(lt("x", 4), n.Select(lt("x", 2), undef(), var("x")), undef()))))
    out = np.full(6, -1, np.int32)
    run_stmt(s, {"f": out})
    assert out.tolist() == [-1, -1, 2, 3, -1, -1] and not s.symbols & n.symbol_bit("undef")


def test_shared_expressions_with_undef_are_looked_at_once() -> None:
    e: n.Expr = n.Select(lt("x", 4), var("x"), undef())
    for _ in range(60):
        e = add(e, e)
    s = remove_undef(provide("f", ["x"], e))
    assert isinstance(s, n.IfThenElse) and s.condition is lt("x", 4) and not s.symbols & n.symbol_bit("undef")


def test_lets_reach_the_guard() -> None:
    s = remove_undef(loop("x", 4, provide("f", ["x"], n.Let("t", mul("x", 2), n.Select(lt("t", 3), var("t"), undef())))))
    out = np.full(4, -1, np.int32)
    run_stmt(s, {"f": out})
    assert out.tolist() == [0, 2, -1, -1]


def test_tuples_are_defined_together() -> None:
    half = n.Select(lt("x", 3), var("x"), undef())
    assert isinstance(remove_undef(provide("f", ["x"], half, half)), n.IfThenElse)
    with pytest.raises(CompileError, match="tuple stored to Func f are defined under different conditions"):
        remove_undef(provide("f", ["x"], half, 3))


def test_elements_without_a_value_are_not_stored() -> None:
    x, f, r = hl.Var("x"), hl.Func("f"), hl.RDom([(0, 3)])
    none = hl.undef(hl.Int(32))
    f[x] = (none, none)
    f[x] = (7, none)
    f[x] = (none, f[x][0] + x)
    f[r] = (hl.select(r > 0, f[r][1], none), none)
    f.trace_stores()
    want = [[7, 8, 9, 7], [7, 8, 9, 10]]
    with hl.handlers(trace=lambda event: 1):
        got = f.realize([4])
    assert [np.array(one).tolist() for one in got] == want
    assert [a.tolist() for a in algorithm.realize([f.function], (4,))] == want


def test_the_other_elements_of_a_tuple_need_no_condition() -> None:
    x, f = hl.Var("x"), hl.Func("f")
    f[x] = (x, x + 1, 7)
    f[x][1] += hl.select(x < 2, 20 * x, hl.undef(hl.Int(32)))
    f[x] = (f[x][0], hl.undef(hl.Int(32)), hl.select(x > 2, f[x][1], hl.undef(hl.Int(32))))
    want = [[0, 1, 2, 3], [1, 22, 3, 4], [7, 7, 7, 4]]
    assert [np.array(one).tolist() for one in f.realize([4])] == want
    assert [a.tolist() for a in algorithm.realize([f.function], (4,))] == want


# ---- folding


def stages(func: Any, *names: str) -> dict[str, n.Stmt]:
    """The IR after the named passes."""
    seen: dict[str, n.Stmt] = {}
    last: list[n.Stmt] = []

    def observe(name: str, seconds: float, changed: n.Stmt | None) -> None:
        if changed is not None:
            last[:] = [changed]
        if name in names:
            seen[name] = last[0]

    lower([func.function], [], func.name(), Target.host(), observer=observe)
    return seen


def chain_of_two(offsets: tuple[int, ...] = (-1, 0, 1), name: str = "stencil") -> tuple[Any, Any, Any, Any]:
    x, y = hl.Var("x"), hl.Var("y")
    f, g = hl.Func(name + "_f"), hl.Func(name + "_g")
    f[x, y] = x + y
    g[x, y] = sum((f[x, y + o] for o in offsets[1:]), f[x, y + offsets[0]])
    return f, g, x, y


def folded_extents(f: Any, g: Any) -> list[int | None]:
    stmt = stages(g, "storage_folding")["storage_folding"]
    (found,) = [r for r in nodes_of(stmt, n.Realize) if r.name == f.name()]
    return [b.as_int(e) for e in found.extents]


@pytest.mark.parametrize("offsets,rows", [((-1, 0, 1), 4), ((0, 1), 2), ((0, 4), 8), ((0, 1, 2, 3), 4)])
def test_window_folds_to_a_power_of_two(offsets: tuple[int, ...], rows: int) -> None:
    f, g, _, y = chain_of_two(offsets)
    f.store_root().compute_at(g, y)
    assert folded_extents(f, g) == [None, rows]


@pytest.mark.parametrize("tail", [t for t in hl.TailStrategy.__members__.values() if t is not hl.TailStrategy.Auto])
def test_windows_of_blocks_fold(tail: hl.TailStrategy) -> None:
    """Where a window ends is a sum of one thing that rises and one that falls: the first row of a block and what is left of the rows."""
    f, g, _, y = chain_of_two()
    f.store_root().compute_at(g, y)
    g.split(y, y, hl.Var("yi"), 3, tail)
    assert folded_extents(f, g) == [None, 8]


def test_what_is_not_a_window_does_not_fold() -> None:
    f, g, _, _ = chain_of_two()
    f.compute_root()
    assert folded_extents(f, g) == [None, None]


def test_folds_inside_a_loop_that_starts_afresh() -> None:
    x, y, z = hl.Var("x"), hl.Var("y"), hl.Var("z")
    f, g = hl.Func("afresh_f"), hl.Func("afresh_g")
    f[x, y, z] = x + y + z
    g[x, y, z] = f[x, y, z] + f[x, y + 1, z]
    f.store_root().compute_at(g, y)
    assert folded_extents(f, g) == [None, 2, 1]
    want = [[[2 * (i + j + k) + 1 for i in range(3)] for j in range(4)] for k in range(2)]
    assert np.asarray(g.realize([3, 4, 2])).tolist() == want


def test_loops_that_reuse_everything_do_not_start_afresh() -> None:
    """Row -1 is computed in the first row of g only: no window along x may take its place."""
    x, y = hl.Var("x"), hl.Var("y")
    f, g = hl.Func("reused_f"), hl.Func("reused_g")
    f[x, y] = 3 * x + y
    g[x, y] = f[x + 2, -1] + y
    f.store_root().compute_at(g, x).split(x, x, hl.Var("xi"), 3, hl.TailStrategy.PredicateStores)
    assert folded_extents(f, g) == [None, 1]
    want = [[3 * (i + 2) - 1 + j for i in range(5)] for j in range(3)]
    assert np.asarray(g.realize([5, 3])).tolist() == want


def test_vectorized_dimensions_do_not_fold() -> None:
    f, g, x, y = chain_of_two()
    yo, yi = hl.Var("yo"), hl.Var("yi")
    g.split(y, yo, yi, 4).reorder(yi, x, yo).vectorize(yi)
    f.store_root().compute_at(g, yo)
    assert folded_extents(f, g)[1] is None


def fold(func: Any, v: str, factor: n.Expr, forward: bool = True) -> None:
    for s in func.function.schedule.storage_dims:
        if s.var == v:
            s.fold_factor, s.fold_forward = factor, forward


def test_factor_asked_for() -> None:
    f, g, _, y = chain_of_two()
    f.store_root().compute_at(g, y)
    fold(f, "y", b.i32(3))
    assert folded_extents(f, g) == [None, 3]
    assert np.asarray(g.realize([3, 4])).tolist() == [[3 * (x + y) for x in range(3)] for y in range(4)]


def test_factor_too_small_is_an_error() -> None:
    f, g, _, y = chain_of_two()
    f.store_root().compute_at(g, y)
    fold(f, "y", b.i32(2))
    with pytest.raises(hl.HalideError, match=r"fold factor \(2\) of dimension y of stencil_f"):
        g.realize([3, 4])


def test_fold_that_cannot_be_shown_right_is_an_error() -> None:
    f, g, _, _ = chain_of_two()
    f.compute_root()
    fold(f, "y", b.i32(8))
    with pytest.raises(CompileError, match=r"fold_storage\(y, \.\.\.\), but its storage is not accessed in order"):
        g.realize([3, 4])


