"""BufferDimension: what a Buffer says of one of its dimensions."""

from __future__ import annotations


class BufferDimension:
    """The shape of one dimension of a Buffer."""

    __slots__ = ("_min", "_extent", "_stride")

    def __init__(self, min: int, extent: int, stride: int) -> None:
        self._min, self._extent, self._stride = min, extent, stride

    def min(self) -> int:
        """First coordinate."""
        return self._min

    def extent(self) -> int:
        """The number of elements along this dimension."""
        return self._extent

    def max(self) -> int:
        """Last coordinate."""
        return self._min + self._extent - 1

    def stride(self) -> int:
        """Distance between neighbours in memory, in elements."""
        return self._stride

    def __repr__(self) -> str:
        return f"<halide.BufferDimension min {self._min} extent {self._extent} stride {self._stride}>"
