"""Checks of derivatives that users can run: against differences in double precision, and the two modes against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import user_error
from ..ir.parameter import Parameter
from ..lang.buffer import Buffer
from ..lang.func import Func
from ..lang.ops import cast
from ..lang.param import Param
from ..lang.rdom import RDom
from .derivative import propagate_adjoints
from .tangents import propagate_tangents
from .widen import DOUBLE, Widened

Array = np.ndarray[Any, Any]
_FLOOR = 0.05  # errors of elements much smaller than the largest are measured against this part of it


@dataclass(frozen=True)
class GradientEntry:
    """One element of an input: where it is, its derivative by the reverse mode and by differences, and whether they agree."""

    name: str
    place: tuple[int, ...]
    reverse: float
    difference: float
    agrees: bool


@dataclass(frozen=True)
class GradientReport:
    """What `check_gradients` found; true if everything agrees. `narrow` are the functions that stayed in single precision."""

    entries: tuple[GradientEntry, ...]
    narrow: tuple[str, ...]
    tolerance: float

    def __bool__(self) -> bool:
        return all(e.agrees for e in self.entries)

    def worst(self, count: int = 10) -> list[GradientEntry]:
        """The elements that differ most."""
        return sorted(self.entries, key=lambda e: -abs(e.reverse - e.difference) if np.isfinite(e.reverse) else -np.inf)[:count]

    def __str__(self) -> str:
        wrong = sum(not e.agrees for e in self.entries)
        lines = [f"{len(self.entries)} derivatives, {wrong} differ by more than {self.tolerance:g}"]
        lines += [f"in single precision: {', '.join(self.narrow)}"] if self.narrow else []
        for e in self.worst() if wrong else []:
            place = f"[{', '.join(map(str, e.place))}]" if e.place else ""
            lines.append(f"{'     ' if e.agrees else 'WRONG'} {e.name}{place}: {e.reverse:.8g}, by differences {e.difference:.8g}")
        return "\n".join(lines)


def _data(given: Any) -> tuple[Parameter, Array, list[int]]:
    """An input with its numbers (dimension 0 last) and mins."""
    p = getattr(given, "param", None)
    if not isinstance(p, Parameter) or not p.type.is_float():
        raise user_error(f"wrt takes float Buffers, ImageParams and Params, not {given!r}")
    if not p.is_buffer:
        if p.value is None:
            raise user_error(f"Param {p.name} has no value to take the derivative at; set() it")
        return p, np.array(float(p.value)), []
    if p.buffer is None:
        raise user_error(f"ImageParam {p.name} has no data to take the derivative at; set() it")
    return p, np.array(p.buffer, np.float64), [p.buffer.dim(d).min() for d in range(p.dimensions)]


def _weights(output: Func, bounds: Any, rng: np.random.Generator) -> Buffer | None:
    """A number for each value of the output, so that none can hide behind another."""
    if len(output.types()) != 1:
        raise user_error(f"Func {output.name()} has {len(output.types())} values; check a Func of one of them")
    if output.dimensions() == 0:
        return None
    if bounds is None or len(bounds) != output.dimensions():
        raise user_error(f"Func {output.name()} has {output.dimensions()} dimensions; give bounds: a (min, extent) pair for each")
    values = rng.uniform(0.5, 1.5, [int(extent) for _, extent in bounds][::-1])
    weights = Buffer(values.astype({16: np.float16, 32: np.float32, 64: np.float64}[output.type().bits()]))
    weights.set_min([int(low) for low, _ in bounds])
    return weights


def _weighted(output: Func, weights: Buffer | None) -> Func:
    """The sum of the output's values times their weights, in double precision."""
    loss = Func(f"{output.name().replace('$', '_')}_weighted")
    if weights is None:
        loss[()] = cast(DOUBLE, output[()])
        return loss
    r = RDom([(weights.dim(d).min(), weights.dim(d).extent()) for d in range(weights.dimensions())])
    at = tuple(r[d] for d in range(weights.dimensions()))
    loss[()] = cast(DOUBLE, 0)
    loss[()] += cast(DOUBLE, output[at]) * cast(DOUBLE, weights[at])
    return loss


def _buffer(values: Array, mins: Sequence[int]) -> Buffer:
    buffer = Buffer(np.array(values, order="C"))
    if mins:
        buffer.set_min(list(mins))
    return buffer


def _set(target: Any, values: Array, mins: Sequence[int]) -> None:
    target.set(float(values) if isinstance(target, Param) else _buffer(values, mins))


def _gradient(d: Func, values: Array, mins: Sequence[int]) -> Array:
    """An adjoint over the shape of its input."""
    out = _buffer(np.zeros(values.shape, {16: np.float16, 32: np.float32, 64: np.float64}[d.type().bits()]), mins)
    d.realize(out)
    return np.array(out, np.float64)


def check_gradients(
    output: Func,
    wrt: Sequence[Any],
    bounds: Any = None,
    eps: float | None = None,
    tolerance: float | None = None,
    elements: int = 256,
    seed: int = 0,
) -> GradientReport:
    """Compare the reverse mode with central differences, for the numbers the inputs hold now.

    `wrt`: Buffers, ImageParams and Params. `bounds`: for an output with dimensions the region, a (min, extent) pair a dimension; its values
    are summed with random weights. Differences are those of a copy of the pipeline in double precision, with step `eps` (default 1e-6; 1e-2
    if a function exists in single precision only). They agree if they differ by at most `tolerance` (default 1e-3; 2e-2) of their size, or
    of 5% of the largest of the input. Of inputs with more than `elements` elements so many are drawn at random (`seed`). Print the report,
    or test it: it is true when all agree.

    Away from the gradient itself nothing is proved: at a kink the two differ, and rightly so.

    >>> assert hl.check_gradients(loss, [image, k])
    """
    rng = np.random.default_rng(seed)
    inputs = [_data(w) for w in wrt]
    weights = _weights(output, bounds, rng)
    d = propagate_adjoints(output, weights)
    double = Widened(output.function)
    loss = _weighted(double.output, weights)
    step = eps if eps is not None else 1e-2 if double.narrow else 1e-6
    limit = tolerance if tolerance is not None else 2e-2 if double.narrow else 1e-3
    for p, made in double.inputs.items():
        _set(made, *_data(_Holder(p))[1:])
    entries: list[GradientEntry] = []
    for given, (p, values, mins) in zip(wrt, inputs):
        held = double.inputs.get(p)
        gradient = _gradient(d[given], values, mins)
        places = list(np.ndindex(values.shape))
        chosen = [places[i] for i in sorted(rng.choice(len(places), elements, replace=False))] if len(places) > elements else places
        found = [0.0 if held is None else _difference(loss, held, values, mins, at, step) for at in chosen]
        largest = max(map(abs, found), default=0.0)
        for at, slope in zip(chosen, found):
            error = abs(float(gradient[at]) - slope)
            agrees = bool(error <= limit * max(abs(slope), _FLOOR * largest, 1e-12))
            entries.append(GradientEntry(p.name, tuple(i + m for i, m in zip(at[::-1], mins)), float(gradient[at]), slope, agrees))
    return GradientReport(tuple(entries), tuple(double.narrow), limit)


class _Holder:
    """A parameter as `_data` takes it."""

    def __init__(self, p: Parameter) -> None:
        self.param = p


def _difference(loss: Func, made: Any, values: Array, mins: Sequence[int], at: tuple[int, ...], step: float) -> float:
    ends = []
    for sign in (1, -1):
        moved = values.copy()
        moved[at] += sign * step
        _set(made, moved, mins)
        ends.append((moved[at], float(np.array(loss.realize([])))))
    _set(made, values, mins)
    return float((ends[0][1] - ends[1][1]) / (ends[0][0] - ends[1][0]))


def check_dot_product(output: Func, wrt: Sequence[Any], bounds: Any = None, tolerance: float = 1e-4, seed: int = 0) -> tuple[float, float]:
    """The dot-product test: for random directions u of the inputs and weights w of the output, <J u, w> by the forward mode and <u, J^T w>
    by the reverse mode. Gives both; they are equal for any pipeline. Arguments as for `check_gradients`.

    Raises CompileError, with both numbers, when they differ by more than `tolerance` of the sum of the sizes of their terms.
    """
    rng = np.random.default_rng(seed)
    inputs = [_data(w) for w in wrt]
    weights = _weights(output, bounds, rng)
    moves: list[Array] = [np.asarray(rng.normal(size=values.shape)) for _, values, _ in inputs]
    seeds: list[Any] = []
    for (p, _, mins), move in zip(inputs, moves):
        kind = {16: np.float16, 32: np.float32, 64: np.float64}[p.type.bits()]
        seeds.append(float(move) if not p.is_buffer else _buffer(move.astype(kind), mins))
    forward = float(np.array(_weighted(propagate_tangents(output, list(zip(wrt, seeds))), weights).realize([])))
    d = propagate_adjoints(output, weights)
    terms = [_gradient(d[given], values, mins) * move for given, (_, values, mins), move in zip(wrt, inputs, moves)]
    reverse = float(sum(t.sum() for t in terms))
    size = float(sum(np.abs(t).sum() for t in terms))
    if not abs(forward - reverse) <= tolerance * max(size, 1e-12):
        raise user_error(f"The dot-product test of Func {output.name()} fails: <J u, w> is {forward:.9g} by the forward mode, <u, J^T w> "
                         f"is {reverse:.9g} by the reverse mode; a gradient rule is not the derivative of what its function computes")
    return forward, reverse
