"""The node grammar: every kind of expression and statement, and the machine that makes them.

Nodes are immutable and interned: building the same node twice gives the same object, so identity is equality, a memo
keyed by node is sound and shared subtrees cost nothing. Nodes carry no operators (an overloaded `==` would poison
dicts); users hold `lang.Expr` handles. Three facts are kept per node for free skipping:

* `mask`: the kinds that occur in it, one bit a class (`node.mask & For.bit`);
* `symbols`: a Bloom filter of the names it mentions (variables, loads, stores, calls of Funcs and images); see `symbol_bit`;
* `type` (expressions): its Type.

`TABLE` holds every live node, children before parents; `sweep` frees the dead ones. Names are bound once per lowered
function (Let, LetStmt, For), which is what makes memoising across scopes right.
"""

from __future__ import annotations

import enum
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .types import BOOL, INT32, Type

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    from .function import Function, ReductionDomain
    from .intrinsics import ExternFunction
    from .parameter import Parameter
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        return lambda decorator: decorator


TABLE: dict[tuple[Any, ...], Node] = {}
_T = TypeVar("_T", bound=type)
_SYMBOL_BITS: dict[str, int] = {}
_BITS: Iterator[int] = iter(range(1000))


def symbol_bit(name: str) -> int:
    """The Bloom filter bit of a name in `Node.symbols`: absent bit = certainly not mentioned."""
    bit = _SYMBOL_BITS.get(name)
    if bit is None:
        bit = _SYMBOL_BITS[name] = 1 << zlib.crc32(name.encode()) % 61  # not hash(): two runs must make the same code
    return bit


class Node:
    """Anything in the IR. Identity is equality."""

    __slots__ = ("mask", "symbols")
    mask: int
    symbols: int
    bit: ClassVar[int] = 0
    fields: ClassVar[tuple[str, ...]] = ()
    kids: ClassVar[tuple[str, ...]] = ()  # fields that hold nodes or tuples of nodes

    def map_children(self, f: Callable[[Any], Any]) -> Any:
        """This node with `f` applied to each child; the very same object when no child changed."""
        raise NotImplementedError  # every concrete class gets its own, written by `node`

    def children(self) -> tuple[Any, ...]:
        """The child nodes, in field order, tuples flattened."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f) for f in self.fields)


class Expr(Node):
    """A node with a value."""

    __slots__ = ("type",)
    type: Type


class Stmt(Node):
    """A node with an effect."""

    __slots__ = ()


_SINGLE = ("Expr", "Stmt")
_OPTIONAL = ("Expr | None", "Stmt | None")
_TUPLE = ("tuple[Expr, ...]", "tuple[Stmt, ...]")


@dataclass_transform(frozen_default=True)
def node(cls: _T) -> _T:
    """Give `cls` slots, an interning constructor, and `map_children`/`children` written for its annotated fields.

    `_type` (a source expression over the fields) says how the type of an Expr follows from them; `_name` names the field
    that enters `symbols`; `_key` overrides how a field enters the interning key.
    """
    fields: dict[str, str] = {k: v for k, v in cls.__annotations__.items() if not v.startswith("ClassVar")}
    one = [f for f, t in fields.items() if t in _SINGLE]
    opt = [f for f, t in fields.items() if t in _OPTIONAL]
    many = [f for f, t in fields.items() if t in _TUPLE]
    kids = [f for f in fields if f in one or f in opt or f in many]
    bit = 1 << next(_BITS)
    params = ", ".join(f + (f"={cls.__dict__[f]!r}" if f in cls.__dict__ else "") for f in fields)
    key = ", ".join(cls.__dict__.get("_key", {}).get(f, f) for f in fields)

    def gather(attr: str, start: str) -> list[str]:
        lines = [f"    {attr} = {' | '.join([start, *(f'{k}.{attr}' for k in one)])}"]
        lines += [f"    if {k} is not None: {attr} |= {k}.{attr}" for k in opt]
        lines += [f"    for _k in {k}: {attr} |= _k.{attr}" for k in many]
        return lines

    name = cls.__dict__.get("_name")
    lines = [f"def __new__(cls, {params}):", f"    key = (cls, {key})", "    self = TABLE.get(key)", "    if self is not None: return self"]
    if "_check" in cls.__dict__:
        lines += [f"    {cls.__dict__['_check']}"]
    lines += ["    self = new(cls)"] + [f"    self.{f} = {f}" for f in fields]
    if issubclass(cls, Expr) and "type" not in fields:
        lines += [f"    self.type = {cls.__dict__['_type']}"]
    lines += gather("mask", str(bit)) + ["    self.mask = mask"]
    lines += gather("symbols", f"(SYMBOL_BITS.get({name}) or symbol_bit({name}))" if name else "0") + ["    self.symbols = symbols"]
    lines += ["    return TABLE.setdefault(key, self)"]
    lines += ["def map_children(self, f):"]
    for k in one:
        lines += [f"    {k} = f(self.{k})"]
    for k in opt:
        lines += [f"    {k} = None if self.{k} is None else f(self.{k})"]
    for k in many:
        lines += [f"    {k} = self.{k}", f"    if {k}:", f"        _new = [f(_k) for _k in {k}]", f"        for _o, _n in zip({k}, _new):",
                  "            if _o is not _n:", f"                {k} = tuple(_new)", "                break"]
    same = " and ".join(f"{k} is self.{k}" for k in kids)
    lines += [f"    if {same}: return self" if same else "    return self"]
    if same:
        lines += [f"    return type(self)({', '.join(k if k in kids else f'self.{k}' for k in fields)})"]
    parts = [f"(self.{k},)" if k in one else f"(() if self.{k} is None else (self.{k},))" if k in opt else f"self.{k}" for k in kids]
    lines += ["def children(self):", f"    return {' + '.join(parts) or '()'}"]
    scope: dict[str, Any] = {"TABLE": TABLE, "new": object.__new__, "BOOL": BOOL, "INT32": INT32,
                             "SYMBOL_BITS": _SYMBOL_BITS, "symbol_bit": symbol_bit}
    exec("\n".join(lines), scope)
    body = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__", "__slots__", *fields)}
    slots = tuple(f for f in fields if not (f == "type" and issubclass(cls, Expr)))
    body.update(__slots__=slots, bit=bit, fields=tuple(fields), kids=tuple(kids), __new__=scope["__new__"],
                map_children=scope["map_children"], children=scope["children"])
    return type(cls)(cls.__name__, cls.__bases__, body)


def _calibrate() -> int:
    """Reference count, as `sweep` sees it, of a node that nobody but the table holds."""
    probe: dict[int, Node] = {0: object.__new__(Node)}
    held = list(probe.values())
    while held:
        one = held.pop()
        return sys.getrefcount(one)
    return 0


_DEAD = _calibrate()


def sweep() -> int:
    """Drop every node that only the table and dead parents hold; returns how many went.

    Children were built before their parents, so one walk from the newest entry backwards finds each parent first.
    """
    items = list(TABLE.items())
    before = len(items)
    while items:
        key, one = items.pop()
        if sys.getrefcount(one) <= _DEAD:
            del TABLE[key]
        del key, one
    return before - len(TABLE)


# ---------------------------------------------------------------------------------------------------------------
# Expressions


@node
class IntImm(Expr):
    """A signed integer constant; `value` is in the type's range."""

    type: Type
    value: int


@node
class UIntImm(Expr):
    """An unsigned integer constant (bool too: 0 or 1); `value` is in the type's range."""

    type: Type
    value: int


@node
class FloatImm(Expr):
    """A floating point constant, already rounded to its type. Signed zeros and NaN are distinct nodes."""

    type: Type
    value: float
    _key: ClassVar[Any] = {"value": "value.hex()"}


@node
class StringImm(Expr):
    """Text: the argument of an error, a print or a name. Its type is a handle."""

    type: Type
    value: str


@node
class Cast(Expr):
    """Convert the value: floats to ints truncate, narrowing integers wrap."""

    type: Type
    value: Expr


@node
class Reinterpret(Expr):
    """The same bits read as another type of the same total width."""

    type: Type
    value: Expr


@node
class Variable(Expr):
    """A name bound by a loop, a let, a reduction domain (`rdom`) or an argument (`param`) of the pipeline."""

    type: Type
    name: str
    param: Parameter | None = None
    rdom: ReductionDomain | None = None
    _name: ClassVar[str] = "name"


@node
class Add(Expr):
    """a + b. Types of the operands agree in all arithmetic nodes; narrow and unsigned integers wrap."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Sub(Expr):
    """a - b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Mul(Expr):
    """a * b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Div(Expr):
    """a / b. Integers: Euclidean (the remainder is never negative), x/0 is 0. Floats: IEEE."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Mod(Expr):
    """a % b. Integers: in [0, |b|), x%0 is 0. Floats: a - b * floor(a / b)."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Min(Expr):
    """The smaller of two."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Max(Expr):
    """The larger of two."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class EQ(Expr):
    """a == b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class NE(Expr):
    """a != b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class LT(Expr):
    """a < b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class LE(Expr):
    """a <= b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class GT(Expr):
    """a > b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class GE(Expr):
    """a >= b."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "BOOL.with_lanes(a.type.lanes())"


@node
class And(Expr):
    """Logical and of bools; both sides may be evaluated."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Or(Expr):
    """Logical or of bools; both sides may be evaluated."""

    a: Expr
    b: Expr
    _type: ClassVar[str] = "a.type"


@node
class Not(Expr):
    """Logical not of a bool."""

    a: Expr
    _type: ClassVar[str] = "a.type"


@node
class Select(Expr):
    """condition ? true_value : false_value, lane by lane; both values may be evaluated. A scalar condition may pick between vectors."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    _type: ClassVar[str] = "true_value.type"


@node
class Load(Expr):
    """Read element(s) `index` (in elements, flattened) of allocation or buffer `name`; lanes with a false predicate read nothing.

    `param` is the input or output buffer read, None for an internal allocation. `predicate` is a bool of as many lanes as `index`.
    """

    type: Type
    name: str
    index: Expr
    predicate: Expr
    param: Parameter | None = None
    _name: ClassVar[str] = "name"


@node
class Ramp(Expr):
    """The vector base, base + stride, ... of `lanes` steps; base and stride may be vectors themselves (then lanes multiply)."""

    base: Expr
    stride: Expr
    lanes: int
    _type: ClassVar[str] = "base.type.with_lanes(base.type.lanes() * lanes)"


@node
class Broadcast(Expr):
    """`value` repeated `lanes` times."""

    value: Expr
    lanes: int
    _type: ClassVar[str] = "value.type.with_lanes(value.type.lanes() * lanes)"


class CallType(enum.Enum):
    """What a Call calls, and with it what passes may do to the call."""

    Image = "image"  # element `args` of the buffer `param`
    Halide = "halide"  # value `value_index` of Func `func` at `args`
    Extern = "extern"  # a C function with effects: never duplicated, merged, reordered or dropped
    PureExtern = "pure_extern"  # a C function whose value follows from its arguments alone
    Intrinsic = "intrinsic"  # an operation of the compiler with effects or with a context
    PureIntrinsic = "pure_intrinsic"  # an operation of the compiler, a value only


@node
class Call(Expr):
    """A call of a Func, an image, a C function or an intrinsic.

    `func` is the callee's Function (Halide), the row of the function table (Extern, PureExtern), or None: a Func's call of
    itself inside its own updates is by `name` only, so that a Function and its definitions form no cycle.
    """

    type: Type
    name: str
    args: tuple[Expr, ...]
    call_type: CallType
    func: Function | ExternFunction | None = None
    value_index: int = 0
    param: Parameter | None = None
    _name: ClassVar[str] = "name"


@node
class Let(Expr):
    """`body` with `name` standing for `value`."""

    name: str
    value: Expr
    body: Expr
    _type: ClassVar[str] = "body.type"


@node
class Shuffle(Expr):
    """Lanes `indices` of the concatenation of `vectors` (all of one element type)."""

    vectors: tuple[Expr, ...]
    indices: tuple[int, ...]
    _type: ClassVar[str] = "vectors[0].type.with_lanes(len(indices))"


class ReduceOp(enum.Enum):
    """How VectorReduce combines lanes."""

    Add = "add"
    Mul = "mul"
    Min = "min"
    Max = "max"
    And = "and"
    Or = "or"


@node
class VectorReduce(Expr):
    """Combine each group of `value.lanes / lanes` adjacent lanes into one; the result has `lanes` lanes."""

    op: ReduceOp
    value: Expr
    lanes: int
    _type: ClassVar[str] = "value.type.with_lanes(lanes)"


# ---------------------------------------------------------------------------------------------------------------
# Statements


class ForType(enum.Enum):
    """How a loop runs."""

    Serial = "for"
    Parallel = "parallel"
    Vectorized = "vectorized"
    Unrolled = "unrolled"


class Partition(enum.IntEnum):
    """Whether a loop may be split into prologue, steady state and epilogue."""

    Auto = 0
    Never = 1
    Always = 2


class MemoryType(enum.IntEnum):
    """Where an allocation lives."""

    Auto = 0
    Heap = 1
    Stack = 2
    Register = 3
    GPUShared = 4
    GPUTexture = 5
    LockedCache = 6
    VTCM = 7


@node
class LetStmt(Stmt):
    """`body` with `name` standing for `value`."""

    name: str
    value: Expr
    body: Stmt


@node
class Assert(Stmt):
    """If `condition` is false, evaluate `message` (an int32 call that reports the error and returns its code) and leave the pipeline with it."""

    condition: Expr
    message: Expr


@node
class Produce(Stmt):
    """`body` computes Func `name`. Uses of it that follow in the enclosing Block consume it."""

    name: str
    body: Stmt


@node
class For(Stmt):
    """Run `body` for name = min, ..., min + extent - 1."""

    name: str
    min: Expr
    extent: Expr
    kind: ForType
    partition: Partition
    body: Stmt


@node
class Store(Stmt):
    """Write `value` to element(s) `index` of `name`; lanes with a false predicate are left alone. Twin of Load."""

    name: str
    value: Expr
    index: Expr
    predicate: Expr
    param: Parameter | None = None
    _name: ClassVar[str] = "name"


@node
class Provide(Stmt):
    """Set Func `name` at coordinates `args` to `values` (one per tuple element; all are evaluated before any is stored) where `predicate` holds."""

    name: str
    values: tuple[Expr, ...]
    args: tuple[Expr, ...]
    predicate: Expr
    _name: ClassVar[str] = "name"


@node
class Realize(Stmt):
    """Storage of Func `name` over the box mins[i], ..., mins[i] + extents[i] - 1, alive in `body`; dimensions in the Func's order of args."""

    name: str
    types: tuple[Type, ...]
    memory: MemoryType
    mins: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt


@node
class HoistedStorage(Stmt):
    """The memory of Func `name`, realized somewhere inside, is allocated here; gone once that is done."""

    name: str
    body: Stmt


@node
class Allocate(Stmt):
    """`extents[0] * extents[1] * ...` elements of `type` under `name`, alive in `body`; not initialised. `padding` elements follow the last."""

    name: str
    type: Type
    memory: MemoryType
    extents: tuple[Expr, ...]
    condition: Expr
    padding: int
    body: Stmt


@node
class Block(Stmt):
    """Statements one after the other; at least two, none of them a Block."""

    stmts: tuple[Stmt, ...]


@node
class IfThenElse(Stmt):
    """Run one of two statements."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class Evaluate(Stmt):
    """Evaluate for effect, drop the value; `Evaluate(0)` is the empty statement."""

    value: Expr
