"""The C compiler: which one, and what it can do; `c_compiler` runs it, `probe` finds out.

Looked for in the order HL_CC, CC, then gcc, clang, cc on PATH, then PyPI's ziglang. gcc's inner programs (compiler proper, assembler,
linker) are called directly where that works: 30 ms instead of the driver program's 48 for an empty file, because no C library is linked
(its symbols are in the process already). What was learned about a compiler is kept in the cache folder.
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
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .. import driver
from ..codegen_c.machine import Machine
from ..errors import CompileError
from ..ir.target import ISA_FEATURES, Target, cpu_flags, host_target
from ..ir.target_words import TargetArch, TargetFeature
from .cache import cache_dir, write_atomically

FLAGS = (
    "-O2",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-w",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
)
# Passes of gcc that cost a tenth of its time and change nothing measurable in our code (blur to matmul, scalar loops, tables); others that
# look as useless are not: without -fthread-jumps, -ftree-pre, -ftree-pta, -fivopts or the vectorizers some loops take 1.1 to 2 times as
# long. Short loops that begin anywhere in a cache line take up to 1.3 times as long as those that begin at 32 bytes; loops of a few
# instructions are made of two iterations each: Zen 5 takes up to 2 cycles for a loop of one, whatever is in it.
_UNROLLED = ("-funroll-loops", "--param=max-unroll-times=2", "--param=max-unrolled-insns=32", "--param=max-average-unrolled-insns=32",
             "-fno-web", "-fno-rename-registers")
GCC_FLAGS = ("-fno-tree-vrp", "-fno-tree-tail-merge", "-fno-code-hoisting", "-fno-schedule-insns2", "-fno-gcse", "-falign-loops=32",
             *_UNROLLED)
_PROBE_VERSION = 7
_F = TargetFeature
_SKYLAKE = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_CANNONLAKE = (*_SKYLAKE, "avx512ifma", "avx512vbmi")
_ZEN4 = (*_CANNONLAKE, "avx512bf16", "avx512vnni", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq")
_OPTIONS: dict[TargetFeature, tuple[str, ...]] = {
    _F.SSE41: ("sse4.1",),
    _F.AVX: ("avx",),
    _F.AVX2: ("avx2",),
    _F.FMA: ("fma",),
    _F.FMA4: ("fma4",),
    _F.F16C: ("f16c",),
    _F.AVXVNNI: ("avxvnni",),
    _F.AVX512: ("avx512f",),
    _F.AVX512_KNL: ("avx512f", "avx512cd"),
    _F.AVX512_Skylake: _SKYLAKE,
    _F.AVX512_Cannonlake: _CANNONLAKE,
    _F.AVX512_Zen4: _ZEN4,
    _F.AVX512_SapphireRapids: _ZEN4,
    _F.AVX512_Zen5: _ZEN4,
}

_CHECKED = (
    "sse4.1",
    "sse4.2",
    "popcnt",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "bmi2",
    "avx512f",
    "avx512cd",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512vnni",
    "avx512bitalg",
    "avx512vpopcntdq",
    "avx512bf16",
)


@dataclass(frozen=True)
class Toolchain:
    """A C compiler that was tried, set to one instruction set. `compiler`, `assembler` and `linker` are gcc's inner commands; empty: use
    `command`."""

    command: tuple[str, ...]
    kind: str  # gcc or clang
    version: str
    arch: tuple[str, ...]  # the flags that choose the instruction set
    features: tuple[str, ...]  # the instruction sets, named as the macros that announce them: avx2, avx512f, arm_neon
    processor: str  # digest of the processor's features when `arch` is its own
    compiler: tuple[str, ...] = ()
    assembler: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()

    @property
    def is_zig(self) -> bool:
        """Whether it is PyPI's ziglang, which has the C libraries and linkers of other systems with it."""
        return self.command[-2:-1] == ("ziglang",)

    @property
    def system(self) -> tuple[str, ...]:
        """How objects are linked for another machine; instruction sets apart, for each of which ziglang would build its C library anew."""
        return tuple(a for a in self.arch if a.startswith("--target="))

    @property
    def flags(self) -> tuple[str, ...]:
        """How code is compiled."""
        return tuple(f for f in FLAGS if f != "-fPIC") if any("-windows" in a for a in self.arch) else FLAGS

    def identity(self) -> str:
        """What the compiled code depends on."""
        flags = " ".join(FLAGS + GCC_FLAGS)
        return f"{self.kind} {self.version} {' '.join(self.arch)} {self.processor} {flags} {os.environ.get('HL_SANITIZE', '')}"

    def checked_features(self) -> tuple[str, ...]:
        """The instruction sets in use that a program asks its processor for, named as in `hl_instruction_set` of the runtime."""
        return tuple(name for name in _CHECKED if name.replace(".", "_") in self.features)

    def machine(self, target: Target) -> Machine:
        """What code generation may use: what both the compiler and the target have."""
        has = set(self.features)
        width = 64 if has.issuperset(("avx512bw", "avx512vl", "avx512dq")) else 32 if "avx2" in has else 16
        lanes = min(width, target.natural_vector_bytes())
        return Machine(lanes, frozenset(has), self.kind, target.bits == 64, target.has_large_buffers())


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
    if zig_command():
        return list(zig_command())
    raise CompileError("No C compiler found: install gcc or clang (Debian: apt-get install gcc), or `pip install ziglang`, or set HL_CC")


def zig_command() -> tuple[str, ...]:
    """The command of PyPI's ziglang as a C compiler; empty where it is not installed."""
    # not "c++": that builds a C++ library, for minutes
    return () if importlib.util.find_spec("ziglang") is None else (sys.executable, "-m", "ziglang", "cc")


def _arch_flags(target: Target) -> tuple[str, ...]:
    """The flags for a target's instruction set: the processor's own if the target has all that this machine has."""
    host = host_target()
    if (target.arch, target.bits, target.os) != (host.arch, host.bits, host.os):
        raise CompileError(f"Cannot compile for {target}: the C compiler makes code for {host}. Use compile_to_c() and a compiler for that "
                           "machine")
    wanted, own = ISA_FEATURES & set(target.features()), ISA_FEATURES & set(host.features())
    if wanted == own:
        return ("-march=native",)
    return x86_flags(target, wanted) if target.arch is TargetArch.X86 else ()


def x86_flags(target: Target, wanted: Iterable[TargetFeature]) -> tuple[str, ...]:
    """The flags for x86 features on top of the oldest processor of that width, with SSE2 at least: x87 arithmetic would round otherwise."""
    options = sorted({option for f in wanted for option in _OPTIONS.get(f, ())})
    return (*(["-march=x86-64"] if target.bits == 64 else ["-msse2", "-mfpmath=sse"]), *(f"-m{option}" for option in options))


@functools.cache
def _toolchain(command: tuple[str, ...], arch: tuple[str, ...]) -> Toolchain:
    program = shutil.which(command[0]) or command[0]
    stat = os.stat(program)
    asked = repr((_PROBE_VERSION, command, arch, FLAGS, GCC_FLAGS, program, stat.st_size, stat.st_mtime_ns, sorted(cpu_flags())))
    folder = cache_dir()
    path = os.path.join(folder, f"toolchain-{hashlib.sha256(asked.encode()).hexdigest()[:24]}.json") if folder else ""
    try:
        with open(path, encoding="utf-8") as file:
            known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.load(file).items()}
            return Toolchain(**known)
    except (OSError, ValueError, TypeError, AttributeError):
        pass  # never asked, or a damaged answer
    found = driver.probe.probe(list(command), arch)
    if path:
        write_atomically(path, json.dumps(asdict(found)).encode())
    return found


def toolchain(target: Target) -> Toolchain:
    """The compiler, set to a target's instruction set. Raises CompileError when there is none, or the target is another kind of machine."""
    return _toolchain(tuple(find_compiler()), _arch_flags(target))


def clang_command(why: str) -> tuple[str, ...]:
    """A command that is clang: the C compiler in use, else clang or ziglang. Raises CompileError, which begins with `why`, when there is
    none."""
    own = tuple(find_compiler())
    if _toolchain(own, ()).kind == "clang":
        return own
    clang = shutil.which("clang")
    if clang is not None:
        return (clang,)
    if zig_command():
        return zig_command()
    raise CompileError(f"{why}. There is no clang: install it, or `pip install ziglang`")


def clang_toolchain(target: Target) -> Toolchain:
    """A compiler that knows LLVM's own formats. Raises CompileError when there is none."""
    return _toolchain(clang_command("Bitcode and LLVM assembly need clang"), _arch_flags(target))


def toolchain_of(command: tuple[str, ...], arch: tuple[str, ...]) -> Toolchain:
    """A compiler set by flags. Raises CompileError when it does not work."""
    return _toolchain(command, arch)
