"""Sliding window: where a Func is stored outside a serial loop but computed inside it, compute only what is new.

IR before: inside `for y`, `let g.s0.y.min = y - 1, g.s0.y.max = y + 1` around `Produce g`. After: the loop begins two iterations earlier,
in which only what fills the window runs, so that every iteration computes just what is new in it:

    for y from first - 2 { let g.s0.y.min = max(likely(y + 1), first - 1) .. { Produce g  if (likely(first <= y)) { what reads g } } }

Consumers slide first: what they read follows from what is left of their regions, and they say when the windows of their producers have to
be full.
Where to begin is a matter of cost only: the first iteration computes all of the window that it is the last one to compute. Nothing is read
that was not read before: regions of stages that do not run yet begin where they will begin.
Needs: exactly one dimension of the region moves with the loop, or none; both its ends move one way; every stage of g keeps that dimension
a pure variable. Loops with extern stages in them keep their first iteration, and so do Funcs for which tiles are shifted inwards along the
loop. Source: Ragan-Kelley et al., PLDI 2013, section 4.3; Halide's src/SlidingWindow.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.function import Function
from ..ir.simplify import prove, simplify
from ..ir.traverse import Rec, free_variables, mentions, nodes_of, rewrite, substitute
from .apply_splits import var
from .environment import Environment, callees
from .movement import monotonic
from .pointwise import pointwise_dims
from .schedule_functions import Nests
from .windows import Scope, window

Lets = dict[str, n.Expr]


class _Loop:
    """Slides what is produced in one loop along it."""

    def __init__(self, op: n.For, env: Environment, nests: Nests) -> None:
        self.op, self.env, self.body = op, env, op.body
        shared = nests.shared.get(op.name)
        members = shared.members if shared is not None else (nests.by_loop[op.name],)
        self.own = tuple(nest.prefix for nest, _ in members)
        produced = [p.name for p in nodes_of(op.body, n.Produce)]
        self.readers: dict[str, set[str]] = {name: set() for name in produced}
        for name in produced:
            for callee in callees(env[name]):
                if callee.name in self.readers:
                    self.readers[callee.name].add(name)
        self.extern = any(env[name].extern is not None for name in produced) or any(nest.function.extern is not None for nest, _ in members)
        self.stored: Collection[str] = ()  # what slides, if it can
        self.starts: Lets = {}  # of what runs before the loop's first iteration: where it begins
        self.guards: dict[n.Expr, None] = {}  # conditions under which the loop does anything

    def run(self, stored: dict[str, list[str]]) -> n.Stmt:
        """The loop with all that is `stored` outside (with the dimensions it may slide along) sliding."""
        self.stored = stored.keys()
        for group in self.consumers_first():
            first = _earliest(self.starts[r] for f in group for r in self.readers[f] if r in self.starts) or self.op.min
            starts = [self.slide(self.env[f], stored[f], first) for f in group if f in stored]
            start = _earliest([first, *starts])
            if start is not None and start is not self.op.min:
                self.starts |= dict.fromkeys(group, start)
        return self.op if self.body is self.op.body else self.finished()

    def consumers_first(self) -> list[list[str]]:
        """What is produced in the loop, those that share loops together."""
        group_of: dict[str, list[str]] = {}
        for p in nodes_of(self.op.body, n.Produce):
            group = group_of.setdefault(p.name, [p.name])
            if isinstance(p.body, n.Produce) and p.body.name not in group:
                group.append(p.body.name)
                group_of[p.body.name] = group
        order: list[list[str]] = []

        def visit(group: list[str]) -> None:
            for f in group:
                for reader in self.readers[f]:
                    if group_of[reader] is not group:
                        visit(group_of[reader])
            if group not in order:
                order.append(group)

        for group in group_of.values():
            visit(group)
        return order

    def slide(self, f: Function, dims: list[str], first: n.Expr) -> n.Expr:
        """Make the body compute what is new of `f`, which is needed from iteration `first` on. Returns where it begins."""
        starts: list[n.Expr] = [first]

        def place(scope: Scope) -> Lets:
            w = window(f, dims, self.op.name, scope)
            if w is None or not w.overlaps():
                return {}
            distance = 0 if self.extern or scope.late or self.begins_early(f, scope) else w.distance(first)
            if distance:
                starts.append(simplify(b.sub(first, b.i32(distance))))
                self.guards |= dict.fromkeys(scope.guards)
            value = w.start(first, distance)
            names = [f"{f.name}.s{index}.{w.v}.{'min' if w.sign > 0 else 'max'}" for index in range(len(f.stages()))]
            return {p + "_required" if p + "_required" in scope.lets else p: value for p in names}

        self.body, _ = self.at_productions(self.body, f.name, Scope(), place)
        return _earliest(starts) or first

    def begins_early(self, f: Function, scope: Scope) -> bool:
        """Whether what is produced for `f` in the loop, and does not slide, begins ahead of what it is asked for where that is less than a
        tile (ShiftInwards), as iterations that only fill a window ask: more would be read than in all others."""
        work, seen = [f], {f.name}
        while work:
            inside = [c.name for c in callees(work.pop()) if c.name in self.readers and c.name not in seen and c.name not in self.stored]
            seen.update(inside)
            work += [self.env[name] for name in inside]
        seen.remove(f.name)
        for name, begin in scope.lets.items():
            asked = scope.lets.get(f"{name}_required") if name.endswith(".min") and name.partition(".s")[0] in seen else None
            if asked is not None and begin.value is not var(f"{name}_required") and mentions(asked.expand(False), self.op.name):
                return True
        return False

    def at_productions(self, s: n.Stmt, name: str, scope: Scope, place: Callable[[Scope], Lets]) -> tuple[n.Stmt, Lets]:
        """`s` with the lets that `place` gives for the production of Func `name`, and those of them still to be placed further out."""
        if not s.mask & n.Produce.bit or not s.symbols & n.symbol_bit(name):
            return s, {}
        if isinstance(s, n.Produce) and s.name == name:
            return s, place(scope)
        if isinstance(s, n.LetStmt):
            body, new = self.at_productions(s.body, name, scope.let(s.name, s.value, self.held(s, scope)), place)
            return n.LetStmt(s.name, new.pop(s.name, s.value), body), new
        if isinstance(s, n.IfThenElse):
            return self.in_branches(s, name, scope, place)
        if isinstance(s, n.For):
            body, new = self.at_productions(s.body, name, self.in_loop(s, scope), place)
            return n.For(s.name, s.min, s.extent, s.kind, s.partition, body), new
        scope = replace(scope, head=False)
        if isinstance(s, n.Block):
            parts = [self.at_productions(one, name, scope, place) for one in s.stmts]
            return n.Block(tuple(one for one, _ in parts)), {k: v for _, lets in parts for k, v in lets.items()}
        assert isinstance(s, (n.Produce, n.Realize, n.HoistedStorage)), type(s)
        body, new = self.at_productions(s.body, name, scope, place)
        return _with_body(s, body), new

    def held(self, s: n.LetStmt, scope: Scope) -> n.Expr | None:
        """What a let that starts the region of one of the loop's own stages is in the first iteration, if it rises from there."""
        if not s.name.startswith(self.own) or not s.name.endswith(".min"):
            return None
        value = strip_likely(scope.expand(s.value))
        return simplify(substitute({self.op.name: self.op.min}, value)) if monotonic(value, self.op.name) == 1 else None

    def in_loop(self, s: n.For, scope: Scope) -> Scope:
        """The scope inside an inner loop. One that is not the same in each iteration keeps windows from sliding, unless it is a let."""
        low, extent = scope.expand(s.min), scope.expand(s.extent)
        if b.as_int(extent) == 1:
            return replace(scope.let(s.name, s.min), head=False)
        moves = mentions(low, self.op.name) or mentions(extent, self.op.name)
        return replace(scope, inner=scope.inner | {s.name}, steady=scope.steady and not moves, head=False)

    def in_branches(self, s: n.IfThenElse, name: str, scope: Scope, place: Callable[[Scope], Lets]) -> tuple[n.Stmt, Lets]:
        """Both branches of a condition that is the same in each iteration, the first one of a guard that cuts off the end of a split."""
        condition = scope.expand(s.condition)
        if not mentions(condition, self.op.name):
            inner = replace(scope, head=False)
            then_case, new = self.at_productions(s.then_case, name, inner, place)
            else_case, more = (None, {}) if s.else_case is None else self.at_productions(s.else_case, name, inner, place)
            return n.IfThenElse(s.condition, then_case, else_case), {**new, **more}
        tail = _is_tail_guard(condition)
        outside = simplify(substitute({self.op.name: self.op.min}, condition))
        known = scope.head and tail and scope.inner.isdisjoint(free_variables(outside))
        guards = (*scope.guards, outside) if known else scope.guards
        inner = replace(scope, steady=scope.steady and tail, guards=guards, late=scope.late or not known)
        then_case, new = self.at_productions(s.then_case, name, inner, place)
        return n.IfThenElse(s.condition, then_case, s.else_case), new

    # ---- the iterations before the first

    def finished(self) -> n.Stmt:
        """The loop around the new body, begun where its windows begin to fill."""
        op = self.op
        begin = _earliest(self.starts.values())
        if begin is None:
            return n.For(op.name, op.min, op.extent, op.kind, op.partition, self.body)
        body = self.waiting(self.holding(self.body, Scope()), op.min, begin)
        loop = n.For(op.name, begin, simplify(b.add(op.extent, b.sub(op.min, begin))), op.kind, op.partition, body)
        runs = [n.GT(op.extent, b.i32(0)), *self.guards]  # all iterations before the first one are for nothing else
        return b.if_(b.all_of(c if b.is_likely(c) else b.likely(c) for c in runs if not prove(c)), loop)

    def holding(self, s: n.Stmt, scope: Scope) -> n.Stmt:
        """`s` with the regions of the loop's own stages held back at its first iteration, so that nobody is asked for more."""
        if not s.mask & n.Produce.bit:
            return s
        if isinstance(s, n.LetStmt):
            held = self.held(s, scope)
            value = s.value if held is None else b.max_(b.likely(strip_likely(s.value)), held)
            return n.LetStmt(s.name, value, self.holding(s.body, scope.let(s.name, s.value)))
        return _with_bodies(s, lambda one: self.holding(one, scope))

    def waiting(self, s: n.Stmt, own: n.Expr, begin: n.Expr) -> n.Stmt:
        """`s`, which runs from iteration `begin` on, with what starts later under guards; what is no production starts at `own`."""
        starts = list(dict.fromkeys(self.starts_in(s, own)))
        if len(starts) == 1:
            return s if starts[0] is begin else n.IfThenElse(b.likely(n.LE(starts[0], n.Variable(begin.type, self.op.name))), s)
        if isinstance(s, n.Block):
            parts: list[tuple[list[n.Expr], list[n.Stmt]]] = []
            for one in s.stmts:
                here = list(dict.fromkeys(self.starts_in(one, own)))
                if parts and len(here) == 1 and parts[-1][0] == here:
                    parts[-1][1].append(one)
                else:
                    parts.append((here, [one]))
            return b.block(self.waiting(b.block(stmts), own, begin) for _, stmts in parts)
        if isinstance(s, n.Produce):
            own = self.starts.get(s.name, own)
        return _with_bodies(s, lambda one: self.waiting(one, own, begin))

    def starts_in(self, s: n.Stmt, own: n.Expr) -> Iterator[n.Expr]:
        """Where the parts of a statement start."""
        if isinstance(s, n.Produce):
            yield (start := self.starts.get(s.name, self.op.min))
            if not isinstance(s.body, n.Produce):
                yield from self.starts_in(s.body, start)
        elif s.mask & n.Produce.bit:
            for one in s.children():
                if isinstance(one, n.Stmt):
                    yield from self.starts_in(one, own)
        else:
            yield own


def _earliest(places: Iterable[n.Expr]) -> n.Expr | None:
    out: n.Expr | None = None
    for e in places:
        out = e if out is None else simplify(b.min_(out, e))
    return out


def _is_tail_guard(condition: n.Expr) -> bool:
    """Whether a guard only cuts off the end of a split (once false it stays false)."""
    return b.is_likely(condition) and isinstance(condition.args[0], n.LE)  # type: ignore[attr-defined]


def _with_body(s: n.Produce | n.Realize | n.HoistedStorage, body: n.Stmt) -> n.Stmt:
    if isinstance(s, n.Realize):
        return n.Realize(s.name, s.types, s.memory, s.mins, s.extents, s.condition, body)
    return type(s)(s.name, body)


def _with_bodies(s: n.Stmt, change: Callable[[n.Stmt], n.Stmt]) -> n.Stmt:
    """`s` with each statement right inside changed."""
    return s.map_children(lambda one: change(one) if isinstance(one, n.Stmt) else one)  # type: ignore[no-any-return]


def sliding_window(s: n.Stmt, env: Environment, nests: Nests) -> n.Stmt:
    """`s` with every Func that is stored outside the serial loop it is computed in sliding along it where it can."""
    stored: dict[str, list[str]] = {}

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        here = {p.name: stored[p.name] for p in nodes_of(op.body, n.Produce) if p.name in stored}
        if not here:
            return op if not op.mask & n.Realize.bit else op.map_children(rec)
        new = _Loop(op, env, nests).run(here) if op.kind in (n.ForType.Serial, n.ForType.Unrolled) and b.as_int(op.extent) != 1 else op
        return _in_loops(new, op.name, rec)

    def realized(r: n.Realize, rec: Rec) -> n.Stmt:
        f = env[r.name]
        dims = pointwise_dims(f)
        if dims:
            stored[f.name] = dims
        body = rec(r.body)
        stored.pop(f.name, None)
        return _with_body(r, body)

    return rewrite(s, {n.Realize: realized, n.For: loop})


def _in_loops(s: n.Stmt, name: str, rec: Rec) -> n.Stmt:
    """What is inside loop `name`, which may have a guard around it by now, changed."""
    if isinstance(s, n.IfThenElse):
        return n.IfThenElse(s.condition, _in_loops(s.then_case, name, rec))
    return s.map_children(rec)  # type: ignore[no-any-return]


