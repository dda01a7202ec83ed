"""Operations on slices of vectors as C text: broadcasts, shuffles, conversions between widths, minimum, maximum, choice.

Compilers take a conversion by more than a factor of two apart into scalars, and values wider than a register through the stack, so
conversions go in steps of two and narrowing packs pairs of registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ir import build as b
from ..ir import nodes as n
from .ctypes_of import constant, value_type
from .emitter import Emitter, is_atom


def shuffle(a: str, c: str, lanes: Iterable[int]) -> str:
    """Lanes of two vectors of one type; -1 where nobody cares."""
    return f"__builtin_shufflevector({a}, {c}, {', '.join(map(str, lanes))})"


def typed_constant(e: n.Expr) -> str:
    """A literal of exactly the C type of `e`, as arithmetic of a vector with a scalar wants it."""
    text = constant(e)
    return f"({value_type(e.type)}){text}" if e.type.is_int_or_uint() and e.type.bits() < 32 else text


def scalar_operand(em: Emitter, e: n.Expr) -> str:
    """A scalar that is combined with a vector."""
    return typed_constant(e) if isinstance(e, (n.IntImm, n.UIntImm, n.FloatImm)) else em.atom(e, 0, 1)


def operand(em: Emitter, e: n.Expr, start: int, count: int) -> str:
    """A vector operand; the scalar itself for a broadcast, which C operators widen."""
    if isinstance(e, n.Broadcast) and e.value.type.is_scalar():
        return scalar_operand(em, e.value)
    return em.emit(e, start, count)


def splat(em: Emitter, short: str, count: int, scalar: str) -> str:
    """A scalar in every lane. `s - 0`, not `s + 0`: that would turn -0 into 0, so the compiler would have to add."""
    return f"({scalar} - ({em.vector_type(short, count)}){{}})"


def minimum(em: Emitter, ctype: str, a: str, c: str) -> str:
    """a < c ? a : c, as a call of a helper."""
    return _extremum(em, "hl_min", "<", ctype, a, c)


def maximum(em: Emitter, ctype: str, a: str, c: str) -> str:
    """a > c ? a : c, as a call of a helper."""
    return _extremum(em, "hl_max", ">", ctype, a, c)


# Where one operand is constant, gcc makes a comparison and a choice, or a jump, of `a < b ? a : b` for floats. The instruction's suffix,
# its set, more arguments of the builtin; scalars have no builtin that leaves the rest of the register alone.
_FLOAT_EXTREMA = {
    "float": ("ss", "avx", ""), "double": ("sd", "avx", ""),
    "f32x4": ("ps", "sse2", ""), "f32x8": ("ps256", "avx", ""), "f32x16": ("ps512_mask", "avx512f", ", a, (uint16_t)-1, 4"),
    "f64x2": ("pd", "sse2", ""), "f64x4": ("pd256", "avx", ""), "f64x8": ("pd512_mask", "avx512f", ", a, (uint8_t)-1, 4"),
}


def _extremum(em: Emitter, name: str, op: str, ctype: str, a: str, c: str) -> str:
    suffix, needs, more = _FLOAT_EXTREMA.get(ctype, ("", "", ""))
    body = f"return HL_SELECT({ctype}, a {op} b, a, b);" if "x" in ctype else f"return a {op} b ? a : b;"
    own = f"return __builtin_ia32_{name[3:]}{suffix}(a, b{more});" if "x" in ctype else \
        f'__asm__("v{name[3:]}{suffix} %2, %1, %0" : "=x"(a) : "x"(a), "xm"(b)); return a;'
    if needs and em.machine.has(needs):
        body = of_gcc(em, needs, own, body)
    helper = em.unit.vector_helper(f"{name}_{ctype.removesuffix('_t')}", ctype, f"{ctype} a, {ctype} b", body)
    return f"{helper}({a}, {c})"


def of_gcc(em: Emitter, needs: str, own: str, body: str) -> str:
    """The body of a helper: `own`, which has gcc's builtins of an instruction set, where gcc compiles, else `body`."""
    if em.machine.compiler != "any":
        return own if em.machine.compiler == "gcc" else body
    return f"\n#if HL_GCC && defined(__{needs.upper()}__)\n    {own}\n#else\n    {body}\n#endif\n"


def choose(em: Emitter, ctype: str, mask_type: str, m: str, a: str, c: str) -> str:
    """m ? a : c, lane by lane."""
    helper = em.unit.vector_helper(f"hl_select_{ctype}", ctype, f"{mask_type} m, {ctype} a, {ctype} b", f"return HL_SELECT({ctype}, m, a, "
                                                                                                        "b);")
    return f"{helper}({m}, {a}, {c})"


# ---- conversions


def convert(em: Emitter, text: str, source: str, target: str, count: int) -> str:
    """A vector converted as C converts its elements: integers wrap or extend by the sign of the source, floats truncate."""
    while source != target:
        whole = "i32" if target[0] == "f" and source[0] != "f" and int(source[1:]) < 32 else target
        extended = _extend(em, text, source, whole, count)
        if extended is not None:
            text, source = extended, whole
            continue
        widened = _FLOATS.get((source, target, count))
        if widened is not None and em.machine.has(widened[0]) and em.machine.compiler != "clang":
            types = em.vector_type(source, count), em.vector_type(target, count)
            em.vector_type("i32", count)  # what unsigned ones are taken as
            like = em.vector_type(target if target[0] == "f" else "q64", count)
            own = f"(({types[1]})__builtin_ia32_{widened[1].format(like)})"
            return _by_builtin(em, widened[0], *types, text, own.__mod__)
        to_bytes = count == 16 and source in ("i32", "u32") and target in ("i8", "u8")
        if to_bytes and em.machine.has("avx512f") and em.machine.compiler != "clang":
            types = em.vector_type(source, 16), em.vector_type(target, 16)
            wide, none = em.vector_type("i32", 16), f"({em.vector_type('c8', 16)}){{}}"
            own = f"(({types[1]})__builtin_ia32_pmovdb512_mask(({wide})%s, {none}, (uint16_t)-1))"
            return _by_builtin(em, "avx512f", *types, text, own.__mod__)
        step = _next(source, target)
        v = em.vector_type(step, count)
        same = source[1:] == step[1:] and "f" not in (source[0], step[0])
        text = f"({v}){text}" if same else f"__builtin_convertvector({text}, {v})"
        source = step
    return text


# Conversions to twice the width, of which gcc makes scalar ones: the instruction set, and the builtin with its arguments.
_FLOATS = {
    ("f32", "f64", 8): ("avx512f", "cvtps2pd512_mask(%s, ({}){{}}, (uint8_t)-1, 4)"), ("f32", "f64", 4): ("avx", "cvtps2pd256(%s)"),
    ("i32", "f64", 8): ("avx512f", "cvtdq2pd512_mask(%s, ({}){{}}, (uint8_t)-1)"), ("i32", "f64", 4): ("avx", "cvtdq2pd256(%s)"),
    ("u32", "f64", 8): ("avx512f", "cvtudq2pd512_mask((i32x8)%s, ({}){{}}, (uint8_t)-1)"),
    ("f32", "i64", 8): ("avx512dq", "cvttps2qq512_mask(%s, ({}){{}}, (uint8_t)-1, 4)"),
    ("f32", "u64", 8): ("avx512dq", "cvttps2uqq512_mask(%s, ({}){{}}, (uint8_t)-1, 4)"),
}


def _next(source: str, target: str) -> str:
    """The next element type on the way: widths change by two, floats and integers meet at 32 or 64 bits."""
    s, t = int(source[1:]), int(target[1:])
    if source[0] == "f":
        if target[0] == "f" or t >= s:
            return target
        return "i64" if target == "u32" and s == 64 else "i32"
    if target[0] == "f":
        if s < 32:
            return f"{source[0]}{s * 2}" if s * 2 < 32 else "i32"
        return target
    if s == t:
        return target
    return f"{source[0]}{s * 2}" if s < t else f"{target[0]}{s // 2}"


_LETTER = {"8": "b", "16": "w", "32": "d", "64": "q"}


def _by_builtin(em: Emitter, needs: str, source: str, target: str, text: str, own: Callable[[str], str]) -> str:
    """A conversion between types of vectors that gcc has a builtin for."""
    if em.machine.compiler == "gcc":
        return own(text)
    body = of_gcc(em, needs, f"return {own('a')};", f"return __builtin_convertvector(a, {target});")
    return f"{em.unit.vector_helper(f'hl_{target}_of_{source}', target, f'{source} a', body)}({text})"


def _extend(em: Emitter, text: str, source: str, target: str, count: int) -> str | None:
    """Integers widened by one instruction (gcc makes two of the generic form, on halves of the register)."""
    s, t = int(source[1:]), int(target[1:])
    needed = {16: "sse4_1", 32: "avx2", 64: "avx512bw"}.get(count * t // 8)
    if "f" in (source[0], target[0]) or s >= t or needed is None or not em.machine.has(needed) or em.machine.compiler == "clang":
        return None
    types = em.vector_type(source, count), em.vector_type(target, count)
    return _by_builtin(em, needed, *types, text, lambda a: _widened(em, a, source, target, count))


def _widened(em: Emitter, text: str, source: str, target: str, count: int) -> str:
    """By gcc's builtin."""
    s, t = int(source[1:]), int(target[1:])
    size = count * t // 8
    element = "c8" if s == 8 else f"i{s}"
    lanes = max(count, 128 // s)
    if lanes > count and count * s == 64:
        text = f"({em.vector_type('q64', 2)}){{(long long){text}}}"  # gcc folds a load of it into the instruction
    elif lanes > count:
        text = em.named(em.vector_type(source, count), text)
        text = shuffle(text, text, [*range(count), *[-1] * (lanes - count)])
    argument = f"({em.vector_type(element, lanes)}){text}"
    # gcc 12 cannot compile one instruction of a part's load, its extension and a mask, which it makes of them
    if lanes > count and em.machine.has("avx512vl"):
        whole = em.vector_type(element, lanes)
        argument = f'{em.unit.vector_helper(f"hl_apart_{whole}", whole, f"{whole} v", """__asm__("" : "+v"(v)); return v;""")}({argument})'
    builtin = f"__builtin_ia32_pmov{'s' if source[0] == 'i' else 'z'}x{_LETTER[source[1:]]}{_LETTER[target[1:]]}{8 * size}"
    out, result = em.vector_type(target, count), em.vector_type(f"q{t}" if t == 64 else f"i{t}", count)
    if size == 64:
        every_lane = f"(uint{max(count, 8)}_t)-1"
        return f"({out}){builtin}_mask({argument}, ({result}){{}}, {every_lane})"
    return f"({out}){builtin}({argument})"


def narrow(em: Emitter, parts: list[str], source: str, target: str, count: int) -> str:
    """`parts`, registers of `count` integer lanes each, as one vector of half, quarter, ... wide integers (they wrap)."""
    bits, want = int(source[1:]), int(target[1:])
    if em.machine.vector_bytes == 64 and not em.machine.has("avx512vbmi"):  # one instruction narrows a register, but few at a time
        parts = [convert(em, p, source, target, count) for p in parts]
        return join(em, target, parts, count)
    while len(parts) > 1:
        bits //= 2
        short = f"{target[0]}{bits}"
        v = em.vector_type(short, 2 * count)
        halves = [p if p.startswith(f"({v})") else f"({v}){p}" for p in parts]
        parts = [shuffle(x, y, range(0, 4 * count, 2)) for x, y in zip(halves[::2], halves[1::2])]
        count, source = 2 * count, short
    return parts[0] if bits == want else convert(em, parts[0], source, target, count)


# gcc moves both halves to themselves before it shuffles them together, and loads them before. Bytes of the whole -> the instruction
# set, the expression and the types in it.
_JOINED = {
    16: ("sse2", "(q64x2){(long long)a, (long long)b}", [("q64", 2)]),
    32: ("avx", "__builtin_ia32_vinsertf128_si256(__builtin_ia32_si256_si((i32x4)a), (i32x4)b, 1)", [("i32", 4)]),
    64: ("avx512f", "__builtin_ia32_inserti64x4_mask((q64x8)__builtin_ia32_si512_256si((i32x8)a), (q64x4)b, 1, (q64x8){}, (uint8_t)-1)",
         [("q64", 8), ("i32", 8), ("q64", 4)]),
}


def join(em: Emitter, short: str, parts: list[str], count: int) -> str:
    """Vectors of `count` lanes one after the other; a power of two of them."""
    while len(parts) > 1:
        parts = [_joined(em, short, x, y, count) for x, y in zip(parts[::2], parts[1::2])]
        count *= 2
    return parts[0]


def _joined(em: Emitter, short: str, x: str, y: str, count: int) -> str:
    needs, body, words = _JOINED.get(2 * count * int(short[1:]) // 8, ("", "", []))
    if not needs or em.machine.compiler == "clang" or not em.machine.has(needs):
        return shuffle(x, y, range(2 * count))
    for word in words:
        em.vector_type(*word)
    half, whole = em.vector_type(short, count), em.vector_type(short, 2 * count)
    body = of_gcc(em, needs, f"return ({whole}){body};", f"return {shuffle('a', 'b', range(2 * count))};")
    return f"{em.unit.vector_helper(f'hl_join_{whole}', whole, f'{half} a, {half} b', body)}({x}, {y})"


def put_together(em: Emitter, short: str, lanes: list[str]) -> str:
    """A vector of scalars, 16 bytes at a time: C compilers compute all scalars of an initializer before they use the first, and more of
    them than there are registers for go through memory."""
    per = min(len(lanes), 128 // int(short[1:]))
    return join(em, short, [em.from_lanes_raw(short, per, lanes[k:k + per]) for k in range(0, len(lanes), per)], per)


def mask_of_scalar(em: Emitter, text: str, bits: int, count: int) -> str:
    """A mask with one bool in every lane."""
    return splat(em, f"i{bits}", count, f"(int{bits}_t)-({text})")


def resize_mask(em: Emitter, text: str, have: int, bits: int, count: int) -> str:
    """A mask at another width."""
    return convert(em, text, f"i{have}", f"i{bits}", count)


# ---- any lane from anywhere


def pick(em: Emitter, short: str, sources: list[tuple[str, int]], wanted: list[tuple[int, int]]) -> str:
    """A vector whose lane i is lane wanted[i][1] of source wanted[i][0]; sources are (name, lanes) of one element type."""
    count = len(wanted)
    used = sorted({s for s, _ in wanted})
    if count == 1:
        text, lanes = sources[wanted[0][0]]
        return f"{text}[{wanted[0][1]}]" if lanes > 1 else text
    if len(used) == 1:
        text, lanes = sources[used[0]]
        if lanes == count and all(lane == i for i, (_, lane) in enumerate(wanted)):
            return text
        if lanes > 1:
            return shuffle(text, text, [lane for _, lane in wanted])
    if any(sources[s][1] == 1 for s in used) or len(used) > 8:
        elements = [f"{sources[s][0]}[{lane}]" if sources[s][1] > 1 else sources[s][0] for s, lane in wanted]
        return em.name(em.vector_type(short, count), "{" + ", ".join(elements) + "}")
    bytes_ = _pick_bytes(em, short, sources, wanted, used)
    return bytes_ if bytes_ is not None else _pick_in_steps(em, short, sources, wanted, used)


def _pick_in_steps(em: Emitter, short: str, sources: list[tuple[str, int]], wanted: list[tuple[int, int]], used: list[int]) -> str:
    """Two sources first, then one more at a time."""
    count = len(wanted)
    size = max(count, *(sources[s][1] for s in used))
    padded = [_padded(em, short, *sources[s], size) for s in used]
    place = {s: k for k, s in enumerate(used)}
    first = [size * place[s] + lane if place[s] < 2 else -1 for s, lane in wanted]
    if len(used) == 2:
        return shuffle(padded[0], padded[1], first)
    text = em.name(em.vector_type(short, size), shuffle(padded[0], padded[1], [*first, *[-1] * (size - count)]))
    for k in range(2, len(used)):
        lanes = [size + lane if place[s] == k else i if place[s] < k else -1 for i, (s, lane) in enumerate(wanted)]
        last = k == len(used) - 1
        text = shuffle(text, padded[k], lanes if last else [*lanes, *[-1] * (size - count)])
        if not last:
            text = em.name(em.vector_type(short, size), text)
    return text


def _padded(em: Emitter, short: str, text: str, lanes: int, size: int) -> str:
    """A vector with lanes nobody needs after its own. In steps of two: gcc takes larger ones through the stack."""
    while lanes < size:
        to = 2 * lanes if 4 * lanes <= size else size
        text = em.name(em.vector_type(short, to), shuffle(text, text, [*range(lanes), *[-1] * (to - lanes)]))
        lanes = to
    return text


def _pick_bytes(em: Emitter, short: str, sources: list[tuple[str, int]], wanted: list[tuple[int, int]], used: list[int]) -> str | None:
    """Bytes from up to four 16 byte registers: one `pshufb` each, or-ed together."""
    size = int(short[1:]) // 8
    fits = all(sources[s][1] * size == 16 for s in used) and len(wanted) * size == 16 and 2 < len(used) <= 4 and size <= 2
    if not fits or not em.machine.has("ssse3"):
        return None
    c, u = em.vector_type("c8", 16), em.vector_type("u8", 16)
    terms = []
    for s in used:
        lanes = [k for w, lane in wanted for k in ([lane * size + j for j in range(size)] if w == s else [-128] * size)]
        terms.append(f"({u})__builtin_ia32_pshufb128(({c}){sources[s][0]}, ({c}){{{', '.join(map(str, lanes))}}})")
    return f"({em.vector_type(short, len(wanted))})({' | '.join(terms)})"


def is_simple(text: str) -> bool:
    """Whether repeating an operand costs nothing."""
    return is_atom(text)


def const_operand(t: n.Expr, value: int) -> str:
    """An integer constant of the element type of `t`, typed."""
    return typed_constant(b.const(t.type.element_of(), value))
