"""Tuple: several Exprs as the value of one Func."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from .expr import Expr, to_expr


class Tuple:
    """The values of a tuple-valued Func: `f[x] = hl.Tuple([a, b])` or just `(a, b)`."""

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
    """Whether `x` stands for several Exprs: a Tuple, a sequence, or a call of a tuple-valued Func."""
    return isinstance(x, (Tuple, list, tuple)) or getattr(x, "is_tuple_ref", False)


def to_tuple(x: Any) -> list[Expr]:
    """The Exprs of a tuple-like object."""
    if isinstance(x, Tuple):
        return x.values
    if getattr(x, "is_tuple_ref", False):
        return [to_expr(x[i]) for i in range(len(x))]
    values: Sequence[Any] = list(x)
    return [to_expr(v) for v in values]
