"""The C runtime by itself: `checks.c` compiled with it, plainly and under the address, undefined-behaviour and thread sanitizers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from processes import run_program

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
CHECKS = re.findall(r"NAMED\((\w+)\)[,}]", (HERE / "checks.c").read_text())
BUILDS = {
    "plain": [],
    "asan-ubsan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "tsan": ["-fsanitize=thread"],
}
# gcc's thread sanitizer cannot follow fork() with several threads; address sanitizer builds keep no memory.
NOT_UNDER = {
    "tsan": {"fork_after_parallel", "fork_while_others_run", "fork_inside_a_loop", "kept_memory_is_bounded"},
    # A fork while another thread allocates may leave a mutex of gcc's libasan locked in the child; the plain build runs it.
    "asan-ubsan": {"memory_is_kept", "kept_memory_is_bounded", "fork_while_others_run"},
    "plain": set(),
}
COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler on PATH")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs made so far, by build."""
    return {"folder": tmp_path_factory.mktemp("runtime")}


def program(programs: dict[str, Path], build: str) -> Path:
    """`checks` of one build, made at first use."""
    if build not in programs:
        target = programs["folder"] / build
        sources = [str(p) for p in (*sorted(RUNTIME.glob("*.c")), HERE / "checks.c")]
        flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{RUNTIME}", *BUILDS[build]]
        done = subprocess.run([str(COMPILER), *flags, *sources, "-o", str(target)], capture_output=True, text=True)
        if done.returncode and "cannot find" in done.stderr and BUILDS[build]:
            pytest.skip("the sanitizer's library is not installed")
        assert done.returncode == 0, done.stderr
        programs[build] = target
    return programs[build]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("check", CHECKS)
def test_runtime(programs: dict[str, Path], tmp_path: Path, build: str, check: str) -> None:
    if check in NOT_UNDER[build]:
        pytest.skip(f"not meaningful under {build}")
    null = "allocator_may_return_null=1"
    env = {"HL_NUM_THREADS": "3", "ASAN_OPTIONS": null, "TSAN_OPTIONS": f"halt_on_error=1:{null}"}
    if check == "kept_memory_is_bounded":
        env["HL_SCRATCH_CACHE"] = str(16 << 20)
    if check == "trace_file":
        env["HL_TRACE_FILE"] = str(tmp_path / "trace.bin")
    done = run_program([str(program(programs, build)), check], env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flags", [["-std=c11", "-x", "c"], ["-std=c++17", "-x", "c++"]], ids=["c", "c++"])
def test_header_alone_and_with_the_standard_headers(tmp_path: Path, flags: list[str]) -> None:
    source = tmp_path / "use.c"
    source.write_text('#include "hl_runtime.h"\n#include <stdint.h>\n#include <stddef.h>\n#include <string.h>\n'
                      "int32_t low(const halide_buffer_t *b) { return hl_check_kind(0, b, \"b\", \"b\", 0, 1); }\n")
    command = [str(COMPILER), "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}", *flags, "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", [("hl_runtime.h", "HalideRuntime.h"), ("HalideRuntime.h", "hl_runtime.h")], ids=["ours", "theirs"])
@pytest.mark.parametrize("flags", [["-std=c11", "-x", "c"], ["-std=c++17", "-x", "c++"]], ids=["c", "c++"])
def test_header_together_with_the_public_one(tmp_path: Path, order: tuple[str, str], flags: list[str]) -> None:
    halide = pytest.importorskip("halide")
    include = Path(halide.__file__).parent / "include"
    if not (include / "HalideRuntime.h").exists():
        pytest.skip("the halide package has no headers")
    source = tmp_path / "use.c"
    source.write_text(f'#include "{order[0]}"\n#include "{order[1]}"\n'
                      "int size(halide_buffer_t *b) { return hl_check_kind(0, b, \"b\", \"b\", 0, 1) + hl_print(0, \"\"); }\n"
                      "typedef char as_large_as_theirs[sizeof(halide_buffer_t) == 56 ? 1 : -1];\n")
    command = [str(COMPILER), "-Wall", f"-I{RUNTIME}", f"-I{include}", *flags, "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
