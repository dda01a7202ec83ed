"""async_: a producer in a task of its own gives the values it would give in line, fails as it would, and never waits for ever."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interpreted import interpreted  # noqa: E402
from processes import run_program  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.ir import build as b  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.target import Target  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402
from halide_py.lower.pipeline import lower  # noqa: E402

RUNTIME = Path(__file__).parents[2] / "runtime"
x, y, xi, yi, yo = (hl.Var(v) for v in ("x", "y", "xi", "yi", "yo"))
IMAGE = np.random.default_rng(0).integers(0, 99, (24, 24)).astype(np.int32)
SHAPE = (12, 16)
Y, X = np.mgrid[0:16, 0:12]


class Funcs:
    """h feeds f feeds out, which reads h too."""

    def __init__(self) -> None:
        self.h, self.f, self.out = (hl.Func(v) for v in ("h", "f", "out"))
        self.h[x, y] = hl.Buffer(IMAGE)[x, y] * 3
        self.f[x, y] = self.h[x, y] + self.h[x, y + 1]
        self.out[x, y] = self.f[x, y] + 2 * self.f[x, y + 1] + self.f[x + 1, y + 2] + self.h[x, y]


def wanted() -> np.ndarray:
    h = np.vectorize(lambda i, j: IMAGE[j, i] * 3)
    f = lambda i, j: h(i, j) + h(i, j + 1)  # noqa: E731
    return f(X, Y) + 2 * f(X, Y + 1) + f(X + 1, Y + 2) + h(X, Y)


def slide(f: hl.Func, out: hl.Func) -> hl.Func:
    return f.store_root().compute_at(out, y)


LEGAL: dict[str, Callable[[Funcs], object]] = {
    "root": lambda s: (s.f.compute_root().async_(), s.h.compute_root()),
    "sliding": lambda s: (slide(s.f, s.out).async_(), s.h.compute_root()),
    "folded, room for two": lambda s: (slide(s.f, s.out).async_().fold_storage(y, 4), s.h.compute_root()),
    "folded, room for one": lambda s: (slide(s.f, s.out).async_().fold_storage(y, 3), s.h.compute_root()),
    "one after the other": lambda s: (slide(s.f, s.out).async_(), slide(s.h, s.out).async_()),
    "both need h": lambda s: (slide(s.f, s.out).async_(), s.h.compute_at(s.out, y)),
    "stored inside a parallel loop": lambda s: (s.out.split(y, yo, yi, 4).parallel(yo), s.f.store_at(s.out, yo).compute_at(s.out, yi).async_().vectorize(x, 4)),
    "with a parallel loop inside": lambda s: (slide(s.f, s.out).async_().parallel(x), s.out.parallel(x)),
    "ring buffer": lambda s: s.f.compute_at(s.out, y).hoist_storage_root().ring_buffer(2).async_(),
    "ring buffer of folded storage": lambda s: (s.out.tile(x, y, xi, yi, 4, 4),
                                                s.f.store_at(s.out, x).compute_at(s.out, yi).hoist_storage_root().ring_buffer(3).async_()),
    "once a row": lambda s: (s.f.store_root().compute_at(s.out, x).async_(), s.f.bound(x, 0, 13), s.h.compute_root()),
    "rewritten": lambda s: (s.out.fuse(x, y, xi), s.f.store_root().compute_at(s.out, xi).async_(), s.h.compute_root()),
    "memoized": lambda s: s.f.compute_root().memoize().async_(),
}


# What the semaphores start at: the data that is there, the iterations or instances there is room for.
ROOM = {"root": [[0]], "folded, room for two": [[0, 2]], "folded, room for one": [[0, 1]], "one after the other": [[0, 2, 0, 2], [0, 2]],
        "ring buffer": [[0, 2]], "once a row": [[0, 2]], "rewritten": [[0, 1]]}


@pytest.mark.parametrize("name", LEGAL)
def test_values_stay(name: str) -> None:
    s = Funcs()
    LEGAL[name](s)
    body = lower([s.out.function], arguments(s.out), "out", Target.host()).body
    starts = [[b.as_int(e) for e in c.args[1:]] for c in nodes_of(body, n.Call) if c.name == "semaphores"]
    assert starts and starts == ROOM.get(name, starts), starts
    np.testing.assert_array_equal(interpreted(s.out, SHAPE).T, wanted())


def arguments(f: hl.Func) -> Any:
    return f.pipeline()._arguments()


@pytest.mark.parametrize("name", ["folded, room for one", "one after the other", "stored inside a parallel loop", "ring buffer of folded storage"])
def test_compiled_on_any_number_of_threads(name: str) -> None:
    s = Funcs()
    LEGAL[name](s)
    before = hl.get_num_threads()
    try:
        for threads in (1, 2, 5):
            hl.set_num_threads(threads)
            for _ in range(3):
                np.testing.assert_array_equal(np.array(s.out.realize(list(SHAPE))), wanted())
    finally:
        hl.set_num_threads(before)


def test_a_failure_on_either_side_ends_both() -> None:
    for side in ("producer", "consumer"):
        f, out = hl.Func("f"), hl.Func("out")
        ok = y < 7
        f[x, y] = hl.require(ok, x + y, "at", y) if side == "producer" else x + y
        out[x, y] = f[x, y] + f[x, y + 1] if side == "producer" else hl.require(ok, f[x, y] + f[x, y + 1], "at", y)
        f.store_root().compute_at(out, y).async_()
        for _ in range(20):
            with pytest.raises(hl.HalideError, match=r"Requirement Failed: .* at 7"):
                out.realize([8, 20])


REFUSED: dict[str, tuple[Callable[[Funcs], object], list[str]]] = {
    "inlined": (lambda s: s.f.async_(), ["f", "async_()", "inline"]),
    "an output": (lambda s: s.out.async_(), ["out", "output"]),
    "shared loops": (lambda s: (s.f.compute_root().async_(), s.out.compute_with(s.f, y)), ["compute_with()"]),
    "a third Func stored outside": (lambda s: (slide(s.f, s.out).async_(), slide(s.h, s.out)), ["f", "both it and its consumers need h", "async_()"]),
    "in the production of a memoized Func": (lambda s: (s.f.compute_at(s.out, y).memoize(), s.h.in_(s.f).store_root().compute_at(s.f, y).async_()),
                                             ["scheduled async_()", "depends on values of f", "memoized"]),
    "in a vectorized loop": (lambda s: (s.out.split(x, x, xi, 4).vectorize(xi), s.f.compute_at(s.out, xi).async_()),
                             ["f", "vectorized"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_says_why(name: str) -> None:
    schedule, words = REFUSED[name]
    s = Funcs()
    with pytest.raises(hl.CompileError) as caught:
        schedule(s)
        s.out.compile_jit()
    assert all(w in str(caught.value) for w in words), str(caught.value)


MAIN = """
#include <stdio.h>
#include "hl_runtime.h"
int out(struct halide_buffer_t *);
int main(void) {
    static int32_t data[16 * 12];
    halide_dimension_t dims[2] = {{0, 12, 1, 0}, {0, 16, 12, 0}};
    struct halide_buffer_t b = {0};
    b.host = (uint8_t *)data; b.dimensions = 2; b.dim = dims; b.type.code = 0; b.type.bits = 32; b.type.lanes = 1;
    for (int i = 0; i < 20; i++) { int code = out(&b); if (code) return 1; }
    printf("%d %d\\n", data[0], data[16 * 12 - 1]);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on PATH")
def test_no_data_race(tmp_path: Path) -> None:
    """Generated code and runtime under the thread sanitizer."""
    s = Funcs()
    slide(s.f, s.out).async_()
    slide(s.h, s.out).async_()
    s.out.parallel(x)
    s.out.compile_to_c(str(tmp_path / "out.c"), [], "out")
    (tmp_path / "main.c").write_text(MAIN)
    flags = ["-O1", "-g", "-fsanitize=thread", "-pthread", f"-I{RUNTIME}", f"-I{tmp_path}", "-fwrapv", "-w"]
    sources = [str(p) for p in (tmp_path / "main.c", tmp_path / "out.c", *sorted(RUNTIME.glob("*.c")))]
    built = subprocess.run(["gcc", "-std=gnu11", *flags, *sources, "-lm", "-o", str(tmp_path / "run")], capture_output=True, text=True)
    if built.returncode and "cannot find" in built.stderr:
        pytest.skip("the sanitizer's library is not installed")
    assert built.returncode == 0, built.stderr
    done = run_program([str(tmp_path / "run")], env={"TSAN_OPTIONS": "halt_on_error=1", "HL_NUM_THREADS": "3"})
    assert done.returncode == 0, done.stderr[:2000]
    assert done.stdout.split() == [str(wanted()[0, 0]), str(wanted()[-1, -1])]


@pytest.mark.parametrize("height", [5, 8])
def test_instances_of_a_ring_are_as_large_as_the_largest(height: int) -> None:
    """The last block of a guarded split is smaller: a ring of that size would lie over the block that is still read."""
    x, y, yo, yi = (hl.Var(v) for v in ("x", "y", "yo", "yi"))

    def blocks(ring: bool) -> np.ndarray:
        g, f, out = hl.Func("g"), hl.Func("f"), hl.Func("out")
        g[x, y] = x * 3 + y * 7
        f[x, y] = g[x + 1, y - 2] * 2 - y
        f[x, y] = f[x, y] | 4
        out[x, y] = f[x, y] + f[x + 1, y - 1]
        g.compute_root()
        f.compute_root().split(y, yo, yi, 4, hl.TailStrategy.GuardWithIf)
        f.update(0).unscheduled()
        if ring:
            g.in_(f).compute_at(f, yo).hoist_storage_root().ring_buffer(3).async_()
        return np.array(out.realize([14, height]))

    np.testing.assert_array_equal(blocks(True), blocks(False))


def test_what_nobody_reads_still_takes_what_is_produced_for_it() -> None:
    """The value of `out` is a constant in the end, so nothing reads g; f is produced in g's loops all the same, and waits for room in its window."""
    f, g, out, r = hl.Func("f"), hl.Func("g"), hl.Func("out"), hl.RDom([(-2, 6), (1, 3)])
    f[x, y] = hl.Buffer(IMAGE)[x, y]
    g[x, y] = True
    g[x, y] = g[x, y] & (hl.i8(x + r.x) != hl.i8(f[2, hl.clamp(y + r.y + 2, 1, 5)]))
    out[()] = hl.max(hl.cast(hl.UInt(64), g[1, 1]), hl.u64(1))
    g.update(0).reorder(x, r.y, y, r.x)
    f.compute_at(g, y).store_root().async_()
    assert interpreted(out, []) == 1


ROW_RING = "compute_at(out, xi).hoist_storage(out, yo).ring_buffer(2).async_()"


@pytest.mark.parametrize("schedule", [
    f"out.split(y, yo, yi, 4).split(x, xi, x, 6), out.reorder(x, yi, xi, yo), f.{ROW_RING}, g.{ROW_RING}",  # the consumer of g has no need of f
    "f.compute_at(out, y).async_(), g.store_root().compute_at(out, y).async_()",  # in the task of g only f's consumer is left: it makes g
    "f.compute_root().async_(), g.compute_at(out, y).async_()",
])
def test_async_producers_of_async_producers(schedule: str) -> None:
    f, g, out = hl.Func("f"), hl.Func("g"), hl.Func("out")
    f[x, y] = hl.Buffer(IMAGE)[x, y] + x
    g[x, y] = f[x, y] * 2
    out[x, y] = g[x, y] + g[x, y + 1]
    eval(schedule, {"f": f, "g": g, "out": out, "x": x, "y": y, "xi": xi, "yi": yi, "yo": yo})
    rows = (IMAGE + np.arange(24)) * 2
    np.testing.assert_array_equal(interpreted(out, (12, 16)).T, (rows[:-1] + rows[1:])[:16, :12])


@pytest.mark.parametrize("fold", [False, True])
def test_what_only_the_other_task_needs_has_no_task_here(fold: bool) -> None:
    first, second, third, out = (hl.Func(v) for v in ("first", "second", "third", "out"))
    first[x, y] = x + y
    second[x, y] = first[x - 1, y] + first[x + 1, y]
    third[x, y] = second[x, y - 1] + second[x, y + 1]
    out[x, y] = third[x - 1, y] + third[x + 1, y]
    third.store_at(out, y).compute_at(out, x).async_()
    second.store_root().compute_at(out, y).async_()
    first.store_at(out, y).compute_at(second, x)
    if fold:
        first.async_()
    np.testing.assert_array_equal(np.array(out.realize([12, 16])), 8 * (X + Y))


@pytest.mark.parametrize("wide_first", [False, True])
def test_each_specialization_has_the_room_it_needs(wide_first: bool) -> None:
    """Storage of eight rows has room for one window more of one row, or of two."""
    f, out, z = hl.Func("f"), hl.Func("out"), hl.Var("z")
    f[x, y] = hl.Buffer(IMAGE)[x, y]
    out[x, y, z] = f[x, y] + f[x, y + 3] + z
    f.store_at(out, z).compute_at(out, y).async_().fold_storage(y, 8)
    special = out.specialize(out.output_buffer().width() == 12)
    (special if wide_first else out).split(y, y, yi, 2, hl.TailStrategy.GuardWithIf)
    body = lower([out.function], arguments(out), "out", Target.host()).body
    starts = [[b.as_int(e) for e in c.args[1:]] for c in nodes_of(body, n.Call) if c.name == "semaphores"]
    assert starts == ([[0, 2], [0, 5]] if wide_first else [[0, 5], [0, 2]])
    for width in (12, 11):
        got = interpreted(out, (width, 17, 2))
        np.testing.assert_array_equal(got.T, (IMAGE[:17, :width] + IMAGE[3:20, :width]) + np.arange(2)[:, None, None])


def test_each_stage_of_the_consumer_is_done_before_the_next_is_produced_for() -> None:
    """What the second stage needs is written to the same storage, by way of values that the first stage must not see."""
    f, out, r = hl.Func("f"), hl.Func("out"), hl.RDom([(1, 11)])
    f[x, y] = hl.Buffer(IMAGE)[x, y]
    f[r, y] += f[r - 1, y]
    out[x, y] = f[x, y]
    out[x, y] += f[11 - x, y]
    f.store_root().compute_at(out, hl.Var.outermost()).async_()
    body = lower([out.function], arguments(out), "out", Target.host()).body
    assert [[b.as_int(e) for e in c.args[1:]] for c in nodes_of(body, n.Call) if c.name == "semaphores"] == [[0, 1]]
    sums = np.cumsum(IMAGE[:16, :12], axis=1)
    np.testing.assert_array_equal(interpreted(out, SHAPE).T, sums + sums[:, ::-1])
