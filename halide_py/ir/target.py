"""Target: the machine a pipeline is compiled for, and options of the compilation, written `arch-bits-os[-tune]-feature-...`.

`Target()` is undefined (the default of every `target=` argument: the machine we run on), `Target("host")` is this machine
spelled out, `Target("host-no_asserts")` adds an option. Behaviour: Halide's Target.cpp.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Iterable
from typing import Any

from ..errors import CompileError, expect
from .target_words import DeviceAPI, TargetArch, TargetFeature, TargetOS, TargetProcessorTune
from .types import Type

F = TargetFeature
_GPU = {"CUDA": F.CUDA, "OpenCL": F.OpenCL, "Metal": F.Metal, "Vulkan": F.Vulkan}
_GPU_FEATURES = (F.CUDA, F.OpenCL, F.Metal, F.D3D12Compute, F.Vulkan, F.WebGPU)
_WIDE_AVX512 = (F.AVX512_Skylake, F.AVX512_Cannonlake)
_TRACE_ALL = (F.TraceLoads, F.TraceRealizations, F.TraceStores)
_ONLY_X86 = frozenset((F.SSE41, F.AVX, F.AVX2, F.AVXVNNI, F.FMA, F.FMA4, F.F16C, F.AVX512, F.AVX512_KNL, F.AVX512_Skylake,
                       F.AVX512_Cannonlake, F.AVX512_SapphireRapids, F.AVX512_Zen4, F.AVX512_Zen5, F.AVX10_1, F.X86APX))
_ONLY_ARM = frozenset((F.ARMv7s, F.NoNEON, F.ARMDotProd, F.ARMFp16, F.SVE, F.SVE2, F.ARMv8a, F.ARMv81a, F.ARMv82a, F.ARMv83a, F.ARMv84a,
                       F.ARMv85a, F.ARMv86a, F.ARMv87a, F.ARMv88a, F.ARMv89a))
_ONLY_POWERPC = frozenset((F.VSX, F.POWER_ARCH_2_07))
_ONLY_WASM = frozenset((F.WasmMvpOnly, F.WasmSimd128, F.WasmThreads, F.WasmBulkMemory))
ISA_FEATURES = _ONLY_X86 | _ONLY_ARM | _ONLY_POWERPC | frozenset((F.RVV,))  # what chooses instructions
_ONLY = {TargetArch.X86: _ONLY_X86, TargetArch.ARM: _ONLY_ARM, TargetArch.POWERPC: _ONLY_POWERPC, TargetArch.WebAssembly: _ONLY_WASM,
         TargetArch.RISCV: frozenset((F.RVV,))}
_WORDS: tuple[Any, ...] = (*TargetArch, *TargetOS, *TargetProcessorTune, *TargetFeature)
_LABELS = {word.label: word for word in _WORDS if word is not F.FeatureEnd} | {"hvx": F.HVX}


class Target:
    """What to compile for: `os`, `arch`, `bits`, `processor_tune` (all writable) and features.

    `Target()` is undefined; `Target("")` and `Target("host")` are this machine; `Target("x86-64-linux-avx2")` names one;
    `Target(os, arch, bits[, tune][, features])` says it with enums. Raises CompileError, with the words allowed, for a string that makes
    no sense, and TypeError for other arguments.
    """

    __slots__ = ("os", "arch", "bits", "processor_tune", "vector_bits", "_features")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args: Any) -> None:
        self.os, self.arch, self.bits = TargetOS.OSUnknown, TargetArch.ArchUnknown, 0
        self.processor_tune, self.vector_bits = TargetProcessorTune.TuneGeneric, 0
        self._features: frozenset[TargetFeature] = frozenset()
        if len(args) == 1 and isinstance(args[0], Target):
            self._copy(args[0])
        elif len(args) == 1 and isinstance(args[0], str):
            self._parse(args[0] or "host")
            self._check_features()
        elif args:
            self._from_enums(args)

    def _copy(self, other: Target) -> None:
        for slot in Target.__slots__:
            setattr(self, slot, getattr(other, slot))

    def _from_enums(self, args: tuple[Any, ...]) -> None:
        rest = list(args[3:])
        tune = rest.pop(0) if rest and isinstance(rest[0], TargetProcessorTune) else TargetProcessorTune.TuneGeneric
        features = list(rest.pop(0)) if rest else []
        if (len(args) < 3 or not isinstance(args[0], TargetOS) or not isinstance(args[1], TargetArch) or rest
                or not all(isinstance(f, TargetFeature) for f in features)):
            raise TypeError("Target: incompatible constructor arguments; expected a string, or (TargetOS, TargetArch, bits[, "
                            f"TargetProcessorTune][, [TargetFeature, ...]]), but got {args!r}")
        self.os, self.arch, self.bits, self.processor_tune = args[0], args[1], int(args[2]), tune
        self.set_features(features)
        self._check_features()

    def _parse(self, text: str) -> None:
        """Take over the words of `text`, on top of the host's target if the first is "host"."""
        seen = set()
        for i, word in enumerate(text.split("-")):
            known = _LABELS.get(word)
            kind = "bits" if word in ("0", "32", "64") else type(known).__name__
            if kind in seen and known is not None and not isinstance(known, TargetFeature):
                raise _bad(text, f"{word!r} comes after another word of its kind")
            seen.add(kind)
            if word == "host" and i == 0:
                self._copy(host_target())
            elif kind == "bits":
                self.bits = int(word)
            elif isinstance(known, TargetArch):
                self.arch = known
            elif isinstance(known, TargetOS):
                self.os = known
            elif isinstance(known, TargetProcessorTune):
                self.processor_tune = known
            elif isinstance(known, TargetFeature):
                self.set_feature(known)
            elif word == "trace_all":
                self.set_features(_TRACE_ALL)
            elif word.startswith("vector_bits_") and word[12:].isdigit():
                self.vector_bits = int(word[12:])
            else:
                raise _bad(text, "'host' must come first" if word == "host" else f"{word!r} is unknown")
        if "TargetArch" in seen and "bits" not in seen:
            raise _bad(text, "the number of bits is missing")
        if self.has_unknowns():
            raise _bad(text, "arch, bits and os must all be said, unless it starts with 'host'")

    def _check_features(self) -> None:
        for arch, only in _ONLY.items():
            for f in sorted(only & self._features):
                if self.arch is not arch and self.arch is not TargetArch.ArchUnknown:
                    raise CompileError(f"Target feature {f.label} is incompatible with the Target's architecture. ({self})")

    def has_unknowns(self) -> bool:
        """Whether the operating system, architecture or bits are not said."""
        return self.os is TargetOS.OSUnknown or self.arch is TargetArch.ArchUnknown or self.bits == 0

    @staticmethod
    def host() -> Target:
        """The Target of this machine, with the instruction sets its processor has."""
        return Target("")

    @staticmethod
    def validate_target_string(name: str) -> bool:
        """Whether `Target(name)` would be accepted."""
        try:
            Target(name)
        except CompileError:
            return False
        return True

    def to_string(self) -> str:
        """The text that gives this target back."""
        words = [self.arch.label, str(self.bits), self.os.label]
        if self.processor_tune is not TargetProcessorTune.TuneGeneric:
            words.append(self.processor_tune.label)
        labels = sorted(f.label for f in self._features)
        text = "-".join(words + labels).replace("trace_loads-trace_realizations-trace_stores", "trace_all")
        return text + (f"-vector_bits_{self.vector_bits}" if self.vector_bits else "")

    # -- features

    def features(self) -> list[TargetFeature]:
        """The features set, in order of their values."""
        return sorted(self._features)

    def has_feature(self, f: TargetFeature) -> bool:
        """Whether a feature is set."""
        return f in self._features or f is F.FeatureEnd

    def features_any_of(self, features: Iterable[TargetFeature]) -> bool:
        """Whether one of them is set."""
        return any(self.has_feature(f) for f in features)

    def features_all_of(self, features: Iterable[TargetFeature]) -> bool:
        """Whether all of them are set."""
        return all(self.has_feature(f) for f in features)

    def set_feature(self, f: TargetFeature, value: bool = True) -> None:
        """Set or clear a feature of this target."""
        one = frozenset((f,)) - {F.FeatureEnd}
        self._features = self._features | one if value else self._features - one

    def set_features(self, features: Iterable[TargetFeature], value: bool = True) -> None:
        """Set or clear several."""
        for f in features:
            self.set_feature(f, value)

    def with_feature(self, feature: TargetFeature) -> Target:
        """A copy with the feature set."""
        copy = Target(self)
        copy.set_feature(feature)
        return copy

    def without_feature(self, feature: TargetFeature) -> Target:
        """A copy with the feature cleared."""
        copy = Target(self)
        copy.set_feature(feature, False)
        return copy

    # -- questions

    def supported(self) -> bool:
        """Whether pipelines can be compiled for it here: a C compiler's architecture, no GPU."""
        return self.arch in (TargetArch.X86, TargetArch.ARM, TargetArch.POWERPC, TargetArch.RISCV) and not self.has_gpu_feature()

    def has_gpu_feature(self) -> bool:
        """Whether a GPU API is set."""
        return self.features_any_of(_GPU_FEATURES)

    def has_large_buffers(self) -> bool:
        """Whether buffers beyond 2^31 - 1 bytes are promised to work on a 64-bit machine. Here they always do."""
        return self.bits == 64 and self.has_feature(F.LargeBuffers)

    def maximum_buffer_size(self) -> int:
        """Largest buffer in bytes that the target promises to handle."""
        return 2**63 - 1 if self.has_large_buffers() else 2**31 - 1

    def supports_device_api(self, device: DeviceAPI) -> bool:
        """Whether loops may be scheduled on a device."""
        if expect(device, DeviceAPI, "supports_device_api()").name in ("None", "Host"):
            return True
        if device.name == "Default_GPU":
            return self.has_gpu_feature()
        feature = _GPU.get(device.name, F.HVX)
        return self.has_feature(feature)

    def supports_type(self, type: Type, device: DeviceAPI = DeviceAPI.Host) -> bool:
        """Whether values of a type can be computed with: 64-bit floats and integers lack on some GPUs."""
        expect(device, DeviceAPI, "supports_type()")
        if expect(type, Type, "supports_type()").bits() == 64:
            if device.name in ("Host", "Metal") and self.has_feature(F.Metal):
                return not type.is_float()
            if type.is_float() and (self.has_feature(F.OpenCL) and not self.has_feature(F.CLDoubles)):
                return False
        return device.name != "Metal" or self.has_feature(F.Metal)

    def natural_vector_bytes(self, is_integer: bool = True) -> int:
        """Width of a vector register in bytes."""
        if self.vector_bits and self.features_any_of((F.SVE, F.SVE2, F.RVV, F.AVX10_1)):
            return self.vector_bits // 8
        if self.arch is TargetArch.X86:
            if self.features_any_of(_WIDE_AVX512):
                return 64
            return 32 if self.has_feature(F.AVX2) or self.has_feature(F.AVX) and not is_integer else 16
        if self.arch is TargetArch.Hexagon:
            return 128
        if self.arch is TargetArch.WebAssembly:
            return 16 if self.has_feature(F.WasmSimd128) else 8
        return 16

    def natural_vector_size(self, type: Type) -> int:
        """Number of elements of a type in a vector register: what to vectorize by."""
        expect(type, Type, "natural_vector_size()")
        if self.arch is TargetArch.ArchUnknown or self.os is TargetOS.OSUnknown or self.bits == 0:
            raise CompileError(f"natural_vector_size() of target {self}, which lacks arch, bits or os; start from get_host_target()")
        return max(self.natural_vector_bytes(not type.is_float()) // max(type.bytes(), 1), 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and all(getattr(self, s) == getattr(other, s) for s in Target.__slots__)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<halide.Target {self}>"


def _bad(text: str, why: str) -> CompileError:
    def words(kind: Iterable[Any]) -> str:
        return ", ".join(sorted(w.label for w in kind if w is not F.FeatureEnd))

    return CompileError(
        f"Did not understand Halide target {text}: {why}.\n"
        "Expected format is arch-bits-os-processor-feature1-feature2-..., where\n"
        f"arch is one of {words(TargetArch)};\nbits is 32 or 64;\nos is one of {words(TargetOS)};\n"
        f"processor is one of {words(TargetProcessorTune)}, or left out;\nfeatures are {words(TargetFeature)}.\n"
        "The target can also begin with \"host\", which stands for the host's arch, bits, os and features; what follows is added.\n"
        f"This host is {host_target()}")


# -- this machine

_CPU_FLAGS = {"sse4_1": F.SSE41, "avx": F.AVX, "avx2": F.AVX2, "fma": F.FMA, "fma4": F.FMA4, "f16c": F.F16C, "avx512f": F.AVX512,
              "avx_vnni": F.AVXVNNI, "asimddp": F.ARMDotProd, "asimdhp": F.ARMFp16, "sve2": F.SVE2, "v": F.RVV}
_AVX512_SKYLAKE = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
_AVX512_CANNONLAKE = _AVX512_SKYLAKE | {"avx512ifma", "avx512vbmi"}
_AVX512_ZEN4 = _AVX512_CANNONLAKE | {"avx512_bf16", "avx512_vnni", "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq"}
_LEVELS = (({"avx512f", "avx512er"}, F.AVX512_KNL), (_AVX512_SKYLAKE, F.AVX512_Skylake), (_AVX512_CANNONLAKE, F.AVX512_Cannonlake),
           (_AVX512_ZEN4, F.AVX512_Zen4), (_AVX512_ZEN4 | {"avx_vnni", "amx_int8"}, F.AVX512_SapphireRapids),
           (_AVX512_ZEN4 | {"avx_vnni", "avx512_vp2intersect"}, F.AVX512_Zen5))
_MACHINES = {"x86_64": (TargetArch.X86, 64), "amd64": (TargetArch.X86, 64), "i686": (TargetArch.X86, 32), "i386": (TargetArch.X86, 32),
             "aarch64": (TargetArch.ARM, 64), "arm64": (TargetArch.ARM, 64), "armv7l": (TargetArch.ARM, 32),
             "ppc64le": (TargetArch.POWERPC, 64), "riscv64": (TargetArch.RISCV, 64)}
_SYSTEMS = {"linux": TargetOS.Linux, "darwin": TargetOS.OSX, "win32": TargetOS.Windows, "cygwin": TargetOS.Windows}
_DARWIN_X86 = "sse4_1 avx avx2 fma f16c"


def cpu_flags() -> frozenset[str]:
    """The processor's instruction set extensions, by their names in /proc/cpuinfo; where there is none, those the system always has."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:  # not pathlib: its import takes 3 ms
            text = file.read()
    except OSError:
        return frozenset(_DARWIN_X86.split() if sys.platform == "darwin" and platform.machine() == "x86_64" else ())
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
        if key.strip() == "isa":  # rv64imafdcv_...
            return frozenset(value.strip().partition("_")[0][4:])
    return frozenset()


def _tune(flags: frozenset[str]) -> TargetProcessorTune:
    """AMD's generations differ in costs, and can be told apart by what they have."""
    if "sse4a" not in flags or "fma" not in flags or "fma4" in flags or "sha_ni" not in flags:
        return TargetProcessorTune.TuneGeneric
    if flags >= _AVX512_ZEN4:
        return TargetProcessorTune.TuneZnVer5 if "avx_vnni" in flags else TargetProcessorTune.TuneZnVer4
    if "vaes" in flags:
        return TargetProcessorTune.TuneZnVer3
    return TargetProcessorTune.TuneZnVer2 if "clwb" in flags else TargetProcessorTune.TuneZnVer1


@functools.cache
def host_target() -> Target:
    """This machine, detected once. Not to be changed: `Target.host()` gives a copy."""
    flags, t = cpu_flags(), Target()
    t.os = _SYSTEMS.get(sys.platform, TargetOS.OSUnknown)
    t.arch, t.bits = _MACHINES.get(platform.machine().lower(), (TargetArch.ArchUnknown, 0))
    if t.arch is TargetArch.X86:
        t.bits = min(t.bits, 64 if sys.maxsize > 2**32 else 32)
        t.processor_tune = _tune(flags)
    t.set_features(feature for flag, feature in _CPU_FLAGS.items() if flag in flags and feature in _ONLY.get(t.arch, ()))
    if t.arch is TargetArch.X86:
        t.set_features(feature for needs, feature in _LEVELS if needs <= flags)
    return t


def get_host_target() -> Target:
    """The machine we run on, with the vector extensions it has."""
    return Target.host()


def get_target_from_environment() -> Target:
    """The target that `HL_TARGET` names; the host's when it is not set. For ahead-of-time compilation."""
    return Target(os.environ.get("HL_TARGET", ""))


def get_jit_target_from_environment() -> Target:
    """The target that pipelines run here are compiled for: `HL_JIT_TARGET`, or the host's. Raises CompileError for another machine."""
    text, host = os.environ.get("HL_JIT_TARGET", ""), host_target()
    t = Target(text)
    t.set_feature(F.JIT)
    if (t.os, t.arch, t.bits) != (host.os, host.arch, host.bits):
        raise CompileError(f"HL_JIT_TARGET must match the host OS, architecture, and bit width, but it is {text}; the host is {host}")
    if t.has_feature(F.NoBoundsQuery):
        raise CompileError(f"Pipelines run here need bounds queries, but HL_JIT_TARGET has no_bounds_query: {text}")
    return t


def host_supports_target_device(target: Target) -> bool:
    """Whether the devices a target names can be used here: none can, so whether it names none."""
    return not expect(target, Target, "host_supports_target_device()").has_gpu_feature()


def target_feature_for_device_api(device: DeviceAPI) -> TargetFeature:
    """The feature that a device API needs; FeatureEnd for the host."""
    return F.HVX if expect(device, DeviceAPI, "target_feature_for_device_api()").name == "Hexagon" else _GPU.get(device.name, F.FeatureEnd)
