"""Directives on the loops of one definition: split, fuse, reorder, tile, vectorize, unroll, parallel, ...

`StageDirectives` works on a stage of a Function; Func derives from it (stage 0) and so does Stage (any stage). Each directive checks its
arguments first and
changes the schedule only when all is well; a message names the user's line, the Func, the stage, the directive and the loops there are.
Source of the rules: Halide's Func.cpp (Stage).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from .. import lang
from ..errors import CompileError, expect
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, DimKind, Specialization, Split, SplitKind, StageSchedule, TailStrategy
from ..ir.nodes import ForType, Partition
from ..ir.printer import to_text
from ..ir.traverse import free_variables, mentions, nodes_of
from .companions import CompanionDirectives
from .devices import DeviceDirectives
from .eager_inline import EagerInline
from .expr import to_node
from .legality import WORD, LegalityChecks
from .rdom import RVar, VarOrRVar, as_loop, loops
from .splits import append_split
from .stage_base import kind_of
from .var import Var

S = TypeVar("S", bound="StageDirectives")



class StageDirectives(CompanionDirectives, DeviceDirectives, EagerInline, LegalityChecks):
    """Loop directives on one stage of a Func."""

    def specialize(self, condition: Any) -> Stage:
        """Another schedule for the runs in which `condition`, a boolean Expr of parameters and buffers' sizes, holds:
        `f.specialize(p).vectorize(x, 8)`.

        Gives the Stage to schedule; it begins with what was scheduled so far, and what is scheduled on the Func later is not for it.
        Conditions are tried in the order they were given; the code for one is simplified by knowing that it holds. Raises CompileError for
        a condition that is no boolean or depends on Vars, RVars or Funcs, and after specialize_fail().
        """
        e = to_node(condition)
        if not e.type.is_bool() or e.type.is_vector():
            self._fail(f"argument 'condition' passed to specialize must be of type bool, but {to_text(e)} has type {e.type}")
        for v in free_variables(e).values():
            if v.param is None:
                self._fail(f"specialization condition {to_text(e)} depends on {kind_of(v.rdom is not None)} {v.name}. Specialization "
                           "conditions may not depend on any Vars or RVars, only on parameters and the shapes of buffers")
        for c in nodes_of(e, n.Call):
            if c.call_type in (n.CallType.Halide, n.CallType.Image):
                self._fail(f"specialization condition {to_text(e)} reads {c.name}; it may depend on parameters and the shapes of buffers "
                           "only")
        return Stage.of(self.func_handle(), self._stage, self._specialization(e, "specialize"))

    def _specialization(self, condition: n.Expr, directive: str, failure: str = "") -> StageSchedule:
        """The schedule of a specialization, made unless there is one for the condition."""
        mine = self._schedule()
        if mine.specializations and mine.specializations[-1].failure:
            self._fail("cannot add new specializations after specialize_fail()." if not failure else
                       "only one specialize_fail() may be defined per Stage.")
        for s in mine.specializations:
            if s.condition is condition and s.schedule is not None:
                return s.schedule
        new = replace(mine.copy(), specializations=[])
        self._edited("specialize").specializations.append(Specialization(condition, None if failure else new, failure))
        return new

    def split_vars(self) -> list[Var | RVar]:
        """The loops of this stage as they are split now, innermost first; the last is `Var.outermost()`.

        Loops over Vars or parts of them are Vars, those over RVars are RVars, which only name the loop: `f.split_vars()[0].name()`. Raises
        CompileError for a Func that has no definition.
        """
        return [RVar(d.var) if d.is_rvar() else Var(d.var) for d in self._schedule().dims]

    def specialize_fail(self, message: str) -> None:
        """Make runs for which no specialization's condition holds fail with a message. Raises CompileError for an empty one and for a
        second call."""
        if not isinstance(message, str) or not message:
            self._fail("argument 'message' of specialize_fail() must be a text that is not empty")
        self._specialization(b.TRUE, "specialize_fail", message)

    def func_handle(self) -> Any:
        """The Func this is a stage of."""
        return self

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Several directives in one: when one fails, none was given."""
        s = self._schedule()
        before = [replace(d) for d in s.dims], [replace(x) for x in s.splits], s.touched
        try:
            yield
        except (CompileError, TypeError):
            s.dims, s.splits, s.touched = before
            raise

    # -- split, fuse, rename

    def split(self: S, old: Any, outer: Any, inner: Any, factor: Any, tail: TailStrategy = TailStrategy.Auto) -> S:
        """Split loop `old` into `outer` over blocks of `factor` and `inner` within a block; one of them may reuse the old name.

        `tail` says what happens when `factor` (an int32 Expr of constants and parameters) does not divide the extent: `RoundUp` computes
        more,
        `GuardWithIf` tests each iteration, `ShiftInwards` moves the last block back (pure definitions only), `Auto` picks.
        Example: `f.split(x, xo, xi, 8)`. Raises CompileError for an unknown loop, a name in use or a tail that would change the result.
        """
        o, p, q = as_loop(old), as_loop(outer), as_loop(inner)
        for new in (p, q):
            if o.is_rvar != new.is_rvar:
                self._fail(f"can't split {kind_of(o.is_rvar)} {o.name()} into {kind_of(new.is_rvar)} {new.name()}; use "
                           f"{kind_of(o.is_rvar)}s")
        if p.name() == q.name():
            self._fail(f"can't split {o.name()} into {p.name()} and {q.name()}, because they have the same name")
        d = self._dim(o, "split", "argument 'old'")
        if d.var == OUTERMOST:
            self._fail("can't split __outermost")
        self._check_new_name(p, "split", "outer", [o.name()])
        self._check_new_name(q, "split", "inner", [o.name()])
        size, tail = self._factor(factor, "split"), expect(tail, TailStrategy, "split()")
        self._check_tail(o.name(), d, tail)
        s = self._edited()
        at = s.dims.index(d)
        outside = ForType.Serial if d.for_type is ForType.Extern else d.for_type  # blocks of an extern stage are called one by one
        s.dims[at:at + 1] = [replace(d, var=q.name()), replace(d, var=p.name(), for_type=outside)]
        append_split(s, Split(SplitKind.Split, o.name(), p.name(), q.name(), size, d.is_rvar() or d.exact, tail))
        return self

    def fuse(self: S, inner: Any, outer: Any, fused: Any) -> S:
        """Join two loops into one, `fused`, in the place of `inner`, whose extent is the product; `inner` varies fastest.

        Raises CompileError for unknown loops, a name in use, a Var made of an RVar, and where the order of RVars that matters would change.
        """
        i, o, f = as_loop(inner), as_loop(outer), as_loop(fused)
        if i.name() == o.name():
            self._fail(f"can't fuse {i.name()} with itself")
        di, do = self._dim(i, "fuse", "argument 'inner'"), self._dim(o, "fuse", "argument 'outer'")
        if f.is_rvar != (i.is_rvar or o.is_rvar):
            self._fail(f"can't fuse {kind_of(f.is_rvar)} {f.name()} from {kind_of(i.is_rvar)} {i.name()} and {kind_of(o.is_rvar)} "
                       f"{o.name()}; the result must be a{'n RVar' if not f.is_rvar else ' Var'}")
        if OUTERMOST in (di.var, do.var):
            self._fail("can't fuse __outermost")
        self._check_new_name(f, "fuse", "fused", [i.name(), o.name()])
        dims = self._schedule().dims
        rest = [d for d in dims if d is not do]
        at = rest.index(di)
        self._check_order([*rest[:at + 1], do, *rest[at + 1:]], "fuse")
        kinds = {di.kind, do.kind}
        kind = next(k for k in (DimKind.ImpureRVar, DimKind.PureRVar, DimKind.Pure) if k in kinds)
        rest[at] = replace(di, var=f.name(), kind=kind, exact=di.exact or do.exact)
        self._check_race(rest[at], di.for_type)
        s = self._edited()
        s.dims = rest
        append_split(s, Split(SplitKind.Fuse, f.name(), o.name(), i.name()))
        return self

    def rename(self: S, old_name: Any, new_name: Any) -> S:
        """Give a loop another name."""
        o, new = as_loop(old_name), as_loop(new_name)
        if o.is_rvar != new.is_rvar:
            self._fail(f"can't rename {kind_of(o.is_rvar)} {o.name()} to {kind_of(new.is_rvar)} {new.name()}")
        d = self._dim(o, "rename", "argument 'old_name'")
        if d.var == OUTERMOST:
            self._fail("can't rename __outermost")
        self._check_new_name(new, "rename", "name", [o.name()])
        if o.name() != new.name():
            s = self._edited()
            d.var = new.name()
            append_split(s, Split(SplitKind.Rename, o.name(), new.name()))
        return self

    # -- order

    def reorder(self: S, *args: Any, vars: Sequence[Any] | None = None) -> S:
        """Order loops, innermost first; those not named stay where they are. Takes the loops one by one or as a list.

        Raises CompileError for an unknown or repeated loop, and where the order of RVars that matters would change.
        """
        wanted = [self._dim(v, "reorder", f"argument {i}") for i, v in enumerate(loops(args, vars))]
        for i, d in enumerate(wanted):
            if any(d is e for e in wanted[:i]):
                self._fail(f"the call to reorder references {d.var} twice")
        dims = self._schedule().dims
        places = sorted(next(i for i, e in enumerate(dims) if e is d) for d in wanted)
        after = list(dims)
        for place, d in zip(places, wanted):
            after[place] = d
        if after[-1].var != OUTERMOST:
            self._fail("Var.outermost() may not be reordered inside any other loop")
        self._check_order(after, "reorder")
        self._edited().dims = after
        return self

    def tile(self: S, *args: Any, **kwargs: Any) -> S:
        """Split two (or n) loops and order them as tiles.

        `tile(x, y, xo, yo, xi, yi, 32, 8)`, `tile(x, y, xi, yi, 32, 8)` (the outer loops keep the names), or with lists, innermost first:
        `tile([x, y], [xo, yo], [xi, yi], [32, 8])`, `tile([x, y], [xi, yi], [32, 8])`. `tail` comes last.
        """
        previous, outers, inners, factors, tail = _tile_arguments(args, kwargs)
        if not len(previous) == len(outers) == len(inners) == len(factors):
            self._fail(f"the lists passed to tile() must all be the same length, not {len(previous)}, {len(outers)}, {len(inners)} and "
                       f"{len(factors)}")
        self._check_blocks("tile", previous, factors)
        with self._all_or_nothing():
            for old, outer, inner, factor in zip(previous, outers, inners, factors):
                self.split(old, outer, inner, factor, tail)
            self.reorder(*inners, *outers)
        return self

    def _check_blocks(self, directive: str, previous: Sequence[Any], factors: Sequence[Any]) -> None:
        """Check the loops and factors of a directive that splits several, in its name."""
        for old, factor in zip(previous, factors):
            self._dim(as_loop(old), directive, "argument 'previous'")
            self._factor(factor, directive)

    # -- how loops run

    def _mark(self: S, v: Any, kind: ForType, directive: str) -> S:
        d = self._dim(as_loop(v), directive, "argument 'var'")
        if d.var == OUTERMOST and kind is not ForType.Serial:
            self._fail(f"can't mark __outermost as {WORD[kind]}; it has one iteration")
        self._check_race(d, kind)
        self._check_blended(d, kind)
        if self.function.extern is not None and kind in (ForType.Vectorized, ForType.Unrolled):
            self._fail(f"an extern stage computes whole regions; its loop {d.var} cannot be marked {WORD[kind]}. Split it, and mark the "
                       "outer loop parallel()")
        self._edited(directive)
        d.for_type = kind
        return self

    def _split_and_mark(self: S, v: Any, factor: Any, tail: TailStrategy, kind: ForType, directive: str) -> S:
        """`directive(v, factor)`: the inner loop of the split (for parallel the outer one, which keeps the name) runs that way."""
        old = as_loop(v)
        taken = {d.var for d in self._schedule().dims}
        fresh = next(name for name in (f"{old.name()}.{directive[0]}{i}" for i in range(len(taken) + 1)) if name not in taken)
        inner = RVar(fresh) if old.is_rvar else Var(fresh)
        outer = RVar(old.name()) if old.is_rvar else Var(old.name())
        self._dim(old, directive, "argument 'var'")
        self._factor(factor, directive)
        with self._all_or_nothing():
            self.split(old, outer, inner, factor, tail)
            self._mark(outer if kind is ForType.Parallel else inner, kind, directive)
        return self

    def vectorize(self: S, var: Any, factor: Any = None, tail: TailStrategy = TailStrategy.Auto) -> S:
        """Compute all iterations of a loop (its extent must be a constant), or blocks of `factor` of them, at once in vectors.

        Raises CompileError for an unknown loop and for an RVar whose iterations may touch the same element.
        """
        if factor is None:
            return self._mark(var, ForType.Vectorized, "vectorize")
        return self._split_and_mark(var, factor, tail, ForType.Vectorized, "vectorize")

    def unroll(self: S, var: Any, factor: Any = None, tail: TailStrategy = TailStrategy.Auto) -> S:
        """Write out all iterations of a loop (its extent must be a constant), or blocks of `factor` of them, one after the other."""
        if factor is None:
            return self._mark(var, ForType.Unrolled, "unroll")
        return self._split_and_mark(var, factor, tail, ForType.Unrolled, "unroll")

    def parallel(self: S, var: Any, task_size: Any = None, tail: TailStrategy = TailStrategy.Auto) -> S:
        """Run the iterations of a loop, or tasks of `task_size` of them, on the thread pool.

        Raises CompileError for an unknown loop and for an RVar whose iterations may touch the same element.
        """
        if task_size is None:
            return self._mark(var, ForType.Parallel, "parallel")
        return self._split_and_mark(var, task_size, tail, ForType.Parallel, "parallel")

    def serial(self: S, var: Any) -> S:
        """Run a loop in order, the default."""
        return self._mark(var, ForType.Serial, "serial")

    def partition(self: S, var: Any, partition_policy: Partition) -> S:
        """Whether a loop may be split into prologue, steady state and epilogue: `Partition.Auto`, `Never` or `Always`."""
        d = self._dim(as_loop(var), "partition", "argument 'var'")
        self._edited("partition")
        d.partition = Partition(partition_policy)
        return self

    def _partition_all(self: S, vars: Sequence[VarOrRVar], policy: Partition, directive: str) -> S:
        dims = [self._dim(v, directive, f"argument {i}") for i, v in enumerate(vars)]
        self._edited("partition")
        for d in dims:
            d.partition = policy
        return self

    def never_partition(self: S, *args: Any, vars: Sequence[Any] | None = None) -> S:
        """`partition(v, Never)` for several loops, given one by one or as a list."""
        return self._partition_all(loops(args, vars), Partition.Never, "never_partition")

    def always_partition(self: S, *args: Any, vars: Sequence[Any] | None = None) -> S:
        """`partition(v, Always)` for several loops, given one by one or as a list."""
        return self._partition_all(loops(args, vars), Partition.Always, "always_partition")

    def never_partition_all(self: S) -> S:
        """`partition(v, Never)` for all loops."""
        for d in self._edited("partition").dims:
            d.partition = Partition.Never
        return self

    def always_partition_all(self: S) -> S:
        """`partition(v, Always)` for all loops."""
        for d in self._edited("partition").dims:
            d.partition = Partition.Always
        return self

    def atomic(self: S, override_associativity_test: bool = False) -> S:
        """Update each element in one step that nothing can come in between, so that loops over RVars may run in parallel or in vectors.

        Call it before `parallel` and `vectorize`: these raise CompileError with the reason for an RVar whose order matters, that is where
        the update is not seen to be associative and commutative; with `override_associativity_test` you answer for that.
        """
        d = self.function.stages()[self._stage]
        if any(mentions(e, self.function.name) for e in d.args):
            self._fail(f"can't use atomic(): the place it updates depends on the values of {self.function.name}, which other iterations "
                       "change; compute it from another Func")
        s = self._edited()
        s.atomic, s.override_associativity = True, bool(override_associativity_test)
        return self

    def allow_race_conditions(self: S) -> S:
        """Let loops over RVars run in parallel or in vectors although it cannot be proved that the result stays the same."""
        self._edited().allow_race_conditions = True
        return self

    def unscheduled(self) -> None:
        """Say that this stage is left without directives on purpose. Raises CompileError when it has some."""
        if self._schedule().touched:
            self._fail("unscheduled() is called for a stage that has been scheduled")
        self._edited()


def _tile_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any], list[Any], TailStrategy]:
    """(previous, outers, inners, factors, tail) of a call of tile()."""
    forms = (("x", "y", "xo", "yo", "xi", "yi", "xfactor", "yfactor"), ("x", "y", "xi", "yi", "xfactor", "yfactor"),
             ("previous", "outers", "inners", "factors"), ("previous", "inners", "factors"))
    lists = bool(args) and isinstance(args[0], (list, tuple)) or "previous" in kwargs
    for form in forms[2:] if lists else forms[:2]:
        names = (*form, "tail")
        given: dict[str, Any] = dict(zip(names, args))
        if len(args) > len(names) or given.keys() & kwargs.keys() or not isinstance(given.get("tail", TailStrategy.Auto), TailStrategy):
            continue
        given.update(kwargs)
        tail = TailStrategy(given.pop("tail", TailStrategy.Auto))
        if given.keys() != set(form) or any(isinstance(value, TailStrategy) for value in given.values()):
            continue
        if lists:
            outers = given.get("outers", given["previous"])
            return list(given["previous"]), list(outers), list(given["inners"]), list(given["factors"]), tail
        x, y = given["x"], given["y"]
        return [x, y], [given.get("xo", x), given.get("yo", y)], [given["xi"], given["yi"]], [given["xfactor"], given["yfactor"]], tail
    raise TypeError("tile() takes (x, y, xo, yo, xi, yi, xfactor, yfactor), (x, y, xi, yi, xfactor, yfactor), or lists (previous, outers, "
                    "inners, factors) or (previous, inners, factors); then a tail strategy")


def _preserved(args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[str, str]]:
    """The names of (RVar, Var) pairs that rfactor() was given."""
    given = dict(zip(("r", "v") if len(args) == 2 else ("preserved",), args)) | kwargs
    if len(args) + len(kwargs) != len(given) or given.keys() not in ({"r", "v"}, {"preserved"}):
        raise TypeError("rfactor() takes an RVar and a Var, or a list of such pairs")
    pairs = [tuple(p) for p in given["preserved"]] if "preserved" in given else [(given["r"], given["v"])]
    if not all(len(p) == 2 and as_loop(p[0]).is_rvar and isinstance(p[1], Var) for p in pairs):
        raise TypeError("rfactor() takes an RVar and a Var, or a list of such pairs")
    return [(as_loop(r).name(), v.name()) for r, v in pairs]


class Stage(StageDirectives):
    """The schedule of one definition: `f.update(0).vectorize(x, 8)`; `Stage(f)` is that of the pure definition."""

    def __init__(self, func: Any, stage: int = 0) -> None:
        if not hasattr(func, "function"):
            raise TypeError(f"Stage() takes a Func, not {func!r} (a {type(func).__name__})")
        self.func, self.function, self._stage = func, func.function, stage
        self._own: StageSchedule | None = None  # that of a specialization

    @staticmethod
    def of(func: Any, stage: int, schedule: StageSchedule | None) -> Stage:
        """The handle of a specialization of a stage."""
        new = Stage(func, stage)
        new._own = schedule
        return new

    def _schedule(self) -> StageSchedule:
        return super()._schedule() if self._own is None else self._own

    def func_handle(self) -> Any:
        """The Func this is a stage of."""
        return self.func

    def rfactor(self, *args: Any, **kwargs: Any) -> Any:
        """Split an associative reduction in two: `rfactor(r.y, u)` or `rfactor([(r.x, u), (r.y, v)])`.

        Gives a new Func with the same dimensions and the given Vars after them, which reduces over all other RVars; this update then
        reduces what is left over the RVars that were given. RVars may be parts of split or fused ones. The result is the same (floats: up
        to rounding). Raises CompileError with the reason where the update is not seen to be associative, and where the order matters and
        inner loops are to be kept.
        """
        pairs = _preserved(args, kwargs)
        if self._stage == 0:
            self._fail("rfactor() must be called on an update definition")
        if self._own is not None:
            self._fail("rfactor() must be called on the stage itself, not on a specialization; call it before specialize()")
        return type(self.func).of(lang.rfactor.rfactor(self.function, self._stage - 1, pairs, self._fail))

    def name(self) -> str:
        """The stage as messages name it: `f`, `f.update(0)`."""
        return self._title()

    def __repr__(self) -> str:
        return f"<halide.Stage '{self.name()}'>"
