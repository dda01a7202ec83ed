"""What the tests of ahead-of-time files share: C programs, compiled with every warning an error, and the pipeline they call."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from processes import run_program

import halide_py as hl
from halide_py.driver.toolchain import find_compiler

CC = find_compiler()
CLANG = shutil.which("clang")
COMPILERS = [CC, *([[CLANG]] if CLANG and CC != [CLANG] else [])]
x, y = hl.Var("x"), hl.Var("y")

HELPERS = """
#include <stdio.h>
#include <string.h>
static struct halide_dimension_t dims_in[2], dims_out[2];
static struct halide_buffer_t image(void *data, struct halide_dimension_t *dim, int code, int bits, int w, int h) {
    struct halide_buffer_t b;
    memset(&b, 0, sizeof b);
    b.host = (uint8_t *)data;
    b.type.code = (__typeof__(b.type.code))code; b.type.bits = (uint8_t)bits; b.type.lanes = 1;
    b.dimensions = 2; b.dim = dim;
    dim[0].min = dim[1].min = 0; dim[0].extent = w; dim[1].extent = h; dim[0].stride = 1; dim[1].stride = w;
    return b;
}
"""


def run(folder: Path, program: str, *link: str, language: str = "c", flags: tuple[str, ...] = (), cc: list[str] = CC) -> str:
    """What a program prints; compiled with every warning an error."""
    source = folder / f"main.{language}"
    source.write_text(program)
    command = [*cc, "-x", "c++" if language == "cc" else "c", "-std=c++17" if language == "cc" else "-std=gnu11", "-Wall", "-Wextra", "-pedantic", "-Werror", *flags,
               str(source), "-x", "none", "-o", str(folder / "main"), *link, "-lpthread", "-lm", "-ldl"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = run_program([str(folder / "main")], folder)
    return f"{done.stdout}{done.stderr}status {done.returncode}"


def blur(name: str = "blur") -> tuple[hl.Func, hl.ImageParam, hl.Param]:
    p, k = hl.ImageParam(hl.UInt(16), 2, "input"), hl.Param(hl.UInt(16), "scale")
    f = hl.Func(name)
    f[x, y] = (p[x, y] + p[x + 1, y] + p[x, y + 1]) * k
    f.vectorize(x, 8).parallel(y)
    return f, p, k


CALL = HELPERS + """
int main(void) {
    uint16_t in[5 * 9], out[4 * 8];
    for (int i = 0; i < 45; i++) in[i] = (uint16_t)i;
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    int code = NAME(ARGS);
    printf("%d %d %d\\n", code, out[0], out[8 * 3 + 7]);
    a = image(0, dims_in, 0, 0, 1, 1);
    code = NAME(ARGS);
    printf("query %d: %d x %d, %d bits\\n", code, dims_in[0].extent, dims_in[1].extent, a.type.bits);
    a = image(in, dims_in, 1, 16, 5, 5);
    code = NAME(ARGS);
    printf("error %d\\n", code);
    return 0;
}
"""
EXPECTED = "0 20 224\nquery 0: 9 x 5, 16 bits\nerror -4\n"
