"""The writer of one C function: text, names, what was computed already, and slices of vectors.

Every value is written for a slice of lanes that fits a register of the machine; one lane is a scalar. `emit(e, start, count)` gives lanes
start .. start + count - 1 of `e` as an operand (atomic or in parentheses), `mask` those of a bool vector as an integer vector of
-1 and 0 as wide as the consumer wants it. The store, reduction or let at the root chooses the slices; casts ask for what they need.

What is shared, or would make a line too long, is named (`const float t3 = ...;`) and remembered while its C block is open; what read
memory is forgotten when that memory is written. So the text stays proportional to the DAG, and nothing is computed twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InternalError
from ..ir import nodes as n
from ..ir.module import LoweredArgument
from ..ir.traverse import free_variables
from ..ir.types import Type
from .ctypes_of import constant, short_type, value_bits, value_type
from .unit import Unit

if TYPE_CHECKING:
    from .profiling import Profile
    from .transposes import Column, Group

LONG = 90  # characters of an operand before it gets a name
_ATOM = re.compile(r"[\w.]+")
_CONSTANTS = (n.IntImm, n.UIntImm, n.FloatImm, n.StringImm)
Key = tuple[Any, ...]
Handler = Callable[["Emitter", Any, int, int], str]
MaskHandler = Callable[["Emitter", Any, int, int, int], str]
HANDLERS: dict[type[n.Node], Handler] = {}
MASKS: dict[type[n.Node], MaskHandler] = {}


def is_atom(text: str) -> bool:
    """Whether an operand is a plain name or number."""
    return _ATOM.fullmatch(text) is not None


def bare(text: str) -> str:
    """An operand without the parentheses around the whole of it."""
    if text[:1] != "(" or text[-1:] != ")":
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]


def count_uses(root: n.Node) -> dict[n.Node, int]:
    """How many distinct parents (or places in one) each node has."""
    uses: dict[n.Node, int] = {}
    stack = [root]
    while stack:
        for child in stack.pop().children():
            seen = uses.get(child, 0)
            uses[child] = seen + 1
            if not seen:
                stack.append(child)
    return uses


class Pieces:
    """A vector held in names: `names[i]` has lanes `width * i` onwards; `bits` is the mask width of a bool vector."""

    __slots__ = ("width", "bits", "names")

    def __init__(self, width: int, bits: int, names: list[str]) -> None:
        self.width, self.bits, self.names = width, bits, names


class OpenLoop:
    """A loop being written: where, what is to stand before it, and the names bound inside."""

    __slots__ = ("lines", "line", "before", "depth", "indent", "names", "bits", "rows")

    def __init__(self, em: Emitter, name: str) -> None:
        self.lines, self.line, self.depth, self.indent = em.lines, len(em.lines), len(em.scopes), em.indent
        self.before: list[str] = []
        self.names, self.bits = {name}, n.symbol_bit(name)
        self.rows = 0  # pointers computed before it

    def bound(self, name: str) -> None:
        """A name is bound inside."""
        self.names.add(name)
        self.bits |= n.symbol_bit(name)

    def changes(self, e: n.Expr) -> bool:
        """Whether `e` depends on what is bound inside."""
        return bool(e.symbols & self.bits) and not self.names.isdisjoint(free_variables(e))


_DEEPEST = 24  # levels of indentation: hundreds of allocations nest, and text would grow with the square of their number


def is_regular(e: n.Expr) -> bool:
    """Whether each lane is a sum of scalars: ramps of ramps."""
    if isinstance(e, n.Ramp):
        return is_regular(e.base) and is_regular(e.stride)
    return is_regular(e.value) if isinstance(e, n.Broadcast) else e.type.is_scalar()


class Emitter:
    """Writes one C function."""

    def __init__(self, unit: Unit, uses: dict[n.Node, int], context: str) -> None:
        self.unit, self.uses, self.machine, self.context = unit, uses, unit.machine, context
        self.profile: Profile | None = None  # with the target feature `profile`
        self.lines: list[str] = []
        self.factors: dict[n.Expr, str] = {}  # constants that the C compiler shall not look into -> their names
        self.indent = 1
        self.shared: frozenset[str] = frozenset()  # storage that another task writes meanwhile
        self.outlined = False  # the function is of loops only, its pointers are parameters: see closures
        self.arrays: set[str] = set()  # allocations on the function's stack
        self.sized: set[str] = set()  # those on the stack of any function around: the compiler sees their sizes
        self.arguments: dict[str, LoweredArgument] = {}  # the buffers among the function's arguments
        self.names: dict[str, str] = {}  # IR name -> C operand
        self.pieces: dict[str, Pieces] = {}  # IR name of a vector let -> its parts
        self.aliases: dict[str, n.Expr] = {}  # vector lets inside expressions: computed where used
        self.pointers: dict[str, Type] = {}  # element type of what the C pointer of a buffer or allocation points to
        self.memo: dict[Key, str] = {}
        self.reading: dict[Key, int] = {}  # remembered values that read memory -> the names they mention, as symbol bits
        self.scopes: list[list[Key]] = [[]]
        self.loops: list[OpenLoop] = []
        self.strided: dict[Key, tuple[int, int]] = {}  # groups of strided loads in the straight-line code being written: see memory
        self.columns: dict[Group, dict[int, Column]] = {}  # loads of this code that are turned together: see transposes
        self.writes: dict[n.Stmt, int] = {}
        self.expansions: dict[Key, n.Expr | None] = {}

    # ---- text

    def line(self, text: str) -> None:
        """One line of the current block."""
        self.lines.append("    " * min(self.indent, _DEEPEST) + text)

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(text)
        self.indent += 1
        self.scopes.append([])

    def forget_scope(self) -> None:
        """Forget what was remembered in the innermost scope."""
        for key in self.scopes.pop():
            self.memo.pop(key, None)
            self.reading.pop(key, None)

    def close(self, text: str = "}") -> None:
        """End a block; what it named is forgotten."""
        self.forget_scope()
        self.indent -= 1
        self.line(text)

    def reopen(self) -> None:
        """Begin the block of an else, whose line was written by `close`."""
        self.indent += 1
        self.scopes.append([])

    @contextmanager
    def loop(self, name: str) -> Iterator[None]:
        """Around the lines of a loop over IR variable `name`."""
        loop = OpenLoop(self, name)
        self.loops.append(loop)
        yield
        self.loops.pop()
        loop.lines[loop.line:loop.line] = loop.before

    def bound(self, name: str) -> None:
        """An IR name is bound here: what mentions it cannot be computed before the loop around."""
        if self.loops:
            self.loops[-1].bound(name)

    @contextmanager
    def before_loop(self) -> Iterator[None]:
        """Write what follows before the innermost loop, where nothing of what was named inside is known."""
        loop = self.loops.pop()
        inner = self.scopes[loop.depth:]
        del self.scopes[loop.depth:]
        hidden = {key: self.memo.pop(key) for scope in inner for key in scope if key in self.memo}
        lines, indent = self.lines, self.indent
        self.lines, self.indent = loop.before, loop.indent
        yield
        self.lines, self.indent = lines, indent
        self.memo.update(hidden)
        self.scopes += inner
        self.loops.append(loop)

    def discard(self, text: str) -> None:
        """Evaluate for effect only."""
        if "(" in text or text.isidentifier():  # a name: its value was computed for effect; compilers need not tell that it is unused
            self.line(f"(void){text};")

    def name(self, ctype: str, text: str, base: str = "") -> str:
        """Name a value in the current block."""
        name = self.unit.fresh(base) if base else self.unit.temporary()
        self.line(f"const {ctype} {name} = {bare(text)};" if ctype[-1] != "*" else f"{ctype}const {name} = {bare(text)};")
        return name

    def factor(self, e: n.Expr) -> str:
        """A constant by which vectors are multiplied by the one instruction for that, not by shifts and sums."""
        name = self.factors.get(e)
        if name is None:
            name = self.factors[e] = self.unit.fresh("factor")
        return name

    def prologue(self) -> list[str]:
        """What stands at the head of the function."""
        return [f'    {value_type(e.type)} {name} = {constant(e)}; __asm__("" : "+r"({name}));' for e, name in self.factors.items()]

    # ---- what is known

    def remember(self, key: Key, text: str, e: n.Expr) -> None:
        """Keep a named value of `e` for the rest of the block."""
        self.memo[key] = text
        self.scopes[-1].append(key)
        if e.mask & n.Load.bit:
            self.reading[key] = e.symbols

    def written(self, symbols: int) -> None:
        """Memory of these names (symbol bits, -1 for any) may have changed."""
        if symbols:
            for key in [key for key, names in self.reading.items() if names & symbols]:
                del self.reading[key]
                self.memo.pop(key, None)

    def writes_of(self, s: n.Stmt) -> int:
        """The names (symbol bits) a statement may write: all, if it calls something with effects."""
        found = self.writes.get(s)
        if found is None:
            found = n.symbol_bit(s.name) if type(s) is n.Store else 0
            for child in s.children():
                if isinstance(child, n.Stmt):
                    found |= self.writes_of(child)
                elif has_effects(child):
                    found = -1
            self.writes[s] = found
        return found

    def is_shared(self, e: n.Expr) -> bool:
        """Whether a value is used in several places."""
        return self.uses.get(e, 0) > 1

    def note_uses(self, root: n.Expr, known: tuple[n.Expr, ...]) -> None:
        """Count the uses inside an expression made just now, down to the `known` ones."""
        stack: list[n.Node] = [root]
        seen: set[n.Node] = set(known)
        while stack:
            for child in stack.pop().children():
                self.uses[child] = self.uses.get(child, 0) + 1
                if child not in seen:
                    seen.add(child)
                    stack.append(child)

    def written_out(self, key: Key, make: Callable[[], n.Expr | None], known: tuple[n.Expr, ...]) -> n.Expr | None:
        """What `make` writes an expression over the `known` ones out as, the same at each question."""
        if key not in self.expansions:
            self.expansions[key] = made = make()
            if made is not None:
                self.note_uses(made, known)
        return self.expansions[key]

    # ---- types

    def vector_type(self, short: str, count: int, unaligned: bool = False) -> str:
        """The name of a vector type, declared on demand."""
        return self.unit.vector(short, count, unaligned)

    def c_type(self, t: Type, count: int) -> str:
        """The C type of a slice of a value."""
        return value_type(t) if count == 1 else self.vector_type(short_type(t), count)

    def native(self, t: Type) -> int:
        """Lanes of `t` in a full register."""
        return self.machine.native_lanes(value_bits(t))

    def slices(self, t: Type, bits: int = 0) -> Iterator[tuple[int, int]]:
        """(first lane, lanes) of each slice of a vector: full registers, then smaller powers of two."""
        lanes, size = t.lanes(), self.machine.native_lanes(bits) if bits else self.native(t)
        start = 0
        while start < lanes:
            while size > lanes - start:
                size //= 2
            yield start, size
            start += size

    # ---- values

    def emit(self, e: n.Expr, start: int, count: int) -> str:
        """Lanes start .. start + count - 1 of `e`; for bool vectors and count > 1 use `mask`."""
        if isinstance(e, _CONSTANTS):
            return constant(e)
        if type(e) is n.Broadcast and e.value.type.is_scalar():
            start = 0
        key = (e, start, count)
        found = self.memo.get(key)
        if found is not None:
            return found
        if count > 1 and len(self.scopes) and self.is_shared(e):
            found = self._part_of_wider(e, start, count)
        text = found or self._handler(e)(self, e, start, count)
        if not is_atom(text) and (len(text) > LONG or self.is_shared(e)):
            text = self.name(self.c_type(e.type, count), text)
            self.remember(key, text, e)
        return text

    def _part_of_wider(self, e: n.Expr, start: int, count: int) -> str | None:
        """A slice that is half of one computed already."""
        whole = self.memo.get((e, start // (2 * count) * 2 * count, 2 * count))
        if whole is None or type(e) is n.Load:
            return None
        first = start % (2 * count)
        return f"__builtin_shufflevector({whole}, {whole}, {', '.join(map(str, range(first, first + count)))})"

    @staticmethod
    def _handler(e: n.Expr) -> Handler:
        handler = HANDLERS.get(type(e))
        if handler is None:
            raise InternalError(f"code generation has no form for {type(e).__name__}; please report this with the program")
        return handler

    def atom(self, e: n.Expr, start: int, count: int) -> str:
        """Like `emit`, but always a name or number, remembered: for operands that appear more than once in the text."""
        text = self.emit(e, start, count)
        if not is_atom(text):
            text = self.name(self.c_type(e.type, count), text)
            self.remember((e, start, count), text, e)
        return text

    def named(self, ctype: str, text: str) -> str:
        """An operand as a name."""
        return text if is_atom(text) else self.name(ctype, text)

    def scalar(self, e: n.Expr) -> str:
        """A scalar value."""
        return self.emit(e, 0, 1)

    def mask(self, e: n.Expr, start: int, count: int, bits: int) -> str:
        """A slice of a bool vector as signed integers of `bits`, each -1 or 0."""
        key = (e, start, count, bits)
        found = self.memo.get(key)
        if found is not None:
            return found
        handler = MASKS.get(type(e))
        if handler is None:
            raise InternalError(f"code generation has no mask form for {type(e).__name__}; please report this with the program")
        text = handler(self, e, start, count, bits)
        if not is_atom(text) and (len(text) > LONG or self.is_shared(e)):
            text = self.name(self.vector_type(f"i{bits}", count), text)
            self.remember(key, text, e)
        return text

    def lanes(self, e: n.Expr, start: int, count: int) -> list[str]:
        """Each lane as a scalar operand: taken out of vectors where computing it alone would repeat work."""
        if count == 1 or e.type.is_scalar():
            return [self.atom(e, start if e.type.is_vector() else 0, 1)] * count
        if e.type.is_bool():
            out = []
            for first, size in _chunks(count, self.machine.native_lanes(32)):
                if size == 1:
                    out.append(self.atom(e, start + first, 1))
                    continue
                m = self.named(self.vector_type("i32", size), self.mask(e, start + first, size, 32))
                out += [f"{m}[{i}]" for i in range(size)]
            return out
        if isinstance(e, n.Broadcast) and e.value.type.is_scalar():
            return [self.atom(e.value, 0, 1)] * count
        if isinstance(e, n.Ramp) and is_regular(e):
            return [self.emit(e, start + i, 1) for i in range(count)]
        if isinstance(e, n.Load):
            return [self.atom(e, start + i, 1) for i in range(count)]
        if isinstance(e, n.Cast) and e.type.is_int_or_uint() and e.value.type.is_int_or_uint() and 8 <= e.value.type.bits() < e.type.bits():
            # one instruction takes a lane out and widens it
            return [f"({value_type(e.type)}){x}" for x in self.lanes(e.value, start, count)]
        out = []
        for first, size in _chunks(count, self.native(e.type)):
            v = self.atom(e, start + first, size)
            out += [v] if size == 1 else self.by_words(e.type, v, size) if e.type.is_int_or_uint() else [f"{v}[{i}]" for i in range(size)]
        return out

    def by_words(self, t: Type, vector: str, count: int) -> list[str]:
        """Each lane of a vector of integers. On x86 taking a lane out costs two instructions each; 64 bits at once and shifts cost less."""
        per_word = 64 // t.bits()
        if not self.machine.has("sse4_1") or not self.machine.wide_registers or per_word == 1 or count < per_word:
            return [f"{vector}[{i}]" for i in range(count)]
        if count == per_word:
            words = [self.name("uint64_t", f"(uint64_t){vector}")]
        else:
            whole = self.name(self.vector_type("u64", count // per_word), f"({self.vector_type('u64', count // per_word)}){vector}")
            words = [f"{whole}[{i}]" for i in range(count // per_word)]  # not named: each leaves the vector where it is needed
        shifts = [(words[i // per_word], i % per_word * t.bits()) for i in range(count)]
        return [f"({value_type(t)})({word} >> {shift})" if shift else f"({value_type(t)}){word}" for word, shift in shifts]

    def from_lanes(self, t: Type, count: int, lanes: list[str]) -> str:
        """A vector put together from scalars; not for bools, whose vectors are masks."""
        return self.from_lanes_raw(short_type(t), count, lanes)

    def from_lanes_raw(self, short: str, count: int, lanes: list[str]) -> str:
        """A vector of an element type put together from scalars."""
        return lanes[0] if count == 1 else self.name(self.vector_type(short, count), "{" + ", ".join(map(bare, lanes)) + "}")

    def mask_from_lanes(self, count: int, bits: int, lanes: list[str]) -> str:
        """A mask put together from scalar bools."""
        return self.name(self.vector_type(f"i{bits}", count), "{" + ", ".join(f"-(int{bits}_t)({bare(x)})" for x in lanes) + "}")


def _chunks(count: int, size: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < count:
        while size > count - start:
            size //= 2
        yield start, size
        start += size


def calls_in(e: n.Node) -> Iterator[n.Call]:
    """The distinct calls in an expression."""
    stack, seen = [e], set()
    while stack:
        one = stack.pop()
        if not one.mask & n.Call.bit or one in seen:
            continue
        seen.add(one)
        if type(one) is n.Call:
            yield one
        stack.extend(one.children())


def has_effects(e: n.Node) -> bool:
    """Whether evaluating `e` may write memory that loads read: user functions with effects; not reports and accessors of the runtime."""
    return any(
        c.call_type is n.CallType.Extern and not c.name.startswith(("_halide_buffer_", "halide_error_", "halide_trace", "hl_check_"))
        for c in calls_in(e)
    )
