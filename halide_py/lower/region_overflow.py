"""Regions that int32 coordinates do not reach are errors, never regions that wrapped around.

IR before: the regions of all stages as lets around the pipeline, `g.s0.x.max = f.s0.x.max * 2 + 1`. After: checks inside those lets, for
each dimension whose region may leave int32 in an end or in its extent, computed in 64 bits. Of ends that are the same but for a constant
the outermost is checked, so a chain of stencils costs one. Regions further in lie inside those at the root: nothing is checked in loops.
What an end is computed from, the operands of quotients and clamps, must be int32 too: the loops compute it in int32. Raises CompileError
where a constant alone leaves int32, as Halide does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.printer import to_text
from ..ir.simplify import linear
from ..ir.simplify.ranges import Range, add, times
from ..ir.simplify.simplify import Simplifier
from ..ir.traverse import nodes_of
from ..ir.types import INT32, INT64
from .buffers import checked
from .schedule_functions import Nests
from .wide import widened

_LOW, _HIGH = int(INT32.min_value()), int(INT32.max_value())
_COMPOUND = n.Div.bit | n.Mul.bit | n.Min.bit | n.Max.bit | n.Select.bit
_EXTENT = re.compile(r"\.extent\.\d+$")


@dataclass(frozen=True)
class _Form:
    """A linear form over buffer fields, parameters and what is not linear."""

    terms: linear.Terms
    constant: int

    @property
    def key(self) -> frozenset[tuple[n.Expr, int]]:
        """The same for forms that differ by a constant."""
        return frozenset(self.terms.items())

    def plus(self, other: _Form, factor: int = 1) -> _Form:
        """The sum with a multiple of another."""
        terms = dict(self.terms)
        for e, c in other.terms.items():
            terms[e] = terms.get(e, 0) + c * factor
        return _Form({e: c for e, c in terms.items() if c}, self.constant + other.constant * factor)

    def __str__(self) -> str:
        products = [to_text(e) if c == 1 else f"{to_text(e)}*{c}" for e, c in self.terms.items()]
        return " + ".join([*products, str(self.constant)] if self.constant or not products else products)

    def value(self) -> n.Expr:
        """It as an Expr of 64 bits."""
        total = b.const(INT64, self.constant)
        for e, c in self.terms.items():
            total = n.Add(n.Mul(widened(e), b.const(INT64, c)), total)
        return total


@dataclass(eq=False)
class _Region:
    """One dimension of what one stage must compute, and what of it is to be asserted."""

    func: str
    dimension: str
    low: _Form = _Form({}, 0)
    high: _Form = _Form({}, 0)


class _Checker:
    """The walk down the lets at the root."""

    def __init__(self, nests: Nests) -> None:
        self.regions: dict[str, _Region] = {}
        for nest in nests.stages:
            for v in nest.base_variables:
                for suffix in ("", "_required"):
                    region = _Region(nest.function.name, v)
                    self.regions |= {f"{nest.prefix}{v}.{end}{suffix}": region for end in ("min", "max")}
        self.forms: dict[str, _Form] = {}
        self.facts = Simplifier()
        self.refused: _Region | None = None
        self.claimed: dict[tuple[str, frozenset[tuple[n.Expr, int]]], int] = {}  # how far out
        self.outermost: dict[tuple[str, frozenset[tuple[n.Expr, int]]], tuple[_Form, _Region]] = {}

    def visit(self, s: n.Stmt) -> n.Stmt:
        """`s` with the asserts inside its lets."""
        if isinstance(s, n.LetStmt):
            if s.value.type is INT32:
                self.define(s.name, s.value)
            return n.LetStmt(s.name, s.value, self.visit(s.body))
        if isinstance(s, n.Block) and isinstance(s.stmts[0], n.Assert):
            return b.block([s.stmts[0], self.visit(b.block(s.stmts[1:]))])
        return b.block([*self.asserts(), s])

    def define(self, name: str, value: n.Expr) -> None:
        """Take note of one symbol."""
        region = self.regions.get(name)
        self.limit_variables(value)
        self.forms[name] = form = self.form(value)
        if region is None:
            return
        if name.rpartition(".")[2].startswith("min"):
            region.low = form
        else:
            region.high = form
            self.claim("extent", _extent(region.low, form), region)
        self.check(value, form, region)
        self.facts.limit(name, b.i32(_LOW), b.i32(_HIGH))

    def limit_variables(self, e: n.Expr) -> None:
        """All variables are int32, extents of buffers are not negative."""
        for v in nodes_of(e, n.Variable):
            if v.type is INT32 and not self.facts.is_bound(v.name):
                self.facts.limit(v.name, b.i32(0 if _EXTENT.search(v.name) else _LOW), b.i32(_HIGH))

    def form(self, e: n.Expr) -> _Form:
        """The linear form of an expression in terms of what the symbols around it were defined by."""
        terms, constant = linear.gather(e)
        out = _Form({}, constant)
        for term, c in terms.items():
            known = self.forms.get(term.name) if isinstance(term, n.Variable) else None
            out = out.plus(known or _Form({term: 1}, 0), c)
        return out

    def range(self, form: _Form) -> Range:
        """The numbers it lies between."""
        total: Range = (form.constant, form.constant)
        for e, c in form.terms.items():
            self.limit_variables(e)
            total = add(total, times(self.facts.range(e), c))
        return total

    def check(self, e: n.Expr, form: _Form, region: _Region) -> None:
        """Claim that `e` is int32, and so is what it is computed from."""
        if not e.mask & _COMPOUND and _inside(self.facts.range(e)):
            return
        self.claim("max", form, region)
        self.claim("min", form, region)
        for term in form.terms:
            if isinstance(term, (n.Div, n.Mul, n.Min, n.Max, n.Select)):
                for part in term.children()[-2:]:
                    self.check(part, self.form(part), region)

    def claim(self, side: str, form: _Form, region: _Region) -> None:
        """Remember that an end, or an extent, has to be int32, unless it is or something further out has to be."""
        key, outward = (side, form.key), -form.constant if side == "min" else form.constant
        if _LOW <= form.constant <= _HIGH and self.claimed.get(key, outward - 1) >= outward:
            return
        self.claimed[key] = outward
        for e, c in form.terms.items():
            if abs(c) == 1 and type(e) is (n.Min if (side == "min") == (c > 0) else n.Max):  # it has to be if all choices have to be
                rest = _Form({x: k for x, k in form.terms.items() if x is not e}, form.constant)
                for part in e.children():
                    self.claim(side, rest.plus(self.form(part), c), region)
                return
        low, high = self.range(form)
        if (side == "min" or high is not None and high <= _HIGH) and (side != "min" or low is not None and low >= _LOW):
            return
        if not _LOW <= form.constant <= _HIGH or sum(map(abs, form.terms.values())) > _HIGH:
            self.refused = self.refused or region
        if side == "max" and form.constant < 0 and _is_end_of_buffer(form.terms):
            return
        before = self.outermost.get(key)
        if before is None or (form.constant < before[0].constant if side == "min" else form.constant > before[0].constant):
            self.outermost[key] = form, region

    def asserts(self) -> Iterator[n.Stmt]:
        """One assert for each region that is the outermost of some."""
        if self.refused is not None:
            raise CompileError(f"Dimension {self.refused.dimension} of Func {self.refused.func} is required from {self.refused.low} to "
                               f"{self.refused.high}, which does not fit in int32: its constants are too large", self.refused.func)
        inner: dict[_Region, list[n.Expr]] = {}
        for form, region in self.outermost.values():
            values = inner.setdefault(region, [])
            if form not in (region.low, region.high, _extent(region.low, region.high)):
                values.append(form.value())
        for region, values in inner.items():
            yield _check(region.func, region.dimension, region.low.value(), region.high.value(), values)


def _extent(low: _Form, high: _Form) -> _Form:
    return high.plus(low, -1).plus(_Form({}, 1))


def _check(func: str, dimension: str, low: n.Expr, high: n.Expr, inner: Sequence[n.Expr]) -> n.Stmt:
    """The check of a region and of values it is computed from, all of 64 bits."""
    return checked("reach", b.string(func), b.string(dimension), low, high, b.i32(len(inner)), *inner)


def check_box(func: str, dimension: str, low: n.Expr, high: n.Expr) -> list[n.Stmt]:
    """The assert that coordinates from `low` to `high`, int32 Exprs, and their number are int32; none where that is certain."""
    count = n.Add(n.Sub(high, low), b.i32(1))
    scope = Simplifier({v.name: (b.i32(_LOW), b.i32(_HIGH)) for v in nodes_of((low, high), n.Variable)})
    if all(_inside(scope.range(e)) for e in nodes_of((low, high, count), (n.Add, n.Sub, n.Mul))):
        return []
    return [_check(func, dimension, widened(low), widened(high), ())]


def _inside(r: Range) -> bool:
    return r[0] is not None and r[1] is not None and r[0] >= _LOW and r[1] <= _HIGH


def _is_end_of_buffer(terms: Mapping[n.Expr, int]) -> bool:
    """min + extent of one dimension of one buffer, whose last coordinate is int32."""
    names = sorted(e.name for e in terms if isinstance(e, n.Variable))
    return (
        len(terms) == len(names) == 2
        and set(terms.values()) == {1}
        and bool(_EXTENT.search(names[0]))
        and names[0].replace(".extent.", ".min.") == names[1]
    )


def check_regions(s: n.Stmt, nests: Nests) -> n.Stmt:
    """`s` with asserts that what its stages must compute is within int32."""
    return _Checker(nests).visit(s)
