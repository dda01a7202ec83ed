"""Vectorized loops of constant extent become vector code.

Before: `vectorized (x, min, 8) { out[x] = in[x] + 1 }`. After: `out[ramp(min, 1, 8)] = in[ramp(min, 1, 8)] + x8(1)`.

Every expression that depends on the loop variable gets 8 times its lanes, the loop's lane varying slowest, so that nested
vectorized loops (innermost first) end up in one flat vector. What does not depend on it stays as it is.

* Lets of vectors become vector lets; lets of ramps bind the base only, so that indices keep their structure.
* A guard that differs between lanes becomes the predicate of the loads and stores under it (`guards.predicate`); a guard marked
  likely (the tail of a split) becomes a test that all lanes pass in front of unpredicated code, with the predicated code as its else.
* `if_then_else` with a condition that differs between lanes becomes Select, the loads in its values predicated.
* Inner loops whose ranges differ between lanes run over the union, their bodies guarded.
* Allocations inside get one more dimension, the lane, densest.
* `a[i] = a[i] + e` with i the same in all lanes becomes a VectorReduce; where lanes may collide, i and e are vectors, if they are work, and
  their lanes are taken one by one. All else of that kind, and calls with effects, is a serial loop over the lanes of that one statement.

Limits: extents must be constant. Behaviour: Halide's VectorizeLoops.cpp.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import shared_choices, strip_likely
from ..ir.traverse import Rec, mentions, nodes_of, rewrite, substitute
from ..ir.types import BOOL, INT32
from . import lanes as v
from .atomics import LANES
from .constant_extents import constant_extent
from .guards import has_effects, predicate
from .scattered_updates import scattered

_REDUCTIONS: dict[type[n.Expr], n.ReduceOp] = {
    n.Add: n.ReduceOp.Add, n.Mul: n.ReduceOp.Mul, n.Min: n.ReduceOp.Min, n.Max: n.ReduceOp.Max, n.And: n.ReduceOp.And, n.Or: n.ReduceOp.Or,
}


class _Widen:
    """The rewriting of one vectorized loop."""

    def __init__(self, loop: n.For, count: int) -> None:
        self.loop, self.count = loop, count
        self.private = {a.name for a in nodes_of(loop.body, n.Allocate)}
        self.values: dict[str, n.Expr] = {loop.name: v.ramp(loop.min, b.i32(1), count)}
        self.scalar_lets: list[tuple[str, n.Expr]] = []
        self.lets: dict[str, n.Expr] = {}  # the values of lets of expressions so far
        self.taken = {let.name for kind in (n.Let, n.LetStmt) for let in nodes_of(loop.body, kind)}

    def run(self) -> n.Stmt:
        handlers: dict[type[n.Node], Callable[..., n.Node]] = dict.fromkeys(v.BINARY, self.binary)
        handlers.update({
            n.Variable: self.variable, n.Cast: self.cast, n.Reinterpret: self.reinterpret, n.Select: self.select, n.Load: self.load,
            n.Ramp: self.ramp, n.Broadcast: self.broadcast, n.Shuffle: self.shuffle, n.VectorReduce: self.vector_reduce,
            n.Call: self.call, n.Let: self.let, n.LetStmt: self.let_stmt, n.Store: self.store, n.IfThenElse: self.if_then_else,
            n.Atomic: self.atomic, n.For: self.for_loop, n.Allocate: self.allocate, n.Assert: self.check, n.Evaluate: self.evaluate,
        })
        return rewrite(self.loop.body, handlers)

    # ---- helpers

    def up(self, old: n.Expr, new: n.Expr) -> n.Expr:
        """The widened form of `old`, given what rewriting made of it."""
        return v.broadcast(old, self.count) if new is old else new

    def any_lane(self, condition: n.Expr) -> n.Expr:
        return v.reduce_outer(n.ReduceOp.Or, condition, self.count)

    def lane(self, group: int) -> n.Expr:
        """The lane number, for `group` elements each."""
        iota = v.ramp(b.i32(0), b.i32(1), self.count)
        return v.tile(iota, 1, group)

    def private_index(self, old: n.Expr, new: n.Expr) -> n.Expr:
        """Where the lanes' own copies of element `old` are."""
        wide = self.up(old, new)
        scaled = v.binary(n.Mul, wide, b.const(wide.type, self.count))
        return v.binary(n.Add, scaled, self.lane(old.type.lanes()))

    def bind(self, name: str, value: n.Expr) -> tuple[str, n.Expr]:
        """The let to make for a widened value, of the base only for ramps; uses of `name` are redirected."""
        if isinstance(value, n.Ramp) and b.as_int(value.stride) is not None:
            base = n.Variable(value.base.type, self.fresh(f"{name}.lane0"))
            self.values[name] = n.Ramp(base, value.stride, value.lanes)
            return base.name, value.base
        wide = n.Variable(value.type, self.fresh(f"{name}.lanes"))
        self.values[name] = wide
        return wide.name, value

    def fresh(self, name: str) -> str:
        """`name`, or one like it where a vectorized loop inside has bound that: what it does lane by lane binds it again."""
        while name in self.taken:
            name += "_"
        return name

    def serial(self, s: n.Stmt) -> n.Stmt:
        """`s`, which could not be widened, as a loop over the lanes; lets it needs are evaluated again per lane."""
        here = n.Variable(INT32, self.loop.name)
        # what is allocated in the loop over the lanes has no place for others
        private = self.private - {a.name for a in nodes_of(s, n.Allocate)}

        def index(old: n.Expr, new: n.Expr) -> n.Expr:
            offset = v.broadcast(b.sub(here, self.loop.min), old.type.lanes())
            return v.binary(n.Add, v.binary(n.Mul, new, b.const(new.type, self.count)), offset)

        def load(e: n.Load, rec: Rec) -> n.Expr:
            i = rec(e.index)
            return n.Load(e.type, e.name, index(e.index, i) if e.name in private else i, rec(e.predicate), e.param)

        def store(one: n.Store, rec: Rec) -> n.Stmt:
            i = rec(one.index)
            i = index(one.index, i) if one.name in private else i
            return n.Store(one.name, rec(one.value), i, rec(one.predicate), one.param)

        needed = b.let_stmts(self.scalar_lets, s)
        body = rewrite(needed, {n.Load: load, n.Store: store}, n.symbol_bits(private)) if private else needed
        return n.For(self.loop.name, self.loop.min, b.i32(self.count), n.ForType.Serial, n.Partition.Never, body)

    # ---- expressions

    def variable(self, e: n.Variable, rec: Rec) -> n.Expr:
        return self.values.get(e.name, e)

    def binary(self, e: n.Add, rec: Rec) -> n.Expr:
        x, y = rec(e.a), rec(e.b)
        return e if x is e.a and y is e.b else v.binary(type(e), self.up(e.a, x), self.up(e.b, y))

    def cast(self, e: n.Cast, rec: Rec) -> n.Expr:
        x = rec(e.value)
        return e if x is e.value else v.cast(e.type.with_lanes(x.type.lanes()), x)

    def reinterpret(self, e: n.Reinterpret, rec: Rec) -> n.Expr:
        x = rec(e.value)
        return e if x is e.value else n.Reinterpret(e.type.with_lanes(e.type.lanes() * self.count), x)

    def select(self, e: n.Select, rec: Rec) -> n.Expr:
        c, x, y = rec(e.condition), rec(e.true_value), rec(e.false_value)
        if c is e.condition and x is e.true_value and y is e.false_value:
            return e
        if c is e.condition and c.type.is_vector():
            c = self.up(e.condition, c)
        elif c is not e.condition:
            c = v.tile(c, e.condition.type.lanes(), e.type.lanes() // e.condition.type.lanes())
        return n.Select(c, self.up(e.true_value, x), self.up(e.false_value, y))

    def load(self, e: n.Load, rec: Rec) -> n.Expr:
        index, p = rec(e.index), rec(e.predicate)
        if e.name in self.private:
            wide = self.private_index(e.index, index)
            return n.Load(e.type.with_lanes(wide.type.lanes()), e.name, wide, self.up(e.predicate, p), e.param)
        if index is e.index:
            if p is e.predicate:
                return e
            return v.broadcast(n.Load(e.type, e.name, index, self.any_lane(p), e.param), self.count)
        return n.Load(e.type.with_lanes(index.type.lanes()), e.name, index, self.up(e.predicate, p), e.param)

    def ramp(self, e: n.Ramp, rec: Rec) -> n.Expr:
        base, stride = rec(e.base), rec(e.stride)
        if base is e.base and stride is e.stride:
            return e
        group = e.base.type.lanes()
        if stride is e.stride:
            if isinstance(base, n.Ramp) and base.lanes == self.count and base.base.type.lanes() == group:
                return v.ramp(v.ramp(base.base, stride, e.lanes), v.broadcast(base.stride, e.lanes), self.count)
            steps = v.broadcast(v.ramp(b.const(e.base.type, 0), stride, e.lanes), self.count)
            return v.binary(n.Add, v.tile(base, group, e.lanes), steps)
        steps = v.tile(v.ramp(b.i32(0), b.i32(1), e.lanes), 1, group)
        wide = v.cast(e.type.with_lanes(e.type.lanes() * self.count), v.broadcast(steps, self.count))
        scaled = v.binary(n.Mul, v.tile(self.up(e.stride, stride), group, e.lanes), wide)
        return v.binary(n.Add, v.tile(self.up(e.base, base), group, e.lanes), scaled)

    def broadcast(self, e: n.Broadcast, rec: Rec) -> n.Expr:
        x = rec(e.value)
        return e if x is e.value else v.tile(x, e.value.type.lanes(), e.lanes)

    def shuffle(self, e: n.Shuffle, rec: Rec) -> n.Expr:
        vectors = [rec(x) for x in e.vectors]
        if all(x is y for x, y in zip(vectors, e.vectors)):
            return e
        wide = tuple(self.up(old, new) for old, new in zip(e.vectors, vectors))
        place = [(k, j) for k, old in enumerate(e.vectors) for j in range(old.type.lanes())]
        size = [old.type.lanes() for old in e.vectors]
        start = [sum(size[:k]) * self.count for k in range(len(size))]
        indices = tuple(start[k] + lane * size[k] + j for lane in range(self.count) for k, j in (place[i] for i in e.indices))
        return n.Shuffle(wide, indices)

    def vector_reduce(self, e: n.VectorReduce, rec: Rec) -> n.Expr:
        x = rec(e.value)
        return e if x is e.value else n.VectorReduce(e.op, x, e.lanes * self.count)

    def call(self, e: n.Call, rec: Rec) -> n.Expr:
        if e.name == "if_then_else" and rec(e.args[0]) is not e.args[0]:
            condition, values, both = e.args[0], e.args[1:], shared_choices(e)
            then_value = predicate(values[0], condition, both)
            else_value = predicate(values[1], b.not_(condition), both) if len(values) > 1 else b.const(e.type, 0)
            return rec(n.Select(condition, then_value, else_value))  # type: ignore[no-any-return]
        args = [rec(a) for a in e.args]
        if all(x is y for x, y in zip(args, e.args)):
            return e
        if e.name == "trace":  # the report of an event: its coordinates and value are vectors, what says which event it is stays
            wide = (*args[:8], *(self.up(old, new) for old, new in zip(e.args[8:], args[8:])))
            return n.Call(e.type, e.name, wide, e.call_type)
        if e.name == "return_second":
            return n.Call(e.type.with_lanes(e.type.lanes() * self.count), e.name, (args[0], self.up(e.args[1], args[1])), e.call_type)
        if e.name == "if_then_else":
            wide = (args[0], *(self.up(old, new) for old, new in zip(e.args[1:], args[1:])))
        else:
            wide = tuple(self.up(old, new) for old, new in zip(e.args, args))
        return n.Call(e.type.with_lanes(e.type.lanes() * self.count), e.name, wide, e.call_type, e.func, e.value_index, e.param)

    def let(self, e: n.Let, rec: Rec) -> n.Expr:
        scalar, name = e, e.name
        while self.lets.setdefault(name, e.value) is not e.value:  # of another value by now: what is remembered of its body does not hold
            name += "_"
        if name != e.name:
            e = n.Let(name, e.value, substitute({e.name: n.Variable(e.value.type, name)}, e.body))
        value = rec(e.value)
        if value is e.value:
            body = rec(e.body)
            return scalar if body is e.body else n.Let(e.name, value, body)
        name, value = self.bind(e.name, value)
        return n.Let(name, value, rec(e.body))

    # ---- statements

    def let_stmt(self, s: n.LetStmt, rec: Rec) -> n.Stmt:
        if has_effects(s.value, traces=False):
            return self.serial(s)
        value = rec(s.value)
        if value is s.value:
            return n.LetStmt(s.name, value, rec(s.body))
        if s.value.mask & n.Load.bit and has_effects(s.body, traces=False):
            return self.serial(s)  # evaluated again per lane it might see other memory
        name, value = self.bind(s.name, value)
        self.scalar_lets.append((s.name, s.value))
        body = rec(s.body)
        self.scalar_lets.pop()
        return n.LetStmt(name, value, body)

    def store(self, s: n.Store, rec: Rec) -> n.Stmt:
        if has_effects(s, traces=False):
            return self.serial(s)
        steady = self.steady(s, rec)
        if steady is not None:
            return steady
        value, index, p = rec(s.value), rec(s.index), rec(s.predicate)
        if s.name in self.private:
            wide = self.private_index(s.index, index)
            return n.Store(s.name, self.up(s.value, value), wide, self.up(s.predicate, p), s.param)
        reads_itself = mentions(s.value, s.name)
        if index is s.index and (reads_itself or value is not s.value):
            return self.reduction(s, rec) or self.serial(s)
        if index is s.index:
            return s if p is s.predicate else n.Store(s.name, value, index, self.any_lane(p), s.param)
        if reads_itself and not isinstance(index, n.Ramp):
            return scattered(s, rec, self.count, self.fresh_vector) or self.serial(s)
        return n.Store(s.name, self.up(s.value, value), index, self.up(s.predicate, p), s.param)

    def fresh_vector(self) -> str:
        """A name for a vector that nothing has."""
        name = self.fresh(f"{self.loop.name}.scattered{len(self.taken)}")
        self.taken.add(name)
        return name

    def steady(self, s: n.Store, rec: Rec) -> n.Stmt | None:
        """A store with conditions marked likely that differ between lanes (tails of splits): a test that all hold in front of the store
        without them."""
        if not s.symbols & _LIKELY:
            return None
        marks = [c for c in nodes_of(s, n.Call) if c.name == "likely" and c.type.is_bool() and rec(c.args[0]) is not c.args[0]]
        if not marks:
            return None
        all_hold = v.all_true(rec(b.all_of(strip_likely(c) for c in marks)))
        return n.IfThenElse(b.likely(all_hold), rec(_holding(s, set(marks))), rec(strip_likely(s)))

    def atomic(self, s: n.Atomic, rec: Rec) -> n.Stmt:
        """One store of what the lanes combine to is atomic as it was; anything else is done lane by lane."""
        new = rec(s.body) if isinstance(s.body, n.Store) else None
        return n.Atomic(s.name, new) if isinstance(new, n.Store) and new.value.type.is_scalar() else self.serial(s)

    def reduction(self, s: n.Store, rec: Rec) -> n.Stmt | None:
        """`a[i] = a[i] op e`, i the same in all lanes, as one store of `a[i] op reduce(e)`; None when it has not this form."""
        kind = n.Add if isinstance(s.value, n.Sub) else type(s.value)
        op = _REDUCTIONS.get(kind)
        if op is None or rec(s.predicate) is not s.predicate:
            return None
        plus, minus = _operands(s.value, kind)
        own = next((e for e in plus if isinstance(e, n.Load) and e.name == s.name and e.index is s.index), None)
        rest = [e for e in plus if e is not own]
        if own is None or len(rest) != len(plus) - 1 or any(mentions(e, s.name) for e in (*rest, *minus)):
            return None
        lanes: n.Expr = own
        for sign, operands in ((kind, rest), (n.Sub, minus)):
            if operands:
                total = operands[0]
                for e in operands[1:]:
                    total = kind(total, e)  # type: ignore[call-arg]
                lanes = v.binary(sign, lanes, v.reduce_outer(op, self.up(total, rec(total)), self.count))
        return n.Store(s.name, lanes, s.index, s.predicate, s.param)

    def if_then_else(self, s: n.IfThenElse, rec: Rec) -> n.Stmt:
        condition = rec(s.condition)
        if condition is s.condition:
            return s.map_children(rec)  # type: ignore[no-any-return]
        if has_effects(s.condition):
            return self.serial(s)
        test = strip_likely(s.condition)
        if test.mask & n.Load.bit and not isinstance(s.then_case, n.Store) and not has_effects(s):
            named = n.Variable(BOOL, f"{self.loop.name}.guard{len(self.values)}")  # stores must not change it
            return rec(n.LetStmt(named.name, test, n.IfThenElse(named, s.then_case, s.else_case)))  # type: ignore[no-any-return]
        tail = s.else_case is None and test is not s.condition  # few lanes: a loop over them is less code than masks, and as fast
        guarded = self.serial(n.IfThenElse(test, s.then_case, s.else_case)) if tail or has_effects(s) else self.guarded(s, test, rec)
        if tail:
            return n.IfThenElse(b.likely(v.all_true(condition)), rec(s.then_case), guarded)
        return guarded

    def guarded(self, s: n.IfThenElse, test: n.Expr, rec: Rec) -> n.Stmt:
        """Both cases, their loads and stores predicated."""
        cases = [predicate(s.then_case, test)]
        if s.else_case is not None:
            cases.append(predicate(s.else_case, b.not_(test)))
        return b.block(rec(c) for c in cases)

    def for_loop(self, s: n.For, rec: Rec) -> n.Stmt:
        low, extent = rec(s.min), rec(s.extent)
        if low is s.min and extent is s.extent:
            return n.For(s.name, low, extent, s.kind, s.partition, rec(s.body))
        end = rec(b.add(s.min, s.extent))
        first = self.extreme(n.ReduceOp.Min, self.up(s.min, low))
        last = self.extreme(n.ReduceOp.Max, end)
        here = n.Variable(INT32, s.name)
        guard = n.And(n.LE(s.min, here), n.LT(here, b.add(s.min, s.extent)))
        return n.For(s.name, first, b.sub(last, first), s.kind, s.partition, rec(n.IfThenElse(guard, s.body)))

    def extreme(self, op: n.ReduceOp, e: n.Expr) -> n.Expr:
        known = v.bounds(e)
        if known is not None:
            return known[0 if op is n.ReduceOp.Min else 1]
        return n.VectorReduce(op, e, 1)

    def allocate(self, s: n.Allocate, rec: Rec) -> n.Stmt:
        extents = [e if rec(e) is e else self.extreme(n.ReduceOp.Max, rec(e)) for e in s.extents]
        condition = s.condition if rec(s.condition) is s.condition else b.TRUE
        return n.Allocate(s.name, s.type, s.memory, (*extents, b.i32(self.count)), condition, s.padding * self.count, rec(s.body))

    def check(self, s: n.Assert, rec: Rec) -> n.Stmt:
        same = rec(s.condition) is s.condition and rec(s.message) is s.message  # what it says may be of a lane where what it asks is not
        return s if same and not has_effects(s.condition) else self.serial(s)

    def evaluate(self, s: n.Evaluate, rec: Rec) -> n.Stmt:
        return self.serial(s) if has_effects(s) else b.NOTHING


_LIKELY = n.symbol_bit("likely")


def _holding(s: n.Store, marks: set[n.Call]) -> n.Store:
    """A store where the conditions hold."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        if c in marks:
            return b.TRUE
        new: n.Call = c.map_children(rec)
        return new.args[1] if c.name == "if_then_else" and b.is_true(new.args[0]) else new

    def select(e: n.Select, rec: Rec) -> n.Expr:
        return b.select(rec(e.condition), rec(e.true_value), rec(e.false_value))

    def both(e: n.And, rec: Rec) -> n.Expr:
        return b.and_(rec(e.a), rec(e.b))

    return rewrite(s, {n.Call: call, n.Select: select, n.And: both})


def _operands(e: n.Expr, kind: type[n.Expr]) -> tuple[list[n.Expr], list[n.Expr]]:
    """The operands of a chain of one operation; for sums also those that are subtracted."""
    plus: list[n.Expr] = []
    minus: list[n.Expr] = []
    stack = [(e, plus, minus)]
    while stack:
        x, same, other = stack.pop()
        if type(x) is kind:
            stack += [(x.b, same, other), (x.a, same, other)]  # type: ignore[attr-defined]
        elif kind is n.Add and isinstance(x, n.Sub):
            stack += [(x.b, other, same), (x.a, same, other)]
        else:
            same.append(x)
    return plus, minus


def vectorize(stmt: n.Stmt) -> n.Stmt:
    """Replace every vectorized loop, innermost first. Raises CompileError for a loop without a constant extent."""

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        if f.kind is not n.ForType.Vectorized:
            return f.map_children(rec)  # type: ignore[no-any-return]
        f = n.For(f.name, f.min, f.extent, f.kind, f.partition, rec(f.body))
        count = constant_extent(f, "vectorized")
        if count <= 0:
            return b.NOTHING
        return substitute({f.name: f.min}, f.body) if count == 1 else _Widen(f, count).run()

    stmt = rewrite(stmt, {n.For: loop})
    return rewrite(stmt, {n.Atomic: lambda a, rec: a.body if a.name == LANES else a}) if stmt.mask & n.Atomic.bit else stmt
