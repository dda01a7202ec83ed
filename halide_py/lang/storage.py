"""What a Buffer is made of: NumPy memory with axis d as dimension d, the mins, and the C view that pipelines get.

Handles of one Buffer share a Storage: the one the user holds and the one its Parameter holds, so that neither keeps the other alive.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..driver.abi import RawBuffer, address_of, element_strides
from ..errors import CompileError
from ..ir.build import i32
from ..ir.parameter import Parameter
from ..ir.types import BFloat, Bool, Float, Int, Type, UInt
from .edits import count_edit

Array = np.ndarray[Any, Any]
Shape = list[tuple[int, int, int]]  # (min, extent, stride in elements) of each dimension, innermost first

TYPE_OF: dict[np.dtype[Any], Type] = {
    np.dtype(np.bool_): Bool(), **{np.dtype(f"int{w}"): Int(w) for w in (8, 16, 32, 64)},
    **{np.dtype(f"uint{w}"): UInt(w) for w in (8, 16, 32, 64)}, **{np.dtype(f"float{w}"): Float(w) for w in (16, 32, 64)},
}
DTYPE_OF: dict[Type, np.dtype[Any]] = {**{t: d for d, t in TYPE_OF.items()}, BFloat(16): np.dtype(np.uint16)}
LARGEST = 2**31 - 1
_TOGETHER = 8  # elements


def dtype_of(t: Type) -> np.dtype[Any]:
    """The NumPy dtype whose memory a Type uses; uint16 for bfloat16. Raises CompileError for types no buffer can have."""
    found = DTYPE_OF.get(t)
    if found is None:
        raise CompileError(f"There are no buffers of type {t}")
    return found


def wrap(source: Any) -> tuple[Array, Type]:
    """The memory of an object with the buffer protocol or NumPy's array interface, not copied, and the Type of its elements.

    Raises TypeError for other objects, ValueError for element types and layouts that a buffer cannot have.
    """
    if isinstance(source, (list, tuple, str, int, float, complex)) or source is None:
        raise TypeError("Buffer() takes a NumPy array, another object with the buffer protocol, or a Type and sizes, not a "
                        f"{type(source).__name__}")
    array = np.asarray(source if isinstance(source, np.ndarray) or hasattr(source, "__array__") else memoryview(source))
    if array.dtype.name == "bfloat16":
        t, array = BFloat(16), array.view(np.uint16)
    elif array.dtype in TYPE_OF:
        t = TYPE_OF[array.dtype]
    else:
        hint = "" if array.dtype.isnative else "; convert it to the machine's byte order"
        raise ValueError(f"Unsupported Buffer<> type: NumPy dtype {array.dtype}; supported are bool, int8 to int64, uint8 to uint64 and "
                         f"float16 to float64{hint}")
    if any(extent > LARGEST for extent in array.shape) or any(abs(s) // array.itemsize > LARGEST for s in array.strides):
        raise ValueError(f"Out of range dimensions in buffer conversion: shape {array.shape}; each extent and stride must be below 2^31")
    if any(s % array.itemsize for s in array.strides) or not array.flags.aligned:
        raise ValueError(f"The elements of the array are not aligned to their {array.itemsize} bytes (strides {array.strides}); copy it "
                         "first")
    return array, t


def checked_sizes(sizes: Sequence[int]) -> list[int]:
    """Extents of a buffer to make. Raises TypeError, ValueError for what cannot be one."""
    if isinstance(sizes, (int, np.integer, str)):
        raise TypeError(f"sizes must be a list with one integer a dimension, not {sizes!r}")
    try:
        out = [operator.index(s) for s in sizes]
    except TypeError:
        raise TypeError(f"sizes must be a list with one integer a dimension, not {list(sizes)!r}") from None
    if any(not 0 <= s <= LARGEST for s in out):
        raise ValueError(f"sizes {out}: each must be between 0 and 2^31 - 1")
    return out


def allocate(t: Type, sizes: Sequence[int], order: Sequence[int] | None = None) -> Array:
    """Fresh memory of zeros, dimension `order[0]` densest (default: dimension 0)."""
    extents = checked_sizes(sizes)
    storage = [int(d) for d in order] if order is not None else list(range(len(extents)))
    if sorted(storage) != list(range(len(extents))):
        raise ValueError(f"storage_order {storage} does not name each of the {len(extents)} dimensions once")
    if math.prod(extents) * t.bytes() >= 2**63:
        raise ValueError(f"a buffer of {extents} elements cannot be allocated")
    axes = storage[::-1]
    view: Array = np.zeros([extents[d] for d in axes], dtype_of(t)).transpose([axes.index(d) for d in range(len(extents))])
    return view


def allocate_shape(t: Type, shape: Shape) -> Array:
    """Fresh memory with given extents and strides, which may leave gaps or run backwards; not initialised."""
    dense = 1
    for _, extent, stride in shape:
        if stride != dense:
            break
        dense *= extent
    else:
        packed: Array = np.empty([extent for _, extent, _ in reversed(shape)], dtype_of(t)).T
        return packed
    reach = [(max(extent, 1) - 1) * stride for _, extent, stride in shape]
    first = -sum(r for r in reach if r < 0)
    memory = np.empty(first + sum(r for r in reach if r > 0) + 1, dtype_of(t))
    extents, strides = [extent for _, extent, _ in shape], [stride * t.bytes() for _, _, stride in shape]
    view: Array = np.lib.stride_tricks.as_strided(memory[first:], extents, strides)
    return view


class Storage:
    """See the module. `array` is None for an undefined Buffer and for a bounds query (then `raw` is its shape)."""

    __slots__ = ("array", "type", "mins", "name", "anonymous", "raw", "query", "exported", "_param")

    # a Type is immutable, hence the B008
    def __init__(self, array: Array | None = None, t: Type = Type(), mins: Sequence[int] = (), name: str = "") -> None:  # noqa: B008
        self.array, self.type, self.mins, self.name = array, t, list(mins), name
        self.anonymous = False  # `name` was made up, and is unique
        self.raw: RawBuffer | None = None
        self.query = False
        self.exported: Any = None  # memory handed out by address
        self._param: weakref.ref[Parameter] | None = None

    @property
    def param(self) -> Parameter | None:
        """The pipeline argument that stands for this in expressions, if it lives."""
        return self._param() if self._param is not None else None

    @param.setter
    def param(self, p: Parameter) -> None:
        self._param = weakref.ref(p)

    def c_view(self) -> RawBuffer:
        """The `halide_buffer_t`, made again after changes of shape."""
        if self.raw is None:
            a = self.array
            assert a is not None
            self.raw = RawBuffer(self.type, self.shape(), address_of(a.T), a, a.flags.writeable)
        return self.raw

    def shape(self) -> Shape:
        """(min, extent, stride) of each dimension."""
        if self.array is None:
            return self.raw.shape() if self.raw is not None else []
        return list(zip(self.mins, self.array.shape, element_strides(self.array)))

    def replace(self, array: Array, mins: Sequence[int]) -> None:
        """Another view of memory."""
        self.array, self.mins, self.raw = array, list(mins), None
        self.promise_strides()

    def promise_strides(self) -> None:
        """Tell pipelines that use this Buffer of strides that keep a vector's elements together, such as the 3 of interleaved RGB: those
        are loaded densely and shuffled. Other strides are asked for at run time, so that images of all sizes share a compiled pipeline;
        so are those of memory with gaps or backwards, which files contain without."""
        p, array = self.param, self.array
        if p is None or array is None:
            return
        dense, strides = 1, element_strides(array)
        for d in sorted(range(min(array.ndim, len(p.dims))), key=lambda d: abs(strides[d])):
            p.dims[d].stride = i32(dense) if strides[d] == dense <= _TOGETHER else None
            dense *= array.shape[d]
        count_edit()
