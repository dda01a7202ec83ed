"""What a C compiler can do: its kind, the instruction sets it makes code for, gcc's inner programs. Asked once and kept, see
`toolchain`."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil

from ..errors import CompileError, InternalError
from ..ir.target import cpu_flags
from .c_compiler import Compilation, run
from .scratch import scratch_folder
from .toolchain import FLAGS, GCC_FLAGS, Toolchain

_MACROS = ("SSE2", "SSSE3", "SSE4_1", "SSE4_2", "AVX", "AVX2", "FMA", "F16C", "BMI2", "POPCNT", "LZCNT", "AVX512F", "AVX512BW", "AVX512VL",
           "AVX512DQ", "AVX512CD", "AVX512VBMI", "AVX512IFMA", "AVX512VNNI", "AVX512BITALG", "AVX512VPOPCNTDQ", "AVX512FP16", "AVX512BF16",
           "GFNI", "ARM_NEON", "ARM_FEATURE_DOTPROD")


def probe(command: list[str], wanted: tuple[str, ...]) -> Toolchain:
    """Try a compiler with the flags `wanted` for the instruction set. Raises CompileError when it does not work."""
    variants = [wanted, tuple(flag.replace("x86-64", "x86_64") for flag in wanted)]  # zig has names of its own
    for arch in [*variants, ()] if wanted == ("-march=native",) else variants:
        macros = run([*command, "-x", "c++", *arch, "-dM", "-E", "-"])
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
    shown = run([*t.command, "-###", "-x", "c++", *FLAGS, *GCC_FLAGS, *t.arch, "-shared", "-o", "out.so", "source.cpp"]).stderr
    commands = [shlex.split(line) for line in shown.splitlines() if line.startswith(" ")]
    compiler = next((c for c in commands if os.path.basename(c[0]).startswith("cc1plus")), [])
    assembler = next((c for c in commands if os.path.basename(c[0]) in ("as", "gas")), [])
    linker = next((c for c in commands if os.path.basename(c[0]) in ("collect2", "ld")), [])
    ld = run([*t.command, "-print-prog-name=ld"]).stdout.strip()
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
        with scratch_folder() as folder, Compilation(direct, folder) as compilation:
            compilation.finish(['extern "C" int hl_probe(void **a) { return a ? 1 : 0; }\n'], os.path.join(folder, "probe.so"))
    except InternalError:
        return t
    return direct
