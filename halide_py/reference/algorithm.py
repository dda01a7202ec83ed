"""An interpreter of the algorithm: Funcs are evaluated from their definitions alone, schedules are ignored.

A Func is computed over a box, grown when more of it is asked for. Pure definitions are evaluated over the whole box at
once; updates run point by point over the reduction domain, first variable fastest, over all of the box in the free pure
variables at once (those points are independent of each other). A value under a false condition of a select is not
evaluated, so an access there is no error. Signed overflow wraps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..errors import InternalError, PipelineError
from ..ir import nodes as n
from ..ir.build import FALSE, TRUE, and_
from ..ir.function import Definition, Function
from ..ir.parameter import Parameter
from . import arrays, scalar
from .arrays import Array
from .definitions import Box, boxes_of, conjuncts, covers, defined_where, has_data, index_box, shape_of, union, variants
from .runtime import extern_function, raise_error
from .scalar import Operation

_EXACT_INDEX = np.int64


class _Grow(Exception):
    """The Func being computed is needed over a larger box."""

    def __init__(self, box: Box) -> None:
        super().__init__(box)
        self.box = box


@dataclass(eq=False)
class _Computed:
    """A Func's values over a box, one array per tuple element."""

    box: Box
    values: list[Array]


@dataclass(eq=False)
class _Context:
    """Where an expression is evaluated: values of names, the points that count, and what was evaluated already.

    `self_name` is the Func whose update is running, `current` its values so far.
    """

    names: dict[str, Array]
    active: Array
    self_name: str = ""
    current: _Computed | None = None
    memo: dict[n.Expr, Array] = field(default_factory=dict)
    free_memo: dict[n.Expr, Array] = field(default_factory=dict)  # of expressions without calls: shared by sub-contexts

    def where(self, condition: Array) -> _Context:
        """The same with fewer points that count."""
        return _Context(self.names, self.active & condition, self.self_name, self.current, {}, self.free_memo)

    def binding(self, name: str, value: Array) -> _Context:
        """The same with one more name."""
        return _Context({**self.names, name: value}, self.active, self.self_name, self.current)


class Evaluator:
    """One realization: inputs, and what has been computed of each Func."""

    def __init__(self, inputs: Mapping[str, Any], scalars: Mapping[str, Any], externs: Mapping[str, Operation]) -> None:
        self.inputs, self.scalars, self.externs = inputs, scalars, externs
        self.computed: dict[Function, _Computed] = {}
        self.outputs: dict[str, Box] = {}
        self._has_data: dict[n.Expr, bool] = {}
        self._buffers: dict[Parameter, tuple[Array, list[int]]] = {}

    # -- regions

    def require(self, f: Function, box: Box) -> _Computed:
        """Values of `f` over at least `box`."""
        have = self.computed.get(f)
        if have is None or not covers(have.box, box):
            have = self.computed[f] = self._compute(f, union(have.box if have else None, box))
        return have

    def _compute(self, f: Function, box: Box) -> _Computed:
        if f.pure is None:
            raise InternalError(f"Func {f.name} is used but was never defined")
        for _ in range(1000):
            result = _Computed(box, [np.zeros(shape_of(box), arrays.value_dtype(t)) for t in f.types])
            if 0 in shape_of(box):
                return result
            try:
                for stage in f.stages():
                    self._run_stage(f, stage, result)
                return result
            except _Grow as grow:
                box = union(box, grow.box)
        raise InternalError(f"The region needed of Func {f.name} grows without end")

    def _coordinates(self, f: Function, box: Box, free: Sequence[int]) -> dict[str, Array]:
        """An array for each free pure variable, along its own axis."""
        out: dict[str, Array] = {}
        for axis, d in enumerate(free):
            values = np.arange(box[d][0], box[d][1] + 1, dtype=np.int32)
            out[f.args[d]] = values.reshape([-1 if i == axis else 1 for i in range(len(free))])
        return out

    def _run_stage(self, f: Function, d: Definition, result: _Computed) -> None:
        free = [i for i, a in enumerate(d.args) if type(a) is n.Variable and a.name == f.args[i]]
        names = self._coordinates(f, result.box, free)
        shape = tuple(shape_of(result.box)[i] for i in free)
        domain = self._domain(d)
        if any(not values for _, values in domain):
            return
        self._prefetch(f, d, names, len(free), domain, result)
        grown: Box | None = None
        for point in itertools.product(*(values for _, values in reversed(domain))):
            at = {name: np.array(v, np.int32) for (name, _), v in zip(reversed(domain), point)}
            context = _Context({**names, **at}, np.ones(shape, np.bool_), f.name, result)
            outside = self._run_point(d, context, shape)
            grown = union(grown, outside) if outside else grown
        if grown is not None:
            raise _Grow(grown)

    def _domain(self, d: Definition) -> list[tuple[str, range]]:
        """The reduction variables with their ranges, first variable first."""
        out = []
        context = _Context({}, np.ones((), np.bool_))
        for v in d.rdom.variables if d.rdom else ():
            low, extent = int(self.eval(v.min, context)), int(self.eval(v.extent, context))
            out.append((v.name, range(low, low + extent)))
        return out

    def _run_point(self, d: Definition, context: _Context, shape: tuple[int, ...]) -> Box | None:
        """Run a definition at one point of its reduction domain; returns the box of writes that fell outside of what is computed."""
        current = cast(_Computed, context.current)
        if d.predicate is not TRUE:
            context = context.where(self.eval(d.predicate, context))
        writes: list[tuple[Array, list[Array], list[Array | None]]] = []
        for args, values in variants(d):
            defined: n.Expr = TRUE
            stored = [v for v in values if defined_where(v) is not FALSE]  # elements of a tuple that have no value keep what they had
            for v in stored:
                defined = and_(defined, defined_where(v))
            inner = context if defined is TRUE else context.where(self.eval(defined, context))
            if stored and inner.active.any():
                index = [self.eval(a, inner) for a in args]
                writes.append((inner.active, index, [self.eval(v, inner) if v in stored else None for v in values]))
        grown: Box | None = None
        for active, index, new in writes:
            box = index_box(index, np.broadcast_to(active, shape))
            if box is not None and not covers(current.box, box):
                grown = union(grown, box)
                continue
            chosen = np.broadcast_to(active, shape)
            place = tuple(np.broadcast_to(i.astype(_EXACT_INDEX) - low, shape)[chosen] for i, (low, _) in zip(index, current.box))
            for target, value in zip(current.values, new):
                if value is not None:
                    there = np.broadcast_to(value, shape)[chosen]
                    target[place] = there if place else there[0]
        return grown

    def _prefetch(
        self, f: Function, d: Definition, names: dict[str, Array], rank: int, domain: list[tuple[str, range]], result: _Computed
    ) -> None:
        """Compute at once the boxes that a stage certainly needs of other Funcs, rather than growing them tap by tap."""
        names = {name: a.reshape(a.shape + (1,) * len(domain)) for name, a in names.items()}
        for i, (name, values) in enumerate(domain):
            names[name] = np.array(values, np.int32).reshape([-1 if k == rank + i else 1 for k in range(rank + len(domain))])
        context = _Context(names, np.ones((1,) * (rank + len(domain)), np.bool_), f.name, result)
        if d.predicate is not TRUE:
            if self._data(d.predicate):
                return
            context = context.where(self.eval(d.predicate, context))
        boxes: dict[Function, Box] = {}
        for e in (*d.args, *d.values):
            self._demand(e, context, boxes, set())
        for callee, box in boxes.items():
            self.require(callee, box)

    def _data(self, e: n.Expr) -> bool:
        found = self._has_data.get(e)
        if found is None:
            found = self._has_data[e] = has_data(e)
        return found

    def _demand(self, e: n.Expr, context: _Context, boxes: dict[Function, Box], seen: set[n.Expr]) -> None:
        """Record the boxes of the calls in `e` that are evaluated for certain and whose coordinates depend on no data."""
        if e in seen or not e.mask & n.Call.bit or not context.active.any():
            return
        seen.add(e)
        lazy = type(e) is n.Call and e.name in ("if_then_else", "gather", "scatter", "require")
        if type(e) is n.Select and not self._data(e.condition):
            condition = self.eval(e.condition, context)
            self._demand(e.true_value, context.where(condition), boxes, set())
            self._demand(e.false_value, context.where(~condition), boxes, set())
        elif type(e) in (n.Select, n.Let, n.And, n.Or) or lazy:
            return
        else:
            for child in e.children():
                self._demand(child, context, boxes, seen)
            if type(e) is n.Call and isinstance(e.func, Function) and not any(self._data(a) for a in e.args):
                box = index_box([self.eval(a, context) for a in e.args], context.active)
                if box is not None:
                    boxes[e.func] = union(boxes.get(e.func), box)

    # -- expressions

    def eval(self, e: n.Expr, context: _Context) -> Array:
        """The value of `e` at the points of the context, broadcast as far as it depends on them; garbage where a point does not count."""
        memo = context.memo if e.mask & n.Call.bit else context.free_memo
        found = memo.get(e)
        if found is None:
            handler = _HANDLERS.get(type(e))
            if handler is None:
                raise InternalError(f"The reference interpreter has no meaning for {type(e).__name__} in a definition")
            found = memo[e] = np.asarray(handler(self, e, context))
        return found

    def _constant(self, e: Any, context: _Context) -> Array:
        return np.array(e.value, dtype=object if e.type.is_handle() else arrays.value_dtype(e.type))

    def _variable(self, e: n.Variable, context: _Context) -> Array:
        if e.name in context.names:
            return context.names[e.name]
        if e.param is None:
            raise InternalError(f"Variable {e.name} has no value here")
        if not e.param.is_buffer:
            value = self.scalars.get(e.param.name, e.param.value)
            if value is None:
                raise PipelineError(f"Parameter {e.param.name} has no value")
            return np.array(scalar.fit(value, e.type), arrays.value_dtype(e.type))
        return np.array(self._shape_symbol(e.param, e.name), np.int32)

    def _shape_symbol(self, param: Parameter, symbol: str) -> int:
        name, what, dimension = symbol.rsplit(".", 2)
        d = int(dimension)
        if name in self.outputs:
            low, high = self.outputs[name][d]
            extents = [b[1] - b[0] + 1 for b in self.outputs[name]]
            fields = {"min": low, "extent": high - low + 1, "stride": int(np.prod(extents[:d], dtype=np.int64))}
        else:
            array, mins = self._buffer(param)
            fields = {"min": mins[d], "extent": array.shape[d], "stride": array.strides[d] // array.itemsize}
        return fields[what]

    def _buffer(self, param: Parameter) -> tuple[Array, list[int]]:
        """Array (dimension 0 first) and mins of an input buffer."""
        found = self._buffers.get(param)
        if found is None:
            given = self.inputs.get(param.name)
            if given is None and param.buffer is not None:
                mins = [param.buffer.dim(i).min() for i in range(param.dimensions)]
                given = np.asarray(param.buffer).T, mins
            if given is None:
                raise PipelineError(f"Input buffer {param.name} has no value")
            array, mins = given if isinstance(given, tuple) else (given, [0] * given.ndim)
            found = self._buffers[param] = arrays.from_memory(array, param.type), list(mins)
        return found

    def _cast(self, e: n.Cast, context: _Context) -> Array:
        return arrays.convert(self.eval(e.value, context), e.value.type, e.type)

    def _reinterpret(self, e: n.Reinterpret, context: _Context) -> Array:
        return arrays.reinterpret(self.eval(e.value, context), e.value.type, e.type)

    def _binary(self, e: Any, context: _Context) -> Array:
        return arrays.binary(type(e), e.a.type, self.eval(e.a, context), self.eval(e.b, context))

    def _and(self, e: n.And, context: _Context) -> Array:
        parts = conjuncts(e)
        value: Array = np.array(True)
        for part in parts:
            value = value if self._data(part) else value & self.eval(part, context)
        inside = context if value.all() else context.where(value)  # conditions on data are asked where the others hold
        for part in parts:
            value = value & self.eval(part, inside) if self._data(part) else value
        return value

    def _or(self, e: n.Or, context: _Context) -> Array:
        """As the conjunction of what is not so."""
        return ~self._and(n.And(n.Not(e.a), n.Not(e.b)), context)

    def _not(self, e: n.Not, context: _Context) -> Array:
        return ~self.eval(e.a, context)

    def _choose(self, condition: n.Expr, a: n.Expr, b: n.Expr | None, context: _Context) -> Array:
        """Each value where it is chosen, evaluated there only."""
        chosen = self.eval(condition, context).astype(np.bool_)
        yes, no = context.where(chosen), context.where(~chosen)
        zero = np.zeros((), arrays.value_dtype(a.type))
        x = self.eval(a, yes) if yes.active.any() else zero
        y = self.eval(b, no) if b is not None and no.active.any() else zero
        return np.where(chosen, x, y)

    def _select(self, e: n.Select, context: _Context) -> Array:
        return self._choose(e.condition, e.true_value, e.false_value, context)

    def _let(self, e: n.Let, context: _Context) -> Array:
        return self.eval(e.body, context.binding(e.name, self.eval(e.value, context)))

    def _call(self, e: n.Call, context: _Context) -> Array:
        if e.call_type is n.CallType.Halide:
            return self._call_func(e, context)
        if e.call_type is n.CallType.Image:
            return self._call_image(e, context)
        if e.call_type in (n.CallType.Intrinsic, n.CallType.PureIntrinsic):
            return self._intrinsic(e, context)
        args = [self.eval(a, context) for a in e.args]
        if e.name.startswith("halide_error_"):
            raise_error(e.name, [a.ravel()[0] for a in args])
        if e.name not in self.externs:
            value = arrays.math(e.name, e.type, *args)
            if value is not None:
                return value
        function = extern_function(e.name, cast(Any, e.func), self.externs)
        if function is None:
            raise InternalError(f"The reference interpreter does not know the function {e.name}; pass it in externs")
        return arrays.each(function, e.type, *args)

    def _pick(self, values: Array, index: list[Array], low: Sequence[int], active: Array) -> Array:
        """Elements at the coordinates; element 0 where a point does not count."""
        place = tuple(np.where(active, i.astype(_EXACT_INDEX) - m, 0) for i, m in zip(index, low))
        picked: Array = values[place]
        return picked

    def _call_func(self, e: n.Call, context: _Context) -> Array:
        index = [self.eval(a, context) for a in e.args]
        box = index_box(index, context.active)
        if box is None:
            return np.zeros((), arrays.value_dtype(e.type))
        if isinstance(e.func, Function) and e.name != context.self_name:
            source = self.require(e.func, box)
        elif context.current is not None and e.name == context.self_name:
            source = context.current
            if not covers(source.box, box):
                raise _Grow(box)
        else:
            raise InternalError(f"Call of {e.name}, which is neither a Func nor the one being updated")
        return self._pick(source.values[e.value_index], index, [low for low, _ in source.box], context.active)

    def _call_image(self, e: n.Call, context: _Context) -> Array:
        if e.param is None:
            raise InternalError(f"Read of image {e.name} without a parameter")
        array, mins = self._buffer(e.param)
        index = [self.eval(a, context) for a in e.args]
        box = index_box(index, context.active)
        if box is None:
            return np.zeros((), arrays.value_dtype(e.type))
        for d, ((low, high), m, extent) in enumerate(zip(box, mins, array.shape)):
            if low < m or high > m + extent - 1:
                raise_error("halide_error_access_out_of_bounds", [f"Input buffer {e.name}", d, low, high, m, m + extent - 1])
        return self._pick(array, index, mins, context.active)

    def _intrinsic(self, e: n.Call, context: _Context) -> Array:
        if e.name == "if_then_else":
            return self._choose(e.args[0], e.args[1], e.args[2] if len(e.args) > 2 else None, context)
        if e.name == "require":
            failed = context.where(~self.eval(e.args[0], context))
            if failed.active.any():
                self.eval(e.args[2], failed)
            return self.eval(e.args[1], context)
        if e.name == "undef":
            return np.zeros((), arrays.value_dtype(e.type))
        if e.name == "print_when":
            return self.eval(e.args[1], context)
        args = [self.eval(a, context) for a in e.args]
        return arrays.intrinsic(e.name, e.type, tuple(a.type for a in e.args), *args)


_E = Evaluator
_HANDLERS: dict[type[n.Expr], Any] = {
    n.IntImm: _E._constant, n.UIntImm: _E._constant, n.FloatImm: _E._constant, n.StringImm: _E._constant,
    n.Variable: _E._variable, n.Cast: _E._cast, n.Reinterpret: _E._reinterpret, n.Not: _E._not, n.Select: _E._select,
    **dict.fromkeys(scalar.BINARY, _E._binary), n.And: _E._and, n.Or: _E._or, n.Let: _E._let, n.Call: _E._call,
}


def realize(outputs: Sequence[Function], shapes: Any, mins: Any = None, *, inputs: Mapping[str, Any] | None = None,
            scalars: Mapping[str, Any] | None = None, externs: Mapping[str, Operation] | None = None) -> list[Array]:
    """Values of Funcs over a box of the given shape (dimension 0 first) and mins (default 0), ignoring every schedule.

    `inputs` maps names of input buffers to arrays (dimension 0 first) or (array, mins), `scalars` names of parameters to numbers;
    what is missing comes from the Parameters themselves. `externs` maps names of C functions to Python functions of scalars.
    Returns one array for each tuple element of each output. Raises PipelineError for a read outside an input, a parameter
    without a value and a failed requirement.
    """
    evaluator = Evaluator(inputs or {}, scalars or {}, externs or {})
    results = []
    with np.errstate(all="ignore"):
        wanted = list(zip(outputs, boxes_of(outputs, shapes, mins)))
        for f, box in wanted:
            for i in range(len(f.types)):
                evaluator.outputs[f.buffer_name(i)] = box
        for f, box in wanted:
            have = evaluator.require(f, box)
            cut = tuple(slice(b[0] - h[0], b[1] - h[0] + 1) for b, h in zip(box, have.box))
            results += [arrays.to_memory(values[cut], t) for values, t in zip(have.values, f.types)]
    return results
