"""Vectors as C of what is no arithmetic: broadcasts, ramps, shuffles."""

from __future__ import annotations

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from . import vectors as v
from .ctypes_of import constant, short_type, value_bits
from .emitter import HANDLERS, MASKS, Emitter
from .expressions import finish, piece_sizes, splat_of


def broadcast(em: Emitter, e: n.Broadcast, start: int, count: int) -> str:
    """A scalar, or a short vector, over and over."""
    inner = e.value.type.lanes()
    if inner == 1:
        return em.emit(e.value, 0, 1) if count == 1 else splat_of(em, e.value, count)
    at = start % inner
    if at + count <= inner:
        return em.emit(e.value, at, count)
    return _gathered(em, [(e.value, (start + i) % inner) for i in range(count)])


def broadcast_mask(em: Emitter, e: n.Broadcast, start: int, count: int, bits: int) -> str:
    """A bool, or a short bool vector, over and over."""
    inner = e.value.type.lanes()
    if inner == 1:
        value = b.as_int(e.value)
        if value is not None:
            return (
                f"({v.splat(em, f'i{bits}', count, f'(int{bits}_t){-value}')})" if value else f"(({em.vector_type(f'i{bits}', count)}){{}})"
            )
        return v.mask_of_scalar(em, em.atom(e.value, 0, 1), bits, count)
    at = start % inner
    if at + count <= inner:
        return em.mask(e.value, at, count, bits)
    return _gathered(em, [(e.value, (start + i) % inner) for i in range(count)], bits)


def ramp(em: Emitter, e: n.Ramp, start: int, count: int) -> str:
    """base, base + stride, ..."""
    inner, t = e.base.type.lanes(), e.type
    if count == 1:
        k = start // inner
        base = em.emit(e.base, start % inner, 1)
        if k == 0:
            return base
        stride = b.as_int(e.stride)
        step = str(stride * k) if stride is not None else f"{k} * {em.emit(e.stride, start % inner, 1)}"
        return finish(em, t, 1, f"{base} - {step[1:]}" if step[0] == "-" else f"{base} + {step}")
    if inner == 1:
        ctype, element, stride = em.c_type(t, count), t.element_of(), b.as_int(e.stride)
        iota = [(b.const(element, stride * (start + i)) if stride is not None else b.const(element, start + i)) for i in range(count)]
        steps = f"({ctype}){{{', '.join(constant(c) for c in iota)}}}"
        scaled = steps if stride is not None else f"{v.scalar_operand(em, e.stride)} * {steps}"
        return scaled if b.is_zero(e.base) and stride is not None else f"({v.scalar_operand(em, e.base)} + {scaled})"
    if start % inner + count <= inner:
        at, step = start % inner, v.const_operand(e, start // inner)
        return f"({em.emit(e.base, at, count)} + {em.emit(e.stride, at, count)} * {step})"
    return em.from_lanes(t, count, [ramp(em, e, start + i, 1) for i in range(count)])


def shuffle(em: Emitter, e: n.Shuffle, start: int, count: int) -> str:
    """Lanes from anywhere."""
    return _gathered(em, _origins(e, start, count))


def shuffle_mask(em: Emitter, e: n.Shuffle, start: int, count: int, bits: int) -> str:
    """Lanes of bool vectors from anywhere."""
    return _gathered(em, _origins(e, start, count), bits)


def _origins(e: n.Shuffle, start: int, count: int) -> list[tuple[n.Expr, int]]:
    place = [(vector, i) for vector in e.vectors for i in range(vector.type.lanes())]
    return [place[i] for i in e.indices[start:start + count]]


def _gathered(em: Emitter, wanted: list[tuple[n.Expr, int]], bits: int = 0) -> str:
    """A vector of given lanes of given vectors, through the registers they are computed in; masks of `bits` for bools."""
    count, (first_vector, first) = len(wanted), wanted[0]
    if count == 1:
        return em.emit(first_vector, first, 1)
    if all(w == (first_vector, first + i) for i, w in enumerate(wanted)):
        return em.mask(first_vector, first, count, bits) if bits else em.emit(first_vector, first, count)
    t = first_vector.type
    width = em.machine.native_lanes(bits or value_bits(t))
    sources: list[tuple[str, int]] = []
    known: dict[tuple[n.Expr, int], int] = {}
    places = []
    for vector, lane in wanted:
        base, size = _register_of(vector.type.lanes(), lane, width)
        key = (vector, base)
        if key not in known:
            known[key] = len(sources)
            if size == 1:
                text = em.atom(vector, base, 1)
                text = f"(-(int{bits}_t){text})" if bits else text
            else:
                ctype = em.vector_type(f"i{bits}", size) if bits else em.c_type(t, size)
                text = em.named(ctype, em.mask(vector, base, size, bits) if bits else em.atom(vector, base, size))
            sources.append((text, size))
        places.append((known[key], lane - base))
    return v.pick(em, f"i{bits}" if bits else short_type(t), sources, places)


def _register_of(lanes: int, lane: int, width: int) -> tuple[int, int]:
    """First lane and lanes of the register that holds a lane."""
    start = 0
    for size in piece_sizes(lanes, width):
        if lane < start + size:
            return start, size
        start += size
    raise InternalError(f"lane {lane} of a vector of {lanes}; please report this with the program")


HANDLERS.update({n.Broadcast: broadcast, n.Ramp: ramp, n.Shuffle: shuffle})
MASKS.update({n.Broadcast: broadcast_mask, n.Shuffle: shuffle_mask})
