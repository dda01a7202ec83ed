"""Copies of statements with some variables replaced, in which every name is still bound once to one value.

Unrolling and loop partitioning need several copies of a loop body that differ in the loop variable. A name bound inside
to a value that depends on it must differ from copy to copy, or a memo keyed by name would mix them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir import nodes as n
from ..ir.traverse import N, Rec, nodes_of, rewrite

Binders = tuple[type[n.Node], ...]


def dependents(root: n.Node, names: Iterable[str], binders: Binders = (n.Let, n.LetStmt, n.For)) -> set[str]:
    """`names` and the names bound inside `root` to values that depend on them."""
    found = set(names)
    bits = n.symbol_bits(found)
    for binder in nodes_of(root, binders):
        values = (binder.min, binder.extent) if type(binder) is n.For else (binder.value,)
        if any(v.symbols & bits and mentions_any(v, found) for v in values):
            found.add(binder.name)
            bits |= n.symbol_bit(binder.name)
    return found


def mentions_any(root: n.Node, names: set[str]) -> bool:
    """Whether a Variable or Load of one of the names occurs."""
    return any(v.name in names for v in nodes_of(root, (n.Variable, n.Load)))


def copy_with(values: Mapping[str, n.Expr], root: N, suffix: str) -> N:
    """A copy of `root` with free Variables replaced by `values`; names bound inside to a value that this changes get `suffix`."""
    return _copy(values, dependents(root, values) - set(values), root, suffix)


def renamed_copy(root: N, suffix: str) -> N:
    """A copy of `root` to stand beside it: every name bound inside gets `suffix`."""
    return _copy({}, {binder.name for binder in nodes_of(root, (n.Let, n.LetStmt, n.For))}, root, suffix)


def _copy(values: Mapping[str, n.Expr], renamed: set[str], root: N, suffix: str) -> N:
    def variable(v: n.Variable, rec: Rec) -> n.Expr:
        if v.name in renamed:
            return n.Variable(v.type, v.name + suffix, v.param, v.rdom)
        return values.get(v.name, v)

    def fresh(name: str) -> str:
        return name + suffix if name in renamed else name

    def let(one: n.Let, rec: Rec) -> n.Expr:
        return n.Let(fresh(one.name), rec(one.value), rec(one.body))

    def let_stmt(one: n.LetStmt, rec: Rec) -> n.Stmt:
        return n.LetStmt(fresh(one.name), rec(one.value), rec(one.body))

    def loop(one: n.For, rec: Rec) -> n.Stmt:
        return n.For(fresh(one.name), rec(one.min), rec(one.extent), one.kind, one.partition, rec(one.body))

    return rewrite(root, {n.Variable: variable, n.Let: let, n.LetStmt: let_stmt, n.For: loop}, n.symbol_bits((*values, *renamed)))
