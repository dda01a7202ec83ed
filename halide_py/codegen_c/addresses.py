"""Addresses: where the lanes of an access lie, and pointers to rows.

`out[(y - min) * stride + x]` in a loop over x becomes `T *const out_row = out + (y - min) * stride` before the loop and `out_row[x]` in it:
compilers find what does not change in a loop, but do not bring it together and add it to the pointer. Computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeGuard

from ..ir import build as b
from ..ir import nodes as n
from ..ir.far_indices import in_64_bits, is_far
from ..ir.simplify.linear import gather, rebuild
from ..ir.types import INT32, INT64, Type
from .ctypes_of import memory_type
from .emitter import Emitter, is_atom

MAX_ROWS = 12  # pointers computed before a loop: there are 16 registers


class Line(NamedTuple):
    """Elements base + offset + stride * i for lanes i of an index."""

    base: n.Expr | None
    offset: int
    stride: int


def pointer(em: Emitter, name: str, t: Type) -> str:
    """The base address of a buffer or allocation as a pointer to `t`."""
    c = em.names[name]
    return c if em.pointers.get(name) is t else f"(({memory_type(t)} *){c})"


def split_constant(e: n.Expr) -> tuple[n.Expr | None, int]:
    """(x, c) with e = x + c; x is None for a constant."""
    value = b.as_int(e)
    if value is not None:
        return None, value
    if isinstance(e, (n.Add, n.Sub)):
        y = b.as_int(e.b)
        if y is not None:
            rest, c = split_constant(e.a)
            return rest, c + (y if isinstance(e, n.Add) else -y)
    return e, 0


def line_of(index: n.Expr, start: int, count: int) -> Line | None:
    """The line on which lanes start .. start + count - 1 lie, if they do; offset and stride are constants."""
    if index.type.is_scalar():
        return Line(*split_constant(index), 1)
    if isinstance(index, n.Ramp):
        inner, stride = index.base.type.lanes(), b.as_int(index.stride)
        if inner == 1:
            if stride is None:
                return None
            base, c = split_constant(index.base)
            return Line(base, c + stride * start, stride)
        if start % inner + count <= inner and stride is not None:
            found = line_of(index.base, start % inner, count)
            return found and Line(found.base, found.offset + stride * (start // inner), found.stride)
        return None
    if isinstance(index, n.Broadcast):
        inner = index.value.type.lanes()
        if inner == 1:
            return Line(*split_constant(index.value), 0)
        return line_of(index.value, start % inner, count) if start % inner + count <= inner else None
    if isinstance(index, n.Add):
        x, y = line_of(index.a, start, count), line_of(index.b, start, count)
        if x is None or y is None or (x.base is not None and y.base is not None):
            return None
        return Line(x.base or y.base, x.offset + y.offset, x.stride + y.stride)
    return None


def stretch_of(index: n.Expr, start: int, count: int) -> tuple[int, int]:
    """The first lane and the number of lanes of the largest block around a slice whose lanes all lie on one line: a row of a nested
    ramp."""
    lanes = index.type.lanes()
    for size in range(lanes, count, -1):
        first = start // size * size
        if lanes % size == 0 and start + count <= first + size and line_of(index, first, size) is not None:
            return first, size
    return start, count


def wide(em: Emitter, e: n.Expr) -> str:
    """An int32 index computed in 64 bits (its overflow would be undefined, so it may be), shared parts named."""
    if _is_narrowed(e):
        return em.emit(e.value, 0, 1)
    if isinstance(e, n.Cast) and e.type is INT32 and em.unit.float_ranges.fits(e.value, INT32):  # one instruction makes 64 bits, too
        return em.emit(n.Cast(INT64, e.value), 0, 1)
    if e.type.bits() != 32 or not isinstance(e, (n.Add, n.Sub, n.Mul)):
        return em.emit(e, 0, 1)
    key = (e, "wide")
    found = em.memo.get(key)
    if found is not None:
        return found
    x, y = wide(em, e.a), wide(em, e.b)
    if not _is_wide(e.a) and not _is_wide(e.b):
        x = f"(int64_t){x}"
    text = f"({x} {'+' if isinstance(e, n.Add) else '-' if isinstance(e, n.Sub) else '*'} {y})"
    if em.is_shared(e) or len(text) > 60:
        text = em.name("int64_t", text, "at")
        em.remember(key, text, e)
    return text


def _is_wide(e: n.Expr) -> bool:
    return e.type.bits() == 64 or isinstance(e, (n.Add, n.Sub, n.Mul)) or _is_narrowed(e)


def _is_narrowed(e: n.Expr) -> TypeGuard[n.Cast]:
    """Whether it is computed in 64 bits and taken for an int32, as where a buffer begins."""
    return isinstance(e, n.Cast) and e.type is INT32 and e.value.type is INT64


def place(em: Emitter, name: str, t: Type, base: n.Expr | None) -> tuple[str, str]:
    """(p, i) such that element `base` of a buffer is p[i]; "" for 0. What does not change in the loop around is in p, and computed before
    the loop unless it reads memory: compilers find what does not change, but do not bring it together and add it to the pointer."""
    p = pointer(em, name, t)
    if base is None:
        return p, ""
    loop = em.loops[-1] if em.loops and isinstance(base, (n.Add, n.Sub, n.Mul)) else None
    if loop is None or name in loop.names:
        return p, _index(em, base)
    terms, constant = gather(base)
    steady = {e: k for e, k in terms.items() if not loop.changes(e)}
    fixed = {e: k for e, k in steady.items() if not e.mask & (n.Load.bit | n.Call.bit | n.Let.bit)}
    key = ("row", name, t, frozenset(fixed.items()))
    row = em.memo.get(key)
    sized = name in em.sized  # no pointer may be in front of an array; compilers rely on that where they see its size
    if row is None and fixed and loop.rows < MAX_ROWS:
        loop.rows += 1
        with em.before_loop():
            at = _index(em, rebuild(base.type, fixed, 0))
            if sized:
                row = at if is_atom(at) else em.name("int64_t", at, "at")
            else:
                row = em.name(f"{memory_type(t)} *", f"{p} + {at}", f"{name}_row")
            em.remember(key, row, base)
    if row is None or sized and len(fixed) < len(steady):
        return p, _index(em, base)
    if sized:
        rest = _index(em, rebuild(base.type, {e: k for e, k in terms.items() if e not in steady}, constant))
        return p, f"({row} + {rest})" if rest else row
    if len(fixed) < len(steady):
        row = f"({row} + {_index(em, rebuild(base.type, {e: k for e, k in steady.items() if e not in fixed}, 0))})"
    return row, _index(em, rebuild(base.type, {e: k for e, k in terms.items() if e not in steady}, constant))


def _index(em: Emitter, e: n.Expr) -> str:
    """An index that is added to a pointer; "" for 0."""
    at = wide(em, e)
    if not is_atom(at) and len(at) > 24 and isinstance(e, (n.Add, n.Sub, n.Mul)):
        at = em.name("int64_t", at, "at")
        em.remember((e, "wide"), at, e)
    return "" if at == "0" else at


def address(em: Emitter, name: str, t: Type, base: n.Expr | None, offset: int) -> str:
    """The address of element base + offset of a buffer."""
    p, at = place(em, name, t, base)
    return p + (f" + {at}" if at else "") + signed(offset)


def strided(em: Emitter, name: str, t: Type, base: n.Expr | None, stride: n.Expr, offset: int) -> Callable[[int], str]:
    """The address of element base + offset + stride * i for any i."""
    known = b.as_int(stride)
    if known is not None:
        return lambda i: address(em, name, t, base, offset + known * i)
    step = _step(em, stride)

    def at(i: int) -> str:
        return _stepped(em, name, t, base, stride, i // 4) + (f" + {i % 4} * {step}" if i % 4 else "") + signed(offset)

    return at


def _step(em: Emitter, stride: n.Expr) -> str:
    key = (stride, "step")
    found = em.memo.get(key)
    if found is None:
        found = em.name("int64_t", wide(em, stride))
        em.remember(key, found, stride)
    return found


def _stepped(em: Emitter, name: str, t: Type, base: n.Expr | None, stride: n.Expr, fours: int) -> str:
    """A pointer to base + 4 * stride * fours. Compilers shall not look into it: of so many they would keep each distance in memory."""
    key = ("stepped", name, t, base, stride, fours)
    found = em.memo.get(key)
    if found is None:
        text = f"{_stepped(em, name, t, base, stride, fours - 1)} + 4 * {_step(em, stride)}" if fours else address(em, name, t, base, 0)
        found = em.unit.fresh(f"{name}_at")
        em.line(f"{memory_type(t)} *{found} = {text};")
        em.line(f'__asm__("" : "+r"({found}));')
        em.remember(key, found, base or stride)
    return found


def element(em: Emitter, name: str, t: Type, index: n.Expr) -> str:
    """One element as an lvalue."""
    base, offset = split_constant(index)
    return _subscript(*place(em, name, t, base), offset)


def _subscript(p: str, at: str, offset: int) -> str:
    if not at:
        return f"{p}[{offset}]"
    return f"{p}[{at}{signed(offset)}ll]" if offset else f"{p}[{unparenthesized(at)}]"  # a sum of 64 bits, part of the address


def unparenthesized(text: str) -> str:
    """Without outer parentheses where they are needless."""
    return text[1:-1] if text[:1] == "(" and text[-1:] == ")" and "(" not in text[1:-1] and ")" not in text[1:-1] else text


def elements(em: Emitter, name: str, t: Type, index: n.Expr, start: int, count: int) -> list[str]:
    """Each element of a vector access as an lvalue."""
    line = line_of(index, start, count)
    if line is not None:
        p, at = place(em, name, t, line.base)
        return [_subscript(p, at, line.offset + line.stride * i) for i in range(count)]
    if isinstance(index, n.Ramp) and index.base.type.is_scalar():
        first, offset = split_constant(index.base)
        each = strided(em, name, t, first, index.stride, offset)
        return [f"*({each(i)})" for i in range(start, start + count)]
    rest, base = without_broadcasts(index)
    if em.machine.large_buffers and is_far(index):
        rest = in_64_bits(rest)
    p, at = place(em, name, t, base)
    return [f"{p}[{f'{at} + {lane}' if at else unparenthesized(lane)}]" for lane in em.lanes(rest, start, count)]


def without_broadcasts(index: n.Expr) -> tuple[n.Expr, n.Expr | None]:
    """(x, s) with index = x + s in every lane, s a scalar or None."""
    if isinstance(index, (n.Add, n.Sub)) and isinstance(index.b, n.Broadcast) and index.b.value.type.is_scalar():
        rest, base = without_broadcasts(index.a)
        zero, scalar = b.const(index.b.value.type, 0), index.b.value
        return rest, b.add(base or zero, scalar) if isinstance(index, n.Add) else b.sub(base or zero, scalar)
    if isinstance(index, n.Add) and isinstance(index.a, n.Broadcast) and index.a.value.type.is_scalar():
        rest, base = without_broadcasts(index.b)
        return rest, b.add(base, index.a.value) if base is not None else index.a.value
    return index, None


def signed(offset: int) -> str:
    return f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""
