"""Buffer: an n-dimensional array in the language's terms, on NumPy memory without a copy.

Dimension 0 is the innermost one: `Buffer(array)` reverses the axes of a NumPy array (the last axis becomes dimension 0) unless told
otherwise. A Buffer and its views keep the array alive. Subscripts are coordinates: they start at the dimension's min.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..driver.abi import DEVICE_DIRTY, HOST_DIRTY, RawBuffer
from ..errors import CompileError, HalideError
from ..ir import nodes as n
from ..ir.names import anonymous_name, unique_name
from ..ir.parameter import Parameter
from ..ir.types import Type
from .buffer_dimension import BufferDimension
from .buffer_views import BufferViews
from .expr import Operand
from .param import image_element
from .promotion import checked_type
from .storage import Array, Shape, Storage, allocate, allocate_shape, wrap

_SWEEP_BYTES = 1 << 28
_embedded_bytes = [0]  # memory bound to expressions since dead nodes were last dropped


class Buffer(BufferViews):
    """An array for pipelines to read and write.

    `Buffer(array, name="", reverse_axes=True)` shares the memory of a NumPy array or another object with the buffer protocol; read-only
    ones may be inputs. `Buffer(type, sizes[, storage_order][, name])` makes a fresh one of zeros, dimension 0 first in `sizes`.
    `Buffer(buffer)` is another view of the same memory. `Buffer()` is undefined. Methods that name a dimension count from the innermost, 0.

    Raises TypeError or ValueError for objects, element types and layouts that a buffer cannot have.
    """

    __slots__ = ("storage",)
    __array_ufunc__ = None

    def __init__(self, *args: Any, name: str = "", reverse_axes: bool = True, **kwargs: Any) -> None:
        source = list(args)
        for key in ("buffer", "type", "sizes", "storage_order"):
            if key in kwargs:
                source.append(kwargs.pop(key))
        if kwargs:
            raise TypeError(f"Buffer() got unexpected arguments {sorted(kwargs)}")
        if len(source) > 1 and isinstance(source[-1], bool):
            reverse_axes = source.pop()
        if len(source) > 1 and isinstance(source[-1], str):
            name = source.pop()
        if not source:
            self.storage = Storage(name=name)
        elif isinstance(source[0], Type):
            if not 2 <= len(source) <= 3:
                raise TypeError("Buffer(type, sizes[, storage_order][, name]): sizes is missing or there are too many arguments")
            array = allocate(*source)
            self.storage = Storage(array, source[0], [0] * array.ndim, name)
        elif len(source) > 1 and isinstance(source[0], (type, np.dtype)):
            checked_type(source[0], "Buffer()")
        elif len(source) > 1:
            raise TypeError("Buffer(array, name, reverse_axes): the name must be a string and reverse_axes a bool")
        elif isinstance(source[0], Buffer):
            other = source[0].storage
            self.storage = Storage(other.array, other.type, other.mins, name)
            self.storage.raw, self.storage.query = other.raw if other.query else None, other.query
        else:
            array, t = wrap(source[0])
            self.storage = Storage(array.T if reverse_axes else array, t, [0] * array.ndim, name)

    @classmethod
    def of_storage(cls, storage: Storage) -> Buffer:
        """A handle on a Storage."""
        new = object.__new__(cls)
        new.storage = storage
        return new

    @staticmethod
    def of_array(t: Type, array: Array) -> Buffer:
        """A handle on memory whose axis d is dimension d, mins 0."""
        return Buffer.of_storage(Storage(array, t, [0] * array.ndim))

    @staticmethod
    def of_shape(t: Type, shape: Shape, name: str = "") -> Buffer:
        """Fresh memory in a given shape: (min, extent, stride) of each dimension. Its elements are not initialised."""
        return Buffer.of_storage(Storage(allocate_shape(t, shape), t, [low for low, _, _ in shape], name))

    # -- what pipelines use

    @property
    def array(self) -> Array:
        """The memory, axis d being dimension d. Raises CompileError for an undefined Buffer and for a bounds query."""
        a = self.storage.array
        if a is None:
            what = (
                "is a bounds query and has no memory; allocate() it"
                if self.storage.query
                else "is undefined; give it an array, or a type and sizes"
            )
            raise CompileError(f"This Buffer {what}")
        return a

    @property
    def raw(self) -> RawBuffer:
        """The C view of this Buffer."""
        raw = self.storage.raw
        if raw is None:
            self._defined("realize")
            raw = self.storage.c_view()
        return raw

    @property
    def param(self) -> Parameter:
        """The pipeline argument that stands for this Buffer in expressions."""
        p = self.storage.param
        if p is None:
            a = self.array
            _note_embedded(a.nbytes)
            name = self.name()
            # no Func may have the same
            p = Parameter(name if self.storage.anonymous else unique_name(name), self.storage.type, True, a.ndim)
            p.buffer, p.constant = Buffer.of_storage(self.storage), True
            self.storage.param = p
            self.storage.promise_strides()
        return p

    def _defined(self, call: str) -> Storage:
        if self.storage.array is None and not self.storage.query:
            raise CompileError(f"Undefined buffer calling method {call}(); give it an array, or a type and sizes")
        return self.storage

    # -- NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        a: Array = self.array.T
        if dtype is not None and np.dtype(dtype) != a.dtype:
            if copy is False:
                raise ValueError(f"a Buffer of {self.storage.type} as an array of {np.dtype(dtype)} needs a copy")
            converted: Array = a.astype(dtype)
            return converted
        return a.copy() if copy else a

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.storage.exported = a = self.array.T
        interface: dict[str, Any] = a.__array_interface__
        return interface

    def __buffer__(self, flags: int) -> memoryview:
        array: Any = self.array.T  # NumPy 2.2, the last for Python 3.10, does not tell mypy that arrays are buffers
        return memoryview(array)

    def numpy_view(self, reverse_axes: bool = True) -> Array:
        """The memory as a NumPy array that shares it, axes reversed unless told otherwise. Mins are lost: element 0 is the first."""
        return self.array.T if reverse_axes else self.array

    # -- shape

    def name(self) -> str:
        """The name messages use."""
        if not self.storage.name:
            self.storage.name, self.storage.anonymous = anonymous_name("b"), True
        return self.storage.name

    def set_name(self, name: str) -> None:
        """Give it a name; to be done before it is used in an expression."""
        self.storage.name, self.storage.anonymous = name, False

    def defined(self) -> bool:
        """Whether it has memory, or is a bounds query."""
        return self.storage.array is not None or self.storage.query

    def type(self) -> Type:
        """The type of the elements."""
        return self._defined("type").type

    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self._defined("dimensions").shape())

    def dim(self, dimension: int) -> BufferDimension:
        """Shape of one dimension. Raises IndexError for one there is not."""
        shape = self._defined("dim").shape()
        if not 0 <= self._coordinate("dim", dimension) < len(shape):
            raise IndexError(f"Buffer {self.name()} has {len(shape)} dimensions, no number {dimension}")
        return BufferDimension(*shape[dimension])

    def _end(self, call: str, d: int) -> BufferDimension:
        """Dimension `d`; one that is not there has the single coordinate 0."""
        shape = self._defined(call).shape()
        return BufferDimension(*shape[d]) if d < len(shape) else BufferDimension(0, 1, 0)

    def width(self) -> int:
        """Extent of dimension 0 (1 if there is none)."""
        return self._end("width", 0).extent()

    def height(self) -> int:
        """Extent of dimension 1 (1 if there is none)."""
        return self._end("height", 1).extent()

    def channels(self) -> int:
        """Extent of dimension 2 (1 if there is none)."""
        return self._end("channels", 2).extent()

    def left(self) -> int:
        """First coordinate of dimension 0."""
        return self._end("left", 0).min()

    def right(self) -> int:
        """Last coordinate of dimension 0."""
        return self._end("right", 0).max()

    def top(self) -> int:
        """First coordinate of dimension 1."""
        return self._end("top", 1).min()

    def bottom(self) -> int:
        """Last coordinate of dimension 1."""
        return self._end("bottom", 1).max()

    def number_of_elements(self) -> int:
        """How many elements there are."""
        count = 1
        for _, extent, _ in self._defined("number_of_elements").shape():
            count *= extent
        return count

    def size_in_bytes(self) -> int:
        """Bytes from the first element to the end of the last, gaps included."""
        s = self._defined("size_in_bytes")
        reach = sum((extent - 1) * abs(stride) for _, extent, stride in s.shape())
        return (reach + 1) * s.type.bytes() if self.number_of_elements() else 0

    def contains(self, coords: Sequence[int]) -> bool:
        """Whether coordinates (of the first dimensions, if fewer are given) are inside."""
        return all(low <= c < low + extent for c, (low, extent, _) in zip(coords, self._defined("contains").shape()))

    # -- elements

    def _place(self, key: Any) -> tuple[int, ...]:
        places = key if isinstance(key, (tuple, list)) else (key,)
        a, mins = self.array, self.storage.mins
        if len(places) != len(mins):
            raise ValueError(f"Incorrect number of dimensions: Buffer {self.name()} has {len(mins)}, but {len(places)} subscripts are "
                             "given")
        out = []
        for d, (c, low, extent) in enumerate(zip(places, mins, a.shape)):
            if not isinstance(c, (int, np.integer)):
                raise TypeError(f"subscript {d} of Buffer {self.name()} is {c!r}, not an integer")
            if not low <= c < low + extent:
                raise IndexError(f"index {int(c)} is out of bounds for axis {d} with min={low}, extent={extent} (Buffer {self.name()})")
            out.append(int(c) - low)
        return tuple(out)

    def __getitem__(self, key: Any) -> Any:
        places = key if isinstance(key, (tuple, list)) else (key,)
        if any(isinstance(p, Operand) for p in places):
            return image_element(self.param, places)
        value = self.array[self._place(key)]
        return _float_of_bfloat(int(value)) if self.storage.type.is_bfloat() else value.item()

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self._place(key)
        self._writable("__setitem__")[place] = self._element(value)

    def __call__(self, *args: Any) -> Any:
        return self[args]

    def __iter__(self) -> Iterator[Any]:
        low = self.storage.mins[0] if len(self.storage.mins) == 1 else 0
        if self.array.ndim != 1:
            raise TypeError(f"Buffer {self.name()} has {self.array.ndim} dimensions; only one of 1 dimension can be iterated over, use "
                            "np.asarray(buffer)")
        return (self[low + i] for i in range(self.array.shape[0]))

    def _writable(self, call: str) -> Array:
        a = self.array
        if not a.flags.writeable:
            raise ValueError(f"{call}() of Buffer {self.name()}, whose memory is read-only")
        return a

    def _element(self, value: Any) -> Any:
        """A Python or NumPy number as an element. Raises TypeError or OverflowError when the type cannot hold it."""
        t = self.storage.type
        number = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, (bool, int, float)):
            raise TypeError(f"an element of type {t} of Buffer {self.name()} cannot be set to {value!r}")
        if t.is_float():
            return _bfloat_of_float(float(number)) if t.is_bfloat() else float(number)
        if isinstance(number, float):
            raise TypeError(f"an element of type {t} of Buffer {self.name()} cannot be set to the float {number}; use int()")
        if t.is_bool():
            return bool(number)
        if not t.can_represent_value(int(number)):
            raise OverflowError(f"{number} does not fit an element of type {t} of Buffer {self.name()}, which can be {t.min_value()} to "
                                f"{t.max_value()}")
        return int(number)

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self._defined("fill")
        with np.errstate(over="ignore"):
            self._writable("fill")[...] = self._element(value)

    def all_equal(self, value: Any) -> bool:
        """Whether all elements have a value."""
        self._defined("all_equal")
        return bool((self.array == self._element(value)).all())

    def for_each_element(self, f: Callable[[list[int]], Any]) -> None:
        """Call `f([x, y, ...])` with the coordinates of each element, dimension 0 fastest."""
        self._defined("for_each_element")
        ranges = [range(low, low + extent) for low, extent, _ in self.storage.shape()]
        for place in itertools.product(*ranges[::-1]):
            f(list(place[::-1]))

    def _get_raw_halide_buffer_t(self) -> int:
        """The address of the C view, which extension modules of pipelines ask for by this name: they see the mins."""
        return self.raw.address()

    # -- devices: there are none

    def _flag(self, bit: int, value: bool | None = None) -> bool:
        c = self.raw.c
        if value is not None:
            c.flags = (int(c.flags) & ~bit) | (bit if value else 0)
        return bool(int(c.flags) & bit)

    def host_dirty(self) -> bool:
        """Whether the memory was changed since it was copied to a device."""
        return self._flag(HOST_DIRTY)

    def set_host_dirty(self, dirty: bool = True) -> None:
        """Say that the memory was changed."""
        self._flag(HOST_DIRTY, dirty)

    def device_dirty(self) -> bool:
        """Whether a device holds newer data."""
        return self._flag(DEVICE_DIRTY)

    def set_device_dirty(self, dirty: bool = True) -> None:
        """Say that a device holds newer data."""
        self._flag(DEVICE_DIRTY, dirty)

    def has_device_allocation(self) -> bool:
        """Whether it is on a device: never, pipelines are compiled for the CPU."""
        return False

    def copy_to_host(self) -> int:
        """Nothing to do: the data is in host memory. Gives 0."""
        return 0

    def copy_to_device(self, *args: Any, **kwargs: Any) -> int:
        """Raises HalideError: there are no devices."""
        return self._no_device("copy_to_device")

    def device_malloc(self, *args: Any, **kwargs: Any) -> int:
        """Raises HalideError: there are no devices."""
        return self._no_device("device_malloc")

    def _no_device(self, call: str) -> int:
        raise HalideError(f"Error: {call}() needs a device, but no GPU feature is specified in target; pipelines are compiled for the CPU")

    def device_free(self) -> int:
        """Nothing to free. Gives 0."""
        return 0

    def device_sync(self) -> int:
        """Nothing to wait for. Gives 0."""
        return 0

    def device_detach_native(self) -> int:
        """Nothing to detach. Gives 0."""
        return 0

    def device_deallocate(self) -> None:
        """Nothing to free."""

    def __repr__(self) -> str:
        if not self.defined():
            return "<undefined halide.Buffer>"
        shape = ",".join(f"[{low},{extent},{stride}]" for low, extent, stride in self.storage.shape())
        return f"<halide.Buffer of type {self.storage.type} shape:[{shape}]>"


def _float_of_bfloat(bits: int) -> float:
    return float(np.array(bits << 16, np.uint32).view(np.float32))


def _bfloat_of_float(value: float) -> int:
    """The bits of the nearest bfloat16, ties to even."""
    bits = int(np.array(value, np.float32).view(np.uint32))
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _note_embedded(size: int) -> None:
    """Expressions keep the Buffers they read, and the table of nodes keeps expressions until dead ones are swept out; large Buffers hurry
    that."""
    _embedded_bytes[0] += size
    if _embedded_bytes[0] > _SWEEP_BYTES:
        _embedded_bytes[0] = size
        n.sweep()
