"""Every kind of output with every compiler there is, as strict C11 and C++17: headers warn of nothing, what links runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from programs import CALL, COMPILERS, EXPECTED, HELPERS, blur, run, x, y

import halide_py as hl
from halide_py.driver.abi import STATIC_RUNTIME

LANGUAGES = (("c", "-std=c11"), ("cc", "-std=c++17"), ("cc", "-std=c++20"))
named = pytest.mark.parametrize("cc", COMPILERS, ids=lambda cc: Path(cc[0]).name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One pipeline as everything that a program can be linked with."""
    folder, T = tmp_path_factory.mktemp("made"), hl.OutputFileType
    f, p, k = blur("made")
    f.compile_to({T.object: str(folder / "object.o"), T.static_library: str(folder / "static.a"), T.c_source: str(folder / "made.c"),
                  T.c_header: str(folder / "made.h")}, [p, k], "made")
    f.compile_to_object(str(folder / "bare.o"), [p, k], "made", hl.Target("host-no_runtime"))
    f.compile_to_shared_library(str(folder / "shared"), [p, k], "made")
    hl.compile_standalone_runtime(str(folder / "runtime.o"), hl.Target("host"))
    f.compile_to_multitarget_static_library(str(folder / "several"), [p, k], [hl.Target("host"), hl.Target("host-no_asserts")])
    return folder


@named
@pytest.mark.parametrize("kind", ["object", "static", "shared", "bare", "source", "several"])
def test_programs_link_with_every_kind(made: Path, tmp_path: Path, cc: list[str], kind: str) -> None:
    name = "several" if kind == "several" else "made"
    shutil.copy(made / f"{name}.h", tmp_path)
    program = f'#include "{name}.h"\n' + CALL.replace("NAME", "made").replace("ARGS", "&a, 2, &b")
    link = {"object": ["object.o"], "static": ["static.a"], "bare": ["bare.o", "runtime.o"], "several": ["several.a"], "source": ["source.o"],
            "shared": ["shared.so", f"-Wl,-rpath,{made}"]}[kind]
    folder = tmp_path if kind == "source" else made
    if kind == "source":
        subprocess.run([*cc, "-O1", "-march=native", "-fwrapv", "-Wall", "-Wextra", "-Werror", "-c", str(made / "made.c"), "-o", str(tmp_path / "source.o")], check=True)
    files = [one if one.startswith("-") else str(folder / one) for one in link]
    for language, standard in LANGUAGES:
        out = run(tmp_path, program, *files, *([STATIC_RUNTIME] if kind == "source" else []), language=language, flags=(standard,), cc=cc)
        assert EXPECTED in out and out.endswith("status 0"), (standard, out)


@named
def test_headers_of_all_shapes_of_functions_warn_of_nothing(tmp_path: Path, cc: list[str]) -> None:
    args: list[hl.Param] = [hl.Param(t, f"a_{t}") for t in (
        hl.Bool(), hl.Int(8), hl.UInt(16), hl.Int(64), hl.Float(16), hl.BFloat(16), hl.Float(64))]
    pointer, f, g = hl.Param(hl.Handle(), "pointer"), hl.Func("all"), hl.Func("none")
    f[x, y] = (sum((hl.f64(a) for a in args), hl.f64(0)) + hl.select(hl.reinterpret(hl.UInt(64), pointer) == 0, 1, 2), hl.u8(x))
    g[()] = 3
    T = hl.OutputFileType
    for func, given, name, target in ((f, [*args, pointer], "all", "host"), (g, [], "none", "host"), (g, [], "context", "host-user_context")):
        func.compile_to({T.c_header: str(tmp_path / f"{name}.h"), T.static_library: str(tmp_path / f"{name}.a")}, given, name, hl.Target(target))
    program = """
#include "all.h"
#include "none.h"
#include "context.h"
#include "all.h"
""" + HELPERS + """
int main(void) {
    double wide[2];
    uint8_t bytes[2];
    int32_t v = 0, w = 0;
    struct halide_buffer_t a = image(wide, dims_in, 2, 64, 2, 1), b = image(bytes, dims_out, 1, 8, 2, 1), c = a, d = a;
    c.type.code = (__typeof__(c.type.code))0; c.type.bits = 32; c.dimensions = 0; c.host = (uint8_t *)&v;
    d = c; d.host = (uint8_t *)&w;
    if (all(1, -2, 3, 1ll << 40, 0x3c00, 0x3f80, 0.5, &v, &a, &b) || none(&c) || context(0, &d)) return 1;
    printf("%.1f %d %d %d\\n", wide[1], bytes[1], v, w);
    return 0;
}
"""
    for language, standard in LANGUAGES:
        out = run(tmp_path, program, *(str(tmp_path / f"{n}.a") for n in ("all", "none", "context")), language=language, flags=(standard, "-Wno-missing-field-initializers"), cc=cc)
        assert out == f"{(1 << 40) + 1 - 2 + 3 + 1 + 1 + 0.5 + 2:.1f} 1 3 3\nstatus 0", (standard, out)


def many_operations() -> tuple[hl.Func, hl.ImageParam]:
    """A pipeline that takes what processors have builtins for: conversions, extrema, roots, roundings, masks, gathers, fixed point, half floats."""
    p, f, wide = hl.ImageParam(hl.UInt(8), 2, "image"), hl.Func("many"), hl.Func("wide")
    v = p[x, y]
    stored = hl.Func("stored")
    stored[x, y] = hl.f16(v) / hl.f16(3)
    stored.compute_at(f, y).vectorize(x, 16)
    wide[x, y] = hl.max(hl.i16(v) - 7, 3) * hl.select(v > 100, hl.i16(2), hl.i16(-3)) + hl.i16(hl.u16(v) * 300 / 7)
    real = hl.sqrt(hl.f32(v)) + hl.floor(hl.f32(wide[x, y]) / 3) + hl.round(hl.f32(v) / 4) + hl.exp(hl.f32(v) / 99) + hl.f32(hl.f16(v) * hl.f16(0.5)) + hl.f32(stored[x, y])
    fixed = hl.saturating_add(v, hl.u8(77)) + hl.rounding_halving_add(v, p[x + 1, y]) + hl.absd(v, p[y * 3 % 60, x % 7])
    fixed += hl.u8(hl.saturating_sub(hl.i16(wide[x, y]) * 9, wide[x + 1, y])) ^ hl.u8(hl.mul_shift_right(hl.u16(v) * 211, hl.u16(wide[x, y]), 16))
    fixed ^= hl.u8(hl.mul_shift_right(wide[x, y], wide[x + 1, y] * 31, 16)) ^ hl.u8(hl.saturating_sub(hl.i8(v), hl.i8(wide[x, y]))) ^ hl.u8(hl.i32(v) * 3)
    f[x, y] = hl.clamp(hl.i32(real), -900, 900) + hl.i32(fixed) + hl.i32(hl.mul_shift_right(hl.i16(v), wide[x, y], 5))
    wide.compute_at(f, y).vectorize(x, 32)
    f.vectorize(x, 16, hl.TailStrategy.GuardWithIf)
    return f, p


SUM = HELPERS + """
int main(void) {
    static uint8_t in[64 * 9];
    static int32_t out[61 * 7];
    long long sum = 0;
    for (int i = 0; i < 64 * 9; i++) in[i] = (uint8_t)(i * 37 % 251);
    struct halide_buffer_t a = image(in, dims_in, 1, 8, 64, 9), b = image(out, dims_out, 0, 32, 61, 7);
    int code = many(&a, &b);
    for (int i = 0; i < 61 * 7; i++) sum += (long long)out[i] * (i % 17 + 1);
    printf("%d %lld\\n", code, sum);
    return 0;
}
"""


@named
@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41-avx-avx2-f16c-fma", "x86-64-linux"])
def test_c_source_is_for_every_compiler(tmp_path: Path, cc: list[str], target: str) -> None:
    """Whichever compiler made the libraries here, the text has nothing that only it knows."""
    if target != "host" and hl.get_host_target().arch is not hl.TargetArch.X86 or not hl.get_host_target().has_feature(hl.TargetFeature.AVX2):
        pytest.skip("x86")
    f, p = many_operations()
    T = hl.OutputFileType
    f.compile_to({T.c_source: str(tmp_path / "many.c"), T.c_header: str(tmp_path / "many.h"), T.static_library: str(tmp_path / "many.a")}, [p], "many", hl.Target(target))
    program = '#include "many.h"\n' + SUM
    expected = run(tmp_path, program, str(tmp_path / "many.a"))
    assert expected.startswith("0 ") and expected.endswith("status 0")
    isa = {"host": ["-march=native"], "x86-64-linux": []}.get(target, ["-msse4.1", "-mavx2", "-mf16c", "-mfma"])
    for language in (["-x", "c", "-std=gnu11"], ["-x", "c++", "-std=c++17"]):
        build = [*cc, *language, *isa, "-O1", "-fwrapv", "-Wall", "-Wextra", "-Werror", "-c", str(tmp_path / "many.c"), "-o", str(tmp_path / "many.o")]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        assert built.returncode == 0, (language, built.stderr[:2000])
        assert run(tmp_path, program, str(tmp_path / "many.o"), STATIC_RUNTIME, "-lstdc++", cc=cc) == expected, language
