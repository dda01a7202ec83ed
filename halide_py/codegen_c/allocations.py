"""Memory of Funcs: constant sizes of moderate extent on the stack; the rest from the runtime, freed on every way out of the block."""

from __future__ import annotations

import math

from ..ir import build as b
from ..ir import nodes as n
from .ctypes_of import comment, memory_type
from .emitter import Emitter

STACK_LIMIT = 16 << 10  # bytes of an allocation that goes on the stack unless asked otherwise


def constant_elements(s: n.Allocate) -> int | None:
    """The number of elements with padding; None if it is not a constant."""
    sizes = [size for e in s.extents if (size := b.as_int(e)) is not None]
    return None if len(sizes) < len(s.extents) else max(math.prod(sizes) + s.padding, 1)


def stack_elements(s: n.Allocate) -> int | None:
    """The number of elements of an allocation on the stack; None for one on the heap."""
    count = constant_elements(s)
    if count is None or s.memory in (n.MemoryType.Stack, n.MemoryType.Register):
        return count
    return count if s.memory is n.MemoryType.Auto and (count - s.padding) * s.type.bytes() <= STACK_LIMIT else None


def declare(em: Emitter, s: n.Allocate) -> str:
    """Take the memory until the end of the C block; gives the name of its pointer or array."""
    count, name = stack_elements(s), em.unit.fresh(s.name)
    if count is None:
        _heap(em, s, name)
    else:
        em.line(f"{memory_type(s.type)} {name}[{count}] __attribute__((aligned(64))); /* {comment(s.name)} */")
        em.arrays.add(s.name)
        em.sized.add(s.name)
    return name


def _heap(em: Emitter, s: n.Allocate, name: str) -> None:
    ctype = memory_type(s.type)
    product = "1"
    for e in s.extents:
        product = em.scalar(e) if product == "1" else f"{em.unit.helper('hl_times')}({product}, {em.scalar(e)})"
    amount = f"{em.unit.helper('hl_bytes')}({product}, {s.padding}, {s.type.bytes()})"
    held = em.unit.fresh(f"{s.name}_memory")
    em.unit.helper("hl_scratch")
    em.line(f"HL_SCRATCH struct hl_scratch {held} = {{HL_NULL, {em.context}}}; /* {comment(s.name)} */")
    get = f"{held}.memory = halide_malloc({em.context}, {amount});"
    failed = f"if (HL_UNLIKELY({held}.memory == HL_NULL)) return halide_error_out_of_memory({em.context});"
    if b.is_true(s.condition):
        em.line(get)
        em.line(failed)
    else:
        em.line(f"if ({em.scalar(s.condition)}) {{ {get} {failed} }}")
    if em.profile is not None:
        em.profile.allocated(em, s.name, f"{held}.memory ? {amount} : 0")
    em.line(f"{ctype} *HL_RESTRICT const {name} = ({ctype} *){held}.memory;")
