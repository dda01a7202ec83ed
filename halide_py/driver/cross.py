"""Compilers for other machines than this: clang makes objects for all of them, without their C libraries, which generated code does not include.

Objects made so are without the C runtime, whose files need the other system's headers. What a target's features ask for and cannot be said to clang is
refused.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir.target import ISA_FEATURES, Target, host_target
from ..ir.target_words import TargetArch, TargetFeature, TargetOS
from .toolchain import Toolchain, clang_command, toolchain, toolchain_of, x86_flags

_A, _O, _F = TargetArch, TargetOS, TargetFeature
_TRIPLES = {
    (_O.Linux, _A.X86, 64): "x86_64-linux-gnu", (_O.Linux, _A.X86, 32): "i686-linux-gnu", (_O.Linux, _A.ARM, 64): "aarch64-linux-gnu",
    (_O.Linux, _A.ARM, 32): "armv7-linux-gnueabihf", (_O.Linux, _A.RISCV, 64): "riscv64-linux-gnu", (_O.Linux, _A.POWERPC, 64): "powerpc64le-linux-gnu",
    (_O.Android, _A.ARM, 32): "armv7-none-linux-androideabi21", (_O.Android, _A.ARM, 64): "aarch64-linux-android21",
    (_O.Android, _A.X86, 64): "x86_64-linux-android21", (_O.Android, _A.X86, 32): "i686-linux-android21",
    (_O.OSX, _A.X86, 64): "x86_64-apple-macosx11", (_O.OSX, _A.ARM, 64): "arm64-apple-macosx11", (_O.IOS, _A.ARM, 64): "arm64-apple-ios12",
    (_O.IOS, _A.ARM, 32): "armv7-apple-ios9", (_O.Windows, _A.X86, 64): "x86_64-pc-windows-msvc", (_O.Windows, _A.X86, 32): "i686-pc-windows-msvc",
    (_O.Windows, _A.ARM, 64): "aarch64-pc-windows-msvc",
}
_ARM_64 = {_F.ARMv8a: "armv8-a", _F.ARMv81a: "armv8.1-a", _F.ARMv82a: "armv8.2-a", _F.ARMv83a: "armv8.3-a", _F.ARMv84a: "armv8.4-a",
           _F.ARMv85a: "armv8.5-a", _F.ARMv86a: "armv8.6-a", _F.ARMv87a: "armv8.7-a", _F.ARMv88a: "armv8.8-a"}


def is_foreign(target: Target) -> bool:
    """Whether a target is another kind of machine than this."""
    host = host_target()
    return (target.arch, target.bits, target.os) != (host.arch, host.bits, host.os)


def toolchain_for_files(target: Target) -> Toolchain:
    """The compiler for files of a target, this machine or another. Raises CompileError when there is none, or it cannot make what is asked for."""
    if not is_foreign(target):
        return toolchain(target)
    triple = _TRIPLES.get((target.os, target.arch, target.bits))
    if triple is None:
        raise CompileError(f"Cannot compile for {target}: there is no way to say it to clang. Use compile_to_c() and a compiler for that machine")
    wanted = ISA_FEATURES & set(target.features())
    command = clang_command(f"Cannot compile for {target} on {host_target()}: that needs clang; or use compile_to_c() and a compiler for that machine")
    if _F.ARMv7s in wanted:  # Apple's name of a processor
        triple, wanted = triple.replace("armv7-", "armv7s-"), wanted - {_F.ARMv7s}
    return toolchain_of(command, (f"--target={triple}", *_isa_flags(target, wanted)))


def _isa_flags(target: Target, wanted: set[TargetFeature] | frozenset[TargetFeature]) -> tuple[str, ...]:
    if target.arch is TargetArch.X86:
        return x86_flags(target, wanted)
    versions = sorted(f for f in wanted if f in _ARM_64 and target.bits == 64)
    plus = {f: word for f, word in ((_F.ARMDotProd, "+dotprod"), (_F.ARMFp16, "+fp16")) if f in wanted and target.bits == 64}
    flags = [f"-march={_ARM_64[versions[-1]] if versions else 'armv8.2-a' if plus else 'armv8-a'}{''.join(plus.values())}"] if versions or plus else []
    known = {*versions, *plus}
    if wanted - known:
        raise CompileError(f"Cannot compile for {target}: no way is known to ask clang for {', '.join(f.label for f in sorted(wanted - known))}")
    return tuple(flags)
