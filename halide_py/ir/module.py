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
    """A pipeline ready for code generation: `int name(args...)`, 0 on success."""

    name: str
    args: tuple[LoweredArgument, ...]
    body: Stmt
    display_name: str = ""


@dataclass(eq=False)
class LoweredModule:
    """The functions of one translation unit."""

    name: str
    functions: list[LoweredFunction] = field(default_factory=list)
