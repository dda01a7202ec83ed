"""Run the C compiler: C text to shared objects, objects and assembly."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from ..codegen_c.machine import HEADERS, SOURCE_OF
from ..errors import CompileError, InternalError
from .abi import INCLUDE_DIR
from .cache import write_atomically
from .toolchain import FLAGS, Toolchain

_UNDEFINED_ALLOWED = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()


def run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


class Compilation:
    """Makes one shared object of C text in `folder`. Where gcc's inner programs are known they start now, and get ready while there is no text yet.

        with Compilation(tools, folder) as compilation:
            ...
            compilation.finish(text, "pipeline.so")

    `HL_SANITIZE=undefined` (or address, ...) builds with checks that end the process at the first violation: for testing generated code.
    """

    def __init__(self, t: Toolchain, folder: str) -> None:
        self._tools, self._folder = t, folder
        self._sanitizers = os.environ.get("HL_SANITIZE", "")
        self._object = os.path.join(folder, "pipeline.o")
        self._running: list[subprocess.Popen[bytes]] = []
        if t.compiler and not self._sanitizers:
            self._start()

    def _start(self) -> None:
        """Read the headers, then text from standard input; the assembler reads what the compiler writes."""
        ahead = [word for name in (*HEADERS, "/dev/stdin") for word in ("-include", name)]
        command = [*self._tools.compiler, "-I", INCLUDE_DIR, *ahead, os.devnull, "-o", "-"]
        compiler = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._running.append(compiler)
        self._running.append(subprocess.Popen([*self._tools.assembler, "-o", self._object], stdin=compiler.stdout, stderr=subprocess.PIPE))
        assert compiler.stdout is not None
        compiler.stdout.close()

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._running:  # nobody wants what they make
            process.kill()
            process.communicate()

    def finish(self, text: str, output: str, extra: Sequence[str] = ()) -> None:
        """Build the shared object `output`. `extra`: libraries, objects and flags to link.

        Raises InternalError with the compiler's first diagnostic; the C text is kept in a file. CompileError if the fault is in a user's C text.
        """
        t, data = self._tools, text.encode()
        if self._running:
            compiler, assembler = self._running
            reports = compiler.communicate(data)[1], assembler.communicate()[1]
            self._running = []
            for program, process, report in zip((t.compiler[0], t.assembler[0]), (compiler, assembler), reports):
                _judge(program, process.returncode, report.decode(errors="replace"), data)
            linker = [*t.command, "-shared", *_UNDEFINED_ALLOWED] if extra else t.linker
            _step([*linker, "-o", output, self._object, *extra], data)
            return
        checks = [f"-fsanitize={self._sanitizers}", "-fno-sanitize-recover=all", "-g"] if self._sanitizers else []
        if checks and t.kind != "gcc":  # its runtime library is not for shared objects
            raise CompileError(f"HL_SANITIZE={self._sanitizers} needs gcc, but the C compiler is {t.kind}; set HL_CC=gcc, or unset HL_SANITIZE")
        alone = [] if extra or checks else ["-nostdlib"]  # the process has what is missing
        source = _written(data, self._folder)
        _step([*t.command, *FLAGS, *t.arch, *checks, "-I", INCLUDE_DIR, "-shared", *_UNDEFINED_ALLOWED, "-o", output, "-x", "c++", source, "-x", "none",
               *alone, *extra], data)


def compile_object(text: str, output: str, t: Toolchain, folder: str, flags: Sequence[str] = ("-c",)) -> None:
    """Build the object file `output` from C text; with `flags` ("-S",) the assembly."""
    data = text.encode()
    source = _written(data, folder)
    _step([*t.command, *t.flags, *t.arch, "-I", INCLUDE_DIR, "-x", "c++", source, *flags, "-o", output], data)


def link_shared(objects: Sequence[str], output: str, t: Toolchain) -> None:
    """Link object files and static libraries into the shared object `output`."""
    _step([*t.command, "-shared", "-o", output, *objects, "-pthread", "-lm"], b"")


def _written(data: bytes, folder: str) -> str:
    """The path of a C file of that text."""
    source = os.path.join(folder, "pipeline.cpp")
    with open(source, "wb") as file:
        file.write(data)
    return source


def _step(command: Sequence[str], data: bytes) -> None:
    """Run a program of the toolchain on what C text became."""
    done = run(command)
    _judge(command[0], done.returncode, done.stderr, data)


def _judge(program: str, status: int, report: str, data: bytes) -> None:
    """Raise an error if a program of the toolchain failed; the C text is kept."""
    if status == 0:
        return
    kept = os.path.join(tempfile.gettempdir(), f"halide_py-failed-{hashlib.sha256(data).hexdigest()[:12]}.cpp")
    write_atomically(kept, data)
    lines = [x for x in report.splitlines() if "error" in x.lower()] or report.splitlines() or [f"status {status}"]
    if lines[0].startswith(SOURCE_OF):
        raise CompileError(f"A C function given as source does not compile: {lines[0].strip()}. It is compiled as C++, together with the pipeline")
    raise InternalError(f"{os.path.basename(program)} refused generated code: {lines[0].strip()}; please report this with the file kept as {kept}")
