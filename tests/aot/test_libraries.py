"""Ahead of time: C programs that include what was written, link it and run, without Python."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_program
from programs import CALL, CC, COMPILERS, EXPECTED, HELPERS, blur, run, x, y

import halide_py as hl
from halide_py.driver.abi import INCLUDE_DIR, SOURCE_DIR, STATIC_RUNTIME

try:
    import halide
except ImportError:
    halide = None


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


@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("flags", [("-x", "c", "-std=gnu11"), ("-x", "c++", "-std=c++17")])
def test_c_text_compiles_alone_and_runs(tmp_path: Path, flags: tuple[str, ...], cc: list[str]) -> None:
    f, p, k = blur("text")
    f.compile_to_c(str(tmp_path / "text.c"), [p, k])
    f.compile_to_header(str(tmp_path / "text.h"), [p, k])
    said = next(line for line in (tmp_path / "text.c").read_text().splitlines() if line.startswith(" *     cc "))
    options = [f for f in said.split()[2:] if f != "text.c" and not f.startswith("-mtune")]  # clang has other names of processors
    assert "-fwrapv" in options
    subprocess.run([*cc, *flags, *options, str(tmp_path / "text.c"), "-o", str(tmp_path / "text.o")], check=True)
    program = '#include "text.h"\n' + CALL.replace("NAME", "text").replace("ARGS", "&a, 2, &b")
    assert EXPECTED in run(tmp_path, program, str(tmp_path / "text.o"), STATIC_RUNTIME, cc=cc)


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


def test_libraries_are_loaded_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f, p, k = blur("loaded")
    f.compile_to_shared_library(str(tmp_path / "loaded"), [p, k])
    image, out = np.arange(45, dtype=np.uint16).reshape(5, 9), np.zeros((4, 8), np.uint16)
    call = hl.load_library(tmp_path / "loaded.so")
    call(image, scale=2, loaded=out)
    assert out[3, 7] == 224 and repr(call) == "<halide.Callable loaded(input, scale, loaded)>"
    with pytest.raises(hl.PipelineError, match="accessed at 8, which is beyond the max"):
        call(image[:, :8], 2, out)
    with pytest.raises(hl.CompileError, match="Unknown argument 'k'"):
        call(image, k=2, loaded=out)
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setattr("halide_py.lang.library.get_host_target", lambda: hl.Target("x86-64-linux"))
    for name, function, message in (
        ("text.so", "", "no shared library of this system"), ("none.so", "", "there is no such file"), ("loaded.so", "other", "no function other: there are loaded"),
        ("loaded.so", "", "compiled for processors with"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            hl.load_library(tmp_path / name, function)
    metadata = struct.pack("<ii", 1, 3)  # the version, the number of arguments
    data = (tmp_path / "loaded.so").read_bytes()
    at = next(i for i in range(0, len(data), 8) if data[i:i + 8] == metadata)
    (tmp_path / "other.so").write_bytes(data[:at] + struct.pack("<ii", 2, 3) + data[at + 8:])
    with pytest.raises(hl.CompileError, match="other.so has metadata of version 2, and this halide_py reads version 1; compile it again"):
        hl.load_library(tmp_path / "other.so")
    (tmp_path / "cut.so").write_bytes(data[:len(data) // 2])
    with pytest.raises(hl.CompileError, match="no shared library of this system"):
        hl.load_library(tmp_path / "cut.so")
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run([*CC, "-shared", str(tmp_path / "empty.c"), "-o", str(tmp_path / "empty.so")], check=True)
    with pytest.raises(hl.CompileError, match="empty.so is not a library of pipelines"):
        hl.load_library(tmp_path / "empty.so")


@pytest.mark.skipif(halide is None, reason="needs Halide's headers")
@pytest.mark.parametrize("cc", COMPILERS, ids=lambda cc: Path(cc[0]).name)
def test_programs_written_against_halides_headers_link_unchanged(tmp_path: Path, cc: list[str]) -> None:
    f, p, k = blur("linked")
    f.compile_to_static_library(str(tmp_path / "linked"), [p, k], "linked")
    program = """
#include "HalideBuffer.h"
#include "HalideRuntime.h"
#include "linked.h"
#include <cstdio>
int main() {
    Halide::Runtime::Buffer<uint16_t, 2> in(9, 5), out(8, 4), query(nullptr, 0, 0);
    in.for_each_element([&](int x, int y) { in(x, y) = (uint16_t)(9 * y + x); });
    if (linked(in, 2, out) || linked(query, 2, out)) return 1;
    halide_set_error_handler([](void *, const char *message) { printf("%s\\n", message); });
    const halide_filter_metadata_t *m = linked_metadata();
    printf("%d %dx%d %s %d\\n", out(7, 3), query.width(), query.height(), m->arguments[1].name, m->arguments[2].kind);
    Halide::Runtime::Buffer<uint16_t, 2> wide(9, 5);
    int code = linked(in, 2, wide);
    halide_set_num_threads(2);
    halide_shutdown_thread_pool();
    if (out.copy_to_host() || halide_copy_to_host(nullptr, out) || halide_device_free(nullptr, out) || halide_device_sync(nullptr, out)) return 3;
    if (halide_device_malloc(nullptr, out, nullptr) != -19 || halide_float16_bits_to_float(0x3e00) != 1.5f) return 4;
    return code == -4 ? 0 : 2;
}
"""
    flags = ("-I", halide.install_dir() + "/include", "-Wno-unused-parameter")
    out = run(tmp_path, program, str(tmp_path / "linked.a"), "-lstdc++", language="cc", flags=flags, cc=cc)
    assert out == "224 9x5 scale 2\nInput buffer input is accessed at 9, which is beyond the max (8) in dimension 0\n" \
        "Buffer has a non-zero device but no device interface: there are no devices in this runtime\nstatus 0"


RUNTIME_API = """
#include <stdio.h>
#ifdef PUBLIC
#include "HalideRuntime.h"
#else
#include "hl_runtime.h"
#endif
static struct halide_mutex lock, other;
static struct halide_cond turned;
static int turn, sum;
static void works(void *closure) {
    for (int i = 0; i < 500; i++) {
        halide_mutex_lock(&lock);
        while (turn != *(int *)closure) halide_cond_wait(&turned, &lock);
        sum++;
        turn = (turn + 1) % 3;
        halide_cond_signal(&turned);
        halide_mutex_unlock(&lock);
        halide_mutex_lock(&other);
        sum += 0;
        halide_mutex_unlock(&other);
    }
}
static int refuse(int count, const uint64_t *features) { return features[count - 1] == 0; }
int main(void) {
    int numbers[3] = {0, 1, 2};
    struct halide_thread *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = halide_spawn_thread(works, &numbers[i]);
    for (int i = 0; i < 3; i++) halide_join_thread(threads[i]);
    struct halide_mutex_array *many = halide_mutex_array_create(7);
    halide_mutex_array_lock(many, 6);
    halide_mutex_array_unlock(many, 6);
    halide_mutex_array_lock(many, 6);
    halide_mutex_array_destroy(0, many);
    uint64_t none[2] = {0, 0}, high[2] = {0, 1};
    int usual = halide_can_use_target_features(2, none) + halide_can_use_target_features(2, high);
    halide_set_custom_can_use_target_features(refuse);
    printf("%d %d %d%d", sum, usual, halide_can_use_target_features(2, none), halide_can_use_target_features(2, high));
    return halide_default_can_use_target_features(2, high) - 1;
}
"""


@pytest.mark.parametrize("public, sanitizer", [(True, ""), (False, ""), (False, "address,undefined"), (False, "thread")])
def test_mutexes_threads_and_features_of_the_runtime(tmp_path: Path, public: bool, sanitizer: str) -> None:
    if public and halide is None:
        pytest.skip("needs Halide's headers")
    folder = halide.install_dir() + "/include" if public else INCLUDE_DIR
    sources = [str(p) for p in Path(SOURCE_DIR).glob("*.c")] if sanitizer else [STATIC_RUNTIME]
    (tmp_path / "main.c").write_text(RUNTIME_API)
    options = ["-std=gnu11", "-O1", f"-I{folder}", f"-I{INCLUDE_DIR}", *(["-DPUBLIC"] if public else []), *([f"-fsanitize={sanitizer}"] if sanitizer else [])]
    subprocess.run([*CC, *options, "main.c", *sources, "-o", "main", "-lpthread", "-lm", "-ldl"], cwd=tmp_path, check=True)
    done = run_program([str(tmp_path / "main")], tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("1500 2 10", "", 0)


THREADS = HELPERS + """
#include <pthread.h>
static uint16_t in[9 * 5];
static void *calls(void *result) {
    struct halide_dimension_t d[2], e[2];
    uint16_t out[8 * 4];
    for (int i = 0; i < 200; i++) {
        struct halide_buffer_t a = image(in, d, 1, 16, 9 - i % 2, 5), b = image(out, e, 1, 16, 8, 4);
        int code = threaded(&a, 2, &b);
        if (i % 2 ? code != -4 || !strstr(hl_last_error(), "accessed at 8") : code || out[31] != 224) *(int *)result = i + 1;
    }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    int results[4] = {0};
    (void)dims_in; (void)dims_out;
    for (int i = 0; i < 45; i++) in[i] = (uint16_t)i;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, calls, &results[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%d %d %d %d\\n", results[0], results[1], results[2], results[3]);
    halide_shutdown_thread_pool();
    return 0;
}
"""


@pytest.mark.parametrize("cc", COMPILERS, ids=lambda cc: Path(cc[0]).name)
def test_calls_from_many_threads_under_the_address_sanitizer(tmp_path: Path, cc: list[str]) -> None:
    f, p, k = blur("threaded")
    g = hl.Func("threaded_too")  # with scratch memory
    g[x, y] = f[x, y]
    f.compute_root()
    g.parallel(y)
    g.compile_to_c(str(tmp_path / "threaded.c"), [p, k], "threaded")
    g.compile_to_header(str(tmp_path / "threaded.h"), [p, k], "threaded")
    sanitize = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    subprocess.run([*cc, *sanitize, "-march=native", "-fwrapv", "-c", str(tmp_path / "threaded.c"), "-o", str(tmp_path / "threaded.o")], check=True)
    program = '#include "threaded.h"\nvoid halide_shutdown_thread_pool(void);\n' + THREADS
    out = run(tmp_path, program, str(tmp_path / "threaded.o"), STATIC_RUNTIME, flags=sanitize, cc=cc)
    assert out.startswith("0 0 0 0\n") and out.endswith("status 0"), out


def test_a_c_function_and_its_gradient_from_c(tmp_path: Path) -> None:
    cube = hl.extern("float cube(float v)", source="static float cube(float v) { return v * v * v; }")
    cube.gradient(lambda adjoint, result, v: adjoint * 3 * v * v)
    p, f = hl.ImageParam(hl.Float(32), 2, "input"), hl.Func("cubed")
    f[x, y] = cube(p[x, y]) * 2
    adjoint = hl.ImageParam(hl.Float(32), 2, "adjoint")
    seed = hl.Func("seed")
    seed[x, y] = adjoint[x, y]
    bounds = [(adjoint.dim(d).min(), adjoint.dim(d).extent()) for d in range(2)]
    gradient = hl.propagate_adjoints(f, seed, bounds)[p]
    modules = [f.compile_to_module([p], "cubed"), gradient.compile_to_module([p, adjoint], "d_cubed")]
    T = hl.OutputFileType
    hl.link_modules("both", modules).compile({T.static_library: str(tmp_path / "both.a"), T.c_header: str(tmp_path / "both.h")})
    program = '#include "both.h"\n' + HELPERS + """
int main(void) {
    float in[2] = {1, 2}, out[2], seed[2] = {1, 10}, d[2];
    struct halide_dimension_t dims[2];
    struct halide_buffer_t a = image(in, dims_in, 2, 32, 2, 1), b = image(out, dims_out, 2, 32, 2, 1), s = image(seed, dims, 2, 32, 2, 1);
    if (cubed(&a, &b)) return 1;
    printf("%g %g\\n", out[0], out[1]);
    b.host = (uint8_t *)d;
    if (d_cubed(&a, &s, &b)) return 2;
    printf("%g %g\\n", d[0], d[1]);
    return 0;
}
"""
    assert run(tmp_path, program, str(tmp_path / "both.a")) == "2 16\n6 240\nstatus 0"


def test_libraries_with_c_sources_link_into_one_program(tmp_path: Path) -> None:
    """Their functions have one name, and none of them is static; one library has two sources."""
    text = "double helper(double v) {{ return v * {k}; }}\ndouble {name}(double v) {{ return helper(v); }}\n"
    made = {name: hl.extern(f"double {name}(double v)", source=text.format(name=name, k=k)) for name, k in (("twice", 2), ("thrice", 3))}
    for name, chain in (("one", ["twice"]), ("two", ["twice", "thrice"])):
        f = hl.Func(name)
        value = hl.f64(x + 1)
        for function in chain:
            value = made[function](value)
        f[x] = value
        f.compile_to_static_library(str(tmp_path / name), [], name)
    program = """#include <stdio.h>
#include "one.h"
#include "two.h"
double helper(double v) { return v; }
int main(void) {
    double out[2];
    struct halide_dimension_t dim = {0, 2, 1, 0};
    struct halide_buffer_t b = {0, 0, (uint8_t *)out, 0, {2, 64, 1}, 1, &dim, 0};
    if (one(&b)) return 1;
    printf("%g %g ", out[0], out[1]);
    if (two(&b)) return 2;
    printf("%g %g %g\\n", out[0], out[1], helper(5));
    return 0;
}
"""
    assert run(tmp_path, program, str(tmp_path / "one.a"), str(tmp_path / "two.a")) == "2 4 6 12 5\nstatus 0"


def test_descriptions_without_a_shape_are_refused(tmp_path: Path) -> None:
    f, p, k = blur("shapeless")
    f.compile_to_static_library(str(tmp_path / "shapeless"), [p, k], "shapeless")
    program = '#include "shapeless.h"\n' + HELPERS + """
int main(void) {
    uint16_t in[45] = {0}, out[32];
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    a.dim = 0;
    printf("%d ", shapeless(&a, 2, &b));
    a = image(in, dims_in, 1, 16, 9, 5);
    b.dimensions = 1;
    printf("%d ", shapeless(&a, 2, &b));
    b.dimensions = 2;
    b.host = 0;
    a.host = 0;
    a.dim = 0;
    printf("%d ", shapeless(&a, 2, &b));
    printf("%d\\n", shapeless(0, 2, &b));
    return 0;
}
"""
    assert "-43 -43 -43 -12\n" in run(tmp_path, program, str(tmp_path / "shapeless.a"))


def test_two_runtimes_under_other_names_in_one_program(tmp_path: Path) -> None:
    """Each of the pipelines has threads and hooks of its own; a third calls the runtime that is linked apart."""
    for name, prefixes, target in (
        ("left", {hl.RuntimeLinkage.Export: "left_", hl.RuntimeLinkage.Internal: "left_inner_"}, "host"),
        ("right", {hl.RuntimeLinkage.Export: "right_"}, "host"), ("apart", {hl.RuntimeLinkage.Import: "apart_"}, "host-no_runtime"),
    ):
        f, p, k = blur(name)
        pipeline = hl.Pipeline(f)
        pipeline.apply_runtime_prefixes(hl.Target(target), prefixes)
        pipeline.compile_to_static_library(str(tmp_path / name), [p, k], name, hl.Target(target))
    hl.compile_standalone_runtime(str(tmp_path / "runtime.o"), hl.Target("host"), {hl.RuntimeLinkage.Export: "apart_", hl.RuntimeLinkage.Internal: "i_"})
    program = '#include "left.h"\n#include "right.h"\n#include "apart.h"\n' + HELPERS + """
typedef void (*handler)(void *, const char *);
handler left_set_error_handler(handler);
int left_set_num_threads(int), right_set_num_threads(int), right_get_num_threads(void), left_get_num_threads(void);
static void mine(void *context, const char *message) { (void)context; printf("left: %s\\n", message); }
int main(void) {
    uint16_t in[45] = {0}, out[32];
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    left_set_error_handler(mine);
    left_set_num_threads(3);
    right_set_num_threads(2);
    if (left(&a, 2, &b) || right(&a, 2, &b) || apart(&a, 2, &b)) return 1;
    dims_in[0].extent = 5;
    int codes = left(&a, 2, &b) + right(&a, 2, &b) + apart(&a, 2, &b);
    printf("%d %d %d %s\\n", codes, left_get_num_threads(), right_get_num_threads(), apart_hl_last_error());
    return 0;
}
"""
    made = [str(tmp_path / name) for name in ("left.a", "right.a", "apart.a", "runtime.o")]
    out = run(tmp_path, program, *made)
    beyond = "Input buffer input is accessed at 8, which is beyond the max (4) in dimension 0"
    assert re.sub(r"\$\d+", "", out) == f"left: {beyond}\n-12 3 2 {beyond}\nError: {beyond}\nError: {beyond}\nstatus 0"
    f, p, k = blur("jitted")
    pipeline = hl.Pipeline(f)
    for attempt, message in (
        (lambda: pipeline.apply_runtime_prefixes(hl.Target("host"), {}), "without prefixes"),
        (lambda: pipeline.apply_runtime_prefixes(hl.Target("host-jit"), {hl.RuntimeLinkage.Export: "a_"}), "not supported for JIT"),
        (lambda: pipeline.apply_runtime_prefixes(hl.Target("host"), {hl.RuntimeLinkage.Export: "a b"}), "'a b' for RuntimeLinkage.Export cannot begin"),
        (lambda: (pipeline.apply_runtime_prefixes(hl.Target("host"), {hl.RuntimeLinkage.Export: "a_"}), pipeline.compile_jit()), "compiled to be run here"),
        (lambda: hl.compile_standalone_runtime("r.o", hl.Target("arm-64-ios")), "no C runtime for arm-64-ios here"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            attempt()
