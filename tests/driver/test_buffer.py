"""Buffer: sharing of memory, shapes, views, elements, what it refuses."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.nodes import sweep


def shape(b: hl.Buffer) -> list[tuple[int, int, int]]:
    return [(b.dim(d).min(), b.dim(d).extent(), b.dim(d).stride()) for d in range(b.dimensions())]


def counted() -> hl.Buffer:
    return hl.Buffer(np.arange(24, dtype=np.int32).reshape(2, 3, 4))


def test_shares_memory_both_ways() -> None:
    a = np.zeros((3, 5), np.int16)
    b = hl.Buffer(a, "named")
    a[2, 4] = 7
    b[1, 0] = 8
    assert b[4, 2] == 7 and a[0, 1] == 8 and b.name() == "named"
    assert np.shares_memory(np.asarray(b), a) and np.asarray(b).shape == (3, 5)
    assert not np.shares_memory(np.array(b), a)
    assert shape(hl.Buffer(a, "", False)) == [(0, 3, 5), (0, 5, 1)]
    assert b.numpy_view(reverse_axes=False).shape == (5, 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"])
def test_every_element_type(dtype: str) -> None:
    a = np.ones(4, dtype)
    b = hl.Buffer(a)
    assert np.asarray(b).dtype == a.dtype and b[3] == 1 and b.all_equal(1) and type(b[0]) is type(a[0].item())
    assert np.asarray(hl.Buffer(b.type(), [2])).dtype == a.dtype


def test_bfloat16_is_stored_as_bits() -> None:
    b = hl.Buffer(hl.BFloat(16), [3])
    b[0], b[1], b[2] = 1.0, 1 / 3, float("nan")
    assert b[0] == 1.0 and b[1] == 0.333984375 and b[2] != b[2]
    assert np.asarray(b).dtype == np.uint16 and np.asarray(b)[0] == 0x3F80


@pytest.mark.parametrize(("source", "error"), [
    ([1, 2], TypeError), (None, TypeError), (3, TypeError), (np.zeros(3, np.complex64), ValueError), (np.zeros(3, ">i4"), ValueError),
    (np.zeros(3, [("a", "u1"), ("b", "<i4")])["b"], ValueError), (np.array(["a"]), ValueError),
])
def test_what_cannot_be_wrapped(source: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        hl.Buffer(source)


def test_extents_must_fit_int32() -> None:
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (2**31,), (0,))
    with pytest.raises(ValueError, match="Out of range dimensions in buffer conversion"):
        hl.Buffer(huge)
    hl.Buffer(huge[:-1])


@pytest.mark.parametrize("args", [
    (hl.Int(32), [-1]), (hl.Int(32), 4), (hl.Int(32), [2, 2], [0, 0]), (hl.Int(32),), (hl.Handle(), [4]), (np.zeros(3), 5), (hl.Int(32), [4], [0], "n", 1),
    (hl.Int(32), [3.5]),
])
def test_bad_constructions(args: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, hl.CompileError)):
        hl.Buffer(*args)


def test_fresh_buffers() -> None:
    assert shape(hl.Buffer(hl.UInt(8), [7, 5, 3], [2, 0, 1])) == shape(hl.Buffer.make_interleaved(hl.UInt(8), 7, 5, 3)) == [(0, 7, 3), (0, 5, 21), (0, 3, 1)]
    assert shape(hl.Buffer(type=hl.Int(8), sizes=[2, 3], storage_order=[1, 0], name="k")) == [(0, 2, 3), (0, 3, 1)]
    src = hl.Buffer.make_interleaved(hl.UInt(8), 4, 5, 3).translated([1, 2])
    assert shape(hl.Buffer.make_with_shape_of(src)) == shape(src)
    s = hl.Buffer.make_scalar(hl.Float(32))
    s[()] = 2.5
    assert s[()] == 2.5 and s.dimensions() == 0 and s.width() == 1


def test_repr() -> None:
    assert repr(hl.Buffer()) == "<undefined halide.Buffer>"
    assert str(hl.Buffer(hl.Int(32), [128, 256])) == "<halide.Buffer of type int32 shape:[[0,128,1],[0,256,128]]>"


def test_views_in_place_and_not() -> None:
    b = counted()
    assert shape(b.cropped(0, 1, 2)) == [(1, 2, 1), (0, 3, 4), (0, 2, 12)] and b.cropped(0, 1, 2)[1, 0, 0] == 1
    assert shape(b.cropped([(1, 2), (2, 1)])) == [(1, 2, 1), (2, 1, 4), (0, 2, 12)]
    assert shape(b.sliced(1, 2)) == [(0, 4, 1), (0, 2, 12)] and b.sliced(1, 2)[3, 1] == 23
    assert shape(b.embedded(1, 7)) == [(0, 4, 1), (7, 1, 24), (0, 3, 4), (0, 2, 12)]
    assert shape(b.translated([5, -1])) == [(5, 4, 1), (-1, 3, 4), (0, 2, 12)] and b.translated(0, 5)[5, 0, 0] == 0
    assert shape(b.transposed(0, 2)) == shape(b.reverse_axes()) == [(0, 2, 12), (0, 3, 4), (0, 4, 1)]
    assert shape(b.transposed([2, 0, 1])) == [(0, 3, 4), (0, 2, 12), (0, 4, 1)]
    assert shape(b) == [(0, 4, 1), (0, 3, 4), (0, 2, 12)]
    b.crop(dimension=1, min=1, extent=1)
    b.slice(1)
    b.translate(0, 10)
    b.set_min([3])
    b.add_dimension()
    assert shape(b) == [(3, 4, 1), (0, 2, 12), (0, 1, 24)] and b[3, 1, 0] == 16
    assert (b.left(), b.right(), b.top(), b.bottom(), b.width(), b.height(), b.channels()) == (3, 6, 0, 1, 4, 2, 1)
    assert b.number_of_elements() == 8 and b.size_in_bytes() == 64 and b.contains([6, 1, 0]) and not b.contains([2])


@pytest.mark.parametrize("change", [
    lambda b: b.crop(0, -1, 2), lambda b: b.crop(0, 1, 20), lambda b: b.crop(7, 0, 1), lambda b: b.slice(1, 9), lambda b: b.slice(9), lambda b: b.embed(9),
    lambda b: b.translate([1, 2, 3, 4]), lambda b: b.transpose([0, 0, 1]), lambda b: b.transpose(0, 5), lambda b: b.set_min([1, 2, 3, 4]), lambda b: b.dim(3),
    lambda b: b.copy_from(hl.Buffer(hl.Int(16), [1, 1, 1])), lambda b: b.set_min([2**31 - 3]), lambda b: b.translate(1, -2**31 - 1), lambda b: b.set_min([1.5]),
    lambda b: b.embed(0, 2**31),
])
def test_bad_views_leave_the_buffer_alone(change: Any) -> None:
    b = counted()
    with pytest.raises((IndexError, ValueError, TypeError, hl.CompileError)):
        change(b)
    assert shape(b) == [(0, 4, 1), (0, 3, 4), (0, 2, 12)]


def test_subscripts() -> None:
    b = hl.Buffer(hl.Int(16), [4, 6])
    for place, message in (((-1, 2), "index -1 is out of bounds for axis 0 with min=0, extent=4"), ((1, 6), "index 6 is out of bounds for axis 1 with min=0")):
        with pytest.raises(IndexError, match=message):
            b[place]
        with pytest.raises(IndexError, match=message):
            b[place] = 1
    with pytest.raises(ValueError, match="Incorrect number of dimensions"):
        b[1]
    with pytest.raises(TypeError):
        b[0.5, 0]
    assert b[[np.int64(1), 2]] == 0
    assert list(hl.Buffer(np.arange(3))) == [0, 1, 2]
    with pytest.raises(TypeError, match="dimensions"):
        list(b)


@pytest.mark.parametrize(("dtype", "value", "error"), [
    ("uint8", 256, OverflowError), ("uint8", -1, OverflowError), ("int64", 2**63, OverflowError), ("int32", 1.0, TypeError), ("float32", "x", TypeError),
    ("int8", None, TypeError),
])
def test_elements_that_do_not_fit(dtype: str, value: Any, error: type[Exception]) -> None:
    b = hl.Buffer(np.full(2, 9, dtype))
    for attempt in (lambda: b.__setitem__(0, value), lambda: b.fill(value), lambda: b.all_equal(value)):
        with pytest.raises(error, match="uint8|int|float32"):
            attempt()
    assert b.all_equal(9)


def test_for_each_element_runs_over_coordinates() -> None:
    seen: list[list[int]] = []
    hl.Buffer(np.zeros((2, 2), np.uint8)).translated([5]).for_each_element(seen.append)
    assert seen == [[5, 0], [6, 0], [5, 1], [6, 1]]


def test_copies() -> None:
    b = counted().cropped(0, 1, 2)
    c = b.copy()
    b[1, 0, 0] = 99
    assert shape(c) == [(1, 2, 1), (0, 3, 2), (0, 2, 6)] and c[1, 0, 0] == 1
    target = hl.Buffer(np.zeros((1, 2, 8), np.int32))
    target.copy_from(counted().translated([2]))
    assert np.asarray(target).tolist() == [[[0, 0, 0, 1, 2, 3, 0, 0], [0, 0, 4, 5, 6, 7, 0, 0]]]
    target.copy_from(counted().translated([100]))


@pytest.mark.parametrize("call", ["dimensions", "type", "width", "right", "number_of_elements", "size_in_bytes", "copy", "allocate"])
def test_undefined_buffers_say_so(call: str) -> None:
    with pytest.raises(hl.CompileError, match="[Uu]ndefined"):
        getattr(hl.Buffer(), call)()
    for use in (lambda b: b[0], lambda b: b.fill(0), lambda b: np.asarray(b), lambda b: b.dim(0)):
        with pytest.raises(hl.CompileError, match="undefined|Undefined"):
            use(hl.Buffer())


def test_bounds_queries_have_a_shape_and_no_memory() -> None:
    q = hl.Buffer.make_bounds_query(hl.UInt(8), [3, 4])
    q.set_min([7])
    assert q.defined() and shape(q) == [(7, 3, 1), (0, 4, 3)]
    with pytest.raises(hl.CompileError, match="bounds query"):
        q[7, 0]
    q.allocate()
    assert q[9, 3] == 0 and shape(q) == [(7, 3, 1), (0, 4, 3)]
    q.deallocate()
    assert q.defined() and q.width() == 3


def test_devices_are_refused() -> None:
    b = counted()
    assert not b.has_device_allocation() and b.copy_to_host() == b.device_free() == b.device_sync() == 0
    b.set_host_dirty()
    assert b.host_dirty() and not b.device_dirty()
    with pytest.raises(hl.HalideError, match="no GPU feature"):
        b.copy_to_device()


def test_memory_lives_as_long_as_something_uses_it() -> None:
    a = np.arange(12)
    alive = weakref.ref(a)
    view = hl.Buffer(hl.Buffer(a)).cropped(0, 2, 3)
    array = np.asarray(view)
    del a, view
    assert alive() is not None and array.tolist() == [2, 3, 4]
    del array
    assert alive() is None


def test_use_in_an_expression_makes_no_cycle() -> None:
    x = hl.Var("x")
    gc.collect()
    gc.disable()
    try:
        a = np.arange(12)
        alive = weakref.ref(a)
        b = hl.Buffer(a)
        assert repr(b[x]).startswith("<halide.Expr") and b.param.buffer[3] == 3
        from_param = b.param
        assert b.param is from_param and hl.Buffer(b).param is not from_param
        del a, b, from_param
        sweep()
        assert alive() is None
    finally:
        gc.enable()


def test_a_buffer_named_like_a_func() -> None:
    x = hl.Var("x")
    b = hl.Buffer(np.arange(10, dtype=np.int32), "same_name")
    f = hl.Func("same_name")
    f[x] = b[x + 2] * 2
    g = hl.Func("g")
    g[x] = f[x] + b[x]
    f.compute_root()
    assert list(g.realize([3])) == [4, 7, 10]


def test_expressions_index_buffers() -> None:
    x, y = hl.Var("x"), hl.Var("y")
    b = hl.Buffer(np.arange(12, dtype=np.int32).reshape(3, 4), "b")
    f = hl.Func("f")
    f[x, y] = b[x, y] + b[3 - x, 0]
    assert f.realize([4, 3])[1, 2] == 9 + 2
    with pytest.raises(hl.HalideError, match="b"):
        b[x]


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a[::-1, ::-1], lambda a: a[:, ::2], np.asfortranarray, lambda a: np.broadcast_to(a[:1], a.shape)])
def test_inputs_of_any_layout(make: Any) -> None:
    x, y = hl.Var("x"), hl.Var("y")
    a = make(np.arange(24, dtype=np.int32).reshape(4, 6))
    a.flags.writeable = False
    b = hl.Buffer(a)
    f = hl.Func("f")
    f[x, y] = b[x, y] * 2
    np.testing.assert_array_equal(np.asarray(f.realize([a.shape[1], a.shape[0]])), a * 2)
    with pytest.raises(ValueError, match="read-only"):
        f.realize(b)
    with pytest.raises(ValueError, match="read-only"):
        b.fill(0)


def test_a_buffer_that_changes_its_layout_after_a_pipeline_was_compiled() -> None:
    x, y = hl.Var("x"), hl.Var("y")
    a = np.arange(20, dtype=np.int32).reshape(5, 4)
    for change in (lambda b: b.transpose(0, 1), lambda b: b.crop([(1, 3), (1, 3)]), lambda b: b.set_min([1, 1])):
        b = hl.Buffer(a[:, ::2].repeat(2, 1))
        f = hl.Func("f")
        f[x, y] = b[x, y] * 2
        f.vectorize(x, 2)
        assert f.realize([4, 4])[3, 2] == b[3, 2] * 2
        change(b)
        out = hl.Buffer(hl.Int(32), [3, 3])
        out.set_min([1, 1])
        f.realize(out)
        assert all(out[i, j] == b[i, j] * 2 for i in (1, 2, 3) for j in (1, 2, 3))
