"""Funcs, Buffers and images as wholes: they have values only at coordinates, and arithmetic on one of them says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refused(symbol: str) -> Callable[..., NoReturn]:
    def operator(self: Subscripted, *_: Any) -> NoReturn:
        raise TypeError(f"{symbol} on {self!r}: it has values only at coordinates; index it, as in {self.name()}[x, ...]")

    return operator


class Subscripted:
    """Something to index before it can stand in an expression."""

    __slots__ = ()

    def name(self) -> str:
        """The name."""
        raise NotImplementedError

    __add__ = __radd__ = _refused("+")
    __sub__ = __rsub__ = __neg__ = _refused("-")
    __mul__ = __rmul__ = _refused("*")
    __truediv__ = __rtruediv__ = _refused("/")
    __floordiv__ = __rfloordiv__ = _refused("//")
    __mod__ = __rmod__ = _refused("%")
    __pow__ = __rpow__ = _refused("**")
    __and__ = __rand__ = _refused("&")
    __or__ = __ror__ = _refused("|")
    __xor__ = __rxor__ = _refused("^")
    __lshift__ = __rlshift__ = _refused("<<")
    __rshift__ = __rrshift__ = _refused(">>")
    __lt__, __le__, __gt__, __ge__ = map(_refused, ("<", "<=", ">", ">="))
    __invert__ = _refused("~")
    __abs__ = _refused("abs()")
