"""Atomic updates: one element by the machine's atomic operations, several that depend on each other under a lock.

    atomic h { h[i] = h[i] + e }                     __atomic_fetch_add(&h[i], e, ...), for integers
    atomic h { h[i] = value of h[i] }                the value is computed from what was read, and stored if that is still there; else again
    atomic h { h.0[i] = ..h.1[i]..; h.1[i] = .. }    under the lock that belongs to the address of h.0[i]

Nothing is ordered beyond the one element: who reads the results waits for the loop to end.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import Rec, mentions, nodes_of, rewrite, substitute
from . import addresses, memory
from .ctypes_of import memory_type
from .emitter import Emitter

_RELAXED = "__ATOMIC_RELAXED"
_FETCH: dict[type[n.Expr], str] = {n.Add: "add", n.Sub: "sub"}
_FETCH_CALLS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


def atomic(em: Emitter, s: n.Atomic, stmt: Callable[[Emitter, n.Stmt], None]) -> None:
    """An atomic update."""
    if isinstance(s.body, n.Store) and s.body.value.type.is_scalar():
        guarded = not b.is_true(s.body.predicate)
        em.open(f"if ({em.scalar(s.body.predicate)}) {{" if guarded else "{")
        _one(em, s.body)
    else:
        em.open("{")
        held = em.unit.fresh("held")
        em.unit.helper("hl_lock")
        em.line(f"HL_LOCK char *const {held} = hl_lock_of({_place(em, _first(s.body))});")
        stmt(em, s.body)
    em.close()


def _place(em: Emitter, s: n.Store) -> str:
    return f"&{addresses.element(em, s.name, s.value.type.element_of(), s.index)}"


def _first(body: n.Stmt) -> n.Store:
    """The first store, its index in terms of what is known outside."""
    lets: dict[str, n.Expr] = {}
    store: n.Store = next(nodes_of(body, n.Store))
    for let in nodes_of(body, n.LetStmt):
        lets[let.name] = substitute(lets, let.value)
    return n.Store(store.name, store.value, substitute(lets, store.index), store.predicate, store.param)


def _one(em: Emitter, s: n.Store) -> None:
    """One element."""
    t = s.value.type
    ctype = memory_type(t)
    at = em.unit.fresh("at")
    em.line(f"{ctype} *const {at} = {_place(em, s)};")
    em.written(n.symbol_bit(s.name))
    fetch = _fetch(s)
    if fetch is not None:
        em.line(f"__atomic_fetch_{fetch[0]}({at}, ({ctype}){em.scalar(fetch[1])}, {_RELAXED});")
        return
    new = em.unit.fresh("desired")
    if not mentions(s.value, s.name):
        em.line(f"{ctype} {new} = {memory.to_memory(em, t, em.scalar(s.value))};")
        em.line(f"__atomic_store({at}, &{new}, {_RELAXED});")
        return
    old = em.unit.fresh("expected")
    seen = n.Variable(t, old)
    em.names[old] = memory.from_memory(em, t, old)
    em.line(f"{ctype} {old}, {new};")
    em.line(f"__atomic_load({at}, &{old}, {_RELAXED});")
    em.open("do {")

    def load(e: n.Load, rec: Rec) -> n.Expr:
        return seen if e.name == s.name and e.index is s.index else e.map_children(rec)

    value = rewrite(s.value, {n.Load: load})
    em.note_uses(value, ())
    em.line(f"{new} = {memory.to_memory(em, t, em.scalar(value))};")
    em.close(f"}} while (!__atomic_compare_exchange({at}, &{old}, &{new}, 1, {_RELAXED}, {_RELAXED}));")


def _fetch(s: n.Store) -> tuple[str, n.Expr] | None:
    """(operation, operand) of an integer update that the machine has an instruction for."""
    e, t = s.value, s.value.type
    if not t.is_int_or_uint() or t.is_bool():
        return None
    word = _FETCH_CALLS.get(e.name) if isinstance(e, n.Call) and e.call_type is n.CallType.PureIntrinsic else _FETCH.get(type(e))
    if word is None:
        return None
    x, y = e.children()
    pairs = ((x, y),) if word == "sub" else ((x, y), (y, x))
    for own, operand in pairs:
        if isinstance(own, n.Load) and own.name == s.name and own.index is s.index and not mentions(operand, s.name):
            return word, operand
    return None
