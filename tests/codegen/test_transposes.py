"""Blocks turned in registers: right values for every shape and machine, whole rows in the text, gaps left alone."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest
from c_run import build, call, function, load, machine, run, store, var

from halide_py.codegen_c import generate
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.module import LoweredModule
from halide_py.ir.types import BOOL, INT32, BFloat, Float, Type, UInt
from halide_py.reference.storage import numpy_type

F32, U8, U16 = Float(32), UInt(8), UInt(16)
WIDTHS = [(width, frozenset({"sse2", "ssse3", "sse4_1", "avx", "avx2"} if width == 32 else {"sse2"} if width == 16 else
                            {"sse2", "ssse3", "sse4_1", "avx", "avx2", "avx512f", "avx512bw", "avx512vl"})) for width in (16, 32, 64)]


SHAPES = [(U8, 8, 4), (U8, 16, 21), (U8, 32, 16), (U8, 4, 6), (U16, 4, 16), (U16, 8, 6), (U16, 16, 8), (U16, 32, 2), (F32, 2, 4), (F32, 8, 3),
          (F32, 8, 8), (F32, 16, 6), (Float(64), 2, 2), (Float(64), 8, 5)]  # element type, lanes of a column, columns


Turn = Callable[[Type, int, int, n.Expr], n.Stmt]


def column(k: int, lanes: int, stride: n.Expr) -> n.Expr:
    return n.Ramp(b.add(var("first"), b.i32(k)), stride, lanes)


def loads(t: Type, lanes: int, width: int, stride: n.Expr) -> n.Stmt:
    """out[k, i] = a[first + k + stride * i]."""
    lane = [n.Load(t.with_lanes(lanes), "a", column(k, lanes, stride), b.true(lanes)) for k in range(width)]
    return b.block(store("out", value, k * lanes) for k, value in enumerate(lane))


def stores(t: Type, lanes: int, width: int, stride: n.Expr) -> n.Stmt:
    """out[first + k + stride * i] = a[k, i], columns in an order of their own."""
    order = [*range(1, width, 2), *range(0, width, 2)]
    return b.block(n.Store("out", load(t, "a", k * lanes, lanes), column(k, lanes, stride), b.true(lanes)) for k in order)


@pytest.mark.parametrize("turn", [loads, stores])
@pytest.mark.parametrize(("vector_bytes", "features"), WIDTHS)
def test_every_shape(turn: Turn, vector_bytes: int, features: frozenset[str]) -> None:
    """Strides of 21 elements, more than the columns that are taken, and the gaps between rows are left alone."""
    stride, strided = 21, "a.stride.1" if turn is loads else "out.stride.1"
    cases = [(*shape, constant) for shape in SHAPES for constant in (True, False)]
    functions = []
    for k, (t, lanes, width, constant) in enumerate(cases):
        body = turn(t, lanes, width, b.i32(stride) if constant else var(strided))
        functions.append(function(f"f{k}", body, {"a": t}, {"out": t}, {"first": INT32, strided: INT32}).functions[0])
    library = build(generate(LoweredModule("f", functions), machine(vector_bytes, features)))
    for k, (t, lanes, width, _) in enumerate(cases):
        places = 1 + np.arange(width)[:, None] + stride * np.arange(lanes)
        memory, dense = np.zeros(places.max() + 2, numpy_type(t)), (np.arange(lanes * width) % 251).astype(numpy_type(t))
        want = memory.copy()
        want[places] = dense.reshape(width, lanes)
        given, out = (want, np.zeros_like(dense)) if turn is loads else (dense, memory)
        call(library, f"f{k}", [given, ctypes.c_int32(1), ctypes.c_int32(stride), out])
        np.testing.assert_array_equal(out, dense if turn is loads else want, err_msg=str(cases[k]))


@pytest.mark.parametrize("t", [U8, U16, F32, BOOL, BFloat(16)])
@pytest.mark.parametrize(("vector_bytes", "features"), WIDTHS)
def test_nested_ramps(t: Type, vector_bytes: int, features: frozenset[str]) -> None:
    """One vector is a block: each lane of its outer ramp is a column."""
    inner, outer, size = 8, 8, 9
    index = n.Ramp(n.Ramp(var("first"), var("out.stride.1"), inner), b.const(INT32.with_lanes(inner), 1), outer)
    value, whole = load(t, "a", 0, inner * outer), b.true(inner * outer)
    turned = n.Load(t.with_lanes(inner * outer), "out", index, whole)
    module = function("f", b.block([n.Store("out", value, index, whole), store("back", turned, 0)]), {"a": t}, {"out": t, "back": t},
                      {"first": INT32, "out.stride.1": INT32})
    store_type = np.uint16 if t is BFloat(16) else numpy_type(t)
    a = (np.arange(inner * outer) % (2 if t.is_bool() else 251)).astype(store_type)
    out, back = np.zeros(2 + size * inner, store_type), np.zeros_like(a)
    library = build(generate(module, machine(vector_bytes, features)))
    call(library, "f", [a, ctypes.c_int32(1), ctypes.c_int32(size), out, back])
    want = np.zeros_like(out)
    want[1 + np.arange(outer)[:, None] + size * np.arange(inner)] = a.reshape(outer, inner)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(back, a)


def test_stores_at_the_same_places_keep_their_order() -> None:
    """Of a stride that may be anything, and of one shorter than the block: the last store wins."""
    for stride, name in ((var("step"), "step"), (b.i32(2), "unused"), (b.i32(-5), "unused"), (b.i32(0), "unused")):
        module = function("f", b.block(n.Store("out", load(F32, "a", 8 * k, 8), n.Ramp(b.i32(40 + k), stride, 8), b.true(8)) for k in range(8)),
                          {"a": F32}, {"out": F32}, {name: INT32})
        a, out, want = np.arange(64, dtype=np.float32) + 1, np.zeros(100, np.float32), np.zeros(100, np.float32)
        step = b.as_int(stride)
        run(module, [a, ctypes.c_int32(3), out])
        for k in range(8):
            for i in range(8):
                want[40 + k + (3 if step is None else step) * i] = a[8 * k + i]
        np.testing.assert_array_equal(out, want)


def test_stores_of_what_they_overwrite() -> None:
    """A transpose in place: each column is read after the one before it was written."""
    index = [n.Ramp(b.i32(k), b.i32(8), 8) for k in range(8)]
    module = function("f", b.block(n.Store("out", load(F32, "out", 8 * k, 8), index[k], b.true(8)) for k in range(8)), {}, {"out": F32})
    out = np.arange(64, dtype=np.float32)
    want = out.copy()
    for k in range(8):
        want[k::8] = want[8 * k:8 * k + 8].copy()
    run(module, [out])
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("turn", [loads, stores])
def test_text_has_whole_rows(turn: Turn) -> None:
    strided = "a.stride.1" if turn is loads else "out.stride.1"
    body = turn(U16, 8, 8, var(strided))
    text = generate(function("f", body, {"a": U16}, {"out": U16}, {"first": INT32, strided: INT32}), machine(*WIDTHS[1]))
    assert text.count("*(const u16x8u *)") == 8 and len(re.findall(r"^ *\*\(u16x8u \*\)", text, re.M)) == 8
    assert text.count("__builtin_shufflevector") == 24, "three rounds of eight"


def test_lone_columns_step_through_memory() -> None:
    """Where no neighbour is read a few pointers lead to all lanes: each index by itself takes a register."""
    value = n.Load(U8.with_lanes(16), "a", n.Ramp(var("first"), var("a.stride.1"), 16), b.true(16))
    module = function("f", store("out", value, 0), {"a": U8}, {"out": U8}, {"first": INT32, "a.stride.1": INT32})
    text = generate(module, machine(*WIDTHS[1]))
    assert text.count("uint8_t *a_at") == 4
    a, out = np.arange(256, dtype=np.uint8), np.zeros(16, np.uint8)
    run(module, [a, ctypes.c_int32(3), ctypes.c_int32(16), out])
    np.testing.assert_array_equal(out, a[3::16])

