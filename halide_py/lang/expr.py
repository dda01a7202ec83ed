"""Expr: the handle users hold on an IR expression, with Python's operators and Halide's promotion rules.

`Operand` has the operators; whatever can stand in an expression (Expr, Var, RVar, RDom, Param, FuncRef) derives from it
and says what its node is. A Python number takes the other operand's type and must fit it.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, NoReturn

import numpy as np

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic, math_call
from ..ir.printer import to_text
from ..ir.types import BOOL, Float, Int, Type, UInt

_NUMPY_TYPES: dict[Any, Type] = {
    np.dtype(np.bool_): BOOL, np.dtype(np.float16): Float(16), np.dtype(np.float32): Float(32), np.dtype(np.float64): Float(64),
    **{np.dtype(f"int{w}"): Int(w) for w in (8, 16, 32, 64)}, **{np.dtype(f"uint{w}"): UInt(w) for w in (8, 16, 32, 64)},
}


class Operand:
    """Something that can stand in an expression."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays and scalars on the left defer to our reflected operators
    __hash__ = None  # type: ignore[assignment]

    def as_node(self) -> n.Expr:
        """The IR expression this stands for. Raises CompileError if it is undefined."""
        raise CompileError(f"{type(self).__name__} is undefined here")

    def __bool__(self) -> NoReturn:
        raise ValueError(
            "An Expr has no value yet, so it cannot become a Python bool: use & | ~ (with parentheses) instead of and, or, not; "
            "write a < b < c as (a < b) & (b < c); use select(condition, a, b) instead of if")

    def __add__(self, o: Any) -> Expr:
        return binary(n.Add, self, o)

    def __radd__(self, o: Any) -> Expr:
        return binary(n.Add, o, self)

    def __sub__(self, o: Any) -> Expr:
        return binary(n.Sub, self, o)

    def __rsub__(self, o: Any) -> Expr:
        return binary(n.Sub, o, self)

    def __mul__(self, o: Any) -> Expr:
        return binary(n.Mul, self, o)

    def __rmul__(self, o: Any) -> Expr:
        return binary(n.Mul, o, self)

    def __truediv__(self, o: Any) -> Expr:
        return binary(n.Div, self, o)

    def __rtruediv__(self, o: Any) -> Expr:
        return binary(n.Div, o, self)

    def __floordiv__(self, o: Any) -> Expr:
        return floor_div(self, o)

    def __rfloordiv__(self, o: Any) -> Expr:
        return floor_div(o, self)

    def __mod__(self, o: Any) -> Expr:
        return binary(n.Mod, self, o)

    def __rmod__(self, o: Any) -> Expr:
        return binary(n.Mod, o, self)

    def __pow__(self, o: Any) -> Expr:
        return power(self, o)

    def __rpow__(self, o: Any) -> Expr:
        return power(o, self)

    def __lshift__(self, o: Any) -> Expr:
        return shift("shift_left", self, o)

    def __rlshift__(self, o: Any) -> Expr:
        return shift("shift_left", o, self)

    def __rshift__(self, o: Any) -> Expr:
        return shift("shift_right", self, o)

    def __rrshift__(self, o: Any) -> Expr:
        return shift("shift_right", o, self)

    def __and__(self, o: Any) -> Expr:
        return bitwise("bitwise_and", n.And, self, o)

    def __rand__(self, o: Any) -> Expr:
        return bitwise("bitwise_and", n.And, o, self)

    def __or__(self, o: Any) -> Expr:
        return bitwise("bitwise_or", n.Or, self, o)

    def __ror__(self, o: Any) -> Expr:
        return bitwise("bitwise_or", n.Or, o, self)

    def __xor__(self, o: Any) -> Expr:
        return bitwise("bitwise_xor", n.NE, self, o)

    def __rxor__(self, o: Any) -> Expr:
        return bitwise("bitwise_xor", n.NE, o, self)

    def __lt__(self, o: Any) -> Expr:
        return binary(n.LT, self, o)

    def __le__(self, o: Any) -> Expr:
        return binary(n.LE, self, o)

    def __gt__(self, o: Any) -> Expr:
        return binary(n.GT, self, o)

    def __ge__(self, o: Any) -> Expr:
        return binary(n.GE, self, o)

    def __eq__(self, o: Any) -> Expr:  # type: ignore[override]
        return binary(n.EQ, self, o)

    def __ne__(self, o: Any) -> Expr:  # type: ignore[override]
        return binary(n.NE, self, o)

    def __neg__(self) -> Expr:
        a = self.as_node()
        _no_handles("-", a)
        return Expr.of(n.Sub(b.const(a.type, 0), a) if not a.type.is_float() else n.Mul(a, b.const(a.type, -1.0)))

    def __pos__(self) -> Expr:
        return Expr.of(self.as_node())

    def __abs__(self) -> Expr:
        return absolute(self)

    def __invert__(self) -> Expr:
        a = self.as_node()
        if a.type.is_bool():
            return Expr.of(n.Not(a))
        _integers("~", a)
        return Expr.of(intrinsic("bitwise_not", a.type, a))

    def logical_not(self) -> Expr:
        """The negation of a condition."""
        a = self.as_node()
        if not a.type.is_bool():
            raise CompileError(f"logical_not() needs a bool, not {to_text(a)} of type {a.type}")
        return Expr.of(n.Not(a))


class Expr(Operand):
    """An expression: a value of some Type, computed where it is used. Build them from Vars, numbers, Func and Buffer elements.

    `Expr(3)` is an int32 constant, `Expr(2.5)` a float32 one, `Expr()` is undefined.
    """

    __slots__ = ("node",)
    node: n.Expr | None

    def __init__(self, value: Any = None) -> None:
        if value is None:
            self.node = None
        elif isinstance(value, str):
            self.node = b.string(value)
        else:
            self.node = to_node(value)

    @staticmethod
    def of(node: n.Expr) -> Expr:
        """The handle of an IR expression."""
        e = Expr.__new__(Expr)
        e.node = node
        return e

    def as_node(self) -> n.Expr:
        if self.node is None:
            raise CompileError("An undefined Expr (Expr()) is used as a value")
        return self.node

    def defined(self) -> bool:
        """Whether this has a value; `Expr()` has none."""
        return self.node is not None

    def type(self) -> Type:
        """The Type of the value."""
        return self.as_node().type

    def __repr__(self) -> str:
        return "(undefined)" if self.node is None else to_text(self.node)


def literal(x: Any) -> int | float | bool | None:
    """The Python number behind a literal operand; None for everything else. NumPy integers and float64 count as Python numbers."""
    if isinstance(x, (bool, int, float)):
        return x
    if isinstance(x, np.bool_):
        return bool(x)
    return int(x) if isinstance(x, np.integer) else None


def float_literal(value: float) -> n.Expr:
    """A Python float as float32, with a warning when digits are lost."""
    rounded = b.round_float(value, Float(32))
    if rounded != value and value == value and abs(value) != math.inf:
        warnings.warn(f"The floating point value {value!r} will be interpreted as a float32 by halide_py and loses precision; "
                      "use hl.f32() or hl.f64() to say what is meant", RuntimeWarning, stacklevel=_depth())
    return b.const(Float(32), value)


def _depth() -> int:
    """Stack level of the user's own line, for warnings."""
    depth, here = 2, user_location()
    return depth + (1 if here else 0)


def number_node(value: int | float | bool) -> n.Expr:
    """A Python number on its own: bool, int32 (int64, else float32, when it does not fit) or float32."""
    if isinstance(value, bool):
        return b.const(BOOL, value)
    if isinstance(value, float):
        return float_literal(value)
    for t in (Int(32), Int(64)):
        if t.can_represent_value(value):
            return b.const(t, value)
    return float_literal(float(value))


def to_node(x: Any) -> n.Expr:
    """The IR expression for anything that converts to Expr. Raises TypeError for the rest."""
    if isinstance(x, Operand):
        return x.as_node()
    value = literal(x)
    if value is not None:
        return number_node(value)
    if isinstance(x, np.generic) and x.dtype in _NUMPY_TYPES:
        return b.const(_NUMPY_TYPES[x.dtype], x.item())
    raise TypeError(f"cannot make an Expr of {x!r} (a {type(x).__name__})")


def to_expr(x: Any) -> Expr:
    """An Expr for anything that converts to one."""
    return x if isinstance(x, Expr) else Expr.of(to_node(x))


def literal_node(value: int | float | bool, other: Type) -> n.Expr:
    """A Python number as an operand next to a value of type `other`: an int takes that type and must fit it."""
    if isinstance(value, float):
        return float_literal(value)
    if isinstance(value, bool) and not other.is_bool():
        return b.const(BOOL, value)
    if other.is_handle():
        return number_node(value)
    if other.is_bool() and not isinstance(value, bool):
        if value not in (0, 1):
            return number_node(value)
    elif not other.is_float() and not other.can_represent_value(value):
        raise CompileError(f"Integer constant {value} cannot be represented as {other}; it would become {b.wrap(int(value), other)}. "
                           f"Cast the other operand to a wider type, or the constant with hl.cast() ({user_location()})")
    return b.const(other, value)


def operands(x: Any, y: Any) -> tuple[n.Expr, n.Expr]:
    """Two operands as nodes of one type, under the promotion rules."""
    p, q = literal(x), literal(y)
    if p is not None and q is None:
        c = to_node(y)
        return match_types(literal_node(p, c.type), c)
    if q is not None and p is None:
        a = to_node(x)
        return match_types(a, literal_node(q, a.type))
    return match_types(to_node(x), to_node(y))


def match_types(a: n.Expr, c: n.Expr) -> tuple[n.Expr, n.Expr]:
    """Bring two values to one type: float wins over int, wider over narrower, signed over unsigned (Halide's rules)."""
    s, t = a.type, c.type
    if s is t:
        return a, c
    if s.lanes() != t.lanes():
        if s.lanes() == 1:
            return match_types(b.broadcast(a, t.lanes()), c)
        if t.lanes() == 1:
            return match_types(a, b.broadcast(c, s.lanes()))
        raise CompileError(f"Vectors of different lanes meet: {s} and {t}")
    if s.is_handle() or t.is_handle():
        raise CompileError(f"Cannot do arithmetic on handles: {to_text(a)} and {to_text(c)}")
    if s.is_float() and not t.is_float():
        return a, b.cast(s, c)
    if t.is_float() and not s.is_float():
        return b.cast(t, a), c
    if s.is_float():
        u = s if s.bits() > t.bits() else t if t.bits() > s.bits() else Float(32, s.lanes())
    elif s.is_uint() and t.is_uint():
        u = s if s.bits() >= t.bits() else t
    else:
        u = Int(max(s.bits(), t.bits()), s.lanes())
    return cast_const(u, a), cast_const(u, c)


def cast_const(t: Type, e: n.Expr) -> n.Expr:
    """`e` as type `t`; float constants convert at once too."""
    if isinstance(e, n.FloatImm) and t.is_float() and t.is_scalar():
        return b.const(t, e.value)
    return b.cast(t, e)


def _no_handles(op: str, *nodes: n.Expr) -> None:
    for e in nodes:
        if e.type.is_handle():
            raise CompileError(f"'{op}' is not defined for handles; there is no pointer arithmetic on {to_text(e)} ({user_location()})")


def _integers(op: str, *nodes: n.Expr) -> None:
    for e in nodes:
        if not e.type.is_int_or_uint():
            raise CompileError(f"'{op}' needs integers, but {to_text(e)} is {e.type} ({user_location()})")


_SYMBOL = {n.Add: "+", n.Sub: "-", n.Mul: "*", n.Div: "/", n.Mod: "%", n.LT: "<", n.LE: "<=", n.GT: ">", n.GE: ">=", n.EQ: "==", n.NE: "!="}


def _convertible(x: Any) -> bool:
    return isinstance(x, (Operand, np.generic)) or literal(x) is not None


def binary(kind: Callable[[n.Expr, n.Expr], n.Expr], x: Any, y: Any) -> Expr:
    """An arithmetic or comparison operator."""
    if not (_convertible(x) and _convertible(y)):
        return NotImplemented
    a, c = operands(x, y)
    _no_handles(_SYMBOL[kind], a, c)  # type: ignore[index]
    return Expr.of(kind(a, c))


def floor_div(x: Any, y: Any) -> Expr:
    """`//`: integer division, or the floor of the quotient for floats."""
    if not (_convertible(x) and _convertible(y)):
        return NotImplemented
    a, c = operands(x, y)
    _no_handles("//", a, c)
    quotient = n.Div(a, c)
    return Expr.of(math_call("floor", quotient) if a.type.is_float() else quotient)


def bitwise(name: str, logical: Callable[[n.Expr, n.Expr], n.Expr], x: Any, y: Any) -> Expr:
    """`& | ^`: of bools logical, of integers bit by bit; both signed or both unsigned."""
    if not (_convertible(x) and _convertible(y)):
        return NotImplemented
    p, q = literal(x), literal(y)
    a = to_node(x) if p is None else literal_node(p, to_node(y).type)
    c = to_node(y) if q is None else literal_node(q, a.type)
    if a.type.is_bool() and c.type.is_bool():
        return Expr.of(logical(*match_types(a, c)))
    op = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}[name]
    _integers(op, a, c)
    if a.type.code() != c.type.code():
        raise CompileError(f"'{op}' needs both operands signed or both unsigned, not {a.type} and {c.type}; cast one ({user_location()})")
    a, c = match_types(a, c)
    return Expr.of(intrinsic(name, a.type, a, c))


def shift(name: str, x: Any, y: Any) -> Expr:
    """`<< >>`: a negative literal amount shifts the other way."""
    if not (_convertible(x) and _convertible(y)):
        return NotImplemented
    q = literal(y)
    a = to_node(x) if literal(x) is None else literal_node(literal(x), to_node(y).type)  # type: ignore[arg-type]
    _integers("<<" if name == "shift_left" else ">>", a)
    if q is not None:
        if isinstance(q, float):
            raise CompileError("Shift amounts must be integers")
        if abs(int(q)) >= a.type.bits():
            raise CompileError(f"Shift by {q} is not less than the {a.type.bits()} bits of {a.type}, which has no meaning ({user_location()})")
        if q < 0:
            name, q = ("shift_right" if name == "shift_left" else "shift_left"), -q
        return Expr.of(intrinsic(name, a.type, a, b.const(a.type, q)))
    c = to_node(y)
    _integers("shift", c)
    if c.type.bits() != a.type.bits():
        c = b.cast(c.type.with_bits(a.type.bits()), c)
    return Expr.of(intrinsic(name, a.type, a, c))


def power(x: Any, y: Any) -> Expr:
    """`**`: small integer constants multiply out, the rest is pow() on floats."""
    if not (_convertible(x) and _convertible(y)):
        return NotImplemented
    a = to_node(x)
    exponent = literal(y) if literal(y) is not None else b.as_int(to_node(y))
    if isinstance(exponent, int) and not isinstance(exponent, bool) and abs(exponent) <= 1024:
        base = a if a.type.is_float() or exponent >= 0 else b.cast(Float(32), a)
        return Expr.of(integer_power(base, exponent))
    base = a if a.type.is_float() else b.cast(Float(32), a)
    base, c = match_types(base, to_node(y))
    return Expr.of(math_call("pow", base, c))


def integer_power(a: n.Expr, exponent: int) -> n.Expr:
    """`a` multiplied by itself by repeated squaring; the reciprocal for negative exponents."""
    if exponent < 0:
        return n.Div(b.const(a.type, 1), integer_power(a, -exponent))
    if exponent == 0:
        return b.const(a.type, 1)
    if exponent == 1:
        return a
    half = integer_power(a, exponent // 2)
    square = n.Mul(half, half)
    return n.Mul(square, a) if exponent % 2 else square


def absolute(x: Any) -> Expr:
    """|x|: of a signed integer the unsigned type of its width; of an unsigned one itself, with a warning."""
    a = to_node(x)
    if a.type.is_uint():
        warnings.warn(f"abs() of the unsigned {to_text(a)} does nothing", stacklevel=3)
        return Expr.of(a)
    t = a.type.with_code(UInt(1).code()) if a.type.is_int() else a.type
    return Expr.of(intrinsic("abs", t, a))
