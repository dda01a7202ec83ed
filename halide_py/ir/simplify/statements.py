"""Statements: what never runs goes, loops of one iteration become lets, lets that are trivial, used once or equal to another are
substituted.

Conditions of if and assert, and the ranges of loops, are facts inside. Lets nobody uses are dropped in one pass over the
result (`drop_dead_lets`), so chains of lets cost time linear in their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import nodes as n
from ..build import NOTHING, as_int, block, const, is_false, is_true
from . import linear
from .calls import is_pure, is_trivial, reads_memory
from .logic import conjuncts, negation
from .ranges import intersect
from .simplify import Simplifier

StmtHandler = Callable[[Simplifier, Any], n.Stmt]


def statement(s: Simplifier, one: n.Stmt) -> n.Stmt:
    """`one` simplified."""
    return _HANDLERS[type(one)](s, one)


def count_uses(root: n.Node) -> dict[str, int]:
    """How many nodes use each variable."""
    uses: dict[str, int] = {}
    seen = {root}
    stack = [root]
    while stack:
        one = stack.pop()
        for k in one.children():
            if type(k) is n.Variable:
                uses[k.name] = uses.get(k.name, 0) + 1
            elif k not in seen:
                seen.add(k)
                stack.append(k)
    return uses


def _let(s: Simplifier, one: n.LetStmt) -> n.Stmt:
    chain: list[n.LetStmt] = []
    while type(one) is n.LetStmt and not s.is_bound(one.name):  # a loop, not recursion: chains are long
        chain.append(one)
        _bind(s, one, s.expr(one.value))
        one = one.body  # type: ignore[assignment]
    if not chain:  # bound a second time: what was simplified before may mention the other one
        value = s.expr(one.value)
        saved = s.values.pop(one.name, None), s.known.pop(one.name, None), s.limits.pop(one.name, None)
        outer, s.named = s.named, {}
        with s.layer(n.symbol_bit(one.name)):
            _bind(s, one, value)
            body = statement(s, one.body)
            out = _rebuilt(s, one, body)
        s.named = outer
        for table, old in zip((s.values, s.known, s.limits), saved):
            table.pop(one.name, None)  # type: ignore[attr-defined]
            if old is not None:
                table[one.name] = old  # type: ignore[index]
        return out
    body = statement(s, one)
    for let in reversed(chain):
        body = _rebuilt(s, let, body)
    return body


# An int let with one of these stays a let even if used once: sums of its name cancel, sums of its value would not.
_ATOMS = n.Min.bit | n.Max.bit | n.Select.bit | n.Div.bit | n.Mod.bit


def _bind(s: Simplifier, let: n.LetStmt, value: n.Expr) -> None:
    """Record what is known of a let inside its body."""
    name = let.name
    value = s.named.get(value, value)
    if is_trivial(value) or s.uses.get(name, 2) <= 1 and not value.mask & _ATOMS and not reads_memory(value) and is_pure(value):
        s.values[name] = value
        s.bind(name, value.symbols)
        return
    if value.type.overflow_is_undefined() and value.type.is_scalar() and not reads_memory(value):
        s.limit(name, value, value)
    else:
        s.bind(name, value.symbols)
        if value.type.is_int_or_uint():
            s.note_range(name, s.range(value))
    s.kept[name] = value
    if is_pure(value) and not reads_memory(value):
        s.named[value] = n.Variable(value.type, name)


def _rebuilt(s: Simplifier, let: n.LetStmt, body: n.Stmt) -> n.Stmt:
    if let.name in s.values:
        return body
    value = s.kept.get(let.name, let.value)
    s.named.pop(value, None)
    if body is NOTHING and is_pure(value):
        return NOTHING
    return let if value is let.value and body is let.body else n.LetStmt(let.name, value, body)


@contextmanager
def assuming(s: Simplifier, condition: n.Expr, holds: bool = True) -> Iterator[None]:
    """Facts of a simplified condition, inside."""
    truths, limits, known, facts = dict(s.truths), dict(s.limits), dict(s.known), list(s.facts)
    bits = 0
    for c in conjuncts(condition, holds):
        if reads_memory(c) or not c.symbols:
            continue  # stores may make it false; and of a constant nothing is to be learnt, above all not that false is true
        bits |= c.symbols
        _assume(s, c)
    if not bits:
        yield
        return
    try:
        with s.layer(bits):
            yield
    finally:
        s.truths, s.limits, s.facts = truths, limits, facts
        for name, r in known.items():  # names bound inside keep their ranges, they are not used outside
            s.known[name] = r
        for name in [k for k in s.known if k not in known and bits & n.symbol_bit(k)]:
            del s.known[name]


def _assume(s: Simplifier, c: n.Expr) -> None:
    """One condition holds."""
    if type(c) is n.Not:
        s.truths[c.a] = False
        return
    s.truths[c] = True
    opposite = negation(c)
    if opposite is not None:
        s.truths[opposite] = False
    if type(c) not in (n.LT, n.LE, n.EQ) or not c.a.type.overflow_is_undefined():  # type: ignore[attr-defined]
        return
    terms, k = linear.difference(c.b, c.a)  # type: ignore[attr-defined]
    if type(c) is n.LT:
        k -= 1
    forms = [(terms, k)]
    if type(c) is n.EQ:
        forms.append(({e: -w for e, w in terms.items()}, -k))
    for form, constant in forms:
        s.facts.append((form, constant))
        _bound_variable(s, form, constant)


def _bound_variable(s: Simplifier, form: linear.Terms, constant: int) -> None:
    """form + constant >= 0 with one variable gives that variable a constant limit."""
    if len(form) != 1:
        return
    (e, w), = form.items()
    if type(e) is not n.Variable:
        return
    r = (-(constant // w), None) if w > 0 else (None, constant // -w)
    s.known[e.name] = intersect(s.known.get(e.name, (None, None)), r)


def _if(s: Simplifier, one: n.IfThenElse) -> n.Stmt:
    c = s.expr(one.condition)
    if is_true(c):
        return statement(s, one.then_case)
    if is_false(c):
        return NOTHING if one.else_case is None else statement(s, one.else_case)
    with assuming(s, c):
        yes = statement(s, one.then_case)
    no = None
    if one.else_case is not None:
        with assuming(s, c, False):
            no = statement(s, one.else_case)
        no = None if no is NOTHING else no
    if yes is NOTHING and is_pure(c):
        opposite = negation(c)
        if no is None:
            return NOTHING
        return n.IfThenElse(s.expr(opposite) if opposite is not None else n.Not(c), no)
    if yes is no and is_pure(c):
        return yes
    if no is None and type(yes) is n.IfThenElse and yes.else_case is None and is_pure(yes.condition) and not reads_memory(yes.condition):
        return n.IfThenElse(s.expr(n.And(c, yes.condition)), yes.then_case)
    same = c is one.condition and yes is one.then_case and no is one.else_case
    return one if same else n.IfThenElse(c, yes, no)


def _for(s: Simplifier, one: n.For) -> n.Stmt:
    low, extent = s.expr(one.min), s.expr(one.extent)
    most = s.range(extent)[1]
    if most is not None and most <= 0:
        return NOTHING
    if as_int(extent) == 1:
        return statement(s, n.LetStmt(one.name, low, one.body))
    high = s.expr(n.Sub(n.Add(low, extent), const(extent.type, 1)))
    fresh = not s.is_bound(one.name)
    saved = s.values.pop(one.name, None), s.known.pop(one.name, None), s.limits.pop(one.name, None)
    if fresh:
        s.limit(one.name, low, high)
        body = _loop_body(s, one, extent)
    else:
        with s.layer(n.symbol_bit(one.name)):
            s.limit(one.name, low, high)
            body = _loop_body(s, one, extent)
    for table, old in zip((s.values, s.known, s.limits), saved):
        table.pop(one.name, None)  # type: ignore[attr-defined]
        if old is not None:
            table[one.name] = old  # type: ignore[index]
    if body is NOTHING:
        return NOTHING
    same = low is one.min and extent is one.extent and body is one.body
    return one if same else n.For(one.name, low, extent, one.kind, one.partition, body)


def _loop_body(s: Simplifier, one: n.For, extent: n.Expr) -> n.Stmt:
    """The body, in which the loop is known to have an iteration."""
    least = s.range(extent)[0]
    if least is not None and least >= 1 or reads_memory(extent) or not one.body.mask & n.IfThenElse.bit:
        return statement(s, one.body)
    some = s.expr(n.LT(const(extent.type, 0), extent))
    if is_false(some):
        return NOTHING
    with assuming(s, some):
        return statement(s, one.body)


def _block(s: Simplifier, one: n.Block) -> n.Stmt:
    out = [statement(s, x) for x in one.stmts]
    return one if all(a is b for a, b in zip(out, one.stmts)) else block(out)


def _produce(s: Simplifier, one: n.Produce | n.HoistedStorage | n.Atomic) -> n.Stmt:
    body = statement(s, one.body)
    return one if body is one.body else type(one)(one.name, body)


def _assert(s: Simplifier, one: n.Assert) -> n.Stmt:
    c = s.expr(one.condition)
    if is_true(c):
        return NOTHING
    message = s.expr(one.message)
    return one if c is one.condition and message is one.message else n.Assert(c, message)


def _store(s: Simplifier, one: n.Store) -> n.Stmt:
    predicate = s.expr(one.predicate)
    if is_false(predicate):
        return NOTHING
    value, index = s.expr(one.value), s.expr(one.index)
    same = value is one.value and index is one.index and predicate is one.predicate
    return one if same else n.Store(one.name, value, index, predicate, one.param)


def _provide(s: Simplifier, one: n.Provide) -> n.Stmt:
    predicate = s.expr(one.predicate)
    if is_false(predicate):
        return NOTHING
    return one.map_children(s.expr)  # type: ignore[no-any-return]


def _realize(s: Simplifier, one: n.Realize) -> n.Stmt:
    mins, extents = tuple(map(s.expr, one.mins)), tuple(map(s.expr, one.extents))
    condition, body = s.expr(one.condition), statement(s, one.body)
    if body is NOTHING:
        return NOTHING
    same = mins == one.mins and extents == one.extents and condition is one.condition and body is one.body
    return one if same else n.Realize(one.name, one.types, one.memory, mins, extents, condition, body)


def _allocate(s: Simplifier, one: n.Allocate) -> n.Stmt:
    extents, condition, body = tuple(map(s.expr, one.extents)), s.expr(one.condition), statement(s, one.body)
    if body is NOTHING:
        return NOTHING
    same = extents == one.extents and condition is one.condition and body is one.body
    return one if same else n.Allocate(one.name, one.type, one.memory, extents, condition, one.padding, body)


def _evaluate(s: Simplifier, one: n.Evaluate) -> n.Stmt:
    value = s.expr(one.value)
    if is_pure(value):
        return NOTHING
    return one if value is one.value else n.Evaluate(value)


def _fork(s: Simplifier, one: n.Fork) -> n.Stmt:
    first, rest = statement(s, one.first), statement(s, one.rest)
    return one if first is one.first and rest is one.rest else n.Fork(one.name, first, rest)


_HANDLERS: dict[type[n.Node], StmtHandler] = {
    n.Fork: _fork,
    n.Atomic: _produce,
    n.LetStmt: _let,
    n.IfThenElse: _if,
    n.For: _for,
    n.Block: _block,
    n.Produce: _produce,
    n.HoistedStorage: _produce,
    n.Assert: _assert,
    n.Store: _store,
    n.Provide: _provide,
    n.Realize: _realize,
    n.Allocate: _allocate,
    n.Evaluate: _evaluate,
}


def drop_dead_lets(root: Any) -> Any:
    """`root` without lets whose names are mentioned nowhere but in values of dead lets."""
    if not root.mask & (n.Let.bit | n.LetStmt.bit):
        return root
    pending: dict[str, list[n.Expr]] = {}
    live: set[str] = set()
    seen: set[n.Node] = {root}
    stack: list[n.Node] = [root]
    while stack:
        one = stack.pop()
        kids = one.children()
        if type(one) is n.LetStmt or type(one) is n.Let:
            kids = (one.body,)
            value: n.Expr = one.value
            if one.name in live or not is_pure(value):
                kids = (one.body, value)
            else:
                pending.setdefault(one.name, []).append(value)
        elif type(one) is n.Variable and one.name not in live:
            live.add(one.name)
            kids = tuple(pending.pop(one.name, ()))
        for k in kids:
            if k not in seen:
                seen.add(k)
                stack.append(k)
    if not pending:
        return root
    return _without_lets(root, pending)


def _without_lets(root: n.Node, dead: dict[str, list[n.Expr]]) -> Any:
    memo: dict[n.Node, Any] = {}
    want = n.Let.bit | n.LetStmt.bit

    def rec(one: Any) -> Any:
        if not one.mask & want:
            return one
        new = memo.get(one)
        if new is None:
            chain = []
            inner = one
            while (type(inner) is n.LetStmt or type(inner) is n.Let) and inner not in memo:
                chain.append(inner)
                inner = inner.body
            # F821: `rec` is deleted at the end, on purpose
            new = memo[inner] if inner in memo else inner.map_children(rec) if inner.mask & want else inner  # noqa: F821
            for let in reversed(chain):
                if let.name not in dead:
                    value = rec(let.value)  # noqa: F821 (deleted below, on purpose)
                    new = let if new is let.body and value is let.value else type(let)(let.name, value, new)  # type: ignore[arg-type]
                memo[let] = new
            memo[one] = new
        return new

    try:
        return rec(root)
    finally:
        del rec  # noqa: F821
