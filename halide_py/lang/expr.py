"""Expr: the handle users hold on an IR expression, with Python's operators and Halide's promotion rules.

`Operand` has the operators; whatever can stand in an expression (Expr, Var, RVar, RDom, Param, FuncRef) derives from it
and says what its node is. A Python number takes the other operand's type and must fit it (`promotion`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..errors import user_error, warn
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic, math_call
from ..ir.printer import to_text
from ..ir.types import Float, Type, TypeCode
from .promotion import FLOAT32, convert, exact, literal_node, match_bits, match_bitwise, match_lanes, match_types, number_node
from .promotion import literal as literal
from .subscripted import Subscripted

Binary = Callable[[n.Expr, n.Expr], n.Expr]


def _reflected(kind: Binary) -> Callable[[Operand, Any], Any]:
    """An operator with its operands the other way round."""
    return lambda self, o: binary(kind, o, self)


class Operand:
    """Something that can stand in an expression."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays and scalars on the left defer to our reflected operators
    __hash__ = None  # type: ignore[assignment]

    def as_node(self) -> n.Expr:
        """The IR expression this stands for. Raises CompileError if it is undefined."""
        raise user_error(f"{type(self).__name__} is undefined here")

    def __bool__(self) -> NoReturn:
        raise ValueError(
            f"The halide.Expr ({to_text(self.as_node())}) cannot be converted to a bool, because it has no value yet. Use the '&'/'|'/'~' "
            "operators (with parentheses) instead of 'and'/'or'/'not', write a < b < c as (a < b) & (b < c), and select(condition, a, b) "
            "instead of if.")

    def __add__(self, o: Any) -> Any:
        return binary(n.Add, self, o)

    def __radd__(self, o: Any) -> Any:
        return binary(n.Add, o, self)

    def __sub__(self, o: Any) -> Any:
        return binary(n.Sub, self, o)

    def __rsub__(self, o: Any) -> Any:
        return binary(n.Sub, o, self)

    def __mul__(self, o: Any) -> Any:
        return binary(n.Mul, self, o)

    def __rmul__(self, o: Any) -> Any:
        return binary(n.Mul, o, self)

    def __truediv__(self, o: Any) -> Any:
        return binary(n.Div, self, o)

    def __rtruediv__(self, o: Any) -> Any:
        return binary(n.Div, o, self)

    def __floordiv__(self, o: Any) -> Any:
        return floor_div(self, o)

    def __rfloordiv__(self, o: Any) -> Any:
        return floor_div(o, self)

    def __mod__(self, o: Any) -> Any:
        return binary(n.Mod, self, o)

    def __rmod__(self, o: Any) -> Any:
        return binary(n.Mod, o, self)

    def __pow__(self, o: Any) -> Any:
        return power(self, o) if convertible(o) else elementwise(power, self, o)

    def __rpow__(self, o: Any) -> Any:
        return power(o, self) if convertible(o) else elementwise(power, o, self)

    def __lshift__(self, o: Any) -> Any:
        return shift("shift_left", self, o)

    def __rlshift__(self, o: Any) -> Any:
        return shift("shift_left", o, self)

    def __rshift__(self, o: Any) -> Any:
        return shift("shift_right", self, o)

    def __rrshift__(self, o: Any) -> Any:
        return shift("shift_right", o, self)

    def __and__(self, o: Any) -> Any:
        return bitwise("bitwise_and", n.And, self, o)

    def __rand__(self, o: Any) -> Any:
        return bitwise("bitwise_and", n.And, o, self)

    def __or__(self, o: Any) -> Any:
        return bitwise("bitwise_or", n.Or, self, o)

    def __ror__(self, o: Any) -> Any:
        return bitwise("bitwise_or", n.Or, o, self)

    def __xor__(self, o: Any) -> Any:
        return bitwise("bitwise_xor", n.NE, self, o)

    def __rxor__(self, o: Any) -> Any:
        return bitwise("bitwise_xor", n.NE, o, self)

    def __lt__(self, o: Any) -> Any:
        return binary(n.LT, self, o)

    def __le__(self, o: Any) -> Any:
        return binary(n.LE, self, o)

    def __gt__(self, o: Any) -> Any:
        return binary(n.GT, self, o)

    def __ge__(self, o: Any) -> Any:
        return binary(n.GE, self, o)

    def __eq__(self, o: Any) -> Any:
        return binary(n.EQ, self, o)

    def __ne__(self, o: Any) -> Any:
        return binary(n.NE, self, o)

    # Python asks the mirrored operator instead (3 < x is x > 3); these are for callers by name.
    __rlt__, __rle__, __rgt__ = _reflected(n.LT), _reflected(n.LE), _reflected(n.GT)
    __rge__, __req__, __rne__ = _reflected(n.GE), _reflected(n.EQ), _reflected(n.NE)

    def __neg__(self) -> Expr:
        a = operand(self, "-")
        _no_handles("-", a)
        return Expr.of(n.Sub(b.const(a.type, 0), a))

    def __pos__(self) -> Expr:
        return Expr.of(operand(self, "+"))

    def __abs__(self) -> Expr:
        return absolute(self)

    def __invert__(self) -> Expr:
        a = operand(self, "~")
        if a.type.is_bool():
            return Expr.of(n.Not(a))
        if not a.type.is_int_or_uint():
            raise user_error(f"Argument to bitwise not must be an integer or unsigned integer, but {to_text(a)} has type {a.type}")
        return Expr.of(intrinsic("bitwise_not", a.type, a))

    def logical_not(self) -> Expr:
        """The negation of a condition.

        The same as `~c`; it must be a bool. Raises CompileError for others.

        >>> hl.evaluate((hl.Expr(3) < 2).logical_not())
        True
        """
        a = operand(self, "!")
        if not a.type.is_bool():
            raise user_error(f"The argument of logical_not() must be a bool, but {to_text(a)} has type {a.type}")
        return Expr.of(n.Not(a))


class Expr(Operand):
    """An expression: a value of some Type, computed where it is used. Build them from Vars, numbers, Func and Buffer elements.

    `Expr(3)` is an int32 constant, `Expr(2.5)` a float32 one, `Expr(True)` a bool, `Expr("text")` a string for `print`, `Expr()` is
    undefined.
    """

    __slots__ = ("node",)
    node: n.Expr | None
    __nonzero__ = Operand.__bool__

    def __init__(self, value: Any = None) -> None:
        if value is None:
            self.node = None
        elif isinstance(value, str):
            self.node = b.string(value)
        elif isinstance(value, Expr):
            self.node = value.node
        else:
            self.node = to_node(value)

    @staticmethod
    def of(node: n.Expr | None) -> Expr:
        """The handle of an IR expression; an undefined Expr for None."""
        e = Expr.__new__(Expr)
        e.node = node
        return e

    def as_node(self) -> n.Expr:
        if self.node is None:
            raise user_error("An undefined Expr is used as a value; give it one before, as in e = hl.Expr(0)")
        return self.node

    def defined(self) -> bool:
        """Whether this has a value; `Expr()` has none.

        >>> hl.Expr(3).defined(), hl.Expr().defined()
        (True, False)
        """
        return self.node is not None

    def type(self) -> Type:
        """The Type of the value. Raises CompileError for an undefined Expr.

        >>> (hl.u8(3) + hl.i16(4)).type() == hl.Int(16)
        True
        """
        return self.as_node().type

    def __repr__(self) -> str:
        return "<undefined halide.Expr>" if self.node is None else f"<halide.Expr of type {self.node.type}: {to_text(self.node)}>"


def _constant(t: Type, value: int | float) -> Expr:
    """A number as an Expr of the type."""
    return Expr.of(b.const(t, value))


Type.to_expr = staticmethod(_constant)


def to_node(x: Any) -> n.Expr:
    """The IR expression for anything that converts to Expr. Raises TypeError for the rest."""
    if isinstance(x, Operand):
        return x.as_node()
    value = literal(x)
    if value is not None:
        return number_node(value)
    raise TypeError(f"cannot make a halide.Expr of {x!r} (a {type(x).__name__}){_instead(x)}")


def _instead(x: Any) -> str:
    """What was probably meant by something that is no Expr."""
    if isinstance(x, Subscripted):
        return f"; index it, as in {x.name()}[x, ...]"
    if isinstance(x, str):
        return f'; a dimension is a Var: hl.Var("{x}")'
    if hasattr(x, "__array_interface__"):
        return "; wrap the array in a Buffer and index that: b = hl.Buffer(array), b[x, ...]"
    return "; does a function lack its return?" if x is None else ""


def to_expr(x: Any) -> Expr:
    """An Expr for anything that converts to one; an undefined Expr stays undefined."""
    return x if isinstance(x, Expr) else Expr.of(to_node(x))


def convertible(x: Any) -> bool:
    """Whether `x` converts to Expr."""
    return isinstance(x, Operand) or literal(x) is not None


def operand(x: Any, op: str) -> n.Expr:
    """An operand that is no literal. Raises CompileError naming the operator for an undefined Expr."""
    if type(x) is Expr:
        if x.node is None:
            raise user_error(f"operator{op} of undefined Expr")
        return x.node
    node: n.Expr = x.as_node()
    return node


def operands(x: Any, y: Any, op: str) -> tuple[n.Expr, n.Expr]:
    """Two operands as nodes of one type, under the promotion rules; at most one of them is a Python number."""
    p, q = literal(x), literal(y)
    if p is not None:
        c = operand(y, op)
        return match_types(literal_node(p, c.type), c)
    if q is not None:
        a = operand(x, op)
        return match_types(a, literal_node(q, a.type))
    return match_types(operand(x, op), operand(y, op))


def _no_handles(op: str, *nodes: n.Expr) -> None:
    for e in nodes:
        if e.type.is_handle():
            raise user_error(f"Can't do arithmetic on opaque pointer types: operator{op} of {to_text(e)}")


_SYMBOL: dict[Any, str] = {n.Add: "+", n.Sub: "-", n.Mul: "*", n.Div: "/", n.Mod: "%",
                           n.LT: "<", n.LE: "<=", n.GT: ">", n.GE: ">=", n.EQ: "==", n.NE: "!="}
_EQUALITY = (n.EQ, n.NE)


def elementwise(op: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """An operator on an Expr and a NumPy array: the array of the results, as NumPy does it with objects. NotImplemented for other
    operands."""
    a, c = (np.asarray(v, object) if isinstance(v, np.ndarray) else v for v in (x, y))
    if a is x and c is y:
        return NotImplemented
    array = c if a is x else a
    out = np.empty(array.shape, object)
    for i in np.ndindex(array.shape):
        out[i] = op(x, array[i]) if a is x else op(array[i], y)
    return out


def binary(kind: Binary, x: Any, y: Any) -> Any:
    """An arithmetic or comparison operator; NotImplemented when an operand is no Expr."""
    if not (convertible(x) and convertible(y)):
        return elementwise(partial(binary, kind), x, y)
    op = _SYMBOL[kind]
    a, c = operands(x, y, op)
    if kind not in _EQUALITY:
        _no_handles(op, a, c)
    return Expr.of(kind(a, c))


def floor_div(x: Any, y: Any) -> Any:
    """`//`: integer division, or the floor of the quotient for floats."""
    if not (convertible(x) and convertible(y)):
        return elementwise(floor_div, x, y)
    a, c = operands(x, y, "/")
    _no_handles("/", a, c)
    quotient = n.Div(a, c)
    return Expr.of(math_call("floor", quotient) if a.type.is_float() else quotient)


_BITWISE = {"bitwise_and": "bitwise and", "bitwise_or": "bitwise or", "bitwise_xor": "bitwise xor"}


def _bits_literal(value: int | float | bool, other: Type) -> n.Expr:
    if isinstance(value, int) and not other.is_handle() and exact(other.element_of(), int(value)):
        return b.const(other, int(value))  # masks beyond int32 are fine here
    return literal_node(value, other)


def bitwise(name: str, logical: Binary, x: Any, y: Any) -> Any:
    """`& | ^`: of bools logical, of integers bit by bit; both signed or both unsigned."""
    if not (convertible(x) and convertible(y)):
        return elementwise(partial(bitwise, name, logical), x, y)
    op, p, q = _BITWISE[name], literal(x), literal(y)
    if p is not None:
        c = operand(y, op)
        a = _bits_literal(p, c.type)
    else:
        a = operand(x, op)
        c = operand(y, op) if q is None else _bits_literal(q, a.type)
    a, c = match_bitwise(a, c, op)
    return Expr.of(logical(a, c) if a.type.is_bool() else intrinsic(name, a.type, a, c))


_OPPOSITE = {"left": "right", "right": "left"}


def shift_amount(name: str, a: n.Expr, y: Any) -> tuple[str, n.Expr, n.Expr]:
    """A shift's name, value and amount. The amount takes the value's width; a negative literal turns the shift around."""
    q = literal(y)
    if q is not None:
        if isinstance(q, float):
            raise user_error(f"The amount of {name} must be an integer, not {q}")
        if q < 0:
            stem, _, way = name.rpartition("_")
            name, q = f"{stem}_{_OPPOSITE[way]}", -q
        if q >= a.type.bits():
            raise user_error(f"{name} of {to_text(a)} by {q}: the amount must be less than the {a.type.bits()} bits of {a.type}")
        return name, a, b.const(a.type.with_code(TypeCode.UInt), int(q))
    c = to_node(y)
    for e in (a, c):
        if not e.type.is_int_or_uint():
            raise user_error(f"{name} needs integers, but {to_text(e)} has type {e.type}")
    return (name, *match_bits(*match_lanes(a, c)))


def shift(name: str, x: Any, y: Any) -> Any:
    """`<< >>`: a negative signed amount shifts the other way."""
    if not (convertible(x) and convertible(y)):
        return elementwise(partial(shift, name), x, y)
    a = to_node(x)
    if not a.type.is_int_or_uint():
        raise user_error(f"{name} needs integers, but {to_text(a)} has type {a.type}")
    name, a, c = shift_amount(name, a, y)
    return Expr.of(intrinsic(name, a.type, a, c))


def power(x: Any, y: Any) -> Expr:
    """x to the y: an integer constant y multiplies out in x's own type; the rest is pow() of floats (float64 and float16 stay, others
    become float32)."""
    a, c = to_node(x), to_node(y)
    exponent = b.as_int(c)
    if exponent is not None and not c.type.is_bool():
        _no_handles("**", a)
        return Expr.of(integer_power(a, exponent))
    t = a.type.element_of() if a.type.element_of() in (Float(64), Float(16)) else FLOAT32
    a, c = match_lanes(convert(t.with_lanes(a.type.lanes()), a), convert(t.with_lanes(c.type.lanes()), c))
    return Expr.of(math_call("pow", a, c))


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
        warn("abs of an unsigned type is a no-op")
        return Expr.of(a)
    _no_handles("abs", a)
    return Expr.of(intrinsic("abs", a.type.with_code(TypeCode.UInt) if a.type.is_int() else a.type, a))
