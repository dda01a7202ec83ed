"""Async producers: a Func scheduled async_() is computed by a task of its own, beside what consumes it.

IR before: `realize g { for y { produce g {..} out(y) = g(y) } }`. After, with semaphores:

    realize g { fork { for y { produce g {..} release(g.data) } } and { for y { acquire(g.data) out(y) = g(y) } } }

Each side is the slice of the body that it needs: the loops and guards around, and the production of other Funcs it reads. Where storage is
folded, `async_window` marks the body of the loop it moves along with: the producer acquires g.window there, which starts at the number of
iterations that storage has room for, and the consumer releases it at the end of each. A ring buffer is such a window, of whole instances,
over the loops it is hoisted over. When both sides wait for one semaphore of a third Func, each gets one of its own. Names are bound once
again at the end. Limits: not in vectorized loops; no Func stored outside may be needed by both sides. Behaviour: Halide's
AsyncProducers.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.traverse import Rec, mentions, nodes_of, rewrite
from ..ir.types import INT32, UInt
from .environment import Environment
from .uniquify import uniquify

GROUP_WORDS = 16  # HL_GROUP_WORDS of the runtime
WORD = UInt(64)


def window(f: str, index: int, ahead: n.Expr) -> n.Stmt:
    """The mark, at the head of a loop body, of one iteration of window `index` of Func `f`; the producer may be `ahead` iterations of the
    consumer's end."""
    return n.Evaluate(n.Call(INT32, "async_window", (b.string(f), b.i32(index), ahead), n.CallType.Intrinsic))


def produces(s: n.Stmt, name: str) -> bool:
    """Whether a Func is computed in `s`."""
    return any(p.name == name for p in nodes_of(s, n.Produce))


def _operation(verb: str, semaphore: str) -> n.Expr:
    return n.Call(INT32, f"semaphore_{verb}", (b.string(semaphore),), n.CallType.Intrinsic)


def _acquire(semaphore: str) -> n.Stmt:
    return n.Assert(n.EQ(_operation("acquire", semaphore), b.i32(0)), b.i32(1))


def _release(semaphore: str) -> n.Stmt:
    return n.Evaluate(_operation("release", semaphore))


def _operation_of(s: n.Stmt) -> tuple[str, str] | None:
    """(acquire or release, semaphore) if that is all a statement does, and the semaphore has no place yet."""
    e = s.value if isinstance(s, n.Evaluate) else s.condition.a if isinstance(s, n.Assert) and isinstance(s.condition, n.EQ) else None
    if isinstance(e, n.Call) and e.name in ("semaphore_acquire", "semaphore_release") and isinstance(e.args[0], n.StringImm):
        return e.name.removeprefix("semaphore_"), e.args[0].value
    return None


def _window_of(s: n.Stmt) -> tuple[str, int, n.Expr] | None:
    """(Func, index, ahead) of a mark."""
    if isinstance(s, n.Evaluate) and isinstance(s.value, n.Call) and s.value.name == "async_window":
        name, index, ahead = s.value.args
        assert isinstance(name, n.StringImm) and isinstance(index, n.IntImm)
        return name.value, index.value, ahead
    return None


def _owner(semaphore: str) -> str:
    return semaphore.rpartition("!")[0]


def _without(s: n.Stmt, names: Sequence[str]) -> n.Stmt:
    """`s` without the storage and the production of some Funcs."""

    def produce(p: n.Produce, rec: Rec) -> n.Stmt:
        return b.NOTHING if p.name in names else p.map_children(rec)

    def storage(r: n.Realize | n.HoistedStorage, rec: Rec) -> n.Stmt:
        return rec(r.body) if r.name in names else r.map_children(rec)  # type: ignore[no-any-return]

    return rewrite(s, {n.Produce: produce, n.Realize: storage, n.HoistedStorage: storage})


def _renamed(s: n.Stmt, old: str, new: str) -> n.Stmt:
    """`s` with another semaphore in the place of one."""

    def string(e: n.StringImm, rec: Rec) -> n.Expr:
        return b.string(new) if e.value == old else e

    return rewrite(s, {n.StringImm: string})


class _Splitter:
    """Splits the bodies of async Funcs, outermost first."""

    def __init__(self, env: Environment, outputs: set[str]) -> None:
        self.env, self.outputs = env, outputs
        self.counts: dict[str, dict[str, n.Expr]] = {}  # Func whose fork is being made -> its semaphores and what they start at
        self.twins: dict[str, list[str]] = {}  # semaphore -> those that a second waiter got
        self.vectorized = 0

    def is_async(self, name: str) -> bool:
        return self.env[name].schedule.is_async

    # ---- finding

    def run(self, s: n.Stmt) -> n.Stmt:
        """`s` with everything async in it split."""
        return rewrite(s, {n.Realize: self.realize, n.HoistedStorage: self.hoisted, n.For: self.loop})

    def loop(self, op: n.For, rec: Rec) -> n.Stmt:
        self.vectorized += op.kind is n.ForType.Vectorized
        body = rec(op.body)
        self.vectorized -= op.kind is n.ForType.Vectorized
        return op if body is op.body else n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    def hoisted(self, s: n.HoistedStorage, rec: Rec) -> n.Stmt:
        if not self.is_async(s.name) or self.env[s.name].schedule.ring_buffer is None:
            return s.map_children(rec)  # type: ignore[no-any-return]
        return n.HoistedStorage(s.name, self.fork(self.env[s.name], s.body))

    def realize(self, r: n.Realize, rec: Rec) -> n.Stmt:
        if not self.is_async(r.name) or r.name in self.counts and self.env[r.name].schedule.ring_buffer is not None:
            return r.map_children(rec)  # type: ignore[no-any-return]
        return n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, self.fork(self.env[r.name], r.body))

    # ---- splitting

    def fork(self, f: Function, body: n.Stmt) -> n.Stmt:
        """Producer and consumer of `f` in `body` side by side."""
        if isinstance(body, n.LetStmt):
            return n.LetStmt(body.name, body.value, self.fork(f, body.body))
        if self.vectorized:
            raise CompileError(f"Func {f.name} is scheduled async_(), but it is stored in a vectorized loop; store it outside of that "
                               f"({f.site('async_')})")
        self.counts[f.name] = {f"{f.name}!data": b.i32(0)}
        producer, needed = self.producer(f, body)
        consumer = self.consumer(f, body)
        self.check_shared(f, body, needed, consumer)
        for semaphore in sorted(self.waited_for(producer) & self.waited_for(consumer)):
            twin = f"{semaphore}'{len(self.twins.get(semaphore, ()))}"
            self.twins.setdefault(semaphore, []).append(twin)
            self.counts[_owner(semaphore)][twin] = self.counts[_owner(semaphore)][semaphore]
            producer = _renamed(producer, semaphore, twin)
        return self.resolved(f.name, self.run(producer), self.run(consumer))

    def waited_for(self, s: n.Stmt) -> set[str]:
        """The semaphores that a consumer of other Funcs uses in `s`: all there are so far, since what is split goes outermost first."""
        found = {
            op[1]
            for one in nodes_of(s, (n.Evaluate, n.Assert))
            if (op := _operation_of(one)) is not None and op[0] == self.consumer_verb(op[1])
        }
        return {x for x in found if not produces(s, _owner(x))}

    @staticmethod
    def consumer_verb(semaphore: str) -> str:
        """What the consumer does with it."""
        return "acquire" if semaphore.rpartition("!")[2].startswith("data") else "release"

    def producer(self, f: Function, body: n.Stmt) -> tuple[n.Stmt, set[str]]:
        """The slice of `body` that computes `f`, and the Funcs it computes on the way."""
        inside = {p.name for p in nodes_of(body, n.Produce)} | {name for name in self.counts if mentions(body, name)}
        needed = {f.name}
        while True:
            s = _Slice(self, f, needed).stmt(body)
            more = {name for name in inside if name not in needed and mentions(s, name)}
            around = [p.name for p in nodes_of(body, n.Produce) if p.name in more and produces(p.body, f.name)]
            if around:
                raise CompileError(f"Func {f.name} is scheduled async_(), but whether and where it is computed depends on values of "
                                   f"{around[0]}, in whose loops it is computed (it is memoized, or its loops read it); store {f.name} "
                                   f"inside of these loops ({f.site('async_')})")
            if not more:
                return s, needed
            needed |= more

    def consumer(self, f: Function, body: n.Stmt) -> n.Stmt:
        """`body` that waits for `f` instead of computing it; without what only `f` needs."""
        s = self.waiting(f, body)
        operations = [op for one in nodes_of(s, n.Evaluate) if (op := _operation_of(one)) is not None]
        wanted = {_owner(x) for verb, x in operations if verb != self.consumer_verb(x)}  # another task waits for it
        while True:
            idle = [
                p.name
                for p in nodes_of(s, n.Produce)
                if p.name in self.env and p.name not in wanted and not self.read_outside(s, p.name) and not self.waits(p, f.name)
            ]
            stored = nodes_of(s, (n.Realize, n.HoistedStorage))  # not what is neither computed nor read here, nor its tasks
            idle += [r.name for r in stored if not produces(r.body, r.name) and not mentions(r.body, r.name)]
            if not idle:
                return s
            s = _without(s, idle)

    @staticmethod
    def waits(p: n.Produce, name: str) -> bool:
        """Whether a production has semaphores of a Func, which the producer counts on, even if nobody reads what it makes."""
        return any((op := _operation_of(s)) is not None and _owner(op[1]) == name for s in nodes_of(p, (n.Evaluate, n.Assert)))

    def read_outside(self, s: n.Stmt, name: str) -> bool:
        """Whether anything but the production of a Func mentions it; outputs of the pipeline are always wanted."""
        realized = any(r.name == name for r in nodes_of(s, n.Realize))
        if not realized and name in self.outputs:
            return True
        return mentions(_without(s, [name]), name)

    def waiting(self, f: Function, body: n.Stmt) -> n.Stmt:
        """`body` with an acquire for each production of `f`, and a release at the end of each of its windows."""
        data = f"{f.name}!data"

        def block(k: n.Block, rec: Rec) -> n.Stmt:
            marks = [mark for s in k.stmts if (mark := _window_of(s)) is not None and mark[0] == f.name]
            if not marks:
                return k.map_children(rec)  # type: ignore[no-any-return]
            return b.block(
                [
                    *(rec(s) for s in k.stmts if (mark := _window_of(s)) is None or mark[0] != f.name),
                    *(_release(self.window(m)) for m in marks),
                ]
            )

        def produce(p: n.Produce, rec: Rec) -> n.Stmt:
            return _acquire(data) if p.name == f.name else p.map_children(rec)

        def realize(r: n.Realize, rec: Rec) -> n.Stmt:
            inner = rec(r.body)
            if r.name == f.name:
                inner = b.block([inner, _release(self.ring(f))])
            return n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, inner)

        return rewrite(body, {n.Produce: produce, n.Block: block, n.Realize: realize})

    def window(self, mark: tuple[str, int, n.Expr]) -> str:
        """The semaphore of a window."""
        return self._counting(f"{mark[0]}!window{mark[1]}", mark[2])

    def ring(self, f: Function) -> str:
        """The semaphore of the instances of a ring buffer."""
        assert f.schedule.ring_buffer is not None
        return self._counting(f"{f.name}!ring", b.max_(f.schedule.ring_buffer, b.i32(1)))

    def _counting(self, semaphore: str, start: n.Expr) -> str:
        self.counts[_owner(semaphore)][semaphore] = start
        return semaphore

    def with_twins(self, semaphore: str) -> list[str]:
        """A semaphore and all that were made of it."""
        return [semaphore, *(x for twin in self.twins.get(semaphore, ()) for x in self.with_twins(twin))]

    def check_shared(self, f: Function, body: n.Stmt, needed: set[str], consumer: n.Stmt) -> None:
        """A Func computed in here and stored outside must not be computed on both sides."""
        stored = {r.name for r in nodes_of(body, n.Realize)}
        hoisted_outside = {
            r.name
            for r in nodes_of(body, n.Realize)
            if r.name in self.env
            and not self.env[r.name].schedule.hoist_level.is_inline()
            and all(h.name != r.name for h in nodes_of(body, n.HoistedStorage))
        }
        for name in sorted(needed - {f.name}):
            if produces(consumer, name) and (name not in stored or name in hoisted_outside):
                raise CompileError(f"Func {f.name} is scheduled async_(), and both it and its consumers need {name}, which is computed in "
                                   f"the same loop but stored outside of it: two tasks would write it at once. Schedule {name} async_() "
                                   f"too, or store it where it is computed, or compute it outside ({f.site('async_')})")

    # ---- the semaphores

    def resolved(self, f: str, producer: n.Stmt, consumer: n.Stmt) -> n.Stmt:
        """The fork of a Func with its semaphores as places in the memory of its group, which is allocated around it. Specializations
        may store a Func several times: each fork has semaphores of its own, which start at what it needs."""
        counts = self.counts.pop(f)
        place = {semaphore: b.i32(i) for i, semaphore in enumerate(counts)}
        tasks = f"{f}.tasks"
        group = n.Load(WORD, tasks, b.i32(0), b.TRUE)

        def operation(one: n.Stmt, rec: Rec) -> n.Stmt:
            op = _operation_of(one)
            if op is None or op[1] not in place:
                return one.map_children(rec)  # type: ignore[no-any-return]
            verb, semaphore = op
            all_of = [semaphore] if verb == self.consumer_verb(semaphore) else self.with_twins(semaphore)
            calls = [n.Call(INT32, f"semaphore_{verb}", (group, place[x]), n.CallType.Intrinsic) for x in all_of]
            return b.block(n.Evaluate(c) if verb == "release" else n.Assert(n.EQ(c, b.i32(0)), b.i32(1)) for c in calls)

        init = n.Evaluate(n.Call(INT32, "semaphores", (group, *counts.values()), n.CallType.Intrinsic))
        sides = [rewrite(side, {n.Evaluate: operation, n.Assert: operation}) for side in (producer, consumer)]
        for semaphore in counts:
            self.twins.pop(semaphore, None)
        body = b.block([init, n.Fork(tasks, *sides)])
        return n.Allocate(tasks, WORD, n.MemoryType.Stack, (b.i32(GROUP_WORDS + len(counts)),), b.TRUE, 0, body)


class _Slice:
    """What of a statement is needed to compute some Funcs."""

    def __init__(self, splitter: _Splitter, f: Function, needed: set[str]) -> None:
        self.splitter, self.f, self.needed = splitter, f, needed

    def stmt(self, s: n.Stmt) -> n.Stmt:
        """The slice of a statement; NOTHING if it is not needed."""
        if isinstance(s, n.Produce):
            if s.name not in self.needed:
                return self.stmt(s.body)
            return b.block([s, _release(f"{s.name}!data")]) if s.name == self.f.name else s
        if isinstance(s, n.Block):
            return self.block(s)
        if isinstance(s, n.Realize):
            body = self.stmt(s.body)
            if s.name not in self.needed or body is b.NOTHING:
                return body
            if s.name == self.f.name:  # an instance of a ring buffer
                body = b.block([_acquire(self.splitter.ring(self.f)), body])
            return n.Realize(s.name, s.types, s.memory, s.mins, s.extents, s.condition, body)
        if isinstance(s, n.HoistedStorage):
            body = self.stmt(s.body)
            return n.HoistedStorage(s.name, body) if s.name in self.needed and body is not b.NOTHING else body
        if isinstance(s, (n.For, n.LetStmt, n.IfThenElse)):
            return self.control(s)
        return s if self.is_needed(s) else b.NOTHING

    def block(self, s: n.Block) -> n.Stmt:
        marks = {one: mark for one in s.stmts if (mark := _window_of(one)) is not None and mark[0] == self.f.name}
        return b.block(_acquire(self.splitter.window(marks[one])) if one in marks else self.stmt(one) for one in s.stmts)

    def control(self, s: n.For | n.LetStmt | n.IfThenElse) -> n.Stmt:
        if isinstance(s, n.IfThenElse):
            then_case, else_case = self.stmt(s.then_case), self.stmt(s.else_case) if s.else_case is not None else None
            nothing = then_case is b.NOTHING and else_case in (None, b.NOTHING)
            return b.NOTHING if nothing else n.IfThenElse(s.condition, then_case, else_case)
        body = self.stmt(s.body)
        if body is b.NOTHING:
            return body
        if isinstance(s, n.LetStmt):
            return n.LetStmt(s.name, s.value, body) if mentions(body, s.name) else body
        return n.For(s.name, s.min, s.extent, s.kind, s.partition, body)

    def is_needed(self, s: n.Stmt) -> bool:
        """Marks and semaphores of Funcs that are needed."""
        op, mark = _operation_of(s), _window_of(s)
        return op is not None and _owner(op[1]) in self.needed or mark is not None and mark[0] in self.needed


def check_async(env: Mapping[str, Function], outputs: set[str]) -> None:
    """Raise CompileError for Funcs that cannot be async."""
    for f in env.values():
        if not f.schedule.is_async:
            continue
        shared = any(not d.schedule.fuse_level.is_inline() for d in f.stages()) or any(
            d.schedule.fuse_level.func == f.name for g in env.values() for d in g.stages() if not d.schedule.fuse_level.is_inline())
        problem = ("it is an output of the pipeline; async_() is for what it consumes" if f.name in outputs
                   else "it is computed inline; add compute_root() or compute_at()" if f.schedule.compute_level.is_inline()
                   else "it shares loops by compute_with(), so it has no loops to run on its own" if shared else "")
        if problem:
            raise CompileError(f"Func {f.name} cannot be scheduled async_(): {problem} ({f.site('async_')})")


def async_producers(stmt: n.Stmt, env: Environment, outputs: set[str]) -> n.Stmt:
    """`stmt` with the tasks of all Funcs scheduled async_()."""
    if not any(f.schedule.is_async for f in env.values()):
        return stmt
    return uniquify(_Splitter(env, outputs).run(stmt))


