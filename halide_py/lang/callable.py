"""Callable: a compiled pipeline as a Python function of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import driver
from ..driver.abi import RawBuffer
from ..errors import CompileError
from ..ir.module import LoweredArgument, labelled
from ..ir.parameter import Parameter
from ..ir.types import Type
from .buffer import Buffer
from .storage import Array, wrap


class Callable:
    """Made by `compile_to_callable`: `c(inputs..., outputs...)`, by position, by keyword, or both.

    Buffers, NumPy arrays and other objects with the buffer protocol go in without a copy; scalars are Python or NumPy numbers. If a buffer
    is a bounds query nothing is computed and the shapes needed are written into the queries. Gives None.
    Raises CompileError for wrong counts, names or kinds of arguments, PipelineError when the pipeline's checks fail.
    """

    def __init__(
        self, compiled: driver.compile.LoadedPipeline, inputs: int, first: int, buffers: Sequence[tuple[int, Parameter]] = ()
    ) -> None:
        """Of a pipeline's arguments the first `inputs` and the outputs from place `first` on are the callable's; between them are
        `buffers`, the Buffers that expressions use directly."""
        self._compiled = compiled
        args = compiled.args
        places = [*range(inputs), *range(first, len(args))]
        public = labelled([args[i] for i in places])
        self._names = [a.shown for a in public]
        self._places = [(i, a, i >= first) for i, a in zip(places, public)]
        self._embedded = [(i, p) for i, p in buffers if i >= inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs or len(args) != len(self._places):
            args = self._by_name(args, kwargs)
        compiled = self._compiled
        block = compiled.block()
        c, cells, slots = block.c, block.cells, block.slots
        keep = []
        try:
            for (i, a, is_output), value in zip(self._places, args):
                cell = cells[i]
                if cell is not None:
                    if type(value) is cell.kind:
                        cell.c[0] = value
                    else:
                        cell.set(_scalar(a, value))
                    continue
                if type(value) is np.ndarray:
                    raw = slots[i].take(value) or slots[i].fill(*_checked(a, value))
                elif isinstance(value, Buffer):
                    raw = value.storage.raw or value.raw
                else:
                    raw = RawBuffer.of_array(*_checked(a, value))
                    keep.append(raw)
                if is_output and not raw.writable:
                    raise CompileError(f"Output buffer {a.shown} is on read-only memory")
                c[i] = raw.c
            for i, p in self._embedded:
                c[i] = p.buffer.raw.c
            code = compiled.entry(c)
        except OverflowError:
            raise CompileError(self._too_large(args)) from None
        finally:
            compiled.release(block)
        if code:
            compiled.fail(code)

    def _too_large(self, args: Sequence[Any]) -> str:
        """Which scalar its C type cannot hold."""
        bad = [f"{name}: {value} does not fit {a.type}" for name, (_, a, _), value in zip(self._names, self._places, args)
               if isinstance(value, int) and not a.is_buffer() and not a.type.can_represent_value(value)]
        return f"Argument {'; '.join(bad)}"

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


def _checked(a: LoweredArgument, value: Any) -> tuple[Type, Array]:
    """An array and the Type of its elements."""
    try:
        array, t = wrap(value)
    except TypeError:
        raise CompileError(f"Argument {a.shown}: object of type {type(value).__name__!r} is not an instance of 'buffer'") from None
    return t, array


def _scalar(a: LoweredArgument, value: Any) -> Any:
    """A number for a scalar argument. Raises CompileError for what is none, or does not fit."""
    number = value.item() if isinstance(value, np.generic) else value
    t = a.type
    if not isinstance(number, (bool, int, float)):
        raise CompileError(f"Argument {a.shown}: object of type {type(value).__name__!r} is not an instance of a number, but {t} is needed")
    if t.is_float():
        return float(number)
    fits = isinstance(number, int) if t.is_handle() else number in (0, 1) if t.is_bool() else t.can_represent_value(number)
    if not fits or isinstance(number, float):
        raise CompileError(f"Argument {a.shown}: {number} is not an instance of {t}, or does not fit it")
    return number
