"""Buffer: an n-dimensional array in the language's terms, on NumPy memory without a copy.

Dimension 0 is the innermost one: `Buffer(array)` reverses the axes of a NumPy array (the last axis becomes dimension 0) unless told
otherwise. A Buffer and its views keep the array alive. Subscripts are coordinates: they start at the dimension's min.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ..driver.abi import RawBuffer
from ..errors import CompileError, HalideError
from ..ir.names import anonymous_name
from ..ir.parameter import Parameter
from ..ir.types import BFloat, Bool, Float, Int, Type, UInt
from .expr import Operand, literal
from .param import image_element

_TYPE_OF = {np.dtype(np.bool_): Bool(), **{np.dtype(f"int{w}"): Int(w) for w in (8, 16, 32, 64)},
            **{np.dtype(f"uint{w}"): UInt(w) for w in (8, 16, 32, 64)}, **{np.dtype(f"float{w}"): Float(w) for w in (16, 32, 64)}}
_DTYPE_OF = {**{t: d for d, t in _TYPE_OF.items()}, BFloat(16): np.dtype(np.uint16)}
_LIMIT = 1 << 31


def dtype_of(t: Type) -> np.dtype[Any]:
    """The NumPy dtype whose memory a Type uses. Raises CompileError when there is none."""
    found = _DTYPE_OF.get(t)
    if found is None:
        raise CompileError(f"There are no buffers of type {t}")
    return found


def type_of(d: np.dtype[Any]) -> Type:
    """The Type of a NumPy dtype. Raises ValueError when there is none."""
    found = _TYPE_OF.get(d)
    if found is None:
        raise ValueError(f"No Buffer of NumPy dtype {d}; supported are bool, int8 to int64, uint8 to uint64, float16 to float64"
                         + ("; convert it to the machine's byte order" if not d.isnative else ""))
    return found


class BufferDimension:
    """The shape of one dimension of a Buffer."""

    def __init__(self, min: int, extent: int, stride: int) -> None:
        self._min, self._extent, self._stride = min, extent, stride

    def min(self) -> int:
        """First coordinate."""
        return self._min

    def extent(self) -> int:
        """Size."""
        return self._extent

    def max(self) -> int:
        """Last coordinate."""
        return self._min + self._extent - 1

    def stride(self) -> int:
        """Distance between neighbours in memory, in elements."""
        return self._stride


class Buffer:
    """An array for pipelines to read and write.

    `Buffer(array)` shares a NumPy array's (or any buffer-protocol object's) memory; `Buffer(type, sizes)` makes a fresh one, dimension 0 first;
    `Buffer()` is undefined. Methods that name a dimension count from the innermost, 0.
    """

    __array_ufunc__ = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = kwargs.pop("name", None)
        reverse = kwargs.pop("reverse_axes", True)
        source = list(args) or [kwargs.pop(k) for k in ("buffer", "type", "sizes", "storage_order") if k in kwargs]
        if args and "sizes" in kwargs:
            source.append(kwargs.pop("sizes"))
        if "storage_order" in kwargs:
            source.append(kwargs.pop("storage_order"))
        if kwargs:
            raise TypeError(f"Buffer() got unexpected arguments {sorted(kwargs)}")
        self._mins: list[int] = []
        self._array: np.ndarray[Any, Any] | None = None
        self._type: Type = Type()
        self._param: Parameter | None = None
        self._raw: RawBuffer | None = None
        self._query: list[tuple[int, int]] | None = None
        if source and isinstance(source[-1], bool):
            reverse = source.pop()
        if source and isinstance(source[-1], str):
            name = source.pop()
        self._name = name or ""
        if not source:
            return
        if isinstance(source[0], Type):
            self._allocate(source[0], source[1], source[2] if len(source) > 2 else None)
        elif isinstance(source[0], Buffer):
            self._become(source[0])
        else:
            array = np.asarray(source[0])
            self._type = type_of(array.dtype)
            self._array = array.T if reverse else array
            self._mins = [0] * array.ndim
        if self._array is not None and self._array.size > _LIMIT * 1024:
            raise CompileError("Buffers of more than 2^41 elements are not supported")

    def _become(self, other: Buffer) -> None:
        self._array, self._mins, self._type, self._name = other._array, list(other._mins), other._type, self._name or other._name
        self._query = other._query

    def _allocate(self, t: Type, sizes: Sequence[int], order: Sequence[int] | None) -> None:
        if isinstance(sizes, (int, np.integer)):
            sizes = [int(sizes)]
        sizes = [int(s) for s in sizes]
        if any(s < 0 for s in sizes):
            raise CompileError(f"Buffer of negative size {sizes}")
        order = list(order) if order is not None else list(range(len(sizes)))
        if sorted(order) != list(range(len(sizes))):
            raise CompileError(f"The storage order {order} is not a permutation of the {len(sizes)} dimensions")
        memory = np.zeros([sizes[d] for d in reversed(order)], dtype_of(t))
        axes = list(reversed(order))
        self._array = memory.transpose([axes.index(d) for d in range(len(sizes))])
        self._type, self._mins = t, [0] * len(sizes)

    @staticmethod
    def _of(array: np.ndarray[Any, Any], t: Type, mins: Sequence[int], name: str = "") -> Buffer:
        """A Buffer on an array whose axes are in this language's order already."""
        new = Buffer()
        new._array, new._type, new._mins, new._name = array, t, list(mins), name
        return new

    # -- what pipelines use

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The memory with axis d as dimension d. Raises CompileError for an undefined Buffer."""
        if self._array is None:
            raise CompileError("This Buffer is undefined; give it an array, or a type and sizes")
        return self._array

    @property
    def raw(self) -> RawBuffer:
        """The C view of this Buffer, made when first used and whenever the shape changed."""
        if self._raw is None:
            a = self.array
            size = self._type.bytes()
            if any(s % size for s in a.strides):
                raise ValueError(f"The strides {a.strides[::-1]} of the array are not multiples of its {size}-byte elements; copy it first")
            shape = [(low, extent, stride // size) for low, extent, stride in zip(self._mins, a.shape, a.strides)]
            if self._query is not None:
                shape = [(low, extent, 0) for low, extent in self._query]
            host = 0 if self._query is not None else a.__array_interface__["data"][0]
            self._raw = RawBuffer(self._type, shape, host, a)
        return self._raw

    @property
    def param(self) -> Parameter:
        """The pipeline argument this Buffer is bound to."""
        if self._param is None:
            self._param = Parameter(self.name(), self._type, True, self.array.ndim, buffer=self)
            self._param.dims = [type(d)() for d in self._param.dims]
            strides = [s // self._type.bytes() for s in self.array.strides]
            if strides and strides[0] == 1:
                self._param.dims[0].stride = Parameter("", self._type, True, 1).dims[0].stride
        return self._param

    def writable(self) -> bool:
        """Whether a pipeline may write it."""
        return bool(self.array.flags.writeable)

    def _changed(self) -> None:
        self._raw = None

    # -- NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        a = self.array.T
        if dtype is not None and np.dtype(dtype) != a.dtype:
            if copy is False:
                raise ValueError(f"a view of dtype {dtype} of a Buffer of {self._type} needs a copy")
            return a.astype(dtype)
        return a.copy() if copy else a

    @property
    def __array_interface__(self) -> Any:
        return self.array.T.__array_interface__

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.array.T)

    def numpy_view(self, reverse_axes: bool = True) -> np.ndarray[Any, Any]:
        """The memory as a NumPy array, axes reversed unless told otherwise; no copy."""
        return self.array.T if reverse_axes else self.array

    # -- shape

    def name(self) -> str:
        """The name messages use."""
        if not self._name:
            self._name = anonymous_name("b")
        return self._name

    def set_name(self, name: str) -> None:
        """Give it a name."""
        self._name = name

    def defined(self) -> bool:
        """Whether it has memory or a shape."""
        return self._array is not None

    def type(self) -> Type:
        """The type of the elements."""
        self.array
        return self._type

    def dimensions(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    def dim(self, dimension: int) -> BufferDimension:
        """Shape of one dimension."""
        a = self.array
        if not 0 <= dimension < a.ndim:
            raise CompileError(f"Buffer {self.name()} has {a.ndim} dimensions, no number {dimension}")
        if self._query is not None and self._raw is not None:
            return BufferDimension(*self._raw.shape()[dimension])
        return BufferDimension(self._mins[dimension], a.shape[dimension], a.strides[dimension] // self._type.bytes())

    def _extent(self, d: int) -> int:
        return self.array.shape[d] if d < self.array.ndim else 1

    def width(self) -> int:
        """Extent of dimension 0 (1 if there is none)."""
        return self._extent(0)

    def height(self) -> int:
        """Extent of dimension 1 (1 if there is none)."""
        return self._extent(1)

    def channels(self) -> int:
        """Extent of dimension 2 (1 if there is none)."""
        return self._extent(2)

    def left(self) -> int:
        """First coordinate of dimension 0."""
        return self.dim(0).min()

    def right(self) -> int:
        """Last coordinate of dimension 0."""
        return self.dim(0).max()

    def top(self) -> int:
        """First coordinate of dimension 1."""
        return self.dim(1).min()

    def bottom(self) -> int:
        """Last coordinate of dimension 1."""
        return self.dim(1).max()

    def number_of_elements(self) -> int:
        """How many elements there are."""
        return int(self.array.size)

    def size_in_bytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        a = self.array
        reach = sum((s - 1) * abs(stride) for s, stride in zip(a.shape, a.strides))
        return int(reach + a.itemsize) if a.size else 0

    def contains(self, coords: Sequence[int]) -> bool:
        """Whether an element is inside."""
        return all(low <= c < low + e for c, low, e in zip(coords, self._mins, self.array.shape))

    # -- elements

    def _offsets(self, key: Any) -> tuple[int, ...]:
        places = list(key) if isinstance(key, (list, tuple)) else [key]
        a = self.array
        if len(places) != a.ndim:
            raise ValueError(f"Buffer {self.name()} has {a.ndim} dimensions, but {len(places)} subscripts are given")
        out = []
        for d, (c, low, extent) in enumerate(zip(places, self._mins, a.shape)):
            if not isinstance(c, (int, np.integer)):
                raise TypeError(f"Subscript {d} of Buffer {self.name()} is {c!r}, not an integer")
            if not low <= c < low + extent:
                raise IndexError(f"index {int(c)} is out of bounds for axis {d} of Buffer {self.name()} with min={low}, extent={extent}")
            out.append(int(c) - low)
        return tuple(out)

    def __getitem__(self, key: Any) -> Any:
        places = key if isinstance(key, (list, tuple)) else (key,)
        if any(isinstance(p, Operand) for p in places):
            return image_element(self.param, key)
        return self.array[self._offsets(key)].item() if self._type is not BFloat(16) else self._bfloat(self.array[self._offsets(key)])

    def _bfloat(self, bits: Any) -> float:
        return float(np.array([int(bits) << 16], np.uint32).view(np.float32)[0])

    def __call__(self, *args: Any) -> Any:
        return self[args]

    def _checked(self, value: Any) -> Any:
        v = literal(value)
        v = value.item() if v is None and hasattr(value, "item") else v
        if v is None:
            raise TypeError(f"an element of Buffer {self.name()} cannot be set to {value!r}")
        t = self._type
        if t.is_float():
            if t.is_bfloat():
                return np.array([v], np.float32).view(np.uint32)[0] >> 16
            return v
        if isinstance(v, float) and v != int(v) or not (t.is_bool() or t.can_represent_value(int(v))):
            raise OverflowError(f"{v} does not fit an element of type {t} of Buffer {self.name()}, which holds {t.min_value()} to {t.max_value()}")
        return int(v)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[self._offsets(key)] = self._checked(value)

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self.array[...] = self._checked(value)

    def all_equal(self, value: Any) -> bool:
        """Whether all elements have a value."""
        return bool((self.array == self._checked(value)).all())

    def for_each_element(self, f: Callable[..., Any]) -> None:
        """Call `f(*coordinates)` for each element, dimension 0 fastest."""
        for index in np.ndindex(*self.array.shape[::-1]):
            f(*(i + low for i, low in zip(index[::-1], self._mins)))

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a Buffer is not iterable; use np.asarray(buffer)")

    # -- copies and views

    def copy(self) -> Buffer:
        """A dense copy."""
        return Buffer._of(self.array.T.copy().T, self._type, self._mins, self._name)

    def copy_from(self, src: Buffer) -> None:
        """Copy the elements both have."""
        if src.dimensions() != self.dimensions() or src.type() is not self._type:
            raise CompileError(f"copy_from() between a {self.dimensions()}-dimensional {self._type} and a {src.dimensions()}-dimensional {src.type()} Buffer")
        mine, theirs = [], []
        for a_min, a_extent, b_min, b_extent in zip(self._mins, self.array.shape, src._mins, src.array.shape):
            low, high = max(a_min, b_min), min(a_min + a_extent, b_min + b_extent)
            if low >= high:
                return
            mine.append(slice(low - a_min, high - a_min))
            theirs.append(slice(low - b_min, high - b_min))
        self.array[tuple(mine)] = src.array[tuple(theirs)]

    def _view(self) -> Buffer:
        return Buffer._of(self.array, self._type, self._mins, self._name)

    def _check_dim(self, what: str, d: int) -> None:
        if not 0 <= d < self.array.ndim:
            raise CompileError(f"{what}() of dimension {d} of Buffer {self.name()}, which has {self.array.ndim} dimensions")

    def crop(self, *args: Any) -> None:
        """Keep `extent` coordinates from `min` of one dimension, or of each with a list of pairs."""
        rect = list(enumerate(args[0])) if len(args) == 1 else [(args[0], (args[1], args[2]))]
        for d, (low, extent) in rect:
            self._check_dim("crop", d)
            start = low - self._mins[d]
            if start < 0 or extent < 0 or start + extent > self.array.shape[d]:
                raise CompileError(f"crop() of dimension {d} of Buffer {self.name()} to min {low}, extent {extent}, which is not inside min {self._mins[d]}, "
                                   f"extent {self.array.shape[d]}")
            index: list[Any] = [slice(None)] * self.array.ndim
            index[d] = slice(start, start + extent)
            self._array = self.array[tuple(index)]
            self._mins[d] = low
        self._changed()

    def cropped(self, *args: Any) -> Buffer:
        """A view: see `crop`."""
        new = self._view()
        new.crop(*args)
        return new

    def slice(self, dimension: int, pos: int | None = None) -> None:
        """Drop a dimension, keeping coordinate `pos` (default: its min)."""
        self._check_dim("slice", dimension)
        low = self._mins[dimension]
        offset = 0 if pos is None else pos - low
        if not 0 <= offset < self.array.shape[dimension]:
            raise CompileError(f"slice() of dimension {dimension} of Buffer {self.name()} at {pos}, outside of {low} .. {low + self.array.shape[dimension] - 1}")
        index: list[Any] = [slice(None)] * self.array.ndim
        index[dimension] = offset
        self._array = self.array[(*index, ...)]
        del self._mins[dimension]
        self._changed()

    def sliced(self, dimension: int, pos: int | None = None) -> Buffer:
        """A view: see `slice`."""
        new = self._view()
        new.slice(dimension, pos)
        return new

    def embed(self, dimension: int, pos: int = 0) -> None:
        """Add a dimension of extent 1 at coordinate `pos`."""
        self._array = np.expand_dims(self.array, dimension)
        self._mins.insert(dimension, pos)
        self._changed()

    def embedded(self, dimension: int, pos: int = 0) -> Buffer:
        """A view: see `embed`."""
        new = self._view()
        new.embed(dimension, pos)
        return new

    def add_dimension(self) -> None:
        """Add an outermost dimension of extent 1."""
        self.embed(self.array.ndim)

    def translate(self, *args: Any) -> None:
        """Shift the coordinates of one dimension, or of each with a list."""
        moves = list(enumerate(args[0])) if len(args) == 1 else [(args[0], args[1])]
        for d, delta in moves:
            self._check_dim("translate", d)
            self._mins[d] += int(delta)
        self._changed()

    def translated(self, *args: Any) -> Buffer:
        """A view: see `translate`."""
        new = self._view()
        new.translate(*args)
        return new

    def transpose(self, *args: Any) -> None:
        """Swap two dimensions, or order all."""
        order = list(range(self.array.ndim))
        if len(args) == 1:
            order = list(args[0])
        else:
            order[args[0]], order[args[1]] = order[args[1]], order[args[0]]
        self._array = self.array.transpose(order)
        self._mins = [self._mins[d] for d in order]
        self._changed()

    def transposed(self, *args: Any) -> Buffer:
        """A view: see `transpose`."""
        new = self._view()
        new.transpose(*args)
        return new

    def reverse_axes(self) -> Buffer:
        """A view with the dimensions in reverse order."""
        return Buffer._of(self.array.T, self._type, self._mins[::-1], self._name)

    def set_min(self, *args: Any) -> None:
        """Set the first coordinates of the first dimensions."""
        mins = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if len(mins) > self.array.ndim:
            raise CompileError(f"set_min() with {len(mins)} values on Buffer {self.name()} of {self.array.ndim} dimensions")
        self._mins[:len(mins)] = [int(m) for m in mins]
        self._changed()

    # -- construction

    @staticmethod
    def make_interleaved(type: Type, width: int, height: int, channels: int, name: str = "") -> Buffer:
        """An image whose channels are neighbours in memory."""
        return Buffer(type, [width, height, channels], [2, 0, 1], name)

    @staticmethod
    def make_scalar(type: Type, name: str = "") -> Buffer:
        """A Buffer of no dimensions: one element."""
        return Buffer(type, [], name)

    @staticmethod
    def make_with_shape_of(src: Buffer, name: str = "") -> Buffer:
        """A fresh Buffer of the same type, coordinates and storage order."""
        order = sorted(range(src.dimensions()), key=lambda d: abs(src.array.strides[d]))
        new = Buffer(src.type(), list(src.array.shape), order, name)
        new._mins = list(src._mins)
        return new

    @staticmethod
    def make_bounds_query(type: Type, sizes: Sequence[int], name: str = "") -> Buffer:
        """A Buffer without memory: a pipeline run on it only writes the shape it needs into it."""
        new = Buffer._of(np.lib.stride_tricks.as_strided(np.zeros(1, dtype_of(type)), [int(s) for s in sizes], [0] * len(sizes)), type, [0] * len(sizes), name)
        new._query = [(0, int(s)) for s in sizes]
        return new

    def allocate(self) -> None:
        """Give a bounds query the memory for its shape."""
        if self._query is not None:
            shape = [(s[0], s[1]) for s in self.raw.shape()]
            self._query = None
            self._allocate(self._type, [e for _, e in shape], None)
            self._mins = [low for low, _ in shape]
            self._changed()

    def deallocate(self) -> None:
        """Forget the memory."""
        self._array = None
        self._changed()

    def same_as(self, other: Buffer) -> bool:
        """Whether both are on the same memory in the same shape."""
        return self is other or (self._array is not None and other._array is not None and self._mins == other._mins
                                 and self._array.__array_interface__ == other._array.__array_interface__)

    # -- devices: there are none

    def host_dirty(self) -> bool:
        """Whether a device copy would be stale; there is none."""
        return bool(self.raw.c.flags & 1)

    def set_host_dirty(self, dirty: bool = True) -> None:
        """Mark the memory as changed."""
        self.raw.c.flags = (int(self.raw.c.flags) & ~1) | int(dirty)

    def device_dirty(self) -> bool:
        """Whether a device holds newer data."""
        return bool(self.raw.c.flags & 2)

    def set_device_dirty(self, dirty: bool = True) -> None:
        """Mark a device copy as newer."""
        self.raw.c.flags = (int(self.raw.c.flags) & ~2) | (2 if dirty else 0)

    def has_device_allocation(self) -> bool:
        """Whether it is on a device: never in this build."""
        return False

    def copy_to_host(self) -> int:
        """Nothing to do: data is always in host memory."""
        return 0

    def _no_device(self, what: str) -> int:
        raise HalideError(f"{what}() needs a device; this build compiles for the CPU")

    def copy_to_device(self, *args: Any) -> int:
        """Refused: this build has no devices."""
        return self._no_device("copy_to_device")

    def device_malloc(self, *args: Any) -> int:
        """Refused: this build has no devices."""
        return self._no_device("device_malloc")

    def device_free(self) -> int:
        """Nothing to free."""
        return 0

    def device_sync(self) -> int:
        """Nothing to wait for."""
        return 0

    def device_deallocate(self) -> None:
        """Nothing to free."""

    def __repr__(self) -> str:
        if self._array is None:
            return "<undefined halide.Buffer>"
        shape = ",".join(f"[{low},{e},{s // self._type.bytes()}]" for low, e, s in zip(self._mins, self._array.shape, self._array.strides))
        return f"<halide.Buffer of type {self._type} shape:[{shape}]>"


