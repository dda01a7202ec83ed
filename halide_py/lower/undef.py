"""Stores of undefined values disappear.

Before: `f(x) = undef`, `f(x) = select(x < 3, x, undef)`. After: nothing, `if (x < 3) f(x) = x`.

An operation on an undefined value is undefined; the choice of a Select between a value and undef becomes a guard. Elements of a
tuple that are never defined stay as undef until tuples are split into stores, which leaves theirs out, and so does an element that keeps
its value, as all but one do in `f[x][1] = select(x < 3, x, undef)`; the others must be defined under the same condition, as one store
writes them all. Behaviour: Halide's RemoveUndef.cpp.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.traverse import Rec, rewrite

_UNDEF = n.symbol_bit("undef")


def is_undef(e: n.Expr) -> bool:
    """Whether `e` is no value at all."""
    return isinstance(e, n.Call) and e.name == "undef"


Defined = tuple[n.Expr, n.Expr]


def _defined(e: n.Expr, known: dict[n.Expr, Defined]) -> Defined:
    """(`e` without undef, the condition under which it is defined), once for each shared expression."""
    if not e.symbols & _UNDEF:
        return e, b.TRUE
    found = known.get(e)
    if found is None:
        found = known[e] = _found(e, known)
    return found


def _found(e: n.Expr, known: dict[n.Expr, Defined]) -> Defined:
    if is_undef(e):
        return b.const(e.type, 0), b.FALSE
    if isinstance(e, n.Select) or (isinstance(e, n.Call) and e.name == "if_then_else" and len(e.args) == 3):
        (c, have_c), (x, have_x), (y, have_y) = (_defined(k, known) for k in e.children())
        if b.is_false(have_x) and not b.is_false(have_y):
            return y, b.all_of((have_c, b.not_(c), have_y))
        if b.is_false(have_y) and not b.is_false(have_x):
            return x, b.all_of((have_c, c, have_x))
        chosen = have_x if have_x is have_y else b.or_(b.and_(c, have_x), b.and_(b.not_(c), have_y))
        value: n.Expr = n.Select(c, x, y) if isinstance(e, n.Select) else n.Call(e.type, e.name, (c, x, y), e.call_type)
        return value, b.and_(have_c, chosen)
    if isinstance(e, n.Let):
        (value, have_value), (body, have_body) = _defined(e.value, known), _defined(e.body, known)
        if not b.is_true(have_body):
            have_body = n.Let(e.name, value, have_body)
        return n.Let(e.name, value, body), b.and_(have_value, have_body)
    condition: n.Expr = b.TRUE

    def child(c: n.Expr) -> n.Expr:
        nonlocal condition
        new, have = _defined(c, known)
        condition = b.and_(condition, have)
        return new

    return e.map_children(child), condition


def _is_kept(e: n.Expr, i: int, p: n.Provide) -> bool:
    """Whether `e` is what element `i` of the tuple has already where `p` stores it."""
    return len(p.values) > 1 and isinstance(e, n.Call) and (e.name, e.value_index, e.args) == (p.name, i, p.args) and e.func is None


def remove_undef(stmt: n.Stmt) -> n.Stmt:
    """`stmt` without undef, but as one of a tuple's values; CompileError where others are defined under different conditions."""

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        known: dict[n.Expr, Defined] = {}
        values = [(v, b.FALSE) if _is_kept(v, i, p) else _defined(v, known) for i, v in enumerate(p.values)]
        args = [_defined(a, known) for a in p.args]
        conditions = list(dict.fromkeys(have for _, have in values if not b.is_false(have)))
        if not conditions:
            return b.NOTHING
        if len(conditions) > 1:
            shown = " and ".join(to_text(c) for c in conditions)
            raise CompileError(f"The elements of the tuple stored to Func {p.name} are defined under different conditions, {shown}; use "
                               "undef for all of them or none, under one condition", p.name)
        stored = (intrinsic("undef", v.type) if b.is_false(have) else v for v, have in values)
        new = n.Provide(p.name, tuple(stored), tuple(a for a, _ in args), p.predicate)
        return b.if_(b.all_of((conditions[0], *(have for _, have in args))), new)

    return rewrite(stmt, {n.Provide: provide}, _UNDEF)
