"""C's types and operators on IR expressions: promotions, usual conversions, constants that fold as the C compiler folds them.

A C type is one of the language's scalar types. Conditions are bools of the IR; where C counts with them they are converted to int, and back
without a trace. Source: ISO C11, sections 6.3.1, 6.4.4, 6.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from ...ir import build as b
from ...ir import nodes as n
from ...ir.intrinsics import intrinsic
from ...ir.simplify.fold import fold_binary, fold_cast
from ...ir.types import BOOL, INT32, INT64, Float, Type, UInt
from .source import Refusal

FLOAT, DOUBLE = Float(32), Float(64)
UNSIGNED, SIZE = UInt(32), UInt(64)

_ARITHMETIC: dict[str, Callable[[n.Expr, n.Expr], n.Expr]] = {"+": n.Add, "-": n.Sub, "*": n.Mul}
_COMPARISONS: dict[str, Callable[[n.Expr, n.Expr], n.Expr]] = {"<": n.LT, "<=": n.LE, ">": n.GT, ">=": n.GE, "==": n.EQ, "!=": n.NE}
_BITS = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}
_WHOLE: dict[str, Callable[[int, int], int]] = {
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<<": lambda x, y: x << y,
    ">>": lambda x, y: x >> y,
    "/": lambda x, y: quotient(x, y),
    "%": lambda x, y: x - quotient(x, y) * y,
}


def quotient(x: int, y: int) -> int:
    """Division towards zero."""
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def convert(t: Type, e: n.Expr) -> n.Expr:
    """`e` as C type `t`, by C's rules: to bool by comparing with 0, other numbers as casts do."""
    if e.type is t:
        return e
    if t.is_handle() or e.type.is_handle():
        raise Refusal("a pointer is converted; only numbers can be differentiated")
    if t is BOOL:
        return truth(e)
    found = fold_cast(t, e)
    return found if found is not None else n.Cast(t, e)


def truth(e: n.Expr) -> n.Expr:
    """`e` as a condition."""
    if e.type is BOOL:
        return e
    if e.type.is_handle():
        raise Refusal("a pointer is tested; only numbers can be differentiated")
    if isinstance(e, n.Cast) and e.value.type is BOOL:
        return e.value
    return _binary_node(n.NE, e, b.const(e.type, 0))


def promote(e: n.Expr) -> n.Expr:
    """The integer promotions: what is smaller than an int becomes one."""
    return convert(INT32, e) if not e.type.is_float() and not e.type.is_handle() and e.type.bits() < 32 else e


def common_type(p: Type, q: Type) -> Type:
    """The usual arithmetic conversions, for promoted types."""
    if p.is_handle() or q.is_handle():
        raise Refusal("a pointer takes part in arithmetic; only numbers can be differentiated")
    if p.is_float() or q.is_float():
        return max((t for t in (p, q) if t.is_float()), key=lambda t: t.bits())
    if p.is_uint() == q.is_uint():
        return p if p.bits() >= q.bits() else q
    unsigned, signed = (p, q) if p.is_uint() else (q, p)
    return unsigned if unsigned.bits() >= signed.bits() else signed


def usual(a: n.Expr, c: n.Expr) -> tuple[n.Expr, n.Expr]:
    """Two operands at their common type."""
    a, c = promote(a), promote(c)
    t = common_type(a.type, c.type)
    return convert(t, a), convert(t, c)


def _binary_node(kind: Callable[[n.Expr, n.Expr], n.Expr], a: n.Expr, c: n.Expr) -> n.Expr:
    found = fold_binary(cast("type[n.Node]", kind), a, c)
    return found if found is not None else kind(a, c)


def _whole(op: str, a: n.Expr, c: n.Expr) -> n.Expr | None:
    """The constant that an operation of integers is."""
    x, y = b.as_int(a), b.as_int(c)
    return None if x is None or y is None else b.const(a.type, _WHOLE[op](x, y))


def binary(op: str, a: n.Expr, c: n.Expr) -> n.Expr:
    """`a op c`, for all operators but those that may leave their right side out."""
    if op in ("<<", ">>"):
        return _shift(op, promote(a), promote(c))
    a, c = usual(a, c)
    t = a.type
    if op in _COMPARISONS:
        return _binary_node(_COMPARISONS[op], a, c)
    if op in _ARITHMETIC or op == "/" and t.is_float():
        return _binary_node(_ARITHMETIC.get(op, n.Div), a, c)
    if t.is_float():
        raise Refusal(f"{op} of floats, which is no C")
    if op in ("/", "%"):
        if b.is_zero(c):
            raise Refusal(f"{op} by 0")
        name = "div_round_to_zero" if op == "/" else "mod_round_to_zero"
    else:
        name = _BITS[op]
    found = _whole(op, a, c)
    return found if found is not None else intrinsic(name, t, a, c)


def _shift(op: str, a: n.Expr, c: n.Expr) -> n.Expr:
    if a.type.is_float() or c.type.is_float():
        raise Refusal(f"{op} of floats, which is no C")
    amount = b.as_int(c)
    if amount is not None and not 0 <= amount < a.type.bits():
        raise Refusal(f"a shift by {amount}, which C does not define")
    found = _whole(op, a, c)
    return found if found is not None else intrinsic("shift_left" if op == "<<" else "shift_right", a.type, a, convert(a.type, c))


def unary(op: str, a: n.Expr) -> n.Expr:
    """`-a`, `+a`, `~a`, `!a`."""
    if op == "!":
        return b.not_(truth(a))
    a = promote(a)
    if op == "+":
        return a
    if op == "-":
        return _binary_node(n.Mul, a, b.const(a.type, -1)) if a.type.is_float() else _binary_node(n.Sub, b.const(a.type, 0), a)
    if a.type.is_float():
        raise Refusal(f"{op} of a float, which is no C")
    value = b.as_int(a)
    return b.const(a.type, ~value) if value is not None else intrinsic("bitwise_not", a.type, a)


_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}


def constant(kind: str, text: str) -> n.Expr:
    """A constant as it is written. One of long double is a double, which is exact where it is converted at once (`(double)1e-16L`, as in
    float.h)."""
    if kind == "char":
        return b.const(INT32, _character(text[1:-1]))
    if "float" in kind or "double" in kind:
        digits = text.rstrip("fFlL") if not text.lower().startswith("0x") else text.rstrip("lL").rstrip("fF" if "p" in text.lower() else "")
        value = float.fromhex(digits) if digits.lower().startswith("0x") else float(digits)
        return b.const(FLOAT if text[-1] in "fF" else DOUBLE, value)
    return _integer(text)


def _integer(text: str) -> n.Expr:
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlL]*)", text)
    if found is None:
        raise Refusal(f"the constant {text}")
    digits, suffix = found[1], found[2].lower()
    decimal = not digits.startswith("0") or digits == "0"
    value = int(digits, 8) if not decimal and digits.isdigit() else int(digits, 0)
    types = [INT32, UNSIGNED, INT64, SIZE]
    if "u" in suffix:
        types = [UNSIGNED, SIZE]
    elif decimal:
        types = [INT32, INT64]
    for t in types:
        if t.can_represent_value(value) and ("l" not in suffix or t.bits() == 64):
            return b.const(t, value)
    raise Refusal(f"the constant {text}, which no integer type holds")


def _character(body: str) -> int:
    if not body.startswith("\\"):
        return ord(body)
    if body[1:] in _ESCAPES:
        return _ESCAPES[body[1:]]
    return int(body[2:], 16) if body[1] == "x" else int(body[1:], 8)
