"""The part of Buffer that makes views and copies: crop, slice, embed, translate, transpose, and fresh Buffers of a shape.

Each change works in place; its `-ed` form gives a view of the same memory and leaves the Buffer alone.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..driver.abi import RawBuffer
from ..errors import CompileError, expect
from ..ir.types import Type
from .promotion import checked_type
from .storage import LARGEST, Array, Storage, allocate, allocate_shape, checked_sizes
from .subscripted import Subscripted

if TYPE_CHECKING:
    from .buffer import Buffer


class BufferViews(Subscripted):
    """Views and copies of a Buffer."""

    __slots__ = ()
    storage: Storage

    if TYPE_CHECKING:
        @property
        def array(self) -> Array:
            """The memory."""

        def name(self) -> str:
            """The name."""

        def _defined(self, call: str) -> Storage:
            ...

    def _view(self) -> Buffer:
        s = self.storage
        self.array  # noqa: B018 (raises for a Buffer without memory)
        return type(self).of_storage(Storage(s.array, s.type, s.mins))  # type: ignore[attr-defined, no-any-return]

    def _known(self, call: str, d: int, count: int = -1) -> int:
        """A dimension given by the user. Raises IndexError for one there is not."""
        count = self.array.ndim if count < 0 else count
        if not 0 <= self._coordinate(call, d) < count:
            raise IndexError(f"{call}() of dimension {d} of Buffer {self.name()}, which has {self.array.ndim} dimensions")
        return int(d)

    # -- in place

    def crop(
        self, dimension: Any = None, min: int | None = None, extent: int | None = None, *, rect: Sequence[tuple[int, int]] | None = None
    ) -> None:
        """Keep coordinates min .. min + extent - 1 of one dimension: `crop(0, 10, 20)`; or of the first ones: `crop([(10, 20), (0, 5)])`.

        Raises IndexError when that is not inside the Buffer.
        """
        pairs: list[tuple[int, tuple[int, int]]] = (
            list(enumerate(dimension if rect is None else rect)) if min is None or extent is None else [(dimension, (min, extent))]
        )
        array, mins = self.array, list(self.storage.mins)
        for d, (low, size) in pairs:
            self._known("crop", d)
            start = low - mins[d]
            if start < 0 or size < 0 or start + size > array.shape[d]:
                raise IndexError(f"crop() of dimension {d} of Buffer {self.name()} to min {low}, extent {size}, which is not inside min "
                                 f"{mins[d]}, extent {array.shape[d]}")
            index: tuple[Any, ...] = (slice(None),) * d + (slice(start, start + size),)
            array = array[index]
            mins[d] = int(low)
        self.storage.replace(array, mins)

    def slice(self, dimension: int, pos: int | None = None) -> None:
        """Drop a dimension, keeping coordinate `pos` of it (default: its min)."""
        d, mins, array = self._known("slice", dimension), list(self.storage.mins), self.array
        low = mins.pop(d)
        offset = 0 if pos is None else pos - low
        if not 0 <= offset < array.shape[d]:
            raise IndexError(f"slice() of dimension {d} of Buffer {self.name()} at {pos}, which is not inside min {low}, extent "
                             f"{array.shape[d]}")
        self.storage.replace(array[(slice(None),) * d + (offset, ...)], mins)

    def embed(self, dimension: int, pos: int = 0) -> None:
        """Add a dimension of extent 1 at coordinate `pos`: the opposite of `slice`."""
        d, mins, array = self._known("embed", dimension, self.array.ndim + 1), list(self.storage.mins), self.array
        place = self._coordinate("embed", pos)
        if not -LARGEST <= place <= LARGEST:
            raise ValueError(f"embed() of Buffer {self.name()} at {place}, which does not fit int32")
        mins.insert(d, place)
        self.storage.replace(_with_axis(array, d), mins)

    def add_dimension(self) -> None:
        """Add an outermost dimension of extent 1."""
        self.embed(self.array.ndim)

    def translate(self, *args: Any, **kwargs: Any) -> None:
        """Shift the coordinates of one dimension: `translate(0, 5)`; or of the first ones: `translate([5, 7])`."""
        values = [*args, *kwargs.values()]
        moves = list(enumerate(values[0])) if len(values) == 1 else [(values[0], values[1])]
        mins = list(self._mins("translate"))
        for d, delta in moves:
            if not 0 <= self._coordinate("translate", d) < len(mins):
                raise IndexError(f"translate() of dimension {d} of Buffer {self.name()}, which has {len(mins)} dimensions")
            mins[d] += self._coordinate("translate", delta)
        self._set_mins(mins, "translate")

    def set_min(self, *args: Any, **kwargs: Any) -> None:
        """Set the first coordinates of the first dimensions: `set_min([10, 20])`."""
        values = [*args, *kwargs.values()]
        given = list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        mins = list(self._mins("set_min"))
        if len(given) > len(mins):
            raise ValueError(f"Too many arguments: set_min() with {len(given)} values on Buffer {self.name()} of {len(mins)} dimensions")
        mins[:len(given)] = [self._coordinate("set_min", m) for m in given]
        self._set_mins(mins, "set_min")

    def _mins(self, call: str) -> list[int]:
        return [low for low, _, _ in self._defined(call).shape()]

    def _coordinate(self, call: str, value: Any) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(f"{call}() of Buffer {self.name()} takes integers, not {value!r}") from None

    def _set_mins(self, mins: list[int], call: str) -> None:
        s = self.storage
        for d, (low, (_, extent, _)) in enumerate(zip(mins, s.shape())):
            if low < -LARGEST - 1 or low + extent - 1 > LARGEST:
                raise ValueError(f"{call}() of Buffer {self.name()}: coordinates {low} to {low + extent - 1} of dimension {d} do not fit "
                                 "int32")
        s.mins = mins
        if s.query and s.raw is not None:
            for dim, low in zip(s.raw.dims, mins):
                dim.min = low
        else:
            s.raw = None

    def transpose(self, *args: Any, **kwargs: Any) -> None:
        """Swap two dimensions: `transpose(0, 1)`; or move them: `transpose([2, 0, 1])` makes dimension 0 number 2, 1 number 0 and 2 number
        1."""
        values, array, mins = [*args, *kwargs.values()], self.array, self.storage.mins
        order = list(range(array.ndim))
        if len(values) == 1:
            places = [int(d) for d in values[0]]
            if sorted(places) != order[:len(places)] or len(places) > array.ndim:
                raise ValueError(f"transpose({places}) of Buffer {self.name()} does not name each of the first {len(places)} dimensions "
                                 "once")
            for d, place in enumerate(places):
                order[place] = d
        else:
            first, second = (self._known("transpose", d) for d in values)
            order[first], order[second] = order[second], order[first]
        self.storage.replace(array.transpose(order), [mins[d] for d in order])

    # -- views

    def cropped(self, *args: Any, **kwargs: Any) -> Buffer:
        """A view: see `crop`."""
        new = self._view()
        new.crop(*args, **kwargs)
        return new

    def sliced(self, dimension: int, pos: int | None = None) -> Buffer:
        """A view: see `slice`."""
        new = self._view()
        new.slice(dimension, pos)
        return new

    def embedded(self, dimension: int, pos: int = 0) -> Buffer:
        """A view: see `embed`."""
        new = self._view()
        new.embed(dimension, pos)
        return new

    def translated(self, *args: Any, **kwargs: Any) -> Buffer:
        """A view: see `translate`."""
        new = self._view()
        new.translate(*args, **kwargs)
        return new

    def transposed(self, *args: Any, **kwargs: Any) -> Buffer:
        """A view: see `transpose`."""
        new = self._view()
        new.transpose(*args, **kwargs)
        return new

    def reverse_axes(self) -> Buffer:
        """A view with the dimensions in reverse order."""
        new = self._view()
        new.storage.replace(self.array.T, self.storage.mins[::-1])
        return new

    def same_as(self, other: Buffer) -> bool:
        """Whether both are handles of one Buffer."""
        return self.storage is expect(other, type(self), "same_as()").storage

    # -- copies and fresh Buffers

    def copy(self) -> Buffer:
        """A dense copy, dimension 0 innermost."""
        new = self._view()
        new.storage.replace(self.array.T.copy().T, self.storage.mins)
        return new

    def copy_from(self, src: Buffer) -> None:
        """Copy the elements whose coordinates both have. Raises CompileError for other types or numbers of dimensions."""
        mine, theirs = self.array, expect(src, type(self), "copy_from()").array
        if mine.ndim != theirs.ndim or self.storage.type is not src.storage.type:
            raise CompileError(f"copy_from() into a {mine.ndim}-dimensional {self.storage.type} Buffer from a {theirs.ndim}-dimensional "
                               f"{src.storage.type} one")
        into, out_of = [], []
        for low_a, size_a, low_b, size_b in zip(self.storage.mins, mine.shape, src.storage.mins, theirs.shape):
            low, end = max(low_a, low_b), min(low_a + size_a, low_b + size_b)
            into.append(slice(low - low_a, max(end, low) - low_a))
            out_of.append(slice(low - low_b, max(end, low) - low_b))
        mine[tuple(into)] = theirs[tuple(out_of)]

    def allocate(self) -> None:
        """Give a bounds query memory in its shape."""
        s = self._defined("allocate")
        if s.query and s.raw is not None:
            shape = s.shape()
            s.query = False
            s.replace(allocate_shape(s.type, shape), [low for low, _, _ in shape])
            assert s.array is not None
            s.array.fill(0)

    def deallocate(self) -> None:
        """Let go of the memory; the shape stays, as that of a bounds query."""
        s = self._defined("deallocate")
        if not s.query:
            s.raw, s.array, s.query = RawBuffer(s.type, s.shape(), 0, None), None, True

    @classmethod
    def make_interleaved(cls, type: Type, width: int, height: int, channels: int, name: str = "") -> Buffer:
        """An image whose channels are neighbours in memory: strides (channels, width * channels, 1)."""
        return cls._make(allocate(checked_type(type, "make_interleaved()"), [width, height, channels], [2, 0, 1]), type, name)

    @classmethod
    def make_scalar(cls, type: Type, name: str = "") -> Buffer:
        """A Buffer of no dimensions: one element, read and written as `b[()]`."""
        return cls._make(allocate(checked_type(type, "make_scalar()"), []), type, name)

    @classmethod
    def make_with_shape_of(cls, src: Buffer, name: str = "") -> Buffer:
        """A fresh Buffer of the same type, coordinates and order of dimensions in memory."""
        shape = expect(src, cls, "make_with_shape_of()")._defined("make_with_shape_of").shape()
        order = sorted(range(len(shape)), key=lambda d: abs(shape[d][2]))
        new = cls._make(allocate(src.type(), [extent for _, extent, _ in shape], order), src.type(), name)
        new.storage.mins = [low for low, _, _ in shape]
        return new

    @classmethod
    def make_bounds_query(cls, type: Type, sizes: Sequence[int], name: str = "") -> Buffer:
        """A Buffer without memory: a pipeline run on it computes nothing and writes the shapes it needs into such Buffers."""
        extents, strides = checked_sizes(sizes), [1]
        for e in extents:
            strides.append(strides[-1] * e)
        s = Storage(None, checked_type(type, "make_bounds_query()"), [0] * len(extents), name)
        s.query, s.raw = True, RawBuffer(type, [(0, e, stride) for e, stride in zip(extents, strides)], 0, None)
        return cls.of_storage(s)  # type: ignore[attr-defined, no-any-return]

    @classmethod
    def _make(cls, array: Array, t: Type, name: str) -> Buffer:
        return cls.of_storage(Storage(array, t, [0] * array.ndim, name))  # type: ignore[attr-defined, no-any-return]


def _with_axis(array: Array, d: int) -> Array:
    """`array` with a new axis of extent 1, whose stride reaches past all elements."""
    past = max([extent * abs(stride) for extent, stride in zip(array.shape, array.strides)], default=array.itemsize)
    shape, strides = list(array.shape), list(array.strides)
    shape.insert(d, 1)
    strides.insert(d, past)
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=bool(array.flags.writeable))
