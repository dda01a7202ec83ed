"""Ring buffers: several instances of a Func's storage, taken in turns by the iterations of the loops it is hoisted over.

IR before: `hoisted storage g { for y { realize g([0, w]) { produce g { g(x) = .. } .. g(x) .. } } }`. After: `realize g([0, w], [0, 3])`,
and one more coordinate in each access of g, `y - y.min` modulo 3 (iterations of nested loops are counted through). Values never change;
with async_() the instances are what lets the producer run ahead.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval
from ..ir.traverse import Handler, Rec, mentions, rewrite
from .environment import Environment
from .hoist_storage import bounded, largest_over


class _Rings:
    def __init__(self, env: Environment) -> None:
        self.env = env
        self.turns: dict[str, n.Expr] = {}  # of the Funcs whose hoisted storage is around: iterations of the loops met since
        self.instance: dict[str, n.Expr] = {}
        # the loops and lets around, with their values; and where the hoisted storage of a Func is among them
        self.scope: list[tuple[str, Interval]] = []
        self.place: dict[str, int] = {}

    def hoisted(self, s: n.HoistedStorage, rec: Rec) -> n.Stmt:
        if self.env[s.name].schedule.ring_buffer is None:
            return s.map_children(rec)  # type: ignore[no-any-return]
        self.turns[s.name] = b.i32(0)
        self.place[s.name] = len(self.scope)
        body = rec(s.body)
        del self.turns[s.name]
        return n.HoistedStorage(s.name, body)

    def loop(self, op: n.For, rec: Rec) -> n.Stmt:
        before = dict(self.turns)
        position = b.sub(n.Variable(op.min.type, op.name), op.min)
        self.turns = {name: b.add(b.mul(turn, op.extent), position) for name, turn in before.items()}
        self.scope.append((op.name, Interval(op.min, b.sub(b.add(op.min, op.extent), b.i32(1)))))
        body = rec(op.body)
        self.scope.pop()
        self.turns = before
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    def let(self, s: n.LetStmt, rec: Rec) -> n.Stmt:
        self.scope.append((s.name, Interval.point(s.value)))
        body = rec(s.body)
        self.scope.pop()
        return n.LetStmt(s.name, rec(s.value), body)

    def realize(self, r: n.Realize, rec: Rec) -> n.Stmt:
        asked = self.env[r.name].schedule.ring_buffer
        if asked is None or not mentions(r.body, r.name):
            return r.map_children(rec)  # type: ignore[no-any-return]
        count = b.max_(asked, b.i32(1))
        name = f"{r.name}.ring"
        self.instance[r.name] = n.Variable(count.type, name)
        body = n.LetStmt(name, b.mod(self.turns[r.name], count), rec(r.body))
        extents: list[n.Expr | None] = list(r.extents)
        for scoped, interval in reversed(self.scope[self.place[r.name]:]):
            extents = [largest_over(e, scoped, interval) for e in extents]
        return n.Realize(r.name, r.types, r.memory, (*r.mins, b.i32(0)), (*bounded(extents, self.env[r.name]), count), r.condition, body)

    def call(self, c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if new.call_type is not n.CallType.Halide or new.name not in self.instance:
            return new
        return n.Call(new.type, new.name, (*new.args, self.instance[new.name]), new.call_type, new.func, new.value_index, new.param)

    def provide(self, p: n.Provide, rec: Rec) -> n.Stmt:
        new: n.Provide = p.map_children(rec)
        if new.name not in self.instance:
            return new
        return n.Provide(new.name, new.values, (*new.args, self.instance[new.name]), new.predicate)


def ring_buffers(stmt: n.Stmt, env: Environment) -> n.Stmt:
    """`stmt` with the storage of the Funcs scheduled ring_buffer() as a ring of instances."""
    if all(f.schedule.ring_buffer is None for f in env.values()):
        return stmt
    rings = _Rings(env)
    handlers: dict[type[n.Node], Handler] = {
        n.HoistedStorage: rings.hoisted,
        n.For: rings.loop,
        n.LetStmt: rings.let,
        n.Realize: rings.realize,
        n.Call: rings.call,
        n.Provide: rings.provide,
    }
    return rewrite(stmt, handlers)
