"""Functions, their definitions and schedules as plain data: what the front end fills and lowering reads.

A `Function` owns one pure definition and any number of updates; each `Definition` has a `StageSchedule` (its loops), the
Function a `FuncSchedule` (where it is computed and stored). Stage 0 is the pure definition, stage k+1 is update k.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .build import TRUE
from .intrinsics import ExternFunction
from .nodes import Expr, ForType, MemoryType, Partition
from .parameter import Parameter
from .types import Type


class TailStrategy(enum.IntEnum):
    """What to do where a split factor does not divide the extent."""

    RoundUp = 0
    GuardWithIf = 1
    Predicate = 2
    PredicateLoads = 3
    PredicateStores = 4
    ShiftInwards = 5
    ShiftInwardsAndBlend = 6
    RoundUpAndBlend = 7
    Auto = 8


class LoopAlignStrategy(enum.IntEnum):
    """How the ranges of two stages that share a loop lie on each other: starts together, ends together, or each where it is."""

    AlignStart = 0
    AlignEnd = 1
    NoAlign = 2
    Auto = 3


@dataclass(frozen=True, eq=False)
class ReductionVariable:
    """One dimension of a reduction domain: the name of its Variable (`r$x`) and its int32 range."""

    name: str
    min: Expr
    extent: Expr


@dataclass(eq=False)
class ReductionDomain:
    """The box an update loops over, and the predicates (`where`) that restrict it. Frozen once used in a definition."""

    name: str
    variables: tuple[ReductionVariable, ...]
    predicates: list[Expr] = field(default_factory=list)
    frozen: bool = False


class DimKind(enum.Enum):
    """What kind of variable a loop runs over."""

    Pure = "pure"  # a Var: iterations are independent
    PureRVar = "pure_rvar"  # an RVar whose iterations are proved independent of each other
    ImpureRVar = "impure_rvar"  # an RVar whose order matters


@dataclass
class Dim:
    """One loop of a stage; stages list them innermost first, ending with `__outermost`."""

    var: str
    for_type: ForType = ForType.Serial
    kind: DimKind = DimKind.Pure
    partition: Partition = Partition.Auto
    exact: bool = False  # a Var made of an RVar, whose range is all there is of what the stage reads

    def is_rvar(self) -> bool:
        """Whether the loop runs over (part of) an RVar."""
        return self.kind is not DimKind.Pure


class SplitKind(enum.Enum):
    """How a Split relates its variables."""

    Split = "split"  # old = outer * factor + inner
    Rename = "rename"  # old = outer
    Fuse = "fuse"  # old is the fused one: inner = old % extent(inner), outer = old / extent(inner)


@dataclass(eq=False)
class Split:
    """One step of a stage's loop transformations, applied in order. For Fuse `old` is the fused variable."""

    kind: SplitKind
    old: str
    outer: str = ""
    inner: str = ""
    factor: Expr | None = None
    exact: bool = False  # an RVar split, or one that may not evaluate anything twice
    tail: TailStrategy = TailStrategy.Auto


OUTERMOST = "__outermost"


@dataclass(eq=False)
class LoopLevel:
    """A place in the loop nest: inline, root, or just inside loop `var` of stage `stage` of Func `func` (stage -1: not decided by the
    user).

    Kept by reference: a directive given a LoopLevel sees what `set` writes into it later.
    """

    func: str = ""
    var: str = ""
    stage: int = -1
    defined: bool = True
    kind: str = "at"  # "inline", "root" or "at"

    def is_inline(self) -> bool:
        """Computed at each use."""
        return self.kind == "inline"

    def is_root(self) -> bool:
        """Outside all loops."""
        return self.kind == "root"

    def matches(self, loop: str) -> bool:
        """Whether this is just inside the lowered loop named `loop` (`func.s0.var`); without a stage, in whichever stage has such a
        loop."""
        if self.kind != "at" or not loop.startswith(self.func + ".s"):
            return False
        place, _, var = loop[len(self.func) + 2:].partition(".")
        stage = place.partition("/")[0]  # `f.s0/1.x` is the loop of a specialization
        return var == self.var and stage.isdigit() and self.stage in (-1, int(stage))

    def same(self, other: LoopLevel) -> bool:
        """Whether both name the same place now."""
        return self.kind == other.kind and (self.kind != "at" or (self.func, self.var, self.stage) == (other.func, other.var, other.stage))


def inline_level() -> LoopLevel:
    """A fresh LoopLevel that says: computed at each use."""
    return LoopLevel(kind="inline")


def root_level() -> LoopLevel:
    """A fresh LoopLevel that says: outside all loops."""
    return LoopLevel(kind="root")


class PrefetchBoundStrategy(enum.IntEnum):
    """What of a region to prefetch where it leaves the memory there is: what is inside, nothing, or all of it (prefetches do not fault)."""

    Clamp = 0
    GuardWithIf = 1
    NonFaulting = 2


@dataclass(eq=False)
class Prefetch:
    """In loop `at`, hint at the region of Func or buffer `what` that the iteration `offset` after the one of loop `source` reads."""

    what: str
    at: str
    source: str
    offset: Expr
    strategy: PrefetchBoundStrategy


@dataclass(eq=False)
class StageSchedule:
    """The loops of one definition."""

    rvars: list[ReductionVariable] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    dims: list[Dim] = field(default_factory=list)
    touched: bool = False  # the user scheduled it, or said unscheduled()
    allow_race_conditions: bool = False
    atomic: bool = False
    override_associativity: bool = False
    fuse_level: LoopLevel = field(default_factory=inline_level)  # the loop, of another Func's stage, that is shared with it
    fuse_align: dict[str, LoopAlignStrategy] = field(default_factory=dict)
    prefetches: list[Prefetch] = field(default_factory=list)
    device: str = ""  # the first directive for another processor than the CPU, in the words of the message that refuses it
    specializations: list[Specialization] = field(default_factory=list)
    sites: dict[str, str] = field(default_factory=dict)  # the user's file:line of each directive, the latest call; never changed in place

    def copy(self) -> StageSchedule:
        """A schedule of its own that says the same."""
        return replace(
            self,
            rvars=list(self.rvars),
            splits=[replace(s) for s in self.splits],
            dims=[replace(d) for d in self.dims],
            prefetches=list(self.prefetches),
            specializations=[replace(s, schedule=s.schedule and s.schedule.copy()) for s in self.specializations],
        )


@dataclass
class Specialization:
    """Another schedule for the runs in which `condition`, of parameters only, holds; without a schedule such runs fail with the message
    `failure`."""

    condition: Expr
    schedule: StageSchedule | None
    failure: str = ""


@dataclass(eq=False)
class Bound:
    """A promise about (`bound`) or an alignment of (`align_bounds`) the computed region in one pure dimension."""

    var: str
    min: Expr | None = None
    extent: Expr | None = None
    modulus: Expr | None = None
    remainder: Expr | None = None


@dataclass
class StorageDim:
    """One dimension of a Func's storage, innermost first."""

    var: str
    alignment: Expr | None = None
    bound: Expr | None = None
    fold_factor: Expr | None = None
    fold_forward: bool = True


@dataclass(eq=False)
class FuncSchedule:
    """Where a Func is computed and stored, and what is known of its region."""

    compute_level: LoopLevel = field(default_factory=inline_level)
    store_level: LoopLevel = field(default_factory=inline_level)
    hoist_level: LoopLevel = field(default_factory=inline_level)
    ring_buffer: Expr | None = None
    storage_dims: list[StorageDim] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    estimates: list[Bound] = field(default_factory=list)
    memory: MemoryType = MemoryType.Auto
    inline_requested: bool = False
    default_loops: bool = False  # vectors and threads where stages have no directives: see lower.default_loops
    is_async: bool = False
    memoized: bool = False
    eviction_key: Expr | None = None
    sites: dict[str, str] = field(default_factory=dict)  # the user's file:line of each directive, the latest call; never changed in place


@dataclass(eq=False)
class Definition:
    """One definition of a Func: `f[args] = values` where `predicate` holds. `where` is the user's file:line."""

    args: tuple[Expr, ...]
    values: tuple[Expr, ...]
    rdom: ReductionDomain | None = None
    predicate: Expr = TRUE
    schedule: StageSchedule = field(default_factory=StageSchedule)
    where: str = ""


@dataclass(eq=False)
class ExternStage:
    """The C function that computes a Func: `int row.name(args..., halide_buffer_t *outputs...)`.

    `args` are Functions and buffer Parameters, passed as `halide_buffer_t *` (one a value), and scalar Exprs, passed by value. `given` are
    the arguments as the user gave them, `gradient` and `tangent` are the hooks of this stage alone; all are opaque down here. `in_place`:
    of every buffer it reads what it writes, the same region.
    """

    row: ExternFunction
    args: tuple[Function | Parameter | Expr, ...]
    given: tuple[Any, ...] = ()
    gradient: Any = None
    tangent: Any = None
    in_place: bool = False

    def scalars(self) -> list[Expr]:
        """The arguments passed by value."""
        return [a for a in self.args if isinstance(a, Expr)]


@dataclass(eq=False)
class Function:
    """A Func as data. `name` is unique in the process; `args` are the names of its pure variables, innermost first.

    `output_params` carry the constraints users put on `output_buffer()`, one a tuple element. An `extern` stage computes it as a whole; the
    values of its pure definition are then calls of the C function that mention what it reads. `gradient` is the rule that stands for
    the definitions when derivatives are taken, None for the definitions themselves; opaque down here.
    """

    name: str
    args: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    pure: Definition | None = None
    updates: list[Definition] = field(default_factory=list)
    schedule: FuncSchedule = field(default_factory=FuncSchedule)
    output_params: list[Parameter] = field(default_factory=list)
    required_types: tuple[Type, ...] = ()
    required_dimensions: int = -1
    frozen: bool = False  # used by another Func or realized: no more definitions
    trace_loads: bool = False
    trace_stores: bool = False
    trace_realizations: bool = False
    trace_tags: list[str] = field(default_factory=list)
    debug_file: str = ""
    # by the caller's name ("": every other caller), what it calls instead of this Func
    wrappers: dict[str, Function] = field(default_factory=dict)
    wraps: str = ""  # the Func that this one wraps: it stays a plain copy of it
    where: str = ""
    gradient: Any = None
    extern: ExternStage | None = None
    # defines it anew with updates, called when one is asked for: a sum that autodiff put apart
    with_updates: Callable[[], None] | None = None

    def stages(self) -> list[Definition]:
        """The pure definition, then the updates."""
        return ([self.pure] if self.pure is not None else []) + self.updates

    def site(self, directive: str, stage: int | None = None) -> str:
        """The user's file:line of a directive of this Func or of one of its stages; of the Func where that was not called."""
        schedule = self.schedule if stage is None else self.stages()[stage].schedule
        return schedule.sites.get(directive) or self.where

    def stage_name(self, stage: int) -> str:
        """The prefix of a stage's loop names: `f.s0`."""
        return f"{self.name}.s{stage}"

    def declare_outputs(self, types: Sequence[Type], dimensions: int) -> None:
        """Make `output_params`; those that users constrained before the definition stay."""
        if not self.output_params:
            names = [self.name] if len(types) == 1 else [f"{self.name}.{i}" for i in range(len(types))]
            self.output_params = [Parameter(name, t, True, dimensions) for name, t in zip(names, types)]

    def buffer_name(self, index: int) -> str:
        """Name of the buffer of tuple element `index`: `f`, or `f.0`, `f.1` for tuples."""
        return self.name if len(self.types) == 1 else f"{self.name}.{index}"
