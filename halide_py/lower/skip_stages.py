"""Skipped stages: a Func whose values do not matter is not produced: `select(p > 0, f(x), 0)` needs no f where p <= 0.

IR before: `realize f { produce f {..} out(x) = select(p > 0, f(x), 0) }`. After: `.. produce f { if (p > 0) {..} } ..`. The condition is
that of all reads of f in its realization: of Selects (whose branches are all evaluated; what is read there is thrown away), of guards, and
of the productions that read it, which are skipped themselves. It is made of what is known where f is stored: parameters, variables of the
loops around, and values of images and of Funcs produced before (not with tasks, whose slices they would enter). Reads in conditions, in
indices and arguments of C functions always count, as anything there does harm. Storage is allocated all the same. Names must be bound once.
Behaviour: Halide's SkipStages.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.simplify import simplify
from ..ir.traverse import Rec, free_variables, mentions, nodes_of, rewrite, substitute
from .environment import Environment
from .guards import has_effects

LARGEST = 64  # nodes of a condition; a larger one is not worth to be asked
_DECIDES = n.Select.bit | n.IfThenElse.bit | n.Call.bit


def skip_stages(stmt: n.Stmt, env: Environment) -> n.Stmt:
    """`stmt` with the productions under conditions that hold where their values are used; asked twice, since what is realized inside may
    feed productions of what is realized outside."""
    tasks = any(f.schedule.is_async for f in env.values())
    return _Skipper(tasks).visit(_Skipper(tasks).visit(stmt))


class _Skipper:
    """Walks inwards with what is in scope; productions get their conditions from the innermost realization on, so that those of consumers
    are guards for what they read."""

    def __init__(self, tasks: bool) -> None:
        self.tasks = tasks
        self.scope: set[str] = set()  # variables bound around
        self.made: set[str] = set()  # Funcs produced before

    def visit(self, s: n.Stmt) -> n.Stmt:
        if not s.mask & n.Realize.bit:
            return s
        if isinstance(s, n.Block):
            before, out = set(self.made), []
            for one in s.stmts:
                out.append(self.visit(one))
                self.made |= set() if self.tasks else {p.name for p in nodes_of(one, n.Produce)}
            self.made = before
            return b.block(out)
        bound = {s.name} - self.scope if isinstance(s, (n.For, n.LetStmt)) else set()
        self.scope |= bound
        new = self.realize(s) if isinstance(s, n.Realize) else s.map_children(lambda e: self.visit(e) if isinstance(e, n.Stmt) else e)
        self.scope -= bound
        return new

    def realize(self, r: n.Realize) -> n.Stmt:
        produced = {p.name for p in nodes_of(r.body, n.Produce)}
        before, self.made = self.made, self.made - produced
        body = self.visit(r.body)
        if body.mask & _DECIDES:
            use = simplify(self.known(_Uses(r.name).of_stmt(body)))
            if not b.is_true(use) and mentions(body, r.name):
                body = _guarded(body, r.name, use)
        self.made = before
        return r if body is r.body else n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, body)

    def known(self, e: n.Expr) -> n.Expr:
        """`e` or what follows from it that can be asked here."""

        def open(atom: n.Expr) -> bool:
            calls = list(nodes_of(atom, n.Call))
            return (any(v.param is None and v.name not in self.scope for v in free_variables(atom).values())
                    or any(c.call_type is n.CallType.Halide and c.name not in self.made for c in calls) or has_effects(atom)
                    or any(c.call_type not in (n.CallType.Halide, n.CallType.Image, n.CallType.PureIntrinsic) for c in calls))

        known = _weaker(e, open)
        return known if len(list(nodes_of(known, n.Expr))) <= LARGEST else b.TRUE


def _weaker(e: n.Expr, dropped: Callable[[n.Expr], bool]) -> n.Expr:
    """What follows from a condition without the comparisons in it that are dropped."""
    memo: dict[n.Expr, n.Expr] = {}

    def weaker(e: n.Expr) -> n.Expr:
        found = memo.get(e)
        if found is None:
            found = memo[e] = of(e)
        return found

    def of(e: n.Expr) -> n.Expr:
        if isinstance(e, (n.And, n.Or)):
            return (b.and_ if isinstance(e, n.And) else b.or_)(weaker(e.a), weaker(e.b))
        if isinstance(e, n.Not) and isinstance(e.a, (n.And, n.Or)):
            return (b.or_ if isinstance(e.a, n.And) else b.and_)(weaker(b.not_(e.a.a)), weaker(b.not_(e.a.b)))
        return b.TRUE if dropped(e) else e

    return weaker(e)


def _guarded(s: n.Stmt, name: str, condition: n.Expr) -> n.Stmt:
    """`s` with productions of a Func under a condition; not those that share loops with other Funcs."""

    def produce(p: n.Produce, rec: Rec) -> n.Stmt:
        if p.name != name:
            return p.map_children(rec)  # type: ignore[no-any-return]
        own = {name, *(r.name for r in nodes_of(p.body, n.Realize))}
        shared = any(q.name not in own for q in nodes_of(p.body, (n.Produce, n.Provide)))
        asked = isinstance(p.body, n.IfThenElse) and p.body.condition is condition
        return p if shared or asked else n.Produce(name, n.IfThenElse(condition, p.body, None))

    return rewrite(s, {n.Produce: produce})


class _Uses:
    """The condition under which values of one Func matter to a statement."""

    def __init__(self, name: str) -> None:
        self.name, self.bit = name, n.symbol_bit(name)
        self.memo: dict[n.Expr, n.Expr] = {}
        self.harm: dict[n.Expr, bool] = {}

    def any_of(self, conditions: Iterator[n.Expr]) -> n.Expr:
        """Their disjunction, for which none is asked after one that always holds."""
        found: n.Expr = b.FALSE
        for c in conditions:
            found = b.or_(found, c)
            if b.is_true(found):
                break
        return found

    def of_stmt(self, s: n.Stmt) -> n.Expr:
        """True if nothing else is known."""
        if not mentions(s, self.name) or isinstance(s, n.Produce) and s.name == self.name:
            return b.FALSE
        if isinstance(s, (n.Produce, n.HoistedStorage, n.Realize)):
            return self.of_stmt(s.body)
        if isinstance(s, n.Block):
            return self.any_of(self.of_stmt(one) for one in s.stmts)
        if isinstance(s, n.LetStmt) and not mentions(s.value, self.name):
            return substitute({s.name: s.value}, self.of_stmt(s.body))
        if isinstance(s, n.For) and not (mentions(s.min, self.name) or mentions(s.extent, self.name)):
            return _weaker(self.of_stmt(s.body), lambda atom: mentions(atom, s.name))
        if isinstance(s, n.IfThenElse):
            return self.choice(s.condition, self.of_stmt(s.then_case), b.FALSE if s.else_case is None else self.of_stmt(s.else_case))
        if isinstance(s, n.Provide) and not any(mentions(e, self.name) for e in (*s.args, s.predicate)):
            return self.any_of(self.of_expr(e) for e in s.values)
        return b.TRUE

    def choice(self, condition: n.Expr, first: n.Expr, second: n.Expr) -> n.Expr:
        """Of two cases."""
        if mentions(condition, self.name):
            return b.TRUE
        if first is second:
            return first
        condition = strip_likely(condition)
        return b.or_(b.and_(condition, first), b.and_(b.not_(condition), second))

    def does_harm(self, e: n.Expr) -> bool:
        """Whether values of the Func reach an index or a C function in an expression that is evaluated, used or not."""
        found = self.harm.get(e)
        if found is None:
            here: tuple[n.Expr, ...] = (e.value,) if isinstance(e, n.Let) else ()
            if isinstance(e, n.Call) and e.call_type is not n.CallType.PureIntrinsic:
                here = e.args
            inside = (c for c in e.children() if isinstance(c, n.Expr) and c.symbols & self.bit)
            found = self.harm[e] = any(mentions(x, self.name) for x in here) or any(map(self.does_harm, inside))
        return found

    def of_expr(self, e: n.Expr) -> n.Expr:
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self._of_expr(e)
        return found

    def _of_expr(self, e: n.Expr) -> n.Expr:
        if not e.symbols & self.bit:
            return b.FALSE
        if isinstance(e, n.Select):
            if self.does_harm(e):
                return b.TRUE
            return self.choice(e.condition, self.of_expr(e.true_value), self.of_expr(e.false_value))
        if isinstance(e, n.Call) and e.name == "if_then_else":
            return self.choice(e.args[0], self.of_expr(e.args[1]), self.of_expr(e.args[2]))
        if isinstance(e, n.Let):
            return b.TRUE if mentions(e.value, self.name) else substitute({e.name: e.value}, self.of_expr(e.body))
        if isinstance(e, n.Call) and e.call_type is not n.CallType.PureIntrinsic:
            return b.TRUE if mentions(e, self.name) else b.FALSE
        return self.any_of(self.of_expr(child) for child in e.children() if isinstance(child, n.Expr))
