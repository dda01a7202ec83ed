"""One Func, realization and store per tuple element: `f` of two values becomes `f.0` and `f.1`.

Before: `Realize f (t0, t1)`, `Provide f (v0, v1) args`, `Call f args #1`.
After: `Realize f.0 (t0)` around `Realize f.1 (t1)`, `Provide f.0 (v0) args` and `Provide f.1 (v1) args`, `Call f.1 args`.

All values of a Provide are evaluated before any is stored: a value that reads what an earlier store of the same Provide
may have changed is bound to a name first, and so are coordinates that read it. Values that are undef are not stored. Single
values pass through untouched.
Behaviour: Halide's SplitTuples.cpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.traverse import Rec, nodes_of, rewrite
from .atomics import LANES, separate
from .undef import is_undef


def element_functions(functions: Mapping[str, Function]) -> dict[str, tuple[Function, int]]:
    """The Function and element index behind each name that a Realize, Provide or Call has once tuples are split."""
    return {f.buffer_name(i): (f, i) for f in functions.values() for i in range(len(f.types))}


def _is_read_by(names: Iterable[str], roots: tuple[n.Expr, ...]) -> bool:
    wanted = set(names)
    return any(c.name in wanted and c.call_type is n.CallType.Halide for c in nodes_of(roots, n.Call))


def split_tuples(stmt: n.Stmt, functions: Mapping[str, Function]) -> n.Stmt:
    """Rewrite every realization, store and call of a Func with several values. `functions` maps names to Functions."""
    tuples = {f.name: len(f.types) for f in functions.values() if len(f.types) > 1}
    if not tuples:
        return stmt
    count = itertools.count()
    bits = n.symbol_bits(tuples)

    def call(c: n.Call, rec: Rec) -> n.Expr:
        args = tuple(rec(a) for a in c.args)
        if c.call_type is n.CallType.Halide and c.name in tuples:
            return n.Call(c.type, f"{c.name}.{c.value_index}", args, c.call_type, c.func, 0, c.param)
        return c if all(x is y for x, y in zip(args, c.args)) else n.Call(c.type, c.name, args, c.call_type, c.func, c.value_index, c.param)

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        values, args, predicate = tuple(map(rec, p.values)), tuple(map(rec, p.args)), rec(p.predicate)
        if p.name not in tuples:
            return n.Provide(p.name, values, args, predicate)
        names = [f"{p.name}.{i}" for i in range(len(values))]
        bindings: list[tuple[str, n.Expr]] = []

        def bind(e: n.Expr, stored_before: list[str]) -> n.Expr:
            if not _is_read_by(stored_before, (e,)):
                return e
            bindings.append((f"{p.name}.value{next(count)}", e))
            return n.Variable(e.type, bindings[-1][0])

        args = tuple(bind(a, names[:-1]) for a in args)
        predicate = bind(predicate, names[:-1])
        values = tuple(bind(v, names[:i]) for i, v in enumerate(values))
        stores = [n.Provide(name, (value,), args, predicate) for name, value in zip(names, values) if not is_undef(value)]
        return b.let_stmts(bindings, b.block(stores))

    def realize(r: n.Realize, rec: Rec) -> n.Stmt:
        mins, extents, condition = tuple(map(rec, r.mins)), tuple(map(rec, r.extents)), rec(r.condition)
        body: n.Stmt = rec(r.body)
        if r.name not in tuples:
            return n.Realize(r.name, r.types, r.memory, mins, extents, condition, body)
        for i in reversed(range(len(r.types))):
            body = n.Realize(f"{r.name}.{i}", (r.types[i],), r.memory, mins, extents, condition, body)
        return body

    def atomic(a: n.Atomic, rec: Rec) -> n.Stmt:
        body = rec(a.body)
        parts = separate(body)
        return n.Atomic(a.name, body) if parts is None else b.block(parts if a.name == LANES else [n.Atomic(a.name, p) for p in parts])

    return rewrite(stmt, {n.Call: call, n.Provide: provide, n.Realize: realize, n.Atomic: atomic}, bits)
