"""The forms of expression nodes: arithmetic, comparisons, logic, choice, variables, lets."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.types import Type
from . import halves, narrow_lanes
from . import vectors as v
from .ctypes_of import is_half, short_type, value_bits, value_type
from .emitter import HANDLERS, MASKS, Emitter, Pieces, is_atom

_INFIX = {n.Add: "+", n.Sub: "-", n.Mul: "*", n.Div: "/"}
_COMPARE = {n.EQ: "==", n.NE: "!=", n.LT: "<", n.LE: "<=", n.GT: ">", n.GE: ">="}


def finish(em: Emitter, t: Type, count: int, text: str) -> str:
    """A result as an operand: narrow scalars wrap, half floats are rounded."""
    if is_half(t):
        return round_half(em, t, count, text)
    return f"({value_type(t)})({text})" if count == 1 and t.is_int_or_uint() and t.bits() < 32 else f"({text})"


def round_half(em: Emitter, t: Type, count: int, text: str) -> str:
    """A float rounded to a half float, still as a float."""
    if count > 1:
        return halves.rounded(em, t, count, text)
    return f"{em.unit.helper('hl_round_bf16' if t.is_bfloat() else 'hl_round_f16')}({text})"


def arithmetic(em: Emitter, e: Any, start: int, count: int) -> str:
    """+, -, * and float /."""
    if count == 1:
        return finish(em, e.type, 1, f"{em.emit(e.a, start, 1)} {_INFIX[type(e)]} {em.emit(e.b, start, 1)}")
    if is_splat(e.a) and is_splat(e.b):
        return splat_of(em, type(e)(e.a.value, e.b.value), count)
    x, y = v.operand(em, e.a, start, count), v.operand(em, e.b, start, count)
    halfwords = type(e) is n.Mul and e.type.bits() == 16 and not e.type.is_float()
    if halfwords and isinstance(e.b, n.Broadcast):
        k = b.as_int(e.b.value)
        y = y if k is None else _multiplier(em, e.b, k)
    text = f"{x} {_INFIX[type(e)]} {y}"
    return finish(em, e.type, count, text)


def is_splat(e: n.Expr) -> bool:
    """A broadcast of a scalar."""
    return isinstance(e, n.Broadcast) and e.value.type.is_scalar()


def splat_of(em: Emitter, e: n.Expr, count: int) -> str:
    """A scalar expression in every lane."""
    return v.splat(em, short_type(e.type), count, v.scalar_operand(em, e))


def division(em: Emitter, e: Any, start: int, count: int) -> str:
    """/ and %: Euclidean for integers, with x/0 = x%0 = 0."""
    t, is_div = e.type, type(e) is n.Div
    if t.is_float():
        return arithmetic(em, e, start, count) if is_div else _float_modulo(em, e, start, count)
    if t.is_bool():
        raise InternalError("bools are divided; please report this with the program")
    d = b.as_int(e.b)
    if d == 0:
        return "0" if count == 1 else f"({em.c_type(t, count)}){{}}"
    if d is not None and d > 0:
        return by_constant(em, e, d, start, count)
    if d is not None and d > t.min_value():  # remainders are never negative
        positive = em.written_out((e, "positive"), lambda: _by_positive(e, -d), (e.a,))
        assert positive is not None
        return em.emit(positive, start, count)
    helper = em.unit.helper(f"hl_{'div' if is_div else 'mod'}_{short_type(t)}")
    if count == 1:
        return f"{helper}({em.emit(e.a, start, 1)}, {em.emit(e.b, start, 1)})"
    return lane_by_lane(em, t, count, helper, [em.lanes(e.a, start, count), em.lanes(e.b, start, count)])


def lane_by_lane(em: Emitter, t: Type, count: int, function: str, args: list[list[str]]) -> str:
    """A scalar function applied to each lane."""
    return em.from_lanes(t, count, [f"{function}({', '.join(each)})" for each in zip(*args)])


def _by_positive(e: Any, d: int) -> n.Expr:
    """e.a / -d or e.a % -d."""
    positive = type(e)(e.a, b.const(e.type, d))
    return n.Sub(b.const(e.type, 0), positive) if type(e) is n.Div else positive


def by_constant(em: Emitter, e: Any, d: int, start: int, count: int) -> str:
    """Division by, or remainder of, a positive constant; signed: complement negative numbers, so that truncation rounds down."""
    x, t, is_div = e.a, e.type, type(e) is n.Div
    literal, one_less = v.const_operand(x, d), v.const_operand(x, d - 1)
    if d & (d - 1) == 0:
        a = em.emit(x, start, count)
        return finish(em, t, count, f"{a} >> {d.bit_length() - 1}" if is_div else f"{a} & {one_less}")
    if count > 1 and t.bits() < 32:
        wide = em.written_out((e, "narrow", narrow_lanes.splits(t, count)), lambda: _narrow_division(x, d, is_div, count), (x,))
        if wide is not None:
            return em.emit(wide, start, count)
    ctype = em.c_type(t, count)
    if t.is_uint():
        a = em.emit(x, start, count)
        if is_div or count == 1:
            return finish(em, t, count, f"{a} {'/' if is_div else '%'} {literal}")
        a = em.named(ctype, a)
        return f"({a} - {a} / {literal} * {_multiplier(em, x, d)})"
    a = em.atom(x, start, count)
    sign = em.name(ctype, finish(em, t, count, f"{a} >> {t.bits() - 1}"))
    quotient = finish(em, t, count, f"(({a} ^ {sign}) / {literal}) ^ {sign}")
    return quotient if is_div else finish(em, t, count, f"{a} - {quotient} * {_multiplier(em, x, d) if count > 1 else literal}")


def _narrow_division(x: n.Expr, d: int, is_div: bool, count: int) -> n.Expr | None:
    """Bytes divide as halfwords; halfwords by a multiplication that compilers do not know."""
    t = x.type
    if t.bits() == 8:
        return narrow_lanes.byte_division(x, d, is_div) if narrow_lanes.splits(t, count) else None
    found = narrow_lanes.quotient(x, d) if t.is_uint() else None
    return found if is_div or found is None else n.Sub(x, n.Mul(found, b.const(t, d)))


def _multiplier(em: Emitter, x: n.Expr, k: int) -> str:
    """A constant that vectors like `x` are multiplied by: 16 bits multiply in one instruction, which gcc takes for slow."""
    constant = b.const(x.type.element_of(), k)
    slow = x.type.bits() == 16 and em.machine.compiler != "clang" and bin(abs(k)).count("1") > 1
    return em.factor(constant) if slow else v.typed_constant(constant)


def _float_modulo(em: Emitter, e: n.Mod, start: int, count: int) -> str:
    t = e.type
    helper = em.unit.helper(f"hl_mod_f{value_bits(t)}")
    if count == 1:
        return finish(em, t, 1, f"{helper}({em.emit(e.a, start, 1)}, {em.emit(e.b, start, 1)})")
    text = lane_by_lane(em, t, count, helper, [em.lanes(e.a, start, count), em.lanes(e.b, start, count)])
    return round_half(em, t, count, text) if is_half(t) else text


def extremum(em: Emitter, e: Any, start: int, count: int) -> str:
    """min: a < b ? a : b, so b where either is NaN; max likewise. What limits nothing is left out."""
    if e.type.is_float() and em.unit.float_ranges.holds(e):
        return em.emit(e.a, start, count)
    if e.type.is_bool():
        return f"({em.emit(e.a, start, 1)} {'&' if type(e) is n.Min else '|'} {em.emit(e.b, start, 1)})"
    form = v.minimum if type(e) is n.Min else v.maximum
    return form(em, em.c_type(e.type, count), em.emit(e.a, start, count), em.emit(e.b, start, count))


def comparison(em: Emitter, e: Any, start: int, count: int) -> str:
    """A scalar comparison."""
    return f"({em.emit(e.a, start, 1)} {_COMPARE[type(e)]} {em.emit(e.b, start, 1)})"


def comparison_mask(em: Emitter, e: Any, start: int, count: int, bits: int) -> str:
    """A comparison of vectors, made at the width of what is compared, then brought to the width wanted."""
    op = _COMPARE[type(e)]
    if e.a.type.is_bool():
        x, y = em.mask(e.a, start, count, bits), em.mask(e.b, start, count, bits)
        return {
            "==": f"(~({x} ^ {y}))",
            "!=": f"({x} ^ {y})",
            "<": f"(~{x} & {y})",
            "<=": f"(~{x} | {y})",
            ">": f"({x} & ~{y})",
            ">=": f"({x} | ~{y})",
        }[op]
    if is_splat(e.a) and is_splat(e.b):
        return v.mask_of_scalar(em, em.scalar(type(e)(e.a.value, e.b.value)), bits, count)

    def compare(first: int, size: int) -> str:
        return f"({v.operand(em, e.a, first, size)} {op} {v.operand(em, e.b, first, size)})"

    return mask_at_width(em, compare, value_bits(e.a.type), start, count, bits)


def mask_at_width(em: Emitter, make: Any, have: int, start: int, count: int, bits: int) -> str:
    """A mask of `bits` from `make(first, size)`, which makes masks of `have` bits for slices that fit a register."""
    size = min(count, em.machine.native_lanes(have))
    if have <= bits or size == count:
        return v.resize_mask(em, make(start, count), have, bits, count)
    parts = [em.name(em.vector_type(f"i{have}", size), make(start + k, size)) for k in range(0, count, size)]
    return v.narrow(em, parts, f"i{have}", f"i{bits}", size)


def logic(em: Emitter, e: Any, start: int, count: int) -> str:
    """Scalar and, or."""
    return f"({em.emit(e.a, start, 1)} {'&&' if type(e) is n.And else '||'} {em.emit(e.b, start, 1)})"


def logic_mask(em: Emitter, e: Any, start: int, count: int, bits: int) -> str:
    """and, or (and min, max) of masks."""
    op = "&" if type(e) in (n.And, n.Min, n.Mul) else "|"
    return f"({em.mask(e.a, start, count, bits)} {op} {em.mask(e.b, start, count, bits)})"


def negation(em: Emitter, e: n.Not, start: int, count: int) -> str:
    """Scalar not."""
    return f"(!{em.emit(e.a, start, 1)})"


def negation_mask(em: Emitter, e: n.Not, start: int, count: int, bits: int) -> str:
    """not of a mask."""
    return f"(~{em.mask(e.a, start, count, bits)})"


def select(em: Emitter, e: n.Select, start: int, count: int) -> str:
    """condition ? a : b; both are evaluated."""
    t = e.type
    if count == 1:
        c = em.emit(e.condition, start if e.condition.type.is_vector() else 0, 1)
        return f"({c} ? {em.emit(e.true_value, start, 1)} : {em.emit(e.false_value, start, 1)})"
    x, y = em.emit(e.true_value, start, count), em.emit(e.false_value, start, count)
    if e.condition.type.is_scalar():
        return f"({em.scalar(e.condition)} ? {x} : {y})"
    bits = value_bits(t)
    return v.choose(em, em.c_type(t, count), em.vector_type(f"i{bits}", count), em.mask(e.condition, start, count, bits), x, y)


def select_mask(em: Emitter, e: n.Select, start: int, count: int, bits: int) -> str:
    """A choice between masks."""
    x, y = em.mask(e.true_value, start, count, bits), em.mask(e.false_value, start, count, bits)
    if e.condition.type.is_scalar():
        return f"({em.scalar(e.condition)} ? {x} : {y})"
    ctype = em.vector_type(f"i{bits}", count)
    return v.choose(em, ctype, ctype, em.mask(e.condition, start, count, bits), x, y)


# ---- names


def variable(em: Emitter, e: n.Variable, start: int, count: int) -> str:
    """A name, or a slice of a vector that was named in parts."""
    if e.type.is_scalar():
        found = em.names.get(e.name)
        if found is None:
            raise InternalError(f"{e.name} is used but not bound in the lowered code; please report this with the program")
        return found
    alias = em.aliases.get(e.name)
    if alias is not None:
        return em.emit(alias, start, count)
    pieces = em.pieces[e.name]
    if e.type.is_bool():
        return f"(-{_piece(em, pieces, f'i{pieces.bits}', start, 1, e.type.lanes())})"
    return _piece(em, pieces, short_type(e.type), start, count, e.type.lanes())


def variable_mask(em: Emitter, e: n.Variable, start: int, count: int, bits: int) -> str:
    """A bool vector that was named in parts."""
    alias = em.aliases.get(e.name)
    if alias is not None:
        return em.mask(alias, start, count, bits)
    pieces = em.pieces[e.name]
    return mask_at_width(
        em, lambda first, size: _piece(em, pieces, f"i{pieces.bits}", first, size, e.type.lanes()), pieces.bits, start, count, bits
    )


def _piece(em: Emitter, pieces: Pieces, short: str, start: int, count: int, lanes: int) -> str:
    """Lanes of a vector held in parts."""
    sources: list[tuple[str, int]] = []
    starts: list[int] = []
    first = 0
    for name, size in zip(pieces.names, piece_sizes(lanes, pieces.width)):
        sources.append((name, size))
        starts.append(first)
        first += size
    wanted = []
    for lane in range(start, start + count):
        k = next(k for k in range(len(starts) - 1, -1, -1) if starts[k] <= lane)
        wanted.append((k, lane - starts[k]))
    return v.pick(em, short, sources, wanted)


def piece_sizes(lanes: int, width: int) -> list[int]:
    """Lanes of each part of a vector held in parts of `width`."""
    out = []
    while lanes:
        while width > lanes:
            width //= 2
        out.append(width)
        lanes -= width
    return out


def bind(em: Emitter, name: str, value: n.Expr) -> None:
    """Compute a let's value now."""
    em.bound(name)
    t = value.type
    if t.is_vector():
        bits = mask_home(em, value) if t.is_bool() else value_bits(t)
        width = em.machine.native_lanes(bits)
        names = []
        for start, count in em.slices(t, bits):
            if t.is_bool():
                text, ctype = (
                    em.mask(value, start, count, bits) if count > 1 else f"-(int{bits}_t){em.emit(value, start, 1)}",
                    em.vector_type(f"i{bits}", count),
                )
                ctype = ctype if count > 1 else f"int{bits}_t"
            else:
                text, ctype = em.emit(value, start, count), em.c_type(t, count)
            names.append(text if is_atom(text) and not text[0].isdigit() else em.name(ctype, text, name))
        em.pieces[name] = Pieces(width, bits, names)
        return
    text = em.scalar(value)
    em.names[name] = text if is_atom(text) else em.name(value_type(t), text, name)


def mask_home(em: Emitter, e: n.Expr) -> int:
    """The width of mask at which a bool vector is computed without conversion."""
    if isinstance(e, (n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE)):
        return value_bits(e.a.type) if not e.a.type.is_bool() else mask_home(em, e.a)
    if isinstance(e, (n.And, n.Or)):
        return min(mask_home(em, e.a), mask_home(em, e.b))
    if isinstance(e, n.Not):
        return mask_home(em, e.a)
    if isinstance(e, n.Load):
        return 8
    if isinstance(e, n.Variable) and e.name in em.pieces:
        return em.pieces[e.name].bits
    return 32


def let(em: Emitter, e: n.Let, start: int, count: int) -> str:
    """A let inside an expression: scalars are named, vectors computed where they are used."""
    _let(em, e)
    return em.emit(e.body, start, count)


def let_mask(em: Emitter, e: n.Let, start: int, count: int, bits: int) -> str:
    """A let around a bool vector."""
    _let(em, e)
    return em.mask(e.body, start, count, bits)


def _let(em: Emitter, e: n.Let) -> None:
    if e.value.type.is_vector():
        em.aliases[e.name] = e.value
        return
    text = em.emit(e.value, 0, 1)
    if not is_atom(text):
        known = em.memo.get((e.value, 0, 1))
        text = known or em.name(value_type(e.value.type), text, e.name)
        if known is None:
            em.remember((e.value, 0, 1), text, e.value)
    em.bound(e.name)
    em.names[e.name] = text


HANDLERS.update(
    {
        n.Variable: variable,
        n.Sub: arithmetic,
        n.Div: division,
        n.Mod: division,
        n.Min: extremum,
        n.Max: extremum,
        n.And: logic,
        n.Or: logic,
        n.Not: negation,
        n.Select: select,
        n.Let: let,
    }
)
for _kind in _COMPARE:
    HANDLERS[_kind] = comparison
    MASKS[_kind] = comparison_mask
MASKS.update({
    n.Variable: variable_mask, n.And: logic_mask, n.Or: logic_mask,
    n.Min: logic_mask, n.Max: logic_mask, n.Not: negation_mask, n.Select: select_mask, n.Let: let_mask,
})
