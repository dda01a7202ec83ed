"""Blocks of memory turned in registers: accesses at one stride whose neighbours fill the gaps, as in `out[x, y] = in[y, x]`.

A column is a vector access at some stride, constant or not; columns next to each other are a block. Its rows are adjacent elements, loaded
or stored whole; interleaving pairs of registers, the logarithm of their number times, makes columns of rows and rows of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import Type
from . import vectors as v
from .addresses import split_constant, strided
from .emitter import Emitter

SHORTEST_ROW = 4  # bytes
SHORTEST_COLUMN = 8
BLOCK = 16  # bytes: wide registers are interleaved in blocks of so many, as instructions do it
_WORDS = {32: "i32", 64: "q64"}

Group = tuple[str, Type, n.Expr | None, n.Expr, int]


class Column(NamedTuple):
    """Lanes `first`, ... of what is loaded or stored, at base + offset + stride * i. `group` is what columns of one block share: the name,
    the element type, base, stride and the number of lanes."""

    value: n.Expr
    group: Group
    offset: int
    first: int


def columns(access: n.Load | n.Store) -> Iterator[Column]:
    """The columns of an access: one, or one for each lane of the outer ramp."""
    value = access if isinstance(access, n.Load) else access.value
    outer, index = None, access.index
    if isinstance(index, n.Ramp) and isinstance(index.base, n.Ramp):
        outer, index = index, index.base
    if not isinstance(index, n.Ramp) or index.base.type.is_vector() or not b.is_true(access.predicate):
        return
    step = b.as_int(outer.stride) if outer else 0
    if step is None:
        return
    base, offset = split_constant(index.base)
    for k in range(outer.lanes if outer else 1):
        yield Column(value, (access.name, value.type.element_of(), base, index.stride, index.lanes), offset + k * step, k * index.lanes)


def row_lengths(t: Type, lanes: int, width: int, longest: int = BLOCK) -> list[int]:
    """How `width` columns of so many lanes are cut into blocks: the lengths of rows, powers of two of at most `longest` bytes. What is left
    goes lane by lane."""
    size = (t.bits() + 7) // 8
    if lanes & (lanes - 1) or lanes * size < SHORTEST_COLUMN:
        return []
    out, length = [], longest // size
    while length > 1 and length * size >= SHORTEST_ROW:
        out += [length] * (width // length)
        width %= length
        length //= 2
    return out


def note_load(em: Emitter, e: n.Load) -> None:
    """Straight-line code loads this for certain."""
    for column in columns(e):
        em.columns.setdefault(column.group, {}).setdefault(column.offset, column)


def block_around(em: Emitter, e: n.Load, start: int, count: int) -> tuple[Column, list[Column]] | None:
    """The column that some lanes of a load lie in, and the block to load for it."""
    for own in columns(e):
        known = em.columns.get(own.group, {})
        if own.offset not in known or start < own.first or start + count > own.first + own.group[4]:
            continue
        low = high = own.offset
        while low - 1 in known:
            low -= 1
        while high in known:
            high += 1
        for length in row_lengths(e.type, count, high - low):
            if own.offset < low + length:
                return own, [known[k] for k in range(low, low + length)]
            low += length
    return None


def load(em: Emitter, kind: str, own: Column, block: Sequence[Column], start: int, count: int) -> str:
    """`count` lanes of a column from its lane `start` on. All columns of the block are loaded, and remembered."""
    def key(column: Column) -> tuple[object, ...]:
        return "column", column.group, column.offset, start, count

    text = em.memo.get(key(own))
    if text is None:
        row = strided(em, *own.group[:4], block[0].offset)
        turned = _Registers(em, kind, count).columns([row(start + i) for i in range(count)], len(block))
        for column, each in zip(block, turned):
            em.remember(key(column), em.named(em.vector_type(kind, count), each), column.value)
        text = em.memo[key(own)]
    return text


def store(em: Emitter, kind: str, block: Sequence[Column], values: Sequence[str], start: int, count: int) -> list[str]:
    """The writes of `count` lanes of each column, from lane `start` on; the values are given, columns lie in order."""
    row, piece = strided(em, *block[0].group[:4], block[0].offset), em.vector_type(kind, len(block))
    return [f"*({piece}u *)({row(start + i)}) = {text};" for i, text in enumerate(_Registers(em, kind, count).rows(values, count))]


class _Registers:
    """Shuffles of registers of `count` lanes, or more: whole blocks, of which the first `height` lanes are in use."""

    def __init__(self, em: Emitter, kind: str, count: int) -> None:
        self.em, self.kind, self.bits = em, kind, int(kind[1:])
        self.block = 8 * BLOCK // self.bits
        self.height, self.lanes = min(count, self.block), max(count, self.block)
        self.type = em.vector_type(kind, self.lanes)

    def columns(self, rows: Sequence[str], length: int) -> list[str]:
        """Element k of each row as a vector, for all k; rows are given by their addresses."""
        done = self._interleaved([self.em.name(self.type, self._loaded(rows[j::self.height], length)) for j in range(self.height)], length)
        places = [divmod(k * self.height, self.block) for k in range(length)]
        return done if self.height == self.block else [self._part(done[k], at, self.height) for k, at in places]

    def rows(self, values: Sequence[str], count: int) -> list[str]:
        """Lane i of each vector as a vector, for all i."""
        if self.height < self.block:
            values = [self.em.name(self.type, self._spread([x], self.height)) for x in values]
        done = [self._interleaved(values[k:k + self.block], self.height) for k in range(0, len(values), self.block)]
        length = min(len(values), self.block)
        places = [(i % self.height * length, i // self.height * self.block) for i in range(count)]
        if len(done) == 1:
            return [self._part(done[0][k // self.block], k % self.block + at, length) for k, at in places]
        both = [[*range(at, at + length), *range(self.lanes + at, self.lanes + at + length)] for _, at in places]
        return [v.shuffle(done[0][i % length], done[1][i % length], lanes) for i, lanes in enumerate(both)]

    def _interleaved(self, registers: Sequence[str], used: int) -> list[str]:
        """In each block lane 0 of every register, then lane 1 of every one, up to the `used` ones: as few registers as hold them."""
        groups = [[x] for x in registers]
        while len(groups) > 1:
            half, ends = len(groups) // 2, (0, 1) if used == self.block else (0,)
            groups = [[self._zipped(x, y, end) for x, y in zip(*pair) for end in ends] for pair in zip(groups[:half], groups[half:])]
            used = min(2 * used, self.block)
        return groups[0]

    def _zipped(self, x: str, y: str, end: int) -> str:
        """The lower or upper halves of each block, lanes of both in turn."""
        half = self.block // 2
        lanes = [k + end * half + i for k in range(0, self.lanes, self.block) for i in range(half)]
        return self.em.name(self.type, v.shuffle(x, y, [each for k in lanes for each in (k, self.lanes + k)]))

    def _loaded(self, rows: Sequence[str], length: int) -> str:
        """A row in each block."""
        vector = self.em.vector_type(self.kind, length)
        texts = [f"(*(const {vector}u *)({row}))" for row in rows]
        if length < self.block:
            return self._spread(texts, length)
        return v.join(self.em, self.kind, texts, length)

    def _spread(self, texts: Sequence[str], length: int) -> str:
        """Short vectors, each at the beginning of a block: as integers, which one instruction loads."""
        word, ctype = self._word(length)
        zeros = ", 0" * (self.block // length - 1)
        return f"({self.type})({word}){{{', '.join(f'({ctype}){text}{zeros}' for text in texts)}}}"

    def _part(self, register: str, at: int, length: int) -> str:
        """`length` lanes from lane `at` on."""
        vector = self.em.vector_type(self.kind, length)
        if length == self.block:
            return register if length == self.lanes else v.shuffle(register, register, range(at, at + length))
        word, _ = self._word(length)
        return f"({vector})(({word}){register})[{at // length}]"

    def _word(self, length: int) -> tuple[str, str]:
        """The vector of integers as long as so many lanes that fills a register, and its elements."""
        bits = length * self.bits
        return self.em.vector_type(_WORDS[bits], self.lanes * self.bits // bits), "long long" if bits == 64 else "int32_t"
