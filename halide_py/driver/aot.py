"""Pipelines lowered for files, one or several to a unit; `files` writes them.

Buffers that expressions use directly, and that are no arguments, become constant data of the unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..codegen_c import generate
from ..codegen_c.ctypes_of import c_identifier
from ..codegen_c.metadata import metadata
from ..errors import CompileError, warn
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction
from ..ir.module import USER_CONTEXT, ArgumentKind, LinkageType, LoweredArgument, LoweredFunction, LoweredModule, RuntimeLinkage
from ..ir.target import Target
from ..ir.target_words import TargetFeature, TargetOS
from ..ir.traverse import nodes_of
from ..ir.types import Handle
from ..lower.environment import environment
from ..lower.print_loop_nest import loop_nest_text
from .build import lower_to_module
from .cross import has_runtime, runtime_advice, toolchain_for_files
from .embedded import ConstantBuffer, call_with_constants
from .graph import Requirement, function_expressions
from .runtime_names import Prefixes, macros
from .toolchain import Toolchain

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """One function of a unit: as callers see it, and as it is lowered, which takes the buffers in `constants` too."""

    public: LoweredFunction
    inner: LoweredFunction
    constants: tuple[ConstantBuffer, ...]
    outputs: tuple[Function, ...]

    @property
    def conceptual(self) -> str:
        """The loops as scheduled, before they are lowered."""
        return loop_nest_text(self.outputs)

    def c_text(self, target: str, needs: Sequence[str]) -> str:
        """What follows the code of `inner`: its metadata, or the function that passes the constants on."""
        if self.constants:
            return call_with_constants(self.public, self.inner, self.constants, target, needs)
        return metadata(self.public, target)


@dataclass(frozen=True)
class Unit:
    """Pipelines lowered for files."""

    name: str
    entries: tuple[Entry, ...]
    target: Target
    tools: Toolchain
    prefixes: Prefixes = field(default_factory=dict)
    saved: Callable[[], bytes] | None = None  # the pipeline before it was lowered, for hlpipe files
    schedule: str = ""  # what an autoscheduler gave it, as Python text

    @property
    def contains_runtime(self) -> bool:
        """Whether objects and libraries contain the C runtime, which we have for this machine, and with ziglang for others."""
        return not self.target.has_feature(TargetFeature.NoRuntime) and has_runtime(self.target, self.tools)

    @property
    def joins_runtime(self) -> bool:
        """Whether one object file contains it, too: those of Windows cannot be joined."""
        return self.contains_runtime and self.target.os is not TargetOS.Windows

    def has_runtime(self, what: str, joined: bool = False) -> bool:
        """Whether a file contains the C runtime, `joined` with the pipeline in one object or not. Warns when it should and cannot."""
        inside = self.joins_runtime if joined else self.contains_runtime
        if not inside and not self.target.has_feature(TargetFeature.NoRuntime):
            advice = "write a static_library" if self.contains_runtime else f"{runtime_advice(self.target)}, and link it"
            warn(f"The {what} of {self.name} for {self.target} is without the C runtime: {advice}.")
        return inside

    @property
    def module(self) -> LoweredModule:
        """All of it in loop IR."""
        return LoweredModule(self.name, [e.inner for e in self.entries])

    @property
    def public(self) -> LoweredModule:
        """The functions as callers see them."""
        return LoweredModule(self.name, [e.public for e in self.entries])

    @property
    def described(self) -> LoweredModule:
        """Those of them with metadata, which wrappers are made for."""
        return LoweredModule(self.name, [e.public for e in self.entries if e.public.has_metadata])

    def with_names(self, names: Mapping[str, str]) -> Unit:
        """The same with other names of arguments in metadata and wrappers."""
        entries = tuple(replace(e, public=_renamed(e.public, names), inner=_renamed(e.inner, names)) for e in self.entries)
        return replace(self, entries=entries) if names else self

    def prefix(self, with_runtime: bool) -> str:
        """What the names of the runtime's functions begin with, for code in a file with the runtime, or one that imports it."""
        return self.prefixes.get(RuntimeLinkage.Export if with_runtime else RuntimeLinkage.Import, "")

    def c_text(self, with_runtime: bool = False, for_any_compiler: bool = False) -> str:
        """The C text; it includes our headers. Unless `for_any_compiler`, it may use builtins that only the compiler found here has."""
        described, needs, machine = self.target.to_string(), self.tools.checked_features(), self.tools.machine(self.target)
        return (
            macros(self.prefix(with_runtime))
            + generate(self.module, replace(machine, compiler="any") if for_any_compiler else machine, needs)
            + "\n".join(e.c_text(described, needs) for e in self.entries)
        )


def listing(described: LoweredModule) -> str:
    """C text that follows the code of functions in a shared library: what `load_library` finds them by."""
    rows = "".join(f"    {{{f.qualified}_metadata, {f.qualified}_argv}},\n" for f in described.functions)
    return (f"\nstatic const struct hl_library_entry hl_library_entries[] = {{\n{rows}    {{HL_NULL, HL_NULL}},\n}};\n"
            "HL_EXPORT const struct hl_library_entry *hl_library(void) {\n    return hl_library_entries;\n}\n")


def _renamed(f: LoweredFunction, names: Mapping[str, str]) -> LoweredFunction:
    return f._replace(args=tuple(a._replace(label=names.get(a.shown, a.shown)) for a in f.args))


def checked_name(fn_name: str, target: Target) -> tuple[str, tuple[str, ...] | None]:
    """The C identifier of a function and, if it is one of C++, its namespaces. Raises CompileError for names that cannot be."""
    words = fn_name.split("::")
    c_plus_plus = target.has_feature(TargetFeature.CPlusPlusMangling)
    if not all(_IDENTIFIER.fullmatch(w) for w in words) or len(words) > 1 and not c_plus_plus or words[-1] != c_identifier(words[-1]):
        clean = c_identifier(re.sub(r"\W+", "_", fn_name) or "pipeline")
        hint = "; namespaces need the target feature c_plus_plus_name_mangling" if len(words) > 1 and not c_plus_plus else ""
        raise CompileError(f"{fn_name!r} cannot name a C function; use letters, digits and underscores, for example "
                           f"fn_name={clean!r}{hint}")
    return "_".join(words), tuple(words[:-1]) if c_plus_plus else None


def lower_unit(
    outputs: Sequence[Function],
    args: Sequence[LoweredArgument],
    constants: Sequence[ConstantBuffer],
    fn_name: str,
    target: Target,
    requirements: Sequence[Requirement] = (),
    linkage: LinkageType = LinkageType.ExternalPlusMetadata,
    prefixes: Prefixes = {},  # noqa: B006
) -> Unit:
    """Lower a pipeline whose callers pass `args`; `constants` are the buffers it contains. Raises CompileError for a name that C does not
    allow."""
    if linkage is LinkageType.Internal:
        raise CompileError(f"{fn_name} with LinkageType.Internal could not be called; make it External, or a Func of the pipeline that "
                           "needs it")
    name, namespaces = checked_name(fn_name, target)
    if target.has_feature(TargetFeature.UserContext):
        args = [LoweredArgument(USER_CONTEXT, ArgumentKind.InputScalar, Handle()), *args]
    for row in {c.func for f in environment(outputs).values() for e in function_expressions(f) for c in nodes_of(e, n.Call)}:
        if isinstance(row, ExternFunction) and row.address:
            raise CompileError(f"{row.name} is called at an address of this process ({row.where}), which a library made ahead of time "
                               "cannot do; give its code as source=, library= or objects=")
    inner = name + "_with_constants" if constants else name
    f = lower_to_module(outputs, [*args, *(c.argument for c in constants)], inner, target, requirements).functions[0]
    f = f._replace(display_name=fn_name, namespaces=namespaces, linkage=LinkageType.Internal if constants else linkage)
    hidden = {c.argument.name for c in constants}
    public = f._replace(name=name, args=tuple(a for a in f.args if a.name not in hidden), linkage=linkage)
    return Unit(name, (Entry(public, f, tuple(constants), tuple(outputs)),), target, toolchain_for_files(target), prefixes)


def link_units(name: str, units: Sequence[Unit]) -> Unit:
    """Several units as one. Raises CompileError for two functions of one name, and for targets that differ."""
    entries = [e for u in units for e in u.entries]
    names = [e.public.qualified for e in entries]
    for i, one in enumerate(names):
        if one in names[:i]:
            raise CompileError(f"Two functions of the module {name} are named {one}")
    targets = sorted({u.target.to_string() for u in units})
    if len(targets) != 1:
        raise CompileError(f"Modules of different targets cannot be linked: {' and '.join(targets)}" if targets else f"The module {name} "
                                                                                                                     "has no functions")
    if any(u.prefixes != units[0].prefixes for u in units):
        raise CompileError(f"Modules with different runtime prefixes cannot be linked into {name}: they would call different runtimes")
    return Unit(
        name,
        tuple(entries),
        units[0].target,
        units[0].tools,
        units[0].prefixes,
        schedule="\n".join(u.schedule for u in units if u.schedule),
    )
