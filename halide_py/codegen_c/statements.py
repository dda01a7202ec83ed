"""Statements as C: loops, lets, allocations, stores, checks, closures of parallel loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import PLACES
from ..ir.traverse import nodes_of
from ..ir.types import Type
from . import allocations, atomics, closures, memory, stores
from .ctypes_of import comment, memory_type
from .emitter import Emitter
from .expressions import bind


def stmt(em: Emitter, s: n.Stmt) -> None:
    """Any statement. The outermost ones that compute become functions of their own."""
    if not em.outlined and isinstance(s, (n.Produce, n.Allocate, n.For)) and _stores(s):
        closures.serial(em, s, body)
        return
    handler = _HANDLERS.get(type(s))
    if handler is None:
        raise InternalError(f"code generation has no form for the statement {type(s).__name__}; please report this with the program")
    handler(em, s)


def body(em: Emitter, s: n.Stmt) -> None:
    """Straight-line code up to the loops in it: its strided loads are grouped first."""
    outer = em.strided, em.columns
    em.strided, em.columns = {}, {}
    memory.note_strided_loads(em, _loads(s), {x.name for x in nodes_of(s, n.Store)})
    stmt(em, s)
    em.strided, em.columns = outer


def _stores(s: n.Stmt) -> bool:
    """Whether a statement stores something outside of parallel loops."""
    if not s.mask & n.Store.bit:
        return False
    return isinstance(s, n.Store) or not (isinstance(s, n.For) and s.kind is n.ForType.Parallel) and any(
        _stores(child) for child in s.children() if isinstance(child, n.Stmt))


def _loads(s: n.Stmt) -> Iterator[n.Load]:
    """The loads that straight-line code makes for certain."""
    stack: list[n.Node] = [s]
    seen: set[n.Node] = set()
    while stack:
        one = stack.pop()
        if not one.mask & n.Load.bit or one in seen or isinstance(one, n.IfThenElse):
            continue
        seen.add(one)
        if isinstance(one, n.For) or isinstance(one, n.Call) and one.name in PLACES:
            continue
        if isinstance(one, n.Call) and one.name in ("if_then_else", "require"):
            stack.append(one.args[0])
            continue
        if isinstance(one, n.Load):
            yield one
        stack.extend(one.children()[::-1])


def _block(em: Emitter, s: n.Block) -> None:
    several = em.outlined and not em.loops and sum(isinstance(one, (n.For, n.Produce, n.Allocate)) for one in s.stmts) > 1
    i = 0
    while i < len(s.stmts):
        if several and _may_be_apart(em, s.stmts[i]):
            closures.serial(em, s.stmts[i], body)
            i += 1
            continue
        together = stores.group(em, s.stmts[i:])
        if not together:
            stmt(em, s.stmts[i])
        i += max(together, 1)


def _may_be_apart(em: Emitter, s: n.Stmt) -> bool:
    """Whether loops may be a function of their own, compiled beside others: not with arrays that should live in registers, whose places
    are constants."""
    if not isinstance(s, (n.For, n.Produce)) or not s.mask & n.For.bit or not _stores(s):
        return False
    arrays = em.arrays - {a.name for a in nodes_of(s, n.Allocate)}
    return not any(access.name in arrays and not access.index.mask & n.Variable.bit for access in nodes_of(s, (n.Load, n.Store)))


def _let(em: Emitter, s: n.LetStmt) -> None:
    """The name stays in the enclosing C block; it is unique."""
    em.scopes.append([])
    while True:
        if s.value.type.is_handle() and s.name in em.arguments:
            _host_pointer(em, s)
        else:
            bind(em, s.name, s.value)
        inner = s.body
        if not isinstance(inner, n.LetStmt):
            break
        s = inner
    stmt(em, inner)
    em.forget_scope()


def _host_pointer(em: Emitter, s: n.LetStmt) -> None:
    """The data of a buffer argument: nothing else points there."""
    t = em.arguments[s.name].type
    name = em.unit.fresh(s.name)
    em.line(f"{memory_type(t)} *HL_RESTRICT const {name} = ({memory_type(t)} *){em.scalar(s.value)};")
    em.bound(s.name)
    em.names[s.name], em.pointers[s.name] = name, t


def _assert(em: Emitter, s: n.Assert) -> None:
    condition = s.condition
    text = em.scalar(condition.a) if isinstance(condition, n.Not) else f"!{em.scalar(condition)}"
    em.open(f"if (HL_UNLIKELY({text})) {{")
    em.line(f"return {em.scalar(s.message)};")
    em.close()


def _produce(em: Emitter, s: n.Produce) -> None:
    em.line(f"/* {comment(s.name)} */")
    if em.profile is None:
        stmt(em, s.body)
        return
    em.open("{")
    with em.profile.working_on(em, s.name):
        stmt(em, s.body)
    em.close()


def _for(em: Emitter, s: n.For) -> None:
    if s.kind is n.ForType.Parallel:
        closures.parallel(em, s, body)
        return
    if s.kind is not n.ForType.Serial:
        raise InternalError(f"loop {s.name} is still {s.kind.value}; please report this with the program")
    low, extent = em.scalar(s.min), b.as_int(s.extent)
    if b.as_int(s.min) is None:
        low = em.named("int32_t", low)
    end = b.add(s.min, s.extent)
    em.note_uses(end, (s.min, s.extent))
    bound = em.named("int32_t", em.scalar(end))
    em.written(em.writes_of(s))
    name = em.names[s.name] = em.unit.fresh(s.name)
    with em.loop(s.name):
        if extent is not None and 1 < extent <= 8 and _is_small(s.body):
            em.line(f"#pragma GCC unroll {extent}")
        em.open(f"for (int32_t {name} = {low}; {name} < {bound}; {name}++) {{ /* {comment(s.name)} */")
        body(em, s.body)
        em.close()


def _fork(em: Emitter, s: n.Fork) -> None:
    closures.fork(em, s, body)


def _is_small(s: n.Stmt) -> bool:
    """A loop over vectors in a small array: unrolled, the array lives in registers."""
    stores = [x.index.type.is_vector() for x in nodes_of(s, n.Store)]
    return not s.mask & n.For.bit and not s.mask & n.Allocate.bit and any(stores) and len(stores) <= 8


def _atomic(em: Emitter, s: n.Atomic) -> None:
    atomics.atomic(em, s, stmt)


def _store(em: Emitter, s: n.Store) -> None:
    stores.store(em, s)


def _allocate(em: Emitter, s: n.Allocate) -> None:
    em.open("{")
    name = allocations.declare(em, s)
    em.bound(s.name)
    before = em.names.get(s.name), em.pointers.get(s.name)
    em.names[s.name], em.pointers[s.name] = name, s.type
    stmt(em, s.body)
    em.close()
    if before[0] is not None and before[1] is not None:
        em.names[s.name], em.pointers[s.name] = before[0], before[1]


def _if(em: Emitter, s: n.IfThenElse) -> None:
    em.open(f"if ({em.scalar(s.condition)}) {{")
    body(em, s.then_case)
    em.close("}" if s.else_case is None else "} else {")
    if s.else_case is not None:
        em.reopen()
        if em.loops and isinstance(s.else_case, n.For) and _may_be_apart(em, s.else_case):
            closures.serial(em, s.else_case, body)  # at a boundary: the steady state comes first, see lower/partition_loops.py
        else:
            body(em, s.else_case)
        em.close()


def _evaluate(em: Emitter, s: n.Evaluate) -> None:
    if b.as_const(s.value) is not None:
        return
    t: Type = s.value.type
    if t.is_scalar():
        em.discard(em.scalar(s.value))
        return
    for start, count in em.slices(t, 32 if t.is_bool() else 0):
        em.discard(em.mask(s.value, start, count, 32) if t.is_bool() and count > 1 else em.emit(s.value, start, count))


_HANDLERS: dict[type[n.Stmt], Callable[[Emitter, Any], None]] = {
    n.Block: _block,
    n.LetStmt: _let,
    n.Assert: _assert,
    n.Produce: _produce,
    n.For: _for,
    n.Store: _store,
    n.Allocate: _allocate,
    n.IfThenElse: _if,
    n.Evaluate: _evaluate,
    n.Atomic: _atomic,
    n.Fork: _fork,
}
