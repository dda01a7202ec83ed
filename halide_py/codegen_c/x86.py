"""Masked and gathered accesses as builtins of gcc for x86; "" for what has none, which then goes lane by lane.

Indices of gathers are those of `elements`, 32 bits a lane.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import build as b
from ..ir import nodes as n
from ..ir.far_indices import is_far
from ..ir.traverse import nodes_of
from .addresses import place, without_broadcasts
from .emitter import Emitter
from .vectors import join, shuffle


def _like(kind: str) -> str:
    """The element type the masked builtins are declared with."""
    return kind if kind[0] == "f" else "q64" if kind[1:] == "64" else f"i{kind[1:]}"


def _is_full(kind: str, count: int) -> bool:
    """Whether a vector fills an AVX-512 register."""
    return count * int(kind[1:]) == 512


def _mask(em: Emitter, predicate: n.Expr, start: int, count: int, kind: str) -> str:
    """A mask as the builtins take it: 64 bit ones are of `long long`, those of AVX-512 a number."""
    mask = em.mask(predicate, start, count, int(kind[1:]))
    vector = em.vector_type("q64" if kind[1:] == "64" else "i32", count)
    if _is_full(kind, count):
        return f"__builtin_ia32_cvt{'q' if kind[1:] == '64' else 'd'}2mask512(({vector}){mask})"
    return f"({vector}){mask}" if kind[1:] == "64" else mask


def _pointed(kind: str, count: int, like: str) -> str:
    """What the masked builtins take a pointer to: AVX2's to vectors, AVX-512's to elements."""
    if not _is_full(kind, count):
        return like
    return {"f32": "float", "f64": "double", "64": "long long"}.get(kind if kind[0] == "f" else kind[1:], "int")


def _masked(em: Emitter, what: str, kind: str, count: int) -> str:
    """The builtin for a masked access of this type."""
    if em.machine.compiler != "gcc" or not em.machine.has("avx2"):
        return ""
    if em.machine.has("avx512dq") and _is_full(kind, count) and kind[1:] in ("32", "64"):
        suffix = {"f32": "ups", "f64": "upd", "32": "dqusi", "64": "dqudi"}[kind if kind[0] == "f" else kind[1:]]
        return f"{what}{suffix}512_mask"
    suffix = {("f32", 8): "ps256", ("f32", 4): "ps", ("f64", 4): "pd256", ("f64", 2): "pd", ("i32", 8): "d256", ("i32", 4): "d",
              ("u32", 8): "d256", ("u32", 4): "d"}.get((kind, count), "")
    return suffix and f"mask{what}{suffix}"


def masked_load(em: Emitter, kind: str, count: int, address: Callable[[], str], predicate: n.Expr, start: int) -> str:
    """Adjacent elements, those without the mask 0."""
    builtin = _masked(em, "load", kind, count)
    if not builtin:
        return ""
    vector, like = em.vector_type(kind, count), em.vector_type(_like(kind), count)
    mask = _mask(em, predicate, start, count, kind)
    arguments = f"({like}){{}}, {mask}" if _is_full(kind, count) else mask
    text = f"__builtin_ia32_{builtin}((const {_pointed(kind, count, like)} *)({address()}), {arguments})"
    return text if like == vector else f"(({vector}){text})"


def masked_store(em: Emitter, kind: str, count: int, address: Callable[[], str], predicate: n.Expr, start: int, value: str) -> str:
    """Adjacent elements, those without the mask left alone."""
    builtin = _masked(em, "store", kind, count)
    if not builtin:
        return ""
    mask, like = _mask(em, predicate, start, count, kind), em.vector_type(_like(kind), count)
    given = value if like == em.vector_type(kind, count) else f"({like}){value}"
    arguments = f"{given}, {mask}" if _is_full(kind, count) else f"{mask}, {given}"
    return f"__builtin_ia32_{builtin}(({_pointed(kind, count, like)} *)({address()}), {arguments});"


def gather(em: Emitter, e: n.Load, kind: str, start: int, count: int) -> str:
    """Elements anywhere, those without the mask 0."""
    rest, base = without_broadcasts(e.index)
    whole = b.is_true(e.predicate)
    fits = kind in ("f32", "i32", "u32") and count in (4, 8, 16) and rest.type.is_int() and rest.type.bits() == 32
    if whole and _leave_easily(rest):
        return ""
    if whole and not any(isinstance(x, (n.Load, n.Call)) or x.type.is_vector() for x in nodes_of(rest, (n.Load, n.Call, n.Variable))):
        return ""  # regular ones are known lane by lane
    if (
        not fits
        or em.machine.large_buffers
        and is_far(e.index)
        or not em.machine.has("sse4_1")
        or not whole
        and (count != 16 or em.machine.compiler != "gcc" or not em.machine.has("avx512f"))
    ):
        return ""
    at = em.atom(rest, start, count)
    p, offset = place(em, e.name, e.type.element_of(), base)
    p = f"{p} + {offset}" if offset else p
    if whole:
        return f"{_gather_helper(em, kind, count)}({p}, ({em.vector_type('i32', count)}){at})"
    vector, like, mask = (
        em.vector_type(kind, count),
        em.vector_type(_like(kind), count),
        f"(short){_mask(em, e.predicate, start, count, kind)}",
    )
    builtin, pointed = ("gathersiv16sf", "float") if kind == "f32" else ("gathersiv16si", "int")
    text = f"__builtin_ia32_{builtin}(({like}){{}}, (const {pointed} *)({p}), {at}, {mask}, 4)"
    return text if like == vector else f"(({vector}){text})"


def _leave_easily(index: n.Expr) -> bool:
    """Whether indices need not come through a vector, since they are in memory, or are narrow and leave it eight at a time."""
    while isinstance(index, n.Cast):
        index = index.value
    return isinstance(index, n.Load) or index.type.bits() < 32


def inserted(em: Emitter, index: n.Expr, kind: str, count: int, lanes: list[str]) -> str:
    """Bytes from anywhere in memory, each inserted beside the last, eight in a chain: gcc would join them in general registers, of which
    those with computed indices leave it too few."""
    fits = kind[1:] == "8" and count >= 8 and em.machine.compiler == "gcc" and em.machine.has("sse4_1")
    if not fits or _leave_easily(without_broadcasts(index)[0]):
        return ""
    register, part, parts = em.vector_type("c8", 16), em.vector_type(kind, 8), []
    for first in range(0, count, 8):
        chain = em.name(register, f"{{(char){lanes[first]}}}")
        for i in range(1, 8):
            chain = em.name(register, f"__builtin_ia32_vec_set_v16qi({chain}, (char){lanes[first + i]}, {i})")
        whole = em.name(em.vector_type(kind, 16), f"({em.vector_type(kind, 16)}){chain}")
        parts.append(em.name(part, shuffle(whole, whole, range(8))))
    return em.name(em.vector_type(kind, count), join(em, kind, parts, 8))


def _gather_helper(em: Emitter, kind: str, count: int) -> str:
    """A gather of whole vectors. Indices leave the vector in pairs, and elements join it in fours: a third faster than the instruction."""
    element = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}[kind]
    four, pairs, vector = em.vector_type(kind, 4), em.vector_type("i64", count // 2), em.vector_type(kind, count)
    lines = [f"const {pairs} q = ({pairs})x;"]
    for k in range(count // 4):
        lanes = ", ".join(f"p[(int32_t)q[{i}]], p[q[{i}] >> 32]" for i in (2 * k, 2 * k + 1))
        lines.append(f"const {four} v{count}_{k} = {{{lanes}}};")
    parts = [f"v{count}_{k}" for k in range(count // 4)]
    lines.append(f"return {join(em, kind, parts, 4)};")
    return em.unit.vector_helper(f"hl_gather_{vector}", vector, f"const {element} *p, {em.vector_type('i32', count)} x", " ".join(lines))
