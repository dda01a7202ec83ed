"""What a pipeline checks of its buffers before it runs, in which order, with which words; and what it answers to bounds queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import halide_py as hl  # noqa: E402
from halide_py.errors import CompileError, PipelineError  # noqa: E402
from halide_py.ir import names  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.module import ArgumentKind, LoweredArgument, LoweredFunction  # noqa: E402
from halide_py.ir.target import Target  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402
from halide_py.ir.types import INT32, UInt  # noqa: E402
from halide_py.lower.pipeline import lower  # noqa: E402
from halide_py.lower.select_guards import guard_selects  # noqa: E402
from halide_py.reference.loop_ir import run_lowered  # noqa: E402
from halide_py.reference.storage import BufferArgument  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names as in a fresh process: no `$1`."""
    monkeypatch.setattr(names, "_COUNTS", {})


def image(name: str = "im", dimensions: int = 2, t: Any = None) -> Any:
    return hl.ImageParam(t or hl.Int(32), dimensions, name)


def compiled(func: Any, *images: Any) -> LoweredFunction:
    args = [LoweredArgument(i.name(), ArgumentKind.InputBuffer, i.param.type, i.param.dimensions, i.param) for i in images]
    return lower([func.function], args, "pipe", Target.host())


def shifted(im: Any, name: str = "f", left: int = 1, right: int = 1) -> Any:
    """f(x, y) = im(x - left, y) + im(x + right, y)."""
    f, x, y = hl.Func(name), hl.Var("x"), hl.Var("y")
    f[x, y] = im[x - left, y] + im[x + right, y]
    return f


def array(*extents: int, t: Any = np.int32) -> np.ndarray:
    return np.zeros(extents, t, order="F")


def query(dimensions: int = 2) -> BufferArgument:
    return BufferArgument(None, [0] * dimensions, UInt(8), [0] * dimensions, [0] * dimensions)


def asked(mins: list[int], extents: list[int]) -> BufferArgument:
    """A bounds query that says which region is wanted."""
    return BufferArgument(None, mins, INT32, extents, [1] * len(mins))


def shape(buffer: BufferArgument) -> tuple[list[int], list[int], list[int]]:
    return buffer.mins, buffer.extents, buffer.strides


# ---- errors, in the order in which they are looked for


def test_accesses_must_be_inside() -> None:
    im = image()
    fn = compiled(shifted(im), im)
    run_lowered(fn, [(array(6, 3), [-1, 0]), array(4, 3)])
    with pytest.raises(PipelineError, match=r"Input buffer im is accessed at -1, which is before the min \(0\) in dimension 0"):
        run_lowered(fn, [array(6, 3), array(4, 3)])
    with pytest.raises(PipelineError, match=r"Input buffer im is accessed at 4, which is beyond the max \(3\) in dimension 0"):
        run_lowered(fn, [(array(5, 3), [-1, 0]), array(4, 3)])


def test_schedules_that_round_up_need_room() -> None:
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = x
    f.vectorize(x, 8, hl.TailStrategy.RoundUp)
    with pytest.raises(PipelineError, match=r"Output buffer f is accessed at 7, which is beyond the max \(4\) in dimension 0"):
        run_lowered(compiled(f), [array(5)])


def test_type_comes_before_region() -> None:
    im = image()
    with pytest.raises(PipelineError, match="Input buffer im has type int32 but type of the buffer passed in is uint8"):
        run_lowered(compiled(shifted(im), im), [array(1, 1, t=np.uint8), array(4, 3)])


def test_dimensions_are_counted() -> None:
    im = image()
    with pytest.raises(PipelineError, match="Input buffer im requires a buffer of exactly 2 dimensions, but the buffer passed in has 1 dimensions"):
        run_lowered(compiled(shifted(im), im), [array(9), array(4, 3)])


def test_extents_are_not_negative() -> None:
    im = image()
    buffer = BufferArgument(array(6, 3), [0, 0], INT32)
    buffer.extents = [6, -1]
    with pytest.raises(PipelineError, match=r"The extents for buffer Input buffer im dimension 1 is negative \(-1\)"):
        run_lowered(compiled(shifted(im, left=0, right=0), im), [buffer, array(4, 0)])


def test_constraints_hold() -> None:
    im = image()
    im.dim(1).set_stride(8)
    fn = compiled(shifted(im, left=0, right=0), im)
    with pytest.raises(PipelineError, match=r"Constraint violated: im\.stride\.1 \(6\) == 8 \(8\)"):
        run_lowered(fn, [array(6, 3), array(6, 3)])
    run_lowered(fn, [array(8, 3)[:6], array(6, 3)])


def test_the_first_dimension_is_dense_unless_lifted() -> None:
    im = image()
    planar = np.zeros((3, 6), np.int32).T
    with pytest.raises(PipelineError, match=r"Constraint violated: im\.stride\.0 \(3\) == 1 \(1\)"):
        run_lowered(compiled(shifted(im, left=0, right=0), im), [np.zeros((6, 3), np.int32), array(6, 3)])
    loose = image("loose")
    loose.dim(0).set_stride(hl.Expr())
    run_lowered(compiled(shifted(loose, left=0, right=0), loose), [np.zeros((6, 3), np.int32), array(6, 3)])
    assert planar.strides[0] == 4


def test_constraints_are_used() -> None:
    im = image()
    im.dim(0).set_bounds(0, 16)
    im.dim(1).set_stride(16)
    body = compiled(shifted(im, left=0, right=0), im).body
    loads = [load for load in nodes_of(body, n.Load) if load.name == "im"]
    assert loads and not any(v.name.startswith(("im.stride", "im.min.0")) for load in loads for v in nodes_of(load.index, n.Variable))


def test_two_outputs_share_a_shape() -> None:
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = (x, x * 2)
    fn = compiled(f)
    assert [a.name for a in fn.args] == ["f.0", "f.1"]
    with pytest.raises(PipelineError, match=r"Constraint violated: f\.1\.extent\.0 \(5\) == f\.0\.extent\.0 \(4\)"):
        run_lowered(fn, [array(4), array(5)])


def test_constraint_on_a_later_output_is_an_error() -> None:
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = (x, x * 2)
    f.output_buffers()[1].dim(0).set_min(0)
    with pytest.raises(CompileError, match=r"Output buffer f\.1: the min of dimension 0 cannot be constrained"):
        compiled(f)


def test_unbounded_access_is_an_error_before_anything_runs() -> None:
    im, index = image(dimensions=1), image("index", 1)
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = im[index[x]]
    with pytest.raises(CompileError, match="Input buffer im may be accessed in an unbounded way in dimension 0"):
        compiled(f, im, index)


# ---- bounds queries


def test_query_of_an_input() -> None:
    im = image()
    q = query()
    run_lowered(compiled(shifted(im, left=2), im), [q, array(10, 4)])
    assert shape(q) == ([-2, 0], [13, 4], [1, 13]) and q.type is INT32


def test_query_of_everything_widens_the_output() -> None:
    im = image()
    f = shifted(im)
    f.vectorize(hl.Var("x"), 8, hl.TailStrategy.RoundUp)
    q, out = query(), asked([0, 0], [10, 4])
    run_lowered(compiled(f, im), [q, out])
    assert shape(out) == ([0, 0], [16, 4], [1, 16])
    assert shape(q)[:2] == ([-1, 0], [18, 4])


def test_query_respects_constraints() -> None:
    im = image()
    im.dim(0).set_bounds(-8, 64)
    im.dim(1).set_stride(im.dim(0).extent() * 2)
    q = query()
    run_lowered(compiled(shifted(im), im), [q, array(10, 4)])
    assert shape(q) == ([-8, 0], [64, 4], [1, 128])


def test_query_that_constraints_make_too_small() -> None:
    im = image()
    im.dim(0).set_bounds(0, 4)
    with pytest.raises(PipelineError, match=r"Applying the constraints on Input buffer im to the required region made it smaller"):
        run_lowered(compiled(shifted(im), im), [query(), array(10, 4)])


def test_nothing_runs_in_a_query() -> None:
    im = image()
    out = np.full((4, 3), 7, np.int32, order="F")
    run_lowered(compiled(shifted(im), im), [query(), out])
    assert (out == 7).all()


# ---- selects that keep accesses in range


def call(im: Any, *args: n.Expr) -> n.Expr:
    return n.Call(INT32, im, args, n.CallType.Image)


X = n.Variable(INT32, "x")


def guarded(e: n.Expr) -> bool:
    return any(c.name == "if_then_else" for c in nodes_of(guard_selects(e), n.Call))


def test_conditions_that_limit_an_index_guard() -> None:
    four = n.IntImm(INT32, 4)
    inside = n.LT(X, four)
    assert guarded(n.Select(inside, call("a", X), call("b", n.Sub(X, four))))
    assert not guarded(n.Select(inside, four, X)), "nothing is read"
    assert not guarded(n.Select(inside, call("a", n.Min(X, four)), X)), "clamped itself"
    assert not guarded(n.Select(n.LT(call("a", four), four), call("a", X), X)), "depends on data"
    assert not guarded(n.Select(inside, call("a", n.Variable(INT32, "y")), X)), "another variable"


@pytest.mark.parametrize("form", ["and", "turned", "or", "not", "nested"])
def test_one_part_of_a_condition_keeps_the_others_in_range(form: str) -> None:
    """As a value, in vectors, and as the predicate of an update; a derivative has such conditions of what is not taken."""
    im = image("data", 1)

    def condition(x: Any) -> Any:
        return {"and": (x > 0) & (x < 6) & (im[x - 1] > 1), "turned": (im[x - 1] > 1) & (x > 0) & (x < 6), "or": (x <= 0) | (x >= 6) | (im[x - 1] > 1),
                "not": ~((x > 0) & (x < 6) & (im[x - 1] > 1)), "nested": hl.select(x % 2 == 0, (x > 0) & (x < 6) & (im[x - 1] > 1), x > 3)}[form]

    data = np.array([3, 0, 1, 7, 2], np.int32)
    at = np.arange(8)
    inside = (at > 0) & (at < 6) & (data[np.clip(at - 1, 0, 4)] > 1)
    expected = {"and": inside, "turned": inside, "or": (at <= 0) | (at >= 6) | inside, "not": ~inside, "nested": np.where(at % 2 == 0, inside, at > 3)}[form]
    f, x, r = hl.Func("f"), hl.Var("x"), hl.RDom([(0, 8)])
    f[x] = hl.i32(condition(x))
    f.vectorize(x, 4)
    r.where(condition(r.x))
    f[r.x] += 10
    out = array(8)
    run_lowered(compiled(f, im), [data, out])
    assert out.tolist() == (11 * expected).tolist()


@pytest.mark.parametrize("form", ["remainder", "neighbour", "mixed", "quotient"])
def test_a_condition_on_what_limits_itself(form: str) -> None:
    """x % 6 is below 6 anyway, and below 5 where the condition holds."""
    im, f, x = image("data", 1), hl.Func("f"), hl.Var("x")
    condition, value = {"remainder": (x % 6 < 5, im[x % 6]), "neighbour": ((x % 6 > 0) & (x % 6 < 5), im[x % 6] + im[x % 6 - 1]),
                        "mixed": ((x * 7) % 9 < 5, im[(x * 7) % 9]), "quotient": (x / 2 < 3, im[x / 2 + 2])}[form]
    f[x] = hl.select(condition, value, -1)
    f.vectorize(x, 4)
    at, data, out = np.arange(16), np.array([3, 0, 1, 7, 2], np.int32), array(16)
    i = {"remainder": at % 6, "neighbour": at % 6, "mixed": at * 7 % 9, "quotient": at // 2 + 2}[form]
    holds = (i < 5) & ((i > 0) | (form != "neighbour"))
    expected = np.where(holds, data[np.clip(i, 0, 4)] + (data[np.clip(i - 1, 0, 4)] if form == "neighbour" else 0), -1)
    run_lowered(compiled(f, im), [data, out])
    assert out.tolist() == expected.tolist()


def test_concatenation_reads_nothing_outside() -> None:
    left, right = image("left", 1), image("right", 1)
    f, x = hl.Func("cat"), hl.Var("x")
    f[x] = hl.select(x < 4, left[x], right[x - 4])
    f.vectorize(x, 4, hl.TailStrategy.GuardWithIf)
    out = array(9)
    run_lowered(compiled(f, left, right), [np.arange(4, dtype=np.int32), np.arange(10, 15, dtype=np.int32), out])
    assert out.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 14]


def test_bool_images_are_bytes() -> None:
    im = image("mask", 1, hl.Bool())
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = hl.select(im[x], 1, 2)
    out = array(3)
    run_lowered(compiled(f, im), [np.array([True, False, True]), out])
    assert out.tolist() == [1, 2, 1] and UInt(1).bytes() == 1
