"""What C says nothing of, or compilers do not find, and x86 has an instruction for: shifts of vectors by any amounts, high halves of
products. None where the machine or the compiler has none."""

from __future__ import annotations

from ..ir.types import Type
from .ctypes_of import short_type
from .emitter import Emitter

_LETTERS = {16: "hi", 32: "si", 64: "di"}


def _element(em: Emitter, bits: int, count: int) -> str:
    return em.vector_type("q64" if bits == 64 else f"i{bits}", count)


def shift(em: Emitter, t: Type, count: int, left: bool, x: str, y: str) -> str | None:
    """x << y or x >> y for unsigned amounts, of which those of the width or more move everything out."""
    bits, size = t.bits(), count * t.bits() // 8
    whole, arithmetic = size == 64, not left and t.is_int()
    needs = "avx512bw" if whole and bits == 16 else "avx512f" if whole else "avx2" if bits > 16 and not (bits == 64 and arithmetic) else ""
    if em.machine.compiler != "gcc" or size not in (16, 32, 64) or bits < 16 or not needs or not em.machine.has(needs):
        return None
    name, vector = f"__builtin_ia32_ps{'ll' if left else 'ra' if arithmetic else 'rl'}v{count}{_LETTERS[bits]}", _element(em, bits, count)
    arguments = f"({vector}){x}, ({vector}){y}"
    masked = f"_mask({arguments}, ({vector}){{}}, (uint{max(count, 8)}_t)-1)" if whole else f"({arguments})"
    return f"(({em.c_type(t, count)}){name}{masked})"


def high_product(em: Emitter, t: Type, count: int, x: str, y: str) -> str | None:
    """The high halves of products of 32 bits: those of even lanes, and of odd ones, put together."""
    size = 4 * count
    needs = {16: "sse2" if t.is_uint() else "sse4_1", 32: "avx2", 64: "avx512f"}.get(size)
    if em.machine.compiler != "gcc" or t.bits() != 32 or needs is None or not em.machine.has(needs):
        return None
    vector, words, unsigned = em.c_type(t, count), em.vector_type("i32", count), em.vector_type("u64", count // 2)
    name = f"__builtin_ia32_pmul{'u' if t.is_uint() else ''}dq{8 * size}"
    rest = f", ({em.vector_type('q64', count // 2)}){{}}, (uint8_t)-1" if size == 64 else ""

    def product(a: str, c: str) -> str:
        return f"({unsigned}){name}{'_mask' if rest else ''}(({words}){a}, ({words}){c}{rest})"

    body = (f"const {unsigned} even = {product('a', 'b')}, odd = {product(f'(({unsigned})a >> 32)', f'(({unsigned})b >> 32)')}; "
            f"return ({vector})(even >> 32 | (odd & 0xffffffff00000000ull));")
    return f"{em.unit.vector_helper(f'hl_high_product_{short_type(t)}x{count}', vector, f'{vector} a, {vector} b', body)}({x}, {y})"
