"""Files of pipelines: C text, headers, objects and libraries that work without Python.

Objects and libraries contain the C runtime, whose functions are those of Halide's runtime header, unless the target says no_runtime. They
are weak symbols: several objects and libraries made here may be linked together, and a program's own functions of these names win.
Every kind is made as bytes first, so that nothing is written when one cannot be made.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..codegen_c.function_info import function_info
from ..codegen_c.header import header
from ..codegen_c.python_extension import python_extension
from ..codegen_c.pytorch import pytorch_header
from ..codegen_c.registration import registration
from ..errors import CompileError
from ..ir.html import to_html
from ..ir.printer import to_text
from ..ir.target import Target
from ..ir.target_words import TargetFeature, TargetOS
from .abi import INCLUDE_DIR
from .aot import Unit, listing
from .binaries import archive, join_objects
from .build import link_inputs
from .c_compiler import compile_object, link_shared
from .cache import write_whole
from .cross import foreign_runtime, has_runtime, is_foreign, runtime_advice, toolchain_for_files
from .file_types import OutputFileType, extension
from .runtime_names import Prefixes, all_macros, macros, public_functions, renamed, static_runtime
from .scratch import scratch_folder
from .toolchain import clang_toolchain
from .viewer import viewer

_INCLUDE = re.compile(r'^#include "(hl_\w+\.h)"\n', re.MULTILINE)


def write_file(path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file whole or not at all; a device or pipe is written to. Raises CompileError when that is not possible."""
    full = os.path.realpath(path)
    try:
        if os.path.exists(full) and not os.path.isfile(full) and not os.path.isdir(full):
            with open(full, "wb", buffering=0) as device:
                device.write(data)
            return
        write_whole(full, data)
        os.chmod(full, mode)
    except OSError as e:
        raise CompileError(f"Cannot write {path}: {_why_not(full, e.strerror or str(e))}") from None


def _why_not(full: str, reason: str) -> str:
    folder = os.path.dirname(full)
    return f"{folder} is not a folder that can be written" if not os.path.isdir(folder) or not os.access(folder, os.W_OK) else \
        "it is a folder" if os.path.isdir(full) else reason


def self_contained(text: str) -> str:
    """C text with our headers in place of their includes."""
    seen: set[str] = set()

    def body(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        with open(os.path.join(INCLUDE_DIR, name), encoding="utf-8") as file:
            return _INCLUDE.sub(body, file.read()) + "\n"

    return _INCLUDE.sub(body, text)


# ---- Each kind as bytes


def _compiled(unit: Unit, flags: Sequence[str]) -> bytes:
    """What the C compiler makes of a unit."""
    with scratch_folder() as folder:
        made = os.path.join(folder, "made")
        compile_object(unit.c_text(), made, unit.tools, folder, flags)
        return read_bytes(made)


def read_bytes(path: str) -> bytes:
    """A file's contents."""
    with open(path, "rb") as file:
        return file.read()


def _with_clang(unit: Unit) -> Unit:
    return replace(unit, tools=clang_toolchain(unit.target))


def runtime_of(unit: Unit, folder: str) -> str:
    """The runtime's static library for a unit's target, its functions named as the unit says; made in `folder` if it is not there
    already."""
    if not is_foreign(unit.target):
        return static_runtime(unit.prefixes, folder)
    library = os.path.join(folder, "foreign_runtime.a")
    with open(library, "wb") as file:
        file.write(foreign_runtime(unit.tools, all_macros(unit.prefixes)))
    return library


def object_file(unit: Unit) -> bytes:
    """One object: the pipelines, and the runtime unless the target says no_runtime."""
    with scratch_folder() as folder:
        made, joined = os.path.join(folder, "made.o"), os.path.join(folder, "joined.o")
        inside = unit.has_runtime("object file", joined=True)
        compile_object(unit.c_text(inside), made, unit.tools, folder)
        if not inside:
            return read_bytes(made)
        join_objects([made], runtime_of(unit, folder), joined, unit.tools)
        return read_bytes(joined)


def static_library(unit: Unit) -> bytes:
    """A static library: the pipelines, and the runtime unless the target says no_runtime."""
    with scratch_folder() as folder:
        compiled, library, inside = (
            os.path.join(folder, f"{unit.name}.o"),
            os.path.join(folder, "library.a"),
            unit.has_runtime("static library"),
        )
        compile_object(unit.c_text(inside), compiled, unit.tools, folder)
        if inside:
            shutil.copyfile(runtime_of(unit, folder), library)
        archive(library, [compiled], unit.tools)
        return read_bytes(library)


def shared_library(unit: Unit) -> bytes:
    """A shared library with the runtime inside, and a list of its functions for `load_library`."""
    with scratch_folder() as folder:
        compiled = os.path.join(folder, f"{unit.name}.o")
        compile_object(unit.c_text(unit.contains_runtime) + listing(unit.described), compiled, unit.tools, folder)
        return linked(unit, [compiled, *link_inputs(unit.module)], folder)


def linked(unit: Unit, inputs: Sequence[str], folder: str) -> bytes:
    """A shared library of objects for a unit's target, and the runtime. Raises CompileError for machines without a linker here."""
    if not has_runtime(unit.target, unit.tools):
        raise CompileError(f"A shared library for {unit.target} needs that system's linker and C library: write an object or "
                           "static_library, and link it there; PyPI's ziglang has those of Linux, macOS and Windows")
    library = os.path.join(folder, unit.name + extension(OutputFileType.shared_library, unit.target))  # a DLL knows its name
    inside = [runtime_of(unit, folder)] if unit.has_runtime("shared library") else []
    if inside and unit.target.os is TargetOS.Windows:  # what generated code defines says itself that it is for callers
        names = "".join(f"{renamed(name, unit.prefix(True))}\n" for name in public_functions())
        inside.append(os.path.join(folder, "exported.def"))
        write_file(inside[-1], f"EXPORTS\n{names}".encode())
    link_shared([*inputs, *inside], library, unit.tools)
    return read_bytes(library)


def c_source(unit: Unit) -> str:
    """One file for every compiler; it says how to compile it."""
    needed = [f for f in unit.tools.flags if f.startswith(("-O", "-fwrapv", "-fno-math", "-fno-trapping"))]
    how = " ".join(["cc", *needed, *unit.tools.arch, "-c", f"{unit.name}.c"])
    return self_contained(f"/* {unit.name} for {unit.target}: made by halide_py. Compile it as C, or as C++, which gcc makes\n"
                          f" * faster code of; signed integers wrap around:\n *\n *     {how}\n *\n"
                          f" * and link it with the runtime, which compile_standalone_runtime() writes, -lpthread and -lm. */\n"
                          f"{unit.c_text(for_any_compiler=True)}")


def _outside(unit: Unit) -> str:
    """The prefix of the runtime that callers see: the one inside the objects, or the one that they import."""
    return unit.prefix(unit.contains_runtime)


def c_header(unit: Unit) -> str:
    """The header for callers."""
    return header(unit.public, renamed("hl_last_error", _outside(unit)))


def extension_source(unit: Unit) -> str:
    """The source of a Python extension module."""
    return self_contained(macros(_outside(unit)) + python_extension(unit.described))


def _log(unit: Unit) -> str:
    """What compiling took and gave, as JSON."""
    start = time.perf_counter()
    size = len(_compiled(unit, ("-c",)))
    seconds = time.perf_counter() - start
    return json.dumps({"name": unit.name, "functions": [e.public.display_name for e in unit.entries], "target": unit.target.to_string(),
                       "compiler": unit.tools.identity(), "object_code_size": size, "compilation_time": seconds}, indent=1) + "\n"


def _hlpipe(unit: Unit) -> bytes:
    """The pipeline as it was before it was lowered. Raises CompileError for Modules, which are lowered, and for what cannot be saved."""
    if unit.saved is None:
        raise CompileError(f"The module {unit.name} is lowered; an hlpipe file is written by Pipeline.compile_to() or "
                           "hl.serialize_pipeline()")
    return unit.saved()


def _schedule(unit: Unit) -> str:
    """What an autoscheduler found, as a Python module with a function that gives a pipeline this schedule."""
    lines = unit.schedule.splitlines() or ["# No autoscheduler has been run for this pipeline.", "pass"]
    body = "\n".join(f"    {line}" if line else "" for line in lines)
    return f"import halide_py as hl\n\n\ndef apply_schedule_{unit.name}(pipeline):\n{body}\n"


_MAKERS: dict[OutputFileType, Callable[[Unit], bytes | str]] = {
    OutputFileType.assembly: lambda unit: _compiled(unit, ("-S",)),
    OutputFileType.bitcode: lambda unit: _compiled(_with_clang(unit), ("-c", "-emit-llvm")),
    OutputFileType.c_header: c_header,
    OutputFileType.c_source: c_source,
    OutputFileType.compiler_log: _log,
    OutputFileType.function_info_header: lambda unit: function_info(unit.described),
    OutputFileType.hlpipe: _hlpipe,
    OutputFileType.llvm_assembly: lambda unit: _compiled(_with_clang(unit), ("-S", "-emit-llvm")),
    OutputFileType.object: object_file,
    OutputFileType.python_extension: extension_source,
    OutputFileType.pytorch_wrapper: lambda unit: pytorch_header(unit.described, c_header(unit), renamed("hl_last_error", _outside(unit))),
    OutputFileType.registration: lambda unit: registration(unit.described),
    OutputFileType.schedule: _schedule,
    OutputFileType.shared_library: shared_library,
    OutputFileType.static_library: static_library,
    OutputFileType.stmt: lambda unit: "".join(to_text(e.inner.body) + "\n" for e in unit.entries),
    OutputFileType.conceptual_stmt: lambda unit: "".join(e.conceptual for e in unit.entries),
    OutputFileType.stmt_html: lambda unit: viewer(unit.name, [e.inner.body for e in unit.entries], unit.c_text()),
    OutputFileType.conceptual_stmt_html: lambda unit: to_html(unit.name, "".join(e.conceptual for e in unit.entries)),
}
_REFUSED = {
    OutputFileType.cpp_stub: "stubs are for Generators in C++; call one in Python by Generator.call()",
    OutputFileType.device_code: "pipelines are compiled for the CPU",
    OutputFileType.featurization: "the autoschedulers here keep no features; schedule files have what they found",
}


def made(unit: Unit, kinds: Sequence[OutputFileType]) -> list[bytes]:
    """Files of the kinds asked for. Raises CompileError for those that cannot be made."""
    for k in kinds:
        if not isinstance(k, int) or k not in OutputFileType.__members__.values():
            raise TypeError(f"the kind of a file must be an OutputFileType, not {k!r}")
    wanted = [OutputFileType(k) for k in kinds]
    for kind in wanted:
        if kind in _REFUSED:
            raise CompileError(f"compile_to() cannot write {kind.name} files: {_REFUSED[kind]}. There are "
                               f"{', '.join(k.name for k in _MAKERS)}")
    contents = [_MAKERS[kind](unit) for kind in wanted]
    return [c.encode() if isinstance(c, str) else c for c in contents]


def check_paths(paths: Sequence[str]) -> None:
    """Raises CompileError for paths where no file can be put, and for two files at one place."""
    for i, path in enumerate(paths):
        if not path or "\0" in path:
            raise CompileError(f"Cannot write {path!r}: it names no file")
        full = os.path.realpath(path)
        if not os.access(os.path.dirname(full), os.W_OK) or os.path.isdir(full):
            raise CompileError(f"Cannot write {path}: {_why_not(full, 'it cannot be written')}")
        if path in paths[:i]:
            raise CompileError(f"Cannot write two files to {path}")


def write(unit: Unit, outputs: Mapping[OutputFileType, str]) -> None:
    """Write the files asked for, each to its path. Raises CompileError, before anything is written, for what cannot be made or put
    there."""
    paths = [os.fspath(path) for path in outputs.values()]
    check_paths(paths)
    write_all(paths, made(unit, list(outputs)))


def write_all(paths: Sequence[str], contents: Sequence[bytes]) -> None:
    """Write several files; when one cannot be, those before it are removed. Raises CompileError."""
    for i, (path, data) in enumerate(zip(paths, contents)):
        try:
            write_file(path, data)
        except CompileError:
            for written in paths[:i]:
                if os.path.isfile(written):
                    os.unlink(written)
            raise


def _runtime_alone(target: Target, prefixes: Prefixes) -> Unit:
    unit = Unit("runtime", (), target.without_feature(TargetFeature.NoRuntime), toolchain_for_files(target), prefixes)
    if not unit.contains_runtime:
        raise CompileError(f"There is no C runtime for {target} here: {runtime_advice(target)}")
    return unit


def runtime_object(target: Target, prefixes: Prefixes) -> bytes:
    """The runtime as one object file. Raises CompileError for machines it cannot be made for."""
    unit = _runtime_alone(target, prefixes)
    if target.os is TargetOS.Windows:
        raise CompileError("Object files of Windows cannot be joined into one: give the runtime the name of a library, as runtime.lib")
    with scratch_folder() as folder:
        joined = os.path.join(folder, "runtime.o")
        join_objects([], runtime_of(unit, folder), joined, unit.tools)
        return read_bytes(joined)


def standalone_runtime(path: str, target: Target, prefixes: Prefixes = {}) -> None:  # noqa: B006
    """Write the runtime as one object file (`.o`, `.obj`), or as a static library for any other name. Raises CompileError as
    `runtime_object` does."""
    check_paths([path])
    if path.endswith((".o", ".obj")):
        write_file(path, runtime_object(target, prefixes))
        return
    with scratch_folder() as folder:
        write_file(path, read_bytes(runtime_of(_runtime_alone(target, prefixes), folder)))
