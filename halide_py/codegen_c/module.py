"""The translation unit: declarations, helpers, functions, entries."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction
from ..ir.module import USER_CONTEXT, LinkageType, LoweredArgument, LoweredFunction, LoweredModule
from ..ir.traverse import deep_recursion, nodes_of
from ..ir.types import Type
from . import calls, casts, debugging, expressions, lanes, memory, products, reductions, statements
from .ctypes_of import c_identifier, is_half, memory_type
from .emitter import Emitter, count_uses
from .machine import Machine
from .prelude import helpers
from .profiling import Profile
from .sources import source_texts
from .text import Text
from .unit import Unit

HANDLER_MODULES = (calls, casts, expressions, lanes, memory, products, reductions)  # imported for the forms they register

_HEAD = """#include "hl_runtime.h"
#include "hl_vector.h"
"""
_STRICT = """/* strict_float is used: products and sums are not contracted. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
"""


def _extern_texts(unit: Unit) -> list[str]:
    """The user's functions: sources and declarations."""
    rows = list(unit.externs.values())
    sources = [source_texts([r for r in rows if r.source], unit.sources)] if unit.sources else []
    return [*sources, *dict.fromkeys(_declaration_text(r) for r in rows if not r.source)]


def _declaration_text(row: ExternFunction) -> str:
    """The declaration of a function whose code is elsewhere."""
    args = ", ".join(_public_type(t) for t in row.args) or "void"
    result = "void" if row.result.bits() == 0 else _public_type(row.result)
    if row.address:
        return f"static {result} (*const {row.c_name})({args}) = ({result} (*)({args})){row.address:#x}ull;"
    return f"HL_EXTERN_C {row.prototype.rstrip(';') if row.prototype else f'{result} {row.c_name}({args})'};"


def _public_type(t: Type) -> str:
    """A scalar type as users write it."""
    return "HL_BOOL" if t.is_bool() else memory_type(t)


def parameter(a: LoweredArgument) -> str:
    """One argument as a C parameter."""
    name = c_identifier(a.shown)
    if a.is_buffer():
        return f"struct halide_buffer_t *_{name}_buffer"
    if a.name == USER_CONTEXT:
        return f"void *{USER_CONTEXT}"
    t = "HL_BOOL" if a.type.is_bool() else memory_type(a.type)
    return f"{t}{'' if t.endswith('*') else ' '}{name}"


def public_parameter(a: LoweredArgument) -> str:
    """One argument as callers see it: their context is not ours to change."""
    return f"void const *{USER_CONTEXT}" if a.name == USER_CONTEXT else parameter(a)


def signature(f: LoweredFunction) -> str:
    """`int name(...)` as callers see it."""
    return f"int {f.simple}({', '.join(public_parameter(a) for a in f.args) or 'void'})"


def in_namespaces(f: LoweredFunction, text: str) -> str:
    """Declarations or definitions of a function's entries, where its namespaces are."""
    names = f.namespaces or ()
    return "".join(f"namespace {n} {{\n" for n in names) + text + "".join(f"}} // namespace {n}\n" for n in reversed(names))


def export(f: LoweredFunction) -> str:
    """How what callers see is marked: with C linkage, or that of C++."""
    return "HL_EXPORT" if f.namespaces is None else "HL_EXPORT_ATTRIBUTE"


def declaration(f: LoweredFunction) -> str:
    """The declaration of a function for C and C++ files that call it."""
    return in_namespaces(f, f"{'' if f.namespaces is not None else 'HL_EXTERN_C '}{signature(f)};\n")


def argument_name(a: LoweredArgument) -> str:
    """The C name of a parameter."""
    return a.name if a.name == USER_CONTEXT else f"_{c_identifier(a.shown)}_buffer" if a.is_buffer() else c_identifier(a.shown)


def _argv(f: LoweredFunction, needs: Sequence[str], name: str) -> str:
    values = []
    for i, a in enumerate(f.args):
        t = "void *" if a.type.is_handle() else "uint8_t" if a.type.is_bool() else memory_type(a.type)
        if a.is_buffer():
            values.append(f"(struct halide_buffer_t *)args[{i}]")
        else:
            values.append(f"*({t}{'' if t.endswith('*') else ' '}const *)args[{i}]" + (" != 0" if a.type.is_bool() else ""))
    return (f"{export(f)} int {name}(void **args) {{\n    (void)args;\n{_cpu_check(f, needs, values)}    return "
            f"{f.name}_body({', '.join(values)});\n}}\n")


def _cpu_check(f: LoweredFunction, needs: Sequence[str], values: Sequence[str]) -> str:
    """Leave with an error on a processor without the instructions that the code uses."""
    if not needs:
        return ""
    context = values[0] if f.args and f.args[0].name == USER_CONTEXT else "HL_NULL"
    return f'    if (HL_UNLIKELY(!{processor_has(needs)})) return hl_error_wrong_cpu({context}, "{f.qualified}", "{" ".join(needs)}");\n'


def processor_has(needs: Sequence[str]) -> str:
    """C text that is true on a processor with these instruction sets."""
    return f"hl_processor_has({' | '.join('1u << hl_has_' + name.replace('.', '_') for name in needs) or '0'})"


def exports(f: LoweredFunction, needs: Sequence[str] = ()) -> str:
    """The functions that callers see, `NAME` and `NAME_argv`; both call `NAME_body`. `needs`: instruction sets the processor has to
    have."""
    passed = [f"(void *){USER_CONTEXT}" if a.name == USER_CONTEXT else argument_name(a) for a in f.args]
    entry = f"{export(f)} {signature(f)} {{\n{_cpu_check(f, needs, passed)}    return {f.name}_body({', '.join(passed)});\n}}\n\n"
    return in_namespaces(f, entry + (_argv(f, needs, f"{f.simple}_argv") if f.has_argv else ""))


def _function(f: LoweredFunction, unit: Unit, needs: Sequence[str], only_entry: str) -> str:
    context = USER_CONTEXT if any(a.name == USER_CONTEXT for a in f.args) else "HL_NULL"
    em = Emitter(unit, count_uses(f.body), context)
    em.arguments = {a.name: a for a in f.args if a.is_buffer()}
    for a in f.args:
        name = argument_name(a)
        unit.fresh(name)
        em.names[a.name + ".buffer" if a.is_buffer() else a.name] = name
        if is_half(a.type) and not a.is_buffer():
            em.names[a.name] = em.name("float", memory.from_memory(em, a.type, name), name)
    if f.profiled:
        em.profile = Profile(f, em)
    if f.debugged:
        debugging.entering(em, f)
    _unbound_pointers(em, f)
    statements.body(em, f.body)
    if f.debugged:
        debugging.leaving(em, f)
    parameters = ", ".join(parameter(a) for a in f.args) or "void"
    head = [f"/* pipeline {f.display_name or f.name} */", f"static __attribute__((noinline)) int {f.name}_body({parameters}) {{"]
    shown = _argv(f, needs, only_entry) if only_entry else exports(f, needs) if f.linkage is not LinkageType.Internal else ""
    return "\n".join([*head, *em.prologue(), *em.lines, "    return 0;", "}", "", shown])


def _unbound_pointers(em: Emitter, f: LoweredFunction) -> None:
    """Host pointers that the body uses without reading them from the buffer first."""
    bound = {s.name for s in nodes_of(f.body, n.LetStmt)} | {s.name for s in nodes_of(f.body, n.Allocate)}
    used = {access.name for access in nodes_of(f.body, (n.Load, n.Store))} - bound
    for name in sorted(used & set(em.arguments)):
        t = em.arguments[name].type
        local = em.unit.fresh(name)
        em.line(f"{memory_type(t)} *HL_RESTRICT const {local} = ({memory_type(t)} *){em.names[name + '.buffer']}->host;")
        em.names[name], em.pointers[name] = local, t


def text_of(module: LoweredModule, machine: Machine, needs: Sequence[str] = (), only_entry: str = "") -> Text:
    """The C text of a module, valid GNU C11 and C++; compile with -fwrapv. It includes `hl_runtime.h`, `hl_vector.h` and, for math,
    `hl_math.h`.

    Each function gives `int NAME(args...)` (buffers as `struct halide_buffer_t *`, scalars by value) and `int NAME_argv(void **args)`,
    which refuse to run on a processor that lacks one of the instruction sets in `needs`; or, of a module of one function, `only_entry(void
    **args)`.
    """
    unit = Unit(machine)
    for f in module.functions:
        unit.strict |= f.strict
        unit.fresh(f.name)
        for call in nodes_of(f.body, n.Call):
            if isinstance(call.func, ExternFunction) and not call.func.builtin:
                unit.names[call.func.c_name] = 1
    with deep_recursion():
        entries = [_function(f, unit, needs, only_entry) for f in module.functions]
    externs = _extern_texts(unit)
    math = ['#include "hl_math.h"', *unit.math] if unit.math else []
    parts = [_STRICT if unit.strict else "", _HEAD, *externs, unit.vector_types(), "\n".join(math), helpers(unit.helpers),
             "\n".join(unit.vector_helpers.values())]
    apart = not unit.sources and not any(f.profiled for f in module.functions)
    return Text("\n".join(p.rstrip("\n") + "\n" for p in parts if p), tuple(unit.functions), "\n".join(entries), apart)


def generate(module: LoweredModule, machine: Machine, needs: Sequence[str] = ()) -> str:
    """The C text of a module as one file; see `text_of`."""
    return text_of(module, machine, needs).whole()
