"""The events of a traced pipeline, in order, as the default tracer prints them."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir import names


@pytest.fixture(autouse=True)
def fresh_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_COUNTS", {})


def traced(capfd: pytest.CaptureFixture[str], func: hl.Func, sizes: list[int]) -> str:
    func.compile_jit()
    capfd.readouterr()
    func.realize(sizes)
    return capfd.readouterr().out


def test_stores_loads_realizations(capfd: pytest.CaptureFixture[str]) -> None:
    x = hl.Var("x")
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = x * 2
    g[x] = f[x] + f[x + 1]
    f.compute_root().trace_stores().trace_loads().trace_realizations()
    g.trace_stores()
    g.vectorize(x, 2)
    g.add_trace_tag("hello")
    assert traced(capfd, g, [2]) == textwrap.dedent("""\
        Begin pipeline g.0()
        Tag f.0() tag = "func_type_and_dim: 1 0 32 1 1 0 3"
        Tag g.0() tag = "func_type_and_dim: 1 0 32 1 1 0 2"
        Tag g.0() tag = "hello"
        Begin realization f.0(0, 3)
        Produce f.0(0, 3)
        Store f.0(0) = 0
        Store f.0(1) = 2
        Store f.0(2) = 4
        End produce f.0(0, 3)
        Consume f.0(0, 3)
        Load f.0(<0, 1>) = <0, 2>
        Load f.0(<1, 2>) = <2, 4>
        Store g.0(<0, 1>) = <2, 6>
        End consume f.0(0, 3)
        End realization f.0(0, 3)
        End pipeline g.0()
        """)


def test_tails_report_the_lanes_that_run(capfd: pytest.CaptureFixture[str]) -> None:
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = x
    f.trace_stores().vectorize(x, 4, hl.TailStrategy.GuardWithIf)
    stores = [line for line in traced(capfd, f, [6]).splitlines() if line.startswith("Store")]
    assert stores == ["Store f.0(<0, 1, 2, 3>) = <0, 1, 2, 3>", "Store f.0(4) = 4", "Store f.0(5) = 5"]


def test_tuples_and_updates(capfd: pytest.CaptureFixture[str]) -> None:
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = (x, hl.f32(x) * 0.5)
    f[x] = (f[x][0] + 1, f[x][1])
    f.trace_stores()
    stores = [line for line in traced(capfd, f, [1]).splitlines() if line.startswith("Store")]
    assert stores == ["Store f.0(0) = 0", "Store f.1(0) = 0.000000", "Store f.0(0) = 1", "Store f.1(0) = 0.000000"]


def test_loads_of_images(capfd: pytest.CaptureFixture[str]) -> None:
    im = hl.ImageParam(hl.UInt(8), 1, "im")
    f, x = hl.Func("f"), hl.Var("x")
    f[x] = im[x + 1]
    im.trace_loads()
    im.set(hl.Buffer(np.array([3, 4, 5], np.uint8)))
    loads = [line for line in traced(capfd, f, [2]).splitlines() if line.startswith("Load")]
    assert loads == ["Load im.0(1) = 4", "Load im.0(2) = 5"]


def test_checks_inside_do_not_move_the_beginning(capfd: pytest.CaptureFixture[str]) -> None:
    """A run-time check inside the pipeline (of specialize_fail, here) is none of those in front of it."""
    x, f = hl.Var("x"), hl.Func("f")
    f[x] = x
    f.specialize(f.output_buffer().width() > 1)
    f.specialize_fail("too narrow")
    f.trace_realizations()
    lines = traced(capfd, f, [2]).splitlines()
    assert [lines[0], *lines[2:4], lines[-1]] == ["Begin pipeline f.0()", "Begin realization f.0(0, 2)", "Produce f.0(0, 2)", "End pipeline f.0()"]


def test_checks_between_two_outputs(capfd: pytest.CaptureFixture[str]) -> None:
    """What an update reaches is checked where its Func is produced: after the first output, here. The pipeline holds both."""
    x, r, f, g, h = hl.Var("x"), hl.RDom([(0, 3)]), hl.Func("f"), hl.Func("g"), hl.Func("h")
    f[x] = x
    f[r] += 1
    g[x] = f[x + 2]
    h[x] = 7
    f.compute_root().trace_realizations()
    hl.Pipeline([h, g]).realize([11])
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("Begin pipeline") and lines[-1].startswith("End pipeline")
    events = ["Begin realization", "Produce", "End produce", "Consume", "End consume", "End realization"]
    assert [line for line in lines if line.endswith("f.0(0, 13)")] == [f"{event} f.0(0, 13)" for event in events]


def test_stores_of_vectors_whose_loads_have_a_guard(capfd: pytest.CaptureFixture[str]) -> None:
    """The guarded copy of a row has the names of the one without guard, for other values."""
    x, y, y0, y1 = hl.vars("x y y0 y1")
    f, g = hl.Func("f"), hl.Func("g")
    g[x] = x * x
    f[x, y] = g[2 * x]
    g.compute_root()
    f.split(y, y, y0, 3, hl.TailStrategy.RoundUp).unroll(y0)
    f.split(y, y, y1, 3, hl.TailStrategy.PredicateLoads).vectorize(y1)
    f.trace_stores()
    assert traced(capfd, f, [3, 3]).count("Store f.0") >= 3
    assert np.array_equal(np.array(f.realize([4, 3])), [[0, 4, 16, 36]] * 3)
