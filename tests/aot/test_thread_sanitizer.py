"""Parallel updates of one element under ThreadSanitizer: no thread sees another's half-done work, and no update is lost."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_program

import halide_py as hl

RUNTIME = Path(__file__).parents[2] / "runtime"
GCC = shutil.which("gcc")
x = hl.Var("x")
MAIN = """
#include "hl_runtime.h"
#include "count.h"
#include "largest.h"
#include "product.h"
#include <stdio.h>
static halide_buffer_t buffers[5];
static halide_dimension_t dims[5];
static halide_buffer_t *buffer(int i, void *data, int size, struct halide_type_t type) {
    dims[i].extent = size, dims[i].stride = 1;
    buffers[i].host = data, buffers[i].dim = dims + i, buffers[i].dimensions = 1, buffers[i].type = type;
    return buffers + i;
}
int main(void) {
    static uint8_t image[60000];
    int32_t counts[256];
    float largest[4];
    uint32_t re[3], im[3];
    const struct halide_type_t u8 = {halide_type_uint, 8, 1}, i32 = {halide_type_int, 32, 1}, u32 = {halide_type_uint, 32, 1}, f32 = {halide_type_float, 32, 1};
    for (int i = 0; i < 60000; i++) image[i] = (uint8_t)(i * 7919 % 251);
    halide_buffer_t *in = buffer(0, image, 60000, u8);
    if (count(in, buffer(1, counts, 256, i32)) || largest_(in, buffer(2, largest, 4, f32)) ||
        product(in, buffer(3, re, 3, u32), buffer(4, im, 3, u32))) return 1;
    int total = 0;
    for (int i = 0; i < 256; i++) total += counts[i];
    printf("%d %g %u\\n", total, largest[3], re[0] & 1u);
    return 0;
}
"""


def count(h: hl.Func, e: Any, r: hl.RDom) -> None:
    h[x] = 0
    h[hl.i32(e)] += 1


def largest(h: hl.Func, e: Any, r: hl.RDom) -> None:
    at = hl.i32(e) % 4
    h[x] = hl.f32(0)
    h[at] = hl.max(h[at], hl.f32(r))


def product(h: hl.Func, e: Any, r: hl.RDom) -> None:
    h[x] = (hl.u32(1), hl.u32(2))
    a, b, old = hl.u32(e) * 2 + 1, hl.u32(e) * 2, h[r % 3]
    h[r % 3] = (old[0] * a - old[1] * b, old[0] * b + old[1] * a)


def write(folder: Path, name: str, define: Callable[[hl.Func, Any, hl.RDom], None], function: str) -> None:
    im, r, h = hl.ImageParam(hl.UInt(8), 1, f"{name}_image"), hl.RDom([(0, 60000)]), hl.Func(name)
    define(h, im[r], r)
    h.update().atomic().parallel(r, 8)
    h.compile_to_c(str(folder / f"{name}.cpp"), [im], function)
    h.compile_to_header(str(folder / f"{name}.h"), [im], function)


@pytest.mark.skipif(GCC is None, reason="no gcc on PATH")
def test_atomic_updates(tmp_path: Path) -> None:
    for define in (count, largest, product):
        write(tmp_path, define.__name__, define, define.__name__ + ("_" if define is largest else ""))
    (tmp_path / "main.c").write_text(MAIN)
    flags = ["-O1", "-g", "-fsanitize=thread", "-fwrapv", "-march=native", "-pthread", f"-I{RUNTIME}"]
    done = subprocess.run([str(GCC), *flags, "main.c", *map(str, sorted(RUNTIME.glob("*.c"))), "count.cpp", "largest.cpp", "product.cpp", "-o", "updates", "-lm",
                           "-lstdc++"], cwd=tmp_path, capture_output=True, text=True)
    if done.returncode and "cannot find" in done.stderr:
        pytest.skip("the thread sanitizer's library is not installed")
    assert done.returncode == 0, done.stderr
    ran = run_program([str(tmp_path / "updates")], env={"HL_NUM_THREADS": "4", "TSAN_OPTIONS": "halt_on_error=1"})
    last = max(i for i in range(60000) if i * 7919 % 251 % 4 == 3)
    assert (ran.returncode, ran.stdout) == (0, f"60000 {last} 1\n"), ran.stderr
