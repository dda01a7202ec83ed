"""What lowering produces and code generation consumes: functions in loop IR with their arguments."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .names import plain_names
from .nodes import Stmt
from .parameter import Parameter
from .types import Type

USER_CONTEXT = "__user_context"  # the pointer that callers pass first and hooks receive, with the target feature user_context


class ArgumentKind(enum.IntEnum):
    """Which way an argument's data goes."""

    InputScalar = 0
    InputBuffer = 1
    OutputBuffer = 2


class LinkageType(enum.IntEnum):
    """Which entries of a function callers see; Internal: none, Argv adds `NAME_argv`, Metadata `NAME_metadata` to that."""

    External = 0
    ExternalPlusMetadata = 1
    ExternalPlusArgv = 2
    Internal = 3


class RuntimeLinkage(enum.IntEnum):
    """Which functions of the runtime a prefix is for: those that pipelines call, those a runtime defines for them, its other ones."""

    Import = 0
    Export = 1
    Internal = 2


class NameMangling(enum.IntEnum):
    """How a C function is named in object files: Default is what the target says."""

    Default = 0
    C = 1
    CPlusPlus = 2


class LoweredArgument(NamedTuple):
    """One argument of the compiled function, in call order. In the body a scalar is Variable `name`; a buffer is Variable
    `name.buffer` (a handle to its `halide_buffer_t`), with `name.min.0`, `name.extent.0`, `name.stride.0`, ... bound by lets,
    and Loads and Stores of `name`."""

    name: str
    kind: ArgumentKind
    type: Type
    dimensions: int = 0
    param: Parameter | None = None
    label: str = ""  # what callers know it by, if that is not `name`

    @property
    def shown(self) -> str:
        """What callers know it by."""
        return self.label or self.name

    def is_buffer(self) -> bool:
        """Whether it is passed as `halide_buffer_t *`."""
        return self.kind is not ArgumentKind.InputScalar


def labelled(args: Sequence[LoweredArgument]) -> tuple[LoweredArgument, ...]:
    """The arguments with what callers know them by."""
    return tuple(a._replace(label=name) for a, name in zip(args, plain_names([a.name for a in args])))


class LoweredFunction(NamedTuple):
    """A pipeline ready for code generation: `int name(args...)`, 0 on success. `display_name` is what users call it, namespaces
    included."""

    name: str
    args: tuple[LoweredArgument, ...]
    body: Stmt
    display_name: str = ""
    namespaces: tuple[str, ...] | None = None  # of a function with C++ linkage; None for C linkage
    linkage: LinkageType = LinkageType.ExternalPlusMetadata
    profiled: bool = False  # with the marks of the profiler
    debugged: str = ""  # the target, if the function tells how it is called
    strict: bool = False  # all its float arithmetic is as if inside strict_float()

    @property
    def has_argv(self) -> bool:
        """Whether there is `NAME_argv`."""
        return self.linkage in (LinkageType.ExternalPlusMetadata, LinkageType.ExternalPlusArgv)

    @property
    def has_metadata(self) -> bool:
        """Whether there is `NAME_metadata`, by which wrappers and tools know the function."""
        return self.linkage is LinkageType.ExternalPlusMetadata

    @property
    def simple(self) -> str:
        """Its name inside its namespaces."""
        return self.name if self.namespaces is None else self.display_name.rpartition("::")[2]

    @property
    def qualified(self) -> str:
        """Its name from outside its namespaces."""
        return "::".join([*(self.namespaces or ()), self.simple])


@dataclass(eq=False)
class LoweredModule:
    """The functions of one translation unit."""

    name: str
    functions: list[LoweredFunction] = field(default_factory=list)
