"""Several targets in one library: the pipeline compiled for each, and a function that takes the first whose instructions the processor has.

The last target is the one for all processors. All share architecture, bits and operating system.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..codegen_c.function_info import function_info
from ..codegen_c.header import header
from ..codegen_c.metadata import metadata
from ..codegen_c.module import argument_name, declaration, exports, parameter
from ..codegen_c.python_extension import python_extension
from ..codegen_c.registration import registration
from ..errors import CompileError
from ..ir.module import LoweredFunction, LoweredModule
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from .aot import Unit, checked_name
from .binaries import archive
from .c_compiler import compile_object
from .file_types import OutputFileType
from .files import check_paths, read_bytes, runtime_of, self_contained, write_all
from .runtime_names import macros, renamed
from .toolchain import Toolchain


@dataclass(frozen=True)
class MultiTarget:
    """A pipeline for several targets: a unit for each, and the function that callers see."""

    function: LoweredFunction
    units: tuple[Unit, ...]

    def header(self) -> bytes:
        """The header for callers."""
        return header(self._module, renamed("hl_last_error", self._prefix)).encode()

    @property
    def _last(self) -> Unit:
        """The one for all processors; what it says of the runtime holds for all."""
        return self.units[-1]

    @property
    def _prefix(self) -> str:
        return self._last.prefix(self._last.contains_runtime)

    @property
    def _module(self) -> LoweredModule:
        return LoweredModule(self.function.name, [self.function])

    def write(self, outputs: Mapping[OutputFileType, str]) -> None:
        """Write the library, and files that describe its function. Raises CompileError for other kinds, before anything is written."""
        makers: dict[OutputFileType, Callable[[], bytes]] = {
            OutputFileType.c_header: self.header, OutputFileType.static_library: self.static_library,
            OutputFileType.registration: lambda: registration(self._module).encode(),
            OutputFileType.function_info_header: lambda: function_info(self._module).encode(),
            OutputFileType.python_extension: lambda: self_contained(macros(self._prefix) + python_extension(self._module)).encode(),
        }
        for kind in outputs:
            if kind not in makers:
                raise CompileError(f"With several targets there are no {kind.name} files; there are {', '.join(k.name for k in makers)}")
        check_paths(list(outputs.values()))
        write_all(list(outputs.values()), [makers[kind]() for kind in outputs])

    def wrapper(self) -> str:
        """The C text of the function that chooses."""
        f, one_each = self.function, [u.entries[0].public for u in self.units]
        passed = ", ".join(argument_name(a) for a in f.args)
        parameters = ", ".join(parameter(a) for a in f.args) or "void"
        chosen = [f"    if ({_runs(u.tools)}) return {g.qualified}({passed});" for u, g in zip(self.units[:-1], one_each)]
        return "\n".join(
            [
                macros(self._prefix),
                '#include "hl_runtime.h"\n#include "hl_vector.h"',
                *map(declaration, one_each),
                f"static int {f.name}_body({parameters}) {{",
                *chosen,
                f"    return {one_each[-1].qualified}({passed});",
                "}",
                "",
                exports(f),
                metadata(f, self.units[-1].target.to_string()),
            ]
        )

    def objects(self, folder: str) -> list[str]:
        """Compiled into a folder: an object for each target, then the wrapper's."""
        made = []
        inside = self._last.contains_runtime
        for name, text, tools in [
            *((u.name, u.c_text(inside), u.tools) for u in self.units),
            (f"{self.function.name}_wrapper", self.wrapper(), self._last.tools),
        ]:
            made.append(os.path.join(folder, f"{name}.o"))
            compile_object(text, made[-1], tools, folder)
        return made

    def object_files(self) -> list[bytes]:
        """An object for each target, then that of the function that chooses."""
        with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
            return [read_bytes(made) for made in self.objects(folder)]

    def static_library(self) -> bytes:
        """All of it, and the runtime unless the last target says no_runtime."""
        with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
            objects, library = self.objects(folder), os.path.join(folder, "library.a")
            if self._last.has_runtime("static library"):
                shutil.copyfile(runtime_of(self._last, folder), library)
            archive(library, objects, self._last.tools)
            return read_bytes(library)


def _runs(tools: Toolchain) -> str:
    """C text that is true on a processor that runs what a compiler makes."""
    return " && ".join(f'__builtin_cpu_supports("{n}")' for n in tools.checked_features()) or "1"


def compile_for(make: Callable[[str, Target], Unit], fn_name: str, targets: Sequence[Target], suffixes: Sequence[str] = ()) -> MultiTarget:
    """The pipeline for each target; `make` lowers it under a name. Raises CompileError for targets that do not go together."""
    if not targets or suffixes and len(suffixes) != len(targets):
        raise CompileError(f"compile_to_multitarget: {len(targets)} targets and {len(suffixes)} suffixes; there must be a target at least, "
                           f"and as many suffixes")
    last = targets[-1]
    checked_name(fn_name, last)
    for i, t in enumerate(targets):
        if t.has_feature(TargetFeature.JIT):
            raise CompileError(f"compile_to_multitarget: JIT is not allowed in the target {t}")
        if (t.arch, t.bits, t.os) != (last.arch, last.bits, last.os):
            raise CompileError(f"compile_to_multitarget: all targets must have the same architecture, bits and operating system, unlike "
                               f"{t} and {last}")
        if t in targets[:i]:
            raise CompileError(f"compile_to_multitarget: the target {t} is given twice")
    words = [re.sub(r"\W", "_", s).strip("_") for s in suffixes or [t.to_string() for t in targets]]
    if len(set(words)) != len(words):
        raise CompileError(f"compile_to_multitarget: the suffixes {', '.join(suffixes)} do not tell the targets apart")
    units = tuple(make(f"{fn_name}_{word}", t) for word, t in zip(words, targets))
    shared = units[-1].entries[0].public._replace(name=fn_name.replace("::", "_"), display_name=fn_name)
    return MultiTarget(shared, units)
