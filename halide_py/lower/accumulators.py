"""Accumulators: what a reduction adds up stays in registers while the loops over its terms run.

Before: `for r { unrolled y { vectorized x { f(x, y) = f(x, y) + e } } }`, the loops inside `for r` of constant extents. After: `realize
f.sum [x, y] { unrolled y { vectorized x { f.sum(x, y) = f(x, y) } } for r { ... f.sum(x, y) = f.sum(x, y) + e } ... f(x, y) = f.sum(x, y)
}`. C compilers keep small arrays with constant indices in registers, but no memory that other pointers may reach.

Where the tails of splits guard some of the inner loops, there are two versions: one without guards for when all of them hold, one for the
rest, whose reads are masked. Limits: stages whose left-hand side is their pure variables (so that different places are different elements),
read nowhere else in the loops; no atomic updates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.simplify import linear, simplify
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite, substitute
from .copies import renamed_copy
from .guards import has_effects
from .loop_nest import StageNest
from .schedule_functions import Nests

LARGEST = 4096  # bytes: twice the register file of AVX-512


def _reduces(nest: StageNest) -> dict[str, bool] | None:
    """For each loop of a stage that is over pure or over reduction variables alone: whether it is over the latter. None for stages of
    another form."""
    d, f = nest.definition, nest.function
    if nest.index == 0 or f.extern is not None or not d.schedule.rvars or d.schedule.atomic:
        return None
    if len(d.args) != len(f.args) or any(type(e) is not n.Variable or e.name != a for e, a in zip(d.args, f.args)):
        return None
    lets = {c.name: c.value for c in nest.containers if c.name}
    uses: dict[str, set[bool]] = {}
    rvars = {v.name for v in d.schedule.rvars}
    for base, value in nest.variables.items():
        work, seen = [value], set()
        while work:
            for name in free_variables(work.pop()):
                if name not in seen:
                    seen.add(name)
                    uses.setdefault(name, set()).add(base in rvars)
                    if name in lets:
                        work.append(lets[name])
    return {loop.name: True in uses[loop.name] for loop in nest.loops if len(uses.get(loop.name, ())) == 1}


@dataclass
class _Tile:
    """A loop over terms, taken apart: the stores in it, the loops over places inside of it, and what guards them."""

    loop: n.For
    names: dict[str, str]  # of what is stored, and of its accumulators
    places: list[n.For] = field(default_factory=list)  # outermost first
    guards: list[n.Expr] = field(default_factory=list)  # that say which places there are
    tests: dict[n.Expr, n.Expr] = field(default_factory=dict)  # those of the guards that differ between places, by their text in the loop
    args: tuple[n.Expr, ...] = ()
    types: dict[str, n.Expr] = field(default_factory=dict)

    def size(self) -> int:
        """Elements of an accumulator."""
        return math.prod(b.as_int(p.extent) or 0 for p in self.places)

    def where_tested(self, c: n.Call) -> n.Expr:
        """A read at a place of the tile: 0 where there is no such place, or at the last one there is. One that is the same for all places
        of a test needs no test."""
        if c.call_type not in (n.CallType.Halide, n.CallType.Image):
            return c
        used = set(free_variables(c.args))
        nearest: dict[str, n.Expr] = {}
        tests = []
        for t in self.tests.values():
            test = strip_likely(t)
            places = [p for p in self.places if p.name in free_variables(test)]
            last = _last(test, places[0]) if len(places) == 1 and places[0].kind is n.ForType.Unrolled else None
            if last is not None:
                nearest[places[0].name] = last
            elif any(p.name in used for p in places):
                tests.append(test)
        c = substitute(nearest, c)
        return n.Call(c.type, "if_then_else", (b.all_of(tests), c, b.const(c.type, 0)), n.CallType.PureIntrinsic) if tests else c


def _last(test: n.Expr, p: n.For) -> n.Expr | None:
    """The value of a place, or the last for which the test holds, if that is smaller; None for tests that are no upper bounds."""
    if not isinstance(test, (n.LT, n.LE)) or not test.a.type.is_int():
        return None
    v = n.Variable(p.min.type, p.name)
    terms, _ = linear.gather(n.Sub(test.a, test.b))
    if terms.get(v) != 1 or any(t is not v and p.name in free_variables(t) for t in terms):
        return None
    rest = n.Sub(n.Sub(test.b, test.a), b.i32(1 if isinstance(test, n.LT) else 0))
    return n.Min(v, simplify(n.Add(rest, v)))


def _take_apart(loop: n.For, reduces: dict[str, bool], names: dict[str, str]) -> _Tile | None:
    """The loop as a tile; None where accumulators do not pay or would not be right."""
    if loop.mask & (n.Atomic.bit | n.Fork.bit):
        return None
    tile = _Tile(loop, names)
    values: dict[str, n.Expr] = {}
    inner: set[str] = set()  # names that differ between iterations over terms
    s: n.Stmt = loop
    while not isinstance(s, n.Provide):
        if isinstance(s, n.For):
            if reduces.get(s.name):
                if s.kind not in (n.ForType.Serial, n.ForType.Unrolled):
                    return None
                inner.add(s.name)
            elif (
                s.name not in reduces
                or s.kind not in (n.ForType.Vectorized, n.ForType.Unrolled)
                or b.as_int(s.extent) is None
                or b.as_int(s.min) is None
            ):
                return None
            else:
                tile.places.append(s)
            s = s.body
        elif isinstance(s, n.LetStmt):
            value = substitute(values, s.value)
            if value.mask & n.Call.bit and any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(value, n.Call)):
                inner.add(s.name)
            else:
                values[s.name] = value
            s = s.body
        elif isinstance(s, n.IfThenElse) and s.else_case is None:
            _guard(tile, s.condition, substitute(values, s.condition), inner)
            s = s.then_case
        elif isinstance(s, n.Block):
            with_stores = [one for one in s.stmts if any(p.name in names for p in nodes_of(one, n.Provide))]
            if not with_stores or len(with_stores) > 1 and not all(isinstance(one, n.Provide) for one in with_stores):
                return None
            s = with_stores[0]
        else:
            return None
    tile.args = tuple(substitute(values, a) for a in s.args)
    if tile.tests and has_effects(loop):
        return None  # they would be seen at places that there are not
    return tile if not set(free_variables(tile.args)) & inner and _is_private(tile, s.args) else None


def _guard(tile: _Tile, text: n.Expr, condition: n.Expr, inner: set[str]) -> None:
    """Sort a guard: what it says of places holds for their accumulators too."""
    used = free_variables(condition)
    if set(used) & inner or condition.mask & n.Call.bit and any(not b.is_likely(c) for c in nodes_of(condition, n.Call)):
        return
    tile.guards.append(condition)
    if any(p.name in used for p in tile.places):
        tile.tests[text] = condition


def _is_private(tile: _Tile, args: tuple[n.Expr, ...]) -> bool:
    """Whether what is stored is stored and read at one place only, and small."""
    size = 0
    for p in nodes_of(tile.loop, n.Provide):
        if p.name in tile.names:
            if p.args != args or not b.is_true(p.predicate) or p.name in tile.types:
                return False
            tile.types[p.name] = p.values[0]
            size += tile.size() * p.values[0].type.bytes()
    return size <= LARGEST and all(c.args == args for c in nodes_of(tile.loop, n.Call) if c.name in tile.names)


def _extreme(e: n.Expr, places: Sequence[n.For]) -> n.Expr | None:
    """A guard of every place at once: the comparison where its left side is largest against its right one. None where that is not known."""
    e = strip_likely(e)
    if isinstance(e, n.And):
        sides = _extreme(e.a, places), _extreme(e.b, places)
        return None if sides[0] is None or sides[1] is None else b.and_(sides[0], sides[1])
    if not isinstance(e, (n.LT, n.LE)) or not e.a.type.is_int():
        return None
    terms, _ = linear.gather(n.Sub(e.a, e.b))
    ends: dict[str, n.Expr] = {}
    for p in places:
        v = n.Variable(p.min.type, p.name)
        if any(t is not v and p.name in free_variables(t) for t in terms):
            return None
        last = b.sub(b.add(p.min, p.extent), b.i32(1))
        ends[p.name] = last if terms.get(v, 0) > 0 else p.min
    return simplify(substitute(ends, e))


def _copy_nest(tile: _Tile, stores: Sequence[n.Stmt], suffix: str) -> n.Stmt:
    """Stores at each place of a tile."""
    body = b.block(stores)
    for p in reversed(tile.places):
        body = n.For(p.name, p.min, p.extent, p.kind, p.partition, body)
    outside = [strip_likely(g) for g in tile.guards if g not in tile.tests.values()]
    return renamed_copy(n.IfThenElse(b.all_of(outside), body) if outside else body, suffix)


def _version(tile: _Tile, guarded: bool, suffix: str) -> n.Stmt:
    """The tile with accumulators; unless `guarded`, where all tests hold."""
    order = sorted(tile.places, key=lambda p: p.kind is not n.ForType.Vectorized)
    at = tuple(n.Variable(p.min.type, p.name) for p in order)

    def call(c: n.Call, rec: Rec) -> n.Expr:
        if c.name in tile.names:
            return n.Call(c.type, tile.names[c.name] + suffix, at, n.CallType.Halide)
        new: n.Call = c.map_children(rec)
        return tile.where_tested(new) if guarded else new

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        values = tuple(map(rec, p.values))
        if p.name not in tile.names:
            return n.Provide(p.name, values, tuple(map(rec, p.args)), rec(p.predicate))
        return n.Provide(tile.names[p.name] + suffix, values, at, p.predicate)

    def guard(s: n.IfThenElse, rec: Rec) -> n.Stmt:
        return rec(s.then_case) if s.condition in tile.tests else s.map_children(rec)  # type: ignore[no-any-return]

    middle = rewrite(tile.loop, {n.Call: call, n.Provide: provide, n.IfThenElse: guard})
    held = b.all_of(strip_likely(t) for t in tile.tests.values()) if guarded else b.TRUE
    first, last = [], []
    for name, value in tile.types.items():
        there, here = (
            n.Call(value.type, one, where, n.CallType.Halide) for one, where in ((name, tile.args), (tile.names[name] + suffix, at))
        )
        first.append(n.Provide(tile.names[name] + suffix, (tile.where_tested(there) if guarded else there,), at, b.TRUE))
        # only the store is masked: masked loads would keep the accumulators in memory
        last.append(n.Provide(name, (here,), tile.args, held))
    body = b.block([_copy_nest(tile, first, ".in"), middle, _copy_nest(tile, last, ".out")])
    for name, value in tile.types.items():
        body = n.Realize(
            tile.names[name] + suffix,
            (value.type,),
            n.MemoryType.Stack,
            tuple(p.min for p in order),
            tuple(p.extent for p in order),
            b.TRUE,
            body,
        )
    return body


def accumulators(stmt: n.Stmt, nests: Nests) -> n.Stmt:
    """Move what reductions add up into storage of its own. Funcs of several values must be split, names bound once."""
    count = 0
    known: dict[StageNest, dict[str, bool] | None] = {}

    def loop(s: n.For, rec: Rec) -> n.Stmt:
        nonlocal count
        nest = nests.by_loop.get(s.name, (None, 0))[0] if s.kind is n.ForType.Serial else None
        if nest is not None and nest not in known:
            known[nest] = _reduces(nest)
        reduces = None if nest is None else known[nest]
        if nest is None or reduces is None or not reduces.get(s.name):
            return s.map_children(rec)  # type: ignore[no-any-return]
        owned = [nest.function.buffer_name(i) for i in range(len(nest.function.types))]
        tile = _take_apart(s, reduces, {name: f"{name}.sum{count}" for name in owned})
        if tile is None:
            return s.map_children(rec)  # type: ignore[no-any-return]
        count += 1
        if not tile.tests:
            return _version(tile, False, "")
        all_hold = [_extreme(g, tile.places) for g in tile.tests.values()]
        rest = _version(tile, True, "")
        if None in all_hold:
            return rest
        return n.IfThenElse(
            b.all_of(e for e in all_hold if e is not None), _version(tile, False, ""), renamed_copy(_version(tile, True, ".part"), ".part")
        )

    return rewrite(stmt, {n.For: loop})
