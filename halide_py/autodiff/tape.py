"""Updates whose iterations read what others wrote: run again saving what is read, then backwards.

For `f[a] = e(f[s0], f[s1], ...)` over a reduction domain of T iterations two Funcs are made, each with the update's free dimensions and one
more, which holds the N places of the other dimensions, then a history:
* the record, forwards: in each iteration the values read at s0, s1, ... are saved, then e is written at a (only made if a derivative needs
them);
* the state, backwards: the adjoint at a is saved and set to zero, then what each read contributes is added at s0, s1, ...
The adjoint in front of the update is what the state holds in the end. Memory: N + T adjoints, and N + T times the number of reads values,
for each point of the free dimensions. Source: Griewank and Walther, Evaluating Derivatives, section 4.3 (overwriting and the value stack).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.printer import to_text
from ..ir.simplify import simplify
from ..ir.traverse import nodes_of, substitute
from ..ir.types import INT32
from ..lang.expr import Expr
from ..lang.func import Func
from .adjoints import at_root, define, plain, reads
from .domains import domain_over
from .stages import Region, Stage, boxes_of, replace_own, union
from .sweep import Term, reverse
from .updates import Context, in_front_of, iteration, iterations, mentions_own, seeds

_Place = tuple[n.Expr, ...]
_LARGEST = (1 << 31) - 1


@dataclass
class _Tape:
    """Where things are kept. `region` is that of the dimensions which are not free, `free` those which are."""

    stage: Stage
    region: Region
    free: list[int]

    def bounds(self, d: int) -> tuple[n.Expr, n.Expr]:
        """Min and extent of a dimension of the state."""
        i = self.region[d]
        assert i.min is not None and i.max is not None
        return i.min, simplify(b.add(b.sub(i.max, i.min), b.i32(1)))

    def held(self) -> list[int]:
        """The dimensions that are laid out in the slots."""
        return [d for d in range(len(self.region)) if d not in self.free]

    def places(self) -> n.Expr:
        """N, the number of places."""
        out = b.i32(1)
        for d in self.held():
            out = b.mul(out, self.bounds(d)[1])
        return simplify(out)

    def slot(self, place: Sequence[n.Expr]) -> n.Expr:
        """The slot of a place."""
        out, stride = b.i32(0), b.i32(1)
        for d in self.held():
            low, extent = self.bounds(d)
            out = b.add(out, b.mul(b.sub(place[d], low), stride))
            stride = b.mul(stride, extent)
        return simplify(out)

    def place(self, slot: n.Expr, free: Sequence[n.Expr]) -> list[n.Expr]:
        """The place of a slot: inverse of `slot`."""
        out = list(free)
        stride = b.i32(1)
        for d in self.held():
            low, extent = self.bounds(d)
            out.insert(d, simplify(b.add(low, b.mod(b.div(slot, stride), extent))))
            stride = simplify(b.mul(stride, extent))
        return out

    def inside(self, place: Sequence[n.Expr]) -> n.Expr:
        """Whether a place has a slot."""
        ends = [(place[d], *self.bounds(d)) for d in self.held()]
        return simplify(b.all_of(b.and_(n.LE(low, x), n.LT(x, b.add(low, extent))) for x, low, extent in ends))

    def at(self, place: Sequence[n.Expr]) -> list[n.Expr]:
        """Coordinates in the record or the state of a place of the Func."""
        return [*(place[d] for d in self.free), self.slot(place)]

    def history(self, count: int, index: n.Expr) -> list[n.Expr]:
        """Coordinates of item `index` of the `count` that each iteration saves."""
        free = [a.variable() for a in self.stage.axes if a.pure]
        number = iteration(self.stage.loops(), INT32)
        return [*free, simplify(b.add(self.places(), b.add(b.mul(number, b.i32(count)), index)))]

    def start(self, f: Func, values: Callable[[list[n.Expr]], list[n.Expr]]) -> None:
        """The pure definition of the record or the state: `values` of a place in its slot, 0 in the history."""
        args = self.stage.function.args
        name = "at"
        while name in args:
            name += "_"
        slot = n.Variable(INT32, name)
        free = [n.Variable(INT32, args[d]) for d in self.free]
        held = n.LT(slot, self.places())
        define(f, [*free, slot], [b.select(held, v, b.const(v.type, 0)) for v in values(self.place(slot, free))])

    def run(self, f: Func, steps: Sequence[_Step], predicate: n.Expr, backwards: bool) -> None:
        """The update of the record or the state: the steps in each iteration, one after the other."""
        loops = self.stage.loops()
        ranges = [(a.interval.min, a.interval.max) for a in loops]
        domain = domain_over(
            [(b.i32(0), b.i32(len(steps) - 1)), *((low, high) for low, high in ranges if low is not None and high is not None)]
        )
        names: dict[str, n.Expr] = dict(self.stage.dimensions())
        for a, r, (low, high) in zip(loops, list(domain)[1:], ranges):
            assert low is not None and high is not None
            names[a.name] = b.sub(b.add(low, high), r.as_node()) if backwards else r.as_node()
        step = domain[0].as_node()

        def chosen(values: Sequence[n.Expr]) -> n.Expr:
            out = values[-1]
            for k in reversed(range(len(values) - 1)):
                out = b.select(n.EQ(step, b.i32(k)), values[k], out)
            return substitute(names, out)

        if not b.is_true(predicate):
            domain.where(Expr.of(substitute(names, predicate)))
        width = len(self.stage.values)
        define(
            f,
            [chosen([s.at[d] for s in steps]) for d in range(len(self.free) + 1)],
            [chosen([s.values[i] for s in steps]) for i in range(width)],
        )
        loops_of = f.function.updates[0].schedule
        loops_of.dims = [dataclasses.replace(d, for_type=n.ForType.Unrolled) if d.var == domain[0].name() else d for d in loops_of.dims]
        at_root(f)


@dataclass
class _Step:
    """One store: the values, and where they go in the record or the state."""

    at: list[n.Expr]
    values: list[n.Expr]


def reverse_loop(ctx: Context, stage: Stage, adjoint: Func, region: Region) -> Func:
    """The adjoint in front of an update of any kind; `region` is where the adjoint in front of it may be other than zero."""
    f = stage.function
    tape = _Tape(stage, union(region, boxes_of(stage, [stage.args, *(c.args for c in stage.own)])), sorted(stage.pure))
    _check(stage, tape)
    record = Func(f"{plain(f.name)}_record_of_update{stage.index - 1}")
    saved = {(c.args, i): n.Call(t, record.name(), tuple(tape.history(len(stage.own), b.i32(j))), n.CallType.Halide, record.function, i)
             for j, c in enumerate(stage.own) for i, t in enumerate(f.types)}

    def recorded(e: n.Expr) -> n.Expr:
        return replace_own(f, e, saved)

    now = dataclasses.replace(stage, args=tuple(map(recorded, stage.args)), values=tuple(map(recorded, stage.values)),
                              predicate=recorded(stage.predicate), own=())
    places = {c.args: tuple(map(recorded, c.args)) for c in stage.own}
    state = Func(f"{plain(f.name)}_adjoint_state_of_update{stage.index - 1}")
    incoming = [
        n.Call(t, state.name(), tuple(tape.history(1, b.i32(0))), n.CallType.Halide, state.function, i)
        for i, t in enumerate(adjoint.function.types)
    ]
    leaves = reverse(seeds(now, now.values, incoming, now.predicate), stage.where(), None, stage.perhaps_unused)
    reads_of = {node: key for key, node in saved.items()}
    others = [(leaf, term) for leaf, term in leaves if leaf not in reads_of]
    given: dict[_Place, dict[int, Term]] = {}
    for leaf, term in leaves:
        if leaf in reads_of:
            place, i = reads_of[leaf]
            given.setdefault(place, {})[i] = term
    used = [*now.args, now.predicate, *(p for place in places.values() for p in place)]
    used += [e for leaf, term in leaves for e in (term.value, term.guard, *(leaf.children() if leaf not in reads_of else ()))]
    needs_record = any(c.func is record.function for c in nodes_of(used, n.Call))
    if needs_record:
        _define_record(tape, record, now, places, mentions_own(stage, [stage.predicate]))
    _define_state(tape, state, now, adjoint, incoming, [(places[p], terms) for p, terms in given.items()])
    ctx.adjoints.add(state.name())
    ctx.spread(now, others)
    ctx.notes.append(_cost(stage, tape, needs_record))
    s = ctx.adjoint_sum(f, stage.index - 1)
    x = s.variables()
    s.base = [b.select(tape.inside(x), a, b.const(a.type, 0)) for a in reads(state, tape.at(x))]
    return ctx.finish(s)


def _define_record(tape: _Tape, record: Func, now: Stage, places: dict[_Place, _Place], guarded_by_own: bool) -> None:
    before = in_front_of(now.function, now.index)
    tape.start(record, lambda place: reads(before, place))
    types = now.function.types

    def read(at: list[n.Expr]) -> list[n.Expr]:
        return [n.Call(t, record.name(), tuple(at), n.CallType.Halide, record.function, i) for i, t in enumerate(types)]

    steps = [_Step(tape.history(len(places), b.i32(j)), read(tape.at(p))) for j, p in enumerate(places.values())]
    stores = now.predicate
    if guarded_by_own:  # known only when the reads are saved: those are saved always, the store is of the old values where it does not hold
        old = read(tape.at(now.args))
        steps.append(_Step(tape.at(now.args), [b.select(stores, v, o) for v, o in zip(now.values, old)]))
        stores = b.TRUE
    else:
        steps.append(_Step(tape.at(now.args), list(now.values)))
    tape.run(record, steps, stores, backwards=False)


def _define_state(
    tape: _Tape, state: Func, now: Stage, adjoint: Func, incoming: Sequence[n.Expr], given: Sequence[tuple[_Place, dict[int, Term]]]
) -> None:
    tape.start(state, lambda place: reads(adjoint, place))
    types = adjoint.function.types

    def read(at: list[n.Expr]) -> list[n.Expr]:
        return [n.Call(t, state.name(), tuple(at), n.CallType.Halide, state.function, i) for i, t in enumerate(types)]

    target = tape.at(now.args)
    steps = [_Step(list(incoming[0].args), read(target)), _Step(target, [b.const(t, 0) for t in types])]  # type: ignore[attr-defined]
    for place, terms in given:
        at = tape.at(place)
        steps.append(_Step(at, [n.Add(old, terms[i].select()) if i in terms else old for i, old in enumerate(read(at))]))
    tape.run(state, steps, now.predicate, backwards=True)


def _check(stage: Stage, tape: _Tape) -> None:
    what = f"{stage.where()} reads values that it has written itself, so its derivative needs them saved"
    for a in stage.loops():
        if not a.interval.is_bounded():
            raise CompileError(f"{what}; but the extent of {a.title} is not known")
    for d in tape.held():
        if not tape.region[d].is_bounded():
            raise CompileError(f"{what}; but it is not known which values of dimension {stage.function.args[d]} it accesses: clamp the "
                               "index with hl.clamp(index, 0, n - 1)")
    count = iterations(stage.loops()) * (len(stage.own) + 1)
    if _LARGEST < count < 1 << 60:
        raise CompileError(f"{what}: {count} of them for each point of its free dimensions, which is too many. Split the reduction into "
                           "several Funcs")


def _cost(stage: Stage, tape: _Tape, needs_record: bool) -> str:
    free = ", ".join(stage.function.args[d] for d in tape.free)
    counts = " * ".join(to_text(simplify(b.add(b.sub(a.interval.max, a.interval.min), b.i32(1)))) for a in stage.loops()
                        if a.interval.min is not None and a.interval.max is not None)
    each = f" for each point of ({free})" if free else ""
    reads_saved = f" and {len(stage.own)} value(s)" if needs_record else ""
    return f"{stage.where()} depends on its own intermediate values: {counts} iterations save an adjoint{reads_saved} each{each}"
