"""The C side as Python sees it: the runtime library, buffers in the layout of `halide_buffer_t`, blocks of arguments."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.types import Type
from ._ffi import ffi

RUNTIME_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_runtime")
INCLUDE_DIR = os.path.join(RUNTIME_DIR, "include")
SOURCE_DIR = os.path.join(RUNTIME_DIR, "src")
STATIC_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.a")
SHARED_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.so")
HOST_DIRTY, DEVICE_DIRTY = 1, 2  # bits of halide_buffer_t.flags


@ffi.callback("void(void *, const char *)")  # type: ignore[untyped-decorator]
def _print(user_context: Any, message: Any) -> None:
    """What pipelines print goes where Python's print goes."""
    sys.stdout.write(ffi.string(message).decode("utf-8", "replace"))


def install_dir() -> str:
    """The folder with the C runtime: `include/hl_runtime.h`, and libraries."""
    return RUNTIME_DIR


@functools.cache
def runtime() -> Any:
    """The runtime library, loaded once with its symbols visible to pipelines. Raises InternalError when it was not built."""
    if not os.path.exists(SHARED_RUNTIME):
        raise InternalError("The C runtime of halide_py is missing: build it with `python setup.py build_runtime --inplace`, or install "
                            "the package")
    library = ffi.dlopen(SHARED_RUNTIME, ffi.RTLD_NOW | ffi.RTLD_GLOBAL)
    library.halide_set_custom_print(_print)
    atexit.register(library.halide_set_custom_print, ffi.NULL)  # no callback into an interpreter that is gone
    return library


def set_num_threads(n: int) -> int:
    """Threads that work on parallel loops, the caller included; 0: the default, `HL_NUM_THREADS` or the processors there are.

    Gives the previous number. Raises ValueError for a negative one.
    """
    if n < 0:
        raise ValueError(f"set_num_threads({n}): the number of threads must not be negative")
    return int(runtime().halide_set_num_threads(n))


def get_num_threads() -> int:
    """Threads that work on parallel loops, the caller included."""
    return int(runtime().halide_get_num_threads())


def memoization_cache_set_size(size: int) -> None:
    """Bytes that the results of memoized Funcs may take, in this process; 0: the default, 1 MiB. Results unused for longest go first.

    Raises ValueError for a negative size.
    """
    if size < 0:
        raise ValueError(f"memoization_cache_set_size({size}): the size must not be negative")
    runtime().halide_memoization_cache_set_size(size)


def memoization_cache_evict(eviction_key: int) -> None:
    """Forget all results of Funcs memoized with `EvictionKey(eviction_key)`."""
    runtime().halide_memoization_cache_evict(ffi.NULL, eviction_key & 0xFFFF_FFFF_FFFF_FFFF)


def memoization_cache_cleanup() -> None:
    """Forget the results of all memoized Funcs."""
    runtime().halide_memoization_cache_cleanup()


_BUFFER, _DIMENSIONS, _BYTES, _ADDRESS = (ffi.typeof(t) for t in ("halide_buffer_t *", "halide_dimension_t[]", "uint8_t[]", "uintptr_t"))
_HEAD = struct.Struct("=QQQQBBHi")  # device, device_interface, host, flags, type, dimensions
_DIMENSION = struct.Struct("=iiiI")
_DIMENSIONS_OF = [struct.Struct("=" + "iiiI" * d) for d in range(9)]


_numbers = itertools.count()


class RawBuffer:
    """A `halide_buffer_t` on memory that `owner` keeps alive; dimensions innermost first, strides in elements. Host 0: a bounds query.
    No two have the same `number`."""

    __slots__ = ("c", "dims", "owner", "writable", "number")

    def __init__(self, t: Type, shape: Sequence[tuple[int, int, int]], host: int, owner: Any, writable: bool = True) -> None:
        count = len(shape)
        self.c = c = ffi.new(_BUFFER)
        self.dims = ffi.new(_DIMENSIONS, count or 1)
        _HEAD.pack_into(ffi.buffer(c), 0, 0, 0, host, 0, t.code().value, t.bits(), 1, count)
        if count:
            pack = _DIMENSIONS_OF[count] if count < len(_DIMENSIONS_OF) else struct.Struct("=" + "iiiI" * count)
            pack.pack_into(ffi.buffer(self.dims), 0, *[v for low, extent, stride in shape for v in (low, extent, stride, 0)])
        c.dim = self.dims
        self.owner, self.writable, self.number = owner, writable, next(_numbers)

    @staticmethod
    def query(t: Type, sizes: Sequence[tuple[int, int]]) -> RawBuffer:
        """A bounds query that asks for (min, extent) of each dimension."""
        return RawBuffer(t, [(low, extent, 0) for low, extent in sizes], 0, None)

    @staticmethod
    def of_array(t: Type, array: np.ndarray[Any, Any]) -> RawBuffer:
        """On a NumPy array of elements of type `t`: the last axis becomes dimension 0, mins are 0. The strides must be multiples of the
        element."""
        shape = [(0, extent, stride) for extent, stride in zip(array.shape[::-1], element_strides(array.T))]
        return RawBuffer(t, shape, address_of(array), array, array.flags.writeable)

    def shape(self) -> list[tuple[int, int, int]]:
        """(min, extent, stride) of each dimension as it is now; a bounds query changes it."""
        count = self.c.dimensions
        return [d[:3] for d in _DIMENSION.iter_unpack(ffi.buffer(self.dims, 16 * count))] if count else []

    def address(self) -> int:
        """Where the view is in memory, for as long as this lives."""
        return int(ffi.cast(_ADDRESS, self.c))

    def is_query(self) -> bool:
        """Whether it has no memory."""
        return not self.c.host


def element_strides(array: np.ndarray[Any, Any]) -> list[int]:
    """The strides, in elements, of an array whose axis d is dimension d. Without elements, where NumPy gives zeros, those of a dense
    one."""
    if array.size:
        return [stride // array.itemsize for stride in array.strides]
    strides, step = [], 1
    for extent in array.shape:
        strides.append(step)
        step *= max(extent, 1)
    return strides


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element, also for arrays that may not be written."""
    if array.flags.c_contiguous and not array.dtype.hasobject:
        return int(ffi.cast(_ADDRESS, ffi.from_buffer(_BYTES, array)))
    return int(array.__array_interface__["data"][0])


class ArraySlot:
    """A C view that is used again for arrays of the same shape, strides and type: only the address changes."""

    __slots__ = ("raw", "_dtype", "_shape", "_strides")

    def __init__(self) -> None:
        self.raw: RawBuffer | None = None

    def take(self, array: np.ndarray[Any, Any]) -> RawBuffer | None:
        """The view, moved to a C-contiguous array like the last one; None for any other array."""
        raw = self.raw
        if raw is None or array.dtype is not self._dtype or array.shape != self._shape or array.strides != self._strides:
            return None
        flags = array.flags
        if not flags.c_contiguous:
            return None
        raw.c.host = ffi.from_buffer(_BYTES, array)
        raw.writable = flags.writeable
        return raw

    def fill(self, t: Type, array: np.ndarray[Any, Any]) -> RawBuffer:
        """A new view of an array, kept for the next like it. It does not keep the array alive."""
        raw = RawBuffer.of_array(t, array)
        raw.owner = None
        self.raw, self._dtype, self._shape, self._strides = raw, array.dtype, array.shape, array.strides
        return raw


_SCALARS = {"f32": "float *", "f64": "double *", "f16": "uint16_t *", "handle": "uint64_t *"}


class ScalarCell:
    """A C variable of type `t`; its address goes into an argument block. `c[0]` may be set to Python numbers of class `kind` at once."""

    __slots__ = ("c", "kind")

    def __init__(self, t: Type) -> None:
        special = "handle" if t.is_handle() else f"f{t.bits()}" if t.is_float() else ""
        self.c = ffi.new(_SCALARS[special] if special else f"{'int' if t.is_int() else 'uint'}{t.bytes() * 8}_t *")
        self.kind = None if special == "f16" else float if t.is_float() else bool if t.is_bool() else int

    def set(self, value: int | float | bool) -> None:
        """The value for the next call. Raises OverflowError for one that does not fit."""
        self.c[0] = int(np.float16(value).view(np.uint16)) if self.kind is None else value


class ArgumentBlock:
    """What a pipeline's entry takes: addresses of scalars and buffers. One call at a time may use it."""

    __slots__ = ("c", "cells", "slots")

    def __init__(self, scalars: Sequence[Type | None]) -> None:
        """One place an argument: the Type of a scalar, None for a buffer."""
        self.c = ffi.new("void *[]", max(len(scalars), 1))
        self.cells = [None if t is None else ScalarCell(t) for t in scalars]
        self.slots = [ArraySlot() if t is None else None for t in scalars]
        for i, cell in enumerate(self.cells):
            if cell is not None:
                self.c[i] = cell.c
