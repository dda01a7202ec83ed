"""Pipelines and Callables: all forms of realize, bounds queries, arguments, recompilation, threads, messages."""

from __future__ import annotations

import ctypes
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.driver import compile as compiling
from halide_py.driver._ffi import ffi

x, y = hl.Var("x"), hl.Var("y")


def doubled(name: str = "doubled") -> tuple[hl.Func, hl.ImageParam]:
    p = hl.ImageParam(hl.Int(32), 2, "p_" + name)
    f = hl.Func(name)
    f[x, y] = p[x, y] * 2
    return f, p


def several() -> hl.Pipeline:
    f, g = hl.Func("first"), hl.Func("second")
    f[x] = x * 3
    g[x] = (x, hl.f32(x) / 2)
    return hl.Pipeline([f, g])


def test_forms_of_realize() -> None:
    f = hl.Func("forms")
    f[x, y] = x + 10 * y
    want = np.arange(4) + 10 * np.arange(3)[:, None]
    array, buffer, listed = np.zeros((3, 4), np.int32), hl.Buffer(hl.Int(32), [4, 3]), hl.Buffer(hl.Int(32), [4, 3])
    assert f.realize(buffer) is f.realize([listed]) is f.realize(array) is f.realize([np.zeros((3, 4), np.int32)]) is None
    for got in (f.realize([4, 3]), f.realize((4, np.int64(3))), f.realize([np.int64(4), np.int32(3)]), f.realize(sizes=[4, 3]), array, buffer, listed):
        np.testing.assert_array_equal(np.asarray(got), want)
    offset = hl.Buffer(np.zeros((3, 4), np.int32)).translated([100, -1])
    f.realize(offset)
    assert offset[102, 1] == 112


def test_several_outputs() -> None:
    p = several()
    a, b, c = p.realize([3])
    assert list(a) == [0, 3, 6] and list(b) == [0, 1, 2] and list(c) == [0.0, 0.5, 1.0]
    out = [np.zeros(5, np.int32), np.zeros(5, np.int32), np.zeros(5, np.float32)]
    p.realize(out)
    assert out[0][4] == 12 and out[2][4] == 2.0
    assert [f.name() for f in p.outputs()] == [p.get_func(i).name() for i in range(2)] and repr(p).startswith("<halide.Pipeline ['first")
    for bad in (out[:2], out[0]):
        with pytest.raises(hl.CompileError, match="pipeline produces 3 result"):
            p.realize(bad)
    with pytest.raises(hl.CompileError, match="only 2 functions"):
        p.get_func(5)


def test_outputs_that_grow() -> None:
    """Two outputs of which one reads the other, whose loops compute more for whatever is asked: no size is large enough."""
    x, y, v, vi = (hl.Var(name) for name in ("x", "y", "v", "vi"))
    f, g = hl.Func("rounded"), hl.Func("turned")
    f[x, y] = x * 3 + y
    g[x, y] = f[y, x]
    f.fuse(x, y, v).split(v, v, vi, 4, hl.TailStrategy.RoundUp)
    with pytest.raises(hl.PipelineError, match=r"realize\(\[40, 19\]\) finds no size for the outputs.*GuardWithIf"):
        hl.Pipeline([g, f]).realize([40, 19])


@pytest.mark.parametrize(("dst", "error", "text"), [
    ([4], hl.CompileError, "defined with 2 dimensions, but realize() is requesting a realization with 1"), (4, TypeError, "a list of sizes"),
    ("ab", TypeError, "a list of sizes"), ([4.5, 2], TypeError, "integers"), ([-1, 4], hl.PipelineError, "dimension 0 is negative (-1)"),
    (np.zeros((4, 4), np.int16), hl.PipelineError, "has type int32 but type of the buffer passed in is int16"),
    (np.zeros(4, np.int32), hl.PipelineError, "exactly 2 dimensions, but the buffer passed in has 1"),
    ([2**31, 1], hl.CompileError, "size 2147483648 in dimension 0, which exceeds the maximum"),
    ([40, 40], hl.PipelineError, "is accessed at 39, which is beyond the max (3) in dimension 0"),
])
def test_bad_outputs(dst: Any, error: type[Exception], text: str) -> None:
    f, p = doubled("bad_outputs")
    p.set(hl.Buffer(np.zeros((4, 4), np.int32)))
    for _ in range(2):
        with pytest.raises(error) as e:
            f.realize(dst)
        assert text in str(e.value)
        if error is hl.PipelineError:
            assert "bad_outputs" in str(e.value)
    assert f.realize([4, 4])[0, 0] == 0


def test_undefined() -> None:
    with pytest.raises(hl.CompileError, match="undefined"):
        hl.Pipeline().realize([3])
    with pytest.raises(hl.CompileError, match="undefined Func nothing"):
        hl.Func("nothing").realize([3])
    with pytest.raises(TypeError, match="takes Funcs"):
        hl.Pipeline(3)
    assert not hl.Pipeline().defined() and repr(hl.Pipeline()) == "<halide.Pipeline Pipeline()>"
    f = hl.Func("twice")
    f[x] = x
    with pytest.raises(hl.CompileError, match="twice"):
        hl.Pipeline([f, f]).realize([3])


def test_inputs_must_be_set() -> None:
    f, p = doubled("unset")
    k = hl.Param(hl.Int(32), "unset_k")
    f2 = hl.Func("unset2")
    f2[x] = x + k
    for _ in range(2):
        with pytest.raises(hl.CompileError, match="Buffer argument p_unset is nullptr"):
            f.realize([2, 2])
        with pytest.raises(hl.CompileError, match="unset_k does not have a valid scalar value"):
            f2.realize([2])
    p.set(hl.Buffer(np.ones((2, 2), np.int32)))
    k.set(4)
    assert f.realize([2, 2])[1, 1] == 2 and f2.realize([2])[1] == 5


def test_a_schedule_that_computes_more_is_cropped() -> None:
    f = hl.Func("rounded")
    f[x] = x * 2
    f.vectorize(x, 8, hl.TailStrategy.RoundUp)
    out = f.realize([13])
    assert out.width() == 13 and list(out) == [2 * i for i in range(13)]
    with pytest.raises(hl.PipelineError, match="rounded"):
        f.realize(hl.Buffer(hl.Int(32), [13]))


def test_sizes_asked_for_again() -> None:
    """What the schedule needs is remembered, outputs are not: by sizes, Params and the inputs' shapes."""
    f, image, k = hl.Func("asked"), hl.ImageParam(hl.Int(32), 1, "asked_input"), hl.Param(hl.Int(32), "asked_k")
    f[x] = image[x] + k
    f.vectorize(x, 8, hl.TailStrategy.RoundUp)
    image.set(hl.Buffer(np.arange(24, dtype=np.int32)))
    results = []
    for size, value in ((16, 1), (16, 2), (13, 3), (16, 4), (16, 4), (13, 4), (24, 5)):
        k.set(value)
        results.append((size, value, f.realize([size])))
    for size, value, out in results:
        assert out.width() == size and list(out) == [i + value for i in range(size)]
    image.set(hl.Buffer(np.arange(16, dtype=np.int32)))
    with pytest.raises(hl.PipelineError, match="asked_input is accessed at 23"):
        f.realize([24])
    empty = f.realize([0])
    assert empty.width() == 0


def test_runs_again_without_compiling_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = compiling.compile_pipeline
    monkeypatch.setattr(compiling, "compile_pipeline", lambda *a: (compiled.append("x"), real(*a))[1])
    f, p = doubled("again")
    p.set(hl.Buffer(np.ones((4, 4), np.int32)))
    out = hl.Buffer(hl.Int(32), [4, 4])
    for _ in range(3):
        f.realize(out)
        f.realize([4, 4])
    assert len(compiled) == 1
    hl.Func("elsewhere")[x] = x  # an edit, but not of this pipeline
    f.realize(out)
    assert len(compiled) == 1
    f.vectorize(x, 4)
    f.realize(out)
    assert len(compiled) == 2
    f.output_buffer().dim(0).set_min(1)
    with pytest.raises(hl.PipelineError, match="beyond the max"):
        f.realize(out)
    assert len(compiled) == 3
    f.pipeline().invalidate_cache()
    with pytest.raises(hl.PipelineError, match="beyond the max"):
        f.realize(out)
    assert len(compiled) == 4


def test_repeated_runs_see_new_inputs_and_shapes() -> None:
    f, p = doubled("fresh")
    k = hl.Param(hl.Float(16), "fresh_k", 1.5)
    g = hl.Func("fresh_g")
    g[x, y] = hl.f32(f[x, y]) + hl.f32(k)
    out = hl.Buffer(hl.Float(32), [2, 2])
    data = np.ones((4, 4), np.int32)
    p.set(hl.Buffer(data))
    g.realize(out)
    assert out[1, 1] == 3.5
    data[1, 1] = 5
    k.set(0.25)
    g.realize(out)
    assert out[1, 1] == 10.25
    p.set(hl.Buffer(np.full((4, 4), 7, np.int32)))
    g.realize(out)
    assert out[1, 1] == 14.25
    p.get().translate(0, 10)
    with pytest.raises(hl.PipelineError, match="accessed at"):
        g.realize(out)
    out.translate(0, 10)
    g.realize(out)
    assert out[11, 1] == 14.25


def test_infer_input_bounds() -> None:
    p = hl.ImageParam(hl.UInt(8), 2, "inferred")
    f = hl.Func("infers")
    f[x, y] = p[x + 1, y + 2] + p[x, y]
    for dst, extents in (([10, 20], (11, 22)), (hl.Buffer(hl.UInt(8), [3, 3]), (4, 5)), ([hl.Buffer(hl.UInt(8), [5, 3])], (6, 5))):
        p.reset()
        f.infer_input_bounds(dst)
        assert (p.get().width(), p.get().height()) == extents and p.get().all_equal(0)
    p.get().fill(1)
    assert f.realize([5, 3]).all_equal(2)


def test_constraints_that_take_several_passes() -> None:
    p = hl.ImageParam(hl.Float(32), 2, "multipass")
    f = hl.Func("multi")
    f[x, y] = p[x + 1, y + 1] + p[x - 1, y - 1]
    f[x, y] += 3.0
    f.update().vectorize(x, 4)
    o = f.output_buffer()
    p.dim(0).set_bounds(min=p.dim(1).min() - 5, extent=p.dim(1).extent() + o.dim(0).extent())
    o.dim(0).set_bounds(min=0, extent=hl.select(o.dim(0).extent() < 22, o.dim(0).extent() + 1, o.dim(0).extent()))
    query = hl.Buffer.make_bounds_query(type=hl.Float(32), sizes=[7, 8])
    query.set_min([2, 2])
    f.infer_input_bounds(query)
    got = p.get()
    assert [(b.dim(d).min(), b.dim(d).extent()) for b in (got, query) for d in range(2)] == [(-4, 34), (1, 10), (0, 24), (2, 8)]


def test_arguments_in_order_of_kind_and_name() -> None:
    b = hl.Buffer(np.zeros((4, 4), np.uint8), "arg_b")
    p, k, a = hl.ImageParam(hl.UInt(8), 2, "arg_p"), hl.Param(hl.UInt(8), "arg_k", 3), hl.Param(hl.Float(32), "arg_a", 1.0)
    f = hl.Func("args")
    f[x, y] = p[x, y] + b[x, y] + k + hl.u8(a)
    got = [(a.name, a.kind, a.type, a.dimensions) for a in f.infer_arguments()]
    assert got == [("arg_b", hl.ArgumentKind.InputBuffer, hl.UInt(8), 2), ("arg_p", hl.ArgumentKind.InputBuffer, hl.UInt(8), 2),
                   ("arg_a", hl.ArgumentKind.InputScalar, hl.Float(32), 0), ("arg_k", hl.ArgumentKind.InputScalar, hl.UInt(8), 0)]
    with pytest.raises(hl.CompileError, match=r"parameter arg_a, which was not found in the argument list(.|\n)*arg_p arg_k(.|\n)*arg_b arg_p arg_a arg_k"):
        f.compile_to_callable([p, k])
    with pytest.raises(hl.CompileError, match="given twice"):
        f.compile_to_callable([p, k, a, p])
    with pytest.raises(TypeError, match="must be a Param"):
        f.compile_to_callable([p, k, a, 3])
    run = f.compile_to_callable([a, hl.Argument(p), k])
    out = np.zeros((4, 4), np.uint8)
    b.fill(1)
    run(2.0, np.full((4, 4), 5, np.uint8), 4, out)
    assert (out == 12).all()
    given = f.compile_to_callable([b, p, k, a])
    given(np.full((4, 4), 9, np.uint8), np.zeros((4, 4), np.uint8), 0, 0, out)
    assert (out == 9).all()


@pytest.fixture(scope="module")
def callable_() -> Any:
    p, k, h = hl.ImageParam(hl.Int(32), 2, "image"), hl.Param(hl.UInt(8), "k"), hl.Param(hl.Float(16), "half")
    f = hl.Func("result")
    f[x, y] = p[x, y] + k + hl.i32(hl.f32(h) * 4)
    return f.compile_to_callable([p, k, h])


IMAGE, OUT = np.ones((3, 4), np.int32), np.zeros((3, 4), np.int32)


def test_callable_by_position_and_keyword(callable_: Any) -> None:
    for args, kwargs in (((IMAGE, 5, 0.25, OUT), {}), ((IMAGE, 5), {"result": OUT, "half": 0.25}),
                         ((), {"image": hl.Buffer(IMAGE), "k": np.uint8(5), "half": np.float32(0.25), "result": hl.Buffer(OUT)})):
        OUT[:] = 0
        assert callable_(*args, **kwargs) is None
        assert (OUT == 7).all()


@pytest.mark.parametrize(("args", "kwargs", "message"), [
    ((IMAGE,), {}, "Expected exactly 4 positional arguments, but saw 1."), ((IMAGE, 1, 1.0, OUT, OUT), {}, "Expected at most 4 positional arguments, but saw 5."),
    ((IMAGE, 1, 1.0), {"zz": OUT}, "Unknown argument 'zz' specified via keyword."), ((IMAGE, 1, 1.0, OUT), {"k": 1}, "Argument k specified multiple times."),
    ((IMAGE,), {"k": 1, "half": 1.0}, "was not specified by either positional or keyword argument."),
    (("happy", 1, 1.0, OUT), {}, "is not an instance of"), ((IMAGE, "happy", 1.0, OUT), {}, "is not an instance of"), ((IMAGE, 1, None, OUT), {}, "is not an instance of"),
    ((IMAGE, 1.5, 1.0, OUT), {}, "is not an instance of"), ((IMAGE, 300, 1.0, OUT), {}, "k: 300 does not fit uint8"), ((IMAGE, -1, 1.0, OUT), {}, "does not fit"),
    ((IMAGE, np.int64(300), 1.0, OUT), {}, "k: 300"), ((IMAGE, 1, 1.0, "x"), {}, "is not an instance of"),
    ((IMAGE.astype(np.int16), 1, 1.0, OUT), {}, " has type int32 but type of the buffer passed in is int16"),
    ((IMAGE[0], 1, 1.0, OUT), {}, "exactly 2 dimensions"), ((IMAGE[:2], 1, 1.0, OUT), {}, "accessed at 2, which is beyond the max (1) in dimension 1"),
])
def test_callable_refuses(callable_: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(hl.HalideError) as e:
        callable_(*args, **kwargs)
    assert message in str(e.value)
    callable_(IMAGE, 0, 0, OUT)


def test_callable_takes_layouts_one_after_the_other(callable_: Any) -> None:
    source = np.arange(12, dtype=np.int32).reshape(3, 4)
    for _ in range(2):
        for a in (source, source.copy(), source[1:, :], np.arange(12, 24, dtype=np.int32).reshape(3, 4), np.lib.stride_tricks.as_strided(source, (2, 4), (16, 4))):
            out = np.zeros(a.shape, np.int32)
            callable_(a, 0, 0.0, out)
            np.testing.assert_array_equal(out, a)
    frozen = np.zeros((3, 4), np.int32)
    frozen.flags.writeable = False
    callable_(frozen, 1, 0.0, OUT)
    with pytest.raises(hl.HalideError, match="read-only"):
        callable_(OUT, 1, 0.0, frozen)
    assert frozen.sum() == 0


def test_callable_bounds_query(callable_: Any) -> None:
    wanted, out = hl.Buffer.make_bounds_query(hl.Int(32), [1, 1]), hl.Buffer.make_bounds_query(hl.Int(32), [20, 10])
    callable_(wanted, 1, 1.0, out)
    assert (wanted.width(), wanted.height(), wanted.defined()) == (20, 10, True)


def test_requirements() -> None:
    k = hl.Param(hl.Int(32), "req_k", 3)
    f = hl.Func("requires")
    f[x] = x + k
    p = hl.Pipeline(f)
    p.add_requirement(k > 5, "too small:", k)
    with pytest.raises(hl.PipelineError, match=r"Requirement Failed.*too small: 3.*req_k > 5"):
        p.realize([3])
    k.set(6)
    assert p.realize([3])[0] == 6
    with pytest.raises(hl.CompileError, match="only on parameters"):
        p.add_requirement(x > 5)
    with pytest.raises(hl.CompileError, match="boolean"):
        p.add_requirement(k + 1)


def test_printing_goes_through_python(capsys: pytest.CaptureFixture[str]) -> None:
    f = hl.Func("printing")
    f[x] = hl.print(x * 2, "doubled")
    f.realize([2])
    assert capsys.readouterr().out == "0 doubled\n2 doubled\n"
    f.print_loop_nest()
    assert "for x" in capsys.readouterr().err


def test_one_pipeline_in_many_threads() -> None:
    p, k = hl.ImageParam(hl.Int(32), 1, "threads_p"), hl.Param(hl.Int(32), "threads_k")
    f = hl.Func("threads")
    f[x] = p[x] + k
    f.parallel(x, 64)
    run = f.compile_to_callable([p, k])

    def work(i: int) -> bool:
        a, out = np.full(1000, i, np.int32), np.zeros(1000, np.int32)
        for j in range(50):
            run(a, j, out)
            if not (out == i + j).all():
                return False
            with pytest.raises(hl.PipelineError, match=f"{1000 + i}"):
                run(a, j, np.zeros(1001 + i, np.int32))
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_compiling_in_several_threads() -> None:
    results: list[int] = []

    def work(i: int) -> None:
        f = hl.Func("concurrent")
        f[x] = x * i
        results.append(f.realize([5])[4])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [0, 4, 8, 12]


def test_dropped_pipelines_are_closed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        f = hl.Func("dropped")
        f[x] = x
        f.realize([2])
        run = f.compile_to_callable([])
        paths = [line for line in open("/proc/self/maps", encoding="ascii") if ".so" in line]  # noqa: SIM115
        del f, run
        after = [line for line in open("/proc/self/maps", encoding="ascii") if ".so" in line]  # noqa: SIM115
        assert len(after) < len(paths)
    finally:
        gc.enable()


def test_threads_setting() -> None:
    before = hl.get_num_threads()
    assert hl.set_num_threads(3) == before and hl.get_num_threads() == 3
    hl.set_num_threads(before)
    with pytest.raises(ValueError, match="negative"):
        hl.set_num_threads(-1)


def test_layout_of_the_buffer_struct() -> None:
    class Dimension(ctypes.Structure):
        _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]

    class Layout(ctypes.Structure):
        _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p), ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dimensions", ctypes.c_int32),
                    ("dim", ctypes.POINTER(Dimension)), ("padding", ctypes.c_void_p)]

    a = np.zeros((3, 4), np.float32)
    raw = hl.Buffer(a).translated(0, 5).raw
    c = Layout.from_address(int(ffi.cast("uintptr_t", raw.c)))
    assert ctypes.sizeof(Layout) == 56 and c.host == a.ctypes.data and (c.code, c.bits, c.lanes, c.dimensions) == (2, 32, 1, 2)
    assert [(c.dim[d].min, c.dim[d].extent, c.dim[d].stride) for d in range(2)] == [(5, 4, 1), (0, 3, 4)]


@pytest.mark.parametrize("divisor", [0.25, -0.5])
def test_a_float_index_divided_by_a_parameter_is_bounded(divisor: float) -> None:
    r, im, f, g = hl.Param(hl.Float(32)), hl.ImageParam(hl.Float(32), 1), hl.Func(), hl.Func()
    f[x] = x * 10
    g[x] = f[hl.i32(hl.clamp(im[x], 0.0, 1.0) / r)]
    f.compute_root()
    im.set(hl.Buffer(np.array([-3, 0.5, 7], np.float32)))
    r.set(divisor)
    assert np.array(g.realize([3])).tolist() == [0, int(0.5 / divisor) * 10, int(1 / divisor) * 10]
