"""The translation unit: declarations, helpers, functions, entries."""

from __future__ import annotations

import itertools

from ..ir.intrinsics import ExternFunction
from ..ir.module import LoweredArgument, LoweredFunction, LoweredModule
from ..ir.traverse import deep_recursion
from .ctypes_of import c_identifier, memory_type, value_type
from .expressions import Emitter
from .machine import Machine
from .prelude import helpers
from .statements import StatementEmitter, measure


class Unit:
    """What the functions of one translation unit share: names in use and things to declare."""

    def __init__(self) -> None:
        self.helpers: set[str] = set()
        self.vectors: set[tuple[str, int]] = set()
        self.math: set[tuple[str, int]] = set()
        self.mask_width: dict[str, int] = {}
        self.functions: list[str] = []
        self.externs: dict[str, ExternFunction] = {}
        self._numbers = itertools.count()
        self._names: dict[str, int] = {}

    def count(self) -> int:
        """The next number of a temporary."""
        return next(self._numbers)

    def fresh(self, name: str) -> str:
        """`name`, with a number when it is taken."""
        seen = self._names.get(name, 0)
        self._names[name] = seen + 1
        return f"{name}_{seen}" if seen else name

    def declare(self, row: ExternFunction) -> None:
        """An extern function that is called."""
        if not row.builtin:
            self.externs[row.c_name] = row


_ELEMENT = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
            "f32": "float", "f64": "double"}


def _vector_types(vectors: set[tuple[str, int]]) -> str:
    """Value types fully aligned; the `u` ones, only ever behind a pointer, aligned as their elements and free to alias."""
    lines = []
    for short, count in sorted(vectors):
        size = int(short[1:]) // 8
        lines.append(f"typedef {_ELEMENT[short]} {short}x{count} __attribute__((vector_size({size * count})));")
        lines.append(f"typedef {_ELEMENT[short]} {short}x{count}u __attribute__((vector_size({size * count}), aligned({size}), may_alias));")
    return "\n".join(lines) + ("\n" if lines else "")


def _extern_text(row: ExternFunction) -> str:
    if row.source:
        return row.source
    args = ", ".join(memory_type(t) for t in row.args) or "void"
    declaration = f"{value_type(row.result)} {row.c_name}({args});"
    if row.address:
        return f"#define {row.c_name} (({value_type(row.result)} (*)({args})){row.address:#x}ull)"
    return f"#ifdef __cplusplus\nextern \"C\"\n#endif\n{declaration}"


def parameter(a: LoweredArgument) -> str:
    """One argument as a C parameter."""
    name = c_identifier(a.name)
    return f"struct halide_buffer_t *_{name}_buffer" if a.is_buffer() else f"{value_type(a.type)} {name}"


def signature(f: LoweredFunction) -> str:
    """`int name(...)`."""
    return f"int {f.name}({', '.join(parameter(a) for a in f.args) or 'void'})"


def _argv(f: LoweredFunction) -> str:
    values = []
    for i, a in enumerate(f.args):
        values.append(f"(struct halide_buffer_t *)args[{i}]" if a.is_buffer() else f"*(const {value_type(a.type)} *)args[{i}]")
    return f"int {f.name}_argv(void **args) {{\n    (void)args;\n    return {f.name}({', '.join(values)});\n}}\n"


def _function(f: LoweredFunction, machine: Machine, unit: Unit) -> str:
    em = Emitter(machine, unit)
    for a in f.args:
        name = c_identifier(a.name)
        if a.is_buffer():
            em.names[a.name + ".buffer"] = f"_{name}_buffer"
            unit.fresh(f"_{name}_buffer")
        else:
            em.names[a.name] = unit.fresh(name)
    em.element_bytes = measure(f.body)
    StatementEmitter(em).stmt(f.body)
    return "\n".join([f"/* pipeline {f.display_name or f.name} */", "HL_EXPORT " + signature(f) + " {", *em.lines, "    return 0;", "}", "HL_EXPORT " + _argv(f)])


def generate(module: LoweredModule, machine: Machine) -> str:
    """The C text of a module: self-contained but for `hl_runtime.h`. Each function gives `int NAME(args...)` and `int NAME_argv(void **)`."""
    unit = Unit()
    with deep_recursion():
        entries = [_function(f, machine, unit) for f in module.functions]
    externs = list(dict.fromkeys(_extern_text(row) for row in unit.externs.values()))
    head = ['#include "hl_runtime.h"', "#ifdef __cplusplus", '#define HL_EXPORT extern "C" __attribute__((visibility("default")))', "#else",
            '#define HL_EXPORT __attribute__((visibility("default")))', "#endif"]
    parts = ["\n".join(head), *externs, _vector_types(unit.vectors), helpers(unit.helpers), *unit.functions, *entries]
    return "\n".join(p for p in parts if p)
