"""Libraries for other machines by PyPI's ziglang, runtime included: what they are is read from their headers, and they run where there is an emulator."""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_program
from programs import CALL, CC, EXPECTED, blur, x

import halide_py as hl
from halide_py.ir.target import host_target

ZIG = [sys.executable, "-m", "ziglang"]
SYSROOT = "/usr/aarch64-linux-gnu"
needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None or host_target().to_string().startswith("arm-64"), reason="needs ziglang")
CALL_FAR = '#include "far.h"\n' + CALL.replace("NAME", "far").replace("ARGS", "&a, 2, &b")


def machine(data: bytes) -> tuple[int, int]:
    """Class (1: 32 bits, 2: 64) and machine of an ELF file."""
    assert data[:4] == b"\x7fELF"
    return data[4], struct.unpack_from("<H", data, 18)[0]


@needs_zig
def test_libraries_for_arm_are_whole_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    f, p, k = blur("far")
    target, T = hl.Target("arm-64-linux-armv82a-arm_dot_prod"), hl.OutputFileType
    files = {T.object: "far.o", T.static_library: "far.a", T.c_header: "far.h", T.assembly: "far.s"}
    f.compile_to({kind: str(tmp_path / name) for kind, name in files.items()}, [p, k], "far", target)
    f.compile_to_shared_library(str(tmp_path / "shared"), [p, k], "far", target)
    hl.compile_standalone_runtime(str(tmp_path / "runtime.o"), target)
    assert "without the C runtime" not in capsys.readouterr().out
    for name in ("far.o", "shared.so", "runtime.o"):
        assert machine((tmp_path / name).read_bytes()) == (2, 183), name  # EM_AARCH64
    listed = subprocess.run([*ZIG, "ar", "t", "far.a"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert {"far.o", "thread_pool.o", "memory.o"} <= set(listed)
    assert ".8h" in (tmp_path / "far.s").read_text()  # vectors of NEON


@needs_zig
@pytest.mark.skipif(not shutil.which("qemu-aarch64") or not os.path.isdir(SYSROOT), reason="needs qemu-aarch64 and a C library for it")
@pytest.mark.parametrize("kind", ["object", "static_library", "no_runtime", "renamed", "two"])
def test_programs_for_arm_run_under_an_emulator(tmp_path: Path, kind: str) -> None:
    f, p, k = blur("far")
    target, T, link = hl.Target("arm-64-linux"), hl.OutputFileType, ["far.a" if kind == "static_library" else "far.o"]
    pipeline = hl.Pipeline(f)
    if kind == "no_runtime":
        target = target.with_feature(hl.TargetFeature.NoRuntime)
        hl.compile_standalone_runtime(str(tmp_path / "runtime.a"), target)
        link.append("runtime.a")
    if kind == "renamed":
        pipeline.apply_runtime_prefixes(target, {hl.RuntimeLinkage.Export: "mine_", hl.RuntimeLinkage.Internal: "inner_"})
    if kind == "two":
        other, image, scale = blur("other")  # each with the runtime inside
        other.compile_to({T.object: str(tmp_path / "other.o")}, [image, scale], "other", target)
        link.append("other.o")
    made = T.static_library if kind == "static_library" else T.object
    pipeline.compile_to({made: str(tmp_path / link[0]), T.c_header: str(tmp_path / "far.h")}, [p, k], "far", target)
    (tmp_path / "main.c").write_text(CALL_FAR)
    subprocess.run([*ZIG, "cc", "--target=aarch64-linux-gnu", "-O1", "main.c", "-x", "none", *link, "-o", "main"], cwd=tmp_path, check=True)
    done = run_program(["qemu-aarch64", "-L", SYSROOT, "./main"], tmp_path)
    assert EXPECTED in done.stdout and done.returncode == 0, done.stderr


@needs_zig
@pytest.mark.parametrize("name, elf", [("arm-32-linux", (1, 40)), ("riscv-64-linux", (2, 243)), ("x86-32-linux", (1, 3)), ("powerpc-64-linux", (2, 21))])
def test_objects_are_of_the_machine_asked_for(tmp_path: Path, name: str, elf: tuple[int, int]) -> None:
    f, p, k = blur("far")
    f.compile_to_object(str(tmp_path / "far.o"), [p, k], "far", hl.Target(name + "-no_runtime"))
    assert machine((tmp_path / "far.o").read_bytes()) == elf


@needs_zig
def test_programs_linked_by_ziglang_find_what_the_processor_has(tmp_path: Path) -> None:
    """The compilers' own builtin finds nothing there."""
    f, p, k = blur("far")
    f.compile_to_static_library(str(tmp_path / "far"), [p, k], "far", hl.Target("host"))
    (tmp_path / "main.c").write_text(CALL_FAR)
    subprocess.run([*ZIG, "cc", "-O1", "main.c", "far.a", "-o", "main"], cwd=tmp_path, check=True)
    assert EXPECTED in run_program([str(tmp_path / "main")], tmp_path).stdout


MACH_O = {"arm-64-osx": (0x0100000C, "aarch64-macos"), "x86-64-osx-sse41-avx-avx2": (0x01000007, "x86_64-macos")}


@needs_zig
@pytest.mark.parametrize("name", MACH_O)
def test_files_for_macos_are_whole_and_link(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no emulator: what links together is all that can be watched."""
    (f, p, k), (g, q, m) = blur("far"), blur("near")
    target, T, (processor, triple) = hl.Target(name), hl.OutputFileType, MACH_O[name]
    f.compile_to({T.object: str(tmp_path / "far.o"), T.static_library: str(tmp_path / "far.a"), T.c_header: str(tmp_path / "far.h")}, [p, k], "far", target)
    g.compile_to({T.object: str(tmp_path / "near.o"), T.c_header: str(tmp_path / "near.h")}, [q, m], "near", target)
    g.compile_to_object(str(tmp_path / "bare.o"), [q, m], "near", hl.Target(name + "-no_runtime"))
    hl.compile_standalone_runtime(str(tmp_path / "runtime.o"), target)
    hl.compile_standalone_runtime(str(tmp_path / "runtime.a"), target)
    assert "without the C runtime" not in capsys.readouterr().out
    for made in ("far.o", "near.o", "bare.o", "runtime.o"):
        assert struct.unpack_from("<II", (tmp_path / made).read_bytes()) == (0xFEEDFACF, processor), made
    (tmp_path / "main.c").write_text('#include "far.h"\n#include "near.h"\nint main(void) { return far(0, 1, 0) + near(0, 1, 0); }\n')
    for link in (["far.o", "near.o"], ["far.a", "near.o"], ["far.o", "bare.o"], ["near.o", "far.o", "runtime.o"], ["far.a", "bare.o"], ["far.a", "near.o", "runtime.a"]):
        done = subprocess.run([*ZIG, "cc", f"--target={triple}", "main.c", *link, "-o", "main"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (link, done.stderr[-500:])
        assert (tmp_path / "main").read_bytes()[:4] == bytes.fromhex("cffaedfe")
    done = subprocess.run([*ZIG, "cc", f"--target={triple}", "main.c", "bare.o", "-o", "main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode and "halide_do_par_for" in done.stderr  # what the others bring


@needs_zig
def test_objects_for_windows_hold_no_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    f, p, k = blur("far")
    f.compile_to_file(str(tmp_path / "far"), [p, k], "far", hl.Target("x86-64-windows"))
    assert struct.unpack_from("<H", (tmp_path / "far.obj").read_bytes()) == (0x8664,)
    assert "The object file of far for x86-64-windows is without the C runtime: write a static_library." in capsys.readouterr().out
    with pytest.raises(hl.CompileError, match=r"cannot be joined into one: give the runtime the name of a library, as runtime.lib"):
        hl.compile_standalone_runtime(str(tmp_path / "runtime.obj"), hl.Target("x86-64-windows"))


@needs_zig
@pytest.mark.slow  # ziglang builds that system's C library at its first use
@pytest.mark.parametrize("kind", ["static", "shared", "apart"])
def test_programs_for_windows_run_under_wine(tmp_path: Path, kind: str) -> None:
    wine = shutil.which("wine") or shutil.which("wine64")
    f, p, k = blur("far")
    target, T = hl.Target("x86-64-windows-sse41-avx-avx2"), hl.OutputFileType
    f.compile_to_static_library(str(tmp_path / "static"), [p, k], "far", target)
    f.compile_to({T.shared_library: str(tmp_path / "far.dll"), T.c_header: str(tmp_path / "far.h")}, [p, k], "far", target)
    f.compile_to_object(str(tmp_path / "far.obj"), [p, k], "far", target)
    hl.compile_standalone_runtime(str(tmp_path / "runtime.lib"), target)
    exported = (tmp_path / "far.dll").read_bytes()
    assert all(b"\0" + name + b"\0" in exported for name in (b"far_argv", b"hl_library", b"halide_set_error_handler", b"halide_shutdown_trace"))
    assert b"\0atexit\0" not in exported[exported.index(b"far.dll\0"):][:4000]
    (tmp_path / "main.c").write_text(CALL_FAR)
    link = {"static": ["static.lib"], "shared": ["far.dll"], "apart": ["far.obj", "runtime.lib"]}[kind]
    subprocess.run([*ZIG, "cc", "--target=x86_64-windows-gnu", "-O1", "main.c", *link, "-o", "main.exe"], cwd=tmp_path, check=True)
    if wine is None:
        pytest.skip("needs wine")
    done = run_program([wine, "main.exe"], tmp_path)
    assert EXPECTED in done.stdout.replace("\r", "") and done.returncode == 0, done.stderr


@pytest.mark.parametrize("features, vectors", [("", "xmm"), ("sse41", "xmm"), ("sse41-avx-avx2-f16c-fma", "ymm"), ("sse41-avx-avx2-f16c-fma-avx512-avx512_skylake", "zmm")])
def test_assembly_uses_the_vectors_of_the_target(tmp_path: Path, features: str, vectors: str) -> None:
    if host_target().arch is not hl.TargetArch.X86:
        pytest.skip("x86")
    f, p = hl.Func("wide"), hl.ImageParam(hl.UInt(16), 1, "p")
    f[x] = p[x] + p[x + 1]
    f.vectorize(x, 64)
    f.compile_to_assembly(str(tmp_path / "wide.s"), [p], "wide", hl.Target("-".join(["x86-64-linux", *([features] if features else [])])))
    text = (tmp_path / "wide.s").read_text()
    assert [w for w in ("xmm", "ymm", "zmm") if f"%{w}" in text][-1] == vectors


def dispatching(tmp_path: Path) -> str:
    """A program whose output names the target that was taken."""
    f, has = hl.Func("picks"), hl.target_has_feature
    f[x] = hl.select(has(hl.TargetFeature.AVX512_Skylake), 512, has(hl.TargetFeature.AVX2), 256, has(hl.TargetFeature.SSE41), 41, 0)
    targets = ["sse41-avx-f16c-fma-avx2-avx512-avx512_skylake", "sse41-avx-f16c-fma-avx2", "sse41"]
    f.compile_to_multitarget_object_files(str(tmp_path / "picks"), [], [hl.Target(f"x86-64-linux-{t}") for t in targets] + [hl.Target("x86-64-linux")],
                                          ["skylake", "haswell", "penryn", "any"])
    (tmp_path / "main.c").write_text("""
#include "picks.h"
#include <stdio.h>
typedef int (*can_use_t)(int count, const uint64_t *features);
can_use_t halide_set_custom_can_use_target_features(can_use_t can_use);
static int no_avx(int count, const uint64_t *features) { return count == 2 && !(features[0] >> 6 & 1); }
int main(int argc, char **argv) {
    int32_t v = -1;
    (void)argv;
    if (argc > 1) halide_set_custom_can_use_target_features(no_avx);
    struct halide_dimension_t d = {0, 1, 1, 0};
    struct halide_buffer_t b = {0};
    b.host = (uint8_t *)&v; b.type.bits = 32; b.type.lanes = 1; b.dimensions = 1; b.dim = &d;
    int code = picks(&b);
    printf("%d %d\\n", code, v);
    return 0;
}
""")
    objects = [f"picks{name}.o" for name in ("-skylake", "-haswell", "-penryn", "-any", "_wrapper", "_runtime")]
    subprocess.run([*CC, "main.c", *objects, "-o", "main", "-lpthread", "-lm"], cwd=tmp_path, check=True)
    return str(tmp_path / "main")


def test_dispatch_takes_the_first_target_that_the_processor_has(tmp_path: Path) -> None:
    if host_target().arch is not hl.TargetArch.X86:
        pytest.skip("x86")
    host = host_target()
    F = hl.TargetFeature
    best = 512 if host.has_feature(F.AVX512_Skylake) else 256 if host.features_all_of([F.AVX2, F.FMA, F.F16C]) else 41 if host.has_feature(F.SSE41) else 0
    program = dispatching(tmp_path)
    assert run_program([program]).stdout == f"0 {best}\n"
    assert run_program([program, "no avx"]).stdout == f"0 {min(best, 41)}\n"
    if shutil.which("qemu-x86_64"):  # which has no AVX-512
        for cpu, want in (("Haswell", 256), ("Penryn", 41), ("Conroe", 0), ("Haswell,-avx2", 41)):
            done = run_program(["qemu-x86_64", "-cpu", cpu, program])
            assert done.stdout == f"0 {want}\n", (cpu, done.stderr)
