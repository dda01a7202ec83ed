"""Run the C compiler: C text to shared objects, objects and assembly."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from ..codegen_c.machine import SOURCE_OF
from ..errors import CompileError, InternalError
from .abi import INCLUDE_DIR
from .cache import write_atomically
from .toolchain import FLAGS, Toolchain

_UNDEFINED_ALLOWED = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()


def run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def compile_shared(text: str, output: str, t: Toolchain, folder: str, extra: Sequence[str] = ()) -> None:
    """Build the shared object `output` from C text, with `folder` for what is between. `extra`: libraries, objects and flags to link.

    `HL_SANITIZE=undefined` (or address, ...) builds with checks that end the process at the first violation: for testing generated code.
    Raises InternalError with the compiler's first diagnostic; the C file is kept.
    """
    source = os.path.join(folder, "pipeline.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    sanitizers = os.environ.get("HL_SANITIZE", "")
    if t.compiler and not extra and not sanitizers:
        assembly, compiled = os.path.join(folder, "pipeline.s"), os.path.join(folder, "pipeline.o")
        _step([*t.compiler, "-I", INCLUDE_DIR, source, "-o", assembly], source)
        _step([*t.assembler, "-o", compiled, assembly], source)
        _step([*t.linker, "-o", output, compiled], source)
        return
    checks = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-g"] if sanitizers else []
    if checks and t.kind != "gcc":  # its runtime library is not for shared objects
        raise CompileError(f"HL_SANITIZE={sanitizers} needs gcc, but the C compiler is {t.kind}; set HL_CC=gcc, or unset HL_SANITIZE")
    alone = [] if extra or sanitizers else ["-nostdlib"]  # as above, the process has what is missing
    _step([*t.command, *FLAGS, *t.arch, *checks, "-I", INCLUDE_DIR, "-shared", *_UNDEFINED_ALLOWED, "-o", output, "-x", "c++", source, "-x", "none",
           *alone, *extra], source)


def compile_object(text: str, output: str, t: Toolchain, folder: str, flags: Sequence[str] = ("-c",)) -> None:
    """Build the object file `output` from C text; with `flags` ("-S",) the assembly."""
    source = os.path.join(folder, "pipeline.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    _step([*t.command, *t.flags, *t.arch, "-I", INCLUDE_DIR, "-x", "c++", source, *flags, "-o", output], source)


def link_shared(objects: Sequence[str], output: str, t: Toolchain) -> None:
    """Link object files and static libraries into the shared object `output`."""
    _step([*t.command, "-shared", "-o", output, *objects, "-pthread", "-lm"], objects[0])


def _step(command: Sequence[str], source: str) -> None:
    """Run a program of the toolchain; what it was given is kept if it fails."""
    done = run(command)
    if done.returncode == 0:
        return
    with open(source, "rb") as file:
        data = file.read()
    kept = os.path.join(tempfile.gettempdir(), f"halide_py-failed-{hashlib.sha256(data).hexdigest()[:12]}{os.path.splitext(source)[1]}")
    write_atomically(kept, data)
    lines = [x for x in done.stderr.splitlines() if "error" in x.lower()] or done.stderr.splitlines() or [f"status {done.returncode}"]
    if lines[0].startswith(SOURCE_OF):
        raise CompileError(f"A C function given as source does not compile: {lines[0].strip()}. It is compiled as C++, together with the pipeline")
    raise InternalError(f"{os.path.basename(command[0])} refused generated code: {lines[0].strip()}; please report this with the file kept as {kept}")
