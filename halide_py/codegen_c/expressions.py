"""Expressions as C: every value is emitted for a slice of lanes that fits the machine's vectors; one lane is a scalar.

`Emitter.emit(e, start, count)` gives the C name of lanes start .. start + count - 1 of `e`, writing what it needs to the current
block first. Values are named once per block (temporaries in SSA style), so shared subexpressions are computed once. Bool
vectors are masks (all ones or zero) as wide as what they were made of. Vector `?:` is GNU C++, which is how the text is compiled.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction
from ..ir.types import Type
from . import calls, expand, memory
from .ctypes_of import c_identifier, constant, is_half, short_type, value_bits, value_type
from .machine import Machine

_INFIX = {n.Add: "+", n.Sub: "-", n.Mul: "*"}
_COMPARE = {n.EQ: "==", n.NE: "!=", n.LT: "<", n.LE: "<=", n.GT: ">", n.GE: ">="}
Piece = tuple[int, int, str]  # first lane, lanes, C name


class Emitter:
    """Writes one C function: its lines, its scopes, and what the translation unit must declare for it."""

    def __init__(self, machine: Machine, unit: Any) -> None:
        self.machine, self.unit = machine, unit
        self.lines: list[str] = []
        self.indent = 1
        self.scopes: list[dict[Any, str]] = [{}]
        self.loaded: list[dict[Any, str]] = [{}]  # values that read memory: good until the next store
        self.names: dict[str, str] = {}
        self.pieces: dict[str, list[Piece]] = {}
        self.element_bytes: dict[int, int] = {}  # lanes -> widest element among values of so many lanes, in the current loop
        self.pointers: dict[str, Type | None] = {}
        self.context = "HL_NULL"

    # -- text

    def line(self, text: str) -> None:
        """One line of the current block."""
        self.lines.append("    " * self.indent + text)

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(text)
        self.indent += 1
        self.scopes.append({})
        self.loaded.append({})

    def close(self, text: str = "}") -> None:
        """End a block."""
        self.scopes.pop()
        self.loaded.pop()
        self.indent -= 1
        self.line(text)

    def forget_loads(self) -> None:
        """Memory changed: values read from it must be read again."""
        self.loaded = [{} for _ in self.loaded]

    def helper(self, name: str) -> str:
        """A helper of the prelude, to be printed."""
        self.unit.helpers.add(name)
        return name

    def vector_type(self, short: str, count: int, unaligned: bool = False) -> str:
        """The name of a vector type: `u16x16`, or `u16x16u` for unaligned access to memory."""
        self.unit.vectors.add((short, count))
        return f"{short}x{count}" + ("u" if unaligned else "")

    def c_type(self, t: Type, count: int) -> str:
        """The C type of a slice of a value."""
        return value_type(t) if count == 1 else self.vector_type(short_type(t), count)

    def temp(self, ctype: str, text: str) -> str:
        """A named constant in the current block."""
        name = f"t{self.unit.count()}"
        self.line(f"const {ctype} {name} = {text};" if not ctype.endswith("*") else f"{ctype}const {name} = ({ctype}){text};")
        return name

    # -- slices

    def slice_lanes(self, lanes: int) -> int:
        """Lanes of a slice of a vector of so many lanes: a power of two that fills the machine's vectors with the widest elements around."""
        fit = max(1, self.machine.vector_bytes // self.element_bytes.get(lanes, 4))
        return min(fit, lanes & -lanes)

    def slices(self, lanes: int) -> Iterator[tuple[int, int]]:
        """(first lane, lanes) of each slice."""
        size = self.slice_lanes(lanes)
        return ((start, size) for start in range(0, lanes, size))

    # -- values

    def scalar(self, e: n.Expr) -> str:
        """A scalar value."""
        return self.emit(e, 0, 1)

    def lane(self, e: n.Expr, i: int) -> str:
        """One lane of a vector as a scalar: bools as 0 or 1."""
        return self.emit(e, i, 1)

    def lookup(self, key: Any) -> str | None:
        """A value that was computed already and still holds."""
        for scope in (self.scopes, self.loaded):
            for names in reversed(scope):
                if key in names:
                    return names[key]
        return None

    def emit(self, e: n.Expr, start: int, count: int) -> str:
        """Lanes start .. start + count - 1 of `e` as a C name or literal."""
        if isinstance(e, (n.IntImm, n.UIntImm, n.FloatImm, n.StringImm)):
            return constant(e)
        key = (e, start, count)
        found = self.lookup(key)
        if found is not None:
            return found
        name = self._emit(e, start, count)
        reads = e.mask & (n.Load.bit | n.Call.bit)
        (self.loaded if reads else self.scopes)[-1][key] = name
        return name

    def _emit(self, e: n.Expr, start: int, count: int) -> str:
        handler = _HANDLERS.get(type(e))
        if handler is None:
            raise InternalError(f"code generation has no form for {type(e).__name__}")
        return handler(self, e, start, count)

    def by_lanes(self, t: Type, count: int, one: Callable[[int], str]) -> str:
        """A slice put together from scalars."""
        if count == 1:
            return one(0)
        if t.is_bool():
            bits = self.mask_bits(count)
            return self.temp(self.vector_type(f"i{bits}", count), "{" + ", ".join(f"(int{bits}_t)-({one(i)})" for i in range(count)) + "}")
        return self.temp(self.c_type(t, count), "{" + ", ".join(one(i) for i in range(count)) + "}")

    def mask_bits(self, count: int) -> int:
        """How wide the elements of a mask made from scalars are."""
        return max(8, min(64, 8 * self.machine.vector_bytes // count)) if count * 4 > self.machine.vector_bytes else 32

    def mask(self, e: n.Expr, start: int, count: int, bits: int) -> str:
        """A slice of a bool vector as a mask of `bits` wide elements."""
        name = self.emit(e, start, count)
        have = self.unit.mask_width[name]
        if have == bits:
            return name
        key = (e, start, count, bits)
        found = self.lookup(key)
        if found is None:
            found = self.convert_mask(name, have, bits, count)
            (self.loaded if e.mask & (n.Load.bit | n.Call.bit) else self.scopes)[-1][key] = found
        return found

    def convert_mask(self, name: str, have: int, bits: int, count: int) -> str:
        """A mask at another width, in steps of two."""
        while have != bits:
            have = have * 2 if have < bits else have // 2
            name = self.named_mask(f"__builtin_convertvector({name}, {self.vector_type(f'i{have}', count)})", have, count)
        return name

    def named_mask(self, text: str, bits: int, count: int) -> str:
        """A mask with its width remembered."""
        name = self.temp(self.vector_type(f"i{bits}", count), text)
        self.unit.mask_width[name] = bits
        return name

    # -- handlers

    def variable(self, e: n.Variable, start: int, count: int) -> str:
        if e.type.is_vector():
            return self.from_pieces(e, start, count)
        return self.names.get(e.name) or c_identifier(e.name)

    def from_pieces(self, e: n.Variable, start: int, count: int) -> str:
        """A slice of a vector that was computed in slices of another size."""
        pieces = self.pieces[e.name]
        for first, size, name in pieces:
            if (first, size) == (start, count):
                return name
        first, size, name = next(p for p in pieces if p[0] <= start < p[0] + p[1])
        if count == 1:
            return f"(({name}[{start - first}]) & 1)" if e.type.is_bool() else f"{name}[{start - first}]"

        def one(i: int) -> str:
            first, size, name = next(p for p in pieces if p[0] <= start + i < p[0] + p[1])
            text = name if size == 1 else f"{name}[{start + i - first}]"
            return f"({text} & 1)" if e.type.is_bool() else text

        return self.remember_mask(self.by_lanes(e.type, count, one), e.type, count)

    def remember_mask(self, name: str, t: Type, count: int) -> str:
        """Note the width of a mask made by `by_lanes`."""
        if t.is_bool() and count > 1:
            self.unit.mask_width[name] = self.mask_bits(count)
        return name

    def broadcast(self, e: n.Broadcast, start: int, count: int) -> str:
        inner = e.value.type.lanes()
        if inner > 1:
            at = start % inner
            if at + count <= inner:
                return self.emit(e.value, at, count)
            return self.remember_mask(self.by_lanes(e.type, count, lambda i: self.lane(e.value, (start + i) % inner)), e.type, count)
        s = self.scalar(e.value)
        if count == 1:
            return s
        key = (e.value, "splat", count)
        found = self.lookup(key)
        if found is None:
            if e.type.is_bool():
                bits = self.mask_bits(count)
                v = self.vector_type(f"i{bits}", count)
                found = self.named_mask(f"({v}){{}} - (int{bits}_t)({s})", bits, count)
            else:
                v = self.c_type(e.type, count)
                found = self.temp(v, f"({value_type(e.type)})({s}) - ({v}){{}}")
            (self.loaded if e.value.mask & (n.Load.bit | n.Call.bit) else self.scopes)[-1][key] = found
        return found

    def ramp(self, e: n.Ramp, start: int, count: int) -> str:
        inner = e.base.type.lanes()
        if count == 1:
            k = start // inner
            base = self.lane(e.base, start % inner)
            if k == 0:
                return base
            return self.temp(value_type(e.type), f"({value_type(e.type)})({base} + {k} * {self.lane(e.stride, start % inner)})")
        v = self.c_type(e.type, count)
        if inner == 1:
            iota = ", ".join(str(start + i) for i in range(count))
            return self.temp(v, f"{self.scalar(e.base)} + {self.scalar(e.stride)} * ({v}){{{iota}}}")
        if start % inner + count <= inner:
            base, stride = self.emit(e.base, start % inner, count), self.emit(e.stride, start % inner, count)
            return self.temp(v, f"{base} + {stride} * ({value_type(e.type)}){start // inner}")
        return self.by_lanes(e.type, count, lambda i: self.ramp(e, start + i, 1))

    def arithmetic(self, e: Any, start: int, count: int) -> str:
        a, c = self.emit(e.a, start, count), self.emit(e.b, start, count)
        return self.finish(e.type, count, f"{a} {_INFIX[type(e)]} {c}")

    def finish(self, t: Type, count: int, text: str) -> str:
        """Name a result; narrow scalars wrap, half floats round."""
        if is_half(t):
            round_ = self.helper("hl_round_bf16" if t.is_bfloat() else "hl_round_f16")
            if count == 1:
                return self.temp("float", f"{round_}({text})")
            wide = self.temp(self.c_type(t, count), text)
            return self.by_lanes(t, count, lambda i: f"{round_}({wide}[{i}])")
        ctype = self.c_type(t, count)
        return self.temp(ctype, f"({ctype})({text})" if count == 1 and t.bits() < 32 else text)

    def division(self, e: Any, start: int, count: int) -> str:
        a, t = self.emit(e.a, start, count), e.type
        is_div = type(e) is n.Div
        if t.is_float():
            c = self.emit(e.b, start, count)
            if is_div:
                return self.finish(t, count, f"{a} / {c}")
            mod = self.helper(f"hl_mod_f{value_bits(t)}")
            if count == 1:
                return self.finish(t, 1, f"{mod}({a}, {c})")
            return self.by_lanes(t, count, lambda i: f"{mod}({a}[{i}], {c}[{i}])")
        d = b.as_int(e.b)
        if d is not None and d > 0:
            return self.by_constant(a, d, t, count, is_div)
        helper = self.helper(f"hl_{'div' if is_div else 'mod'}_{short_type(t)}")
        c = self.emit(e.b, start, count)
        if count == 1:
            return self.temp(value_type(t), f"{helper}({a}, {c})")
        return self.by_lanes(t, count, lambda i: f"{helper}({a}[{i}], {c}[{i}])")

    def by_constant(self, a: str, d: int, t: Type, count: int, is_div: bool) -> str:
        """Division by, or remainder of, a positive constant."""
        ctype, bits = self.c_type(t, count), t.bits()
        element = t.element_of()
        literal = f"({value_type(t)}){constant(b.const(element, d))}"
        if d & (d - 1) == 0:
            text = f"{a} >> {d.bit_length() - 1}" if is_div else f"{a} & ({value_type(t)}){constant(b.const(element, d - 1))}"
            return self.temp(ctype, f"({ctype})({text})")
        if t.is_uint():
            quotient = self.temp(ctype, f"({ctype})({a} / {literal})")
        else:
            sign = self.temp(ctype, f"({ctype})({a} >> {bits - 1})")
            quotient = self.temp(ctype, f"({ctype})((({a} ^ {sign}) / {literal}) ^ {sign})")
        return quotient if is_div else self.temp(ctype, f"({ctype})({a} - {quotient} * {literal})")

    def extremum(self, e: Any, start: int, count: int) -> str:
        a, c = self.emit(e.a, start, count), self.emit(e.b, start, count)
        return self.temp(self.c_type(e.type, count), f"{a} {'<' if type(e) is n.Min else '>'} {c} ? {a} : {c}")

    def comparison(self, e: Any, start: int, count: int) -> str:
        op = _COMPARE[type(e)]
        if count == 1:
            return self.temp("uint8_t", f"{self.lane(e.a, start)} {op} {self.lane(e.b, start)}")
        if e.a.type.is_bool():
            bits = self.mask_bits(count)
            a, c = self.mask(e.a, start, count, bits), self.mask(e.b, start, count, bits)
            return self.named_mask({"==": f"~({a} ^ {c})", "!=": f"{a} ^ {c}", "<": f"~{a} & {c}", "<=": f"~{a} | {c}", ">": f"{a} & ~{c}", ">=": f"{a} | ~{c}"}[op],
                                   bits, count)
        bits = value_bits(e.a.type)
        return self.named_mask(f"{self.emit(e.a, start, count)} {op} {self.emit(e.b, start, count)}", bits, count)

    def logical(self, e: Any, start: int, count: int) -> str:
        op = "&" if type(e) is n.And else "|"
        if count == 1:
            return self.temp("uint8_t", f"{self.lane(e.a, start)} {op} {self.lane(e.b, start)}")
        a = self.emit(e.a, start, count)
        bits = self.unit.mask_width[a]
        return self.named_mask(f"{a} {op} {self.mask(e.b, start, count, bits)}", bits, count)

    def negation(self, e: n.Not, start: int, count: int) -> str:
        a = self.emit(e.a, start, count)
        if count == 1:
            return self.temp("uint8_t", f"!{a}")
        return self.named_mask(f"~{a}", self.unit.mask_width[a], count)

    def select(self, e: n.Select, start: int, count: int) -> str:
        t = e.type
        if count == 1:
            c = self.lane(e.condition, start if e.condition.type.is_vector() else 0)
            return self.temp(value_type(t), f"{c} ? {self.lane(e.true_value, start)} : {self.lane(e.false_value, start)}")
        if t.is_bool():
            bits = self.mask_bits(count)
            a, c = self.mask(e.true_value, start, count, bits), self.mask(e.false_value, start, count, bits)
        else:
            bits = value_bits(t)
            a, c = self.emit(e.true_value, start, count), self.emit(e.false_value, start, count)
        if e.condition.type.is_scalar():
            text = f"{self.scalar(e.condition)} ? {a} : {c}"
        else:
            text = f"{self.mask(e.condition, start, count, bits)} ? {a} : {c}"
        return self.named_mask(text, bits, count) if t.is_bool() else self.temp(self.c_type(t, count), text)

    def cast(self, e: n.Cast, start: int, count: int) -> str:
        t, s = e.type, e.value.type
        if count == 1:
            return self.cast_scalar(t, s, self.lane(e.value, start))
        if s.is_bool():
            bits = value_bits(t)
            m = self.mask(e.value, start, count, bits)
            ones = self.temp(self.vector_type(f"i{bits}", count), f"{m} & (int{bits}_t)1")
            return self.convert(ones, f"i{bits}", short_type(t), count)
        v = self.emit(e.value, start, count)
        if t.is_bool():
            bits = value_bits(s)
            return self.named_mask(f"{v} != ({value_type(s)})0" if s.is_float() else f"({v} & ({value_type(s)})1) != ({value_type(s)})0", bits, count)
        out = self.convert(v, short_type(s), short_type(t), count)
        return self.finish(t, count, out) if is_half(t) and not is_half(s) else out

    def cast_scalar(self, t: Type, s: Type, v: str) -> str:
        """A scalar conversion, defined for all values."""
        if t.is_bool():
            return self.temp("uint8_t", f"({v}) != 0" if s.is_float() else f"({v}) & 1")
        if s.is_float() and t.is_int_or_uint():
            return self.temp(value_type(t), f"{self.helper(f'hl_{short_type(t)}_of_f{value_bits(s)}')}({v})")
        if t.is_handle() or s.is_handle():
            return self.temp(value_type(t), f"({value_type(t)})(uintptr_t)({v})")
        return self.finish(t, 1, f"({value_type(t)})({v})") if is_half(t) else self.temp(value_type(t), f"({value_type(t)})({v})")

    def convert(self, v: str, source: str, target: str, count: int) -> str:
        """A vector conversion, in steps of a factor of two where widths differ."""
        while source != target:
            step = _next_type(source, target)
            v = self.temp(self.vector_type(step, count), f"__builtin_convertvector({v}, {self.vector_type(step, count)})")
            source = step
        return v

    def reinterpret(self, e: n.Reinterpret, start: int, count: int) -> str:
        t, s = e.type, e.value.type
        if is_half(t) or is_half(s):
            return self.by_lanes(t, count, lambda i: self.half_bits(t, s, self.lane(e.value, start + i)))
        if t.lanes() != s.lanes():
            raise InternalError("code generation has no form for a reinterpret that changes the number of lanes")
        v = self.emit(e.value, start, count)
        if count > 1:
            return self.temp(self.c_type(t, count), f"({self.c_type(t, count)}){v}")
        if t.is_handle() or s.is_handle() or (t.is_int_or_uint() and s.is_int_or_uint()):
            return self.cast_scalar(t, s, v)
        copy = self.temp(value_type(s), v)
        name = f"t{self.unit.count()}"
        self.line(f"{value_type(t)} {name}; __builtin_memcpy(&{name}, &{copy}, {t.bytes()});")
        return name

    def half_bits(self, t: Type, s: Type, v: str) -> str:
        """Between a half float and its bits."""
        if is_half(t):
            return self.temp("float", f"{self.helper('hl_f32_of_bf16' if t.is_bfloat() else 'hl_f32_of_f16')}((uint16_t)({v}))")
        return self.temp(value_type(t), f"({value_type(t)}){self.helper('hl_bf16_of_f32' if s.is_bfloat() else 'hl_f16_of_f32')}({v})")

    def let(self, e: n.Let, start: int, count: int) -> str:
        self.bind(e.name, e.value)
        return self.emit(e.body, start, count)

    def bind(self, name: str, value: n.Expr) -> None:
        """Compute a let's value now and remember where it is."""
        if value.type.is_vector():
            self.pieces[name] = [(start, count, self.emit(value, start, count)) for start, count in self.slices(value.type.lanes())]
            return
        text = self.scalar(value)
        if value.type.is_handle():
            self.names[name] = self.unit.fresh(c_identifier(name))
            self.line(f"void *const {self.names[name]} = {text};")
        elif name not in self.names and not text.startswith("t"):
            self.names[name] = self.unit.fresh(c_identifier(name))
            self.line(f"const {value_type(value.type)} {self.names[name]} = {text};")
        else:
            self.names[name] = text

    def shuffle(self, e: n.Shuffle, start: int, count: int) -> str:
        offsets: list[tuple[n.Expr, int]] = [(v, i) for v in e.vectors for i in range(v.type.lanes())]
        wanted = [offsets[i] for i in e.indices[start:start + count]]
        (vector, first), size = wanted[0], count
        if all(w == (vector, first + i) for i, w in enumerate(wanted)) and size > 1 and first % size == 0 and first + size <= vector.type.lanes():
            return self.emit(vector, first, size)
        return self.remember_mask(self.by_lanes(e.type, count, lambda i: self.lane(*wanted[i])), e.type, count)

    def vector_reduce(self, e: n.VectorReduce, start: int, count: int) -> str:
        group = e.value.type.lanes() // e.lanes
        if count > 1:
            return self.remember_mask(self.by_lanes(e.type, count, lambda i: self.vector_reduce(e, start + i, 1)), e.type, count)
        size = self.slice_lanes(e.value.type.lanes())
        t = e.type.element_of()
        if e.lanes > 1 or size == 1 or group % size or t.is_bool():
            parts = [self.lane(e.value, start * group + i) for i in range(group)]
            return self.fold(e.op, parts, t, 1)
        total = self.fold(e.op, [self.emit(e.value, k, size) for k in range(0, group, size)], t, size)
        while size > 1:
            size //= 2
            v = self.c_type(t, size)
            halves = [f"__builtin_shufflevector({total}, {total}, {', '.join(str(h * size + i) for i in range(size))})" for h in (0, 1)]
            if size == 1:
                halves = [f"{total}[0]", f"{total}[1]"]
            a, c = (self.temp(v, h) for h in halves)
            total = self.fold(e.op, [a, c], t, size)
        return total

    def fold(self, op: n.ReduceOp, parts: list[str], t: Type, count: int) -> str:
        """Combine values of one type."""
        symbol = {n.ReduceOp.Add: "+", n.ReduceOp.Mul: "*", n.ReduceOp.And: "&", n.ReduceOp.Or: "|"}.get(op)
        total = parts[0]
        for p in parts[1:]:
            if symbol:
                total = self.finish(t, count, f"{total} {symbol} {p}")
            else:
                total = self.temp(self.c_type(t, count), f"{total} {'<' if op is n.ReduceOp.Min else '>'} {p} ? {total} : {p}")
        return total

    def load(self, e: n.Load, start: int, count: int) -> str:
        return memory.load(self, e, start, count)

    def call(self, e: n.Call, start: int, count: int) -> str:
        if e.name in expand.RULES and not isinstance(e.func, ExternFunction):
            return self.emit(expand.RULES[e.name](e), start, count)
        if e.name in expand.IDENTITIES:
            return self.emit(e.args[0], start, count)
        return calls.call(self, e, start, count)


def _next_type(source: str, target: str) -> str:
    """One step of a conversion between short types: integers change width by two; floats change kind at equal width."""
    s_bits, t_bits, s_float, t_float = int(source[1:]), int(target[1:]), source[0] == "f", target[0] == "f"
    if s_float and t_float:
        return target
    if s_float:  # through the signed integer as wide as the float, except to unsigned ones as wide
        return target if t_bits >= s_bits else f"i{s_bits}"
    if t_float:
        if s_bits < t_bits:
            return f"{source[0]}{s_bits * 2}"
        return target
    if s_bits == t_bits:
        return target
    return f"{source[0]}{s_bits * 2}" if s_bits < t_bits else f"{target[0]}{s_bits // 2}"


_HANDLERS: dict[type[n.Node], Any] = {
    n.Variable: Emitter.variable, n.Broadcast: Emitter.broadcast, n.Ramp: Emitter.ramp, n.Add: Emitter.arithmetic, n.Sub: Emitter.arithmetic,
    n.Mul: Emitter.arithmetic, n.Div: Emitter.division, n.Mod: Emitter.division, n.Min: Emitter.extremum, n.Max: Emitter.extremum,
    **dict.fromkeys(_COMPARE, Emitter.comparison), n.And: Emitter.logical, n.Or: Emitter.logical, n.Not: Emitter.negation, n.Select: Emitter.select,
    n.Cast: Emitter.cast, n.Reinterpret: Emitter.reinterpret, n.Let: Emitter.let, n.Shuffle: Emitter.shuffle, n.VectorReduce: Emitter.vector_reduce,
    n.Load: Emitter.load, n.Call: Emitter.call,
}
