"""The node grammar: every kind of expression and statement. `interning` says how nodes are made and what each knows of itself.

Nodes carry no operators (an overloaded `==` would poison dicts); users hold `lang.Expr` handles. Names are bound once per
lowered function (Let, LetStmt, For), which is what makes memoising across scopes right.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, ClassVar

from .interning import TABLE as TABLE
from .interning import Expr as Expr
from .interning import Node as Node
from .interning import Stmt as Stmt
from .interning import node
from .interning import sweep as sweep
from .interning import symbol_bit as symbol_bit
from .interning import symbol_bits as symbol_bits
from .types import Type

if TYPE_CHECKING:
    from .function import Function, ReductionDomain
    from .intrinsics import ExternFunction
    from .parameter import Parameter

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
    """Read element(s) `index` (in elements, flattened) of allocation or buffer `name`; lanes with a false predicate read nothing and are 0.

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
    Extern = "extern"  # run by the C function of an extern stage; in schedules only


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
    """If `condition` is false, evaluate `message` (an int32 call that reports the error and returns its code) and leave the pipeline with
    it."""

    condition: Expr
    message: Expr


@node
class Produce(Stmt):
    """`body` computes Func `name`. Uses of it that follow in the enclosing Block consume it."""

    name: str
    body: Stmt


@node
class Atomic(Stmt):
    """`body` updates elements of Func `name` that other threads may update at the same time: each as if nothing came in between."""

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
    """Set Func `name` at coordinates `args` to `values` (one per tuple element; all are evaluated before any is stored) where `predicate`
    holds."""

    name: str
    values: tuple[Expr, ...]
    args: tuple[Expr, ...]
    predicate: Expr
    _name: ClassVar[str] = "name"


@node
class Realize(Stmt):
    """Storage of Func `name` over the box mins[i], ..., mins[i] + extents[i] - 1, alive in `body`; dimensions in the Func's order of
    args."""

    name: str
    types: tuple[Type, ...]
    memory: MemoryType
    mins: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt


@node
class Fork(Stmt):
    """Run `first` and `rest` at the same time, each waiting for the other at the semaphores in allocation `name`; done when both are."""

    name: str
    first: Stmt
    rest: Stmt
    _name: ClassVar[str] = "name"


@node
class HoistedStorage(Stmt):
    """The memory of Func `name`, realized somewhere inside, is allocated here; gone once that is done."""

    name: str
    body: Stmt


@node
class Allocate(Stmt):
    """`extents[0] * extents[1] * ...` elements of `type` under `name`, alive in `body`; not initialised. `padding` elements follow the
    last."""

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
