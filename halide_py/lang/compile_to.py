"""The part of Pipeline that writes files: C text, headers, objects, libraries, loop nests as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import driver, lang
from ..driver.file_types import OutputFileType, StmtOutputFormat, extension
from ..driver.graph import Requirement
from ..errors import CompileError, expect
from ..ir.function import Function
from ..ir.module import LinkageType, LoweredArgument, RuntimeLinkage
from ..ir.target import Target, get_target_from_environment
from ..ir.target_words import TargetFeature
from .argument import argument_list, infer_arguments, is_embedded, lowered_arguments
from .module import Module
from .schedule_warnings import warn_about_schedules

_UNDEFINED = Target()


class CompileTo:
    """Files of a Pipeline.

    `arguments` are the inputs in call order (Params, ImageParams, Buffers, Arguments); where they may be left out, buffers by name and then
    scalars by name are taken. `fn_name` is the C function's name; by default the file's or the first output's. The function takes the
    inputs, then one `halide_buffer_t *` an output, and gives 0 or an error code.
    """

    functions: list[Function]
    requirements: list[Requirement]
    prefixes: dict[RuntimeLinkage, str]
    schedule_source = ""  # what an autoscheduler found

    def apply_runtime_prefixes(self, target: Target, namespace_map: Mapping[RuntimeLinkage, str]) -> None:
        """Name the runtime's functions otherwise in files made from now on: `halide_malloc` is `my_malloc` with {RuntimeLinkage.Import:
        "my_"}.

        Import is for code that calls a runtime linked later (no_runtime), Export for the runtime inside objects and libraries and the calls
        of it, Internal for what that runtime does not declare. So one program may hold several runtimes. Raises CompileError for the target
        feature jit and for prefixes that begin no C identifier.
        """
        if not namespace_map:
            raise CompileError("apply_runtime_prefixes() was called without prefixes; give one, as {RuntimeLinkage.Import: 'my_'}")
        if expect(target, Target, "apply_runtime_prefixes()").has_feature(TargetFeature.JIT):
            raise CompileError("Runtime prefixes are not supported for JIT targets, whose pipelines share the runtime of this process; use "
                               "another target")
        self.prefixes = driver.runtime_names.checked_prefixes(namespace_map)

    def _outputs(self, call: str) -> list[Function]:
        raise NotImplementedError  # Pipeline has it

    def unit(self, call: str, arguments: Sequence[Any] | None, fn_name: str, target: Target,
              linkage: LinkageType = LinkageType.ExternalPlusMetadata) -> driver.aot.Unit:
        """The pipeline lowered for files; `call` is what the user called."""
        if not isinstance(fn_name, str):
            raise TypeError(f"{call}(): the name of the C function must be a string, not {fn_name!r}")
        functions = self._outputs(call)
        if expect(target, Target, f"{call}()").has_unknowns():
            target = get_target_from_environment()
        warn_about_schedules(functions)
        given = infer_arguments(functions, self.requirements) if arguments is None else argument_list(arguments)
        if arguments is None:
            given = [a for a in given if a.param is None or not is_embedded(a.param)]
        args = lowered_arguments(given, functions, self.requirements)
        constants = [_constant(a) for a in args[len(given):]]
        name = fn_name or functions[0].name.partition("$")[0]
        unit = driver.aot.lower_unit(functions, args[:len(given)], constants, name, target, self.requirements, linkage, self.prefixes)
        return replace(unit, saved=lambda: lang.saved.saved(functions, self.requirements)[1], schedule=self.schedule_source)

    def compile_to(
        self, outputs: Mapping[OutputFileType, str], arguments: Sequence[Any], fn_name: str, target: Target = _UNDEFINED
    ) -> None:
        """Write several kinds of files at once: `compile_to({OutputFileType.object: "f.o", OutputFileType.c_header: "f.h"}, [p], "f")`."""
        driver.files.write(self.unit("compile_to", arguments, fn_name, target), dict(outputs))

    def compile_to_module(self, arguments: Sequence[Any], fn_name: str = "", target: Target = _UNDEFINED,
                          linkage: LinkageType = LinkageType.ExternalPlusMetadata) -> Module:
        """The pipeline as a Module, to be linked with others and written later. `linkage` says which entries of the function callers
        see."""
        return Module.of(replace(self.unit("compile_to_module", arguments, fn_name, target, LinkageType(linkage)), saved=None))

    def compile_to_c(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED) -> None:
        """Write the generated C, which compiles alone as C11 with GNU extensions and as C++; link it with the runtime."""
        driver.files.write(self.unit("compile_to_c", arguments, fn_name, target), {OutputFileType.c_source: filename})

    def compile_to_header(
        self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED
    ) -> None:
        """Write the header for C and C++ callers."""
        driver.files.write(self.unit("compile_to_header", arguments, fn_name, target), {OutputFileType.c_header: filename})

    def compile_to_object(
        self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED
    ) -> None:
        """Write an object file; link it with the runtime (see `compile_standalone_runtime`)."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.files.write(self.unit("compile_to_object", arguments, fn_name, target), {OutputFileType.object: filename})

    def compile_to_assembly(
        self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED
    ) -> None:
        """Write the machine code as text."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.files.write(self.unit("compile_to_assembly", arguments, fn_name, target), {OutputFileType.assembly: filename})

    def compile_to_bitcode(
        self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED
    ) -> None:
        """Write LLVM bitcode. Raises CompileError when there is no clang to make it."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.files.write(self.unit("compile_to_bitcode", arguments, fn_name, target), {OutputFileType.bitcode: filename})

    def compile_to_llvm_assembly(
        self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED
    ) -> None:
        """Write LLVM's intermediate code as text. Raises CompileError when there is no clang to make it."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.files.write(self.unit("compile_to_llvm_assembly", arguments, fn_name, target), {OutputFileType.llvm_assembly: filename})

    def compile_to_file(
        self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED
    ) -> None:
        """Write `PREFIX.o` (for Windows `PREFIX.obj`) and `PREFIX.h`."""
        unit = self.unit("compile_to_file", arguments, fn_name, target)
        driver.files.write(
            unit, {kind: filename_prefix + extension(kind, unit.target) for kind in (OutputFileType.object, OutputFileType.c_header)}
        )

    def compile_to_static_library(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "",
                                  target: Target = _UNDEFINED) -> None:
        """Write `PREFIX.a` (for Windows `PREFIX.lib`), with the runtime inside, and `PREFIX.h`."""
        unit = self.unit("compile_to_static_library", arguments, fn_name, target)
        kinds = (OutputFileType.static_library, OutputFileType.c_header)
        driver.files.write(unit, {kind: filename_prefix + extension(kind, unit.target) for kind in kinds})

    def compile_to_multitarget_static_library(self, filename_prefix: str, arguments: Sequence[Any], targets: Sequence[Target]) -> None:
        """Write `PREFIX.a` and `PREFIX.h`: the pipeline for each of several targets, and a function that takes the first that the processor
        can run. The function is named as the first output.

        The last target is for all processors. Raises CompileError for targets of different architecture, bits or operating system, or given
        twice.
        """
        self._multitarget("compile_to_multitarget_static_library", OutputFileType.static_library, filename_prefix, arguments, targets)

    def compile_to_multitarget_object_files(
        self, filename_prefix: str, arguments: Sequence[Any], targets: Sequence[Target], suffixes: Sequence[str]
    ) -> None:
        """As `compile_to_multitarget_static_library`, but write `PREFIX-SUFFIX.o` for each target, `PREFIX_wrapper.o`, `PREFIX_runtime.o`
        and `PREFIX.h`. An empty list of suffixes stands for the names of the targets."""
        self._multitarget("compile_to_multitarget_object_files", OutputFileType.object, filename_prefix, arguments, targets, suffixes)

    def _multitarget(
        self, call: str, kind: OutputFileType, prefix: str, arguments: Sequence[Any], targets: Sequence[Target],
        suffixes: Sequence[str] = (),
    ) -> None:
        for target in targets:
            expect(target, Target, f"{call}()")
        name = self.functions[0].name.partition("$")[0]
        made = driver.multitarget.compile_for(lambda fn_name, target: self.unit(call, arguments, fn_name, target), name, targets, suffixes)
        made.write({k: prefix + extension(k, targets[-1]) for k in (kind, OutputFileType.c_header)})

    def compile_to_shared_library(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "",
                                  target: Target = _UNDEFINED) -> None:
        """Write `PREFIX.so`, which needs nothing else to be called from C, and `PREFIX.h`. The function is named as the file unless told
        otherwise."""
        unit = self.unit("compile_to_shared_library", arguments, fn_name or os.path.basename(filename_prefix), target)
        kinds = (OutputFileType.shared_library, OutputFileType.c_header)
        driver.files.write(unit, {kind: filename_prefix + extension(kind, unit.target) for kind in kinds})

    def compile_to_lowered_stmt(self, filename: str, arguments: Sequence[Any] | None = None, fmt: StmtOutputFormat = StmtOutputFormat.Text,
                                target: Target = _UNDEFINED) -> None:
        """Write the pipeline as it is after lowering: loops, loads and stores, as text or as a web page whose blocks fold."""
        kind = OutputFileType.stmt if StmtOutputFormat(fmt) is StmtOutputFormat.Text else OutputFileType.stmt_html
        driver.files.write(self.unit("compile_to_lowered_stmt", arguments, "", target), {kind: filename})

    def compile_to_conceptual_stmt(
        self,
        filename: str,
        arguments: Sequence[Any] | None = None,
        fmt: StmtOutputFormat = StmtOutputFormat.Text,
        target: Target = _UNDEFINED,
    ) -> None:
        """Write the loops as scheduled, before they are lowered, as text or as a web page whose blocks fold."""
        kind = OutputFileType.conceptual_stmt if StmtOutputFormat(fmt) is StmtOutputFormat.Text else OutputFileType.conceptual_stmt_html
        driver.files.write(self.unit("compile_to_conceptual_stmt", arguments, "", target), {kind: filename})


def _name_or_target(fn_name: Any, target: Target) -> tuple[str, Target]:
    """Some calls may leave out the name before the target."""
    return ("", fn_name) if isinstance(fn_name, Target) else (fn_name, target)


def _constant(a: LoweredArgument) -> driver.embedded.ConstantBuffer:
    """A Buffer that is no argument, made dense unless its strides are constrained."""
    assert a.param is not None
    array, mins = a.param.buffer.array, [low for low, _, _ in a.param.buffer.storage.shape()]
    order = sorted(range(array.ndim), key=lambda d: abs(array.strides[d]), reverse=True)
    dense = np.ascontiguousarray(array.transpose(order))
    strides = [0] * array.ndim
    for place, d in enumerate(order):
        strides[d] = dense.strides[place] // dense.itemsize
    return driver.embedded.ConstantBuffer(a, tuple(zip(mins, array.shape, strides)), dense.tobytes())
