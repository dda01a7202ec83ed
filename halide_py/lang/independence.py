"""Which loops of an update may run in any order or at once: race-free RVars, and updates whose order does not matter.

All answers are conservative: False (or ImpureRVar) means not proved.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ir
from ..ir import build as b
from ..ir import nodes as n
from ..ir.associativity import Combination, combination
from ..ir.function import Definition, DimKind, Function, ReductionVariable
from ..ir.traverse import mentions, nodes_of


def _self_calls(name: str, roots: Sequence[n.Expr]) -> list[n.Call]:
    """The calls of Func `name` in its own update."""
    return [c for c in nodes_of(roots, n.Call) if c.name == name and c.call_type is n.CallType.Halide]


# ---------------------------------------------------------------------------------------------------------------
# Race-free RVars


def _step(e: n.Expr, name: str) -> tuple[int, n.Expr | None]:
    """(k, rest) for a coordinate k * name + rest where rest is the same in all iterations of all loops; k = 0 when it is not of that
    form."""
    terms, constant = ir.simplify.linear.gather(e)
    k = 0
    rest: n.Expr = b.i32(constant)
    for term, factor in terms.items():
        if isinstance(term, n.Variable) and term.name == name:
            k = factor
        elif any(v.param is None for v in nodes_of(term, n.Variable)) or _reads(term):
            return 0, None
        else:
            rest = b.add(rest, b.mul(term, b.i32(factor)))
    return k, rest


def _reads(e: n.Expr) -> bool:
    """Whether an expression calls a Func or an image, whose values are not known."""
    return any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))


def _span(e: n.Expr) -> tuple[int, int] | None:
    """The smallest and the largest value of a coordinate that is linear in RVars of constant ranges."""
    terms, low = ir.simplify.linear.gather(e)
    high = low
    for term, factor in terms.items():
        variables = term.rdom.variables if isinstance(term, n.Variable) and term.rdom is not None else ()
        r = next((v for v in variables if v.name == term.name), None)  # type: ignore[attr-defined]
        first, extent = (b.as_int(r.min), b.as_int(r.extent)) if r is not None else (None, None)
        if first is None or extent is None:
            return None
        ends = sorted((first * factor, (first + extent - 1) * factor))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _apart(call: n.Expr, place: n.Expr, r: ReductionVariable) -> bool:
    """Whether a read at coordinate `call` can't meet a write at `place` made by another iteration of RVar `r`."""
    ours, theirs = _span(call), _span(place)
    if ours is not None and theirs is not None and (ours[1] < theirs[0] or theirs[1] < ours[0]):
        return True
    (k, rest), (j, other) = _step(place, r.name), _step(call, r.name)
    if rest is None or other is None or k != j:
        return False
    terms, constant = ir.simplify.linear.gather(n.Sub(other, rest))
    if any(terms.values()):
        return False
    if k == 0:
        return constant != 0
    extent = b.as_int(r.extent)
    return constant == 0 or constant % k != 0 or extent is not None and abs(constant // k) >= extent


def rvar_kind(f: Function, r: ReductionVariable, args: Sequence[n.Expr], values: Sequence[n.Expr], predicate: n.Expr) -> DimKind:
    """PureRVar when iterations of the RVar only touch elements of their own: no two of them write the same element, and none reads what
    another writes. A single iteration has no other."""
    if b.as_int(r.extent) == 1:
        return DimKind.PureRVar
    name = r.name
    injective = any(_step(a, name)[0] != 0 for a in args)
    calls = _self_calls(f.name, [*values, *args, predicate])
    if injective and all(any(_apart(x, a, r) for x, a in zip(c.args, args)) for c in calls):
        return DimKind.PureRVar
    return DimKind.ImpureRVar


# ---------------------------------------------------------------------------------------------------------------
# Updates in any order


def order_is_free(f: Function, d: Definition) -> bool:
    """Whether an update gives the same result (floats: up to rounding) in whatever order its iterations run: it stores constants, or it
    folds values that do not
    depend on the Func into each element by an associative and commutative operation, or there is one iteration."""
    if d.rdom is not None and all(b.as_int(r.extent) == 1 for r in d.rdom.variables):
        return True
    if _reads_itself(f, [*d.args, d.predicate]):
        return False
    if not _reads_itself(f, d.values) and not any(v.rdom is not None for v in nodes_of(d.values, n.Variable)):
        return True
    found = combination(f, d)
    return isinstance(found, Combination) and found.commutative


def _reads_itself(f: Function, roots: Sequence[n.Expr]) -> bool:
    """Whether the Func's own values are read."""
    return any(mentions(e, f.name) for e in roots)
