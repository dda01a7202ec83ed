"""Products of numbers that fit 16 bits, in lanes of 32, by the instructions for signed halfwords: half the work of full products, and none
besides the sum on machines with VNNI.

These multiply low halves, and high halves, and add both; where the high half of one factor is 0 that is the product.
"""

from __future__ import annotations

from ..ir import nodes as n
from ..ir.simplify.simplify import Simplifier
from .emitter import HANDLERS, Emitter
from .expressions import arithmetic, is_splat, splat_of

_LEAST, _MOST = -(1 << 15), (1 << 15) - 1
_PRODUCT = {16: ("avx512bw", "pmaddwd512_mask", 32), 8: ("avx2", "pmaddwd256", 16), 4: ("sse2", "pmaddwd128", 8)}
_SUM = {16: ("avx512vnni", "v16si"), 8: ("avx512vl", "v8si"), 4: ("avx512vl", "v4si")}


def _factors(e: n.Expr) -> tuple[n.Expr, n.Expr] | None:
    if type(e) is not n.Mul or e.type.bits() != 32 or not e.type.is_int_or_uint():
        return None
    s = Simplifier(None)
    ranges = [s.range(e.a), s.range(e.b)]
    fit = all(low is not None and high is not None and low >= _LEAST and high <= _MOST for low, high in ranges)
    return (e.a, e.b) if fit and any(low is not None and low >= 0 for low, _ in ranges) else None


def _vector(em: Emitter, e: n.Expr, start: int, count: int, ctype: str) -> str:
    return f"({ctype}){splat_of(em, e.value, count) if is_splat(e) else em.emit(e, start, count)}"  # type: ignore[attr-defined]


def multiplication(em: Emitter, e: n.Mul, start: int, count: int) -> str:
    """A slice of a product."""
    feature, name, halves = _PRODUCT.get(count, ("", "", 0))
    if not feature or em.machine.compiler != "gcc" or not em.machine.has(feature) or (found := _factors(e)) is None:
        return arithmetic(em, e, start, count)
    a, c = (_vector(em, factor, start, count, em.vector_type("i16", halves)) for factor in found)
    rest = f", ({em.vector_type('i32', 16)}){{}}, (uint16_t)-1" if count == 16 else ""
    return f"(({em.c_type(e.type, count)})__builtin_ia32_{name}({a}, {c}{rest}))"


def addition(em: Emitter, e: n.Add, start: int, count: int) -> str:
    """A slice of a sum, of a product and something else perhaps."""
    feature, name = _SUM.get(count, ("", ""))
    there = feature and em.machine.compiler == "gcc" and em.machine.has(feature) and em.machine.has("avx512vnni")
    for rest, mul in ((e.a, e.b), (e.b, e.a)) if there else ():
        found = _factors(mul)
        if found is not None:
            vector = em.vector_type("i32", count)
            total, a, c = (_vector(em, part, start, count, vector) for part in (rest, *found))
            return f"(({em.c_type(e.type, count)})__builtin_ia32_vpdpwssd_{name}({total}, {a}, {c}))"
    return arithmetic(em, e, start, count)


HANDLERS.update({n.Mul: multiplication, n.Add: addition})
