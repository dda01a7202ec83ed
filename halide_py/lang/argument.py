"""Argument: one input of a pipeline compiled ahead of time or to a Callable, in call order."""

from __future__ import annotations

from typing import Any

from ..errors import CompileError
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.parameter import Parameter
from ..ir.types import Type


class Argument:
    """An input: made from an ImageParam, a Param or a Buffer; `name`, `kind`, `type` and `dimensions` say what it is."""

    def __init__(self, source: Any = None) -> None:
        p: Parameter | None = source if isinstance(source, Parameter) else getattr(source, "param", None)
        self.param = p
        self.name = p.name if p else ""
        self.kind = ArgumentKind.InputBuffer if p and p.is_buffer else ArgumentKind.InputScalar
        self.type = p.type if p else Type()
        self.dimensions = p.dimensions if p else 0

    def lowered(self) -> LoweredArgument:
        """What lowering takes."""
        return LoweredArgument(self.name, self.kind, self.type, self.dimensions, self.param)

    def __repr__(self) -> str:
        return f"<halide.Argument {self.name}>"


def to_argument(x: Any) -> Argument:
    """An Argument for anything that converts to one. Raises CompileError for the rest."""
    if isinstance(x, Argument):
        return x
    if getattr(x, "param", None) is None:
        raise CompileError(f"{x!r} is no argument of a pipeline; give ImageParams, Params, Buffers or Arguments")
    return Argument(x)
