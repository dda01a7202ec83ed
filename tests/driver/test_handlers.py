"""What pipelines print, report and trace goes to Python functions while they are set; features of the target that trace everything."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest

import halide_py as hl
from halide_py import TraceEventCode as E

x, y = hl.Var("x"), hl.Var("y")


def test_events_values_and_messages_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    g, f, p = hl.Func("stored"), hl.Func("top"), hl.Param(hl.Int(32), "p", 1)
    g[x] = hl.u8(x) * 2
    f[x] = hl.print(hl.i32(g[x]), "it") + hl.require(p > 0, x, "p is", p)
    g.compute_root().trace_stores().vectorize(x, 4)
    f.trace_realizations()
    events: list[hl.TraceEvent] = []
    printed: list[str] = []
    errors: list[str] = []
    with hl.handlers(trace=events.append, print=printed.append, error=errors.append):
        f.realize([4])
        p.set(-1)
        with pytest.raises(hl.PipelineError, match="p is -1"):
            f.realize([4])
    (store, *_) = [e for e in events if e.event == E.store]
    assert store.value == (0, 2, 4, 6) and store.coordinates == (0, 1, 2, 3) and store.type == hl.UInt(8, 4)
    begin = next(e for e in events if e.event == E.begin_pipeline)
    assert store.parent_id in {e.id for e in events} and begin.parent_id == 0
    assert len({e.id for e in events}) == len(events)
    assert printed[:4] == ["0 it\n", "2 it\n", "4 it\n", "6 it\n"] and "p is -1" in errors[0]
    p.set(1)
    f.realize([1])
    assert "0 it\n" in capsys.readouterr().out  # as before
    assert len(errors) == 1


def test_handlers_nest_run_on_any_thread_and_their_exceptions_come_out() -> None:
    f = hl.Func("on_threads")
    f[x, y] = hl.print(x + y)
    f.parallel(y)
    inner: list[str] = []
    outer: list[str] = []
    with hl.handlers(print=outer.append):
        with hl.handlers(print=inner.append):
            thread = threading.Thread(target=f.realize, args=([2, 8],))
            thread.start()
            thread.join()
        f.realize([1, 1])
    assert len(inner) == 16 and outer == ["0\n"]

    def refuses(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError, match="0"), hl.handlers(print=refuses):
        f.realize([1, 1])


def test_features_of_the_target_trace_every_func_and_image() -> None:
    im, g, f = hl.ImageParam(hl.Int(32), 1, "image"), hl.Func("inner_one"), hl.Func("outer_one")
    g[x] = im[x] + 1
    f[x] = g[x] * 2
    g.compute_root()
    im.set(hl.Buffer(np.arange(3, dtype=np.int32)))
    for features, kinds in (("trace_stores", {E.store: 6}), ("trace_loads", {E.load: 6}), ("trace_all", {E.store: 6, E.load: 6, E.produce: 2})):
        events: list[hl.TraceEvent] = []
        out = hl.Buffer(hl.Int(32), [3])
        with hl.handlers(trace=events.append):
            f.realize(out, hl.Target(f"host-{features}"))
        found = Counter(e.event for e in events)
        assert {k: found[k] for k in (E.store, E.load, E.produce)} == {E.store: 0, E.load: 0, E.produce: 0, **kinds}, features
        assert list(out) == [2, 4, 6]
