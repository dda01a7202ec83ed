"""Callable: a compiled pipeline as a Python function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..driver._ffi import ffi
from ..driver.abi import scalar_cell
from ..driver.compile import CompiledPipeline
from ..errors import HalideError, PipelineError
from .buffer import Buffer
from .expr import literal


class Callable:
    """Call it with the inputs in their order, or by keyword, and the output Buffers last. NumPy arrays serve as Buffers."""

    def __init__(self, compiled: CompiledPipeline, inputs: int) -> None:
        self._compiled, self._inputs = compiled, inputs
        self._names = [a.name.split("$")[0] for a in compiled.args]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        names, expected = self._names, len(self._names)
        if len(args) > expected:
            raise HalideError(f"Error: expected at most {expected} positional arguments to callable {self._compiled.name}, but saw {len(args)}")
        values: list[Any] = list(args) + [None] * (expected - len(args))
        given = [True] * len(args) + [False] * (expected - len(args))
        for key, value in kwargs.items():
            if key not in names:
                raise HalideError(f"Error: unknown argument {key!r} specified via keyword; the arguments are ({', '.join(names)})")
            i = names.index(key)
            if given[i]:
                raise HalideError(f"Error: argument {key!r} specified multiple times")
            values[i], given[i] = value, True
        if not all(given):
            missing = [v for v, g in zip(names, given) if not g]
            raise HalideError(f"Error: expected exactly {expected} arguments to callable {self._compiled.name}, but saw {sum(given)}; missing: {', '.join(missing)}")
        cells, held = [], []
        for i, (a, value) in enumerate(zip(self._compiled.args, values)):
            held.append(self._cell(i, a, value))
            cells.append(ffi.cast("void *", held[-1][0]))
        self._compiled.run(ffi.new("void *[]", cells or [ffi.NULL]))

    def _cell(self, i: int, a: Any, value: Any) -> tuple[Any, Any]:
        if a.is_buffer():
            if isinstance(value, np.ndarray):
                value = Buffer(value)
            if not isinstance(value, Buffer):
                raise HalideError(f"Error: argument {i} ({self._names[i]}) of {self._compiled.name} must be a Buffer or a NumPy array, not {type(value).__name__}")
            if i >= self._inputs and not value.writable():
                raise PipelineError(f"Error: output {self._names[i]} of {self._compiled.name} is on a read-only array")
            return value.raw.c, value
        v = literal(value)
        v = value.item() if v is None and hasattr(value, "item") else v
        if v is None or (isinstance(v, float) and not a.type.is_float()):
            raise HalideError(f"Error: argument {i} ({self._names[i]}) of {self._compiled.name} must be a number of type {a.type}, not {value!r}")
        if not a.type.is_bool() and not a.type.can_represent_value(v):
            raise HalideError(f"Error: argument {i} ({self._names[i]}) of {self._compiled.name}: {v} cannot be represented as {a.type}")
        cell = scalar_cell(a.type, v)
        return cell, cell
