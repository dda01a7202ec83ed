"""Schedule functions: from definitions and schedules to one nest of loops with the production of each Func in its place.

IR before: nothing. After: For / LetStmt / IfThenElse / Provide for each stage, `Produce f` at its compute level, `Realize f`
at its store level; region bounds are still the free symbols `f.s0.x.min`, `.max` (bounds_inference) and
`f.x.min_realized`, `.extent_realized` (allocation_bounds). Source: Ragan-Kelley et al., PLDI 2013, section 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Function, LoopLevel
from ..ir.traverse import Rec, mentions, rewrite
from .environment import Environment
from .extern_stages import check_extern_place
from .loop_nest import StageNest, var
from .specialize import build_stage


@dataclass
class Nests:
    """The loop nests of all stages: in realization order, and by the names of their loops."""

    stages: list[StageNest] = field(default_factory=list)
    by_loop: dict[str, tuple[StageNest, int]] = field(default_factory=dict)  # loop name -> nest, number of loops down to it

    def add(self, nest: StageNest) -> None:
        """Append a stage."""
        self.stages.append(nest)
        for one in (nest, *(s.nest for s in nest.specializations)):
            for i, loop in enumerate(one.loops):
                self.by_loop[loop.name] = one, i + 1

    def of(self, f: Function) -> list[StageNest]:
        """The stages of one Function."""
        return [s for s in self.stages if s.function is f]


def peel(s: n.Stmt, name: str) -> tuple[list[n.LetStmt | n.IfThenElse], n.Stmt]:
    """The lets and guards at the head of a loop body that do not use Func `name`, and what they hold; the call of an extern stage is not one of the lets."""
    around: list[n.LetStmt | n.IfThenElse] = []
    while True:
        if isinstance(s, n.LetStmt) and not (isinstance(s.value, n.Call) and s.value.call_type is n.CallType.Extern):
            around.append(s)
            s = s.body
        elif isinstance(s, n.IfThenElse) and s.else_case is None and not mentions(s.condition, name):
            around.append(s)
            s = s.then_case
        else:
            return around, s


def rewrap(around: list[n.LetStmt | n.IfThenElse], s: n.Stmt) -> n.Stmt:
    """The inverse of `peel`."""
    for one in reversed(around):
        s = n.LetStmt(one.name, one.value, s) if isinstance(one, n.LetStmt) else n.IfThenElse(one.condition, s)
    return s


def realize(f: Function, body: n.Stmt) -> n.Stmt:
    """Storage for `f` around `body`, its box still symbolic."""
    mins = tuple(var(f"{f.name}.{a}.min_realized") for a in f.args)
    extents = tuple(var(f"{f.name}.{a}.extent_realized") for a in f.args)
    return n.Realize(f.name, f.types, f.schedule.memory, mins, extents, b.TRUE, body)


def uses_of(s: n.Stmt, name: str) -> Iterator[list[n.For]]:
    """For each statement that calls Func `name`: the loops around it, outermost first."""
    bit = n.symbol_bit(name)
    stack: list[tuple[n.Node, list[n.For]]] = [(s, [])]
    while stack:
        one, loops = stack.pop()
        if isinstance(one, n.For):
            stack.append((one.body, [*loops, one]))
        elif isinstance(one, (n.Provide, n.Evaluate)):
            if mentions(one, name):
                yield loops
        elif isinstance(one, (n.IfThenElse, n.LetStmt)):
            head = one.condition if isinstance(one, n.IfThenElse) else one.value
            if mentions(head, name):
                yield loops
            stack += [(c, loops) for c in one.children()[::-1] if c is not head and c.symbols & bit]
        else:
            stack += [(c, loops) for c in one.children()[::-1] if c.symbols & bit]


def legal_levels(uses: Iterable[list[n.For]]) -> list[n.For]:
    """The loops that enclose every use, outermost first."""
    common: list[n.For] | None = None
    for loops in uses:
        if common is None:
            common = loops
        else:
            same = 0
            while same < min(len(common), len(loops)) and common[same] is loops[same]:
                same += 1
            common = common[:same]
    return common or []


_LOOP = re.compile(r"(?P<func>.*?)\.s(?P<stage>\d+)(/\d+)?\.(?P<var>.*)")


def describe(loop: str) -> str:
    """A loop name as users say it: `(f, x)` (with the update if it is one)."""
    parts = _LOOP.fullmatch(loop)
    assert parts is not None, loop
    update = "" if parts["stage"] == "0" else f" of update {int(parts['stage']) - 1}"
    return f"({parts['func']}, {parts['var']}){update}"


def _position(f: Function, level: LoopLevel, directive: str, loops: list[n.For], advice: str) -> int:
    """The index of the loop that `level` names among the loops around a use; -1 for root. Raises CompileError when it is not there."""
    if level.is_root():
        return -1
    for i, loop in enumerate(loops):
        if level.matches(loop.name):
            return i
    raise CompileError(f"Func {f.name} is scheduled {directive}({level.func}, {level.var}), which does not enclose all uses of {f.name}. {advice}")


def check_levels(f: Function, s: n.Stmt) -> None:
    """Raise CompileError unless the compute and store levels enclose all uses of `f`, in the right order, with no race."""
    schedule = f.schedule
    for level in (schedule.compute_level, schedule.store_level, schedule.hoist_level):
        if not level.defined:
            raise CompileError(f"Func {f.name} has a LoopLevel that was never set ({f.where})")
    if schedule.ring_buffer is not None and _hoist_level(f) is None:
        raise CompileError(f"Func {f.name} is scheduled ring_buffer(), but its storage is not hoisted; add hoist_storage() with a loop outside of that of "
                           f"store_at() or compute_at() ({f.where})")
    if f.extern is not None:
        check_extern_place(f, list(uses_of(s, f.name)))
    if schedule.compute_level.is_inline():
        return
    uses = list(uses_of(s, f.name))
    names = [loop.name for loop in legal_levels(uses)]
    places = ["compute_root()", *(f"compute_at{describe(x)}" for x in names if not x.endswith(OUTERMOST))]
    advice = f"Legal locations for the computation of {f.name} are: {', '.join(places)} ({f.where})"
    for loops in uses:
        compute = _position(f, schedule.compute_level, "compute_at", loops, advice)
        store = compute if schedule.store_level.is_inline() else _position(f, schedule.store_level, "store_at", loops, advice)
        hoist = store if schedule.hoist_level.is_inline() else _position(f, schedule.hoist_level, "hoist_storage", loops, advice)
        if store > compute:
            raise CompileError(f"Func {f.name} is stored inside the loop it is computed at; store_at must name a loop outside of compute_at. {advice}")
        if hoist > store:
            raise CompileError(f"The storage of Func {f.name} is hoisted to a loop inside the one it is stored at; hoist_storage must name a loop outside "
                               f"of store_at. {advice}")
        for i, loop in enumerate(loops[hoist + 1:compute + 1], hoist + 1):
            if loop.kind in (n.ForType.Parallel, n.ForType.Vectorized):
                kind = "parallel" if loop.kind is n.ForType.Parallel else "vectorized"
                kept = "is stored" if i > store else "has its storage hoisted"
                raise CompileError(
                    f"Func {f.name} {kept} outside of the {kind} loop {describe(loop.name)} but computed inside it, which is a potential race "
                    f"condition; store it inside that loop, or compute it outside. {advice}")


def _hoist_level(f: Function) -> LoopLevel | None:
    """The place of the Func's memory where that is not the place of its storage."""
    s = f.schedule
    store = s.compute_level if s.store_level.is_inline() else s.store_level
    return None if s.hoist_level.is_inline() or s.hoist_level.same(store) else s.hoist_level


def inject(f: Function, nests: list[StageNest], s: n.Stmt, is_output: bool) -> n.Stmt:
    """`s` with the production of `f` at its compute level and its storage at its store level."""
    production = n.Produce(f.name, b.block(nest.stmt() for nest in nests))
    compute, store = f.schedule.compute_level, f.schedule.store_level
    if is_output:
        return b.block([production, s])
    if compute.is_root():
        return realize(f, b.block([production, s]))

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        return realize(f, b.block([production, p])) if p.name != f.name and mentions(p, f.name) else p

    def guard(i: n.IfThenElse, rec: Rec) -> n.Stmt:
        return realize(f, b.block([production, i])) if mentions(i.condition, f.name) else i.map_children(rec)

    if compute.is_inline():  # an inline Func with updates
        return rewrite(s, {n.Provide: provide, n.IfThenElse: guard}, n.symbol_bit(f.name))
    stored_here = store.is_inline() or store.same(compute)
    hoist = _hoist_level(f)

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        if not mentions(op.body, f.name):
            return op  # a stage with a loop of that name, but no use: the Bloom filter lets some through
        around, body = peel(op.body, f.name)
        body = rec(body)
        if compute.matches(op.name):
            body = b.block([production, body])
            if stored_here:
                body = realize(f, body)
        if not stored_here and store.matches(op.name):
            body = realize(f, body)
        if hoist is not None and hoist.matches(op.name):
            body = n.HoistedStorage(f.name, body)
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, rewrap(around, body))

    out = rewrite(s, {n.For: loop}, n.symbol_bit(f.name))
    if store.is_root() and not stored_here:
        out = realize(f, out)
    return n.HoistedStorage(f.name, out) if hoist is not None and hoist.is_root() else out


def schedule_functions(env: Environment, outputs: set[str]) -> tuple[n.Stmt, Nests]:
    """The scheduled loop nest of all Functions of `env` (realization order, inlined ones gone), and the nests it is made of."""
    nests = Nests()
    for f in env.values():
        for index in range(len(f.stages())):
            nests.add(build_stage(f, index))
    s: n.Stmt = b.NOTHING
    for f in reversed(env.values()):
        is_output = f.name in outputs
        if is_output:
            if not (f.schedule.compute_level.is_inline() or f.schedule.compute_level.is_root()):
                raise CompileError(f"Func {f.name} is an output of the pipeline, so it must be computed at root, not at another Func's loop ({f.where})")
        elif not mentions(s, f.name):
            continue  # every use was folded away
        else:
            check_levels(f, s)
        s = inject(f, nests.of(f), s, is_output)
    return s, nests
