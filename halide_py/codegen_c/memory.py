"""Loads and stores: dense accesses stay dense vectors, constant strides become shuffles of dense loads, the rest goes lane by lane.

Nothing is ever read outside the elements an access names: a strided load ends with its last element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import Type
from .ctypes_of import is_half, memory_type, short_type, value_type

if TYPE_CHECKING:
    from .expressions import Emitter


def pointer(em: Emitter, name: str, t: Type) -> str:
    """The base address of a buffer or allocation, typed."""
    c = em.names.get(name, name)
    if em.pointers.get(name) is t:
        return c
    return f"(({memory_type(t)} *){c})"


def _short_memory(t: Type) -> str:
    return "u16" if is_half(t) else "u8" if t.is_bool() else short_type(t)


def from_memory(em: Emitter, t: Type, text: str) -> str:
    """A scalar in memory as a value."""
    if is_half(t):
        return f"{em.helper('hl_f32_of_bf16' if t.is_bfloat() else 'hl_f32_of_f16')}({text})"
    return f"({text} != 0)" if t.is_bool() else text


def to_memory(em: Emitter, t: Type, text: str) -> str:
    """A scalar value as it is stored."""
    if is_half(t):
        return f"{em.helper('hl_bf16_of_f32' if t.is_bfloat() else 'hl_f16_of_f32')}({text})"
    return text


def line_of(index: n.Expr, start: int, count: int) -> tuple[n.Expr, int, int] | None:
    """(base, stride, first) when lanes start .. of `index` are base + stride * (first + i), stride a constant."""
    if isinstance(index, n.Ramp) and index.base.type.is_scalar():
        stride = b.as_int(index.stride)
        return (index.base, stride, start) if stride is not None else None
    if isinstance(index, n.Ramp):
        inner = index.base.type.lanes()
        outer_stride = b.as_int(index.stride)
        found = line_of(index.base, start % inner, count) if start % inner + count <= inner else None
        if found is not None and outer_stride is not None and found[1]:
            base, stride, first = found
            return b.add(base, b.const(base.type, outer_stride * (start // inner))), stride, first
    if isinstance(index, n.Broadcast) and index.value.type.is_vector():
        inner = index.value.type.lanes()
        return line_of(index.value, start % inner, count) if start % inner + count <= inner else None
    return None


def address(em: Emitter, p: str, base: n.Expr, offset: int) -> str:
    """p + base + offset."""
    at = em.scalar(base)
    return f"{p} + {at}" + (f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else "")


def dense(em: Emitter, p: str, base: n.Expr, offset: int, short: str, count: int) -> str:
    """A vector of adjacent elements."""
    v = em.vector_type(short, count)
    return em.temp(v, f"({v})*(const {em.vector_type(short, count, True)} *)({address(em, p, base, offset)})")


def _widen(em: Emitter, t: Type, raw: str, count: int) -> str:
    """A vector as read from memory as a vector of values."""
    if t.is_bool():
        return em.named_mask(f"{raw} != (uint8_t)0", 8, count)
    if is_half(t):
        return em.by_lanes(t, count, lambda i: from_memory(em, t, f"{raw}[{i}]"))
    return raw


def load(em: Emitter, e: n.Load, start: int, count: int) -> str:
    """Lanes start .. start + count - 1 of a load."""
    t, p = e.type, pointer(em, e.name, e.type.element_of())
    whole = b.is_true(e.predicate)
    if count == 1:
        at = em.lane(e.index, start)
        element = from_memory(em, t, f"{p}[{at}]")
        if not whole:
            element = f"{em.lane(e.predicate, start)} ? {element} : ({value_type(t)})0"
        return em.temp(value_type(t), element)
    if not whole:
        def guarded(i: int) -> str:
            return f"({em.lane(e.predicate, start + i)} ? {from_memory(em, t, f'{p}[{em.lane(e.index, start + i)}]')} : ({value_type(t)})0)"

        return em.remember_mask(em.by_lanes(t, count, guarded), t, count)
    line = line_of(e.index, start, count)
    short = _short_memory(t)
    if line is not None:
        base, stride, first = line
        if stride == 1:
            return _widen(em, t, dense(em, p, base, first, short, count), count)
        if stride == -1:
            v = dense(em, p, base, -(first + count - 1), short, count)
            return _widen(em, t, em.temp(em.vector_type(short, count), _shuffle(v, v, list(range(count - 1, -1, -1)))), count)
        if stride == 2:
            low = dense(em, p, base, 2 * first, short, count)
            high = dense(em, p, base, 2 * first + count - 1, short, count)
            half = count // 2
            picks = [2 * i for i in range(half)] + [count + 1 + 2 * i for i in range(half)]
            return _widen(em, t, em.temp(em.vector_type(short, count), _shuffle(low, high, picks)), count)
    return em.remember_mask(em.by_lanes(t, count, lambda i: from_memory(em, t, f"{p}[{_lane_index(em, e.index, line, start, i)}]")), t, count)


def _lane_index(em: Emitter, index: n.Expr, line: tuple[n.Expr, int, int] | None, start: int, i: int) -> str:
    if line is None:
        return em.lane(index, start + i)
    base, stride, first = line
    return f"{em.scalar(base)} + {stride * (first + i)}"


def _shuffle(a: str, c: str, picks: list[int]) -> str:
    return f"__builtin_shufflevector({a}, {c}, {', '.join(map(str, picks))})"


def store(em: Emitter, s: n.Store) -> None:
    """A store of all lanes."""
    t = s.value.type
    p = pointer(em, s.name, t.element_of())
    if t.is_scalar():
        value, at = em.scalar(s.value), em.scalar(s.index)
        text = f"{p}[{at}] = {to_memory(em, t, value)};"
        em.line(text if b.is_true(s.predicate) else f"if ({em.scalar(s.predicate)}) {text}")
        return
    whole = b.is_true(s.predicate)
    # All lanes are computed before the first is stored: the value may read what the store overwrites.
    parts = [(start, count, em.emit(s.value, start, count)) for start, count in em.slices(t.lanes())]
    writes: list[str] = []
    for start, count, value in parts:
        line = line_of(s.index, start, count)
        if whole and count > 1 and line is not None and line[1] == 1 and not is_half(t):
            short = _short_memory(t)
            if t.is_bool():
                value = em.temp(em.vector_type("u8", count), f"({em.vector_type('u8', count)})({em.mask(s.value, start, count, 8)} & (int8_t)1)")
            writes.append(f"*({em.vector_type(short, count, True)} *)({address(em, p, line[0], line[2])}) = {value};")
            continue
        for i in range(count):
            one = value if count == 1 else f"{value}[{i}]"
            if t.is_bool() and count > 1:
                one = f"({one} & 1)"
            text = f"{p}[{_lane_index(em, s.index, line, start, i)}] = {to_memory(em, t, one)};"
            writes.append(text if whole else f"if ({em.lane(s.predicate, start + i)}) {text}")
    for text in writes:
        em.line(text)


