"""Loads: dense ones stay dense, strided ones become shuffles of dense loads, the rest goes lane by lane.

Nothing outside what the program accesses is ever touched: a group of strided loads (`in[2x - 1]`, `in[2x]`, `in[2x + 1]`) shares dense
loads that end with the last element of the group.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import Type
from . import halves, transposes, x86
from . import vectors as v
from .addresses import Line, address, element, elements, line_of, stretch_of, without_broadcasts
from .ctypes_of import is_half, memory_type, short_type, value_type
from .emitter import HANDLERS, MASKS, Emitter
from .expressions import mask_at_width

MAX_STRIDE = 4


def memory_kind(t: Type) -> str:
    """The vector element type in memory."""
    return "u16" if is_half(t) else short_type(t)


# ---- loads


def from_memory(em: Emitter, t: Type, text: str) -> str:
    """A scalar in memory as a value."""
    if is_half(t):
        return f"{em.unit.helper('hl_f32_of_bf16' if t.is_bfloat() else 'hl_f32_of_f16')}({text})"
    return f"({text} != 0)" if t.is_bool() else text


def to_memory(em: Emitter, t: Type, text: str) -> str:
    """A scalar value as it is stored."""
    if is_half(t):
        return f"{em.unit.helper('hl_bf16_of_f32' if t.is_bfloat() else 'hl_f16_of_f32')}({text})"
    return text


def load(em: Emitter, e: n.Load, start: int, count: int) -> str:
    """Lanes of a load as values."""
    t = e.type
    if count == 1:
        return _load_scalar(em, e, start)
    if is_half(t):
        return halves.from_memory(em, t, count, raw_load(em, e, start, count))
    return raw_load(em, e, start, count)


def load_mask(em: Emitter, e: n.Load, start: int, count: int, bits: int) -> str:
    """Lanes of a load of bools."""
    return mask_at_width(em, lambda first, size: f"({raw_load(em, e, first, size)} != (uint8_t)0)", 8, start, count, bits)


def _load_scalar(em: Emitter, e: n.Load, start: int) -> str:
    t, name, of = e.type, e.name, e.type.element_of()
    text = from_memory(em, t, element(em, name, of, e.index) if e.index.type.is_scalar() else elements(em, name, of, e.index, start, 1)[0])
    if b.is_true(e.predicate):
        return text
    return f"({em.emit(e.predicate, start, 1)} ? {text} : ({value_type(t)})0)"


def raw_load(em: Emitter, e: n.Load, start: int, count: int) -> str:
    """Lanes of a load as they are in memory."""
    t = e.type
    kind, name, of = memory_kind(t), e.name, t.element_of()
    if not b.is_true(e.predicate):
        return _load_predicated(em, e, kind, start, count)
    line = line_of(e.index, start, count)
    if line is not None:
        if line.stride == 0:
            return v.splat(em, kind, count, em.named(memory_type(t), f"*({address(em, name, of, line.base, line.offset)})"))
        if line.stride == 1:
            return dense(em, name, of, line.base, line.offset, count)
        if line.stride == -1:
            text = em.name(em.vector_type(kind, count), dense(em, name, of, line.base, line.offset - count + 1, count))
            return v.shuffle(text, text, range(count - 1, -1, -1))
        if 2 <= line.stride <= MAX_STRIDE:
            return _load_strided(em, e, line, kind, start, count)
    block = transposes.block_around(em, e, start, count)
    if block is not None:
        return transposes.load(em, kind, *block, start - block[0].first, count)
    if line is None and isinstance(e.index, n.Ramp) and e.index.base.type.is_vector():
        parts = _load_rows(em, e, start, count)
        if parts is not None:
            return parts
    whole = _load_repeated(em, e, kind, start, count) or x86.gather(em, e, kind, start, count)
    if whole:
        return whole
    lanes = elements(em, name, of, e.index, start, count)
    return x86.inserted(em, e.index, kind, count, lanes) or v.put_together(em, kind, lanes)


def _load_repeated(em: Emitter, e: n.Load, kind: str, start: int, count: int) -> str | None:
    """Enlarging, `in[x / m]`: lanes r, r + m, r + 2m, ... of `ramp(x, 1) / m` are `ramp((x + r) / m, 1)`: m dense loads, interleaved."""
    index, scalar = without_broadcasts(e.index)
    m = b.as_int(index.b) if isinstance(index, n.Div) else None
    if not isinstance(index, n.Div) or m is None or not 2 <= m <= MAX_STRIDE or start % m or count % m or count == m:
        return None
    line = line_of(index.a, start, count)
    if line is None or line.stride != 1 or line.base is None:
        return None
    sources = []
    for r in range(m):
        offset, rest = divmod(line.offset + r, m)
        base = n.Div(b.add(line.base, b.const(line.base.type, rest)), b.const(line.base.type, m))
        at = base if scalar is None else b.add(base, scalar)
        em.note_uses(at, (line.base,) if scalar is None else (line.base, scalar))
        sources.append((_shared_dense(em, e, at, offset, kind, count // m), count // m))
    return v.pick(em, kind, sources, [(i % m, i // m) for i in range(count)])


def dense(em: Emitter, name: str, t: Type, base: n.Expr | None, offset: int, count: int) -> str:
    """Adjacent elements."""
    return f"(*(const {em.vector_type(memory_kind(t), count, True)} *)({address(em, name, t, base, offset)}))"


def _load_rows(em: Emitter, e: n.Load, start: int, count: int) -> str | None:
    """A two-dimensional block: each row is a vector of its own."""
    assert isinstance(e.index, n.Ramp)
    inner = e.index.base.type.lanes()
    if start % inner or count % inner or inner & (inner - 1):
        return None
    if line_of(e.index, start, inner) is None and transposes.block_around(em, e, start, inner) is None:
        return None
    parts = [em.named(em.vector_type(memory_kind(e.type), inner), raw_load(em, e, k, inner)) for k in range(start, start + count, inner)]
    return v.join(em, memory_kind(e.type), parts, inner)


def _load_strided(em: Emitter, e: n.Load, line: Line, kind: str, start: int, count: int) -> str:
    """Dense loads from the first element of the group on, the last one moved back to end with the group; then a shuffle."""
    size = int(kind[1:]) // 8
    whole = (em.machine.vector_bytes if em.machine.has("avx512vbmi") else 16) // size
    first, lanes = stretch_of(e.index, start, count)
    within = (start - first) % whole
    if count < whole and start - within + whole <= first + lanes:  # part of what fills a register
        key = (e, "strided", start - within)
        text = em.memo.get(key)
        if text is None:
            begins = Line(line.base, line.offset - line.stride * within, line.stride)
            text = em.name(em.vector_type(kind, whole), _load_strided(em, e, begins, kind, start - within, whole))
            em.remember(key, text, e)
        return v.shuffle(text, text, range(within, within + count))
    if size * count > 16 and size <= 2 and not em.machine.has("avx512vbmi"):  # byte shuffles do not cross 16 bytes
        half = count // 2
        parts = [em.named(em.vector_type(kind, half), raw_load(em, e, start + k, half)) for k in (0, half)]
        return v.join(em, kind, parts, half)
    lowest, highest = line.offset - line.stride * (start - first), line.offset + line.stride * (first + lanes - 1 - start)  # of the stretch
    low, high = em.strided.get((e.name, line.base, line.stride, e.type), (lowest, highest))
    low, high = min(low, lowest), max(high, highest)
    at = low + line.stride * (start - first)
    piece = whole if count < whole <= high - low + 1 and size <= 2 else count  # one shuffle takes its lanes from two registers
    sources: list[tuple[str, int]] = []
    where: dict[int, int] = {}
    wanted = []
    for i in range(count):
        position = line.offset + line.stride * i
        begin = min(at + (position - at) // piece * piece, high - piece + 1)
        if begin not in where:
            where[begin] = len(sources)
            sources.append((_shared_dense(em, e, line.base, begin, kind, piece), piece))
        wanted.append((where[begin], position - begin))
    return v.pick(em, kind, sources, wanted)


def every_second(em: Emitter, e: n.Load, start: int, count: int) -> str:
    """Every second of adjacent integers, as numbers of twice their width: they are halves of these, where the other halves may be read too.
    Else ""."""
    line, kind = line_of(e.index, start, count), memory_kind(e.type)
    low, high = em.strided.get((e.name, line.base, line.stride, e.type), (0, -1)) if line is not None and line.stride == 2 else (0, -1)
    if line is None or not low <= line.offset <= high or 2 * count * e.type.bytes() > em.machine.vector_bytes:
        return ""
    second = (line.offset - low) % 2
    begin, bits = line.offset - second, 8 * e.type.bytes()
    if begin + 2 * count - 1 > high:
        return ""
    wide = em.vector_type(f"{kind[0]}{2 * bits}", count)
    whole = f"({wide}){_shared_dense(em, e, line.base, begin, kind, 2 * count)}"
    if second:
        return f"({whole} >> {bits})"
    return f"({whole} & (uint{2 * bits}_t){(1 << bits) - 1})" if kind[0] == "u" else f"(({whole} << {bits}) >> {bits})"


def _shared_dense(em: Emitter, e: n.Load, base: n.Expr | None, offset: int, kind: str, count: int) -> str:
    key = ("dense", e.name, base, offset, kind, count)
    found = em.memo.get(key)
    if found is None:
        found = em.name(em.vector_type(kind, count), dense(em, e.name, e.type.element_of(), base, offset, count))
        em.remember(key, found, e)
    return found


def _load_predicated(em: Emitter, e: n.Load, kind: str, start: int, count: int) -> str:
    name, of = e.name, e.type.element_of()
    line = line_of(e.index, start, count)
    if line is not None and line.stride == 1:
        text = x86.masked_load(em, kind, count, lambda: address(em, name, of, line.base, line.offset), e.predicate, start)
        if text:
            return text
    if line is None:
        text = x86.gather(em, e, kind, start, count)
        if text:
            return text
    element_type = memory_type(of)  # said again: `?:` widens what is narrower than int
    conditions = em.lanes(e.predicate, start, count)
    lanes = [f"({element_type})({c} ? {x} : 0)" for c, x in zip(conditions, elements(em, name, of, e.index, start, count))]
    return v.put_together(em, kind, lanes)


# ---- groups of strided accesses


def note_strided_loads(em: Emitter, loads: Iterable[n.Load], stored: Container[str]) -> None:
    """Group the strided loads of straight-line code: what one of them touches, all of them may load. Columns of what the code stores stay
    single: processors hand an element just stored on to a load of that element, and make one of it and its neighbour wait."""
    for e in loads:
        if e.type.is_scalar() or not b.is_true(e.predicate):
            continue
        line = line_of(e.index, 0, e.type.lanes())
        if (line is None or not 0 <= line.stride <= MAX_STRIDE) and e.name not in stored:
            transposes.note_load(em, e)
        if line is None or not 2 <= line.stride <= MAX_STRIDE:
            continue
        key = (e.name, line.base, line.stride, e.type)
        low, high = line.offset, line.offset + line.stride * (e.type.lanes() - 1)
        known = em.strided.get(key, (low, high))
        merged = min(known[0], low), max(known[1], high)
        if merged[1] - merged[0] < line.stride * (e.type.lanes() + 8):
            em.strided[key] = merged


HANDLERS[n.Load] = load
MASKS[n.Load] = load_mask
