"""Stage and the loop directives: split, fuse, reorder, tile, vectorize, ... on the loops of one definition.

`StageDirectives` works on a Function's stage; Func derives from it (stage 0) and so does Stage (updates). Each directive
checks its arguments; a message names the user's line, the Func, the stage, the directive and the loops there are.
"""

from __future__ import annotations

from typing import Any, NoReturn, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Dim, DimKind, Function, Split, SplitKind, StageSchedule, TailStrategy
from ..ir.nodes import ForType, Partition
from ..ir.types import INT32
from .expr import to_node
from .var import RVar, Var, VarOrRVar


class StageDirectives:
    """Loop directives on one stage of a Func."""

    function: Function
    _stage = 0

    def _self(self) -> Any:
        return self

    def _definition(self) -> Definition:
        stages = self.function.stages()
        if not stages:
            raise CompileError(f"Func {self.function.name} is scheduled before it is defined ({user_location()})")
        return stages[self._stage]

    def _loops(self) -> StageSchedule:
        s = self._definition().schedule
        s.touched = True
        return s

    def _title(self) -> str:
        return self.function.name if self._stage == 0 else f"{self.function.name}.update({self._stage - 1})"

    def _fail(self, message: str) -> NoReturn:
        names = ", ".join(d.var for d in self._definition().schedule.dims)
        raise CompileError(f"In schedule for {self._title()}, {message}. Loops, innermost first: {names} ({user_location()})")

    def _dim(self, v: VarOrRVar, directive: str, argument: str) -> Dim:
        for d in self._loops().dims:
            if d.var == v.name():
                return d
        self._fail(f"could not find {argument} {v.name()} of {directive}()")

    def _fresh(self, v: VarOrRVar, directive: str, argument: str, free: Sequence[str]) -> str:
        name = v.name()
        if name not in free and any(d.var == name for d in self._loops().dims):
            self._fail(f"{argument} {name} of {directive}() is already a loop; choose a new name")
        return name

    def _factor(self, factor: Any, directive: str) -> n.Expr:
        e = to_node(factor)
        if e.type.is_float() or (b.as_int(e) is None and e.type is not INT32):
            self._fail(f"the factor of {directive}() must be an int32, not {e.type}")
        value = b.as_int(e)
        if value is not None and value <= 0:
            self._fail(f"the factor of {directive}() is {value}, but must be positive")
        return b.cast(INT32, e)

    def split(self, old: Any, outer: Any, inner: Any, factor: Any, tail: TailStrategy = TailStrategy.Auto) -> Any:
        """Split loop `old` into `outer` over blocks of `factor` and `inner` within a block.

        `outer` or `inner` may reuse the old name. `tail` says what happens when `factor` does not divide the extent: `RoundUp` computes more,
        `GuardWithIf` tests each iteration, `ShiftInwards` moves the last block back (pure definitions only), `Auto` picks.
        Example: `f.split(x, xo, xi, 8)`. Raises CompileError for an unknown loop, a name in use or a tail that would change the result.
        """
        o, p, q = VarOrRVar(old), VarOrRVar(outer), VarOrRVar(inner)
        d = self._dim(o, "split", "argument 'old',")
        if p.name() == q.name():
            self._fail(f"outer and inner of split() are both {p.name()}")
        outer_name, inner_name = self._fresh(p, "split", "outer", [o.name()]), self._fresh(q, "split", "inner", [o.name()])
        if d.is_rvar() != p.is_rvar and not isinstance(outer, str) or d.is_rvar() != q.is_rvar:
            kinds = ("RVar", "Var") if d.is_rvar() else ("Var", "RVar")
            self._fail(f"can't split {kinds[0]} {o.name()} into {kinds[1]}s {p.name()} and {q.name()}; use {kinds[0]}s")
        tail = TailStrategy(tail)
        exact = d.is_rvar()
        self._check_tail(o.name(), d, tail)
        schedule = self._loops()
        at = schedule.dims.index(d)
        schedule.dims[at:at + 1] = [Dim(inner_name, d.for_type, d.kind, d.partition), Dim(outer_name, d.for_type, d.kind, d.partition)]
        schedule.splits.append(Split(SplitKind.Split, o.name(), outer_name, inner_name, self._factor(factor, "split"), exact, tail))
        return self._self()

    def _check_tail(self, old: str, d: Dim, tail: TailStrategy) -> None:
        if tail in (TailStrategy.PredicateLoads, TailStrategy.PredicateStores, TailStrategy.ShiftInwardsAndBlend, TailStrategy.RoundUpAndBlend):
            self._fail(f"tail strategy {tail.name} is not supported yet; use GuardWithIf, RoundUp, ShiftInwards or Auto")
        if d.is_rvar() and tail not in (TailStrategy.Auto, TailStrategy.GuardWithIf, TailStrategy.Predicate):
            self._fail(f"tail strategy {tail.name} on the RVar {old} would change the result; use GuardWithIf or Auto")
        if self._stage == 0:
            return
        if tail is TailStrategy.ShiftInwards:
            self._fail("tail strategy ShiftInwards in an update would compute some points twice; use GuardWithIf, RoundUp or Auto")
        inner = {s.inner for s in self._loops().splits if s.kind is SplitKind.Split}
        if tail is TailStrategy.RoundUp and old in inner:
            self._fail(f"tail strategy RoundUp on {old}, an inner loop of another split of an update, would compute some points twice; use GuardWithIf")

    def fuse(self, inner: Any, outer: Any, fused: Any) -> Any:
        """Join two loops into one, `fused`, whose extent is the product; `inner` varies fastest."""
        i, o, f = VarOrRVar(inner), VarOrRVar(outer), VarOrRVar(fused)
        di, do = self._dim(i, "fuse", "inner"), self._dim(o, "fuse", "outer")
        if di is do:
            self._fail(f"fuse() needs two loops, but both are {i.name()}")
        if DimKind.ImpureRVar in (di.kind, do.kind) and di.kind is not do.kind:
            self._fail(f"fuse() of {i.name()} and {o.name()} could change the result, as the order of one matters")
        name = self._fresh(f, "fuse", "fused", [i.name(), o.name()])
        dims = self._loops().dims
        kind = di.kind if di.kind is do.kind else DimKind.PureRVar
        dims[dims.index(do)] = Dim(name, do.for_type, kind, do.partition)
        dims.remove(di)
        self._loops().splits.append(Split(SplitKind.Fuse, name, o.name(), i.name()))
        return self._self()

    def rename(self, old_name: Any, new_name: Any) -> Any:
        """Give a loop another name."""
        o, new = VarOrRVar(old_name), VarOrRVar(new_name)
        d = self._dim(o, "rename", "old")
        d.var = self._fresh(new, "rename", "new", [o.name()])
        self._loops().splits.append(Split(SplitKind.Rename, o.name(), new.name()))
        return self._self()

    def reorder(self, *args: Any) -> Any:
        """Order loops, innermost first; those not named stay where they are."""
        names = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        wanted = [self._dim(VarOrRVar(v), "reorder", f"argument {i},") for i, v in enumerate(names)]
        for i, d in enumerate(wanted):
            if d in wanted[:i]:
                self._fail(f"reorder() names {d.var} twice")
        dims = self._loops().dims
        if any(d.var == OUTERMOST for d in wanted) and wanted[-1].var != OUTERMOST:
            self._fail("reorder() moves __outermost inside another loop")
        new = list(dims)
        for place, d in zip(sorted(dims.index(d) for d in wanted), wanted):
            new[place] = d
        fixed_before, fixed_after = ([d.var for d in each if d.kind is DimKind.ImpureRVar] for each in (dims, new))
        if fixed_before != fixed_after:
            self._fail(f"can't reorder RVars {' and '.join(a for a, c in zip(fixed_before, fixed_after) if a != c)}, as it may change the result")
        dims[:] = new
        return self._self()

    def tile(self, *args: Any, **kwargs: Any) -> Any:
        """Split two (or n) loops and order them as tiles: `tile(x, y, xo, yo, xi, yi, 32, 8)`, `tile(x, y, xi, yi, 32, 8)` (the outer loops keep
        the names), or with lists `tile([x, y], [xo, yo], [xi, yi], [32, 8])`. The tail strategy comes last."""
        names = {"x": 0, "y": 1, "xo": 2, "yo": 3, "xi": 4, "yi": 5}
        values = list(args)
        tail = TailStrategy(kwargs.pop("tail", TailStrategy.Auto))
        if values and isinstance(values[-1], TailStrategy):
            tail = values.pop()
        if kwargs:
            order = [k for k in (*names, "xfactor", "yfactor", "previous", "outers", "inners", "factors") if k in kwargs]
            values += [kwargs[k] for k in order]
        if values and isinstance(values[0], (list, tuple)):
            previous, factors = list(values[0]), list(values[-1])
            inners, outers = list(values[-2]), list(values[1]) if len(values) == 4 else list(values[0])
        elif len(values) == 8:
            previous, outers, inners, factors = values[:2], values[2:4], values[4:6], values[6:]
        elif len(values) == 6:
            previous, outers, inners, factors = values[:2], values[:2], values[2:4], values[4:]
        else:
            raise TypeError("tile() takes (x, y, xo, yo, xi, yi, xfactor, yfactor), (x, y, xi, yi, xfactor, yfactor) or lists")
        if not len(previous) == len(outers) == len(inners) == len(factors):
            self._fail("the lists given to tile() must have the same length")
        for old, outer, inner, factor in zip(previous, outers, inners, factors):
            self.split(old, outer, inner, factor, tail)
        return self.reorder(*inners, *outers)

    def _mark(self, v: Any, kind: ForType, directive: str) -> Any:
        d = self._dim(VarOrRVar(v), directive, "argument 'var',")
        if d.var == OUTERMOST:
            self._fail(f"{directive}() of __outermost")
        if kind in (ForType.Parallel, ForType.Vectorized) and d.kind is DimKind.ImpureRVar and not self._loops().allow_race_conditions:
            self._fail(f"marking the RVar {d.var} {kind.value} may introduce a race condition, resulting in incorrect output; "
                       "use allow_race_conditions() if you know it does not")
        if kind is ForType.Vectorized and any(o.for_type is ForType.Vectorized and o is not d for o in self._loops().dims):
            others = [o.var for o in self._loops().dims if o.for_type is ForType.Vectorized and o is not d]
            if len(others) > 1:
                self._fail(f"{d.var} is vectorized inside the vectorized {', '.join(others)}")
        d.for_type = kind
        return self._self()

    def _split_and_mark(self, v: Any, factor: Any, tail: TailStrategy, kind: ForType, directive: str, mark_outer: bool = False) -> Any:
        old = VarOrRVar(v)
        dims = {d.var for d in self._loops().dims}
        letter = {"vectorize": "v", "unroll": "u", "parallel": "p"}[directive]
        fresh = next(name for name in (f"{old.name()}.{letter}{i}" for i in range(1000)) if name not in dims)
        inner = RVar(fresh) if old.is_rvar else Var(fresh)
        same = RVar(old.name()) if old.is_rvar else Var(old.name())
        self.split(v, same, inner, factor, tail)
        return self._mark(same if mark_outer else inner, kind, directive)

    def vectorize(self, var: Any, factor: Any = None, tail: TailStrategy = TailStrategy.Auto) -> Any:
        """Compute all iterations of a loop (its extent must be a constant), or blocks of `factor` of them, at once in vectors."""
        if factor is None:
            return self._mark(var, ForType.Vectorized, "vectorize")
        return self._split_and_mark(var, factor, tail, ForType.Vectorized, "vectorize")

    def unroll(self, var: Any, factor: Any = None, tail: TailStrategy = TailStrategy.Auto) -> Any:
        """Write out all iterations of a loop (its extent must be a constant), or blocks of `factor` of them, one after the other."""
        if factor is None:
            return self._mark(var, ForType.Unrolled, "unroll")
        return self._split_and_mark(var, factor, tail, ForType.Unrolled, "unroll")

    def parallel(self, var: Any, task_size: Any = None, tail: TailStrategy = TailStrategy.Auto) -> Any:
        """Run the iterations of a loop, or tasks of `task_size` of them, on the thread pool."""
        if task_size is None:
            return self._mark(var, ForType.Parallel, "parallel")
        return self._split_and_mark(var, task_size, tail, ForType.Parallel, "parallel", mark_outer=True)

    def serial(self, var: Any) -> Any:
        """Run a loop in order, the default."""
        return self._mark(var, ForType.Serial, "serial")

    def partition(self, var: Any, partition_policy: Partition) -> Any:
        """Whether a loop may be split into prologue, steady state and epilogue."""
        self._dim(VarOrRVar(var), "partition", "argument 'var',").partition = Partition(partition_policy)
        return self._self()

    def never_partition(self, *vars: Any) -> Any:
        """`partition(v, Never)` for several loops."""
        for v in vars[0] if len(vars) == 1 and isinstance(vars[0], (list, tuple)) else vars:
            self.partition(v, Partition.Never)
        return self._self()

    def always_partition(self, *vars: Any) -> Any:
        """`partition(v, Always)` for several loops."""
        for v in vars[0] if len(vars) == 1 and isinstance(vars[0], (list, tuple)) else vars:
            self.partition(v, Partition.Always)
        return self._self()

    def never_partition_all(self) -> Any:
        """`partition(v, Never)` for all loops."""
        for d in self._loops().dims:
            d.partition = Partition.Never
        return self._self()

    def always_partition_all(self) -> Any:
        """`partition(v, Always)` for all loops."""
        for d in self._loops().dims:
            d.partition = Partition.Always
        return self._self()

    def allow_race_conditions(self) -> Any:
        """Let loops over RVars run in parallel or in vectors although it cannot be proved that the result stays the same."""
        self._loops().allow_race_conditions = True
        return self._self()

    def unscheduled(self) -> None:
        """Say that this stage is left without directives on purpose."""
        self._loops()

    def dump_argument_list(self) -> str:
        """The loops, innermost first."""
        return ", ".join(d.var for d in self._definition().schedule.dims)


class Stage(StageDirectives):
    """The schedule of one update: `f.update(0).vectorize(x, 8)`."""

    def __init__(self, func: Any, stage: int = 0) -> None:
        self.func, self.function, self._stage = func, func.function, stage

    def name(self) -> str:
        """The stage as it is named in messages and loops."""
        return self.function.stage_name(self._stage)

    def __repr__(self) -> str:
        return f"<halide.Stage '{self.name()}'>"


