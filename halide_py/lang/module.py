"""Module: pipelines lowered for ahead-of-time files, to be linked with others before they are written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import autoschedule, driver
from ..driver.file_types import OutputFileType
from ..errors import CompileError, expect
from ..ir.module import RuntimeLinkage
from ..ir.target import Target
from .autoscheduler_params import AutoSchedulerResults
from .buffer import Buffer
from .one_of import one_of


class Module:
    """Functions that go into one file: made by `compile_to_module`, or empty by `Module(name, target)` and filled with `append`."""

    def __init__(self, name: str, target: Target) -> None:
        self._name, self._target = name, Target(target)
        self._units: list[driver.aot.Unit] = []
        self._buffers: list[Buffer] = []
        self._names: dict[str, str] = {}
        self._results: AutoSchedulerResults | None = None

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

    def append(self, module: Any = None, *, buffer: Any = None) -> None:
        """Add all functions of another Module, or a Buffer to what `buffers` lists. Raises TypeError for anything else."""
        added = one_of("append()", module=module, buffer=buffer)
        if isinstance(added, Buffer):
            self._buffers.append(added)
        elif isinstance(added, Module):
            self._units += [u.with_names(added._names) for u in added._units]
            self._buffers += added._buffers
        else:
            raise TypeError(f"append() takes a Module or a Buffer, not {added!r}")

    def buffers(self) -> list[Buffer]:
        """The Buffers that the functions contain, then those appended."""
        contained = [c.argument.param.buffer for u in self._units for e in u.entries for c in e.constants if c.argument.param is not None]
        return [*dict.fromkeys(contained), *self._buffers]

    def submodules(self) -> list[Module]:
        """The Modules appended, one a pipeline."""
        return [Module.of(u) for u in self._units]

    def resolve_submodules(self) -> Module:
        """One Module with all functions."""
        return Module.of(self._linked())

    def remap_metadata_name(self, from_name: str, to_name: str, /) -> None:
        """Give an argument another name in metadata and wrappers. Raises CompileError when there is no such argument."""
        known = [a.shown for u in self._units for e in u.entries for a in e.public.args]
        if from_name not in known:
            raise CompileError(f"The module {self._name} has no argument {from_name}; there are "
                               f"{', '.join(dict.fromkeys(known)) or 'none'}")
        self._names[from_name] = to_name

    def get_metadata_name_map(self) -> dict[str, str]:
        """What was renamed."""
        return dict(self._names)

    def get_auto_scheduler_results(self) -> AutoSchedulerResults | None:
        """What was set by `set_auto_scheduler_results`; None if nothing was."""
        return self._results

    def set_auto_scheduler_results(self, results: AutoSchedulerResults, /) -> None:
        """Keep what an autoscheduler did with the Module."""
        self._results = results

    def _linked(self) -> driver.aot.Unit:
        unit: driver.aot.Unit = driver.aot.link_units(self._name, self._units).with_names(self._names)
        return unit if self._results is None else replace(unit, schedule=self._results.schedule_source)

    def compile(self, outputs: Mapping[OutputFileType, str]) -> None:
        """Write files: `m.compile({OutputFileType.object: "m.o", OutputFileType.c_header: "m.h"})`. Raises CompileError for kinds there are
        not."""
        driver.files.write(self._linked(), outputs)

    def compile_to_buffer(self) -> Buffer:
        """The object file as a Buffer of bytes."""
        return Buffer(np.frombuffer(bytearray(driver.files.object_file(self._linked())), np.uint8))

    def __repr__(self) -> str:
        names = [e.public.qualified for u in self._units for e in u.entries]
        return f"<halide.Module {self._name!r} for {self._target}: {', '.join(names) or 'empty'}>"


def link_modules(name: str, modules: Sequence[Module]) -> Module:
    """One Module of several. Raises CompileError for two functions of one name, and for targets that differ."""
    return Module.of(
        driver.aot.link_units(
            name, [u.with_names(m._names) for m in (expect(m, Module, "link_modules()") for m in modules) for u in m._units]
        )
    )


def load_plugin(lib_name: str) -> None:
    """Halide has its autoschedulers in plugins, `load_plugin("autoschedule_mullapudi2016")`; here they are always there, and need no call.

    Names and paths of the plugins of those there are are accepted. Raises CompileError for others: they are made for Halide's own library.
    """
    autoschedule.registry.plugin_name(os.fspath(lib_name))


def compile_standalone_runtime(
    outputs: Any = None,
    target: Target | None = None,
    namespace_map: Mapping[RuntimeLinkage, str] = {},
    *,  # noqa: B006
    filename: str | os.PathLike[str] | None = None,
) -> dict[OutputFileType, str] | None:
    """Write the C runtime alone, to be linked with libraries and objects made with the target feature no_runtime.

    `outputs` (or `filename`) is a file name (`.o`: one object, else a static library), or a mapping from OutputFileType.object or
    static_library to names. `namespace_map` renames its functions, as Pipeline.apply_runtime_prefixes() does for pipelines. Raises
    CompileError for other machines.
    """
    given = one_of("compile_standalone_runtime()", outputs=outputs, filename=filename)
    if not isinstance(target, Target):
        raise TypeError(f"compile_standalone_runtime() takes a Target, not {target!r}")
    prefixes = driver.runtime_names.checked_prefixes(namespace_map)
    if not isinstance(given, Mapping):
        driver.files.standalone_runtime(os.fspath(given), target, prefixes)
        return None
    for kind in given:
        if kind not in (OutputFileType.object, OutputFileType.static_library):
            raise CompileError(f"compile_standalone_runtime() writes object and static_library files, not {OutputFileType(kind).name}")
    for path in given.values():
        driver.files.standalone_runtime(os.fspath(path), target, prefixes)
    return dict(given)
