"""Run the C compiler: C text to shared objects, objects and assembly."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from ..codegen_c.machine import HEADERS, SOURCE_OF
from ..codegen_c.sources import declared_only, not_defined
from ..errors import CompileError, InternalError
from .abi import INCLUDE_DIR
from .cache import write_atomically
from .toolchain import FLAGS, Toolchain

_MOST_WAYS = 4
_COMPILER_STARTS, _ASSEMBLER_STARTS = 0.009, 0.001  # seconds until it waits for its input
_UNDEFINED_ALLOWED = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


class _Part:
    """A compiler that reads headers, then text from standard input, and an assembler that reads what it writes."""

    def __init__(self, t: Toolchain, compiled: str) -> None:
        self.compiled = compiled
        self._tools, self._report = t, compiled + ".report"
        self._compiler: subprocess.Popen[bytes] | None = None
        self._assembler: subprocess.Popen[bytes] | None = None
        self._data = b""

    def start_compiler(self) -> None:
        """It reads the headers at once."""
        t = self._tools
        ahead = [word for name in (*HEADERS, "/dev/stdin") for word in ("-include", name)]
        command = [*t.compiler, "-I", INCLUDE_DIR, *ahead, os.devnull, "-o", "-"]
        with open(self._report, "wb") as report:  # a file, since nobody reads while it runs
            self._compiler = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=report)

    def start_assembler(self) -> None:
        """The compiler runs."""
        assert self._compiler is not None and self._compiler.stdout is not None
        command = [*self._tools.assembler, "-o", self.compiled]
        self._assembler = subprocess.Popen(command, stdin=self._compiler.stdout, stderr=subprocess.PIPE)
        self._compiler.stdout.close()

    def give(self, text: str) -> None:
        """Send the text to the compiler, which runs."""
        self._data = text.encode()
        assert self._compiler is not None and self._compiler.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._compiler.stdin as pipe:  # one that has failed says why below
            pipe.write(self._data)
        self._compiler.stdin = None

    def wait(self) -> None:
        """Until the object file is there, if the text was right: `check` tells."""
        assert self._assembler is not None
        report = self._assembler.communicate()[1]
        if self._assembler.returncode:
            self.check()
        _judge(self._tools.assembler[0], self._assembler.returncode, report.decode(errors="replace"), self._data)

    def check(self) -> None:
        """Whether the compiler had errors. It takes a while to end after its last word."""
        assert self._compiler is not None
        status = self._compiler.wait()
        if status:
            with open(self._report, encoding="utf-8", errors="replace") as report:
                _judge(self._tools.compiler[0], status, report.read(), self._data)

    def end(self) -> None:
        """Nobody wants what is made."""
        for process in (self._compiler, self._assembler):
            if process is not None:
                with process:  # closes the pipes and waits
                    process.kill()


class Compilation:
    """Makes one shared object of C text in `folder`. Where gcc's inner programs are known they start one after another while there is no
    text yet, and get ready.

        with Compilation(tools, folder) as compilation:
            ...  # compilation.get_ready() now and then
            compilation.finish(texts, "pipeline.so")

    `ways` is how many texts are welcome: they are compiled at the same time, on as many of the processors as are worth it.
    `HL_SANITIZE=undefined` (or address, ...) builds with checks that end the process at the first violation: for testing generated code.
    """

    def __init__(self, t: Toolchain, folder: str) -> None:
        self._tools, self._folder = t, folder
        self._sanitizers = os.environ.get("HL_SANITIZE", "")
        direct = bool(t.compiler) and not self._sanitizers
        self.ways = min(_MOST_WAYS, _processors()) if direct else 1
        self._parts = [self._part(k) for k in range(min(self.ways, 2) if direct else 0)]
        starts = [(p.start_compiler, _COMPILER_STARTS) for p in self._parts] + [(p.start_assembler, _ASSEMBLER_STARTS) for p in self._parts]
        self._starts = starts[::-1]
        self._next = 0.0  # when the next may start
        self.get_ready()

    def _part(self, k: int) -> _Part:
        return _Part(self._tools, os.path.join(self._folder, f"pipeline{k}.o"))

    def get_ready(self) -> None:
        """Start the next program, if the last has had the time to. Each keeps a processor busy at its start, and all at once would take
        from the caller what they are to save."""
        now = time.perf_counter()
        if self._starts and now >= self._next:
            start, takes = self._starts.pop()
            start()
            self._next = now + takes

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *error: object) -> None:
        for part in self._parts:
            part.end()

    def finish(self, texts: Sequence[str], output: str, extra: Sequence[str] = ()) -> None:
        """Build the shared object `output`. `extra`: libraries, objects and flags to link.

        Raises InternalError with the compiler's first diagnostic; the C text is kept in a file. CompileError if the fault is in a user's C
        text.
        """
        t = self._tools
        if self._parts:
            self._finish_parts(texts, output, extra)
            return
        checks = [f"-fsanitize={self._sanitizers}", "-fno-sanitize-recover=all", "-g"] if self._sanitizers else []
        if checks and t.kind != "gcc":  # its runtime library is not for shared objects
            raise CompileError(f"HL_SANITIZE={self._sanitizers} needs gcc, but the C compiler is {t.kind}; set HL_CC=gcc, or unset "
                               "HL_SANITIZE")
        alone = [] if extra or checks else ["-nostdlib"]  # the process has what is missing
        data = texts[0].encode()
        source = _written(data, self._folder)
        _step(
            [
                *t.command,
                *FLAGS,
                *t.arch,
                *checks,
                "-I",
                INCLUDE_DIR,
                "-shared",
                *_UNDEFINED_ALLOWED,
                "-o",
                output,
                "-x",
                "c++",
                source,
                "-x",
                "none",
                *alone,
                *extra,
            ],
            data,
        )


    def _finish_parts(self, texts: Sequence[str], output: str, extra: Sequence[str]) -> None:
        for start, _ in reversed(self._starts):
            start()
        self._starts.clear()
        for k in range(len(self._parts), len(texts)):
            self._parts.append(self._part(k))
            self._parts[k].start_compiler()
            self._parts[k].start_assembler()
        used = self._parts[: len(texts)]
        for part, text in zip(used, texts):
            part.give(text)
        for part in used:
            part.wait()
        linker = [*self._tools.command, "-shared", *_UNDEFINED_ALLOWED] if extra else self._tools.linker
        command = [*linker, "-o", output, *(part.compiled for part in used), *extra]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as linking:
            for part in used:
                part.check()
            report = linking.communicate()[1]
        _judge(command[0], linking.returncode, report.decode(errors="replace"), b"")


def compile_object(text: str, output: str, t: Toolchain, folder: str, flags: Sequence[str] = ("-c",)) -> None:
    """Build the object file `output` from C text; with `flags` ("-S",) the assembly."""
    data = text.encode()
    source = _written(data, folder)
    _step([*t.command, *t.flags, *t.arch, "-I", INCLUDE_DIR, "-x", "c++", source, *flags, "-o", output], data)


def compile_c(source: str, output: str, t: Toolchain, flags: Sequence[str]) -> None:
    """Build an object file of the C file `source`."""
    _step([*t.command, "-std=gnu11", "-O2", "-fPIC", *t.arch, *flags, "-I", INCLUDE_DIR, "-x", "c", "-c", source, "-o", output], b"")


def link_shared(objects: Sequence[str], output: str, t: Toolchain) -> None:
    """Link object files and static libraries into the shared object `output`."""
    _step([*t.command, *t.system, "-shared", "-o", output, *objects, "-pthread", "-lm"], b"")


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


# What the programs say when the machine, not the C text, is at fault; -9 is the signal of a system without memory.
_MACHINE_AT_FAULT = re.compile(r"Cannot create temporary|No space left|out of memory|memory exhausted|Cannot allocate memory|Killed", re.I)


def _judge(program: str, status: int, report: str, data: bytes) -> None:
    """Raise an error if a program of the toolchain failed; the C text is kept."""
    if status == 0:
        return
    lines = [x for x in report.splitlines() if "error" in x.lower()] or report.splitlines() or [f"status {status}"]
    at_fault = next((x for x in report.splitlines() if _MACHINE_AT_FAULT.search(x)), "killed" if status == -9 else "")
    name = os.path.basename(program)
    if at_fault:
        raise CompileError(f"The C compiler cannot work on this machine: {name} reports {at_fault.strip()!r}. It needs memory, and a "
                           f"folder with space for temporary files, which TMPDIR names (in use: {tempfile.gettempdir()})")
    if lines[0].startswith(SOURCE_OF):
        problem = lines[0].split("; did you mean")[0].strip()
        raise CompileError(f"A C function given as source does not compile: {problem}. It is compiled as C++, together with the pipeline")
    private = declared_only(report)
    if private:
        raise CompileError(not_defined(private))
    kept = os.path.join(tempfile.gettempdir(), f"halide_py-failed-{hashlib.sha256(data).hexdigest()[:12]}.cpp") if data else ""
    advice = f" with the file kept as {kept}" if kept and write_atomically(kept, data) else ""
    raise InternalError(f"{name} refused generated code: {lines[0].strip()}; please report this{advice}")
