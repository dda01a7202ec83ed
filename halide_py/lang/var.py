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
        """The name, which is the identity.

        >>> hl.Var("x").name()
        'x'
        """
        return self._name

    def same_as(self, other: Var) -> bool:
        """Whether both are the same dimension.

        >>> hl.Var("x").same_as(hl.Var("x"))
        True
        """
        return self._name == expect(other, Var, "same_as()")._name

    def is_implicit(self) -> bool:
        """One of `_0`, `_1`, ...

        >>> hl._0.is_implicit(), hl.Var('x').is_implicit()
        (True, False)
        """
        return _IMPLICIT.fullmatch(self._name) is not None

    def implicit_index(self) -> int:
        """The number of an implicit Var; -1 for others.

        >>> hl._3.implicit_index(), hl.Var('x').implicit_index()
        (3, -1)
        """
        return int(self._name[1:]) if self.is_implicit() else -1

    def is_placeholder(self) -> bool:
        """Whether this is `_`.

        >>> hl._.is_placeholder(), hl._0.is_placeholder()
        (True, False)
        """
        return self._name == "_"

    @staticmethod
    def implicit(index: int) -> Var:
        """`_0`, `_1`, ...

        >>> hl.Var.implicit(2).name()
        '_2'
        """
        return Var(f"_{int(index)}")

    @staticmethod
    def outermost() -> Var:
        """The loop level outside all loops of a stage.

        Where all iterations of a stage have begun; a place for compute_at and the like.

        >>> hl.Var.outermost().name()
        '__outermost'
        """
        return Var(OUTERMOST)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<halide.Var '{self._name}'>"


def implicit_names(values: Iterable[n.Expr]) -> list[str]:
    """The implicit Vars that a set of values uses."""
    return sorted((v for v in free_variables(values) if _IMPLICIT.fullmatch(v)), key=lambda v: int(v[1:]))


def implicit_count(values: Iterable[n.Expr]) -> int:
    """How many implicit Vars a set of values takes places for: one more than the largest index."""
    return max((int(v[1:]) + 1 for v in implicit_names(values)), default=0)


_ = Var("_")
_0, _1, _2, _3, _4, _5, _6, _7, _8, _9 = (Var(f"_{i}") for i in range(10))


def vars(names: str) -> tuple[Var, ...]:
    """Several Vars at once: `x, y = vars("x y")`; spaces or commas between the names.

    Raises TypeError for what is no string.

    >>> x, y = hl.vars("x y")
    >>> y.name()
    'y'
    """
    return tuple(Var(v) for v in expect(names, str, "vars()").replace(",", " ").split())
