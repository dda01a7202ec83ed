"""Tuple: several Exprs as the value of one Func."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import user_error
from .expr import Expr, Operand, to_expr


class Tuple:
    """The values of a tuple-valued Func: `f[x] = hl.Tuple([a, b])` or just `(a, b)`. Takes a sequence of Exprs or a call of a Func.

    Raises CompileError for no elements.
    """

    def __init__(self, values: Any) -> None:
        self.values: list[Expr] = to_tuple(values)

    def size(self) -> int:
        """Number of elements."""
        return len(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Expr:
        return self.values[i]

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<halide.Tuple of size {len(self.values)}>"


def is_tuple_like(x: Any) -> bool:
    """Whether `x` stands for several Exprs: a Tuple, a sequence (any class with `__len__` and `__getitem__`), or a call of a tuple-valued
    Func."""
    if isinstance(x, (Tuple, list, tuple)):
        return True
    if isinstance(x, Operand):
        return getattr(x, "is_tuple_ref", False)
    return not isinstance(x, (str, bytes)) and hasattr(type(x), "__len__") and hasattr(type(x), "__getitem__")


def to_tuple(x: Any) -> list[Expr]:
    """The Exprs of a tuple-like object, or of a single value."""
    if isinstance(x, Tuple):
        return x.values
    values = [to_expr(x[i]) for i in range(len(x))] if is_tuple_like(x) else [to_expr(x)]
    if not values:
        raise user_error("Tuples must have at least one element")
    return values
