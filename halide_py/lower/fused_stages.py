"""Fused stages (compute_with): stages of several Funcs that share their outer loops.

In: the nests of the stages of a group of Funcs, and which stage shares loops with which. Out: one statement. A shared loop runs over the
union of the ranges of its stages, each shifted as its alignment says; inside it, a stage runs its own loops once, at the place that the
shared one is at, where that is within its range:

    for (f.s0.fused.y, min, union) { if (f's y is in range) for (f.s0.y, ..., 1) {...}   if (g's y is in range) for (g.s0.y, ..., 1) {...} }

A stage with specializations chooses one inside the loops that it shares, which all of them have. Values never depend on it: the Funcs of a
group may not call each other, and stages of one Func share only loops that every stage of it treats point by point. Behaviour: Halide's
compute_with (src/ScheduleFunctions.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Function, LoopAlignStrategy, LoopLevel, Split, root_level
from ..ir.simplify import simplify
from ..ir.traverse import free_variables, substitute
from .apply_splits import var
from .buffers import error
from .environment import Environment, callees
from .loop_nest import Loop, StageNest
from .pointwise import pointwise_dims


@dataclass(frozen=True)
class SharedLoop:
    """A loop of several stages: each with the number of its own loops down to this one. `values` are the stages' loop variables here, kept
    within their ranges, in terms of the shared loops."""

    name: str
    members: tuple[tuple[StageNest, int], ...]
    values: dict[str, n.Expr]

    def lets(self) -> list[tuple[str, n.Expr]]:
        """The stages' loop variables, and what follows from them alone, for what is computed here and read by any of them."""
        containers = [c for nest, depth in self.members for way in nest.ways() for d in range(depth + 1) for c in way.between(d)]
        return [*self.values.items(), *((c.name, c.value) for c in containers if c.name)]


@dataclass(frozen=True)
class _Edge:
    """`child` shares its outermost `depth` loops with `parent`."""

    child: StageNest
    parent: StageNest
    depth: int
    align: dict[str, LoopAlignStrategy]


# ---- groups of Funcs


def fuse_groups(env: Environment) -> list[list[Function]]:
    """The Functions in realization order, those with fused stages together. Raises CompileError for Funcs that cannot be computed
    together."""
    group_of: dict[str, list[Function]] = {name: [f] for name, f in env.items()}
    for f in env.values():
        for k, stage in enumerate(f.stages()):
            level = stage.schedule.fuse_level
            if level.is_inline():
                continue
            if level.func not in env:
                raise CompileError(f"Func {f.name} is scheduled compute_with({level.func}, {level.var}), but {level.func} is not computed "
                                   f"in this pipeline: it is inlined, or nothing uses it ({f.site('compute_with', k)})")
            ours, theirs = group_of[f.name], group_of[level.func]
            if ours is not theirs:
                ours += theirs
                for g in theirs:
                    group_of[g.name] = ours
    groups: list[list[Function]] = []
    state: dict[int, bool] = {}  # entered; True once done

    def visit(group: list[Function]) -> None:
        if id(group) in state:
            if not state[id(group)]:
                names = ", ".join(f.name for f in group)
                raise CompileError(f"The Funcs {names} are scheduled compute_with() each other, but one of them depends on another, "
                                   f"through what it calls; only Funcs that do not need each other can share loops ({_where(group)})")
            return
        state[id(group)] = False
        for f in group:
            for callee in callees(f):
                if callee.name in group_of:
                    visit(group_of[callee.name])
        state[id(group)] = True
        groups.append(sorted(group, key=order.index))

    order = list(env.values())
    for f in order:
        visit(group_of[f.name])
    return groups


def _where(group: Sequence[Function]) -> str:
    """The user's file:line of the first compute_with() among these Funcs."""
    return next(f.site("compute_with", k) for f in group for k, d in enumerate(f.stages()) if not d.schedule.fuse_level.is_inline())


def check_group(group: Sequence[Function], outputs: set[str]) -> None:
    """Raise CompileError unless all Funcs of a group are computed at one place; outputs are at root."""
    levels = [root_level() if f.name in outputs else f.schedule.compute_level for f in group]
    for f, level in zip(group[1:], levels[1:]):
        for g, one in ((group[0], levels[0]), (f, level)):
            if one.is_inline():
                raise CompileError(f"Func {g.name} takes part in compute_with(), but is computed inline; give it a place with "
                                   f"compute_root() or compute_at() ({_where(group)})")
        if not level.same(levels[0]):
            raise CompileError(f"Funcs {group[0].name} and {f.name} are scheduled compute_with() each other, but {group[0].name} is "
                               f"computed {_place(levels[0])} and {f.name} {_place(level)}; compute both at the same place "
                               f"({f.site('compute_at')})")


def _place(level: LoopLevel) -> str:
    return "at root" if level.is_root() else f"at ({level.func}, {level.var})"


# ---- which loops stages share


def _edges(nests: Sequence[StageNest]) -> list[_Edge]:
    by_stage = {(nest.function.name, nest.index): nest for nest in nests}
    out = []
    for nest in nests:
        schedule = nest.definition.schedule
        level = schedule.fuse_level
        if level.is_inline():
            continue
        where = nest.function.site("compute_with", nest.index)
        parent = by_stage.get((level.func, max(level.stage, 0)))
        if parent is None:
            raise CompileError(f"{_title(nest)} is scheduled compute_with() stage {level.stage} of {level.func}, which has no such stage "
                               f"({where})")
        for one in (nest, parent):
            if one.function.extern is not None:
                raise CompileError(f"{_title(nest)} is scheduled compute_with({_title(parent)}, {level.var}), but {_title(one)} is an "
                                   f"extern stage, whose loops are not ours to share ({where})")
            if one.failure is not None or any(s.failure is not None for s in one.specializations):
                raise CompileError(f"{_title(nest)} is scheduled compute_with({_title(parent)}, {level.var}), but {_title(one)} has "
                                   f"specialize_fail(); a stage that shares loops must not ({where})")
        depths = [_depth(one, level.var) for one in (nest, parent)]
        for one, depth in zip((nest, parent), depths):
            if depth is None:
                raise CompileError(f"{_title(nest)} is scheduled compute_with({_title(parent)}, {level.var}), but {_title(one)} has no "
                                   f"loop {level.var}; its loops are, innermost first: {', '.join(_variables(one)[::-1])} ({where})")
        if depths[0] != depths[1]:
            raise CompileError(f"{_title(nest)} is scheduled compute_with({_title(parent)}, {level.var}), but {level.var} is loop number "
                               f"{depths[0]} of {_title(nest)} from the outside, and number {depths[1]} of {_title(parent)}; all loops "
                               f"outside of it are shared, so there must be as many ({where})")
        assert depths[0] is not None
        for level_index in range(depths[0]):
            _check_alike(nest, parent, level_index)
            for one in (nest, parent):
                if any(_shape(way, level_index) != _shape(one, level_index) for way in one.ways()):
                    raise CompileError(f"{_title(nest)} is scheduled compute_with({_title(parent)}, {level.var}), but a specialization of "
                                       f"{_title(one)} has other loops down to {level.var}; specialize what is inside of it only ({where})")
        out.append(_Edge(nest, parent, depths[0], schedule.fuse_align))
    return out


def _variables(nest: StageNest) -> list[str]:
    return [loop.name.removeprefix(nest.loop_prefix) for loop in nest.loops]


def _shape(nest: StageNest, k: int) -> tuple[object, ...]:
    """What makes loop number `k` of a stage the same in each of its specializations; None for one that has no such loop."""
    if k >= len(nest.loops):
        return ()
    loop, base = nest.loops[k], nest.prefix

    def plain(e: n.Expr) -> n.Expr:
        return substitute({name: var(base + name.removeprefix(nest.loop_prefix)) for name in free_variables(e)
                           if name.startswith(nest.loop_prefix)}, e)

    return _variables(nest)[k], loop.kind, plain(loop.min), plain(loop.extent)


def _depth(nest: StageNest, v: str) -> int | None:
    names = _variables(nest)
    return names.index(v) + 1 if v in names else None


def _title(nest: StageNest) -> str:
    return nest.function.name if nest.index == 0 else f"{nest.function.name}.update({nest.index - 1})"


def _check_alike(child: StageNest, parent: StageNest, k: int) -> None:
    x, y = _variables(child)[k], _variables(parent)[k]
    ours, theirs = child.loops[k], parent.loops[k]
    pure = [next(d for d in nest.definition.schedule.dims if d.var == v).is_rvar() for nest, v in ((child, x), (parent, y))]
    what = ""
    if x != y:
        what = f"shared loop {k} is called {x} in one and {y} in the other; rename() one of them"
    elif ours.kind is not theirs.kind:
        what = f"loop {x} is {ours.kind.value} in one and {theirs.kind.value} in the other; schedule both alike"
    elif pure[0] != pure[1]:
        what = f"loop {x} runs over a Var in one and over an RVar in the other"
    if what:
        raise CompileError(f"{_title(child)} is scheduled compute_with({_title(parent)}), but {what} "
                           f"({child.function.site('compute_with', child.index)})")


# ---- the statement


def _in_order(parts: Sequence[list[StageNest]]) -> list[list[StageNest]]:
    """Sets of stages such that those of each Func come in their order; else as given. Raises CompileError where that cannot be."""
    rest, out = list(parts), []
    while rest:
        for part in rest:
            inside = {(s.function.name, s.index) for s in part}
            pending = {(s.function.name, s.index) for other in rest for s in other} - inside
            if not any(name == s.function.name and index < s.index for s in part for name, index in pending):
                break
        else:
            names = ", ".join(_title(s) for part in rest for s in part)
            sites = sorted({where for part in rest for s in part if (where := s.definition.schedule.sites.get("compute_with"))})
            raise CompileError(f"compute_with() asks for an order that cannot be: each of the stages {names} would have to run before "
                               "another of them" + f" ({', '.join(sites)})" * bool(sites))
        rest.remove(part)
        out.append(part)
    return out


def _connected(stages: Sequence[StageNest], edges: Iterable[_Edge]) -> list[list[StageNest]]:
    """The stages in sets that edges connect."""
    sets = [[s] for s in stages]
    for e in edges:
        mine = [s for s in sets if e.child in s or e.parent in s]
        if len(mine) == 2:
            mine[0] += mine[1]
            sets.remove(mine[1])
    return [sorted(s, key=stages.index) for s in sets]


class _Emitter:
    """Writes the stages of one group."""

    def __init__(self, edges: list[_Edge], register: Callable[[SharedLoop], None]) -> None:
        self.edges, self.register = edges, register
        self.values: dict[StageNest, list[n.Expr]] = {}  # of the shared loops around, a stage's own variables

    def emit(self, stages: Sequence[StageNest], level: int) -> n.Stmt:
        """Stages that share their outermost `level` loops."""
        edges = [e for e in self.edges if e.depth > level and e.child in stages and e.parent in stages]
        out = []
        for part in _in_order(_connected(stages, edges)):
            if len(part) > 1:
                out.append(self.shared(part, edges, level))
            else:
                out.append(_guarded(part[0], self.values.get(part[0], [])))
        return b.block(out)

    def shared(self, part: list[StageNest], edges: list[_Edge], level: int) -> n.Stmt:
        """One loop of the stages in `part`, and what is inside."""
        shifts = _shifts(part, edges, level)
        root = next(s for s in part if not any(e.child is s and e.parent in part for e in edges))
        loop = root.loops[level]
        checks = _same_func_checks(part, shifts, level)
        name = f"{root.prefix}fused.{_variables(root)[level]}"
        low = high = None
        for s in part:
            first, last = (b.add(e, shifts[s]) for e in _range(s.loops[level]))
            low, high = (first, last) if low is None or high is None else (b.min_(low, first), b.max_(high, last))
            self.values[s] = [*self.values.get(s, [])[:level], b.sub(var(name), shifts[s])]
        assert low is not None and high is not None
        values = {way.loops[k].name: b.max_(b.min_(value, _range(way.loops[k])[1]), _range(way.loops[k])[0])
                  for s in part for way in s.ways() for k, value in enumerate(self.values[s])}
        self.register(SharedLoop(name, tuple((s, level + 1) for s in [root, *(s for s in part if s is not root)]), values))
        body = self.emit(part, level + 1)
        return b.block([*checks, n.For(name, low, b.add(b.sub(high, low), b.i32(1)), loop.kind, loop.partition, body)])


def _range(loop: Loop) -> tuple[n.Expr, n.Expr]:
    return loop.min, b.sub(b.add(loop.min, loop.extent), b.i32(1))


def _shifts(part: list[StageNest], edges: list[_Edge], level: int) -> dict[StageNest, n.Expr]:
    """What to add to each stage's loop variable to get the shared one."""
    shifts: dict[StageNest, n.Expr] = {}
    for s in part:  # a tree: every stage has one parent at most
        if not any(e.child is s for e in edges):
            shifts[s] = b.i32(0)
    while len(shifts) < len(part):
        fresh = [e for e in edges if e.child in part and e.child not in shifts and e.parent in shifts]
        if not fresh:
            raise CompileError(f"compute_with() goes round in a circle: {', '.join(_title(s) for s in part if s not in shifts)}")
        for e in fresh:
            align = e.align.get(_variables(e.child)[level], LoopAlignStrategy.Auto)
            (low, high), (parent_low, parent_high) = _range(e.child.loops[level]), _range(e.parent.loops[level])
            by = {LoopAlignStrategy.AlignStart: b.sub(parent_low, low), LoopAlignStrategy.AlignEnd: b.sub(parent_high, high)}.get(
                align, b.i32(0)
            )
            shifts[e.child] = simplify(b.add(shifts[e.parent], by))
    return shifts


def _same_func_checks(part: list[StageNest], shifts: dict[StageNest, n.Expr], level: int) -> list[n.Stmt]:
    """Stages of one Func in one loop: an iteration may need only what the same iteration of an earlier stage left. Asserted where it takes
    the regions to know that they are shifted alike. Raises CompileError where they are certain not to be."""
    checks: list[n.Stmt] = []
    for i, one in enumerate(part):
        for two in part[:i]:
            if one.function is not two.function:
                continue
            v, f = _variables(one)[level], one.function
            whole = v == OUTERMOST or v in pointwise_dims(f) and not any(v in (s.old, s.outer, s.inner) for s in _splits(one, two))
            alike = simplify(n.EQ(shifts[one], shifts[two]))
            problem = (f"{_title(two)} and {_title(one)} would share loop {v} by compute_with(), but an iteration of the second may need "
                       f"what another iteration of the first computes; share loops over whole dimensions that all stages of {f.name} treat "
                       f"point by point, with the same alignment ({f.site('compute_with', one.index)})")
            if not whole or b.is_false(alike):
                raise CompileError(problem)
            if not b.is_true(alike):
                checks.append(n.Assert(alike, error("requirement_failed", b.string("shifted by the same"), b.string(problem))))
    return checks


def _splits(*nests: StageNest) -> list[Split]:
    return [s for nest in nests for way in nest.ways() for s in way.definition.schedule.splits]


def _guarded(nest: StageNest, values: Sequence[n.Expr]) -> n.Stmt:
    """What a stage does where the shared loops are at `values`, if these are within the ranges of its own."""
    body = nest.chosen(lambda way: way.loops_at(values))
    for v, loop, value in reversed(list(zip(_variables(nest), nest.loops, values))):
        if v == OUTERMOST:
            continue  # one iteration in every stage
        low, high = _range(loop)
        body = n.IfThenElse(b.likely(n.GE(value, low)), n.IfThenElse(b.likely(n.LE(value, high)), body))
    return body


def group_stmt(nests: Sequence[StageNest], register: Callable[[SharedLoop], None]) -> n.Stmt:
    """All stages of a group of Funcs; `register` is told of each shared loop."""
    edges = _edges(nests)
    out = []
    for part in _in_order(_connected(nests, edges)):
        lets = [let for s in part for way in s.ways() for let in way.frozen_bounds()]
        out.append(b.let_stmts(lets, _Emitter(edges, register).emit(part, 0)))
    return b.block(out)
