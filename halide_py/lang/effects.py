"""Functions on Exprs that print, check, draw random numbers, key the memoization cache, or stand for several reads and writes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.types import INT32, Float, Handle, UInt
from .expr import Expr, to_node

UINT32 = UInt(32)
_CALLS = itertools.count()  # numbers the calls of random_*, so that each call site is a stream of its own
_LONGEST = 200


def printable(args: Sequence[Any]) -> list[n.Expr]:
    """What print and requirements take: Exprs and strings."""
    return [b.string(a) if isinstance(a, str) else to_node(a) for a in args]


def _condition(c: Any, call: str) -> n.Expr:
    node = to_node(c)
    if not node.type.is_bool():
        raise user_error(f"The condition of {call} must be a boolean type, but {to_text(node)} has type {node.type}")
    return node


def print(*args: Any) -> Expr:
    """The first argument; when it is computed, all are printed on a line, separated by spaces. Strings may be among the others.

    >>> hl.print(x, "is x").type() == hl.Int(32)
    True
    """
    nodes = printable(args)
    if not nodes or isinstance(nodes[0], n.StringImm):
        raise user_error("The first argument of print() is its value and must be an Expr; strings may follow")
    return Expr.of(intrinsic("print", nodes[0].type, *nodes))


def print_when(condition: Any, *args: Any) -> Expr:
    """The first argument after the condition; all are printed where the condition holds.

    >>> hl.print_when(x == 3, 2 * x, "is 2 x").type() == hl.Int(32)
    True
    """
    nodes = printable(args)
    if not nodes or isinstance(nodes[0], n.StringImm):
        raise user_error("The argument of print_when() after the condition is its value and must be an Expr; strings may follow")
    return Expr.of(intrinsic("print_when", nodes[0].type, _condition(condition, "print_when()"), *nodes))


def require(condition: Any, value: Any, *args: Any) -> Expr:
    """`value`, or, where the condition does not hold, the end of the pipeline with an error that shows the value, `args` and the
    condition."""
    c, v = _condition(condition, "require()"), to_node(value)
    shown = to_text(c)
    shown = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."
    message = intrinsic("stringify", Handle(), v, *printable(args), b.string(f"[{shown}]"))
    error = n.Call(INT32, "halide_error_requirement_failed", (intrinsic("stringify", Handle(), c), message), n.CallType.Extern)
    return Expr.of(intrinsic("require", v.type, c, v, error))


def memoize_tag(result: Any, *args: Any) -> Expr:
    """`result`; the other arguments key the memoization cache in its place.

    >>> hl.evaluate(hl.memoize_tag(hl.i32(5), hl.i32(1)))
    5
    """
    node = to_node(result)
    return Expr.of(intrinsic("memoize_tag", node.type, node, *[to_node(a) for a in args]))


def _random(t: Any, name: str, seed: Any, allowed: Sequence[Any]) -> n.Expr:
    args = []
    if seed is not None:
        s = to_node(seed)
        if s.type not in allowed:
            raise user_error(f"The seed passed to {name} must have type {' or '.join(map(str, allowed))}, but {to_text(s)} has type "
                             f"{s.type}")
        args.append(s)
    return intrinsic("random", t, *args, b.i32(next(_CALLS)))


def random_float(seed: Any = None) -> Expr:
    """A number in [0, 1), a fixed function of the seed (an int32, if given), this call, and the coordinates of the Func it is used in.

    A seed makes runs the same from one process to the next.

    >>> 0 <= hl.evaluate(hl.random_float(7)) < 1
    True
    """
    return Expr.of(_random(Float(32), "random_float", seed, (INT32,)))


def random_uint(seed: Any = None) -> Expr:
    """A uint32, all values equally likely; otherwise like random_float().

    >>> 0 <= hl.evaluate(hl.random_uint(7)) < 2**32
    True
    """
    return Expr.of(_random(UINT32, "random_uint", seed, (INT32, UINT32)))


def random_int(seed: Any = None) -> Expr:
    """An int32, all values equally likely; otherwise like random_float().

    >>> -2**31 <= hl.evaluate(hl.random_int(7)) < 2**31
    True
    """
    return Expr.of(n.Reinterpret(INT32, _random(UINT32, "random_int", seed, (INT32, UINT32))))


def _several(name: str, exprs: Sequence[Any]) -> Expr:
    nodes = [to_node(e) for e in exprs]
    if not nodes:
        raise user_error(f"{name}() needs at least one Expr")
    if len({e.type for e in nodes}) > 1:
        raise user_error(f"{name}() needs Exprs of one type, not {', '.join(str(e.type) for e in nodes)}")
    return Expr.of(intrinsic(name, nodes[0].type, *nodes))


def gather(exprs: Sequence[Any]) -> Expr:
    """Several values of one update, in turn; all are read before the matching `scatter` writes any.

    >>> f = hl.Func()
    >>> f[x] = x
    >>> f[hl.scatter([0, 3])] = hl.gather([f[3], f[0]])
    >>> [f.realize([4])[i] for i in range(4)]
    [3, 1, 2, 0]
    """
    return _several("gather", exprs)


def scatter(exprs: Sequence[Any]) -> Expr:
    """Several coordinates of one update, in turn, for the values of the matching `gather`.

    >>> f = hl.Func()
    >>> f[x] = x
    >>> f[hl.scatter([0, 2])] = hl.gather([8, 9])
    >>> [f.realize([3])[i] for i in range(3)]
    [8, 1, 9]
    """
    return _several("scatter", exprs)
