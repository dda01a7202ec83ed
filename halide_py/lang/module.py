"""Module: pipelines lowered for ahead-of-time files, to be linked with others before they are written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import driver
from ..driver.file_types import OutputFileType
from ..errors import CompileError
from ..ir.target import Target


class Module:
    """Functions that go into one file: made by `compile_to_module`, or empty by `Module(name, target)` and filled with `append`."""

    def __init__(self, name: str, target: Target) -> None:
        self._name, self._target = name, Target(target)
        self._units: list[driver.aot.Unit] = []

    @staticmethod
    def of(unit: driver.aot.Unit) -> Module:
        """The Module of one lowered pipeline."""
        m = Module(unit.name, unit.target)
        m._units.append(unit)
        return m

    def name(self) -> str:
        """The name, which header guards and object files bear."""
        return self._name

    def target(self) -> Target:
        """What it is compiled for."""
        return Target(self._target)

    def append(self, module: Module) -> None:
        """Add all functions of another Module. Raises TypeError for anything else."""
        if not isinstance(module, Module):
            raise TypeError(f"append() takes a Module, not {module!r}")
        self._units += module._units

    def submodules(self) -> list[Module]:
        """The Modules appended, one a pipeline."""
        return [Module.of(u) for u in self._units]

    def resolve_submodules(self) -> Module:
        """One Module with all functions."""
        return Module.of(self._linked())

    def _linked(self) -> driver.aot.Unit:
        return driver.aot.link_units(self._name, self._units)

    def compile(self, outputs: Mapping[OutputFileType, str]) -> None:
        """Write files: `m.compile({OutputFileType.object: "m.o", OutputFileType.c_header: "m.h"})`. Raises CompileError for kinds there are not."""
        driver.aot.write(self._linked(), outputs)

    def __repr__(self) -> str:
        names = [e.public.name for u in self._units for e in u.entries]
        return f"<halide.Module {self._name!r} for {self._target}: {', '.join(names) or 'empty'}>"


def link_modules(name: str, modules: Sequence[Module]) -> Module:
    """One Module of several. Raises CompileError for two functions of one name, and for targets that differ."""
    return Module.of(driver.aot.link_units(name, [u for m in modules for u in m._units]))


def compile_standalone_runtime(output: Any, target: Target) -> dict[OutputFileType, str] | None:
    """Write the C runtime alone, to be linked with libraries and objects made with the target feature no_runtime, or with object files.

    `output` is a file name (`.o`: one object, else a static library), or a mapping from OutputFileType.object or static_library to names.
    """
    if not isinstance(output, Mapping):
        driver.aot.standalone_runtime(os.fspath(output))
        return None
    for kind, path in output.items():
        if kind not in (OutputFileType.object, OutputFileType.static_library):
            raise CompileError(f"compile_standalone_runtime() writes object and static_library files, not {OutputFileType(kind).name}")
        driver.aot.standalone_runtime(path)
    return dict(output)
