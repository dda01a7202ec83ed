"""Uniquify: rename lets and loops so that each name is bound once; from here on memoising across scopes is right.

IR before: `let f.s0.x.min = ..` at several loop levels. After: `f.s0.x.min`, `f.s0.x.min$1`, ... The names of Funcs and buffers
stay. The first binding met from outside keeps its name.
"""

from __future__ import annotations

from typing import Any

from ..ir import nodes as n


class _Uniquify:
    def __init__(self) -> None:
        self.count: dict[str, int] = {}
        self.scope: dict[str, n.Expr] = {}
        self.memo: dict[n.Node, Any] = {}  # expressions under the current renamings

    def fresh(self, name: str) -> str:
        seen = self.count.get(name, 0)
        self.count[name] = seen + 1
        return f"{name}${seen}" if seen else name

    def expr(self, e: Any) -> Any:
        """An expression with the renamings of the current scope."""
        if not self.scope or not e.mask & (n.Variable.bit | n.Let.bit):
            return e
        if isinstance(e, n.Variable):
            return self.scope.get(e.name, e) if e.param is None else e
        found = self.memo.get(e)
        if found is None:
            found = self.let(e) if isinstance(e, n.Let) else e.map_children(self.expr)
            self.memo[e] = found
        return found

    def let(self, e: n.Let) -> n.Expr:
        value = self.expr(e.value)
        name = self.fresh(e.name)
        return n.Let(name, value, self.bind(e.name, name, value.type, e.body, self.expr))

    def bind(self, old: str, new: str, t: Any, body: Any, visit: Any) -> Any:
        """`visit(body)` with `old` renamed to `new` (or un-renamed, when an outer one was)."""
        before = self.scope.get(old)
        if old == new and before is None:
            return visit(body)
        saved = self.memo
        self.memo = {}
        self.scope[old] = n.Variable(t, new)
        out = visit(body)
        self.memo = saved
        if before is None:
            del self.scope[old]
        else:
            self.scope[old] = before
        return out

    def stmt(self, s: Any) -> Any:
        """A statement, recursively."""
        if isinstance(s, n.LetStmt):
            value = self.expr(s.value)
            name = self.fresh(s.name)
            body = self.bind(s.name, name, value.type, s.body, self.stmt)
            return s if (name, value, body) == (s.name, s.value, s.body) else n.LetStmt(name, value, body)
        if isinstance(s, n.For):
            low, extent = self.expr(s.min), self.expr(s.extent)
            name = self.fresh(s.name)
            body = self.bind(s.name, name, low.type, s.body, self.stmt)
            same = (name, low, extent, body) == (s.name, s.min, s.extent, s.body)
            return s if same else n.For(name, low, extent, s.kind, s.partition, body)
        return s.map_children(lambda c: self.stmt(c) if isinstance(c, n.Stmt) else self.expr(c))


def uniquify(s: n.Stmt) -> n.Stmt:
    """`s` with every let and loop variable bound exactly once."""
    out: n.Stmt = _Uniquify().stmt(s)
    return out
