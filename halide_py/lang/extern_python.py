"""Python functions as extern stages: a C callback that shows them `halide_buffer_t`s as NumPy arrays, and answers bounds queries for them.

An exception of the function ends the pipeline; the HalideError that is raised then has it as its cause.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import CompileError, raised_by_callbacks
from ..ir.types import Bool, Float, Type
from .storage import dtype_of

Region = list[tuple[int, int]]  # (min, extent) a dimension


class _Dimension(ctypes.Structure):
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_uint64),
        ("interface", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("dimensions", ctypes.c_int32),
        ("dim", ctypes.POINTER(_Dimension)),
        ("padding", ctypes.c_void_p),
    ]


_SCALARS: dict[Type, Any] = {Float(32): ctypes.c_float, Float(64): ctypes.c_double, Bool(): ctypes.c_bool}


def _c_type(t: Type) -> Any:
    if t.is_handle():
        return ctypes.POINTER(_Buffer)
    return _SCALARS.get(t) or getattr(ctypes, f"c_{'int' if t.is_int() else 'uint'}{t.bits()}")


def _region(b: _Buffer) -> Region:
    return [(b.dim[d].min, b.dim[d].extent) for d in range(b.dimensions)]


def _view(b: _Buffer, region: Region) -> np.ndarray[Any, Any]:
    """The part of a buffer in a region as an array, last axis dimension 0."""
    dtype = dtype_of(Type(b.code, b.bits, 1))
    shape, strides, offset, first, last = [], [], 0, 0, 0
    for d, (low, extent) in enumerate(region):
        dim = b.dim[d]
        if low < dim.min or low + extent > dim.min + dim.extent:
            raise ValueError(f"dimension {d} is needed from {low} to {low + extent - 1}, but the buffer holds {dim.min} to "
                             f"{dim.min + dim.extent - 1}")
        step = dim.stride * dtype.itemsize
        offset += (low - dim.min) * step
        reach = max(extent - 1, 0) * step
        first, last = first + min(reach, 0), last + max(reach, 0)
        shape.append(extent)
        strides.append(step)
    start = (b.host or 0) + offset + first
    memory: Any = (ctypes.c_char * (last - first + dtype.itemsize)).from_address(start)
    view: np.ndarray[Any, Any] = np.ndarray(shape[::-1], dtype, memory, -first, strides[::-1])
    return view


class PythonStage:
    """The C side of one Python function. `dimensions`: those of each buffer argument, None for a scalar."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        regions: Callable[..., Any] | None,
        dimensions: Sequence[int | None],
        rank: int,
        types: Sequence[Type],
        outputs: int,
    ) -> None:
        if not callable(function) or regions is not None and not callable(regions):
            raise TypeError(f"define_extern of Func {name}: function= and regions= must be callable")
        buffers = [t.is_handle() for t in types[:len(types) - outputs]]
        if regions is None and any(d not in (None, rank) for d in dimensions):
            raise CompileError(f"define_extern of Func {name}: an argument has other dimensions than the {rank} of the output; say with "
                               "regions= what is needed of each")
        if sum(buffers) != sum(d is not None for d in dimensions):
            raise CompileError(f"define_extern of Func {name}: a Func with several values cannot be passed to a Python function; pass a "
                               "Func for each value")
        self.name, self.function, self.regions, self.buffers, self.outputs = name, function, regions, buffers, outputs
        self.pointer: Any = ctypes.CFUNCTYPE(ctypes.c_int, *map(_c_type, types))(self._call)

    def _call(self, *args: Any) -> int:
        try:
            given = [a.contents if isinstance(a, ctypes.POINTER(_Buffer)) else a for a in args]
            inputs, outputs = given[:len(given) - self.outputs], given[len(given) - self.outputs:]
            needed = self._needed(_region(outputs[0]), [a for a, is_buffer in zip(inputs, self.buffers) if not is_buffer])
            if any(isinstance(a, _Buffer) and not a.host for a in given):
                self._answer([a for a in inputs if isinstance(a, _Buffer)], needed)
            else:
                self._compute(inputs, outputs, needed)
            return 0
        except BaseException as e:  # noqa: BLE001  (no exception may pass through C)
            raised_by_callbacks.append(e)
            return -1

    def _needed(self, output: Region, scalars: list[Any]) -> list[Region]:
        count = sum(self.buffers)
        if self.regions is None:
            return [output] * count
        found = [[(int(low), int(extent)) for low, extent in r] for r in self.regions(output, *scalars)]
        if len(found) != count:
            raise ValueError(f"regions= of the extern stage {self.name} gave {len(found)} regions for {count} buffer arguments")
        return found

    def _answer(self, inputs: list[_Buffer], needed: list[Region]) -> None:
        for b, region in zip(inputs, needed):
            if len(region) != b.dimensions:
                raise ValueError(f"regions= of the extern stage {self.name} gave {len(region)} (min, extent) pairs for {b.dimensions} "
                                 "dimensions")
            for d, (low, extent) in enumerate(region):
                b.dim[d].min, b.dim[d].extent = low, extent

    def _compute(self, inputs: list[Any], outputs: list[_Buffer], needed: list[Region]) -> None:
        regions = iter(needed)
        args = [_view(a, next(regions)) if is_buffer else a for a, is_buffer in zip(inputs, self.buffers)]
        views = [_view(b, _region(b)) for b in outputs]
        returned = self.function(*args, *views)
        if returned is None:
            return
        values = list(returned) if isinstance(returned, tuple) else [returned]
        if len(values) != len(views):
            raise ValueError(f"the function of the extern stage {self.name} returned {len(values)} arrays for {len(views)} outputs")
        for view, value in zip(views, values):
            view[...] = value
