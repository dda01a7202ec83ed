"""Reductions along dimension 0 of a Func, each with its derivative: logsumexp, softmax, log_softmax, cross_entropy, layer_norm.

A sum or maximum over a row is taken in lanes first, `p[lane] = sum over t of row[16 t + lane]`, then over the lanes, so that a row is read
in vectors; rows run in threads. Derivatives use the maximum and the sum of the forward pass again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..autodiff.custom import custom_gradient
from ..errors import user_error
from ..ir.build import const
from ..ir.function import Function, TailStrategy
from ..lang.expr import Expr
from ..lang.float_math import exp, is_inf, log, sqrt
from ..lang.func import Func
from ..lang.ops import cast, clamp, likely, max, select
from ..lang.rdom import RDom
from ..lang.var import Var

LANES = 16
Row = Callable[[Any], Any]


def as_func(given: Any, name: str, least: int = 1) -> Func:
    """A Func, or an image as one. Raises CompileError for what has fewer dimensions, or no floats."""
    f = given if isinstance(given, Func) else Func(given)
    if not f.defined() or f.dimensions() < least or not f.type().is_float():
        raise user_error(f"hl.nn.{name} takes a Func or image of floats with at least {least} dimension(s), not {given!r}")
    return f


def dims(f: Func) -> list[Var]:
    """A Var for each dimension of a Func, none of them an implicit one."""
    return [Var(f"d{i}") for i in range(f.dimensions())]


def rooted(f: Func) -> Func:
    """Computed once, with vectors and threads."""
    f.compute_root()
    f.function.schedule.default_loops = True
    return f


def _number(value: float, like: Any) -> Expr:
    return Expr.of(const(like.type(), value))


def row(i: Any, rest: Sequence[Any]) -> tuple[Any, ...]:
    """Coordinates of element i of a row."""
    return (i, *rest)


def _over_rows(name: str, rest: Sequence[Var], size: Any, start: Expr, term: Row, combine: Callable[[Any, Any], Any]) -> Func:
    """The reduction of `term(i)`, an Expr over `rest`, over i in [0, size)."""
    lane = Var(f"{name}_lane")
    t, r = RDom([(0, (size + LANES - 1) // LANES)]), RDom([(0, LANES)])
    lanes, out = Func(f"{name}_lanes"), Func(name)
    i = t.x * LANES + lane
    at, here = (lane, *rest), tuple(rest)
    lanes[at] = start
    lanes[at] = combine(lanes[at], select(likely(i < size), term(i), start))
    out[here] = start
    out[here] = combine(out[here], lanes[row(r.x, rest)])
    lanes.bound(lane, 0, LANES).vectorize(lane)
    lanes.update(0).reorder([lane, t.x]).vectorize(lane)
    out.compute_root()
    if rest:
        lanes.compute_at(out, rest[0])
        out.update(0).parallel(rest[-1], 16, TailStrategy.GuardWithIf) if len(rest) == 1 else out.update(0).parallel(rest[-1])
    else:
        lanes.compute_root()
    return out


def _add(a: Any, b: Any) -> Any:
    return a + b


def _finite(top: Any) -> Any:
    """A maximum as what is subtracted from its row: 0 for one of -inf, whose row is empty."""
    return select(is_inf(top), _number(0, top), top)


# The maximum and the sum of exp(z - maximum) of the rows behind a result: their logarithm alone would cost a derivative its digits.
_PARTS: WeakKeyDictionary[Function, tuple[Func, Func]] = WeakKeyDictionary()


def _parts(z: Func, size: Any, name: str) -> tuple[Func, Func]:
    _, *rest = dims(z)
    here = tuple(rest)
    low = Expr.of(const(z.type(), -math.inf))
    top = _over_rows(f"{name}_top", rest, size, low, lambda i: z[row(i, rest)], max)
    total = _over_rows(f"{name}_sum", rest, size, Expr.of(const(z.type(), 0)), lambda i: exp(z[row(i, rest)] - _finite(top[here])), _add)
    return top, total


def _log(parts: tuple[Func, Func], here: tuple[Any, ...]) -> Any:
    top, total = parts
    return log(total[here]) + _finite(top[here])


def _probability(z: Any, parts: tuple[Func, Func], here: tuple[Any, ...]) -> Any:
    """exp(z - maximum) / sum; a row without any class has none."""
    top, total = parts
    return select(total[here] > 0, exp(z - _finite(top[here])) / total[here], _number(0, z))


@custom_gradient
def logsumexp(z: Any, size: Any) -> Any:
    """log(sum(exp(z[i, ...]))) over i in [0, size): a Func of the other dimensions. -inf for a row of -inf."""
    f, out = as_func(z, "logsumexp"), Func("logsumexp")
    parts, here = _parts(f, size, "logsumexp"), tuple(dims(f)[1:])
    out[here] = _log(parts, here)
    _PARTS[out.function] = parts
    return rooted(out)


@logsumexp.backward
def _(adjoint: Any, result: Any, z: Any, size: Any) -> Any:
    f = as_func(z, "logsumexp")
    at = tuple(dims(f))
    d = Func("d_logsumexp")
    d[at] = adjoint[at[1:]] * _probability(f[at], _PARTS[result.function], at[1:])
    return rooted(d), None


@custom_gradient
def softmax(z: Any, size: Any) -> Any:
    """exp(z[i, ...]) / sum(exp(z[j, ...])) over j in [0, size), of the dimensions of z."""
    f = as_func(z, "softmax")
    at, out = tuple(dims(f)), Func("softmax")
    out[at] = _probability(f[at], _parts(f, size, "softmax"), at[1:])
    return rooted(out)


@softmax.backward
def _(adjoint: Any, result: Any, z: Any, size: Any) -> Any:
    first, *rest = dims(result)
    inner = _over_rows(
        "softmax_inner", rest, size, Expr.of(const(result.type(), 0)), lambda i: adjoint[row(i, rest)] * result[row(i, rest)], _add
    )
    d = Func("d_softmax")
    d[row(first, rest)] = result[row(first, rest)] * (adjoint[row(first, rest)] - inner[tuple(rest)])
    return rooted(d), None


@custom_gradient
def log_softmax(z: Any, size: Any) -> Any:
    """z[i, ...] - logsumexp(z)[...], of the dimensions of z."""
    f = as_func(z, "log_softmax")
    at, out = tuple(dims(f)), Func("log_softmax")
    top, total = _parts(f, size, "log_softmax")
    out[at] = f[at] - _finite(top[at[1:]]) - log(total[at[1:]])
    return rooted(out)


@log_softmax.backward
def _(adjoint: Any, result: Any, z: Any, size: Any) -> Any:
    first, *rest = dims(result)
    total = _over_rows("log_softmax_total", rest, size, Expr.of(const(result.type(), 0)), lambda i: adjoint[row(i, rest)], _add)
    d = Func("d_log_softmax")
    d[row(first, rest)] = adjoint[row(first, rest)] - exp(result[row(first, rest)]) * total[tuple(rest)]
    return rooted(d), None


@custom_gradient
def cross_entropy(z: Any, labels: Any, size: Any) -> Any:
    """logsumexp(z)[...] - z[label, ...], the negative log probability of a class: a Func of the other dimensions.

    `labels`: a Func or image of integers over those, in [0, size). The derivative is softmax(z), minus 1 at the label.
    """
    f = as_func(z, "cross_entropy")
    parts, rest, out = _parts(f, size, "cross_entropy"), tuple(dims(f)[1:]), Func("cross_entropy")
    top, total = parts
    out[rest] = log(total[rest]) + (_finite(top[rest]) - f[row(_label(labels, rest, size), rest)])
    _PARTS[out.function] = parts
    return rooted(out)


def _label(labels: Any, at: tuple[Any, ...], size: Any) -> Expr:
    return clamp(cast(Expr(0).type(), labels[at]), 0, size - 1)


@cross_entropy.backward
def _(adjoint: Any, result: Any, z: Any, labels: Any, size: Any) -> Any:
    f = as_func(z, "cross_entropy")
    first, *rest = dims(f)
    here, d = tuple(rest), Func("d_cross_entropy")
    label = _label(labels, here, size)
    d[row(first, rest)] = adjoint[here] * (
        _probability(f[row(first, rest)], _PARTS[result.function], here) - select(first == label, _number(1, f), _number(0, f))
    )
    return rooted(d), None, None


@custom_gradient
def _layer_norm(x: Any, size: Any, epsilon: float) -> Any:
    f = as_func(x, "layer_norm")
    at, out = tuple(dims(f)), Func("layer_norm")
    mean, scale = _moments(f, size, epsilon)
    out[at] = (f[at] - mean[at[1:]]) * scale[at[1:]]
    return rooted(out)


def _moments(f: Func, size: Any, epsilon: float) -> tuple[Func, Func]:
    """The mean of each row, and one over its standard deviation, from the squares of the differences."""
    _, *rest = dims(f)
    here, count = tuple(rest), cast(f.type(), size)
    zero = Expr.of(const(f.type(), 0))
    total = _over_rows("layer_total", rest, size, zero, lambda i: f[row(i, rest)], _add)
    mean, scale = Func("layer_mean"), Func("layer_scale")
    mean[here] = total[here] / count
    rooted(mean)
    squares = _over_rows("layer_squares", rest, size, zero, lambda i: (f[row(i, rest)] - mean[here]) * (f[row(i, rest)] - mean[here]), _add)
    scale[here] = 1 / sqrt(squares[here] / count + _number(epsilon, f))
    return mean, rooted(scale)


def layer_norm(x: Any, size: Any, epsilon: float = 1e-5) -> Func:
    """(x - mean) / sqrt(variance + epsilon) over i in [0, size) of x[i, ...]. Source: Ba, Kiros and Hinton, arXiv:1607.06450."""
    return _layer_norm(x, size, epsilon)  # type: ignore[no-any-return]


@_layer_norm.backward
def _(adjoint: Any, result: Any, x: Any, size: Any, epsilon: float) -> Any:
    f = as_func(x, "layer_norm")
    first, *rest = dims(f)
    at, here, count = (first, *rest), tuple(rest), cast(f.type(), size)
    _, scale = _moments(f, size, epsilon)
    zero = Expr.of(const(f.type(), 0))
    plain = _over_rows("layer_plain", rest, size, zero, lambda i: adjoint[row(i, rest)], _add)
    along = _over_rows("layer_along", rest, size, zero, lambda i: adjoint[row(i, rest)] * result[row(i, rest)], _add)
    d = Func("d_layer_norm")
    d[at] = scale[here] * (adjoint[at] - (plain[here] + result[at] * along[here]) / count)
    return (rooted(d), None, None)
