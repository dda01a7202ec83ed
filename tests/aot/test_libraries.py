"""Ahead of time: C programs that include what was written, link it and run, without Python."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.driver.abi import STATIC_RUNTIME
from halide_py.driver.toolchain import find_compiler

CC = find_compiler()
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


def run(folder: Path, program: str, *link: str, language: str = "c", flags: tuple[str, ...] = ()) -> str:
    """What a program prints; compiled with every warning an error."""
    source = folder / f"main.{language}"
    source.write_text(program)
    command = [*CC, "-x", "c++" if language == "cc" else "c", "-std=c++17" if language == "cc" else "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags,
               str(source), "-x", "none", "-o", str(folder / "main"), *link, "-lpthread", "-lm", "-ldl"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(folder / "main")], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
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


@pytest.mark.parametrize("language", ["c", "cc"])
def test_shared_library_with_inferred_arguments(tmp_path: Path, language: str) -> None:
    f, _, _ = blur()
    f.compile_to_shared_library(str(tmp_path / "blur"))
    program = '#include "blur.h"\n' + CALL.replace("NAME", "blur").replace("ARGS", "&a, 2, &b")
    out = run(tmp_path, program, "-L.", "-l:blur.so", "-Wl,-rpath," + str(tmp_path), language=language)
    assert EXPECTED in out and out.endswith("status 0")
    assert " is accessed at 8, which is beyond the max (4) in dimension 0" in out
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(tmp_path / "blur.so")], capture_output=True, text=True, check=True).stdout
    assert " T blur\n" in symbols and " T blur_argv\n" in symbols and "Py" not in symbols


def test_static_library_arguments_in_order_and_name(tmp_path: Path) -> None:
    f, p, k = blur("blurred")
    f.compile_to_static_library(str(tmp_path / "lib"), [k, p], "my_blur")
    program = '#include "lib.h"\n' + CALL.replace("NAME", "my_blur").replace("ARGS", "2, &a, &b")
    assert EXPECTED in run(tmp_path, program, str(tmp_path / "lib.a"))


def test_object_and_runtime_apart(tmp_path: Path) -> None:
    f, p, k = blur("separate")
    hl.Pipeline(f).compile_to_file(str(tmp_path / "one"), [p, k], "separate", hl.Target("host-no_runtime"))
    undefined = subprocess.run(["nm", "-u", str(tmp_path / "one.o")], capture_output=True, text=True, check=True).stdout
    assert "halide_do_par_for" in undefined
    program = '#include "one.h"\n' + CALL.replace("NAME", "separate").replace("ARGS", "&a, 2, &b")
    assert EXPECTED in run(tmp_path, program, str(tmp_path / "one.o"), STATIC_RUNTIME)


@pytest.mark.parametrize("flags", [("-x", "c", "-std=gnu11"), ("-x", "c++", "-std=c++17")])
def test_c_text_compiles_alone_and_runs(tmp_path: Path, flags: tuple[str, ...]) -> None:
    f, p, k = blur("text")
    f.compile_to_c(str(tmp_path / "text.c"), [p, k])
    f.compile_to_header(str(tmp_path / "text.h"), [p, k])
    subprocess.run([*CC, *flags, "-O1", "-march=native", "-fwrapv", "-c", str(tmp_path / "text.c"), "-o", str(tmp_path / "text.o")], check=True)
    program = '#include "text.h"\n' + CALL.replace("NAME", "text").replace("ARGS", "&a, 2, &b")
    assert EXPECTED in run(tmp_path, program, str(tmp_path / "text.o"), STATIC_RUNTIME)


@pytest.mark.parametrize("language", ["c", "cc"])
def test_two_libraries_link_together_and_headers_stand_alone(tmp_path: Path, language: str) -> None:
    for name, value in (("one", 1), ("two", 2)):
        f = hl.Func(name)
        f[x] = x * 0 + value
        f.compile_to_static_library(str(tmp_path / name), [], name)
    program = """
#include "two.h"
#include "one.h"
#include <stdio.h>
int main(void) {
    struct halide_dimension_t d = {0, 1, 1, 0};
    struct halide_buffer_t b = {0};
    int32_t v = 0, w = 0;
    b.type.code = (__typeof__(b.type.code))0; b.type.bits = 32; b.type.lanes = 1; b.dimensions = 1; b.dim = &d; b.host = (uint8_t *)&v;
    if (one(&b)) return 1;
    b.host = (uint8_t *)&w;
    if (two(&b)) return 2;
    printf("%d %d\\n", v, w);
    return 0;
}
"""
    flags = ("-Wno-missing-field-initializers",)
    assert run(tmp_path, program, str(tmp_path / "one.a"), str(tmp_path / "two.a"), language=language, flags=flags) == "1 2\nstatus 0"


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a[::-1], np.asfortranarray, lambda a: a[:, ::2]])
def test_buffers_in_expressions_become_data(tmp_path: Path, make: Any) -> None:
    table = make(np.arange(48, dtype=np.float32).reshape(6, 8))
    b = hl.Buffer(table).translated(0, 10)
    k = hl.Param(hl.Float(32), "k")
    f = hl.Func("tabled")
    f[x, y] = b[x + 10, y] * k
    f.compile_to_static_library(str(tmp_path / "tabled"))
    program = '#include "tabled.h"\n' + HELPERS + """
int main(void) {
    float out[6];
    struct halide_buffer_t b = image(out, dims_out, 2, 32, 3, 2);
    float k = 0.5f;
    void *args[] = {&k, &b};
    (void)dims_in;
    if (tabled(2.0f, &b)) return 1;
    printf("%g %g\\n", out[1], out[5]);
    if (tabled_argv(args)) return 2;
    printf("%g\\n", out[5]);
    return 0;
}
"""
    want = f"{table[0, 1] * 2:g} {table[1, 2] * 2:g}\n{table[1, 2] * 0.5:g}\nstatus 0"
    assert run(tmp_path, program, str(tmp_path / "tabled.a")) == want


def test_modules_are_linked_and_use_a_runtime_apart(tmp_path: Path) -> None:
    data = hl.Buffer(np.array([3], np.int32))
    modules = []
    for name in ("left", "right"):
        f = hl.Func(name)
        f[x] = data[0] + x + len(name)
        modules.append(f.compile_to_module([], name))
    both = hl.link_modules("both", modules)
    T = hl.OutputFileType
    both.compile({T.object: str(tmp_path / "both.o"), T.c_header: str(tmp_path / "both.h")})
    hl.compile_standalone_runtime(str(tmp_path / "runtime.o"), hl.get_host_target())
    program = '#include "both.h"\n' + HELPERS + """
int main(void) {
    int32_t a[2], b[2];
    struct halide_buffer_t p = image(a, dims_in, 0, 32, 2, 1), q = image(b, dims_out, 0, 32, 2, 1);
    p.dimensions = q.dimensions = 1;
    if (left(&p) || right(&q)) return 1;
    printf("%d %d\\n", a[1], b[1]);
    return 0;
}
"""
    assert run(tmp_path, program, str(tmp_path / "both.o"), str(tmp_path / "runtime.o")) == "8 9\nstatus 0"
    with pytest.raises(hl.CompileError, match="are named left"):
        hl.link_modules("twice", [modules[0], modules[0]])
    empty = hl.Module("empty", hl.get_host_target())
    with pytest.raises(hl.CompileError, match="no functions"):
        empty.compile({T.object: str(tmp_path / "e.o")})
    empty.append(both)
    assert repr(empty).endswith("left, right>") and [m.name() for m in empty.submodules()] == ["both"]


def test_many_kinds_at_once(tmp_path: Path) -> None:
    f, p, k = blur("kinds")
    T = hl.OutputFileType
    files = {T.c_source: "k.c", T.c_header: "k.h", T.object: "k.o", T.assembly: "k.s", T.static_library: "k.a", T.stmt: "k.stmt"}
    f.compile_to({kind: str(tmp_path / name) for kind, name in files.items()}, [p, k], "kinds")
    assert all((tmp_path / name).stat().st_size > 200 for name in files.values())
    assert "parallel" in (tmp_path / "k.stmt").read_text() and "kinds" in (tmp_path / "k.s").read_text()
    f.compile_to_lowered_stmt(str(tmp_path / "lowered"), [p, k])
    f.compile_to_assembly(str(tmp_path / "a.s"), [p, k], hl.get_host_target())
    f.pipeline().compile_to_conceptual_stmt(str(tmp_path / "conceptual"), [p, k])
    assert "produce kinds" in (tmp_path / "conceptual").read_text() and (tmp_path / "lowered").read_text() == (tmp_path / "k.stmt").read_text()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    f, p, k = blur("refuses")
    T = hl.OutputFileType
    for attempt, message in (
        (lambda: f.compile_to({T.bitcode: str(tmp_path / "b")}, [p, k], "f"), "cannot write bitcode files; there are"),
        (lambda: f.compile_to_c(str(tmp_path / "no" / "where.c"), [p, k]), "not a folder"),
        (lambda: f.compile_to_c(str(tmp_path / "b.c"), [p, k], "not a name"), "fn_name='not_a_name'"),
        (lambda: f.compile_to_shared_library(str(tmp_path / "1st")), "cannot name a C function"),
        (lambda: f.compile_to_c(str(tmp_path / "b.c"), [p]), "which was not found"),
        (lambda: f.compile_to_c(str(tmp_path / "b.c"), [p, k], "f", hl.Target("host-opencl")), "opencl"),
    ):
        with pytest.raises(hl.CompileError) as e:
            attempt()
        assert message in str(e.value)
    assert not (tmp_path / "b").exists() and not (tmp_path / "b.c").exists()


EXTENSION = """
import sys
import numpy as np
sys.path.insert(0, ".")
import bound
from bound import blur2, shade

image = np.arange(12, dtype=np.uint8).reshape(3, 4)
out = np.zeros((3, 4), np.float32)
shade(None, image, 0.5, True, np.int16(-3), out)
print(out[2, 3], out[0, 0])
fortran = np.zeros((4, 3), np.float32, order="F")
shade(None, image=image.T, k=0.5, up=0, offset=-3, shade=fortran)
print(fortran[3, 2], blur2(out, out) is None)
cases = {
    "rank": lambda: shade(None, image[0], 0.5, True, 1, out), "strides": lambda: shade(None, image[:, ::2], 0.5, True, 1, out),
    "range": lambda: shade(None, image, 0.5, True, 1 << 15, out), "word": lambda: shade(None, image, "x", True, 1, out),
    "truth": lambda: shade(None, image, 0.5, "False", 1, out), "element": lambda: shade(None, image.astype(complex), 0.5, True, 1, out),
    "type": lambda: shade(None, image.astype(np.float32), 0.5, True, 1, out), "order": lambda: shade(None, image, 0.5, True, 1, out.astype(">f4")),
    "count": lambda: shade(None, image), "frozen": lambda: shade(None, image, 0.5, True, 1, bytes(4)), "nothing": lambda: shade(None, 3, 0.5, True, 1, out),
}
for name, case in cases.items():
    try:
        case()
        print(name, "passed")
    except Exception as e:
        print(name, type(e).__name__, str(e), getattr(e, "__notes__", ""))
"""


def test_extension_modules_need_no_halide_py(tmp_path: Path) -> None:
    p, k, up, offset = hl.ImageParam(hl.UInt(8), 2, "image"), hl.Param(hl.Float(32), "k"), hl.Param(hl.Bool(), "up"), hl.Param(hl.Int(16), "offset")
    shade, blur2, source = hl.Func("shade"), hl.Func("blur2"), hl.ImageParam(hl.Float(32), 2, "source")
    shade[x, y] = p[x, y] * k + offset + hl.select(up, 100, 0)
    shade.parallel(y)
    blur2[x, y] = source[x, y]
    T = hl.OutputFileType
    for f, args, target in ((shade, [p, k, up, offset], "host-user_context"), (blur2, [source], "host")):
        f.compile_to({T.object: str(tmp_path / f"{f.name()}.o"), T.python_extension: str(tmp_path / f"{f.name()}.py.c")}, args, f.name(), hl.Target(target))
    strict = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-I", sysconfig.get_paths()["include"], "-c")
    for name, standard, flags in (
        ("shade", ("-x", "c", "-std=c11"), ("-DHALIDE_PYTHON_EXTENSION_OMIT_MODULE_DEFINITION",)),
        ("blur2", ("-x", "c++", "-std=c++17"), ("-DHALIDE_PYTHON_EXTENSION_MODULE_NAME=bound", "-DHALIDE_PYTHON_EXTENSION_FUNCTIONS=X(shade) X(blur2)")),
    ):
        built = subprocess.run([*CC, *standard, *strict, *flags, str(tmp_path / f"{name}.py.c"), "-o", str(tmp_path / f"{name}.py.o")],
                               capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
    objects = [str(tmp_path / name) for name in ("shade.o", "blur2.o", "shade.py.o", "blur2.py.o")]  # both objects have the runtime inside
    subprocess.run([*CC, "-shared", *objects, "-o", str(tmp_path / "bound.so"), "-lpthread", "-lm"], check=True)
    done = subprocess.run([sys.executable, "-c", EXTENSION], cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": ""})
    assert done.stdout.splitlines() == [
        "102.5 97.0", "2.5 True",
        "rank ValueError Invalid argument image: Expected 2 dimensions, got 1 ",
        "strides ValueError Invalid argument image: neither C nor Fortran contiguous ",
        "range OverflowError Invalid argument offset: 32768 does not fit int16 ",
        "word TypeError Invalid argument k: a number is needed, not x ",
        "truth TypeError Invalid argument up: a bool is needed, not False ",
        "element ValueError Invalid argument image: no pipeline takes elements of format Zd ",
        "type RuntimeError Halide Runtime Error: -3 ['Input buffer image has type uint8 but type of the buffer passed in is float32']",
        "order ValueError Invalid argument shade: no pipeline takes elements of format >f ",
        "count TypeError shade() missing required argument 'k' (pos 3) ",
        "frozen ValueError Invalid argument shade: not a writable array with the buffer protocol ",
        "nothing ValueError Invalid argument image: not an array with the buffer protocol ",
    ], done.stdout + done.stderr
