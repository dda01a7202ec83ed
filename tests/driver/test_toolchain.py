"""The C compiler: how it is found, what is said when it is missing or fails, what HL_TIME and HL_SANITIZE do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import halide_py as hl
from halide_py.driver import build, c_compiler, probe
from halide_py.driver import toolchain as tools
from halide_py.errors import CompileError, InternalError
from halide_py.ir.target import Target

HOST = Target("host")


def test_order_of_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"clang": "/opt/clang", "cc": "/usr/bin/cc", "mycc": "/x/mycc"}
    monkeypatch.setattr(shutil, "which", lambda name: there.get(name))
    monkeypatch.delenv("HL_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    assert tools.find_compiler() == ["/opt/clang"]
    there["gcc"] = "/usr/bin/gcc"
    assert tools.find_compiler() == ["/usr/bin/gcc"]
    monkeypatch.setenv("CC", "cc -m64")
    assert tools.find_compiler() == ["cc", "-m64"]
    monkeypatch.setenv("HL_CC", "mycc")
    assert tools.find_compiler() == ["mycc"]
    monkeypatch.setenv("HL_CC", "missing")
    with pytest.raises(CompileError, match="'missing' named by HL_CC"):
        tools.find_compiler()


def test_no_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("HL_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CompileError) as e:
        tools.find_compiler()
    assert "install gcc or clang" in str(e.value) and "ziglang" in str(e.value) and "\n" not in str(e.value)
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: object())
    assert tools.find_compiler() == [sys.executable, "-m", "ziglang", "cc"]


def test_a_program_that_is_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HL_CC", "false")
    with pytest.raises(CompileError, match="false does not work"):
        tools.toolchain(HOST)


def test_what_was_learned_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    tools._toolchain.cache_clear()
    first = tools.toolchain(HOST)
    tools._toolchain.cache_clear()
    monkeypatch.setattr(probe, "probe", lambda *a: pytest.fail("probed again"))
    assert tools.toolchain(HOST) == first


def test_instruction_sets() -> None:
    host = tools.toolchain(HOST)
    assert "-march=native" in host.arch or host.kind == "clang"
    base = Target(HOST)
    base.set_features(base.features(), False)
    plain = tools.toolchain(base)
    assert plain.identity() != host.identity() and plain.machine(base).vector_bytes == 16 and "avx2" not in plain.features
    if HOST.has_feature(hl.TargetFeature.AVX2):
        some = base.with_feature(hl.TargetFeature.AVX2)
        assert tools.toolchain(some).machine(some).vector_bytes == 32
    with pytest.raises(CompileError, match="the C compiler makes code for"):
        tools.toolchain(Target("wasm-32-wasmrt"))


def test_direct_programs_and_driver_give_working_code(tmp_path: Path) -> None:
    t = tools.toolchain(HOST)
    text = '#include "hl_runtime.h"\nextern "C" int hl_pipeline_entry(void **a) { return *(int32_t *)a[0] + 1; }\n'
    for extra in ((), ("-lm",)):
        with c_compiler.Compilation(t, str(tmp_path)) as compilation:
            compilation.finish([text], str(tmp_path / "x.so"), extra)
        assert (tmp_path / "x.so").read_bytes()[:4] == b"\x7fELF"


def test_refused_code_is_our_bug_and_kept(tmp_path: Path) -> None:
    with pytest.raises(InternalError) as e, c_compiler.Compilation(tools.toolchain(HOST), str(tmp_path)) as compilation:
        compilation.finish(["int broken = nonsense;\n"], str(tmp_path / "x.so"))
    message = str(e.value)
    assert "nonsense" in message and "please report" in message
    kept = Path(message.rsplit(" ", 1)[1])
    assert kept.read_text() == "int broken = nonsense;\n"
    kept.unlink()


RUN = """
import halide_py as hl
x = hl.Var("x")
f = hl.Func("timed")
f[x] = x + 1
f.vectorize(x, 8)
assert f.realize([20])[19] == 20
"""


def test_table_of_times(tmp_path: Path) -> None:
    env = {**os.environ, "HL_TIME": "1", "HL_CACHE_DIR": str(tmp_path)}
    cold, warm = (subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=True).stderr for _ in range(2))
    for row in ("fingerprint", "lower: simplify", "C text", "C compile", "load"):
        assert re.search(rf"^ +[\d.]+ ms  {row}$", cold, re.MULTILINE), cold
    assert "load from cache" in warm and "lower" not in warm


def test_generated_code_under_the_undefined_behaviour_sanitizer(tmp_path: Path) -> None:
    env = {**os.environ, "HL_SANITIZE": "undefined", "HL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=False)
    if tools.toolchain(HOST).kind != "gcc":
        assert done.returncode and "HL_SANITIZE=undefined needs gcc, but the C compiler is clang" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    library = next(tmp_path.glob("*.so")).read_bytes()
    assert b"__ubsan" in library or b"ubsan" in library


ADDS_SEVEN = """
import halide_py as hl
x = hl.Var("x")
f = hl.Func("f")
f[x] = x + 7
try:
    print(f.realize([3])[2])
except hl.HalideError as error:
    print(type(error).__name__, error)
"""


def _adds_seven(**environment: str) -> str:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", ADDS_SEVEN], env=env, capture_output=True, text=True, check=True).stdout


def test_a_compiler_without_room_for_temporary_files_says_so(tmp_path: Path) -> None:
    for cause in ("Cannot create temporary file in /x/: No such file or directory", "cc1plus: out of memory allocating 16 bytes"):
        program = tmp_path / "compiler"
        program.write_text(f'#!/bin/sh\ncase "$*" in *-dM*) exec g++ "$@";; esac\necho "{cause}" >&2; exit 1\n')
        program.chmod(0o755)
        said = _adds_seven(HL_CC=str(program), HL_CACHE_DIR=str(tmp_path / "cache"), HL_SANITIZE="")
        assert said.startswith("CompileError") and cause in said and "TMPDIR" in said and "report this" not in said


def test_a_cache_where_nothing_may_run_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache, loads = tmp_path / "cache", build.CompiledPipeline
    monkeypatch.setenv("HL_CACHE_DIR", str(cache))
    noexec = [str(cache)]

    def load(path: str, *rest: Any) -> build.CompiledPipeline:
        if any(path.startswith(folder) for folder in noexec):
            raise InternalError(f"cannot load {path}: failed to map segment from shared object")
        return loads(path, *rest)

    monkeypatch.setattr(build, "CompiledPipeline", load)
    f = hl.Func("f")
    f[hl.Var("x")] = 7
    assert f.realize([2])[1] == 7
    noexec.append(tempfile.gettempdir())
    g = hl.Func("g")
    g[hl.Var("x")] = 8
    with pytest.raises(CompileError, match="noexec.*HL_CACHE_DIR"):
        g.realize([2])
