"""Memory of the loop IR interpreter: buffers passed in, Funcs realized, allocations; each checks every access.

Three kinds: `BufferArgument`, an array of the caller's, addressed by coordinates or by flat offset from its first element;
`Region`, a Func alive inside a Realize, sparse, by coordinates; `Flat`, an Allocate, by flat index.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.types import Type, TypeCode
from .scalar import Value, fit, from_bits, to_bits

_CODES = {"i": TypeCode.Int, "u": TypeCode.UInt, "f": TypeCode.Float}


def numpy_type(t: Type) -> np.dtype[Any]:
    """The NumPy dtype that holds elements of scalar type `t`; bfloat16 travels as its bits in uint16."""
    if t.is_bool():
        return np.dtype(np.bool_)
    if t.is_bfloat():
        return np.dtype(np.uint16)
    letter = "i" if t.is_int() else "f" if t.is_float() else "u"
    return np.dtype(f"{letter}{t.bytes()}")


def type_of_array(array: np.ndarray[Any, Any]) -> Type:
    """The element type of an array as a pipeline sees it."""
    if array.dtype.kind == "b":
        return Type(TypeCode.UInt, 1, 1)
    return Type(_CODES[array.dtype.kind], array.dtype.itemsize * 8, 1)


@dataclass(eq=False)
class BufferArgument:
    """A buffer given to a pipeline: `array` has dimension 0 first, `mins` are the coordinates of its first element.

    `array=None` asks a bounds query: the pipeline fills `mins`, `extents` and `strides`. `type` defaults to that of the array.
    """

    array: np.ndarray[Any, Any] | None
    mins: list[int] = field(default_factory=list)
    type: Type | None = None
    extents: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    name: str = ""

    def __post_init__(self) -> None:
        if self.array is not None:
            self.type = self.type or type_of_array(self.array)
            self.mins = list(self.mins) or [0] * self.array.ndim
            self.extents = list(self.array.shape)
            self.strides = [s // self.array.itemsize for s in self.array.strides]

    @functools.cached_property
    def positions(self) -> dict[int, tuple[int, ...]]:
        """Position in the array of each flat offset from the first element."""
        steps = [[(i * s, i) for i in range(e)] for e, s in zip(self.extents, self.strides)]
        return {sum(o for o, _ in at): tuple(i for _, i in at) for at in itertools.product(*steps)}

    def _position(self, at: Sequence[int]) -> tuple[int, ...]:
        place = tuple(c - m for c, m in zip(at, self.mins))
        if len(at) != len(self.extents) or any(not 0 <= p < e for p, e in zip(place, self.extents)):
            raise InternalError(f"Access of buffer {self.name} at {tuple(at)}, outside its mins {self.mins} and extents {self.extents}")
        return place

    def _flat_position(self, index: int) -> tuple[int, ...]:
        place = self.positions.get(index)
        if place is None:
            raise InternalError(f"Access of buffer {self.name} at flat index {index}: no element of it (extents {self.extents}, strides "
                                f"{self.strides})")
        return place

    def _get(self, place: tuple[int, ...]) -> Value:
        assert self.array is not None and self.type is not None
        value = self.array[place].item()
        return from_bits(value, self.type) if self.type.is_bfloat() else int(value) if self.type.is_bool() else value

    def _set(self, place: tuple[int, ...], value: Value) -> None:
        assert self.array is not None and self.type is not None
        self.array[place] = to_bits(value, self.type) if self.type.is_bfloat() else value

    def read(self, at: Sequence[int], element: int) -> Value:
        """The element at coordinates."""
        return self._get(self._position(at))

    def write(self, at: Sequence[int], element: int, value: Value) -> None:
        """Set the element at coordinates."""
        self._set(self._position(at), value)

    def load(self, index: int) -> Value:
        """The element at a flat offset."""
        return self._get(self._flat_position(index))

    def store(self, index: int, value: Value) -> None:
        """Set the element at a flat offset."""
        self._set(self._flat_position(index), value)


@dataclass(eq=False)
class TupleOutput:
    """A tuple-valued output before tuples are split: one buffer per element."""

    parts: list[BufferArgument]

    def read(self, at: Sequence[int], element: int) -> Value:
        """Element `element` of the tuple at coordinates."""
        return self.parts[element].read(at, element)

    def write(self, at: Sequence[int], element: int, value: Value) -> None:
        """Set element `element` of the tuple at coordinates."""
        self.parts[element].write(at, element, value)


class Region:
    """A Func alive inside its Realize."""

    def __init__(self, name: str, mins: Sequence[int], extents: Sequence[int]) -> None:
        self.name, self.mins, self.extents = name, list(mins), list(extents)
        self.cells: dict[tuple[tuple[int, ...], int], Value] = {}

    def _check(self, at: tuple[int, ...], what: str) -> None:
        if len(at) != len(self.mins):
            raise InternalError(f"{what} of {self.name} with {len(at)} coordinates, realized with {len(self.mins)}")
        for d, (c, m, e) in enumerate(zip(at, self.mins, self.extents)):
            if not m <= c < m + e:
                raise InternalError(f"{what} of {self.name} at {at}: dimension {d} was realized from {m} to {m + e - 1}")

    def read(self, at: Sequence[int], element: int) -> Value:
        """The value at coordinates; it must have been written."""
        place = tuple(at)
        self._check(place, "Read")
        value = self.cells.get((place, element))
        if value is None:
            raise InternalError(f"Read of {self.name} at {place}, which was never written (element {element})")
        return value

    def write(self, at: Sequence[int], element: int, value: Value) -> None:
        """Set the value at coordinates."""
        place = tuple(at)
        self._check(place, "Write")
        self.cells[place, element] = value


class Flat:
    """An allocation of so many elements of a type. Unless `strict`, an element never written reads as garbage, as it does from real
    memory."""

    def __init__(self, name: str, size: int, t: Type, strict: bool) -> None:
        self.name, self.size, self.type, self.strict = name, size, t, strict
        self.cells: dict[int, Value] = {}

    def load(self, index: int) -> Value:
        """The element at a flat index; it must have been written."""
        value = self.cells.get(index)
        if value is None:
            if 0 <= index < self.size and not self.strict:
                return fit(index * 37 + 85, self.type)
            where = "was never written" if 0 <= index < self.size else f"lies outside its {self.size} elements"
            raise InternalError(f"Load of {self.name}[{index}], which {where}")
        return value

    def store(self, index: int, value: Value) -> None:
        """Set the element at a flat index."""
        if not 0 <= index < self.size:
            raise InternalError(f"Store to {self.name}[{index}], outside its {self.size} elements")
        self.cells[index] = value
