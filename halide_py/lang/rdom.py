"""RDom, RVar, Range and VarOrRVar: the boxes that updates and inline reductions loop over, and the names of their loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import expect, user_error
from ..ir import nodes as n
from ..ir.function import ReductionDomain, ReductionVariable
from ..ir.names import anonymous_name, unique_name
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from .expr import Expr, Operand, to_expr
from .promotion import convert, lossless
from .var import Var

_LETTERS = "xyzw"


class RVar(Operand):
    """One dimension of a reduction domain (`r.x`), or a name for a part of one made by a split.

    >>> hl.RDom([(0, 4)], 'r').x.name()[-2:]
    '$x'
    """

    __slots__ = ("_name", "_domain", "_index")
    _name: str

    def __init__(self, name: str | RDom | None = None) -> None:
        self._domain: ReductionDomain | None = None
        self._index = 0
        if isinstance(name, RDom):
            only = name.only("an RVar")
            self._name, self._domain = only._name, only._domain
        else:
            self._name = anonymous_name("r") if name is None else name

    @staticmethod
    def of(domain: ReductionDomain, index: int) -> RVar:
        """Dimension `index` of a domain."""
        r = RVar(domain.variables[index].name)
        r._domain, r._index = domain, index
        return r

    def as_node(self) -> n.Expr:
        if self._domain is None:
            raise user_error(f"RVar {self._name} belongs to no RDom, so it has no value; it can only name a loop")
        return n.Variable(INT32, self._name, None, self._domain)

    def name(self) -> str:
        """The name of the loop: `r$x`.

        >>> hl.RDom([(0, 4), (0, 3)], 'r').y.name()[-2:]
        '$y'
        """
        return self._name

    def min(self) -> Expr:
        """The first value of the loop; undefined for a mere name.

        >>> hl.evaluate(hl.RDom([(2, 4)]).x.min())
        2
        """
        return Expr.of(self._domain.variables[self._index].min if self._domain else None)

    def extent(self) -> Expr:
        """The number of iterations; undefined for a mere name.

        >>> hl.evaluate(hl.RDom([(2, 4)]).x.extent())
        4
        """
        return Expr.of(self._domain.variables[self._index].extent if self._domain else None)

    def __repr__(self) -> str:
        return f"<halide.RVar {_range_text(self._name, self.min().node, self.extent().node)}>"


def _range_text(name: str, low: n.Expr | None, extent: n.Expr | None) -> str:
    return f"{name}({'(undefined)' if low is None else to_text(low)}, {'(undefined)' if extent is None else to_text(extent)})"


class Range:
    """An interval given by its first value and its size: `Range(0, 10)`, `Range((0, 10))`, or two undefined Exprs.

    >>> hl.evaluate(hl.Range(2, 10).extent)
    10
    """

    __slots__ = ("min", "extent")

    def __init__(self, min: Any = None, extent: Any = None) -> None:
        if isinstance(min, tuple) and extent is None:
            min, extent = min
        self.min = Expr() if min is None else to_expr(min)
        self.extent = Expr() if extent is None else to_expr(extent)

    @staticmethod
    def of(x: Any) -> Range:
        """A Range from a Range or a pair. Raises TypeError for anything else."""
        if isinstance(x, Range):
            return x
        if isinstance(x, (tuple, list)) and len(x) == 2:
            return Range(*x)
        raise TypeError(f"expected a Range or a (min, extent) pair, not {x!r}")

    def __repr__(self) -> str:
        return f"<halide.Range {_range_text('', self.min.node, self.extent.node)}>"


class RDom(Operand):
    """A reduction domain: the box an update or an inline reduction loops over, first dimension innermost.

    `RDom([(0, 10), (0, 20)])` takes (min, extent) pairs of int32 Exprs without Vars or Funcs; `RDom(buffer)` and `RDom(image_param)` the
    shape of that buffer. `r.x r.y r.z r.w` and `r[i]` are its RVars; `where` restricts it. Raises CompileError for bounds that are
    undefined, not int32 or that use a Var or a Func.
    """

    __slots__ = ("reduction",)
    reduction: ReductionDomain | None

    def __init__(self, region: Any = None, name: str = "", *, buffer: Any = None, image_param: Any = None) -> None:
        self.reduction = None
        region = next((x for x in (region, buffer, image_param) if x is not None), None)
        if region is None:
            return
        if isinstance(region, RDom):
            self.reduction = region.reduction
            return
        if not isinstance(name, str):
            raise TypeError(f"the name of an RDom must be a string, not {name!r}; the region is a list of (min, extent) pairs")
        base = unique_name(name) if name else anonymous_name("r")
        if hasattr(region, "param") and hasattr(region, "dimensions"):
            pairs = [(_field(region, "min", d), _field(region, "extent", d)) for d in range(region.dimensions())]
        else:
            if isinstance(region, tuple) and len(region) == 2 and not isinstance(region[0], (tuple, list, Range)):
                raise TypeError(f"RDom takes a list of (min, extent) pairs: RDom([{region!r}])")
            if not isinstance(region, Iterable):
                raise TypeError(f"RDom takes a list of (min, extent) pairs, a Buffer or an ImageParam, not {region!r}")
            pairs = [(r.min, r.extent) for r in map(Range.of, region)]
        if not pairs:
            raise user_error(f"RDom {base} has no dimensions; give it at least one (min, extent) pair")
        letters = len(pairs) <= len(_LETTERS)
        names = [f"{base}${_LETTERS[i] if letters else i}" for i in range(len(pairs))]
        self.reduction = ReductionDomain(base, tuple(
            ReductionVariable(name, *_bounds(base, i, *pair)) for i, (name, pair) in enumerate(zip(names, pairs))))

    def _defined(self) -> ReductionDomain:
        if self.reduction is None:
            raise user_error("This RDom is undefined; give it a region: RDom([(min, extent), ...])")
        return self.reduction

    def only(self, what: str) -> RVar:
        """The RVar of a one-dimensional domain. Raises CompileError for others."""
        d = self._defined()
        if len(d.variables) != 1:
            raise user_error(f"Can't treat this multidimensional RDom as {what}:\n{self._text()}\nOnly single-dimensional RDoms can be; "
                             "use its dimensions .x, .y, ...")
        return RVar.of(d, 0)

    def as_node(self) -> n.Expr:
        return self.only("an Expr").as_node()

    def domain(self) -> ReductionDomain:
        """What the compiler keeps of it: names, bounds, predicates. Raises CompileError while undefined.

        >>> len(hl.RDom([(0, 4), (0, 3)]).domain().variables)
        2
        """
        return self._defined()

    def defined(self) -> bool:
        """Whether it has a region.

        >>> hl.RDom([(0, 4)]).defined(), hl.RDom().defined()
        (True, False)
        """
        return self.reduction is not None

    def same_as(self, other: RDom) -> bool:
        """Whether both are one and the same domain.

        >>> hl.RDom([(0, 4)]).same_as(hl.RDom([(0, 4)]))
        False
        """
        return self.reduction is expect(other, RDom, "same_as()").reduction

    def dimensions(self) -> int:
        """Number of dimensions; 0 while undefined.

        >>> hl.RDom([(0, 4), (0, 3)]).dimensions()
        2
        """
        return len(self.reduction.variables) if self.reduction else 0

    def name(self) -> str:
        """The name of the only dimension."""
        return self.only("an RVar").name()

    def __len__(self) -> int:
        return self.dimensions()

    def __getitem__(self, index: int) -> RVar:
        if not isinstance(index, int):
            raise TypeError(f"RDom indices must be integers, not {type(index).__name__}")
        if not 0 <= index < self.dimensions():
            raise KeyError(f"RDom has {self.dimensions()} dimensions, there is no number {index}")
        return RVar.of(self._defined(), index)

    def __iter__(self) -> Iterator[RVar]:
        return (self[i] for i in range(self.dimensions()))

    def _letter(self, i: int) -> RVar:
        d = self._defined()
        if i >= len(d.variables):
            raise user_error(f"RDom {d.name} has {len(d.variables)} dimension(s), so there is no .{_LETTERS[i]}")
        return RVar.of(d, i)

    @property
    def x(self) -> RVar:
        """The first, innermost dimension.

        >>> hl.evaluate(hl.RDom([(0, 4), (0, 3)]).x.extent())
        4
        """
        return self._letter(0)

    @property
    def y(self) -> RVar:
        """The second dimension.

        Raises CompileError where there is none.

        >>> hl.evaluate(hl.RDom([(0, 4), (0, 3)]).y.extent())
        3
        """
        return self._letter(1)

    @property
    def z(self) -> RVar:
        """The third dimension.

        Raises CompileError where there is none.

        >>> hl.evaluate(hl.RDom([(0, 4), (0, 3), (0, 2)]).z.extent())
        2
        """
        return self._letter(2)

    @property
    def w(self) -> RVar:
        """The fourth dimension.

        Raises CompileError where there is none.

        >>> hl.evaluate(hl.RDom([(0, 4), (0, 3), (0, 2), (0, 9)]).w.extent())
        9
        """
        return self._letter(3)

    def where(self, predicate: Any) -> None:
        """Leave out the points where `predicate` (a bool Expr of this domain's RVars, Vars of the Func, parameters, Func values) is false.

        Raises CompileError for another domain's RVar and once the domain was used in a definition.
        """
        d = self._defined()
        p = to_expr(predicate).as_node()
        if not p.type.is_bool():
            raise user_error(f"The predicate of RDom {d.name} must be a bool, but {to_text(p)} has type {p.type}")
        if d.frozen:
            raise user_error(f"{self._text()} cannot be given a new predicate, because it has already been used in the update definition "
                             "of some function; call where() before")
        for v in nodes_of(p, n.Variable):
            if v.rdom is not None and v.rdom is not d:
                raise user_error(f"An RDom's predicate may only refer to its own RVars, not the RVars of some other RDom: {to_text(p)} is "
                                 f"set for RDom {d.name}, but uses {v.name} of RDom {v.rdom.name}")
        d.predicates.append(p)

    def _text(self) -> str:
        if self.reduction is None:
            return "RDom()"
        return "RDom(\n" + "".join(f"  {_range_text(v.name, v.min, v.extent)}\n" for v in self.reduction.variables) + ")"

    def __repr__(self) -> str:
        return f"<halide.RDom {self._text()}>"


def _bounds(name: str, index: int, low: Expr, extent: Expr) -> tuple[n.Expr, n.Expr]:
    """Checked bounds of one dimension."""
    if low.node is None or extent.node is None:
        raise user_error(f"The RDom {name} may not be constructed with undefined Exprs; see dimension {index}")
    where = f"The bounds of the RDom {name} in dimension {index} are:\n  {to_text(low.node)} ... {to_text(extent.node)}\n"
    for e in (low.node, extent.node):
        if e.type.is_float():
            raise TypeError(f"{where}They must be int32, but {to_text(e)} is {e.type}")
        for v in nodes_of(e, n.Variable):
            if v.param is None:
                raise user_error(f"{where}These depend on the variable {v.name}. The bounds of an RDom may not depend on a free variable.")
        for c in nodes_of(e, n.Call):
            if c.call_type is n.CallType.Halide:
                raise user_error(f"{where}These depend on a call to {c.name}. The bounds of an RDom may not depend on a call to a Func.")
    found = lossless(INT32, low.node), lossless(INT32, extent.node)
    for e, safe in zip((low.node, extent.node), found):
        if safe is None:
            raise user_error(f"{where}They must be int32, but {to_text(e)} is {e.type}; cast it with i32()")
    return convert(INT32, low.node), convert(INT32, extent.node)


def _field(shaped: Any, field: str, d: int) -> Expr:
    """Symbolic min or extent of dimension `d` of a Buffer or ImageParam."""
    return Expr.of(n.Variable(INT32, f"{shaped.param.name}.{field}.{d}", shaped.param))


class VarOrRVar:
    """Either a Var or an RVar: the name of a loop, as scheduling directives take it.

    >>> hl.VarOrRVar('x', is_rvar=True).is_rvar
    True
    """

    _name: str
    _is_rvar: bool

    def __init__(self, v: Any, is_rvar: bool = False) -> None:
        if isinstance(v, VarOrRVar):
            self._name, self._is_rvar = v._name, v._is_rvar
        elif isinstance(v, (RVar, RDom)):
            self._name, self._is_rvar = v.name(), True
        elif isinstance(v, Var):
            self._name, self._is_rvar = v.name(), False
        elif isinstance(v, str):
            self._name, self._is_rvar = v, bool(is_rvar)
        else:
            raise TypeError(f"expected a Var, an RVar or a one-dimensional RDom, not {v!r}")

    def name(self) -> str:
        """The name.

        >>> hl.VarOrRVar(hl.Var('x')).name()
        'x'
        """
        return self._name

    @property
    def is_rvar(self) -> bool:
        """Whether it names a loop over an RVar.

        >>> hl.VarOrRVar(hl.Var('x')).is_rvar
        False
        """
        return self._is_rvar

    @property
    def var(self) -> Var:
        """As a Var.

        >>> hl.VarOrRVar('x', False).var.name()
        'x'
        """
        return Var(self._name)

    @property
    def rvar(self) -> RVar:
        """As an RVar.

        >>> hl.VarOrRVar('r', True).rvar.name()
        'r'
        """
        return RVar(self._name)


def as_loop(v: Any) -> VarOrRVar:
    """The loop a directive names: a Var, an RVar or a one-dimensional RDom. Raises TypeError for a mere string."""
    if isinstance(v, str):
        raise TypeError(f"expected a Var, an RVar or a one-dimensional RDom, not the string {v!r}; write Var({v!r})")
    return VarOrRVar(v)


def loops(vars: Sequence[Any], listed: Sequence[Any] | None = None) -> list[VarOrRVar]:
    """The loops named by a directive's arguments, given one by one, as one list, or as one list by keyword (`listed`); a multi-dimensional
    RDom stands for its RVars in order."""
    if listed is not None:
        if vars:
            raise TypeError("Give the loops of a directive once: one by one or as a list")
        vars = listed
    items = list(vars[0]) if len(vars) == 1 and isinstance(vars[0], (list, tuple)) else list(vars)
    out: list[VarOrRVar] = []
    for v in items:
        out += [VarOrRVar(r) for r in v] if isinstance(v, RDom) else [as_loop(v)]
    return out
