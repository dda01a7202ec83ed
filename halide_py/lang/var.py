"""Var: the free variables of definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import expect
from ..ir import nodes as n
from ..ir.function import OUTERMOST
from ..ir.names import anonymous_name
from ..ir.traverse import free_variables
from ..ir.types import INT32
from .expr import Operand

_IMPLICIT = re.compile(r"_\d+")


class Var(Operand):
    """A dimension of a Func: `f[x, y] = x + y`. Vars are told apart by name; without one they get a fresh name. `_` stands for all
    dimensions not written, `_0`, `_1`, ... are those one by one."""

    __slots__ = ("_name",)

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a Var must be a string, not {name!r}")
        self._name = anonymous_name("v") if name is None else name

    def as_node(self) -> n.Expr:
        return n.Variable(INT32, self._name)

    def name(self) -> str:
        """The name, which is the identity."""
        return self._name

    def same_as(self, other: Var) -> bool:
        """Whether both are the same dimension."""
        return self._name == expect(other, Var, "same_as()")._name

    def is_implicit(self) -> bool:
        """One of `_0`, `_1`, ..."""
        return _IMPLICIT.fullmatch(self._name) is not None

    def implicit_index(self) -> int:
        """The number of an implicit Var; -1 for others."""
        return int(self._name[1:]) if self.is_implicit() else -1

    def is_placeholder(self) -> bool:
        """Whether this is `_`."""
        return self._name == "_"

    @staticmethod
    def implicit(index: int) -> Var:
        """`_0`, `_1`, ..."""
        return Var(f"_{int(index)}")

    @staticmethod
    def outermost() -> Var:
        """The loop level outside all loops of a stage."""
        return Var(OUTERMOST)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<halide.Var '{self._name}'>"


def implicit_count(values: Iterable[n.Expr]) -> int:
    """How many implicit Vars a set of values uses: one more than the largest index."""
    return max((int(v[1:]) + 1 for v in free_variables(values) if _IMPLICIT.fullmatch(v)), default=0)


_ = Var("_")
_0, _1, _2, _3, _4, _5, _6, _7, _8, _9 = (Var(f"_{i}") for i in range(10))


def vars(names: str) -> tuple[Var, ...]:
    """Several Vars at once: `x, y = vars("x y")`; spaces or commas between the names."""
    return tuple(Var(v) for v in expect(names, str, "vars()").replace(",", " ").split())
