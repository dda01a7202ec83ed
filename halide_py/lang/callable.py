"""Callable: a compiled pipeline as a Python function of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..driver.abi import ArgumentBlock, RawBuffer
from ..errors import CompileError, PipelineError
from ..ir.function import Function
from ..ir.module import ArgumentKind, LoweredArgument
from .buffer import Buffer
from .program import Program
from .storage import TYPE_OF, wrap


class Callable:
    """Made by `compile_to_callable`: `c(inputs..., outputs...)`, by position, by keyword, or both.

    Buffers, NumPy arrays and other objects with the buffer protocol go in without a copy; scalars are Python or NumPy numbers. If a buffer is a
    bounds query nothing is computed and the shapes needed are written into the queries. Gives None.
    Raises CompileError for wrong counts, names or kinds of arguments, PipelineError when the pipeline's checks fail.
    """

    def __init__(self, program: Program, inputs: Sequence[LoweredArgument], outputs: Sequence[Function]) -> None:
        self._program = program
        self._compiled = program.compiled
        args = self._compiled.args
        first = program.first_output
        self._places = [*range(len(inputs)), *range(first, len(args))]  # between them are embedded buffers
        self._args = [args[i] for i in self._places]
        self._embedded = [args[i].param for i in range(len(inputs), first)]
        self._names = [a.name.partition("$")[0] if a.kind is ArgumentKind.OutputBuffer else a.name for a in self._args]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs or len(args) != len(self._places):
            args = self._by_name(args, kwargs)
        compiled = self._compiled
        block = compiled.block()
        try:
            keep = [self._bind(block, i, a, value) for i, a, value in zip(self._places, self._args, args)]
            for i, p in enumerate(self._embedded, len(self._places) - len(self._program.output_args)):
                if p is None or p.buffer is None:
                    raise PipelineError(f"Error in pipeline {compiled.name}: an embedded buffer is gone")
                block.c[i] = p.buffer.raw.c
            code = compiled.entry(block.c)
            del keep
        finally:
            compiled.release(block)
        if code:
            compiled.fail(code)

    def _bind(self, block: ArgumentBlock, i: int, a: LoweredArgument, value: Any) -> RawBuffer | None:
        """Put one argument into the block; gives what must live during the call."""
        cell = block.cells[i]
        if cell is not None:
            cell.set(_scalar(a, value))
            return None
        raw = _raw(a, value)
        if a.kind is ArgumentKind.OutputBuffer and not raw.writable:
            raise CompileError(f"Output buffer {a.name} is on read-only memory")
        block.c[i] = raw.c
        return raw

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All values in order, from positional and keyword ones."""
        count = len(self._names)
        if len(args) > count:
            raise CompileError(f"Expected at most {count} positional arguments, but saw {len(args)}.")
        if not kwargs:
            raise CompileError(f"Expected exactly {count} positional arguments, but saw {len(args)}.")
        values = dict(zip(self._names, args))
        for name, value in kwargs.items():
            if name not in self._names:
                raise CompileError(f"Unknown argument '{name}' specified via keyword. The arguments are {', '.join(self._names)}.")
            if name in values:
                raise CompileError(f"Argument {name} specified multiple times.")
            values[name] = value
        for name in self._names:
            if name not in values:
                raise CompileError(f"Argument {name} was not specified by either positional or keyword argument.")
        return tuple(values[name] for name in self._names)

    def __repr__(self) -> str:
        return f"<halide.Callable {self._compiled.name}({', '.join(self._names)})>"


def _raw(a: LoweredArgument, value: Any) -> RawBuffer:
    """The C view of a buffer argument."""
    if isinstance(value, Buffer):
        return value.storage.raw or value.raw
    if type(value) is np.ndarray and value.flags.aligned:
        t = TYPE_OF.get(value.dtype)
        if t is not None and not any(s % value.itemsize for s in value.strides):
            return RawBuffer.of_array(t, value)
    try:
        array, t = wrap(value)
    except TypeError:
        raise CompileError(f"Argument {a.name}: object of type {type(value).__name__!r} is not an instance of 'buffer'") from None
    return RawBuffer.of_array(t, array)


def _scalar(a: LoweredArgument, value: Any) -> Any:
    """A number for a scalar argument."""
    number = value.item() if isinstance(value, np.generic) else value
    t = a.type
    if t.is_handle():
        fits = isinstance(number, int)
    elif not isinstance(number, (bool, int, float)):
        raise CompileError(f"Argument {a.name}: object of type {type(value).__name__!r} is not an instance of a number, but {t} is needed")
    elif t.is_float():
        return float(number)
    elif t.is_bool():
        fits = number in (0, 1)
    else:
        fits = not isinstance(number, float) and t.can_represent_value(int(number))
    if not fits:
        raise CompileError(f"Argument {a.name}: {number} is not an instance of {t}, or does not fit it")
    return number


