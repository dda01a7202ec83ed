"""The C compiler: which one, what it can do, and how a shared object is made with it.

Found once a process in the order HL_CC, CC, gcc, clang, cc on PATH, PyPI's ziglang. With gcc the compiler proper, the assembler and the
linker are called directly where that works, which saves a third of the time of the driver program.
Flags keep IEEE specials and make signed overflow wrap; see ARCHITECTURE.md.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Sequence

from ..errors import CompileError, InternalError
from .abi import INCLUDE_DIR
from .cache import cache_dir, write_atomically

FLAGS = ("-O2", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fno-exceptions", "-fno-rtti", "-fPIC", "-w")
_PROBE = 2  # version of what is probed; older answers on disk are ignored


@dataclass(frozen=True)
class Toolchain:
    """A C compiler that was tried. `compile_steps` are gcc's inner commands (compiler proper, assembler, linker), empty to use the driver."""

    command: tuple[str, ...]
    kind: str  # gcc or clang
    version: str
    tuning: tuple[str, ...]
    features: tuple[str, ...]  # macros of the host's instruction sets: avx2, avx512f, ...
    cc1: str = ""
    assembler: str = ""
    linker: str = ""
    march: tuple[str, ...] = ()

    def identity(self) -> str:
        """What the compiled code depends on."""
        return f"{self.kind} {self.version} {' '.join(self.tuning)} {' '.join(self.march)}"


def find_compiler() -> list[str]:
    """The command of the C compiler. Raises CompileError, which says how to get one, when there is none."""
    for variable in ("HL_CC", "CC"):
        command = os.environ.get(variable, "").strip()
        if command:
            if shutil.which(shlex.split(command)[0]) is None:
                raise CompileError(f"The C compiler {command!r} named by {variable} cannot be run; correct or unset {variable}")
            return shlex.split(command)
    for name in ("gcc", "clang", "cc"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "c++"]
    raise CompileError("halide_py needs a C compiler and found none: install gcc or clang (Debian: apt-get install gcc), or `pip install ziglang`, or set HL_CC")


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def _probe(command: list[str]) -> Toolchain:
    macros = _run([*command, "-x", "c++", "-march=native", "-dM", "-E", "-"])
    native = macros.returncode == 0
    if not native:
        macros = _run([*command, "-x", "c++", "-dM", "-E", "-"])
    if macros.returncode != 0:
        raise CompileError(f"The C compiler {' '.join(command)} does not work: {(macros.stderr or 'no output').strip().splitlines()[0]}")
    defined = {line.split()[1] for line in macros.stdout.splitlines() if len(line.split()) > 1}
    kind = "clang" if "__clang__" in defined else "gcc"
    wanted = ("SSE2", "SSE4_1", "AVX", "AVX2", "FMA", "F16C", "AVX512F", "AVX512BW", "AVX512VL", "AVX512DQ", "ARM_NEON")
    features = tuple(f.lower() for f in wanted if f"__{f}__" in defined or f"__{f}" in defined)
    tuning = ("-march=native",) if native else ()
    if kind == "gcc" and "__x86_64__" in defined:
        tuning += ("-mtune=skylake",)
    version = next((line.split('"')[1] for line in macros.stdout.splitlines() if "__VERSION__" in line and '"' in line), "unknown")
    plain = Toolchain(tuple(command), kind, version, tuning, features)
    return _direct(plain) if kind == "gcc" and len(command) == 1 else plain


def _direct(t: Toolchain) -> Toolchain:
    """The same compiler with gcc's inner programs found, if calling them directly works."""
    programs = {}
    for name in ("cc1plus", "as", "ld"):
        path = _run([*t.command, f"-print-prog-name={name}"]).stdout.strip()
        found = path if os.path.isabs(path) and os.path.exists(path) else shutil.which(path)
        if not found:
            return t
        programs[name] = found
    shown = _run([*t.command, "-x", "c++", *t.tuning, "-###", "-S", "-o", os.devnull, os.devnull]).stderr
    line = next((x for x in shown.splitlines() if "cc1plus" in x), "")
    march = tuple(a for a in shlex.split(line) if a.startswith(("-m", "--param")) and not a.startswith("-mtune"))
    try:
        flat: list[str] = []
        words = shlex.split(line)
        for i, a in enumerate(words):
            if a == "--param":
                flat += [a, words[i + 1]]
            elif a.startswith(("-m", "--param=")):
                flat.append(a)
        march = tuple(flat)
        direct = Toolchain(t.command, t.kind, t.version, t.tuning, t.features, programs["cc1plus"], programs["as"], programs["ld"], march)
        with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
            compile_shared("extern \"C\" int hl_probe(void **a) { return 0; }\n", os.path.join(folder, "probe.so"), direct, folder)
        return direct
    except (InternalError, IndexError, OSError):
        return t


@functools.lru_cache(maxsize=None)
def toolchain() -> Toolchain:
    """The compiler of this process; what was learned about it is kept on disk, keyed by the program's path, size and time."""
    command = find_compiler()
    program = shutil.which(command[0]) or command[0]
    stat = os.stat(program)
    key = hashlib.sha256(repr((_PROBE, command, program, stat.st_size, stat.st_mtime_ns, _cpu())).encode()).hexdigest()[:24]
    folder = cache_dir()
    path = os.path.join(folder, f"toolchain-{key}.json") if folder else ""
    if path and os.path.exists(path):
        try:
            with open(path, encoding="utf-8") as file:
                fields = json.load(file)
            return Toolchain(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
        except (OSError, ValueError, TypeError):
            pass  # a damaged answer is asked for again
    found = _probe(command)
    if path:
        write_atomically(path, json.dumps(asdict(found)).encode())
    return found


def _cpu() -> str:
    """What tells this machine's processor from another that shares the cache folder."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return "".join(line for line in file if line.startswith(("model name", "flags")))[:8000].split("processor")[0]
    except OSError:
        return ""


def sanitizers() -> tuple[str, ...]:
    """Flags for HL_SANITIZE=undefined,address, ...: for testing generated code."""
    names = os.environ.get("HL_SANITIZE", "")
    return (f"-fsanitize={names}", "-fno-sanitize-recover=all", "-g") if names else ()


def compile_shared(text: str, output: str, t: Toolchain, folder: str, extra: Sequence[str] = (), keep: str = "") -> None:
    """Build the shared object `output` from C text. `extra` are more inputs and flags for linking.

    Raises InternalError with the compiler's first diagnostic; the C file is kept at `keep`.
    """
    source = os.path.join(folder, "pipeline.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    checks = sanitizers()
    if t.cc1 and not extra and not checks:
        assembly, obj = os.path.join(folder, "pipeline.s"), os.path.join(folder, "pipeline.o")
        steps = [[t.cc1, "-quiet", "-I", INCLUDE_DIR, "-D_GNU_SOURCE", *FLAGS, *t.march, "-mtune=skylake", source, "-o", assembly],
                 [t.assembler, "--64", "-o", obj, assembly], [t.linker, "-shared", "-o", output, obj]]
    else:
        sysroot = ["-x", "c++", source, "-x", "none"]
        steps = [[*t.command, *FLAGS, *t.tuning, *checks, "-I", INCLUDE_DIR, "-shared", "-o", output, *sysroot, *extra]]
    for step in steps:
        done = _run(step)
        if done.returncode != 0:
            kept = keep or os.path.join(tempfile.gettempdir(), f"halide_py-failed-{os.getpid()}.cpp")
            shutil.copyfile(source, kept)
            lines = [x for x in done.stderr.splitlines() if "error" in x.lower()] or done.stderr.splitlines() or ["no message"]
            raise InternalError(f"The C compiler refused the generated code: {lines[0].strip()} (the C file is kept: {kept}); please report this")
