"""Loads and stores of every shape: right values, nothing touched outside, and the text has the form that is fast."""

from __future__ import annotations

import mmap
import re

import numpy as np
import pytest
from c_run import build, call, function, load, loop, machine, ramp, run, store, var

import halide_py as hl
from halide_py.codegen_c import generate
from halide_py.codegen_c.allocations import stack_elements
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.module import LoweredModule
from halide_py.ir.types import BOOL, INT32, Float, Int, Type, UInt
from halide_py.reference.storage import numpy_type

F32, U8, U16 = Float(32), UInt(8), UInt(16)


def text_of(module: LoweredModule, vector_bytes: int = 32) -> str:
    return generate(module, machine(vector_bytes, frozenset(["sse2", "ssse3", "sse4_1", "avx", "avx2", "fma"])))


def numbers(t: Type, count: int) -> np.ndarray:
    return (np.arange(count) * 7 + 3).astype(numpy_type(t))


@pytest.mark.parametrize("t", [U8, U16, F32, Float(64)])
@pytest.mark.parametrize("stride", [2, 3, 4, -1, -2, 5, 0])
@pytest.mark.parametrize("lanes", [8, 32, 6])
def test_strided_load(t: Type, stride: int, lanes: int) -> None:
    """The buffer ends with the last element: the sanitizer's place is taken by a page boundary below."""
    first = -stride * (lanes - 1) if stride < 0 else 0
    size = abs(stride) * (lanes - 1) + 1
    module = function("f", store("out", load(t, "a", first, lanes, stride), 0), {"a": t}, {"out": t})
    a, out = numbers(t, size), np.zeros(lanes, numpy_type(t))
    run(module, [a, out])
    np.testing.assert_array_equal(out, a[first + stride * np.arange(lanes)])


def test_strided_load_at_the_end_of_a_page() -> None:
    """No byte beyond the last element is read, whatever the element and stride."""

    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(memory, np.uint8)
    assert len(whole) == 2 * page
    cases = [(t, stride, lanes) for t in (U8, U16, F32) for stride in (2, 3, 4) for lanes in (8, 16, 32)]
    functions = [function(f"f{k}", store("out", load(t, "a", 0, lanes, stride), 0), {"a": t}, {"out": t}).functions[0] for k, (t, stride, lanes) in enumerate(cases)]
    text = generate(LoweredModule("f", functions), machine(32))
    for k, (t, stride, lanes) in enumerate(cases):
        body = text[text.index(f"int f{k}_body"):]
        body = body[:body.index("\n}")]
        last = stride * (lanes - 1)
        for kind, count, offset in re.findall(r"const [iuf](\d+)x(\d+)u \*\)\(a\w*(?: \+ (\d+))?\)", body):
            assert int(offset or 0) + int(count) - 1 <= last, (t, stride, lanes, kind)
    library = build(text)
    for k, (t, stride, lanes) in enumerate(cases):
        a, out = numbers(t, stride * (lanes - 1) + 1), np.zeros(lanes, numpy_type(t))
        call(library, f"f{k}", [a, out])
        np.testing.assert_array_equal(out, a[::stride])


@pytest.mark.parametrize("t", [U8, U16, F32])
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_interleaved_load_and_store(t: Type, channels: int, lanes: int) -> None:
    """out[x, c] = in[x, c] + 1 with channels interleaved: dense loads, shuffles, dense stores."""
    x = n.Mul(var("x"), b.i32(lanes * channels))
    one = b.const(t.with_lanes(lanes), 1)
    body = b.block(store("out", n.Add(load(t, "a", n.Add(x, b.i32(c)), lanes, channels), one), n.Add(x, b.i32(c)), channels) for c in range(channels))
    module = function("f", loop("x", 3, body), {"a": t}, {"out": t})
    a = numbers(t, 3 * lanes * channels)
    out = np.zeros_like(a)
    run(module, [a, out])
    np.testing.assert_array_equal(out, a + a.dtype.type(1))
    text = text_of(module)
    assert "[" not in "".join(re.findall(r"^ {8}.*$", text, re.M)), "an element access in the loop"


def test_downsampling_loads_share_vectors() -> None:
    """in[2x - 1], in[2x], in[2x + 1], in[2x + 2]: three dense loads, not eight."""
    x = n.Mul(var("x"), b.i32(16))
    terms = [load(F32, "a", n.Add(x, b.i32(k)), 8, 2) for k in range(4)]
    value = n.Add(n.Add(n.Add(terms[0], terms[1]), terms[2]), terms[3])
    module = function("f", loop("x", 3, store("out", value, n.Mul(var("x"), b.i32(8)))), {"a": F32}, {"out": F32})
    assert text_of(module).count("*(const f32x8u *)") == 3
    a, out = numbers(F32, 60), np.zeros(24, np.float32)
    run(module, [a, out])
    np.testing.assert_array_equal(out, sum(a[k:k + 48:2] for k in range(4)))


def test_blur_is_dense() -> None:
    x = n.Mul(var("x"), b.i32(16))
    terms = [load(U16, "a", n.Add(x, b.i32(k)), 16) for k in range(3)]
    value = n.Div(n.Add(n.Add(terms[0], terms[1]), terms[2]), b.const(U16.with_lanes(16), 3))
    module = function("f", loop("x", var("w"), store("out", value, x)), {"a": U16}, {"out": U16}, {"w": INT32})
    text = text_of(module)
    assert text.count("*(const u16x16u *)") == 3 and "/ (uint16_t)3" in text and "[" not in "".join(re.findall(r"^ {8}.*$", text, re.M))


@pytest.mark.parametrize("t", [U8, U16, Int(32), F32, Float(64), BOOL])
@pytest.mark.parametrize("lanes", [1, 8, 16, 5])
def test_predicated(t: Type, lanes: int) -> None:
    """Lanes whose predicate is false are neither read nor written."""
    limit = var("limit")
    inside = n.LT(ramp(0, lanes), b.broadcast(limit, lanes)) if lanes > 1 else n.LT(b.i32(0), limit)
    value = n.Load(t.with_lanes(lanes), "a", ramp(0, lanes), inside)
    module = function("f", n.Store("out", value, ramp(0, lanes), inside), {"a": t}, {"out": t}, {"limit": INT32})
    library = build(generate(module, machine(32)))
    a = numbers(t, lanes)
    for k in range(lanes + 1):
        out = np.zeros(lanes, a.dtype)
        call(library, "f", [a[:k].copy() if k else a, np.ctypeslib.ctypes.c_int32(k), out])
        np.testing.assert_array_equal(out[:k], a[:k])
        assert not out[k:].any()


@pytest.mark.parametrize("t", [U8, F32, BOOL])
def test_gather_and_scatter(t: Type) -> None:
    index = load(INT32, "i", 0, 16)
    gather = n.Load(t.with_lanes(16), "a", index, b.true(16))
    module = function("f", n.Store("out", gather, n.Sub(b.const(INT32.with_lanes(16), 15), index), b.true(16)), {"a": t, "i": INT32}, {"out": t})
    a, i, out = numbers(t, 16), np.random.default_rng(0).permutation(16).astype(np.int32), np.zeros(16, numpy_type(t))
    run(module, [a, i, out])
    np.testing.assert_array_equal(out, a[::-1])


def test_block_of_rows() -> None:
    """A 4 x 8 block: four dense loads and stores."""
    index = n.Ramp(ramp(3, 8), b.const(INT32.with_lanes(8), 20), 4)
    module = function("f", n.Store("out", n.Load(F32.with_lanes(32), "a", index, b.true(32)), index, b.true(32)), {"a": F32}, {"out": F32})
    assert text_of(module).count("*(const f32x8u *)") == 4
    a, out = numbers(F32, 100), np.zeros(100, np.float32)
    run(module, [a, out])
    want = np.zeros((5, 20), np.float32)
    want[:4, 3:11] = a.reshape(5, 20)[:4, 3:11]
    np.testing.assert_array_equal(out, want.ravel())


def test_rows_of_strided_loads() -> None:
    """A block whose rows are strided, also a transposed one, reads right values and nothing outside: its rows lie on different lines."""
    cases = [(t, inner, stride, rows, step) for t in (U8, U16, F32) for inner, stride, rows, step in
             [(8, 4, 4, 1), (4, 4, 8, 1), (8, 2, 4, 40), (4, 3, 4, 12), (16, 2, 2, 1), (2, 4, 4, -1), (8, 2, 2, 16)]]
    functions = []
    for k, (t, inner, stride, rows, step) in enumerate(cases):
        index = n.Ramp(ramp(-min(step, 0) * (rows - 1), inner, stride), b.const(INT32.with_lanes(inner), step), rows)
        value = n.Load(t.with_lanes(inner * rows), "a", index, b.true(inner * rows))
        functions.append(function(f"f{k}", store("out", value, 0), {"a": t}, {"out": t}).functions[0])
    text = generate(LoweredModule("f", functions), machine(32))
    library = build(text)
    for k, (t, inner, stride, rows, step) in enumerate(cases):
        at = -min(step, 0) * (rows - 1) + (np.arange(rows)[:, None] * step + np.arange(inner) * stride).ravel()
        body = text[text.index(f"int f{k}_body"):]
        for _, count, offset in re.findall(r"const [iuf](\d+)x(\d+)u \*\)\(a\w*(?: \+ (\d+))?\)", body[:body.index("\n}")]):
            assert int(offset or 0) + int(count) - 1 <= at.max(), cases[k]
        a, out = numbers(t, at.max() + 1), np.zeros(inner * rows, numpy_type(t))
        call(library, f"f{k}", [a, out])
        np.testing.assert_array_equal(out, a[at], err_msg=str(cases[k]))


def test_load_after_store_is_read_again() -> None:
    """What was loaded is forgotten when its memory is written, kept when other memory is."""
    a = load(F32, "out", 0, 8)
    module = function("f", b.block([store("out", n.Add(a, b.const(F32.with_lanes(8), 1)), 0), store("out", n.Add(a, a), 8), store("out", n.Mul(a, a), 16)]),
                      {}, {"out": F32})
    out = np.arange(24, dtype=np.float32)
    run(module, [out])
    first = np.arange(8) + 1
    np.testing.assert_array_equal(out, np.concatenate([first, first * 2, first * first]))


def test_store_reads_all_lanes_first() -> None:
    """A shift by one in place: every lane is read before any is written."""
    module = function("f", store("out", load(F32, "out", 0, 32), 1), {}, {"out": F32})
    out = np.arange(33, dtype=np.float32)
    run(module, [out])
    np.testing.assert_array_equal(out, [0, *range(32)])


@pytest.mark.parametrize("t", [U8, F32, INT32])
@pytest.mark.parametrize("factor,lanes", [(2, 8), (2, 32), (3, 12), (4, 16), (2, 6)])
@pytest.mark.parametrize("first", [-7, -2, 0, 1, 5])
def test_enlarging_is_dense(t: Type, factor: int, lanes: int, first: int) -> None:
    """a[(x + first) / factor + 4]: dense loads, interleaved; nothing beyond the elements asked for."""
    index = b.add(n.Div(n.Ramp(b.add(var("x"), b.i32(first)), b.i32(1), lanes), n.Broadcast(b.i32(factor), lanes)), n.Broadcast(b.i32(4), lanes))
    body = loop("x", 3, store("out", n.Load(t.with_lanes(lanes), "a", index, b.true(lanes)), b.mul(var("x"), b.i32(lanes))))
    module = function("f", body, {"a": t}, {"out": t})
    assert lanes == 6 or not re.search(r"\[\w+\[", text_of(module))
    x = np.arange(3)[:, None] + first + np.arange(lanes)
    a, out = numbers(t, int((x // factor).max()) + 5), np.zeros(3 * lanes, numpy_type(t))
    run(module, [a, out])
    np.testing.assert_array_equal(out, a[x // factor + 4].ravel())


def test_the_size_of_an_allocation_is_counted_beyond_int32() -> None:
    """2^32 elements are 0 in int32, which would be an array of one element on the stack."""
    sizes = tuple(b.i32(size) for size in (1 << 12, 1 << 12, 1 << 8))
    large = n.Allocate("big", U8, n.MemoryType.Auto, sizes, b.TRUE, 0, b.NOTHING)
    assert stack_elements(large) is None
    assert stack_elements(n.Allocate("small", U8, n.MemoryType.Auto, sizes[:1], b.TRUE, 8, b.NOTHING)) == 4096 + 8


@pytest.mark.parametrize("lanes", [4, 16, 32])
@pytest.mark.parametrize("t", [hl.UInt(8), hl.Int(8), hl.UInt(16), hl.Int(16)])
def test_every_second_element_widened(t: hl.Type, lanes: int) -> None:
    """Both of each pair, and one of them alone, beginning at an even and at an odd place."""
    x, values = hl.Var("x"), (np.arange(131) * 1021).astype(numpy_type(t))
    source, funcs, expected = hl.Buffer(values), [], []
    for first in (0, 1):
        even, odd = values[first:first + 128:2].astype(np.int64), values[first + 1:first + 129:2].astype(np.int64)
        pairs, alone = hl.Func("pairs"), hl.Func("alone")
        pairs[x] = hl.i64(source[2 * x + first]) * 3 + hl.i32(source[2 * x + first + 1])
        alone[x] = hl.i64(hl.f32(source[2 * x + first]))
        funcs += [pairs.vectorize(x, lanes), alone.vectorize(x, lanes)]
        expected += [even * 3 + odd, even]
    for got, wanted in zip(hl.Pipeline(funcs).realize([64]), expected):
        np.testing.assert_array_equal(np.array(got), wanted)
