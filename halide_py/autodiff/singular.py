"""Which partials may be infinite or NaN where nobody uses the result: 1/x, log(x), a function of the user's; and products with such values.

`g[x] = sqrt(f[x])`, `h[x] = select(f[x] > 0, g[x], 0)`: the condition keeps the value of g back where it has no derivative, but in another
Func. What arrives at g is the adjoint 0, and 0 * inf would be NaN. So it is where an update writes over a value, or nobody reads it. Where
no condition or update is between a Func and the output, nothing is changed: NaN then says that a value in use has no derivative. Forward,
the tangent of `sqrt(max(f[x], 0))` is 0 times an infinite partial where f[x] < 0. Limits: products inside of sums over a domain look at
their own expression only, not into the Funcs they read: a test for each term would cost matrix products and convolutions most of their
speed.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction, intrinsic
from ..ir.traverse import nodes_of
from ..ir.types import BOOL

_KNOWN: WeakKeyDictionary[Function, tuple[int, bool]] = WeakKeyDictionary()  # by the number of definitions


def quiet(product: n.Expr, factor: n.Expr) -> n.Expr:
    """A product of an adjoint (or tangent) and a partial, 0 where that is 0 and the partial infinite or NaN. Not wherever it is 0: the
    second derivative wants the partial."""
    if b.as_const(factor) is not None:
        return product
    nothing = b.and_(n.EQ(factor, b.const(factor.type, 0)), intrinsic("is_nan", BOOL, product))
    return b.select(nothing, b.const(product.type, 0), product)


def may_be_singular(e: n.Expr, through_funcs: bool) -> bool:
    """Whether the partials of a node may be infinite or NaN. `through_funcs`: products of elements of Funcs are looked at, too."""
    if isinstance(e, n.Mul):
        return any(_is_singular(k) or through_funcs and _reads_singular(k) for k in nodes_of((e.a, e.b), (n.Call, n.Div, n.Mod)))
    return _is_singular(e)


def _is_singular(e: n.Expr) -> bool:
    if isinstance(e, (n.Div, n.Mod)):
        return e.type.is_float() and b.as_const(e.b) is None
    return isinstance(e, n.Call) and isinstance(e.func, ExternFunction) and e.type.is_float()


def _reads_singular(e: n.Expr) -> bool:
    return isinstance(e, n.Call) and isinstance(e.func, Function) and e.type.is_float() and _computes_singular(e.func)


def _computes_singular(f: Function) -> bool:
    """Whether a Func, or one that it reads, has a quotient or a function in it, or is computed by C."""
    stages = f.stages()
    known = _KNOWN.get(f)
    if known is None or known[0] != len(stages):
        inside = nodes_of([v for d in stages for v in d.values], (n.Call, n.Div, n.Mod))
        known = _KNOWN[f] = len(stages), f.extern is not None or any(_is_singular(k) or _reads_singular(k) for k in inside)
    return known[1]
