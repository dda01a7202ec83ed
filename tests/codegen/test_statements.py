"""Loops, allocations, checks, parallel loops, calls, printing: behaviour of whole functions."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_run import CHECKS, ROOT, build, call, function, host, load, loop, machine, run, runtime, store, var

from halide_py.codegen_c import generate
from halide_py.codegen_c.header import header
from halide_py.codegen_c.metadata import metadata
from halide_py.errors import CompileError
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import ExternFunction, call_extern, intrinsic
from halide_py.ir.module import LoweredModule
from halide_py.ir.types import BOOL, INT32, Float, Int, UInt

F32 = Float(32)


def error(name: str, *args: n.Expr) -> n.Expr:
    return n.Call(INT32, f"halide_error_{name}", args, n.CallType.Extern)


def last_error() -> str:
    runtime().hl_last_error.restype = ctypes.c_char_p
    return runtime().hl_last_error().decode()


def allocate(name: str, extents: list[n.Expr], body: n.Stmt, memory: n.MemoryType = n.MemoryType.Auto) -> n.Stmt:
    return n.Allocate(name, F32, memory, tuple(extents), b.TRUE, 0, body)


@pytest.mark.parametrize("memory", [n.MemoryType.Auto, n.MemoryType.Heap, n.MemoryType.Stack])
@pytest.mark.parametrize("size", [16, 100_000])
def test_allocation(memory: n.MemoryType, size: int) -> None:
    """A temporary of constant and of dynamic size."""
    x = var("x")
    for extent in (b.i32(size), var("w")):
        fill = loop("i", extent, n.Store("t", n.Cast(F32, n.Mul(var("i"), b.i32(2))), var("i"), b.TRUE))
        body = allocate("t", [extent], b.block([fill, loop("x", extent, n.Store("out", n.Load(F32, "t", x, b.TRUE), x, b.TRUE))]), memory)
        out = np.zeros(size, np.float32)
        assert run(function("f", body, {}, {"out": F32}, {"w": INT32}), [ctypes.c_int32(size), out], flags=CHECKS) == 0
        np.testing.assert_array_equal(out, 2 * np.arange(size))


def test_memory_is_freed_on_every_way_out() -> None:
    """An assert inside an allocation, inside a parallel loop: the counts of malloc and free agree, and the code comes back."""
    fail = n.Assert(n.LT(var("y"), b.i32(5)), error("param_too_large_i64", b.string("y"), b.const(Int(64), 5), b.const(Int(64), 4)))
    inner = n.Allocate("t", F32, n.MemoryType.Heap, (var("w"),), b.TRUE, 0, b.block([n.Store("t", b.const(F32, 1), b.i32(0), b.TRUE), fail]))
    outer = n.Allocate("u", F32, n.MemoryType.Heap, (var("w"),), b.TRUE, 0, b.block([n.Store("u", b.const(F32, 1), b.i32(0), b.TRUE),
                                                                                 loop("y", 20, inner, n.ForType.Parallel)]))
    library = build(generate(function("f", outer, {}, {}, {"w": INT32}), machine()))
    counts = {"malloc": 0, "free": 0}
    lib = runtime()
    malloc_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    free_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

    def take(_: object, size: int) -> int:
        counts["malloc"] += 1
        return libc.malloc(size + 64)

    def give(_: object, pointer: int) -> None:
        counts["free"] += 1
        libc.free(pointer)

    hooks = malloc_type(take), free_type(give)
    lib.halide_set_custom_malloc(hooks[0])
    lib.halide_set_custom_free(hooks[1])
    try:
        assert call(library, "f", [ctypes.c_int32(10)]) == -10
    finally:
        lib.halide_set_custom_malloc(None)
        lib.halide_set_custom_free(None)
    assert counts["malloc"] == counts["free"] >= 2
    assert "y is 5 but must be at most 4" in last_error()


def test_out_of_memory() -> None:
    body = n.Allocate("t", F32, n.MemoryType.Heap, (var("w"), var("w"), var("w")), b.TRUE, 0, n.Store("t", b.const(F32, 1), b.i32(0), b.TRUE))
    assert run(function("f", body, {}, {}, {"w": INT32}), [ctypes.c_int32(2**31 - 1)]) == -11


def test_parallel_captures() -> None:
    """Scalars, vectors, stack arrays and outer loop variables go into the closure; nested parallel loops work."""
    lanes = 8
    value = n.Add(n.Variable(F32.with_lanes(lanes), "v"), b.broadcast(n.Add(n.Load(F32, "t", var("z"), b.TRUE), n.Cast(F32, var("k"))), lanes))
    at = n.Mul(n.Add(n.Mul(var("z"), b.i32(5)), var("y")), b.i32(lanes))
    inner = loop("z", 3, loop("y", 5, store("out", value, at), n.ForType.Parallel), n.ForType.Parallel)
    fill = loop("i", 3, n.Store("t", n.Cast(F32, n.Mul(var("i"), b.i32(100))), var("i"), b.TRUE))
    body = n.LetStmt("v", load(F32, "a", 0, lanes), n.LetStmt("k", n.Add(var("w"), b.i32(1)), allocate("t", [b.i32(3)], b.block([fill, inner]))))
    a, out = np.arange(lanes, dtype=np.float32), np.zeros((3, 5, lanes), np.float32)
    assert run(function("f", body, {"a": F32}, {"out": F32}, {"w": INT32}), [a, ctypes.c_int32(6), out.reshape(-1)]) == 0
    np.testing.assert_array_equal(out, np.broadcast_to(a + np.arange(3).reshape(3, 1, 1) * 100 + 7, out.shape))


def test_if_then_else_does_not_touch_the_other_side() -> None:
    """The load of the side not taken is not made, even where it is shared with a place that makes it."""
    far = n.Load(F32, "a", b.i32(1 << 30), b.TRUE)
    choice = intrinsic("if_then_else", F32, n.GT(var("w"), b.i32(0)), b.const(F32, 1), n.Add(far, far))
    twice = intrinsic("if_then_else", F32, n.GT(var("w"), b.i32(1)), b.const(F32, 2), n.Mul(far, far))
    out = np.zeros(1, np.float32)
    module = function("f", n.Store("out", n.Add(choice, twice), b.i32(0), b.TRUE), {"a": F32}, {"out": F32}, {"w": INT32})
    assert run(module, [np.zeros(1, np.float32), ctypes.c_int32(2), out]) == 0
    assert out[0] == 3


def test_require_and_print() -> None:
    printed: list[str] = []
    print_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
    hook = print_type(lambda _, text: printed.append(text.decode()))
    shown = intrinsic("print", INT32, var("w"), b.string("at"), b.const(F32, 0.5), b.TRUE, b.const(Float(64), 2.0), b.const(UInt(8), 200))
    when = intrinsic("print_when", INT32, n.GT(var("w"), b.i32(100)), shown, b.string("large"))
    checked = intrinsic("require", INT32, n.GT(var("w"), b.i32(0)), when, error("requirement_failed", b.string("w > 0"), intrinsic("stringify", b.string("").type, b.string("w is"), var("w"))))
    library = build(generate(function("f", n.Store("out", checked, b.i32(0), b.TRUE), {}, {"out": INT32}, {"w": INT32}), machine()))
    out = np.zeros(1, np.int32)
    runtime().halide_set_custom_print.restype = ctypes.c_void_p
    before = runtime().halide_set_custom_print(hook)
    try:
        assert call(library, "f", [ctypes.c_int32(7), out]) == 0
        assert call(library, "f", [ctypes.c_int32(-3), out]) == -27
    finally:
        runtime().halide_set_custom_print(ctypes.c_void_p(before))  # what other tests print goes where it went
    assert out[0] == 7 and printed == ["7 at 0.500000 true 2.000000e+00 200\n"]
    assert last_error() == "Requirement Failed: (w > 0) w is -3"


def test_extern_with_source() -> None:
    """A pure function given as C: once per lane; one with effects: exactly once, in order."""
    row = ExternFunction("knee", F32, (F32, F32), "knee", source="static float knee(float x, float k) { return x < k ? x : k + (x - k) * 0.5f; }")
    for lanes in (1, 8, 5):
        value = call_extern(row, load(F32, "a", 0, lanes), b.const(F32, 3.0))
        a, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        assert run(function("f", store("out", value, 0), {"a": F32}, {"out": F32}), [a, out]) == 0
        np.testing.assert_array_equal(out[:lanes], np.where(a < 3, a, 3 + (a - 3) / 2)[:lanes])
    count = ExternFunction("next", INT32, (INT32,), "next", pure=False, source="static int next(int x) { static int n; return x * 100 + n++; }")
    value = n.Sub(call_extern(count, b.i32(1)), call_extern(count, b.i32(2)))
    out32 = np.zeros(2, np.int32)
    both = b.block([n.Store("out", value, b.i32(0), b.TRUE), n.Store("out", call_extern(count, b.i32(0)), b.i32(1), b.TRUE)])
    assert run(function("f", both, {}, {"out": INT32}), [out32]) == 0
    assert list(out32) == [-101, 2]


def test_strict_float() -> None:
    """a * b - c without contraction gives the rounded product's difference."""
    a, c, d = (load(F32, x, 0, 8) for x in "acd")
    out = np.zeros(8, np.float32)
    x = np.float32(1) + np.float32(2) ** -12
    product = np.float32(x * x)
    e = intrinsic("strict_float", F32.with_lanes(8), n.Sub(n.Mul(a, c), d))
    args = [np.full(8, x), np.full(8, x), np.full(8, product), out]
    assert run(function("f", store("out", e, 0), dict.fromkeys("acd", F32), {"out": F32}), args) == 0
    assert not out.any()


def test_odd_widths_are_refused() -> None:
    with pytest.raises(CompileError, match="int12"):
        generate(function("f", n.Store("out", n.Cast(INT32, n.Cast(Int(12), var("w"))), b.i32(0), b.TRUE), {}, {"out": INT32}, {"w": INT32}), machine())


def test_large_index() -> None:
    """Index arithmetic of int32 parts is done in 64 bits: element 2^31 + 5 of a buffer that is not all there."""
    at = n.Add(n.Mul(var("w"), b.i32(1 << 20)), b.i32(5))
    module = function("f", n.Store("out", n.Load(UInt(8), "a", at, b.TRUE), b.i32(0), b.TRUE), {"a": UInt(8)}, {"out": UInt(8)}, {"w": INT32})
    memory = np.zeros(2**31 + 64, np.uint8)
    memory[2**31 + 5] = 77
    out = np.zeros(1, np.uint8)
    assert run(module, [memory, ctypes.c_int32(2048), out]) == 0
    assert out[0] == 77


def test_header_is_clean(tmp_path: Path) -> None:
    """C11 and C++17 without a warning, also after our own runtime header."""
    module = function("pipe", host("x", n.Evaluate(b.i32(0))), {"a": F32}, {"out": F32}, {"w": INT32, "flag": BOOL})
    (tmp_path / "pipe.h").write_text(header(module))
    for first in ("", '#include "hl_runtime.h"\n'):
        for compiler, standard in (("gcc", "-std=c11"), ("g++", "-std=c++17")):
            if shutil.which(compiler) is None:
                continue
            source = tmp_path / ("a.c" if compiler == "gcc" else "a.cpp")
            source.write_text(f'{first}#include "pipe.h"\n#include "pipe.h"\nint main(void) {{ return pipe(0, 1, 1, 0); }}\n')
            done = subprocess.run([compiler, standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", str(ROOT / "runtime"), "-c", str(source), "-o", str(tmp_path / "a.o")],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_metadata() -> None:
    """NAME_metadata() compiles in both languages and describes the arguments."""
    module = function("pipe", n.Evaluate(b.i32(0)), {"a": F32}, {"out": UInt(8)}, {"w": INT32})
    for language in ("c", "c++"):
        library = build(generate(module, machine()) + metadata(module.functions[0], "x86-64-linux"), language=language)
        library.pipe_metadata.restype = ctypes.POINTER(ctypes.c_int32)
        assert list(library.pipe_metadata()[0:2]) == [1, 3]


def test_text_is_proportional_to_the_dag() -> None:
    """A chain in which every node is used twice stays linear."""
    e = load(F32, "a", 0, 8)
    for _ in range(200):
        e = n.Mul(n.Add(e, b.const(F32.with_lanes(8), 1)), e)
    text = generate(function("f", store("out", e, 0), {"a": F32}, {"out": F32}), machine())
    assert len(text) < 40_000 and len(build(text)._name) > 0


def test_empty_module() -> None:
    assert "hl_runtime.h" in generate(LoweredModule("empty"), machine())
