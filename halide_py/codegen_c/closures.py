"""Parallel loops: the body becomes a function of its own, what it uses of its surroundings goes through a struct.

Before: `parallel (y, 0, h) { out[y * s + x] = ... }` inside f. After: `static int task_y(void *uc, int y, uint8_t *closure)` with the
body, and in f a struct filled with `out`, `s`, ... and a call of `halide_do_par_for`, whose failure f returns.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import nodes as n
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import Type
from .ctypes_of import c_identifier, memory_type, short_type, value_type
from .emitter import Emitter, Pieces
from .expressions import piece_sizes

Body = Callable[[Emitter, n.Stmt], None]


def parallel(em: Emitter, s: n.For, body: Body) -> None:
    """Write the task function and the call that runs it."""
    task = em.unit.fresh(f"task_{s.name}")
    low, extent = em.scalar(s.min), em.scalar(s.extent)
    inner = Emitter(em.unit, em.uses, "uc")
    inner.arguments, inner.writes, inner.expansions, inner.aliases = em.arguments, em.writes, em.expansions, dict(em.aliases)
    fields: list[tuple[str, str]] = []  # declaration, value
    unpack: list[str] = []
    _scalars_and_vectors(em, inner, s, fields, unpack)
    _pointers(em, inner, s, fields, unpack)
    index = inner.names[s.name] = em.unit.fresh(s.name)
    struct = f"struct {task}_closure"
    inner.lines += [f"    const {struct} *const c = (const {struct} *)closure;", *unpack] if fields else []
    inner.profile = em.profile
    if em.profile is not None:
        em.profile.mark(inner, em.profile.current)
    body(inner, s.body)
    declarations = [f"    {d};" for d, _ in fields] or ["    char unused;"]
    em.unit.functions.append("\n".join([f"{struct} {{", *declarations, "};", "",
                                        f"static int {task}(void *uc, int {index}, uint8_t *closure) {{ /* parallel {s.name} */", "    (void)uc; (void)closure;",
                                        *inner.prologue(), *inner.lines, "    return 0;", "}", ""]))
    closure, result = em.unit.fresh("captured"), em.unit.fresh("result")
    em.line(f"{struct} {closure} = {{{', '.join(v for _, v in fields) or '0'}}};")
    if em.profile is not None:  # while it waits for others, the thread works on nothing
        em.line(f"int {result};")
        em.open("{")
        em.profile.mark(em, None)
        em.line(f"{result} = halide_do_par_for({em.context}, {task}, {low}, {extent}, (uint8_t *)&{closure});")
        em.close()
    else:
        em.line(f"const int {result} = halide_do_par_for({em.context}, {task}, {low}, {extent}, (uint8_t *)&{closure});")
    em.line(f"if (HL_UNLIKELY({result})) return {result};")
    em.written(em.writes_of(s))


def _scalars_and_vectors(em: Emitter, inner: Emitter, s: n.For, fields: list[tuple[str, str]], unpack: list[str]) -> None:
    for name, v in free_variables(s.body).items():
        if name == s.name or name in em.aliases or name in em.pointers:
            continue
        if name in em.pieces:
            pieces = em.pieces[name]
            kind = f"i{pieces.bits}" if v.type.is_bool() else short_type(v.type)
            local = []
            for part, size in zip(pieces.names, piece_sizes(v.type.lanes(), pieces.width)):
                ctype = em.vector_type(kind, size) if size > 1 else value_type(v.type.element_of())
                local.append(_capture(em, part, ctype, part, fields, unpack))
            inner.pieces[name] = Pieces(pieces.width, pieces.bits, local)
            continue
        value = em.emit(v, 0, 1)
        if value.isidentifier():
            inner.names[name] = _capture(em, name, value_type(v.type), value, fields, unpack)
        else:
            inner.names[name] = value  # a constant


def _capture(em: Emitter, name: str, ctype: str, value: str, fields: list[tuple[str, str]], unpack: list[str]) -> str:
    """One field, and the local name that holds it in the task."""
    member, local = f"{c_identifier(name)}_{len(fields)}", em.unit.fresh(name)
    space = "" if ctype.endswith("*") else " "
    if ctype == "void *":
        value = f"(void *){value}"
    fields.append((f"{ctype}{space}{member}", value))
    unpack.append(f"    {ctype}const {local} = c->{member};" if not space else f"    const {ctype} {local} = c->{member};")
    return local


def _pointers(em: Emitter, inner: Emitter, s: n.For, fields: list[tuple[str, str]], unpack: list[str]) -> None:
    inside = {a.name for a in nodes_of(s.body, n.Allocate)}
    outside: dict[str, Type] = {}
    for access in nodes_of(s.body, (n.Load, n.Store)):
        if access.name not in inside:
            outside[access.name] = em.pointers.get(access.name) or (access.value if isinstance(access, n.Store) else access).type.element_of()
    for name, t in outside.items():
        member, local = f"{c_identifier(name)}_{len(fields)}", em.unit.fresh(name)
        ctype = memory_type(t)
        fields.append((f"{ctype} *{member}", f"({ctype} *){em.names[name]}"))
        unpack.append(f"    {ctype} *HL_RESTRICT const {local} = c->{member};")
        inner.names[name], inner.pointers[name] = local, t
