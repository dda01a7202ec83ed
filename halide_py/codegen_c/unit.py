"""What the functions of one translation unit share: names in use, and what must be printed in front of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ..ir.float_ranges import FloatRanges
from ..ir.intrinsics import ExternFunction
from .ctypes_of import c_identifier
from .machine import Machine
from .sources import space
from .text import Task

_ELEMENT = {
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f32": "float",
    "f64": "double",
    "c8": "char",
    "q64": "long long",
}
_INLINE = "static inline __attribute__((always_inline, unused))"


@dataclass
class Unit:
    """One translation unit."""

    machine: Machine
    helpers: set[str] = field(default_factory=set)
    vectors: set[tuple[str, int]] = field(default_factory=set)
    vector_helpers: dict[str, str] = field(default_factory=dict)
    math: dict[str, None] = field(default_factory=dict)
    externs: dict[str, ExternFunction] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # the namespace of each C text of the user's
    functions: list[str | Task] = field(default_factory=list)
    strict: bool = False
    float_ranges: FloatRanges = field(default_factory=FloatRanges)
    names: dict[str, int] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, base: str) -> str:
        """A C name that nothing else in the unit has."""
        name = c_identifier(base)
        while True:
            seen = self.names.get(name, 0)
            self.names[name] = seen + 1
            if not seen:
                return name
            name = f"{name}_{seen}"

    def temporary(self) -> str:
        """The next t0, t1, ...; user names never look so, as `fresh` knows them."""
        return self.fresh(f"t{next(self.numbers)}")

    def helper(self, name: str) -> str:
        """A helper of the prelude, to be printed."""
        self.helpers.add(name)
        return name

    def extern(self, row: ExternFunction) -> str:
        """How calls spell a function of the user's."""
        self.externs[row.c_name] = row
        if not row.source:
            return row.c_name
        return f"HL_IN({self.sources.setdefault(row.source, space(len(self.sources)))}, {row.c_name})"

    def vector(self, short: str, count: int, unaligned: bool = False) -> str:
        """The name of a vector type: `u16x16`, or `u16x16u` for unaligned access to memory."""
        self.vectors.add((short, count))
        return f"{short}x{count}" + ("u" if unaligned else "")

    def vector_helper(self, name: str, result: str, parameters: str, body: str) -> str:
        """An always inlined one-line function of vectors; gives its name."""
        self.vector_helpers.setdefault(name, f"{_INLINE} {result} {name}({parameters}) {{ {body} }}")
        return name

    def vector_types(self) -> str:
        """Value types are fully aligned; the `u` ones, only ever behind a pointer, are aligned as their elements and may alias anything."""
        lines = []
        for short, count in sorted(self.vectors):
            size = int(short[1:]) // 8
            lines.append(f"typedef {_ELEMENT[short]} {short}x{count} __attribute__((vector_size({size * count})));")
            lines.append(f"typedef {short}x{count} {short}x{count}u __attribute__((aligned({size}), may_alias));")
        return "\n".join(lines)
