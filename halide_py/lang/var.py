"""Var, RVar, RDom and Range: the free variables of definitions and the boxes that updates loop over."""

from __future__ import annotations

import re
from typing import Any, Iterator, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, ReductionDomain, ReductionVariable
from ..ir.names import anonymous_name, unique_name
from ..ir.printer import to_text
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import INT32
from .expr import Expr, Operand, to_expr

_IMPLICIT = re.compile(r"_\d+")


class Var(Operand):
    """A dimension of a Func: `f[x, y] = x + y`. Vars are told apart by name; without one they get a fresh name. `_` stands for all
    dimensions not written, `_0`, `_1`, ... are those one by one."""

    __slots__ = ("_name",)

    def __init__(self, name: str | None = None) -> None:
        self._name = anonymous_name("v") if name is None else name

    def as_node(self) -> n.Expr:
        return n.Variable(INT32, self._name)

    def name(self) -> str:
        """The name, which is the identity."""
        return self._name

    def same_as(self, other: Var) -> bool:
        """Whether both are the same dimension."""
        return self._name == other._name

    def is_implicit(self) -> bool:
        """One of `_0`, `_1`, ..."""
        return bool(_IMPLICIT.fullmatch(self._name))

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

    def __repr__(self) -> str:
        return f"<halide.Var '{self._name}'>"


class RVar(Operand):
    """One dimension of a reduction domain (`r.x`), or a name for a part of one made by a split."""

    __slots__ = ("_name", "_domain", "_index")

    def __init__(self, name: Any = None) -> None:
        self._domain: ReductionDomain | None = None
        self._index = 0
        if isinstance(name, RDom):
            only = name.only("RVar")
            self._name, self._domain, self._index = only._name, only._domain, only._index
        else:
            self._name = anonymous_name("rv") if name is None else str(name)

    @staticmethod
    def of(domain: ReductionDomain, index: int) -> RVar:
        """Dimension `index` of a domain."""
        r = RVar(domain.variables[index].name)
        r._domain, r._index = domain, index
        return r

    def as_node(self) -> n.Expr:
        if self._domain is None:
            raise CompileError(f"RVar {self._name} belongs to no RDom, so it has no value")
        return n.Variable(INT32, self._name, None, self._domain)

    def name(self) -> str:
        """The name of the loop: `r$x`."""
        return self._name

    def min(self) -> Expr:
        """The first value of the loop."""
        return Expr.of(self._own().min)

    def extent(self) -> Expr:
        """The number of iterations."""
        return Expr.of(self._own().extent)

    def _own(self) -> ReductionVariable:
        if self._domain is None:
            raise CompileError(f"RVar {self._name} belongs to no RDom")
        return self._domain.variables[self._index]

    def __repr__(self) -> str:
        return f"<halide.RVar '{self._name}'>"


class Range:
    """A half-open interval given by its first value and its size."""

    def __init__(self, min: Any = None, extent: Any = None) -> None:
        if isinstance(min, tuple) and extent is None:
            min, extent = min
        self.min = Expr() if min is None else to_expr(min)
        self.extent = Expr() if extent is None else to_expr(extent)

    def __repr__(self) -> str:
        return f"<halide.Range [{self.min}, {self.extent}]>"


_LETTERS = "xyzw"


class RDom(Operand):
    """A reduction domain: the box an update or an inline reduction loops over, first dimension innermost.

    `RDom([(0, 10), (0, 20)])` gives (min, extent) pairs of int32 Exprs without Vars or Funcs; `RDom(buffer)` and `RDom(image_param)` the shape of
    that buffer. `r.x r.y r.z r.w` and `r[i]` are its RVars; `where` restricts it.
    """

    __slots__ = ("domain",)
    domain: ReductionDomain | None

    def __init__(self, region: Any = None, name: str = "") -> None:
        self.domain = None
        if region is None:
            return
        if isinstance(region, RDom):
            self.domain = region.domain
            return
        base = unique_name(name) if name else anonymous_name("r")
        if hasattr(region, "param"):
            region = [(_field(region, "min", d), _field(region, "extent", d)) for d in range(region.dimensions())]
        elif isinstance(region, tuple) and len(region) == 2 and not isinstance(region[0], (tuple, Range)):
            region = [region]
        variables = []
        for i, r in enumerate(region):
            low, extent = (r.min, r.extent) if isinstance(r, Range) else r
            low, extent = self._bound(base, i, low), self._bound(base, i, extent)
            suffix = _LETTERS[i] if i < 4 and len(region) <= 4 else str(i)
            variables.append(ReductionVariable(f"{base}${suffix}", low, extent))
        if not variables:
            raise CompileError("RDom needs at least one dimension")
        self.domain = ReductionDomain(base, tuple(variables))

    @staticmethod
    def _bound(name: str, index: int, value: Any) -> n.Expr:
        if isinstance(value, float):
            raise TypeError(f"RDom {name}: the bounds of dimension {index} must be int32, not {value!r}")
        e = to_expr(value).node
        if e is None:
            raise CompileError(f"RDom {name}: a bound of dimension {index} is undefined")
        if e.type.bits() < 32 and e.type.is_int_or_uint() or b.as_int(e) is not None:
            e = b.cast(INT32, e)
        if e.type is not INT32:
            raise CompileError(f"RDom {name}: the bounds of dimension {index} must be int32, but {to_text(e)} is {e.type}")
        for v in nodes_of(e, n.Variable):
            if v.param is None:
                raise CompileError(f"RDom {name}: the bounds of dimension {index} use {v.name}, but may only use constants and parameters")
        for c in nodes_of(e, n.Call):
            if c.call_type in (n.CallType.Halide, n.CallType.Image):
                raise CompileError(f"RDom {name}: the bounds of dimension {index} call {c.name}, but may only use constants and parameters")
        return e

    def _defined(self) -> ReductionDomain:
        if self.domain is None:
            raise CompileError("This RDom is undefined; give it a region: RDom([(min, extent), ...])")
        return self.domain

    def only(self, what: str) -> RVar:
        """The RVar of a one-dimensional domain. Raises CompileError for others."""
        d = self._defined()
        if len(d.variables) != 1:
            raise CompileError(f"RDom {d.name} has {len(d.variables)} dimensions; only a one-dimensional RDom can be used as {what}; use {d.name}.x, .y, ...")
        return RVar.of(d, 0)

    def as_node(self) -> n.Expr:
        return self.only("an Expr").as_node()

    def defined(self) -> bool:
        """Whether it has a region."""
        return self.domain is not None

    def same_as(self, other: RDom) -> bool:
        """Whether both are one and the same domain."""
        return self.domain is other.domain

    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self.domain.variables) if self.domain else 0

    def name(self) -> str:
        """The name of the only dimension."""
        return self.only("a name").name()

    def __len__(self) -> int:
        return self.dimensions()

    def __getitem__(self, index: int) -> RVar:
        if not 0 <= index < self.dimensions():
            raise KeyError(f"RDom has {self.dimensions()} dimensions, no number {index}")
        return RVar.of(self._defined(), index)

    def __iter__(self) -> Iterator[RVar]:
        return (self[i] for i in range(self.dimensions()))

    def _letter(self, i: int) -> RVar:
        d = self._defined()
        if i >= len(d.variables):
            raise CompileError(f"RDom {d.name} has {len(d.variables)} dimensions, no .{_LETTERS[i]} ({user_location()})")
        return RVar.of(d, i)

    @property
    def x(self) -> RVar:
        """The first, innermost dimension."""
        return self._letter(0)

    @property
    def y(self) -> RVar:
        """The second dimension."""
        return self._letter(1)

    @property
    def z(self) -> RVar:
        """The third dimension."""
        return self._letter(2)

    @property
    def w(self) -> RVar:
        """The fourth dimension."""
        return self._letter(3)

    def where(self, predicate: Any) -> None:
        """Leave out the points where `predicate` (a bool Expr of this domain's RVars, Vars of the Func, parameters, Func values) is false.

        Raises CompileError for another domain's RVar and once the domain was used in a definition.
        """
        d = self._defined()
        p = to_expr(predicate).as_node()
        if not p.type.is_bool():
            raise CompileError(f"The predicate of RDom {d.name} must be a bool, but {to_text(p)} is {p.type}")
        if d.frozen:
            raise CompileError(f"RDom {d.name} was already used in a definition; call where() before ({user_location()})")
        for v in nodes_of(p, n.Variable):
            if v.rdom is not None and v.rdom is not d:
                raise CompileError(f"The predicate {to_text(p)} of RDom {d.name} uses {v.name} of another domain, {v.rdom.name}; only RVars of {d.name} may occur")
        d.predicates.append(p)

    def __repr__(self) -> str:
        if self.domain is None:
            return "<halide.RDom RDom()>"
        return f"<halide.RDom '{self.domain.name}' " + ", ".join(f"{v.name}({to_text(v.min)}, {to_text(v.extent)})" for v in self.domain.variables) + ">"


def _field(shaped: Any, field: str, d: int) -> Expr:
    """Symbolic min or extent of dimension `d` of a Buffer or ImageParam."""
    return Expr.of(n.Variable(INT32, f"{shaped.param.name}.{field}.{d}", shaped.param))


class VarOrRVar:
    """Either a Var or an RVar: the name of a loop, as scheduling directives take it."""

    def __init__(self, v: Any, is_rvar: bool = False) -> None:
        if isinstance(v, VarOrRVar):
            self._name, self.is_rvar = v._name, v.is_rvar
        elif isinstance(v, (RVar, RDom)):
            self._name, self.is_rvar = v.name(), True
        elif isinstance(v, Var):
            self._name, self.is_rvar = v.name(), False
        elif isinstance(v, str):
            self._name, self.is_rvar = v, is_rvar
        else:
            raise TypeError(f"expected a Var or an RVar, not {v!r}")

    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def var(self) -> Var:
        """As a Var."""
        return Var(self._name)

    @property
    def rvar(self) -> RVar:
        """As an RVar."""
        return RVar(self._name)


def expand_names(count: int) -> list[str]:
    """`_0` .. for `count` implicit dimensions."""
    return [f"_{i}" for i in range(count)]


def implicit_count(values: Sequence[n.Expr]) -> int:
    """How many implicit Vars a set of values uses: one more than the largest index."""
    return max((int(v[1:]) + 1 for e in values for v in free_variables(e) if _IMPLICIT.fullmatch(v)), default=0)


_ = Var("_")
_0, _1, _2, _3, _4, _5, _6, _7, _8, _9 = (Var(f"_{i}") for i in range(10))


def vars(names: str) -> tuple[Var, ...]:
    """Several Vars at once: `x, y = vars("x y")`."""
    return tuple(Var(v) for v in names.replace(",", " ").split())
