"""Stores: dense ones stay dense, those that fill each other's gaps become dense ones by shuffles, the rest goes lane by lane."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import free_variables, mentions
from ..ir.types import Type, UInt
from . import halves, transposes, x86
from . import vectors as v
from .addresses import Line, address, element, elements, line_of, unparenthesized
from .ctypes_of import is_half, memory_type, value_bits
from .emitter import Emitter, is_regular
from .expressions import piece_sizes
from .memory import MAX_STRIDE, memory_kind, to_memory


def store(em: Emitter, s: n.Store) -> None:
    """A store. All lanes are computed before the first is written: the value may read what the store overwrites."""
    t = s.value.type
    if t.is_scalar():
        text = f"{element(em, s.name, t, s.index)} = {to_memory(em, t, _stored_scalar(em, s.value))};"
        em.line(text if b.is_true(s.predicate) else f"if {_parenthesized(em.scalar(s.predicate))} {text}")
    elif not _store_block(em, [s]):
        bits = 16 if is_half(t) else value_bits(t)
        writes: list[str] = []
        for start, count in em.slices(t, bits):
            writes += _store_slice(em, s, start, count)
        for text in writes:
            em.line(text)
    em.written(n.symbol_bit(s.name))


def _parenthesized(text: str) -> str:
    return text if text[:1] == "(" and text[-1:] == ")" and unparenthesized(text) != text else f"({text})"


def _stored_scalar(em: Emitter, e: n.Expr) -> str:
    text = em.scalar(e)
    return text[1:-1] if unparenthesized(text) != text else text


def stored_value(em: Emitter, e: n.Expr, start: int, count: int) -> str:
    """A slice as it is stored, named."""
    t = e.type
    kind = memory_kind(t)
    if count == 1:
        return em.named(memory_type(t), to_memory(em, t, em.emit(e, start, 1)))
    ctype = em.vector_type(kind, count)
    if t.is_bool():
        return em.name(ctype, f"({ctype})({em.mask(e, start, count, 8)} & (int8_t)1)")
    if is_half(t):
        return em.name(ctype, halves.stored(em, e, start, count))
    return em.named(ctype, em.emit(e, start, count))


def _is_scattered(index: n.Expr, start: int, count: int) -> bool:
    """Whether no part of a slice is in one piece, forwards or backwards."""
    line = line_of(index, start, count)
    return (line is None or abs(line.stride) != 1) and _rows(index, start, count) is None


def _copied(em: Emitter, s: n.Store, start: int, count: int) -> list[str] | None:
    """The writes of a slice that comes from anywhere and goes anywhere: no vector is put together to be taken apart."""
    load, of = s.value, s.value.type.element_of()
    if count == 1 or not isinstance(load, n.Load) or load.name == s.name or load.type.is_bool() or is_half(of) or em.is_shared(load):
        return None
    if not (b.is_true(s.predicate) and b.is_true(load.predicate) and is_regular(load.index) and is_regular(s.index)):
        return None
    if not _is_scattered(s.index, start, count) or not _is_scattered(load.index, start, count):
        return None
    sources = elements(em, load.name, of, load.index, start, count)
    return [f"{at} = {source};" for at, source in zip(elements(em, s.name, of, s.index, start, count), sources)]


def _store_slice(em: Emitter, s: n.Store, start: int, count: int) -> list[str]:
    """The writes of one slice, its value computed."""
    copies = _copied(em, s, start, count)
    if copies is not None:
        return copies
    of = s.value.type.element_of()
    kind = memory_kind(of)
    value = stored_value(em, s.value, start, count)
    line, whole = line_of(s.index, start, count), b.is_true(s.predicate)
    if whole and count > 1 and line is not None and line.stride == 1:
        return [_dense_store(em, s.name, of, line.base, line.offset, count, value)]
    if whole and count > 1 and line is not None and line.stride == -1:
        back = em.name(em.vector_type(kind, count), v.shuffle(value, value, range(count - 1, -1, -1)))
        return [_dense_store(em, s.name, of, line.base, line.offset - count + 1, count, back)]
    if not whole and line is not None and line.stride == 1:
        text = x86.masked_store(em, kind, count, lambda: address(em, s.name, of, line.base, line.offset), s.predicate, start, value)
        if text:
            return [text]
    rows = _store_rows(em, s, start, count, value) if whole else None
    if rows is not None:
        return rows
    values = [value]
    if count > 1:
        values = em.by_words(UInt(8 * of.bytes()), value, count) if of.bytes() <= 2 else [f"{value}[{i}]" for i in range(count)]
    places = elements(em, s.name, of, s.index, start, count)
    if whole:
        return [f"{at} = {x};" for at, x in zip(places, values)]
    return [f"if ({c}) {at} = {x};" for c, at, x in zip(em.lanes(s.predicate, start, count), places, values)]


def _dense_store(em: Emitter, name: str, t: Type, base: n.Expr | None, offset: int, count: int, value: str) -> str:
    return f"*({em.vector_type(memory_kind(t), count, True)} *)({address(em, name, t, base, offset)}) = {value};"


def _rows(index: n.Expr, start: int, count: int) -> list[Line] | None:
    """The rows of a two-dimensional block, each in one piece."""
    if not isinstance(index, n.Ramp) or index.base.type.is_scalar():
        return None
    inner = index.base.type.lanes()
    if start % inner or count % inner or inner & (inner - 1) or inner == count:
        return None
    lines = [line for k in range(start, start + count, inner) if (line := line_of(index, k, inner)) is not None and line.stride == 1]
    return lines if len(lines) == count // inner else None


def _store_rows(em: Emitter, s: n.Store, start: int, count: int, value: str) -> list[str] | None:
    """A two-dimensional block: each row is a store of its own."""
    lines, of = _rows(s.index, start, count), s.value.type.element_of()
    if lines is None:
        return None
    inner = count // len(lines)
    out = []
    for k, line in enumerate(lines):
        part = em.name(em.vector_type(memory_kind(of), inner), v.shuffle(value, value, range(k * inner, (k + 1) * inner)))
        out.append(_dense_store(em, s.name, of, line.base, line.offset, inner, part))
    return out


# ---- groups of stores


def group(em: Emitter, stores: Sequence[n.Stmt]) -> int:
    """Write the first of some statements together, if they are stores that fill each other's gaps; gives how many these are."""
    several = _interleaved(stores[:MAX_STRIDE])
    if several:
        _store_interleaved(em, stores[:several])  # type: ignore[arg-type]
        return several
    return _store_block(em, stores)


def _store_block(em: Emitter, stores: Sequence[n.Stmt]) -> int:
    """Columns beside each other as rows: see transposes."""
    run: list[transposes.Column] = []
    each = 0  # columns a store
    for s in stores:
        own = isinstance(s, n.Store) and not mentions(s.value, s.name) and not mentions(s.index, s.name)
        columns = list(transposes.columns(s)) if isinstance(s, n.Store) and own else []
        if not columns or run and columns[0].group != run[0].group:
            break
        run, each = run + columns, len(columns)
    if not run:
        return 0
    name, of, _, stride, lanes = run[0].group
    run = run[:_columns_apart(name, stride)]
    lengths = transposes.row_lengths(of, lanes, len(run), min(em.machine.vector_bytes, 2 * transposes.BLOCK))
    block = sorted(run[:sum(lengths)], key=lambda column: column.offset)
    if not block or len(block) % each or [column.offset - block[0].offset for column in block] != list(range(len(block))):
        return 0
    t, kind, bits = of.with_lanes(lanes), memory_kind(of), 16 if is_half(of) else value_bits(of)
    for start, count in em.slices(t, bits):
        at = 0
        for length in lengths:
            part = block[at:at + length]
            values = [stored_value(em, column.value, column.first + start, count) for column in part]
            for text in transposes.store(em, kind, part, values, start, count):
                em.line(text)
            at += length
    em.written(n.symbol_bit(name))
    return len(block) // each


def _columns_apart(name: str, stride: n.Expr) -> int:
    """How many columns beside each other have no element twice: their order is not kept. Other elements of a buffer lie at other places."""
    known = b.as_int(stride)
    if known is not None:
        return 0 if abs(known) <= 1 else abs(known)
    return sys.maxsize if all(variable.startswith(f"{name}.stride.") for variable in free_variables(stride)) else 0


def _interleaved(stores: Sequence[n.Stmt]) -> int:
    """How many of the first statements are stores that fill one dense range at stride n; 0 if they are none."""
    first = stores[0]
    if not isinstance(first, n.Store) or first.value.type.is_scalar() or is_half(first.value.type) or first.value.type.is_bool():
        return 0
    line = line_of(first.index, 0, first.value.type.lanes())
    if line is None or not 2 <= line.stride <= MAX_STRIDE or len(stores) < line.stride:
        return 0
    offsets = set()
    for s in stores[:line.stride]:
        if not isinstance(s, n.Store) or s.name != first.name or s.value.type is not first.value.type or not b.is_true(s.predicate):
            return 0
        other = line_of(s.index, 0, s.value.type.lanes())
        if other is None or other.base is not line.base or other.stride != line.stride or mentions(s.value, first.name):
            return 0
        offsets.add(other.offset)
    return line.stride if len(offsets) == line.stride and max(offsets) - min(offsets) == line.stride - 1 else 0


def _store_interleaved(em: Emitter, stores: Sequence[n.Store]) -> None:
    """Stores at stride n, one for each remainder, as n dense stores."""
    t, stride = stores[0].value.type, len(stores)
    name, of = stores[0].name, t.element_of()
    lines = [(line_of(s.index, 0, t.lanes()), s) for s in stores]
    ordered = sorted(((line, s) for line, s in lines if line is not None), key=lambda each: each[0].offset)
    base, low = ordered[0][0].base, ordered[0][0].offset
    writes = []
    for start, count in _interleave_slices(em, t):
        at = low + stride * start
        for value, size in _interleaved_values(em, of, [em.atom(s.value, start, count) for _, s in ordered], count):
            there = address(em, name, of, base, at)
            writes.append(_dense_store(em, name, of, base, at, size, value) if size > 1 else f"*({there}) = {value};")
            at += size
    for text in writes:
        em.line(text)
    em.written(n.symbol_bit(stores[0].name))


def _interleaved_values(em: Emitter, t: Type, sources: list[str], count: int) -> list[tuple[str, int]]:
    """Vectors of `count` lanes lane by lane: the vectors to store one after the other, and their lanes."""
    stride, kind = len(sources), memory_kind(t)
    if count > 1 and stride in (2, 4) and em.machine.has("avx512vbmi") and stride * count * t.bytes() <= em.machine.vector_bytes:
        whole, lanes = em.vector_type(kind, stride * count), range(stride * count)
        joined = em.name(whole, v.join(em, kind, sources, count))
        return [(em.name(whole, v.shuffle(joined, joined, [i % stride * count + i // stride for i in lanes])), stride * count)]
    if count > 1 and stride in (2, 4):
        return [(value, count) for value in _zipped(em, kind, sources, count)]
    given, values = [(text, count) for text in sources], []
    for k in range(stride):
        wanted = [((k * count + i) % stride, (k * count + i) // stride) for i in range(count)]
        values.append(em.named(em.vector_type(kind, count) if count > 1 else memory_type(t), v.pick(em, kind, given, wanted)))
    return [(value, count) for value in values]


def _zipped(em: Emitter, kind: str, sources: list[str], count: int) -> list[str]:
    """Interleaved in steps of two, which machines have instructions for."""
    if len(sources) == 1:
        return sources
    pairs = zip(_zipped(em, kind, sources[::2], count), _zipped(em, kind, sources[1::2], count))
    ctype, half = em.vector_type(kind, count), count // 2
    return [em.name(ctype, v.shuffle(even, odd, [i // 2 + half * k + count * (i % 2) for i in range(count)]))
            for even, odd in pairs for k in range(2)]


def _interleave_slices(em: Emitter, t: Type) -> list[tuple[int, int]]:
    """Slices of at most 16 bytes for bytes and halfwords, whose shuffles do not cross them."""
    limit = em.native(t) if value_bits(t) > 16 or em.machine.has("avx512vbmi") else 128 // value_bits(t)
    out, start = [], 0
    for size in piece_sizes(t.lanes(), min(limit, em.native(t))):
        out.append((start, size))
        start += size
    return out
