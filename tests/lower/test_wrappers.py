"""in_ and clone_in: who calls what, one wrapper a caller, and that the values stay; copies between memories."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.errors import CompileError
from halide_py.ir import nodes as n
from halide_py.ir.traverse import nodes_of
from halide_py.lower.environment import environment

x, y = hl.Var("x"), hl.Var("y")


def callees(out: hl.Func) -> dict[str, list[str]]:
    return {f.name: sorted({c.name for d in f.stages() for c in nodes_of([*d.values, *d.args], n.Call) if c.call_type is n.CallType.Halide})
            for f in environment([out.function]).values()}


def chain() -> tuple[hl.Func, hl.Func, hl.Func]:
    f, g, h = hl.Func(), hl.Func(), hl.Func()
    f[x, y] = (x + 10 * y, x - y)
    g[x, y] = f[x, y][0] + f[x + 1, y][1]
    h[x, y] = g[x, y] * f[x, y][1]
    return f, g, h


def test_callers_call_their_wrappers() -> None:
    f, g, h = chain()
    wanted = np.array(h.realize([5, 4]))
    one, all_ = f.in_(g), f.in_()
    twice = one.in_(g)
    assert f.in_([g]).name() == one.name() and f.in_().name() == all_.name()
    f.compute_root()
    all_.compute_root().vectorize(x, 4)
    one.compute_root().parallel(y)
    twice.compute_at(g, y)
    g.compute_root()
    assert callees(h) == {f.name(): [], all_.name(): [f.name()], one.name(): [f.name()], twice.name(): [one.name()], g.name(): [twice.name()],
                          h.name(): sorted([all_.name(), g.name()])}
    assert list(callees(h)).index(all_.name()) < list(callees(h)).index(h.name())
    np.testing.assert_array_equal(np.array(h.realize([5, 4])), wanted)
    np.testing.assert_array_equal(np.array(one.realize([3, 2])[1]), np.array([[0, 1, 2], [-1, 0, 1]]))


def test_a_wrapper_no_call_goes_through_is_an_error() -> None:
    f, g = hl.Func("wrapped"), hl.Func("caller")
    f[x] = x
    g[x] = hl.sum(hl.RDom([(0, 3)]), f[x] * 1, "total")
    f.in_(g).compute_root()
    with pytest.raises(CompileError, match='Cannot wrap "wrapped.*" in "caller.*" because .* does not call .*; the Funcs it calls are: total'):
        g.realize([3])


def test_clones_have_their_own_definitions_and_schedule() -> None:
    f, g, h = hl.Func(), hl.Func(), hl.Func()
    f[x, y] = x
    r = hl.RDom([(1, 4)])
    f[r, y] += f[r - 1, y]
    f.vectorize(y, 2)
    g[x, y] = f[x, y]
    h[x, y] = g[x, y] + 100 * f[x, y]
    clone = f.clone_in(g)
    assert clone.name() != f.name() and clone.num_update_definitions() == 1
    f.compute_root().update().unscheduled()
    clone.compute_at(h, y).update().unscheduled()
    clone.unroll(x, 2)
    graph = callees(h)
    assert graph[clone.name()] == graph[g.name()] == [clone.name()] and graph[h.name()] == [f.name(), g.name()]
    assert "x.u0" in clone.dump_argument_list() and "x.u0" not in f.dump_argument_list() and "y.v0" in clone.dump_argument_list()
    np.testing.assert_array_equal(np.array(h.realize([5, 2])), 101 * np.array([[0, 1, 3, 6, 10]] * 2))


def test_images_are_read_through_their_wrappers() -> None:
    im, g, h = hl.ImageParam(hl.Int(32), 2), hl.Func(), hl.Func()
    g[x, y] = im[x, y] + im[x + 1, y]
    h[x, y] = g[x, y] * im[x, y + 1]
    data = np.arange(30, dtype=np.int32).reshape(5, 6)
    im.set(hl.Buffer(data))
    one, rest = im.in_(g), im.in_()
    second = one.in_(g).compute_root()
    one.compute_root().vectorize(one.args()[0], 4)
    rest.compute_at(h, y)
    g.compute_root()
    assert im.in_(g).name() == one.name() and im.in_().name() == rest.name()
    assert callees(h) == {one.name(): [], second.name(): [one.name()], g.name(): [second.name()], rest.name(): [], h.name(): sorted([g.name(), rest.name()])}
    np.testing.assert_array_equal(np.array(h.realize([5, 4])), (data[:4, :5] + data[:4, 1:]) * data[1:, :5])
    other = hl.Func()
    other[x, y] = one[x, y]
    one.serial(hl.Var(one.dump_argument_list().split()[1])).compute_inline()
    np.testing.assert_array_equal(np.array(other.realize([6, 5])), data)  # a pipeline that reads the image through its wrapper only


def test_wrappers_of_images_are_funcs_like_any() -> None:
    """Nothing but the wrapper reads the image."""
    im, out = hl.ImageParam(hl.Int(32), 1, "im"), hl.Func("out")
    wrapper = im.in_()
    out[x] = wrapper[x] + 1
    wrapper.compute_root()
    im.set(hl.Buffer(np.arange(5, dtype=np.int32)))
    assert np.array(out.realize([5])).tolist() == [1, 2, 3, 4, 5]


def test_wrappers_keep_nothing_alive() -> None:
    def build() -> Any:
        im, f, g = hl.ImageParam(hl.Int(32), 1), hl.Func(), hl.Func()
        f[x] = im[x]
        g[x] = f[x] + 1
        f.in_(g).compute_root()
        f.in_().compute_root()
        im.in_().compute_root()
        im.in_(f)
        return weakref.ref(im.param), weakref.ref(f.function), weakref.ref(g.function)

    gone = build()
    for _ in range(4):  # what a wrapper calls is older than the wrapper, so it goes one sweep later
        n.sweep()
    assert [ref() for ref in gone] == [None] * 3


@pytest.mark.parametrize("program, words", [
    ("f.in_(f)", "wrapper of itself"), ("f.in_([])", "empty list"), ("f.in_([g, h])", "is shared by"), ("f.clone_in(g)", "in_\\(\\) made"),
    ("hl.Func('undefined').in_(g)", "no definition"), ("f.in_(g).__setitem__((x, y), (x, y))", "stands for"),
    ("h.copy_to_host()", "has value"), ("f.copy_to_host()", "several values"), ("hl.Func().copy_to_host()", "no definition"),
])
def test_refused(program: str, words: str) -> None:
    f, g, h = chain()
    f.in_(g)
    with pytest.raises(CompileError, match=words) as caught:
        eval(program)
    assert "test_wrappers.py" in str(caught.value) or "<string>" in str(caught.value)


@pytest.mark.parametrize("program", ["f.in_(x)", "f.in_(g, h)", "f.clone_in()", "f.in_([x])"])
def test_wrong_python_types(program: str) -> None:
    f, g, h = chain()
    with pytest.raises(TypeError):
        eval(program)


def test_a_copy_to_the_host_is_a_copy() -> None:
    def run(copy: Any) -> list[list[int]]:
        f, g = hl.Func(), hl.Func()
        f[x, y] = x * y
        g[x, y] = f[x, y] + 1
        f.compute_root()
        copy(f.in_(g)).compute_root()
        return np.array(g.realize([3, 3])).tolist()  # type: ignore[no-any-return]

    assert run(lambda w: w) == run(lambda w: w.copy_to_host()) == run(lambda w: w.copy_to_device(hl.DeviceAPI.Host)) == [[1, 1, 1], [1, 2, 3], [1, 3, 5]]
