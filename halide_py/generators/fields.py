"""What a Generator class declares: GeneratorParam, InputBuffer, InputScalar, OutputBuffer, OutputScalar.

The objects in the class body only say what is wanted. Each instance of the Generator gets its own ImageParams, Params and Funcs in their
place, made by `bind` once types and dimensions are known.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.names import anonymous_name, unique_name
from ..ir.parameter import Parameter as ParameterData
from ..ir.types import Type
from ..lang.buffer import Buffer
from ..lang.func import Func
from ..lang.param import ImageParam, Param
from .types import type_of, types_of


class ArgInfoDirection(enum.IntEnum):
    """Which way a field's data goes."""

    Input = 0
    Output = 1


class ArgInfoKind(enum.IntEnum):
    """What a field of a Generator is: a scalar, a Func or a buffer."""

    Scalar = 0
    Function = 1
    Buffer = 2


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """One input or output of a Generator, its type and dimensions settled."""

    name: str = ""
    dir: ArgInfoDirection = ArgInfoDirection.Input
    kind: ArgInfoKind = ArgInfoKind.Scalar
    types: Sequence[Type] = field(default_factory=list)
    dimensions: int = 0

    def check(self, types: Sequence[Type], dimensions: int) -> None:
        """Raises CompileError unless these are the types and dimensions that the field has."""
        if len(types) != len(self.types):
            raise CompileError(f"Type mismatch for {self.name}: expected {len(self.types)} types but saw {len(types)}")
        for i, (want, saw) in enumerate(zip(self.types, types)):
            if want is not saw:
                raise CompileError(f"Type mismatch for {self.name}:{i}: expected {want} saw {saw}")
        if dimensions != self.dimensions:
            raise CompileError(f"Dimensions mismatch for {self.name}: expected {self.dimensions} saw {dimensions}")


class GeneratorParam:
    """A compile-time parameter with its default, which also gives its type: `GeneratorParam(True)`, of 3, 0.5, "planar" or a Type.

    In an instance the attribute is the value. The command line sets it by `name=value`.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


class InputBuffer(ImageParam):
    """An input buffer: `InputBuffer(UInt(8), 2)`. A type or number of dimensions that is None is set by `name.type`, `name.dim`.

    In an instance the attribute is an ImageParam.
    """

    direction, kind = ArgInfoDirection.Input, ArgInfoKind.Buffer

    def __init__(self, type: Type | None, dimensions: int | None) -> None:
        self.param = ParameterData(anonymous_name("p"), type_of(type), True, _dimensions(dimensions))

    def declared(self) -> tuple[list[Type], int]:
        """Types and dimensions as declared: no types, or -1, for what is left open."""
        return types_of(self.type()), self.dimensions()

    @staticmethod
    def bind(info: ArgInfo, value: Any) -> ImageParam:
        """The instance's ImageParam: `value` if it is one, or over a Buffer, which the pipeline contains. Raises CompileError for a value
        that does not fit."""
        if value is None:
            return ImageParam.of(ParameterData(_reserved(info.name), info.types[0], True, info.dimensions))
        if not isinstance(value, (Buffer, ImageParam)):
            raise CompileError(f"Input {info.name} requires an ImageParam or Buffer argument when using call(), but saw {value}")
        if not value.defined():
            raise CompileError(f"Cannot set the value for {info.name} to an undefined value.")
        info.check([value.type()], value.dimensions())
        if isinstance(value, ImageParam):
            return value
        return ImageParam.of(ParameterData(unique_name(info.name), info.types[0], True, info.dimensions, buffer=value, constant=True))


class Given(Param):
    """A scalar input with the number that `call()` was given, which the pipeline contains."""

    def as_node(self) -> n.Expr:
        return b.const(self.param.type, self.param.value)

    def _limit(self, e: Any, which: str) -> n.Expr | None:
        """Raises CompileError when the number is beyond a limit that is known."""
        limit = super()._limit(e, which)
        known, value = None if limit is None else b.as_const(limit), self.param.value
        if known is not None and (value < known if which == "minimum" else value > known):
            raise CompileError(f"Input {self.param.name.partition('$')[0]} was given {value}, and its {which} is {known}.")
        return limit


class InputScalar(Param):
    """An input number: `InputScalar(Float(32))`. In an instance the attribute is a Param."""

    direction, kind = ArgInfoDirection.Input, ArgInfoKind.Scalar

    def __init__(self, type: Type | None) -> None:
        self.param = ParameterData(anonymous_name("p"), type_of(type), False)

    def declared(self) -> tuple[list[Type], int]:
        """Types and dimensions as declared."""
        return types_of(self.type()), 0

    @staticmethod
    def bind(info: ArgInfo, value: Any) -> Param:
        """The instance's Param: `value` if it is one, or a number that the pipeline contains. Raises CompileError for a value that does
        not fit."""
        if value is None:
            free = Param(info.types[0])
            free.param.name = _reserved(info.name)
            return free
        if isinstance(value, Param):
            info.check([value.type()], 0)
            return value
        if not isinstance(value, (bool, int, float)):
            raise CompileError(f"Input {info.name} requires a Param (or scalar literal) argument when using call(), but saw {value}.")
        return Given(info.types[0], info.name, value)


class OutputBuffer(Func):
    """An output: `OutputBuffer(Float(32), 2)`; several types make it Tuple-valued. What is None is set by `name.type`, `name.dim`.

    In an instance the attribute is a Func, which `generate` has to define.
    """

    direction, kind = ArgInfoDirection.Output, ArgInfoKind.Buffer

    def __init__(self, types: Type | None, dimensions: int | None) -> None:
        super().__init__(types_of(types), _dimensions(dimensions), "")

    def declared(self) -> tuple[list[Type], int]:
        """Types and dimensions as declared: no types, or -1, for what is left open."""
        return list(self.function.required_types), self.function.required_dimensions

    @staticmethod
    def bind(info: ArgInfo, value: Any = None) -> Func:
        """The instance's Func, not defined yet."""
        return Func(list(info.types), info.dimensions, info.name)


class OutputScalar(OutputBuffer):
    """An output of one number: `self.total[()] = ...`."""

    def __init__(self, types: Type | None) -> None:
        super().__init__(types, 0)


Input = (InputBuffer, InputScalar)
Output = (OutputBuffer, OutputScalar)


def _dimensions(given: int | None) -> int:
    """A declared number of dimensions; -1 is an open one."""
    if given is not None and (not isinstance(given, int) or given < 0):
        raise TypeError(f"the number of dimensions of an input or output is an int from 0 on, or None, not {given!r}")
    return -1 if given is None else given


def _reserved(name: str) -> str:
    """A field's name as its argument bears it, plain; who uses the name later gets a number."""
    unique_name(name)
    return name

