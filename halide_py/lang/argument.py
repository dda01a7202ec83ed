"""Argument: one input of a compiled pipeline as users name it in `compile_to_callable` and the other `compile_to_*`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..driver.graph import Requirement, parameters
from ..errors import CompileError
from ..ir.function import Function
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.parameter import Parameter
from ..ir.types import Type
from .estimates import ArgumentEstimates
from .one_of import one_of


class Argument:
    """An input of a pipeline: `name`, `kind`, `type`, `dimensions`, `argument_estimates`, all writable.

    `Argument(x)` of a Param, ImageParam, OutputImageParam or Buffer. Raises TypeError for anything else.
    """

    __slots__ = ("name", "kind", "type", "dimensions", "argument_estimates", "param")

    def __init__(self, source: Any = None, *, im: Any = None, param: Any = None, buffer: Any = None) -> None:
        self.name, self.kind, self.type, self.dimensions = "", ArgumentKind.InputScalar, Type(), 0
        self.argument_estimates = ArgumentEstimates()
        self.param: Parameter | None = None
        if not all(x is None for x in (source, im, param, buffer)):
            source = one_of("Argument()", source=source, im=im, param=param, buffer=buffer)
            self._take(source if isinstance(source, Parameter) else getattr(source, "param", None), source)

    def _take(self, p: Parameter | None, source: Any) -> None:
        if not isinstance(p, Parameter):
            raise TypeError(f"an argument must be a Param, ImageParam, Buffer or Argument, not {source!r}")
        self.param, self.name, self.type, self.dimensions = p, p.name, p.type, p.dimensions
        self.kind = ArgumentKind.InputBuffer if p.is_buffer else ArgumentKind.InputScalar
        self.argument_estimates = ArgumentEstimates.of(p)

    def __repr__(self) -> str:
        shape = f", {self.dimensions} dimensions" if self.kind is not ArgumentKind.InputScalar else ""
        return f"<halide.Argument {self.kind.name} '{self.name}' of type {self.type}{shape}>"


def infer_arguments(outputs: Sequence[Function], requirements: Sequence[Requirement] = ()) -> list[Argument]:
    """The inputs that the outputs depend on: buffers by name, then scalars by name."""
    return [Argument(p) for p in parameters(outputs, requirements)]


def is_embedded(p: Parameter) -> bool:
    """Whether a parameter stands for a concrete Buffer used in an expression, rather than an ImageParam whose data is given for each
    run."""
    return p.is_buffer and p.constant


def _given(a: Any) -> Any:
    if a is None:
        raise TypeError("an argument must be a Param, ImageParam, Buffer or Argument, not None")
    return a


def argument_list(given: Any) -> list[Any]:
    """The arguments as users give them. Raises TypeError for what is no list."""
    if not isinstance(given, Iterable):
        raise TypeError(f"the arguments of a pipeline are a list of Params, ImageParams, Buffers and Arguments, not {given!r}")
    return list(given)


def lowered_arguments(
    given: Iterable[Any], outputs: Sequence[Function], requirements: Sequence[Requirement]
) -> tuple[LoweredArgument, ...]:
    """The arguments users give as those of lowering, then the Buffers used in expressions that are not among them.

    Raises CompileError when an input of the pipeline is missing, or one is given twice; TypeError for what is no argument.
    """
    chosen = [a if isinstance(a, Argument) else Argument(source=_given(a)) for a in argument_list(given)]
    needed = {p.name: p for p in parameters(outputs, requirements)}
    names = [a.name for a in chosen]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise CompileError(f"Argument {name} is given twice in the argument list: {' '.join(names)}")
    missing = [p for p in needed.values() if p.name not in names and not is_embedded(p)]
    if missing:
        kind = "buffer" if missing[0].is_buffer else "parameter"
        raise CompileError(f"Generated code refers to {kind} {missing[0].name}, which was not found in the argument list.\n"
                           f"Argument list specified: {' '.join(names) or '(empty)'}\nParameters referenced: {' '.join(needed)}")
    embedded = [Argument(p) for p in needed.values() if p.name not in names]
    return tuple(LoweredArgument(a.name, a.kind, a.type, a.dimensions, needed.get(a.name, a.param)) for a in [*chosen, *embedded])
