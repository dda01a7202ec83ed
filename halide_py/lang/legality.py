"""What a directive may do to a stage without changing a result: names, factors, tails of splits, the order of loops, races.

Source of the rules: Halide's Func.cpp (Stage) and ApplySplit.cpp; where Halide accepts what changes a result, it is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import ir, lang
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Dim, DimKind, Split, SplitKind, TailStrategy
from ..ir.nodes import ForType
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from .expr import Expr, to_node
from .promotion import convert
from .rdom import VarOrRVar
from .stage_base import StageBase

_BLENDS = (TailStrategy.ShiftInwardsAndBlend, TailStrategy.RoundUpAndBlend)
_EXACT_TAILS = (TailStrategy.Auto, TailStrategy.GuardWithIf, TailStrategy.Predicate)
WORD = {
    ForType.Parallel: "parallel",
    ForType.Vectorized: "vectorized",
    ForType.Unrolled: "unrolled",
    ForType.Serial: "serial",
    ForType.Extern: "extern",
}


class LegalityChecks(StageBase):
    """Checks of directives against the schedule so far. Each fails with the user's line and what to write instead."""

    def _check_new_name(self, v: VarOrRVar, directive: str, argument: str, free: Sequence[str]) -> None:
        if v.name() not in free and any(d.var == v.name() for d in self._schedule().dims):
            self._fail(f"can't create {argument} {v.name()} using {directive}(), because {v.name()} is already used in this Func's "
                       "schedule elsewhere; choose a new name")

    def _factor(self, factor: Any, directive: str) -> n.Expr:
        if isinstance(factor, Expr) and not factor.defined():
            self._fail(f"the factor of {directive}() is undefined")
        e = to_node(factor)
        value = b.as_int(e)
        if not e.type.is_int_or_uint() or (value is None and e.type.bits() > 32):
            self._fail(f"the factor of {directive}() must be an int32, but {to_text(e)} has type {e.type}")
        if value is not None and value <= 0:
            self._fail(f"the factor of {directive}() is {value}, but split factors must be strictly positive; use max(factor, 1) if it is "
                       "computed")
        for v in nodes_of(e, n.Variable):
            if v.param is None:
                self._fail(f"the factor of {directive}(), {to_text(e)}, uses {v.name}; it may only use constants and parameters")
        return convert(INT32, e)

    def _check_tail(self, old: str, d: Dim, tail: TailStrategy) -> None:
        if d.is_rvar() and tail not in _EXACT_TAILS:
            self._fail(f"when splitting RVar {old} the tail strategy must be GuardWithIf, Predicate, or Auto, not {tail.name}. Anything "
                       "else may change the meaning of the algorithm")
        if tail is TailStrategy.PredicateLoads and old in self._inner_names():
            self._fail(f"can't use TailStrategy.PredicateLoads for splitting {old}, which stems from the inner loop of another split; use "
                       "Predicate or GuardWithIf")
        if tail is TailStrategy.PredicateLoads and self._moved_inwards(old):
            self._fail(f"can't use TailStrategy.PredicateLoads for splitting {old}, because blocks of it are moved inwards by another "
                       "split (ShiftInwards): it would store what it did not load over values that were computed; use Predicate or "
                       "GuardWithIf")
        if tail in _BLENDS:
            self._check_blend(old, tail)
        if self._stage == 0:
            return
        if tail is TailStrategy.ShiftInwards:
            self._fail(f"when splitting Var {old}, ShiftInwards is not a legal tail strategy for update definitions, as it may change the "
                       "meaning of the algorithm; use GuardWithIf, RoundUp or Auto")
        if tail is TailStrategy.RoundUp and old in self._inner_names():
            self._fail(f"can't use TailStrategy.RoundUp for splitting {old}, which stems from the inner loop of another split of an update "
                       "definition. It may redundantly recompute some values, which could change the meaning of the algorithm. Use "
                       "TailStrategy.GuardWithIf instead")

    def _moved_inwards(self, old: str) -> bool:
        inwards = (TailStrategy.ShiftInwards, TailStrategy.ShiftInwardsAndBlend, *((TailStrategy.Auto,) if self._stage == 0 else ()))
        return any(s.kind is SplitKind.Split and s.tail in inwards and s.old in self._relatives(old) for s in self._schedule().splits)

    def _check_blend(self, old: str, tail: TailStrategy) -> None:
        """What is kept is read and stored again, so no two iterations that meet there may run at once."""
        kinds = (ForType.Parallel, ForType.Vectorized) if tail is TailStrategy.ShiftInwardsAndBlend else (ForType.Parallel,)
        for d in self._schedule().dims:
            if d.for_type in kinds and d.var in ({old} if d.for_type is ForType.Vectorized else self._relatives(old)):
                self._fail(f"tail strategy {tail.name} may not be used to split {old}, because {d.var}, which stems from the same Var, is "
                           f"{WORD[d.for_type]}: this could cause a race condition. Use GuardWithIf or Predicate")

    def _relatives(self, old: str) -> set[str]:
        """The loops that share an original variable with the loop `old`."""
        group = {d.var: {d.var} for d in self._schedule().dims}
        for s in self._schedule().splits:
            names = {s.old, s.outer, s.inner} - {""}
            joined = set().union(names, *(group.get(name, set()) for name in names))
            group.update(dict.fromkeys(joined, joined))
        return group.get(old, {old})

    def _check_blended(self, d: Dim, kind: ForType) -> None:
        """No loop may run in parallel (for blocks moved inwards: in vectors) over blocks that are blended with what they overlap."""
        for s in self._schedule().splits:
            if s.tail not in _BLENDS or self._stage == 0 or d.var not in self._relatives(s.old):
                continue
            if (
                kind is ForType.Parallel
                or kind is ForType.Vectorized
                and s.tail is TailStrategy.ShiftInwardsAndBlend
                and d.var in self._blocks(s)
            ):
                self._fail(f"can't mark {d.var} as {WORD[kind]}, because {s.old} was split with tail strategy {s.tail.name}: this could "
                           "cause a race condition. Split it with GuardWithIf or Predicate")

    def _blocks(self, split: Split) -> set[str]:
        """The loops that stem from the outer loop of a split."""
        names, splits = {split.outer}, self._schedule().splits
        for s in splits[next(i for i, s in enumerate(splits) if s is split) + 1:]:
            if s.kind is SplitKind.Fuse and names & {s.outer, s.inner}:
                names.add(s.old)
            elif s.kind is not SplitKind.Fuse and s.old in names:
                names |= {s.outer, s.inner}
        return names

    def _inner_names(self) -> set[str]:
        """The loops that stem from the inner loop of a split."""
        names: set[str] = set()
        for s in self._schedule().splits:
            if s.kind is SplitKind.Split:
                if s.old in names:
                    names.add(s.outer)
                names.add(s.inner)
            elif s.kind is SplitKind.Rename and s.old in names:
                names.add(s.outer)
            elif s.kind is SplitKind.Fuse and names & {s.inner, s.outer}:
                names.add(s.old)
        return names

    def _check_order(self, after: Sequence[Dim], directive: str) -> None:
        """The order of loops whose order matters must stay, unless the update may run in any order."""
        old = [d.var for d in self._schedule().dims if d.kind is DimKind.ImpureRVar]
        new = [d.var for d in after if d.kind is DimKind.ImpureRVar]
        if old == new or lang.independence.order_is_free(self.function, self._definition()):
            return
        swapped = next((x, y) for i, x in enumerate(old) for y in old[i + 1:] if new.index(x) > new.index(y))
        self._fail(f"can't {directive} RVars {swapped[0]} and {swapped[1]} because it may change the meaning of the algorithm")

    def _check_race(self, d: Dim, kind: ForType) -> None:
        s = self._schedule()
        if kind not in (ForType.Parallel, ForType.Vectorized) or d.kind is not DimKind.ImpureRVar or s.allow_race_conditions:
            return
        if not s.atomic:
            self._fail(f"marking var {d.var} as {WORD[kind]} may introduce a race condition resulting in incorrect output, because its "
                       "iterations may touch the same element. Use atomic() if the operation is associative, or allow_race_conditions() if "
                       "you know that there is no race or that it does no harm")
        elif not s.override_associativity:
            self._check_any_order(d, kind)

    def _check_any_order(self, d: Dim, kind: ForType) -> None:
        if lang.independence.order_is_free(self.function, self._definition()):
            return
        found = ir.associativity.combination(self.function, self._definition())
        reason = found if isinstance(found, str) else "which of equal values wins depends on the order"
        self._fail(f"failed to call atomic() on {self._title()} with {d.var} {WORD[kind]} since it can't prove associativity or "
                   f"commutativity of the operator: {reason}. If you know that the order does not matter, call "
                   "atomic(override_associativity_test=True)")
