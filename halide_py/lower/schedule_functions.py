"""Schedule functions: from definitions and schedules to one nest of loops with the production of each Func in its place.

IR before: nothing. After: For / LetStmt / IfThenElse / Provide for each stage, `Produce f` at its compute level, `Realize f`
at its store level; region bounds are still the free symbols `f.s0.x.min`, `.max` (bounds_inference) and
`f.x.min_realized`, `.extent_realized` (allocation_bounds). Source: Ragan-Kelley et al., PLDI 2013, section 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Function, LoopLevel
from ..ir.traverse import Rec, mentions, rewrite
from .apply_splits import var
from .environment import Environment
from .extern_stages import check_extern_place
from .fused_stages import SharedLoop, check_group, fuse_groups, group_stmt
from .loop_nest import StageNest
from .specialize import build_stage


@dataclass
class Nests:
    """The loop nests of all stages: in realization order, and by the names of their loops; the loops that stages share."""

    stages: list[StageNest] = field(default_factory=list)
    by_loop: dict[str, tuple[StageNest, int]] = field(default_factory=dict)  # loop name -> nest, number of loops down to it
    shared: dict[str, SharedLoop] = field(default_factory=dict)

    def add(self, nest: StageNest) -> None:
        """Append a stage."""
        self.stages.append(nest)
        for one in nest.ways():
            for i, loop in enumerate(one.loops):
                self.by_loop[loop.name] = one, i + 1

    def share(self, loop: SharedLoop) -> None:
        """Register a loop of several stages."""
        self.shared[loop.name] = loop
        self.by_loop[loop.name] = loop.members[0]

    def of(self, f: Function) -> list[StageNest]:
        """The stages of one Function."""
        return [s for s in self.stages if s.function is f]


def peel(s: n.Stmt, names: Sequence[str]) -> tuple[list[n.LetStmt | n.IfThenElse], n.Stmt]:
    """The lets and guards at the head of a loop body that use none of the Funcs `names`, and what they hold; the call of an
    extern stage is not one of the lets."""
    around: list[n.LetStmt | n.IfThenElse] = []
    while True:
        if isinstance(s, n.LetStmt) and not (isinstance(s.value, n.Call) and s.value.call_type is n.CallType.Extern):
            around.append(s)
            s = s.body
        elif isinstance(s, n.IfThenElse) and s.else_case is None and not any(mentions(s.condition, name) for name in names):
            around.append(s)
            s = s.then_case
        else:
            return around, s


def rewrap(around: list[n.LetStmt | n.IfThenElse], s: n.Stmt) -> n.Stmt:
    """The inverse of `peel`."""
    for one in reversed(around):
        s = n.LetStmt(one.name, one.value, s) if isinstance(one, n.LetStmt) else n.IfThenElse(one.condition, s)
    return s


def head_productions(s: n.Stmt) -> list[str]:
    """The Funcs whose production a statement begins with, storage of others in between: one, or a group with fused stages."""
    while isinstance(s, (n.Realize, n.HoistedStorage, n.LetStmt)):
        s = s.body
    first = s.stmts[0] if isinstance(s, n.Block) else s
    names = []
    while isinstance(first, n.Produce):
        names.append(first.name)
        first = first.body
    return names


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
    return f"({parts['func']}, {parts['var'].removeprefix('fused.')}){update}"


Match = Callable[[str], bool]


@dataclass(frozen=True)
class Placement:
    """The loops, by name, that a Func is computed, stored and allocated in; None where that is the one before."""

    compute: Match
    store: Match | None
    hoist: Match | None


def _place(level: LoopLevel, uses: list[list[n.For]], shared: Mapping[str, SharedLoop]) -> Match:
    """The loops that `level` names. In a loop that stages share, a level is the loop of its own stage if that encloses all uses and no
    shared loop comes between, else the shared one."""
    members = [(name, nest, depth) for name, loop in shared.items() for nest, depth in loop.members]
    named = [(name, nest, depth) for name, nest, depth in members if level.matches(nest.loops[depth - 1].name)]
    between = any(nest is inner and depth < inner_depth for _, nest, depth in named for _, inner, inner_depth in members)
    if not between and all(any(level.matches(loop.name) for loop in loops) for loops in uses) or not named:
        return level.matches
    return {name for name, _, _ in named}.__contains__


def _position(f: Function, level: LoopLevel, place: Match, directive: str, loops: list[n.For], advice: str) -> int:
    """The index of the loop that `level` names among the loops around a use; -1 for root. Raises CompileError when it is not there."""
    if level.is_root():
        return -1
    for i, loop in enumerate(loops):
        if place(loop.name):
            return i
    raise CompileError(f"Func {f.name} is scheduled {directive}({level.func}, {level.var}), which does not enclose all uses of {f.name}. "
                       f"{advice} ({f.site(directive)})")


def check_levels(f: Function, s: n.Stmt, shared: Mapping[str, SharedLoop]) -> Placement:
    """Where `f` goes. Raises CompileError unless its levels enclose all uses of `f`, in the right order, with no race."""
    schedule = f.schedule
    compute_level, store_level, hoist_level = schedule.compute_level, schedule.store_level, _hoist_level(f)
    for level, directive in ((compute_level, "compute_at"), (store_level, "store_at"), (schedule.hoist_level, "hoist_storage")):
        if not level.defined:
            raise CompileError(f"Func {f.name} is scheduled {directive}() a LoopLevel that was never set ({f.site(directive)})")
    if schedule.ring_buffer is not None and hoist_level is None:
        raise CompileError(f"Func {f.name} is scheduled ring_buffer(), but its storage is not hoisted; add hoist_storage() with a loop "
                           f"outside of that of store_at() or compute_at() ({f.site('ring_buffer')})")
    stored_here = store_level.is_inline() or store_level.same(compute_level)
    if f.extern is not None:
        check_extern_place(f, list(uses_of(s, f.name)))
    if compute_level.is_inline():
        return Placement(compute_level.matches, None, None)
    uses = list(uses_of(s, f.name))
    placement = Placement(_place(compute_level, uses, shared), None if stored_here else _place(store_level, uses, shared),
                          None if hoist_level is None else _place(hoist_level, uses, shared))
    names = [loop.name for loop in legal_levels(uses)]
    places = ["compute_root()", *(f"compute_at{describe(x)}" for x in names if not x.endswith(OUTERMOST))]
    advice = f"Legal locations for the computation of {f.name} are: {', '.join(places)}"
    for loops in uses:
        compute = _position(f, compute_level, placement.compute, "compute_at", loops, advice)
        store = compute if placement.store is None else _position(f, store_level, placement.store, "store_at", loops, advice)
        hoist = store if placement.hoist is None else _position(f, schedule.hoist_level, placement.hoist, "hoist_storage", loops, advice)
        _check_nesting(f, (hoist, store, compute), loops, advice)
    return placement


def _check_nesting(f: Function, places: tuple[int, int, int], loops: list[n.For], advice: str) -> None:
    """Allocated outside of where it is stored, stored outside of where it is computed, and no loop in between whose iterations could
    race."""
    hoist, store, compute = places
    if store > compute:
        raise CompileError(f"Func {f.name} is stored inside the loop it is computed at; store_at must name a loop outside of compute_at. "
                           f"{advice} ({f.site('store_at')})")
    if hoist > store:
        raise CompileError(f"The storage of Func {f.name} is hoisted to a loop inside the one it is stored at; hoist_storage must name a "
                           f"loop outside of store_at. {advice} ({f.site('hoist_storage')})")
    for i, loop in enumerate(loops[hoist + 1:compute + 1], hoist + 1):
        if loop.kind in (n.ForType.Parallel, n.ForType.Vectorized):
            kind = "parallel" if loop.kind is n.ForType.Parallel else "vectorized"
            kept, directive = ("is stored", "store_at") if i > store else ("has its storage hoisted", "hoist_storage")
            raise CompileError(
                f"Func {f.name} {kept} outside of the {kind} loop {describe(loop.name)} but computed inside it, which is a potential race "
                f"condition; store it inside that loop, or compute it outside. {advice} ({f.site(directive)})")


def _hoist_level(f: Function) -> LoopLevel | None:
    """The place of the Func's memory where that is not the place of its storage."""
    s = f.schedule
    store = s.compute_level if s.store_level.is_inline() else s.store_level
    return None if s.hoist_level.is_inline() or s.hoist_level.same(store) else s.hoist_level


def _inject_inline(f: Function, production: n.Stmt, s: n.Stmt) -> n.Stmt:
    """`s` with an inline Func that has updates realized around each statement that uses it."""

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        return realize(f, b.block([production, p])) if p.name != f.name and mentions(p, f.name) else p

    def guard(i: n.IfThenElse, rec: Rec) -> n.Stmt:
        return realize(f, b.block([production, i])) if mentions(i.condition, f.name) else i.map_children(rec)

    return rewrite(s, {n.Provide: provide, n.IfThenElse: guard}, n.symbol_bit(f.name))


def inject(placements: Mapping[Function, Placement], production: n.Stmt, s: n.Stmt) -> n.Stmt:
    """`s` with the production of a group of Funcs at their compute level, and the storage of each (outputs left out) at its store level."""
    group = list(placements)
    level = group[0].schedule.compute_level

    def stored(f: Function, body: n.Stmt, at: Callable[[Match, LoopLevel], bool], computed_here: bool) -> n.Stmt:
        place, schedule = placements[f], f.schedule
        if computed_here if place.store is None else at(place.store, schedule.store_level):
            body = realize(f, body)
        return n.HoistedStorage(f.name, body) if place.hoist is not None and at(place.hoist, schedule.hoist_level) else body

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        used = [f for f in group if mentions(op.body, f.name)]
        if not used:
            return op  # a stage with a loop of that name, but no use: the Bloom filter lets some through
        around, body = peel(op.body, [f.name for f in used])
        here = placements[used[0]].compute(op.name)
        if not here:
            body = rec(body)
        else:
            if len(used) < len(group):
                idle = next(f for f in group if f not in used)
                raise CompileError(f"Func {idle.name} is not used in loop {describe(op.name)}, but shares loops by compute_with() with "
                                   f"{used[0].name}, which is; compute them at a loop that uses all of them, or drop compute_with() "
                                   f"({idle.where})")
            body = b.block([production, body])
        for f in reversed(used):
            body = stored(f, body, lambda match, _: match(op.name), here)
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, rewrap(around, body))

    if level.is_root():
        out: n.Stmt = b.block([production, s])
    else:
        bits = 0
        for f in group:
            bits |= n.symbol_bit(f.name)
        out = rewrite(s, {n.For: loop}, bits)
    for f in reversed(group):
        out = stored(f, out, lambda _, level: level.is_root(), level.is_root())
    return out


def _produce(group: Sequence[Function], nests: Nests) -> n.Stmt:
    """The production of a group of Funcs: their loops, and around them a Produce of each."""
    stages = [nest for f in group for nest in nests.of(f)]
    body = group_stmt(stages, nests.share) if len(group) > 1 else b.block(nest.stmt() for nest in stages)
    for f in reversed(group):
        body = n.Produce(f.name, body)
    return body


def schedule_functions(env: Environment, outputs: set[str]) -> tuple[n.Stmt, Nests]:
    """The scheduled loop nest of all Functions of `env` (realization order, inlined ones gone), and the nests it is made of."""
    nests = Nests()
    for f in env.values():
        for index in range(len(f.stages())):
            nests.add(build_stage(f, index))
    s: n.Stmt = b.NOTHING
    for group in reversed(fuse_groups(env)):
        check_group(group, outputs)
        for f in group:
            if f.name in outputs and not (f.schedule.compute_level.is_inline() or f.schedule.compute_level.is_root()):
                raise CompileError(f"Func {f.name} is an output of the pipeline, so it must be computed at root, not at another Func's "
                                   f"loop ({f.site('compute_at')})")
        used = [f for f in group if f.name in outputs or mentions(s, f.name)]  # of others every use was folded away
        if not used:
            continue
        production = _produce(used, nests)
        kept = {f: check_levels(f, s, nests.shared) for f in used if f.name not in outputs}
        if len(kept) < len(used):
            s = b.block([production, s])
            for f in reversed(kept):
                s = realize(f, s)
        elif used[0].schedule.compute_level.is_inline():
            s = _inject_inline(used[0], production, s)
        else:
            s = inject(kept, production, s)
    return s, nests
