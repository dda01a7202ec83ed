"""The profiler: what it counts, that it is in order after failures, in Python and in a C program, and that it is absent unless asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

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
    assert "in 3 runs" in table and "15 times" in table
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
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    assert "measured: " in done.stderr and " in 2 runs" in done.stderr and done.stderr.rstrip().endswith("2 times")
