"""Compilers for other machines than this: PyPI's ziglang, which makes objects, libraries and the C runtime for them; or clang, which makes
objects without their C libraries, which generated code does not include, and so without the runtime.

What a target's features ask for and cannot be said to the compiler is refused.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from ..errors import CompileError
from ..ir.target import ISA_FEATURES, Target, host_target
from ..ir.target_words import TargetArch, TargetFeature, TargetOS
from .abi import SOURCE_DIR
from .binaries import archive, weakened
from .c_compiler import compile_c
from .cache import cache_dir, digest, write_atomically
from .fingerprint import own_version
from .scratch import scratch_folder
from .toolchain import Toolchain, clang_command, toolchain, toolchain_of, x86_flags, zig_command

_A, _O, _F = TargetArch, TargetOS, TargetFeature
_TRIPLES = {
    (_O.Linux, _A.X86, 64): "x86_64-linux-gnu",
    (_O.Linux, _A.X86, 32): "i686-linux-gnu",
    (_O.Linux, _A.ARM, 64): "aarch64-linux-gnu",
    (_O.Linux, _A.ARM, 32): "armv7-linux-gnueabihf",
    (_O.Linux, _A.RISCV, 64): "riscv64-linux-gnu",
    (_O.Linux, _A.POWERPC, 64): "powerpc64le-linux-gnu",
    (_O.Android, _A.ARM, 32): "armv7-none-linux-androideabi21",
    (_O.Android, _A.ARM, 64): "aarch64-linux-android21",
    (_O.Android, _A.X86, 64): "x86_64-linux-android21",
    (_O.Android, _A.X86, 32): "i686-linux-android21",
    (_O.OSX, _A.X86, 64): "x86_64-apple-macosx11",
    (_O.OSX, _A.ARM, 64): "arm64-apple-macosx11",
    (_O.IOS, _A.ARM, 64): "arm64-apple-ios12",
    (_O.IOS, _A.ARM, 32): "armv7-apple-ios9",
    (_O.Windows, _A.X86, 64): "x86_64-w64-windows-gnu",
    (_O.Windows, _A.X86, 32): "i686-w64-windows-gnu",
    (_O.Windows, _A.ARM, 64): "aarch64-w64-windows-gnu",
}
_ZIG = {
    (_O.Linux, _A.X86, 64): "x86_64-linux-gnu",
    (_O.Linux, _A.X86, 32): "x86-linux-gnu",
    (_O.Linux, _A.ARM, 64): "aarch64-linux-gnu",
    (_O.Linux, _A.ARM, 32): "arm-linux-gnueabihf",
    (_O.Linux, _A.RISCV, 64): "riscv64-linux-gnu",
    (_O.Linux, _A.POWERPC, 64): "powerpc64le-linux-gnu",
    (_O.OSX, _A.X86, 64): "x86_64-macos",
    (_O.OSX, _A.ARM, 64): "aarch64-macos",
    (_O.Windows, _A.X86, 64): "x86_64-windows-gnu",
    (_O.Windows, _A.X86, 32): "x86-windows-gnu",
    (_O.Windows, _A.ARM, 64): "aarch64-windows-gnu",
}
_ARM_64 = {_F.ARMv8a: "armv8-a", _F.ARMv81a: "armv8.1-a", _F.ARMv82a: "armv8.2-a", _F.ARMv83a: "armv8.3-a", _F.ARMv84a: "armv8.4-a",
           _F.ARMv85a: "armv8.5-a", _F.ARMv86a: "armv8.6-a", _F.ARMv87a: "armv8.7-a", _F.ARMv88a: "armv8.8-a"}


def is_foreign(target: Target) -> bool:
    """Whether a target is another kind of machine than this."""
    host = host_target()
    return (target.arch, target.bits, target.os) != (host.arch, host.bits, host.os)


def has_runtime(target: Target, tools: Toolchain) -> bool:
    """Whether the C runtime can be had for a target whose code a compiler makes."""
    return not is_foreign(target) or tools.is_zig and (target.os, target.arch, target.bits) in _ZIG


def runtime_advice(target: Target) -> str:
    """How to get the C runtime for a machine that there is none for here."""
    zig = "`pip install ziglang`, or " if (target.os, target.arch, target.bits) in _ZIG else ""
    return f"{zig}compile halide_py's runtime/*.c for that machine"


def toolchain_for_files(target: Target) -> Toolchain:
    """The compiler for files of a target, this machine or another. Raises CompileError when there is none, or it cannot make what is asked
    for."""
    if not is_foreign(target):
        return toolchain(target)
    system, wanted = (target.os, target.arch, target.bits), ISA_FEATURES & set(target.features())
    if system in _ZIG and zig_command():
        return toolchain_of(zig_command(), (f"--target={_ZIG[system]}", *_isa_flags(target, wanted, zig=True)))
    triple = _TRIPLES.get(system)
    if triple is None:
        raise CompileError(f"Cannot compile for {target}: there is no way to say it to clang. Use compile_to_c() and a compiler for that "
                           "machine")
    command = clang_command(f"Cannot compile for {target} on {host_target()}: that needs clang; or use compile_to_c() and a compiler for "
                            "that machine")
    if _F.ARMv7s in wanted:  # Apple's name of a processor
        triple, wanted = triple.replace("armv7-", "armv7s-"), wanted - {_F.ARMv7s}
    return toolchain_of(command, (f"--target={triple}", *_isa_flags(target, wanted)))


def _isa_flags(target: Target, wanted: set[TargetFeature] | frozenset[TargetFeature], zig: bool = False) -> tuple[str, ...]:
    if target.arch is TargetArch.X86:
        return x86_flags(target, wanted)
    versions = sorted(f for f in wanted if f in _ARM_64 and target.bits == 64)
    plus = {
        f: word
        for f, word in ((_F.ARMDotProd, "dotprod"), (_F.ARMFp16, "fullfp16" if zig else "fp16"))
        if f in wanted and target.bits == 64
    }
    known = {*versions, *plus}
    if wanted - known:
        raise CompileError(f"Cannot compile for {target}: no way is known to ask clang for "
                           f"{', '.join(f.label for f in sorted(wanted - known))}")
    if not known:
        return ()
    version = _ARM_64[versions[-1]] if versions else "armv8.2-a" if plus else "armv8-a"
    if zig:
        return ("-mcpu=" + "+".join(["generic", "v" + version[4:-2].replace(".", "_") + "a", *plus.values()]),)
    return ("-march=" + "+".join([version, *plus.values()]),)


@functools.lru_cache(maxsize=16)
def foreign_runtime(tools: Toolchain, renaming: str) -> bytes:
    """The C runtime as a static library for the machine that a compiler is set to; kept on disk. `renaming`: macros in front of each file.

    Raises InternalError when it does not compile.
    """
    folder, names = cache_dir(), sorted(name for name in os.listdir(SOURCE_DIR) if name.endswith(".c"))
    kept = os.path.join(folder, f"runtime-{digest(tools.identity(), renaming, own_version())}.a") if folder else ""
    if kept and os.path.exists(kept):
        return Path(kept).read_bytes()
    with scratch_folder() as work:
        before, library = Path(work, "before.h"), os.path.join(work, "runtime.a")
        before.write_text(renaming, encoding="utf-8")
        made = [os.path.join(work, name[:-1] + "o") for name in names]
        for name, output in zip(names, made):
            compile_c(os.path.join(SOURCE_DIR, name), output, tools, ("-DHL_ERRORS_TO_STDERR", "-include", str(before)))
            Path(output).write_bytes(weakened(Path(output).read_bytes()))
        archive(library, made, tools)
        if kept:
            write_atomically(kept, Path(library).read_bytes())
        return Path(library).read_bytes()
