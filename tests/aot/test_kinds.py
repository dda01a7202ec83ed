"""Kinds of files, targets and their features, and what cannot be written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from programs import CALL, CC, CLANG, EXPECTED, HELPERS, blur, run, x, y

import halide_py as hl
from halide_py.driver.abi import STATIC_RUNTIME
from halide_py.ir.target import host_target


def test_many_kinds_at_once(tmp_path: Path) -> None:
    f, p, k = blur("kinds")
    T = hl.OutputFileType
    files = {T.c_source: "k.c", T.c_header: "k.h", T.object: "k.o", T.assembly: "k.s", T.static_library: "k.a", T.stmt: "k.stmt", T.stmt_html: "k.html",
             T.conceptual_stmt: "k.loops", T.conceptual_stmt_html: "loops.html", T.compiler_log: "k.log", T.registration: "k.r.cpp"}
    if CLANG:
        files |= {T.bitcode: "k.bc", T.llvm_assembly: "k.ll"}
    f.compile_to({kind: str(tmp_path / name) for kind, name in files.items()}, [p, k], "kinds")
    assert all((tmp_path / name).stat().st_size > 30 for name in files.values())
    assert "parallel" in (tmp_path / "k.stmt").read_text() and "kinds" in (tmp_path / "k.s").read_text()
    assert json.loads((tmp_path / "k.log").read_text())["object_code_size"] > 1000
    page = (tmp_path / "k.html").read_text()
    assert page.count("<details") == page.count("</details>") > 2 and '<span class="word">parallel</span>' in page and "&lt;" in page
    if CLANG:
        assert (tmp_path / "k.bc").read_bytes()[:2] == b"BC" and "define" in (tmp_path / "k.ll").read_text()
    f.compile_to_lowered_stmt(str(tmp_path / "lowered"), [p, k])
    f.compile_to_assembly(str(tmp_path / "a.s"), [p, k], hl.get_host_target())
    f.pipeline().compile_to_conceptual_stmt(str(tmp_path / "conceptual"), [p, k])
    assert "produce kinds" in (tmp_path / "conceptual").read_text() and (tmp_path / "lowered").read_text() == (tmp_path / "k.stmt").read_text()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    f, p, k = blur("refuses")
    T = hl.OutputFileType
    for attempt, message in (
        (lambda: f.compile_to({T.c_header: str(tmp_path / "b"), T.device_code: str(tmp_path / "c")}, [p, k], "f"), "cannot write device_code files: pipel"),
        (lambda: f.compile_to({T.c_header: str(tmp_path / "b"), T.stmt: str(tmp_path)}, [p, k], "f"), "it is a folder"),
        (lambda: f.compile_to_c(str(tmp_path / "b.c"), [p, k], "a::b"), "namespaces need the target feature c_plus_plus_name_mangling"),
        (lambda: f.compile_to_c(str(tmp_path / "b.c"), [p, k], "int"), "fn_name='_int'"),
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
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE, text=True) as reader:
        f.compile_to_header(str(tmp_path / "pipe"), [p, k], "refuses")  # written to, not replaced
        assert "int refuses(" in reader.communicate()[0]


def test_c_plus_plus_functions_in_namespaces_with_what_is_known_of_them(tmp_path: Path) -> None:
    f, p, k = blur("spaced")
    table = hl.Buffer(np.array([7], np.uint16))
    g = hl.Func("tabled")
    g[x, y] = p[x, y] + table[hl.clamp(x, 0, 0)]
    target, T = hl.Target("host-c_plus_plus_name_mangling-user_context"), hl.OutputFileType
    files = {T.object: "o", T.c_header: "h", T.function_info_header: "info.h", T.registration: "registration.cc"}
    for func, args, name, base in ((f, [p, k], "pic::near::blur", "spaced"), (g, [p], "pic::blur", "tabled")):
        func.compile_to({kind: str(tmp_path / f"{base}.{end}") for kind, end in files.items()}, args, name, target)
    program = """
#include "spaced.info.h"
#include "tabled.info.h"
#include "tabled.h"
#include "spaced.h"
""" + HELPERS + """
static int registered;
extern "C" void halide_register_argv_and_metadata(int (*f)(void **), const struct halide_filter_metadata_t *m, const char *const *pairs) {
    registered += f && m && !pairs;
}
extern "C" void halide_error(void *context, const char *message) { printf("%d: %s\\n", *(int *)context, message); }
int main() {
    constexpr auto info = pic::near::blur_argument_info();
    static_assert(info.size() == 4 && info[0].name == "__user_context" && info[1].kind == HalideFunctionInfo::InputBuffer && info[1].dimensions == 2);
    static_assert(info[2].type.code == 1 && info[2].type.bits == 16 && pic::blur_argument_info().size() == 3);
    uint16_t in[45], out[32];
    int number = 42;
    for (int i = 0; i < 45; i++) in[i] = (uint16_t)i;
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    if (pic::near::blur(&number, &a, 2, &b)) return 1;
    printf("%d ", out[31]);
    void *args[] = {&number, &a, &b};
    void *context = &number;
    args[0] = &context;
    if (pic::blur_argv(args)) return 2;
    printf("%d %d\\n", out[31], registered);
    dims_in[0].extent = 3;
    return pic::blur(&number, &a, &b) == -4 ? 0 : 3;
}
"""
    made = [str(tmp_path / f"{name}.o") for name in ("spaced", "tabled")]
    sources = [str(tmp_path / f"{name}.registration.cc") for name in ("spaced", "tabled")]
    out = run(tmp_path, program, *made, "-x", "c++", *sources, "-x", "none", language="cc")
    assert re.sub(r"\$\d+", "", out) == "224 41 2\n42: Input buffer input is accessed at 7, which is beyond the max (2) in dimension 0\nstatus 0"


def test_code_for_another_processor_says_so(tmp_path: Path) -> None:
    f, p, k = blur("modern")
    f.compile_to_c(str(tmp_path / "modern.c"), [p, k], target=hl.Target("x86-64-linux-sse41-avx-avx2"))
    f.compile_to_header(str(tmp_path / "modern.h"), [p, k])
    program = '#include "modern.h"\n#include <stdio.h>\nint main(void) { printf("%d", modern(0, 1, 0)); return 0; }\n'
    program += "_Bool hl_processor_has(uint32_t sets) { return HAS; }\n"  # in place of the runtime's
    subprocess.run([*CC, "-O1", "-march=x86-64", "-mavx2", "-fwrapv", "-c", str(tmp_path / "modern.c"), "-o", str(tmp_path / "modern.o")], check=True)
    for has, code in (("sets != 0", "-12"), ("(sets >> hl_has_avx2 & 1) == 0", "-1001")):  # a null buffer; a processor without avx2
        declared = "enum { hl_has_avx2 = 4 };\n_Bool hl_processor_has(uint32_t sets);\n"
        out = run(tmp_path, program.replace("HAS", has).replace("int main", declared + "int main"), str(tmp_path / "modern.o"), STATIC_RUNTIME)
        assert out.startswith(code) and ("modern was compiled for processors with sse4.1 sse4.2 popcnt avx avx2, and this one" in out) == (code == "-1001"), out


def test_several_targets_in_one_library_take_what_the_processor_has(tmp_path: Path) -> None:
    f, p, k = blur("several")
    targets = [hl.Target(t) for t in ("x86-64-linux-avx-avx2-avx512-avx512_skylake-sse41", "x86-64-linux-sse41", "x86-64-linux")]
    f.compile_to_multitarget_static_library(str(tmp_path / "several"), [p, k], targets)
    program = '#include "several.h"\n' + CALL.replace("NAME", "several").replace("ARGS", "&a, 2, &b")
    assert EXPECTED in run(tmp_path, program, str(tmp_path / "several.a"))
    f.compile_to_multitarget_object_files(str(tmp_path / "apart"), [p, k], targets[1:], ["new", "old"])
    program = '#include "apart.h"\n' + CALL.replace("NAME", "several").replace("ARGS", "&a, 2, &b")
    assert EXPECTED in run(tmp_path, program, *(str(tmp_path / f"apart{name}.o") for name in ("-new", "-old", "_wrapper", "_runtime")))
    f.compile_to_multitarget_object_files(str(tmp_path / "v1.by_target"), [p, k], targets[1:], [])
    assert sorted(path.name for path in tmp_path.glob("v1.*")) == [f"v1.by_target{e}" for e in (
        "-x86-64-linux-sse41.o", "-x86-64-linux.o", ".h", "_runtime.o", "_wrapper.o")]
    f.compile_to_multitarget_object_files(str(tmp_path / "single"), [p, k], targets[2:], ["old"])
    assert EXPECTED in run(tmp_path, program.replace("apart", "single"), str(tmp_path / "single.o"))
    for given, suffixes, message in (
        ([targets[0], hl.Target("arm-64-linux")], [], "must have the same architecture"), ([targets[0]] * 2, [], "given twice"), ([], [], "a target at least"),
        (targets, ["one"], "as many suffixes"), (targets, ["a-b", "a_b", "c"], "do not tell the targets apart"),
        ([targets[0].with_feature(hl.TargetFeature.UserContext), targets[1]], [], "all targets must have the feature user_context, or none"),
        ([targets[0].with_feature(hl.TargetFeature.JIT)], [], "JIT is not allowed"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            f.compile_to_multitarget_object_files(str(tmp_path / "bad"), [p, k], given, suffixes)
    assert not list(tmp_path.glob("bad*"))


def test_no_bounds_query_and_no_asserts_leave_out_what_they_say(tmp_path: Path) -> None:
    f, p, k = blur("bare")
    f.compile_to_static_library(str(tmp_path / "bare"), [p, k], "bare", hl.Target("host-no_bounds_query"))
    program = '#include "bare.h"\n' + CALL.replace("NAME", "bare").replace("ARGS", "&a, 2, &b")
    assert "query -4: 1 x 1, 0 bits\n" in run(tmp_path, program, str(tmp_path / "bare.a"))  # an image that is too small, then
    f.compile_to_lowered_stmt(str(tmp_path / "stmt"), [p, k], target=hl.Target("host-no_asserts-no_bounds_query"))
    text = (tmp_path / "stmt").read_text()
    assert "assert(" not in text and "query" not in text and "parallel" in text


def test_modules_say_which_entries_their_functions_have_and_what_arguments_are_called(tmp_path: Path) -> None:
    f, p, k = blur("named")
    table = hl.Buffer(np.array([7], np.uint16))
    g = hl.Func("uses_table")
    g[x, y] = p[x, y] + table[hl.clamp(x, 0, 0)]
    one = f.compile_to_module([p, k], "one", linkage=hl.LinkageType.External)
    two = g.compile_to_module([p], "two", linkage=hl.LinkageType.ExternalPlusArgv)
    three = f.compile_to_module([p, k], "three")
    three.remap_metadata_name("scale", "factor")
    assert three.get_metadata_name_map() == {"scale": "factor"} and [b[0] for b in two.buffers()] == [7]
    whole = hl.Module("whole", hl.get_host_target())
    for m in (one, two, three):
        whole.append(m)
    whole.append(table)
    assert len(whole.buffers()) == 2
    T = hl.OutputFileType
    whole.compile({T.c_header: str(tmp_path / "h"), T.registration: str(tmp_path / "r"), T.python_extension: str(tmp_path / "py")})
    header = (tmp_path / "h").read_text()
    assert "int one(" in header and "one_argv" not in header
    assert "int two_argv(" in header and "two_metadata" not in header
    assert "three_metadata(" in header and "uint16_t factor" in header
    assert "one" not in (tmp_path / "r").read_text().replace("none", "") and '"factor"' in (tmp_path / "py").read_text()
    data = np.array(whole.compile_to_buffer()).tobytes()
    (tmp_path / "whole.o").write_bytes(data)
    symbols = subprocess.run(["nm", "--defined-only", "-g", str(tmp_path / "whole.o")], capture_output=True, text=True, check=True).stdout.split()
    assert {"one", "two", "two_argv", "three", "three_argv", "three_metadata"} <= set(symbols)
    assert not {"one_argv", "two_metadata", "two_with_constants"} & set(symbols)
    results = hl.AutoSchedulerResults()
    whole.set_auto_scheduler_results(results)
    assert whole.get_auto_scheduler_results() is results
    for attempt, message in (
        (lambda: three.remap_metadata_name("nothing", "x"), "no argument nothing; there are input, scale, named"),
        (lambda: f.compile_to_module([p, k], "f", linkage=hl.LinkageType.Internal), "could not be called"), (lambda: hl.load_plugin("a.so"), "cannot be loaded"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            attempt()


@pytest.mark.skipif(CLANG is None, reason="needs clang")
def test_objects_for_other_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    f, p, k = blur("travels")
    monkeypatch.setattr("halide_py.driver.cross.zig_command", tuple)  # by clang
    for name, end, start in (
        ("arm-32-android", "o", b"\x7fELF\x01"), ("arm-64-linux-armv82a-arm_dot_prod", "o", b"\x7fELF\x02"), ("x86-64-windows-avx-sse41", "obj", b"\x64\x86"),
        ("arm-32-ios-armv7s", "o", bytes.fromhex("cefaedfe0c0000000b000000")), ("arm-64-osx-no_runtime", "o", bytes.fromhex("cffaedfe")),
    ):
        if name.split("-")[2] == host_target().os.label and name.startswith("arm"):
            continue
        f.compile_to_file(str(tmp_path / "far"), [p, k], "far", hl.Target(name))
        assert (tmp_path / f"far.{end}").read_bytes().startswith(start), name
        assert ("without the C runtime" in capsys.readouterr().out) == ("no_runtime" not in name)
    target = hl.Target("arm-64-android")
    monkeypatch.setattr("halide_py.driver.toolchain.zig_command", tuple)
    monkeypatch.setattr("shutil.which", lambda command, which=shutil.which: None if "clang" in command or "llvm" in command else which(command))
    for attempt, message in (
        (lambda: f.compile_to_object(str(tmp_path / "no"), [p, k], "no", target), "Cannot compile for arm-64-android on .*There is no clang"),
        (lambda: f.compile_to_shared_library(str(tmp_path / "no"), [p, k], "no", target), "There is no clang"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            attempt()
    monkeypatch.undo()
    for attempt, message in (
        (lambda: f.compile_to_object(str(tmp_path / "no"), [p, k], "no", hl.Target("arm-64-android-sve2")), "ask clang for sve2"),
        (lambda: f.compile_to_object(str(tmp_path / "no"), [p, k], "no", hl.Target("hexagon-32-qurt")), "no way to say it to clang"),
        (lambda: f.compile_to_shared_library(str(tmp_path / "no"), [p, k], "no", target), "needs that system's linker"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            attempt()
    assert not list(tmp_path.glob("no*"))
