"""Calls in C, first part: which form each gets; intrinsics that are control flow or talk to the outside."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import shared_choices
from ..ir.intrinsics import ExternFunction
from . import expand, externs, intrinsics, narrow_lanes
from .addresses import pointer, wide
from .ctypes_of import constant, is_half, memory_type, value_type
from .emitter import HANDLERS, MASKS, Emitter, Key
from .memory import to_memory

Form = Callable[[Emitter, n.Call, int, int], str]
MaskForm = Callable[[Emitter, n.Call, int, int, int], str]


def call(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """A slice of a call's value."""
    if isinstance(e.func, ExternFunction):
        return externs.call(em, e, e.func, start, count)
    if e.name in expand.IDENTITIES:
        em.unit.strict |= e.name == "strict_float"
        return em.emit(e.args[0], start, count)
    special = _SPECIAL.get(e.name) or intrinsics.form_of(e)
    if special is not None:
        return special(em, e, start, count)
    if count > 1:
        text = intrinsics.instruction(em, e, start, count)
        if text is not None:
            return text
        if e.name in ("mul_shift_right", "rounding_mul_shift_right") and narrow_lanes.splits(e.type, count):
            pairs = em.written_out((e, "pairs"), lambda: narrow_lanes.byte_product(e), e.args)
            if pairs is not None:
                return em.emit(pairs, start, count)
    if e.name in expand.RULES:
        return em.emit(expanded(em, e), start, count)
    if e.call_type is n.CallType.Extern:
        return runtime_call(em, e)
    raise InternalError(f"code generation has no form for the intrinsic {e.name}; please report this with the program")


def call_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    """A slice of a bool vector that a call makes."""
    if e.name in expand.IDENTITIES and not isinstance(e.func, ExternFunction):
        return em.mask(e.args[0], start, count, bits)
    special = _MASKS.get(e.name) or intrinsics.MASK_FORMS.get(e.name)
    if special is not None:
        return special(em, e, start, count, bits)
    if e.name in expand.RULES:
        return em.mask(expanded(em, e), start, count, bits)
    return em.mask_from_lanes(count, bits, [em.emit(e, start + i, 1) for i in range(count)])


def expanded(em: Emitter, e: n.Call) -> n.Expr:
    """An intrinsic written out in plain nodes; what these use several times will be named."""
    found = em.written_out((e, "expanded"), lambda: expand.RULES[e.name](e), e.args)
    assert found is not None
    return found


# Accessors of a buffer, written as what they read: that compiles faster than calls of inline functions.
_READS = {"_halide_buffer_get_host": "{0}->host", "_halide_buffer_is_bounds_query": "({0}->host == HL_NULL && {0}->device == 0)",
          **{f"_halide_buffer_get_{what}": f"{{0}}->dim[{{1}}].{what}" for what in ("min", "extent", "stride")}}


def _read_buffer(em: Emitter, e: n.Call) -> str:
    handle, own = em.scalar(e.args[0]), getattr(e.args[0], "name", "").removesuffix(".buffer") in em.arguments
    return _READS[e.name].format(handle if own else f"((const struct halide_buffer_t *){handle})", *map(em.scalar, e.args[1:]))


def runtime_call(em: Emitter, e: n.Call) -> str:
    """A function of the runtime, by name."""
    if any(a.type.is_vector() for a in e.args):
        raise InternalError(f"{e.name} was vectorized; please report this with the program")
    if e.name in _READS:
        return _read_buffer(em, e)
    args = [em.scalar(a) for a in e.args]
    if e.name.startswith(("halide_error_", "halide_trace", "hl_check_")):
        args = [em.context] + [
            f"(const char *){a}" if x.type.is_handle() and not isinstance(x, n.StringImm) else a for a, x in zip(args, e.args)
        ]
    elif not e.name.startswith("_halide_buffer_"):
        raise InternalError(f"code generation does not know the function {e.name}; please report this with the program")
    return f"{e.name}({', '.join(args)})"


# ---- control flow


def _if_then_else(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """Only the chosen side is evaluated, loads and all."""
    if e.args[0].type.is_vector() and count > 1:
        return em.emit(n.Select(e.args[0], e.args[1], _otherwise(e)), start, count)
    return _branches(em, e, em.c_type(e.type, count), lambda side: em.emit(side, start, count), (e, start, count))


def _if_then_else_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    if e.args[0].type.is_vector():
        return em.mask(n.Select(e.args[0], e.args[1], _otherwise(e)), start, count, bits)
    return _branches(em, e, em.vector_type(f"i{bits}", count), lambda side: em.mask(side, start, count, bits), (e, start, count, bits))


def _otherwise(e: n.Call) -> n.Expr:
    return e.args[2] if len(e.args) > 2 else b.const(e.type, 0)


def _branches(em: Emitter, e: n.Call, ctype: str, value: Callable[[n.Expr], str], key: Key) -> str:
    for c in shared_choices(e):  # once, in front: a tree of shared ones would be written out for every path through it
        if c.type.is_scalar():
            em.emit(c, 0, 1)
        elif c.type.lanes() == e.type.lanes() and c.type.is_bool() == e.type.is_bool():
            value(c)
    condition = em.emit(e.args[0], key[1] if e.args[0].type.is_vector() else 0, 1)
    name = em.unit.temporary()
    em.line(f"{ctype} {name};")
    em.open(f"if ({condition}) {{")
    em.line(f"{name} = {value(e.args[1])};")
    em.close("} else {")
    em.reopen()
    em.line(f"{name} = {value(_otherwise(e))};")
    em.close()
    em.remember(key, name, e)
    return name


def _return_second(em: Emitter, e: n.Call, start: int, count: int) -> str:
    _evaluate_first(em, e, start, count)
    return em.emit(e.args[1], start, count)


def _return_second_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    _evaluate_first(em, e, start, count)
    return em.mask(e.args[1], start, count, bits)


def _evaluate_first(em: Emitter, e: n.Call, start: int, count: int) -> None:
    first = e.args[0]
    if first.type.is_scalar():
        em.discard(em.scalar(first))
    elif first.type.is_bool() and count > 1:
        em.discard(em.mask(first, start, count, 32))
    else:
        em.discard(em.emit(first, start, count))


def _require(em: Emitter, e: n.Call, start: int, count: int) -> str:
    _check(em, e, start, count)
    return em.emit(e.args[1], start, count)


def _require_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    _check(em, e, start, count)
    return em.mask(e.args[1], start, count, bits)


def _check(em: Emitter, e: n.Call, start: int, count: int) -> None:
    """Leave the pipeline with the error's code unless the condition holds in every lane."""
    conditions = em.lanes(e.args[0], start, count) if e.args[0].type.is_vector() else [em.scalar(e.args[0])]
    em.open(f"if (HL_UNLIKELY(!({' && '.join(conditions)}))) {{")
    em.line(f"return {em.scalar(e.args[2])};")
    em.close()


# ---- the outside


def printed(em: Emitter, args: tuple[n.Expr, ...], lane: int) -> str:
    """The letters of the kinds and the values, for the runtime's variadic printer."""
    kinds, values = "", []
    for a in args:
        t = a.type.element_of()
        x = constant(a) if isinstance(a, n.StringImm) else em.emit(a, lane if a.type.is_vector() else 0, 1)
        if t.is_handle():
            kinds += "s" if isinstance(a, n.StringImm) or (isinstance(a, n.Call) and a.name == "stringify") else "p"
        elif t.is_bool():
            kinds, x = kinds + "b", f"(int){x}"
        elif is_half(t):
            kinds, x = kinds + ("g" if t.is_bfloat() else "h"), f"(int){to_memory(em, t, x)}"
        elif t.is_float():
            kinds, x = kinds + ("e" if t.bits() == 64 else "f"), f"(double){x}"
        else:
            kinds, x = kinds + ("i" if t.is_int() else "u"), f"({'int64_t' if t.is_int() else 'uint64_t'}){x}"
        values.append(x)
    return ", ".join([f'"{kinds}"', *values])


def _print(em: Emitter, e: n.Call, start: int, count: int) -> str:
    args = _print_lines(em, e, start, count)
    return em.emit(args[0], start, count)


def _print_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    args = _print_lines(em, e, start, count)
    return em.mask(args[0], start, count, bits)


def _print_lines(em: Emitter, e: n.Call, start: int, count: int) -> tuple[n.Expr, ...]:
    conditional = e.name == "print_when"
    args = e.args[1:] if conditional else e.args
    for lane in range(start, start + count):
        if conditional:
            condition = em.emit(e.args[0], lane if e.args[0].type.is_vector() else 0, 1)
            em.open(f"if ({condition}) {{")
        em.line(f"hl_print({em.context}, {printed(em, args, lane)});")
        if conditional:
            em.close()
    return args


def _stringify(em: Emitter, e: n.Call, start: int, count: int) -> str:
    return f"((void *)hl_stringify({printed(em, e.args, start)}))"


def _trace(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """trace(func, event, parent, value index, type code, bits, tag, number of coordinates, coordinates..., [value])."""
    func, kind, parent, value_index, code, bits, tag, dimensions = e.args[:8]
    amount = b.as_int(dimensions) or 0
    coordinates, value = e.args[8:8 + amount], e.args[8 + amount:]
    lanes = max([x.type.lanes() for x in e.args[8:]], default=1)
    where, what = "HL_NULL", "HL_NULL"
    if coordinates:
        where = em.unit.temporary()
        texts = [x for c in coordinates for x in (em.lanes(c, 0, lanes) if lanes > 1 else [em.scalar(c)])]
        em.line(f"int {where}[{len(texts)}] = {{{', '.join(texts)}}};")
    if value:
        t, what = value[0].type, em.unit.temporary()
        texts = [to_memory(em, t, x) for x in (em.lanes(value[0], 0, lanes) if lanes > 1 else [em.scalar(value[0])])]
        element = value_type(t) if t.is_handle() else memory_type(t)
        em.line(f"{element} {what}[{lanes}] = {{{', '.join(texts)}}};")
    fields = [em.scalar(x) for x in (code, bits)] + [str(lanes)] + [em.scalar(x) for x in (kind, parent, value_index)]
    last = f"{amount * lanes}, (const char *){em.scalar(tag)}"
    text = f"halide_trace_helper({em.context}, {em.scalar(func)}, {what}, {where}, {', '.join(fields)}, {last})"
    name = em.name("int32_t", text)
    em.remember((e, start, count), name, e)
    return name


def _new_buffer(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """new_buffer(label, host, type code, bits, min, extent, stride, ...): a buffer on the stack, for an extern stage."""
    label, host, code, bits, *shape = e.args
    pointer = (
        "HL_NULL" if b.as_const(host) == 0 else f"(uint8_t *){em.names[host.name] if isinstance(host, n.Variable) else em.scalar(host)}"
    )
    dims = _dimensions(em, [em.scalar(x) for x in shape])
    name = em.unit.fresh("buffer")
    em.line(f"struct halide_buffer_t {name} = {{0}}; /* {constant(label)} */")
    em.line(f"{name}.host = {pointer}; {name}.type.code = {em.scalar(code)}; {name}.type.bits = {em.scalar(bits)}; {name}.type.lanes = 1;")
    em.line(f"{name}.dimensions = {len(shape) // 3}; {name}.dim = {dims};")
    return em.name("void *", f"(void *)&{name}")


def _dimensions(em: Emitter, texts: list[str]) -> str:
    """An array of dimensions; at least one, so that it is an array."""
    name, rows = em.unit.fresh("dimensions"), [texts[i:i + 3] for i in range(0, len(texts), 3)] or [["0"] * 3]
    em.line(f"halide_dimension_t {name}[{len(rows)}] = {{{', '.join('{' + ', '.join(row) + ', 0}' for row in rows)}}};")
    return name


def _part_of_buffer(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """part(buffer, min, extent, ...): a buffer on the stack that is a part of another."""
    whole, shape = em.named("void *", em.scalar(e.args[0])), [em.scalar(x) for x in e.args[1:]]
    name, count = em.unit.fresh("part"), len(shape) // 2
    source = f"((struct halide_buffer_t *){whole})"
    rows = [[shape[2 * d], shape[2 * d + 1], f"{source}->dim[{d}].stride"] for d in range(count)]
    dims = _dimensions(em, [text for row in rows for text in row])
    em.line(f"struct halide_buffer_t {name} = *{source};")
    em.line(f"{name}.dim = {dims}; {name}.flags = 0;")
    for d in range(count):
        em.line(f"{name}.host += (int64_t)({shape[2 * d]} - {source}->dim[{d}].min) * {source}->dim[{d}].stride * (({source}->type.bits + "
                "7) / 8);")
    return em.name("void *", f"(void *)&{name}")


def _memo(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """memo_fetch(first, last, key...) and memo_keep(first, last, has eviction key, eviction key, key...)."""
    first, last = e.args[:2]
    assert isinstance(first, n.Load) and isinstance(last, n.Load)
    p, t = pointer(em, first.name, first.type), memory_type(first.type)
    low, high = (em.named("int64_t", wide(em, x.index)) for x in (first, last))
    evicted, words = ((), e.args[2:]) if e.name == "memo_fetch" else (e.args[2:4], e.args[4:])
    key = em.unit.temporary()
    em.line(f"const int64_t {key}[{len(words)}] = {{{', '.join(map(em.scalar, words))}}};")
    more = "".join(f", {em.scalar(x)}" for x in evicted)
    text = f"hl_{e.name}({key}, {len(words)}, {p} + {low}, ({high} - {low} + 1) * (int64_t)sizeof({t}){more})"
    name = em.name(value_type(e.type), f"({text}) != 0" if e.type.is_bool() else text)
    em.remember((e, start, count), name, e)
    return name


def _semaphore(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """semaphores(group, counts...), semaphore_acquire(group, i), semaphore_release(group, i)."""
    group = e.args[0]
    assert isinstance(group, n.Load)
    p = em.names[group.name]
    if e.name == "semaphores":
        counts = em.unit.temporary()
        em.line(f"const int32_t {counts}[{len(e.args) - 1}] = {{{', '.join(map(em.scalar, e.args[1:]))}}};")
        return em.name("int32_t", f"hl_semaphores_init({p}, {len(e.args) - 1}, {counts})")
    return em.name("int32_t", f"hl_{e.name}({p}, {em.scalar(e.args[1])})")


def _debug_to_file(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """debug_to_file(name, first, [extent, second]...)."""
    filename, first, *shape = e.args
    assert isinstance(first, n.Load)
    t, origin = first.type, em.named("int64_t", wide(em, first.index))
    words = []
    for extent, second in zip(shape[::2], shape[1::2]):
        assert isinstance(second, n.Load)
        words += [em.scalar(extent), f"{wide(em, second.index)} - {origin}"]
    table = em.unit.temporary()
    em.line(f"const int64_t {table}[{len(words) or 1}] = {{{', '.join(words) or '0'}}};")
    p = pointer(em, first.name, t)
    name = em.name("int32_t", f"hl_debug_to_file((const char *){em.scalar(filename)}, {p} + {origin}, {t.code().value}, {t.bits()}, "
                              f"{len(shape) // 2}, {table})")
    em.remember((e, start, count), name, e)
    return name


def _prefetch(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """prefetch(load): no effect but on caches."""
    place = e.args[0]
    assert isinstance(place, n.Load)
    em.line(f"__builtin_prefetch({pointer(em, place.name, place.type)} + {wide(em, place.index)});")
    return "0"


def _undef(em: Emitter, e: n.Call, start: int, count: int) -> str:
    """No value is better than any other; stores of it were dropped before."""
    return "0" if count == 1 else f"(({em.c_type(e.type, count)}){{}})"


def _undef_mask(em: Emitter, e: n.Call, start: int, count: int, bits: int) -> str:
    return f"(({em.vector_type(f'i{bits}', count)}){{}})"


def _user_context(em: Emitter, e: n.Call, start: int, count: int) -> str:
    return f"((void *){em.context})"


_SPECIAL: dict[str, Form] = {
    "if_then_else": _if_then_else,
    "return_second": _return_second,
    "require": _require,
    "print": _print,
    "print_when": _print,
    "stringify": _stringify,
    "trace": _trace,
    "undef": _undef,
    "user_context_value": _user_context,
    "_halide_buffer_new": _new_buffer,
    "_halide_buffer_part": _part_of_buffer,
    "memo_fetch": _memo,
    "memo_keep": _memo,
    "debug_to_file": _debug_to_file,
    "prefetch": _prefetch,
    "semaphores": _semaphore,
    "semaphore_acquire": _semaphore,
    "semaphore_release": _semaphore,
}
_MASKS: dict[str, MaskForm] = {
    "if_then_else": _if_then_else_mask,
    "return_second": _return_second_mask,
    "require": _require_mask,
    "print": _print_mask,
    "print_when": _print_mask,
    "undef": _undef_mask,
}
HANDLERS[n.Call] = call
MASKS[n.Call] = call_mask
