"""Arithmetic written out at twice the width that the machine has an instruction for at the width itself.

Before: `uint8((uint16(a) + uint16(b) + 1) / 2)`. After: `rounding_halving_add(a, b)`. C compilers do not find these in vector code.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.types import Type, TypeCode


def _narrowed(e: n.Expr, t: Type) -> n.Expr | None:
    """The value of type `t` that `e` is a wider form of."""
    if isinstance(e, n.Cast):
        return e.value if e.value.type is t else None
    if isinstance(e, n.Broadcast):
        inner = _narrowed(e.value, t.with_lanes(e.value.type.lanes()))
        return None if inner is None else n.Broadcast(inner, e.lanes)
    value = b.as_int(e)
    return b.const(t, value) if value is not None and t.can_represent_value(value) else None


def _shifted(e: n.Expr) -> tuple[n.Expr, int] | None:
    """(x, k) when `e` is x >> k."""
    if isinstance(e, n.Div):
        d = b.as_int(e.b)
        return (e.a, d.bit_length() - 1) if d is not None and d > 1 and d & (d - 1) == 0 else None
    if isinstance(e, n.Call) and e.name == "shift_right":
        k = b.as_int(e.args[1])
        return (e.args[0], k) if k is not None and 0 < k < e.type.bits() else None
    return None


def match(e: n.Cast) -> n.Expr | None:
    """A cheaper form of a narrowing cast; None if there is none."""
    t, w = e.type, e.value.type
    if not t.is_vector() or t.bits() not in (8, 16) or not t.is_int_or_uint() or not w.is_int_or_uint() or w.bits() < 2 * t.bits():
        return None
    shifted = _shifted(e.value)
    if shifted is None:
        return None
    x, k = shifted
    if k == 1 and t.is_uint() and isinstance(x, n.Add):
        return _average(x, t)
    if k == t.bits() == 16 and isinstance(x, n.Mul) and w.bits() == 32:
        p, q = _narrowed(x.a, t), _narrowed(x.b, t)
        if p is not None and q is not None:
            return intrinsic("mul_shift_right", t, p, q, b.const(t.with_code(TypeCode.UInt), 16))
    return None


def _average(x: n.Add, t: Type) -> n.Expr | None:
    terms: list[n.Expr] = []
    one = 0
    stack: list[n.Expr] = [x]
    while stack:
        e = stack.pop()
        if isinstance(e, n.Add):
            stack += [e.b, e.a]
        elif b.as_int(e) == 1 and not one:
            one = 1
        else:
            terms.append(e)
    if len(terms) != 2 or not one:
        return None
    p, q = _narrowed(terms[0], t), _narrowed(terms[1], t)
    return None if p is None or q is None else intrinsic("rounding_halving_add", t, p, q)


def limits(e: n.Expr, t: Type) -> n.Expr | None:
    """x when `e` limits x to exactly what `t` holds, so that a saturating pack may do it; None otherwise.

    A float beyond the integers turns into the smallest one, and NaN must go where the limits send it: the upper limit of floats stays.
    """
    found: set[type[n.Expr]] = set()
    x = e
    while isinstance(x, (n.Min, n.Max)) and type(x) not in found:
        if b.as_const(x.b) != (t.max_value() if isinstance(x, n.Min) else t.min_value()):
            return None
        found.add(type(x))
        x = x.a
    if len(found) < 2 or e.type.is_uint() or e.type.bits() == 64:
        return None
    if e.type.is_float():
        return e.a if isinstance(e, n.Max) else e
    return x
