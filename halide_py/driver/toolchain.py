"""The C compiler: which one, what it can do, and how a shared object is made with it.

Looked for in the order HL_CC, CC, then gcc, clang, cc on PATH, then PyPI's ziglang. gcc's inner programs (compiler proper, assembler, linker) are
called directly where that works: 30 ms instead of the driver program's 48 for an empty file, because no C library is linked (its symbols
are in the process already). What was learned about a compiler is kept in the cache folder.
Flags keep IEEE specials (never -ffast-math) and let signed integers wrap.
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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..codegen_c.machine import Machine
from ..errors import CompileError, InternalError
from ..ir.target import ISA_FEATURES, Target, cpu_flags, host_target
from ..ir.target_words import TargetArch, TargetFeature
from .abi import INCLUDE_DIR
from .cache import cache_dir, write_atomically

FLAGS = ("-O2", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-w", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables")
_UNDEFINED_ALLOWED = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
_PROBE_VERSION = 4
_F = TargetFeature
_SKYLAKE = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_CANNONLAKE = (*_SKYLAKE, "avx512ifma", "avx512vbmi")
_ZEN4 = (*_CANNONLAKE, "avx512bf16", "avx512vnni", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq")
_OPTIONS: dict[TargetFeature, tuple[str, ...]] = {
    _F.SSE41: ("sse4.1",), _F.AVX: ("avx",), _F.AVX2: ("avx2",), _F.FMA: ("fma",), _F.FMA4: ("fma4",), _F.F16C: ("f16c",), _F.AVXVNNI: ("avxvnni",),
    _F.AVX512: ("avx512f",), _F.AVX512_KNL: ("avx512f", "avx512cd"), _F.AVX512_Skylake: _SKYLAKE, _F.AVX512_Cannonlake: _CANNONLAKE,
    _F.AVX512_Zen4: _ZEN4, _F.AVX512_SapphireRapids: _ZEN4, _F.AVX512_Zen5: _ZEN4,
}
_MACROS = ("SSE2", "SSSE3", "SSE4_1", "SSE4_2", "AVX", "AVX2", "FMA", "F16C", "BMI2", "POPCNT", "LZCNT", "AVX512F", "AVX512BW", "AVX512VL",
           "AVX512DQ", "AVX512CD", "AVX512VBMI", "AVX512IFMA", "AVX512VNNI", "AVX512FP16", "GFNI", "ARM_NEON", "ARM_FEATURE_DOTPROD")


@dataclass(frozen=True)
class Toolchain:
    """A C compiler that was tried, set to one instruction set. `compiler`, `assembler` and `linker` are gcc's inner commands; empty: use `command`."""

    command: tuple[str, ...]
    kind: str  # gcc or clang
    version: str
    arch: tuple[str, ...]  # the flags that choose the instruction set
    features: tuple[str, ...]  # the instruction sets, named as the macros that announce them: avx2, avx512f, arm_neon
    processor: str  # digest of the processor's features when `arch` is its own
    compiler: tuple[str, ...] = ()
    assembler: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()

    def identity(self) -> str:
        """What the compiled code depends on."""
        return f"{self.kind} {self.version} {' '.join(self.arch)} {self.processor} {' '.join(FLAGS)} {os.environ.get('HL_SANITIZE', '')}"

    def machine(self, target: Target) -> Machine:
        """What code generation may use: what both the compiler and the target have."""
        has = set(self.features)
        width = 64 if has.issuperset(("avx512bw", "avx512vl", "avx512dq")) else 32 if "avx2" in has else 16
        return Machine(min(width, target.natural_vector_bytes()), frozenset(has), self.kind)


def find_compiler() -> list[str]:
    """The command of the C compiler. Raises CompileError, which says how to get one, when there is none."""
    for variable in ("HL_CC", "CC"):
        command = shlex.split(os.environ.get(variable, ""))
        if command:
            if shutil.which(command[0]) is None:
                raise CompileError(f"The C compiler {command[0]!r} named by {variable} cannot be run; correct or unset {variable}")
            return command
    for name in ("gcc", "clang", "cc"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]  # not "c++": that builds a C++ library first, for minutes
    raise CompileError("No C compiler found: install gcc or clang (Debian: apt-get install gcc), or `pip install ziglang`, or set HL_CC")


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def _arch_flags(target: Target) -> tuple[str, ...]:
    """The flags for a target's instruction set: the processor's own if the target has all that this machine has."""
    host = host_target()
    if (target.arch, target.bits, target.os) != (host.arch, host.bits, host.os):
        raise CompileError(f"Cannot compile for {target}: the C compiler makes code for {host}. Use compile_to_c() and a compiler for that machine")
    wanted, own = ISA_FEATURES & set(target.features()), ISA_FEATURES & set(host.features())
    if wanted == own:
        return ("-march=native",)
    if target.arch is not TargetArch.X86:
        return ()
    missing = sorted({option for f in wanted for option in _OPTIONS.get(f, ())})
    return ("-march=x86-64", *(f"-m{option}" for option in missing)) if target.bits == 64 else tuple(f"-m{option}" for option in missing)


def _probe(command: list[str], wanted: tuple[str, ...]) -> Toolchain:
    variants = [wanted, tuple(flag.replace("x86-64", "x86_64") for flag in wanted)]  # zig has names of its own
    for arch in [*variants, ()] if wanted == ("-march=native",) else variants:
        macros = _run([*command, "-x", "c++", *arch, "-dM", "-E", "-"])
        if macros.returncode == 0:
            break
    if macros.returncode != 0:
        reason = (macros.stderr.strip() or "no output").splitlines()[0]
        raise CompileError(f"The C compiler {' '.join(command)} does not work: {reason}")
    lines = [line.split(maxsplit=2) for line in macros.stdout.splitlines()]
    defined = {line[1]: line[2] if len(line) > 2 else "" for line in lines if len(line) > 1}
    kind = "clang" if "__clang__" in defined else "gcc"
    features = tuple(m.lower() for m in _MACROS if f"__{m}__" in defined or f"__{m}" in defined)
    if kind == "gcc" and "__x86_64__" in defined:
        arch += ("-mtune=skylake",)  # measured: the tuning for Zen re-loads operands of FMAs, 1.2x slower matmul even there
    processor = hashlib.sha256(" ".join(sorted(cpu_flags())).encode()).hexdigest()[:16] if "-march=native" in arch else ""
    found = Toolchain(tuple(command), kind, defined.get("__VERSION__", "unknown").strip('"'), arch, features, processor)
    return _with_inner_programs(found) if kind == "gcc" else found


def _with_inner_programs(t: Toolchain) -> Toolchain:
    """The same compiler with the commands that its driver would run, if running them directly works."""
    shown = _run([*t.command, "-###", "-x", "c++", *FLAGS, *t.arch, "-shared", "-o", "out.so", "source.cpp"]).stderr
    commands = [shlex.split(line) for line in shown.splitlines() if line.startswith(" ")]
    compiler = next((c for c in commands if os.path.basename(c[0]).startswith("cc1plus")), [])
    assembler = next((c for c in commands if os.path.basename(c[0]) in ("as", "gas")), [])
    linker = next((c for c in commands if os.path.basename(c[0]) in ("collect2", "ld")), [])
    ld = _run([*t.command, "-print-prog-name=ld"]).stdout.strip()
    paths = [shutil.which(p) for p in (compiler[0] if compiler else "", assembler[0] if assembler else "", ld)]
    if None in paths or not linker:
        return t
    # What the driver worked out is kept (instruction set, multiarch); names of files are ours.
    drop = {"-dumpdir", "-dumpbase", "-dumpbase-ext", "-o"}
    words = [w for i, w in enumerate(compiler[1:]) if w not in drop and compiler[i] not in drop and w != "source.cpp"]
    emulation = linker[linker.index("-m"):linker.index("-m") + 2] if "-m" in linker else []
    flags = [w for w in assembler[1:] if w.startswith("-") and w not in ("-o", "-W")]
    direct = Toolchain(t.command, t.kind, t.version, t.arch, t.features, t.processor, (str(paths[0]), *words), (str(paths[1]), *flags),
                       (str(paths[2]), *emulation, "-shared", "--hash-style=gnu"))
    try:
        with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
            compile_shared('extern "C" int hl_probe(void **a) { return a ? 1 : 0; }\n', os.path.join(folder, "probe.so"), direct, folder)
    except InternalError:
        return t
    return direct


@functools.cache
def _toolchain(command: tuple[str, ...], arch: tuple[str, ...]) -> Toolchain:
    program = shutil.which(command[0]) or command[0]
    stat = os.stat(program)
    asked = repr((_PROBE_VERSION, command, arch, FLAGS, program, stat.st_size, stat.st_mtime_ns, sorted(cpu_flags())))
    folder = cache_dir()
    path = os.path.join(folder, f"toolchain-{hashlib.sha256(asked.encode()).hexdigest()[:24]}.json") if folder else ""
    try:
        with open(path, encoding="utf-8") as file:
            known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.load(file).items()}
            return Toolchain(**known)
    except (OSError, ValueError, TypeError, AttributeError):
        pass  # never asked, or a damaged answer
    found = _probe(list(command), arch)
    if path:
        write_atomically(path, json.dumps(asdict(found)).encode())
    return found


def toolchain(target: Target) -> Toolchain:
    """The compiler, set to a target's instruction set. Raises CompileError when there is none, or the target is another kind of machine."""
    return _toolchain(tuple(find_compiler()), _arch_flags(target))


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
    alone = [] if extra or sanitizers else ["-nostdlib"]  # as above, the process has what is missing
    _step([*t.command, *FLAGS, *t.arch, *checks, "-I", INCLUDE_DIR, "-shared", *_UNDEFINED_ALLOWED, "-o", output, "-x", "c++", source, "-x", "none",
           *alone, *extra], source)


def compile_object(text: str, output: str, t: Toolchain, folder: str, flags: Sequence[str] = ("-c",)) -> None:
    """Build the object file `output` from C text; with `flags` ("-S",) the assembly."""
    source = os.path.join(folder, "pipeline.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    _step([*t.command, *FLAGS, *t.arch, "-I", INCLUDE_DIR, "-x", "c++", source, *flags, "-o", output], source)


def link_shared(objects: Sequence[str], output: str, t: Toolchain) -> None:
    """Link object files and static libraries into the shared object `output`."""
    _step([*t.command, "-shared", "-o", output, *objects, "-pthread", "-lm"], objects[0])


def _step(command: Sequence[str], source: str) -> None:
    """Run a program of the toolchain; what it was given is kept if it fails."""
    done = _run(command)
    if done.returncode == 0:
        return
    with open(source, "rb") as file:
        data = file.read()
    kept = os.path.join(tempfile.gettempdir(), f"halide_py-failed-{hashlib.sha256(data).hexdigest()[:12]}{os.path.splitext(source)[1]}")
    write_atomically(kept, data)
    lines = [x for x in done.stderr.splitlines() if "error" in x.lower()] or done.stderr.splitlines() or [f"status {done.returncode}"]
    raise InternalError(f"{os.path.basename(command[0])} refused generated code: {lines[0].strip()}; please report this with the file kept as {kept}")
