"""The part of Pipeline that writes files: C text, headers, objects, libraries, loop nests as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import driver, lower
from ..driver.file_types import OutputFileType, StmtOutputFormat
from ..driver.graph import Requirement
from ..errors import CompileError
from ..ir.function import Function
from ..ir.module import LoweredArgument
from ..ir.target import Target, get_target_from_environment
from .argument import infer_arguments, lowered_arguments
from .module import Module
from .schedule_warnings import warn_about_schedules

_UNDEFINED = Target()


class CompileTo:
    """Files of a Pipeline.

    `arguments` are the inputs in call order (Params, ImageParams, Buffers, Arguments); where they may be left out, buffers by name and then
    scalars by name are taken. `fn_name` is the C function's name; by default the file's or the first output's. The function takes the inputs, then
    one `halide_buffer_t *` an output, and gives 0 or an error code.
    """

    requirements: list[Requirement]

    def _outputs(self, call: str) -> list[Function]:
        raise NotImplementedError  # Pipeline has it

    def _unit(self, call: str, arguments: Sequence[Any] | None, fn_name: str, target: Target) -> driver.aot.Unit:
        functions = self._outputs(call)
        if target.has_unknowns():
            target = get_target_from_environment()
        warn_about_schedules(functions)
        given = infer_arguments(functions, self.requirements) if arguments is None else list(arguments)
        if arguments is None:
            given = [a for a in given if a.param is None or a.param.buffer is None or not a.param.buffer.is_bound_to(a.param)]
        args = lowered_arguments(given, functions, self.requirements)
        constants = [_constant(a) for a in args[len(given):]]
        return driver.aot.lower_unit(functions, args[:len(given)], constants, fn_name or functions[0].name.partition("$")[0], target, self.requirements)

    def compile_to(self, outputs: Mapping[OutputFileType, str], arguments: Sequence[Any], fn_name: str, target: Target = _UNDEFINED) -> None:
        """Write several kinds of files at once: `compile_to({OutputFileType.object: "f.o", OutputFileType.c_header: "f.h"}, [p], "f")`."""
        driver.aot.write(self._unit("compile_to", arguments, fn_name, target), outputs)

    def compile_to_module(self, arguments: Sequence[Any], fn_name: str = "", target: Target = _UNDEFINED) -> Module:
        """The pipeline as a Module, to be linked with others and written later."""
        return Module.of(self._unit("compile_to_module", arguments, fn_name, target))

    def compile_to_c(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED) -> None:
        """Write the generated C, which compiles alone as C11 with GNU extensions and as C++; link it with the runtime."""
        driver.aot.write(self._unit("compile_to_c", arguments, fn_name, target), {OutputFileType.c_source: filename})

    def compile_to_header(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED) -> None:
        """Write the header for C and C++ callers."""
        driver.aot.write(self._unit("compile_to_header", arguments, fn_name, target), {OutputFileType.c_header: filename})

    def compile_to_object(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED) -> None:
        """Write an object file; link it with the runtime (see `compile_standalone_runtime`)."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.aot.write(self._unit("compile_to_object", arguments, fn_name, target), {OutputFileType.object: filename})

    def compile_to_assembly(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: Any = "", target: Target = _UNDEFINED) -> None:
        """Write the machine code as text."""
        fn_name, target = _name_or_target(fn_name, target)
        driver.aot.write(self._unit("compile_to_assembly", arguments, fn_name, target), {OutputFileType.assembly: filename})

    def compile_to_file(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target = _UNDEFINED) -> None:
        """Write `PREFIX.o` and `PREFIX.h`."""
        unit = self._unit("compile_to_file", arguments, fn_name, target)
        driver.aot.write(unit, {OutputFileType.object: filename_prefix + ".o", OutputFileType.c_header: filename_prefix + ".h"})

    def compile_to_static_library(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "",
                                  target: Target = _UNDEFINED) -> None:
        """Write `PREFIX.a`, with the runtime inside, and `PREFIX.h`."""
        unit = self._unit("compile_to_static_library", arguments, fn_name, target)
        driver.aot.write(unit, {OutputFileType.static_library: filename_prefix + ".a", OutputFileType.c_header: filename_prefix + ".h"})

    def compile_to_shared_library(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "",
                                  target: Target = _UNDEFINED) -> None:
        """Write `PREFIX.so`, which needs nothing else to be called from C, and `PREFIX.h`. The function is named as the file unless told otherwise."""
        unit = self._unit("compile_to_shared_library", arguments, fn_name or os.path.basename(filename_prefix), target)
        driver.aot.write(unit, {OutputFileType.c_header: filename_prefix + ".h"})
        driver.aot.shared_library(unit, filename_prefix + ".so")

    def compile_to_lowered_stmt(self, filename: str, arguments: Sequence[Any] | None = None, fmt: StmtOutputFormat = StmtOutputFormat.Text,
                                target: Target = _UNDEFINED) -> None:
        """Write the pipeline as it is after lowering: loops, loads and stores, as text."""
        if StmtOutputFormat(fmt) is not StmtOutputFormat.Text:
            raise CompileError("compile_to_lowered_stmt() writes text only; give StmtOutputFormat.Text")
        driver.aot.write(self._unit("compile_to_lowered_stmt", arguments, "", target), {OutputFileType.stmt: filename})

    def compile_to_conceptual_stmt(self, filename: str, arguments: Sequence[Any] | None = None, fmt: StmtOutputFormat = StmtOutputFormat.Text,
                                   target: Target = _UNDEFINED) -> None:
        """Write the loops as scheduled, before they are lowered, as text."""
        if StmtOutputFormat(fmt) is not StmtOutputFormat.Text:
            raise CompileError("compile_to_conceptual_stmt() writes text only; give StmtOutputFormat.Text")
        driver.aot.write_file(filename, lower.print_loop_nest.loop_nest_text(self._outputs("compile_to_conceptual_stmt")).encode())


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
