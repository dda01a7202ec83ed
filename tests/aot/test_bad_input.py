"""What is wrong is said at once: names, paths and arguments in Python, everything a C caller can pass; nothing half-written stays behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import CC, HELPERS, blur, run, x

import halide_py as hl

T = hl.OutputFileType


@pytest.mark.parametrize("name", [
    "1f", "a b", "a-b", "f.o", "int", "main", "return", "class", "template", "f::", "::f", "a::b", "__x", "_X", "é", "uint8_t", "NULL", "errno", "halide_malloc",
    "hl_last_error", "bool", "true", "x\n"])
def test_names_that_are_no_c_functions(tmp_path: Path, name: str) -> None:
    f, p, k = blur()
    for write in (lambda: f.compile_to({T.object: str(tmp_path / "f.o"), T.c_header: str(tmp_path / "f.h")}, [p, k], name),
                  lambda: f.compile_to_module([p, k], name), lambda: f.compile_to_shared_library(str(tmp_path / "f"), [p, k], name)):
        with pytest.raises(hl.CompileError, match="cannot name a C function; use letters, digits and underscores, for example fn_name="):
            write()
    assert not list(tmp_path.iterdir())


def test_arguments_of_any_name_become_c_identifiers(tmp_path: Path) -> None:
    images = [hl.ImageParam(hl.UInt(8), 1, name) for name in ("int", "a b", "uint8_t", "k-1", "x\n*/", "halide_buffer_t", "NULL")]
    numbers = [hl.Param(hl.UInt(8), name) for name in ("class", "c d", "size_t", "printf", "é")]
    f = hl.Func("named")
    f[x] = sum((i[x] for i in images), hl.u8(0)) + sum((hl.u8(n) for n in numbers), hl.u8(0))
    kinds = {T.c_header: "n.h", T.static_library: "n.a", T.c_source: "n.c", T.python_extension: "n.py.c", T.function_info_header: "n.info.h", T.registration: "n.r.cc"}
    f.compile_to({kind: str(tmp_path / name) for kind, name in kinds.items()}, [*images, *numbers], "named")
    program = '#include "n.h"\n#include <stdio.h>\nint main(void) { return named(0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0) == -12 ? 0 : 1; }\n'
    assert run(tmp_path, program, str(tmp_path / "n.a")).endswith("status 0")
    subprocess.run([*CC, "-march=native", "-c", "n.c", "-o", "n.o"], cwd=tmp_path, check=True)
    subprocess.run([*CC, "-std=c++17", "-include", "n.info.h", "-x", "c++", "-c", "n.r.cc", "-o", "r.o"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("path, why", [
    ("none/f", "is not a folder that can be written"), ("", "it names no file"), ("a\0b", "it names no file"), ("n" * 300, "File name too long"), (".", "it is a folder"),
    ("/dev/full", "No space left on device")])
def test_paths_where_no_file_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str) -> None:
    monkeypatch.chdir(tmp_path)
    f, p, k = blur()
    host = hl.Target("host")
    calls: list[Callable[[], Any]] = [
        lambda: f.compile_to({T.c_header: path}, [p, k], "f"), lambda: f.compile_to_object(path, [p, k], "f"), lambda: f.compile_to_c(path, [p, k], "f"),
        lambda: hl.serialize_pipeline(hl.Pipeline(f), path), lambda: hl.compile_standalone_runtime(path, host)]
    if path not in ("", ".", "/dev/full"):  # with an end these are names of files
        calls += [lambda: f.compile_to_shared_library(path, [p, k], "f"), lambda: f.compile_to_static_library(path, [p, k], "f"),
                  lambda: f.compile_to_file(path, [p, k], "f")]
        if len(path) < 300:
            targets = [host, hl.Target("host-no_asserts")]
            calls += [lambda: f.compile_to_multitarget_static_library(path, [p, k], targets),
                      lambda: f.compile_to_multitarget_object_files(path, [p, k], targets, ["a", "b"])]
    for call in calls:
        with pytest.raises(hl.CompileError, match=f"Cannot write .*{why}"):
            call()
    assert not list(tmp_path.iterdir())
    if path != "/dev/full":
        for read in (hl.deserialize_pipeline, hl.load_library):
            with pytest.raises(hl.CompileError, match="Cannot (read|load)"):
                read(path)
    with pytest.raises(hl.CompileError, match="it is a device, which may have no end"):
        hl.deserialize_pipeline("/dev/zero")


def test_files_written_before_one_that_cannot_be_are_removed(tmp_path: Path) -> None:
    f, p, k = blur()
    with pytest.raises(hl.CompileError, match="No space left on device"):
        f.compile_to({T.c_header: str(tmp_path / "f.h"), T.stmt: "/dev/full"}, [p, k], "f")
    assert not list(tmp_path.iterdir())
    for call, error, message in (
        (lambda: f.compile_to({T.object: str(tmp_path / "s"), T.c_header: str(tmp_path / "s")}, [p, k], "f"), hl.CompileError, "two files to"),
        (lambda: f.compile_to({"object": str(tmp_path / "s")}, [p, k], "f"), TypeError, "must be an OutputFileType, not 'object'"),
        (lambda: f.compile_to({T.object: 3}, [p, k], "f"), TypeError, "not int"),
        (lambda: f.compile_to_object(str(tmp_path / "s"), [p, k], 3), TypeError, "must be a string, not 3"),
        (lambda: f.compile_to_object(str(tmp_path / "s"), [p, None, k], "f"), TypeError, "not None"),
        (lambda: f.compile_to_object(str(tmp_path / "s"), [p, p, k], "f"), hl.CompileError, "given twice"),
        (lambda: f.compile_to_multitarget_object_files(str(tmp_path / "s"), [p, k], [hl.Target("host")] * 2, ["a", "a"]), hl.CompileError, "given twice"),
    ):
        with pytest.raises(error, match=message):
            call()
    f.compile_to({T.object: tmp_path / "path.o"}, [p, k], "f")
    assert [q.name for q in tmp_path.iterdir()] == ["path.o"] and not os.access(tmp_path / "path.o", os.X_OK)


CALLS = HELPERS + """
static uint16_t in[45], out[32];
static struct halide_buffer_t a, b;
static void fresh(void) {
    a = image(in, dims_in, 1, 16, 9, 5);
    b = image(out, dims_out, 1, 16, 8, 4);
}
static int number = 2;
static int call(void) {
    uint16_t scale = (uint16_t)number;
    void *args[] = {&a, &scale, &b};
    int code = strict(&a, (uint16_t)number, &b), again = strict_argv(args);
    number = 2;
    return code == again ? code : 1000;
}
#define TRY(change) fresh(); change; printf("%d ", call())
int main(void) {
    void *none[] = {0, &number, 0};
    TRY((void)0);
    printf("%d %d %d ", strict(0, 2, &b), strict(&a, 2, 0), strict_argv(none));
    TRY(a.type.code = (__typeof__(a.type.code))0); TRY(a.type.bits = 8); TRY(b.type.bits = 32); TRY(b.type.lanes = 2);
    printf("| ");
    TRY(a.dimensions = 1); TRY(a.dimensions = 3); TRY(b.dimensions = 0); TRY(a.dimensions = -1); TRY(a.dim = 0); TRY(b.dim = 0);
    printf("| ");
    TRY(dims_in[0].stride = 2); TRY(dims_out[0].stride = 0); TRY(dims_out[0].stride = -1); TRY(dims_in[1].min = -1; dims_in[1].extent = 6);
    printf("| ");
    TRY(dims_out[1].extent = -1); TRY(dims_in[1].extent = -5); TRY(dims_in[0].extent = 8); TRY(dims_out[1].extent = 100); TRY(dims_in[0].min = 1); TRY(dims_out[0].min = -1);
    TRY(dims_out[0].min = 2147483000; dims_out[0].extent = 2000);
    printf("| ");
    TRY(a.flags = 2); TRY(b.flags = 2); TRY(a.flags = 3); TRY(a.host = (uint8_t *)out); TRY(number = 1); TRY(number = 9); TRY(number = 7); TRY(a.host += 2);
    TRY(a.host = 0; a.device = 1);
    fresh();
    a.host = 0;
    printf("| %d %dx%d", call(), dims_in[0].extent, dims_in[1].extent);
    return 0;
}
"""


def test_everything_wrong_at_the_c_entry_has_its_code(tmp_path: Path) -> None:
    f, p, k = blur("strict")
    k.set_range(2, 8)
    p.dim(1).set_min(0)
    p.set_host_alignment(16)
    pipeline = hl.Pipeline(f)
    pipeline.add_requirement(k != 7, "seven")
    pipeline.compile_to_static_library(str(tmp_path / "strict"), [p, k], "strict")
    program = '#include "strict.h"\n' + CALLS.replace("in[45], out[32]", "in[45] __attribute__((aligned(64))), out[32] __attribute__((aligned(64)))")
    wanted = ("0 -12 -12 -12 -3 -3 -3 -3 | -43 -43 -43 -43 -43 -43 | -8 -8 -8 -8 | -28 -28 -4 -4 -4 -4 -4 | -44 -44 -44 -47 -9 -10 -27 -24 -34 | 0 9x5")
    out = run(tmp_path, program, str(tmp_path / "strict.a"), flags=("-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
    assert wanted in out and out.endswith("status 0"), out
