"""Ahead of time: C text, headers, objects and libraries that work without Python.

Objects and libraries contain the C runtime, whose functions are those of Halide's runtime header, unless the target says no_runtime. They are
weak symbols: several objects and libraries made here may be linked together, and a program's own functions of these names win.
Buffers that expressions use directly, and that are no arguments, become constant data of the library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..codegen_c import generate
from ..codegen_c.header import header
from ..codegen_c.metadata import metadata
from ..codegen_c.python_extension import python_extension
from ..codegen_c.registration import registration
from ..errors import CompileError, InternalError
from ..ir.function import Function
from ..ir.module import USER_CONTEXT, ArgumentKind, LoweredArgument, LoweredFunction, LoweredModule, labelled
from ..ir.printer import to_text
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..ir.types import Handle
from .abi import INCLUDE_DIR, STATIC_RUNTIME
from .build import link_inputs, lower_to_module
from .c_compiler import compile_object, link_shared
from .cache import write_atomically
from .embedded import ConstantBuffer, call_with_constants
from .file_types import OutputFileType
from .graph import Requirement
from .toolchain import Toolchain, toolchain

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WHOLE_RUNTIME = ("-all_load", STATIC_RUNTIME) if sys.platform == "darwin" else ("--whole-archive", STATIC_RUNTIME)
_INCLUDE = re.compile(r'^#include "(hl_\w+\.h)"\n', re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One function of a unit: as callers see it, and as it is lowered, which takes the buffers in `constants` too."""

    public: LoweredFunction
    inner: LoweredFunction
    constants: tuple[ConstantBuffer, ...]

    def c_text(self, target: str) -> str:
        """What follows the code of `inner`: its metadata, or the function that passes the constants on."""
        return call_with_constants(self.public, self.inner, self.constants, target) if self.constants else metadata(self.public, target)


@dataclass(frozen=True)
class Unit:
    """Pipelines lowered for files."""

    name: str
    entries: tuple[Entry, ...]
    target: Target
    tools: Toolchain

    @property
    def module(self) -> LoweredModule:
        """All of it in loop IR."""
        return LoweredModule(self.name, [e.inner for e in self.entries])

    @property
    def public(self) -> LoweredModule:
        """The functions as callers see them."""
        return LoweredModule(self.name, [e.public for e in self.entries])

    def c_text(self) -> str:
        """The C text; it includes our headers."""
        described = self.target.to_string()
        return generate(self.module, self.tools.machine(self.target)) + "\n".join(e.c_text(described) for e in self.entries)

    def header_text(self) -> str:
        """The header for callers."""
        return header(self.public)


def lower_unit(outputs: Sequence[Function], args: Sequence[LoweredArgument], constants: Sequence[ConstantBuffer], fn_name: str, target: Target,
               requirements: Sequence[Requirement] = ()) -> Unit:
    """Lower a pipeline whose callers pass `args`; `constants` are the buffers it contains. Raises CompileError for a name that C does not allow."""
    if not _IDENTIFIER.fullmatch(fn_name):
        clean = re.sub(r"\W+", "_", fn_name) or "pipeline"
        raise CompileError(f"{fn_name!r} cannot name a C function; use letters, digits and underscores, for example fn_name={clean!r}")
    if target.has_feature(TargetFeature.UserContext):
        args = [LoweredArgument(USER_CONTEXT, ArgumentKind.InputScalar, Handle()), *args]
    inner = fn_name + "_with_constants" if constants else fn_name
    f = lower_to_module(outputs, [*args, *(c.argument for c in constants)], inner, target, requirements).functions[0]
    f = f._replace(display_name=fn_name, args=labelled(f.args))
    hidden = {c.argument.name for c in constants}
    public = f._replace(name=fn_name, args=tuple(a for a in f.args if a.name not in hidden))
    return Unit(fn_name, (Entry(public, f, tuple(constants)),), target, toolchain(target))


def link_units(name: str, units: Sequence[Unit]) -> Unit:
    """Several units as one. Raises CompileError for two functions of one name, and for targets that differ."""
    entries = [e for u in units for e in u.entries]
    names = [e.public.name for e in entries]
    for i, one in enumerate(names):
        if one in names[:i]:
            raise CompileError(f"Two functions of the module {name} are named {one}")
    targets = sorted({u.target.to_string() for u in units})
    if len(targets) != 1:
        raise CompileError(f"Modules of different targets cannot be linked: {' and '.join(targets)}" if targets else f"The module {name} has no functions")
    return Unit(name, tuple(entries), units[0].target, units[0].tools)


def write_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all. Raises CompileError when that is not possible."""
    full = os.path.abspath(path)
    if not write_atomically(full, data):
        raise CompileError(f"Cannot write {path}: {os.path.dirname(full)} is not a folder that can be written")
    os.chmod(full, 0o644)


def _put(made: str, path: str) -> None:
    """Copy a file that was made to where it is wanted, whole or not at all."""
    with open(made, "rb") as file:
        write_file(path, file.read())


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


def write(unit: Unit, outputs: Mapping[OutputFileType, str]) -> None:
    """Write the files asked for, each to its path. Raises CompileError for kinds that cannot be made."""
    writers = {
        OutputFileType.c_source: lambda path: write_file(path, self_contained(unit.c_text()).encode()),
        OutputFileType.c_header: lambda path: write_file(path, unit.header_text().encode()),
        OutputFileType.stmt: lambda path: write_file(path, "".join(to_text(e.inner.body) + "\n" for e in unit.entries).encode()),
        OutputFileType.registration: lambda path: write_file(path, registration([e.public.name for e in unit.entries]).encode()),
        OutputFileType.python_extension: lambda path: write_file(path, self_contained(python_extension(unit.public)).encode()),
        OutputFileType.object: lambda path: object_file(unit, path),
        OutputFileType.assembly: lambda path: assembly(unit, path),
        OutputFileType.static_library: lambda path: static_library(unit, path),
    }
    for kind in outputs:
        if kind not in writers:
            known = ", ".join(k.name for k in writers)
            raise CompileError(f"compile_to() cannot write {OutputFileType(kind).name} files; there are {known}")
    for kind, path in outputs.items():
        writers[OutputFileType(kind)](os.fspath(path))


def assembly(unit: Unit, path: str) -> None:
    """The machine code of the pipelines as text."""
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        made = os.path.join(folder, "made.s")
        compile_object(unit.c_text(), made, unit.tools, folder, ("-S",))
        _put(made, path)


def object_file(unit: Unit, path: str) -> None:
    """One object file: the pipelines, and the runtime unless the target says no_runtime."""
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        made, joined = os.path.join(folder, "made.o"), os.path.join(folder, "joined.o")
        compile_object(unit.c_text(), made, unit.tools, folder)
        if not unit.target.has_feature(TargetFeature.NoRuntime):
            join_objects([made, *_WHOLE_RUNTIME], joined)
            made = joined
        _put(made, path)


def static_library(unit: Unit, path: str) -> None:
    """A static library: the pipeline, and the runtime unless the target says no_runtime."""
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        compiled, library = os.path.join(folder, f"{unit.name}.o"), os.path.join(folder, "library.a")
        compile_object(unit.c_text(), compiled, unit.tools, folder)
        if not unit.target.has_feature(TargetFeature.NoRuntime):
            shutil.copyfile(STATIC_RUNTIME, library)
        archive(library, [compiled], unit.tools)
        _put(library, path)


def shared_library(unit: Unit, path: str) -> None:
    """A shared library with the runtime inside."""
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        compiled, library = os.path.join(folder, f"{unit.name}.o"), os.path.join(folder, "library.so")
        compile_object(unit.c_text(), compiled, unit.tools, folder)
        runtime = [] if unit.target.has_feature(TargetFeature.NoRuntime) else [STATIC_RUNTIME]
        link_shared([compiled, *link_inputs(unit.module), *runtime], library, unit.tools)
        _put(library, path)
    os.chmod(path, 0o755)


def archive(library: str, objects: Sequence[str], tools: Toolchain) -> None:
    """Add object files to a static library, which is made if there is none. Raises CompileError when there is no archiver."""
    if tools.command[-2:-1] == ("ziglang",):
        command = [*tools.command[:-1], "ar"]
    else:
        found = next((p for p in map(shutil.which, (os.environ.get("AR", ""), "ar", "gcc-ar", "llvm-ar")) if p), None)
        if found is None:
            raise CompileError("No ar found to make a static library; install binutils (Debian: apt-get install binutils) or set AR")
        command = [found]
    done = subprocess.run([*command, "rcs", library, *objects], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InternalError(f"{command[0]} could not make the static library: {done.stderr.strip()}")


def join_objects(inputs: Sequence[str], joined: str) -> None:
    """Join object files into one. Raises CompileError when there is no linker."""
    linker = shutil.which("ld") or shutil.which("ld.lld")
    if linker is None:
        raise CompileError("No ld found to join a pipeline and the runtime into one object: write a static_library, or use the target feature no_runtime")
    done = subprocess.run([linker, "-r", *inputs, "-o", joined], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InternalError(f"ld could not join object files: {done.stderr.strip()}")


def standalone_runtime(path: str) -> None:
    """The runtime as one object file (`.o`), or as a static library for any other name."""
    if not path.endswith(".o"):
        _put(STATIC_RUNTIME, path)
        return
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        made = os.path.join(folder, "runtime.o")
        join_objects(_WHOLE_RUNTIME, made)
        _put(made, path)
