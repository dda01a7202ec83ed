"""The words a Target is made of: operating systems, architectures, processors to tune for, features, device APIs.

Values are those of Halide's enums. A member's `label` is how it is written in a target string: `x86-64-linux-tune_znver3-avx2`.
"""

from __future__ import annotations

import enum


class _Word(enum.IntEnum):
    """An integer with the word that stands for it in a target string."""

    label: str

    def __new__(cls, value: int, label: str) -> _Word:
        self = int.__new__(cls, value)
        self._value_, self.label = value, label
        return self


class TargetOS(_Word):
    """The operating systems a Target can name."""

    OSUnknown = 0, "os_unknown"
    Linux = 1, "linux"
    Windows = 2, "windows"
    OSX = 3, "osx"
    Android = 4, "android"
    IOS = 5, "ios"
    QuRT = 6, "qurt"
    NoOS = 7, "noos"
    wasmrt = 9, "wasmrt"


class TargetArch(_Word):
    """Instruction set architectures."""

    ArchUnknown = 0, "arch_unknown"
    X86 = 1, "x86"
    ARM = 2, "arm"
    Hexagon = 3, "hexagon"
    POWERPC = 4, "powerpc"
    WebAssembly = 5, "wasm"
    RISCV = 6, "riscv"


class TargetProcessorTune(_Word):
    """Processors whose costs the compiler may be told to assume."""

    TuneGeneric = 0, "tune_generic"
    TuneK8 = 1, "tune_k8"
    TuneK8_SSE3 = 2, "tune_k8_sse3"
    TuneAMDFam10 = 3, "tune_amdfam10"
    TuneBtVer1 = 4, "tune_btver1"
    TuneBdVer1 = 5, "tune_bdver1"
    TuneBdVer2 = 6, "tune_bdver2"
    TuneBdVer3 = 7, "tune_bdver3"
    TuneBdVer4 = 8, "tune_bdver4"
    TuneBtVer2 = 9, "tune_btver2"
    TuneZnVer1 = 10, "tune_znver1"
    TuneZnVer2 = 11, "tune_znver2"
    TuneZnVer3 = 12, "tune_znver3"
    TuneZnVer4 = 13, "tune_znver4"
    TuneZnVer5 = 14, "tune_znver5"


class TargetFeature(_Word):
    """What the machine has, and options of the compilation."""

    JIT = 0, "jit"
    Debug = 1, "debug"
    EnableBacktraces = 2, "enable_backtraces"
    NoAsserts = 3, "no_asserts"
    NoBoundsQuery = 4, "no_bounds_query"
    SSE41 = 5, "sse41"
    AVX = 6, "avx"
    AVX2 = 7, "avx2"
    AVXVNNI = 8, "avxvnni"
    FMA = 9, "fma"
    FMA4 = 10, "fma4"
    F16C = 11, "f16c"
    ARMv7s = 12, "armv7s"
    NoNEON = 13, "no_neon"
    VSX = 14, "vsx"
    POWER_ARCH_2_07 = 15, "power_arch_2_07"
    CUDA = 16, "cuda"
    CUDACapability30 = 17, "cuda_capability_30"
    CUDACapability32 = 18, "cuda_capability_32"
    CUDACapability35 = 19, "cuda_capability_35"
    CUDACapability50 = 20, "cuda_capability_50"
    CUDACapability61 = 21, "cuda_capability_61"
    CUDACapability70 = 22, "cuda_capability_70"
    CUDACapability75 = 23, "cuda_capability_75"
    CUDACapability80 = 24, "cuda_capability_80"
    CUDACapability86 = 25, "cuda_capability_86"
    OpenCL = 26, "opencl"
    CLDoubles = 27, "cl_doubles"
    CLAtomics64 = 28, "cl_atomics64"
    UserContext = 29, "user_context"
    Profile = 30, "profile"
    NoRuntime = 31, "no_runtime"
    Metal = 32, "metal"
    CPlusPlusMangling = 33, "c_plus_plus_name_mangling"
    LargeBuffers = 34, "large_buffers"
    HVX_128 = 35, "hvx_128"
    HVX = HVX_128
    HVX_v62 = 36, "hvx_v62"
    FuzzFloatStores = 37, "fuzz_float_stores"
    SoftFloatABI = 38, "soft_float_abi"
    MSAN = 39, "msan"
    AVX512 = 40, "avx512"
    AVX512_KNL = 41, "avx512_knl"
    AVX512_Skylake = 42, "avx512_skylake"
    AVX512_Cannonlake = 43, "avx512_cannonlake"
    AVX512_Zen4 = 44, "avx512_zen4"
    AVX512_Zen5 = 45, "avx512_zen5"
    AVX512_SapphireRapids = 46, "avx512_sapphirerapids"
    TraceLoads = 47, "trace_loads"
    TraceStores = 48, "trace_stores"
    TraceRealizations = 49, "trace_realizations"
    TracePipeline = 50, "trace_pipeline"
    HVX_v65 = 51, "hvx_v65"
    HVX_v66 = 52, "hvx_v66"
    HVX_v68 = 53, "hvx_v68"
    CLHalf = 54, "cl_half"
    StrictFloat = 55, "strict_float"
    TSAN = 56, "tsan"
    ASAN = 57, "asan"
    D3D12Compute = 58, "d3d12compute"
    CheckUnsafePromises = 59, "check_unsafe_promises"
    HexagonDma = 60, "hexagon_dma"
    EmbedBitcode = 61, "embed_bitcode"
    EnableLLVMLoopOpt = 62, "enable_llvm_loop_opt"
    WasmMvpOnly = 63, "wasm_mvponly"
    WasmSimd128 = 64, "wasm_simd128"
    WasmThreads = 65, "wasm_threads"
    WasmBulkMemory = 66, "wasm_bulk_memory"
    WebGPU = 67, "webgpu"
    SVE = 68, "sve"
    SVE2 = 69, "sve2"
    EGL = 70, "egl"
    ARMDotProd = 71, "arm_dot_prod"
    ARMFp16 = 72, "arm_fp16"
    LLVMLargeCodeModel = 73, "llvm_large_code_model"
    RVV = 74, "rvv"
    ARMv8a = 75, "armv8a"
    ARMv81a = 76, "armv81a"
    ARMv82a = 77, "armv82a"
    ARMv83a = 78, "armv83a"
    ARMv84a = 79, "armv84a"
    ARMv85a = 80, "armv85a"
    ARMv86a = 81, "armv86a"
    ARMv87a = 82, "armv87a"
    ARMv88a = 83, "armv88a"
    ARMv89a = 84, "armv89a"
    SanitizerCoverage = 85, "sanitizer_coverage"
    ProfileByTimer = 86, "profile_by_timer"
    SPIRV = 87, "spirv"
    Vulkan = 88, "vulkan"
    VulkanInt8 = 89, "vk_int8"
    VulkanInt16 = 90, "vk_int16"
    VulkanInt64 = 91, "vk_int64"
    VulkanFloat16 = 92, "vk_float16"
    VulkanFloat64 = 93, "vk_float64"
    VulkanV10 = 94, "vk_v10"
    VulkanV12 = 95, "vk_v12"
    VulkanV13 = 96, "vk_v13"
    Semihosting = 97, "semihosting"
    AVX10_1 = 98, "avx10_1"
    X86APX = 99, "x86apx"
    Simulator = 100, "simulator"
    FeatureEnd = 101, "feature_end"


# Where a loop or a buffer lives. Only the host exists here; the others are accepted as names. ("None" cannot be written in a class body.)
DeviceAPI = enum.IntEnum("DeviceAPI", {
    "None": 0, "Host": 1, "Default_GPU": 2, "CUDA": 3, "OpenCL": 4, "Metal": 5, "Hexagon": 6, "Vulkan": 9,
})
DeviceAPI.__doc__ = "Where loops run. Here it is the host only; the others are names that directives take and then refuse."
