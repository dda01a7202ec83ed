"""Several targets in one library: the pipeline compiled for each, and a function that takes the first whose instructions the processor has.

The last target is the one for all processors. All share architecture, bits, operating system, and the features that callers see.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..codegen_c.function_info import function_info
from ..codegen_c.header import header
from ..codegen_c.metadata import metadata
from ..codegen_c.module import argument_name, declaration, exports, parameter, processor_has
from ..codegen_c.python_extension import python_extension
from ..codegen_c.pytorch import pytorch_header
from ..codegen_c.registration import registration
from ..errors import CompileError
from ..ir.module import LoweredFunction, LoweredModule
from ..ir.target import ISA_FEATURES, Target
from ..ir.target_words import TargetFeature
from .aot import Unit, checked_name, listing
from .binaries import archive
from .build import link_inputs
from .c_compiler import compile_object
from .file_types import OutputFileType, extension
from .files import check_paths, linked, made, read_bytes, runtime_object, runtime_of, self_contained, write, write_all
from .runtime_names import macros, renamed
from .scratch import scratch_folder

_T, _F = OutputFileType, TargetFeature
_OF_EACH = (_T.assembly, _T.bitcode, _T.c_source, _T.compiler_log, _T.conceptual_stmt, _T.conceptual_stmt_html, _T.llvm_assembly, _T.object,
            _T.schedule, _T.stmt, _T.stmt_html)
_OF_ALL = (_T.c_header, _T.function_info_header, _T.python_extension, _T.pytorch_wrapper, _T.registration, _T.shared_library,
           _T.static_library)
_SAME = (_F.CPlusPlusMangling, _F.Debug, _F.NoRuntime, _F.UserContext)  # what callers and the runtime see


@dataclass(frozen=True)
class MultiTarget:
    """A pipeline for several targets: a unit for each, with what tells its files from the others', and the function that callers see."""

    function: LoweredFunction
    units: tuple[Unit, ...]
    suffixes: tuple[str, ...]

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

    def write(self, outputs: Mapping[OutputFileType, str]) -> list[str]:
        """Write libraries or objects, and files that describe the function; those that show code are one a target, `-SUFFIX` in the name.

        The function itself is in `NAME_wrapper.o`, the runtime in `NAME_runtime.o`. With one target all is as without this. Raises
        CompileError for other kinds, before anything is written. Gives the paths.
        """
        if len(self.units) == 1:
            write(self._last, outputs)
            return list(outputs.values())
        paths = [path for kind, one in outputs.items() for path in self._paths(kind, one)]
        check_paths(paths)
        write_all(paths, [c.encode() if isinstance(c, str) else c for kind in outputs for c in self._contents(kind)])
        return paths

    def _paths(self, kind: OutputFileType, path: str) -> list[str]:
        if kind in _OF_ALL:
            return [path]
        if kind not in _OF_EACH:
            known = ", ".join(k.name for k in sorted((*_OF_ALL, *_OF_EACH)))
            raise CompileError(f"With several targets there are no {kind.name} files; there are {known}")
        ends = [f"-{suffix}" for suffix in self.suffixes]
        if kind in (_T.object, _T.c_source):
            ends.append("_wrapper")
        if kind is _T.object and self._last.has_runtime("object file", joined=True):
            ends.append("_runtime")
        usual = extension(kind, self._last.target)
        base, after = (path.removesuffix(usual), usual) if path.endswith(usual) else os.path.splitext(path)
        return [base + end + after for end in ends]

    def _contents(self, kind: OutputFileType) -> Sequence[bytes | str]:
        """What goes to each of the paths."""
        if kind is _T.object:
            last = self._last
            return [*self._object_files(), *([runtime_object(last.target, last.prefixes)] if last.joins_runtime else [])]
        if kind in _OF_EACH:
            own = [content for unit in self.units for content in made(unit, [kind])]
            return [*own, self_contained(self._wrapper())] if kind is _T.c_source else own
        last_error = renamed("hl_last_error", self._prefix)
        makers: dict[OutputFileType, Callable[[], bytes | str]] = {
            _T.c_header: lambda: header(self._module, last_error),
            _T.static_library: self._static_library, _T.shared_library: self._shared_library,
            _T.registration: lambda: registration(self._module), _T.function_info_header: lambda: function_info(self._module),
            _T.python_extension: lambda: self_contained(macros(self._prefix) + python_extension(self._module)),
            _T.pytorch_wrapper: lambda: pytorch_header(self._module, header(self._module, last_error), last_error),
        }
        return [makers[kind]()]

    def _wrapper(self) -> str:
        """The C text of the function that chooses."""
        f, one_each = self.function, [u.entries[0].public for u in self.units]
        passed = ", ".join(argument_name(a) for a in f.args)
        parameters = ", ".join(parameter(a) for a in f.args) or "void"
        chosen = [f"    static const uint64_t features_{i}[2] = {{{_words(u.target)}}};\n"
                  f"    if (halide_can_use_target_features(2, features_{i}) && {processor_has(u.tools.checked_features())}) "
                  f"return {g.qualified}({passed});" for i, (u, g) in enumerate(zip(self.units[:-1], one_each))]
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

    def _objects(self, folder: str, after: str = "") -> list[str]:
        """Compiled into a folder: an object for each target, then the wrapper's, with more C text after it."""
        objects = []
        inside = self._last.contains_runtime
        for name, text, tools in [
            *((u.name, u.c_text(inside), u.tools) for u in self.units),
            (f"{self.function.name}_wrapper", self._wrapper() + after, self._last.tools),
        ]:
            objects.append(os.path.join(folder, f"{name}.o"))
            compile_object(text, objects[-1], tools, folder)
        return objects

    def _object_files(self) -> list[bytes]:
        """An object for each target, then that of the function that chooses."""
        with scratch_folder() as folder:
            return [read_bytes(path) for path in self._objects(folder)]

    def _static_library(self) -> bytes:
        """All of it, and the runtime unless the last target says no_runtime."""
        with scratch_folder() as folder:
            objects, library = self._objects(folder), os.path.join(folder, "library.a")
            if self._last.has_runtime("static library"):
                shutil.copyfile(runtime_of(self._last, folder), library)
            archive(library, objects, self._last.tools)
            return read_bytes(library)

    def _shared_library(self) -> bytes:
        """All of it in a library for `load_library`."""
        with scratch_folder() as folder:
            inputs = {one: None for unit in self.units for one in link_inputs(unit.module)}
            return linked(self._last, [*self._objects(folder, listing(self._module)), *inputs], folder)


def _words(target: Target) -> str:
    """A target's features as bits of two words of C, those that processors have or have not."""
    bits = sum(1 << f for f in ISA_FEATURES & set(target.features()))
    return f"{bits & (1 << 64) - 1:#x}ull, {bits >> 64:#x}ull"


def compile_for(make: Callable[[str, Target], Unit], fn_name: str, targets: Sequence[Target], suffixes: Sequence[str] = ()) -> MultiTarget:
    """The pipeline for each target; `make` lowers it under a name. Raises CompileError for targets that do not go together."""
    if not targets or suffixes and len(suffixes) != len(targets):
        raise CompileError(f"compile_to_multitarget: {len(targets)} targets and {len(suffixes)} suffixes; there must be a target at least, "
                           "and as many suffixes")
    last = targets[-1]
    checked_name(fn_name, last)
    for i, t in enumerate(targets):
        if t.has_feature(TargetFeature.JIT):
            raise CompileError(f"compile_to_multitarget: JIT is not allowed in the target {t}")
        if (t.arch, t.bits, t.os) != (last.arch, last.bits, last.os):
            raise CompileError("compile_to_multitarget: all targets must have the same architecture, bits and operating system, unlike "
                               f"{t} and {last}")
        if t in targets[:i]:
            raise CompileError(f"compile_to_multitarget: the target {t} is given twice")
        for feature in _SAME:
            if t.has_feature(feature) != last.has_feature(feature):
                raise CompileError(f"compile_to_multitarget: all targets must have the feature {feature.label}, or none of them, unlike "
                                   f"{t} and {last}")
    if len(targets) == 1:
        unit = make(fn_name, last)
        return MultiTarget(unit.entries[0].public, (unit,), ("",))
    ends = tuple(suffixes or [t.to_string() for t in targets])
    words = [re.sub(r"\W", "_", s).strip("_") for s in ends]
    if len(set(words)) != len(words):
        raise CompileError(f"compile_to_multitarget: the suffixes {', '.join(ends)} do not tell the targets apart")
    units = tuple(make(f"{fn_name}_{word}", t) for word, t in zip(words, targets))
    shared = units[-1].entries[0].public._replace(name=fn_name.replace("::", "_"), display_name=fn_name)
    return MultiTarget(shared, units, ends)
