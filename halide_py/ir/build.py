"""Constructors that fold the obvious: what passes use to write arithmetic.

`add(x, const(INT32, 0))` is `x`; two constants fold. Anything deeper is the simplifier's work. Operands must have equal
types already (front-end promotion happens in `lang`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

from . import nodes as n
from .types import BOOL, INT32, Handle, Type, TypeCode


def round_float(value: float, t: Type) -> float:
    """`value` rounded to the nearest number of the float type `t` (ties to even), overflow to infinity."""
    if t.bits() == 64 or value != value or math.isinf(value):
        return value
    if t.is_bfloat():
        bits = struct.unpack("<I", struct.pack("<f", round_float(value, Type(TypeCode.Float, 32, 1))))[0]
        bits += 0x7FFF + ((bits >> 16) & 1)
        return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0])
    try:
        form = "<f" if t.bits() == 32 else "<e"
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def wrap(value: int, t: Type) -> int:
    """`value` reduced modulo 2^bits into the range of the integer type `t`."""
    bits = t.bits()
    value &= (1 << bits) - 1
    return value - (1 << bits) if t.is_int() and value >> (bits - 1) else value


def const(t: Type, value: int | float | bool) -> n.Expr:
    """The constant `value` of type `t` (wrapped or rounded to fit); a Broadcast for vector types."""
    if t.is_vector():
        return n.Broadcast(const(t.element_of(), value), t.lanes())
    if t.is_int():
        return n.IntImm(t, wrap(int(value), t))
    if t.is_uint() or t.is_handle():
        return n.UIntImm(t, wrap(int(value), t))
    return n.FloatImm(t, round_float(float(value), t))


def i32(value: int) -> n.Expr:
    """An int32 constant."""
    return n.IntImm(INT32, int(value))


def string(text: str) -> n.Expr:
    """Text, as an argument of an error or a print."""
    return n.StringImm(Handle(), text)


TRUE = n.UIntImm(BOOL, 1)
FALSE = n.UIntImm(BOOL, 0)


def true(lanes: int = 1) -> n.Expr:
    """The predicate that always holds."""
    return TRUE if lanes == 1 else n.Broadcast(TRUE, lanes)


def as_const(e: n.Expr) -> int | float | None:
    """The number a constant (or a broadcast of one) stands for; None when it is no constant."""
    while type(e) is n.Broadcast:
        e = e.value
    if type(e) is n.IntImm or type(e) is n.UIntImm or type(e) is n.FloatImm:
        return e.value
    return None


def as_int(e: n.Expr) -> int | None:
    """The integer a constant stands for; None for everything else."""
    value = as_const(e)
    return value if isinstance(value, int) else None


def is_zero(e: n.Expr) -> bool:
    """A constant 0 (of any type)."""
    return as_const(e) == 0


def is_one(e: n.Expr) -> bool:
    """A constant 1, or the bool true."""
    return as_const(e) == 1


def is_true(e: n.Expr) -> bool:
    """The constant true, also broadcast."""
    return is_one(e) and e.type.is_bool()


def is_false(e: n.Expr) -> bool:
    """The constant false, also broadcast."""
    return is_zero(e) and e.type.is_bool()


def add(a: n.Expr, b: n.Expr) -> n.Expr:
    """a + b."""
    x, y = as_int(a), as_int(b)
    if y == 0 and y is not None:
        return a
    if x == 0 and x is not None:
        return b
    return const(a.type, x + y) if x is not None and y is not None else n.Add(a, b)


def sub(a: n.Expr, b: n.Expr) -> n.Expr:
    """a - b."""
    x, y = as_int(a), as_int(b)
    if y == 0 and y is not None:
        return a
    if a is b and not a.type.is_float():
        return const(a.type, 0)
    return const(a.type, x - y) if x is not None and y is not None else n.Sub(a, b)


def mul(a: n.Expr, b: n.Expr) -> n.Expr:
    """a * b."""
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return const(a.type, x * y)
    if y == 1:
        return a
    if x == 1:
        return b
    return const(a.type, 0) if x == 0 or y == 0 else n.Mul(a, b)


def euclid_div(x: int, y: int) -> int:
    """Integer division whose remainder is never negative; x/0 is 0."""
    if y == 0:
        return 0
    return (x - x % abs(y)) // y


def euclid_mod(x: int, y: int) -> int:
    """Remainder in [0, |y|); x%0 is 0."""
    return x % abs(y) if y else 0


def div(a: n.Expr, b: n.Expr) -> n.Expr:
    """a / b, Euclidean for integers."""
    x, y = as_int(a), as_int(b)
    if y == 1:
        return a
    return const(a.type, euclid_div(x, y)) if x is not None and y is not None else n.Div(a, b)


def mod(a: n.Expr, b: n.Expr) -> n.Expr:
    """a % b, Euclidean for integers."""
    x, y = as_int(a), as_int(b)
    if y == 1:
        return const(a.type, 0)
    return const(a.type, euclid_mod(x, y)) if x is not None and y is not None else n.Mod(a, b)


def min_(a: n.Expr, b: n.Expr) -> n.Expr:
    """The smaller of two."""
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return a if x <= y else b
    return a if a is b else n.Min(a, b)


def max_(a: n.Expr, b: n.Expr) -> n.Expr:
    """The larger of two."""
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return a if x >= y else b
    return a if a is b else n.Max(a, b)


def eq(a: n.Expr, b: n.Expr) -> n.Expr:
    """a == b."""
    x, y = as_int(a), as_int(b)
    return const(BOOL.with_lanes(a.type.lanes()), x == y) if x is not None and y is not None else n.EQ(a, b)


def lt(a: n.Expr, b: n.Expr) -> n.Expr:
    """a < b."""
    x, y = as_int(a), as_int(b)
    return const(BOOL.with_lanes(a.type.lanes()), x < y) if x is not None and y is not None else n.LT(a, b)


def le(a: n.Expr, b: n.Expr) -> n.Expr:
    """a <= b."""
    x, y = as_int(a), as_int(b)
    return const(BOOL.with_lanes(a.type.lanes()), x <= y) if x is not None and y is not None else n.LE(a, b)


def and_(a: n.Expr, b: n.Expr) -> n.Expr:
    """a and b."""
    if is_true(a) or is_false(b) or a is b:
        return b
    return a if is_true(b) or is_false(a) else n.And(a, b)


def or_(a: n.Expr, b: n.Expr) -> n.Expr:
    """a or b."""
    if is_false(a) or is_true(b) or a is b:
        return b
    return a if is_false(b) or is_true(a) else n.Or(a, b)


def not_(a: n.Expr) -> n.Expr:
    """not a."""
    if type(a) is n.Not:
        return a.a
    x = as_int(a)
    return n.Not(a) if x is None else const(a.type, not x)


def all_of(conditions: Iterable[n.Expr]) -> n.Expr:
    """The conjunction of scalar conditions; true for none."""
    out: n.Expr = TRUE
    for c in conditions:
        out = and_(out, c)
    return out


def select(condition: n.Expr, a: n.Expr, b: n.Expr) -> n.Expr:
    """condition ? a : b."""
    if a is b or is_true(condition):
        return a
    return b if is_false(condition) else n.Select(condition, a, b)


def cast(t: Type, e: n.Expr) -> n.Expr:
    """`e` converted to `t`; constants of integer type convert at once."""
    if e.type is t:
        return e
    if t.lanes() > 1 and e.type.is_scalar():
        return n.Broadcast(cast(t.element_of(), e), t.lanes())
    value = as_int(e)
    return const(t, value) if value is not None and not t.is_handle() and e.type.is_scalar() else n.Cast(t, e)


def broadcast(e: n.Expr, lanes: int) -> n.Expr:
    """`e` repeated; `e` itself for one lane."""
    return e if lanes == 1 else n.Broadcast(e, lanes)


def likely(e: n.Expr) -> n.Expr:
    """Mark a condition or value as that of the steady state."""
    return n.Call(e.type, "likely", (e,), n.CallType.PureIntrinsic)


def is_likely(e: n.Expr) -> bool:
    """Whether a condition or value is marked as that of the steady state."""
    return isinstance(e, n.Call) and e.name in ("likely", "likely_if_innermost")


NOTHING = n.Evaluate(i32(0))


def block(stmts: Iterable[n.Stmt | None]) -> n.Stmt:
    """The statements in order: flattened, empty ones dropped, alone if only one is left."""
    flat: list[n.Stmt] = []
    for s in stmts:
        if type(s) is n.Block:
            flat.extend(s.stmts)
        elif s is not None and s is not NOTHING:
            flat.append(s)
    if not flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else n.Block(tuple(flat))


def if_(condition: n.Expr, then_case: n.Stmt, else_case: n.Stmt | None = None) -> n.Stmt:
    """The statement for a condition; folds constant conditions."""
    if is_true(condition):
        return then_case
    if is_false(condition):
        return NOTHING if else_case is None else else_case
    return n.IfThenElse(condition, then_case, else_case)


def let_stmts(bindings: Sequence[tuple[str, n.Expr]], body: n.Stmt) -> n.Stmt:
    """`body` under the bindings, the first outermost."""
    for name, value in reversed(bindings):
        body = n.LetStmt(name, value, body)
    return body
