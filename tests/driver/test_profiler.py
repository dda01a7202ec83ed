"""The profiler: what it counts, that it is in order after failures, in Python and in a C program, and that it is absent unless asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from processes import run_program

import halide_py as hl
from halide_py.driver.toolchain import find_compiler

x, y = hl.Var("x"), hl.Var("y")


def test_funcs_are_counted_and_their_times_add_up() -> None:
    g, f, h = hl.Func("prepared"), hl.Func("profiled"), hl.Func("inlined")
    im = hl.ImageParam(hl.Float(32), 2, "im")
    h[x, y] = im[x, y] + 1
    g[x, y] = hl.exp(h[x, y])
    f[x, y] = g[x, y] + g[x + 1, y]
    g.compute_at(f, y)
    f.parallel(y)
    im.set(hl.Buffer(np.zeros((5, 9), np.float32)))
    target, out = hl.Target("host-profile"), hl.Buffer(hl.Float(32), [8, 5])
    hl.profiler_reset()
    for _ in range(3):
        f.realize(out, target)
    im.set(hl.Buffer(np.zeros((5, 8), np.float32)))
    with pytest.raises(hl.PipelineError):
        f.realize(out, target)  # refused before it starts
    one = hl.profiler_results()["profiled"]
    assert one["runs"] == 3 and one["seconds"] > 0 and one["threads"] > 0
    assert {name: func["times"] for name, func in one["funcs"].items()} == {"profiled": 3, "prepared": 15}
    table = hl.profiler_report()
    assert "profiled\n total time: " in table and "  runs: 3  " in table and "times: 15 " in table
    hl.profiler_reset()
    assert hl.profiler_results() == {} and hl.profiler_report() == ""


def test_a_failing_stage_leaves_the_profiler_in_order() -> None:
    f, g, p = hl.Func("fails"), hl.Func("works"), hl.Param(hl.Int(32), "p")
    f[x] = hl.require(p > 0, x, "p is", p)
    g[x] = f[x] * 2
    f.compute_root()
    target = hl.Target("host-profile")
    hl.profiler_reset()
    for value in (-1, 1, -1, 1):
        p.set(value)
        if value < 0:
            with pytest.raises(hl.PipelineError, match="p is -1"):
                g.realize(hl.Buffer(hl.Int(32), [4]), target)
        else:
            g.realize(hl.Buffer(hl.Int(32), [4]), target)
    one = hl.profiler_results()["works"]
    assert one["runs"] == 4 and {n: func["times"] for n, func in one["funcs"].items()} == {"fails": 4, "works": 2}


def test_the_time_of_a_func_is_what_its_work_takes() -> None:
    """Work that watches the clock: what it saw pass is the least of each Func, and all Funcs together are at most the run."""
    spend = hl.extern("double spend_time(double seconds, int at)", pure=False, source="""
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
double spend_time(double seconds, int at) {
    double start = now(), passed;
    while ((passed = now() - start) < seconds) {}
    return passed;
}
""")
    short, long, f = hl.Func("short_work"), hl.Func("long_work"), hl.Func("works_long")
    short[x] = spend(hl.f64(0.001), x)
    long[x] = spend(hl.f64(0.004), x)
    f[x, y] = hl.select(y == 0, short[x], long[x])
    short.compute_root()
    long.compute_at(f, x)
    f.reorder(y, x)
    hl.profiler_reset()
    passed = np.array(f.realize([10, 2], hl.Target("host-profile"))).sum(axis=1)
    one = hl.profiler_results()["works_long"]
    funcs = one["funcs"]
    assert funcs["short_work"]["seconds"] >= passed[0] >= 0.01 and funcs["long_work"]["seconds"] >= passed[1] >= 0.04
    assert sum(func["seconds"] for func in funcs.values()) <= one["seconds"]
    assert funcs["short_work"]["threads"] == pytest.approx(1) and funcs["long_work"]["times"] == 10


def test_code_that_is_not_profiled_or_traced_does_not_know_of_it(tmp_path: Path) -> None:
    """Byte for byte the same, whatever else was compiled before; and in the others the marks are there."""
    f, g = hl.Func("watched_by_none"), hl.Func("watched_row")
    g[x, y] = x + y
    f[x, y] = g[x, y] * g[x + 1, y]
    g.compute_at(f, y)
    f.parallel(y).vectorize(x, 4)

    def build(name: str, features: str) -> tuple[str, bytes]:
        target = hl.Target(f"host-no_runtime{features}")
        f.compile_to_c(str(tmp_path / f"{name}.c"), [], "watched", target)
        f.compile_to_object(str(tmp_path / f"{name}.o"), [], "watched", target)
        text = (tmp_path / f"{name}.c").read_text()
        return text[text.rindex("#endif"):], (tmp_path / f"{name}.o").read_bytes()

    before, profiled, traced, after = (build(*each) for each in
                                       (("before", ""), ("profiled", "-profile"), ("traced", "-trace_all"), ("after", "")))
    assert before == after
    for mark in ("profile", "trace"):
        assert mark not in before[0] and mark.encode() not in before[1]
    assert "hl_profile_enter" in profiled[0] and b"hl_profile_enter" in profiled[1] and b"halide_trace" in traced[1]


def test_c_programs_print_the_table_and_unprofiled_code_has_no_marks(tmp_path: Path) -> None:
    f = hl.Func("measured")
    f[x] = x
    f.compile_to_static_library(str(tmp_path / "measured"), [], "measured", hl.Target("host-profile"))
    f.compile_to_c(str(tmp_path / "plain.c"), [], "measured")
    code = (tmp_path / "plain.c").read_text().rpartition("#endif")[2]
    assert "measured_body" in code and "profile" not in code
    (tmp_path / "main.c").write_text("""
#include "measured.h"
void halide_profiler_report(void *);
int main(void) {
    int32_t v[4];
    struct halide_dimension_t d = {0, 4, 1, 0};
    struct halide_buffer_t b = {0};
    b.host = (uint8_t *)v; b.type.bits = 32; b.type.lanes = 1; b.dimensions = 1; b.dim = &d;
    int code = measured(&b) || measured(&b);
    halide_profiler_report(0);
    return code;
}
""")
    subprocess.run([*find_compiler(), "main.c", "measured.a", "-o", "main", "-lpthread", "-lm"], cwd=tmp_path, check=True)
    done = run_program([str(tmp_path / "main")])
    assert done.returncode == 0
    assert done.stderr.startswith("measured\n total time: ") and "  runs: 2  " in done.stderr and "times: 2 " in done.stderr
    assert " heap allocations: 0  peak heap usage: 0 bytes\n" in done.stderr


def test_memory_of_each_func_is_counted() -> None:
    whole, row, small, f, p = hl.Func("kept_whole"), hl.Func("kept_row"), hl.Func("kept_small"), hl.Func("keeps"), hl.Param(hl.Bool(), "p")
    maybe, pair = hl.Func("kept_maybe"), hl.Func("kept_pair")
    whole[x, y] = x + y
    pair[x, y] = (hl.u8(x), hl.f64(y))
    row[x, y] = whole[x, y] * 2 + hl.i32(pair[x, y][0] + pair[x, y][1])
    small[x, y] = row[x, y] + 1
    maybe[x, y] = x * y
    f[x, y] = small[x, y] + small[x + 1, y] + hl.select(p, maybe[x, y], 0)
    for g in (whole, maybe):
        g.compute_root()
    row.compute_at(f, y)
    pair.compute_at(f, y)
    small.compute_at(f, x)
    target = hl.Target("host-profile")
    p.set(False)
    hl.profiler_reset()
    f.realize([100, 10], target)
    one = hl.profiler_results()["keeps"]
    funcs = one["funcs"]
    assert {n: (g["allocations"], g["times"]) for n, g in funcs.items()} == {
        "keeps": (0, 1), "kept_small": (0, 1000), "kept_row": (10, 10), "kept_pair": (20, 10), "kept_whole": (1, 1), "kept_maybe": (funcs["kept_maybe"]["times"], funcs["kept_maybe"]["times"])}
    padding = 64 * 4  # at most, of an allocation of int32
    assert 101 * 10 * 4 <= funcs["kept_whole"]["peak"] == funcs["kept_whole"]["average"] <= 101 * 10 * 4 + padding
    assert 101 * 4 <= funcs["kept_row"]["peak"] == funcs["kept_row"]["average"] <= 101 * 4 + padding
    assert 101 * 9 <= funcs["kept_pair"]["peak"] == 2 * funcs["kept_pair"]["average"]
    assert funcs["kept_small"]["stack"] >= 8 and funcs["kept_whole"]["stack"] == 0
    assert one["allocations"] == sum(g["allocations"] for g in funcs.values())
    assert one["peak"] == funcs["kept_whole"]["peak"] + funcs["kept_row"]["peak"] + funcs["kept_pair"]["peak"] + funcs["kept_maybe"]["peak"]
    assert "  num: 10  avg: " in hl.profiler_report() and "  stack: " in hl.profiler_report()


def test_threads_of_each_func_are_those_that_work_at_the_same_time() -> None:
    f, serial, r = hl.Func("at_once"), hl.Func("at_once_alone"), hl.RDom([(0, 200000)])
    serial[x] = hl.f32(0)
    serial[x] += hl.sin(hl.f32(r.x + x))
    f[x, y] = serial[x]
    f[x, y] += hl.sin(hl.f32(r.x + x + y))
    serial.compute_root()
    f.update().parallel(y)
    before = hl.set_num_threads(4)
    try:
        hl.profiler_reset()
        f.realize([2, 16], hl.Target("host-profile"))
        funcs = hl.profiler_results()["at_once"]["funcs"]
        assert funcs["at_once_alone"]["threads"] == pytest.approx(1)
        assert 1.2 < funcs["at_once"]["threads"] <= 4.01
        hl.set_num_threads(1)
        hl.profiler_reset()
        f.realize([2, 16], hl.Target("host-profile"))
        assert hl.profiler_results()["at_once"]["funcs"]["at_once"]["threads"] == pytest.approx(1)
    finally:
        hl.set_num_threads(before)
