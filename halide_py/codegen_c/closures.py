"""Loops as functions of their own: the bodies of parallel loops, and all serial code, so that its pointers are parameters.

Before: `parallel (y, 0, h) { out[y * s + x] = ... }` inside f. After: `static int task_y(void *uc, int y, uint8_t *closure)`, which gives
what it finds in the closure (a struct) to `task_y_body`, and in f such a struct and a call of `halide_do_par_for`, whose failure f returns.
These functions may be compiled apart (`text.Task`). Pointers are restrict parameters because compilers believe `restrict` of parameters
only: without it, no load is moved out of a loop that stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import INT32, Type
from .ctypes_of import c_identifier, comment, memory_type, short_type, value_type
from .emitter import Emitter, Pieces
from .expressions import piece_sizes
from .text import Task

Body = Callable[[Emitter, n.Stmt], None]
_WORTH_A_FILE = 1300


class Captured(NamedTuple):
    """A value that a function takes from its surroundings."""

    parameter: str  # declaration
    field: str  # declaration in a closure
    member: str  # its name there
    value: str  # outside


def parallel(em: Emitter, s: n.For, body: Body) -> None:
    """Write the task function and the call that runs it."""
    low, extent = em.scalar(s.min), em.scalar(s.extent)
    _launch(em, s, body, lambda task, closure: f"halide_do_par_for({em.context}, {task}, {low}, {extent}, {closure})")


def fork(em: Emitter, s: n.Fork, body: Body) -> None:
    """Write one function of both tasks, and the call that runs them at the same time."""
    which = em.unit.fresh(f"side_of_{s.name}")
    first = n.EQ(n.Variable(INT32, which), b.i32(0))
    em.shared = em.shared.union(access.name for side in (s.first, s.rest) for access in nodes_of(side, n.Store))
    both = n.For(which, b.i32(0), b.i32(2), n.ForType.Parallel, n.Partition.Never, n.IfThenElse(first, s.first, s.rest))
    _launch(em, both, body, lambda task, closure: f"hl_fork({em.context}, {em.names[s.name]}, {task}, {closure})")


def _launch(em: Emitter, s: n.For, body: Body, run: Callable[[str, str], str]) -> None:
    task, before = em.unit.fresh(f"task_{s.name}"), len(em.unit.functions)
    index = em.unit.fresh(s.name)
    captured, signature, text = _function(em, s.body, body, f"{task}_body", (s.name, index))
    em.unit.functions.append(f"static {signature} {text}")
    struct = f"struct {task}_closure"
    fields = [f"    {one.field};" for one in captured] or ["    char unused;"]
    members = "".join(f", c->{one.member}" for one in captured)
    _task(em, before, "\n".join([f"{struct} {{", *fields, "};", "", ""]), f"int {task}(void *uc, int {index}, uint8_t "
                                                                          "*closure)", "\n".join([
        f"{{ /* parallel {comment(s.name)} */", f"    const {struct} *const c = (const {struct} *)closure;", "    (void)c;",
        f"    return {task}_body(uc, {index}{members});", "}", ""]))
    closure = em.unit.fresh("captured")
    em.line(f"{struct} {closure} = {{{', '.join(one.value for one in captured) or '0'}}};")
    call = run(task, f"(uint8_t *)&{closure}")
    if em.profile is None:
        _call(em, call, s)
        return
    em.open("{")  # while it waits for others, the thread works on nothing
    em.profile.mark(em, None)
    _call(em, call, s)
    em.close()


def serial(em: Emitter, s: n.Stmt, body: Body) -> None:
    """Write a function of a statement, and its call."""
    name, before = em.unit.fresh("loops"), len(em.unit.functions)
    captured, signature, text = _function(em, s, body, name, None)
    _task(em, before, "", signature, text)
    _call(em, f"{name}({', '.join([em.context, *(one.value for one in captured)])})", s)


def _task(em: Emitter, before: int, struct: str, signature: str, body: str) -> None:
    """Note a function; what was written since there were `before`, and is no task itself, is its own. Short ones stay where they are
    called."""
    since = em.unit.functions[before:]
    own = "".join(f"{text}\n" for text in since if isinstance(text, str))
    task = Task(signature, body, own, struct)
    alone: str | Task = task if struct or len(own) + len(body) > _WORTH_A_FILE else task.defined("static")
    em.unit.functions[before:] = [*(text for text in since if isinstance(text, Task)), alone]


def _call(em: Emitter, call: str, s: n.Stmt) -> None:
    result = em.unit.fresh("result")
    em.line(f"const int {result} = {call};")
    em.line(f"if (HL_UNLIKELY({result})) return {result};")
    em.written(em.writes_of(s))


def _function(em: Emitter, s: n.Stmt, body: Body, name: str, index: tuple[str, str] | None) -> tuple[list[Captured], str, str]:
    """What a function `name` of a statement captures, its signature and its body; `index`: the IR name and C name of the loop variable it
    is of."""
    inner = Emitter(em.unit, em.uses, "uc")
    inner.outlined, inner.profile, inner.shared = True, em.profile, em.shared
    inner.arguments, inner.writes, inner.expansions, inner.aliases = em.arguments, em.writes, em.expansions, dict(em.aliases)
    inner.sized = em.sized
    captured: list[Captured] = []
    if index:
        inner.names[index[0]] = index[1]
    _scalars_and_vectors(em, inner, s, captured)
    _pointers(em, inner, s, captured)
    if index and em.profile is not None:  # another thread
        em.profile.mark(inner, em.profile.current)
    body(inner, s)
    parameters = ["void *uc", *([f"int {index[1]}"] if index else []), *(one.parameter for one in captured)]
    text = "\n".join(["{", "    (void)uc;", *inner.prologue(), *inner.lines, "    return 0;", "}", ""])
    return captured, f"int {name}({', '.join(parameters)})", text


def _scalars_and_vectors(em: Emitter, inner: Emitter, s: n.Stmt, captured: list[Captured]) -> None:
    inside = {a.name for a in nodes_of(s, n.Allocate)}  # as a variable it is the pointer
    for name, v in free_variables(s).items():
        if name in inner.names or name in em.aliases or name in em.pointers or name in inside:
            continue
        if name in em.pieces:
            pieces = em.pieces[name]
            kind = f"i{pieces.bits}" if v.type.is_bool() else short_type(v.type)
            local = []
            for part, size in zip(pieces.names, piece_sizes(v.type.lanes(), pieces.width)):
                ctype = em.vector_type(kind, size) if size > 1 else value_type(v.type.element_of())
                local.append(_capture(em, part, ctype, part, captured))
            inner.pieces[name] = Pieces(pieces.width, pieces.bits, local)
            continue
        value = em.emit(v, 0, 1)
        if value.isidentifier():
            inner.names[name] = _capture(em, name, value_type(v.type), value, captured)
        else:
            inner.names[name] = value  # a constant


def _capture(em: Emitter, name: str, ctype: str, value: str, captured: list[Captured]) -> str:
    """One value; gives the name it has inside."""
    member, local = f"{c_identifier(name)}_{len(captured)}", em.unit.fresh(name)
    pointer = ctype.endswith("*")
    if ctype == "void *":
        value = f"(void *){value}"
    captured.append(
        Captured(
            f"{ctype}const {local}" if pointer else f"const {ctype} {local}", f"{ctype}{'' if pointer else ' '}{member}", member, value
        )
    )
    return local


def _pointers(em: Emitter, inner: Emitter, s: n.Stmt, captured: list[Captured]) -> None:
    inside = {a.name for a in nodes_of(s, n.Allocate)}
    outside: dict[str, Type] = {}
    for access in nodes_of(s, (n.Load, n.Store)):
        if access.name not in inside:
            outside[access.name] = (
                em.pointers.get(access.name) or (access.value if isinstance(access, n.Store) else access).type.element_of()
            )
    for name, v in free_variables(s).items():
        if v.type.is_handle() and name in em.pointers and name not in inside:
            outside.setdefault(name, em.pointers[name])
    for name, t in outside.items():
        member, local = f"{c_identifier(name)}_{len(captured)}", em.unit.fresh(name)
        ctype = memory_type(t)
        own = "" if name in em.shared else "HL_RESTRICT "
        captured.append(Captured(f"{ctype} *{own}const {local}", f"{ctype} *{member}", member, f"({ctype} *){em.names[name]}"))
        inner.names[name], inner.pointers[name] = local, t
