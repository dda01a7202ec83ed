"""The expressions of loop IR, interpreted: the half of `loop_ir` that evaluates. Vectors are lists of lanes.

Each node is turned into a closure once; names bind in one dictionary, as names are bound once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from ..errors import InternalError
from ..ir import nodes as n
from . import scalar
from .runtime import BUFFER_FUNCTIONS, extern_function, raise_error
from .scalar import Operation, Value
from .semaphores import Semaphores
from .storage import BufferArgument, TupleOutput

Thunk = Callable[[], Value]
Action = Callable[[], None]
Array = np.ndarray[Any, Any]


class TooMuchWork(InternalError):
    """A program takes more iterations than its interpreter was given."""


class Budget:
    """How many iterations of loops may still be run, all threads together; None: any number."""

    def __init__(self, iterations: int | None = None) -> None:
        self.left = iterations

    def spend(self, iterations: int) -> None:
        """Take from it. Raises TooMuchWork where it does not suffice."""
        if self.left is not None:
            self.left -= iterations
            if self.left < 0:
                raise TooMuchWork("This program takes more iterations than its interpreter was given")


class _Undefined:
    """The value of `undef`."""


UNDEFINED = _Undefined()


def each_lane(value: Value, lanes: int) -> list[Value]:
    """A value as so many lanes; a scalar is repeated."""
    return value if isinstance(value, list) else [value] * lanes


def _lanewise(op: Operation, args: list[Thunk], lanes: int) -> Thunk:
    """Apply a function of scalars to each lane."""
    if lanes == 1:
        if len(args) == 1:
            (a,) = args
            return lambda: op(a())
        if len(args) == 2:
            a, b = args
            return lambda: op(a(), b())
        return lambda: op(*[f() for f in args])
    if len(args) == 2:
        a, b = args
        return lambda: [op(x, y) for x, y in zip(each_lane(a(), lanes), each_lane(b(), lanes), strict=True)]
    return lambda: [op(*each) for each in zip(*[each_lane(f(), lanes) for f in args], strict=True)]


def _printed(value: Value) -> str:
    return f"{value:f}" if isinstance(value, float) else str(value)


class Evaluator:
    """Values of names, memory by name, and the closures made so far."""

    def __init__(self, externs: Mapping[str, Operation] | None = None, strict: bool = True, budget: Budget | None = None) -> None:
        self.strict, self.budget = strict, budget or Budget()
        self.values: dict[str, Value] = {}
        self.memory: dict[str, Any] = {}
        self.externs = dict(externs or {})
        self._made: dict[n.Node, Callable[[], Any]] = {}

    # -- expressions

    def expr(self, e: n.Expr) -> Thunk:
        """The closure that evaluates `e`."""
        made = self._made.get(e)
        if made is None:
            maker = _EXPRS.get(type(e))
            if maker is None:
                raise InternalError(f"The reference interpreter has no meaning for {type(e).__name__}")
            made = self._made[e] = maker(self, e)
        return made

    def _constant(self, e: Any) -> Thunk:
        value = e.value
        return lambda: value

    def _variable(self, e: n.Variable) -> Thunk:
        values, name, param = self.values, e.name, e.param

        def run() -> Value:
            try:
                return values[name]
            except KeyError:
                if param is not None and not param.is_buffer and param.value is not None:
                    return scalar.fit(param.value, param.type)
                raise InternalError(f"Variable {name} is not bound here") from None

        return run

    def _cast(self, e: n.Cast) -> Thunk:
        source, target = e.value.type.element_of(), e.type.element_of()
        return _lanewise(scalar.conversion(source, target), [self.expr(e.value)], e.type.lanes())

    def _reinterpret(self, e: n.Reinterpret) -> Thunk:
        source, target, many = e.value.type.element_of(), e.type.element_of(), e.value.type.lanes()
        value, width, lanes = self.expr(e.value), target.bits(), e.type.lanes()

        def run() -> Value:
            bits = sum(scalar.to_bits(v, source) << (i * source.bits()) for i, v in enumerate(each_lane(value(), many)))
            out = [scalar.from_bits(bits >> (i * width) & ((1 << width) - 1), target) for i in range(lanes)]
            return out if lanes > 1 else out[0]

        return run

    def _binary(self, e: Any) -> Thunk:
        return _lanewise(scalar.binary(type(e), e.a.type.element_of()), [self.expr(e.a), self.expr(e.b)], e.type.lanes())

    def _not(self, e: n.Not) -> Thunk:
        return _lanewise(lambda v: 1 - v, [self.expr(e.a)], e.type.lanes())

    def _select(self, e: n.Select) -> Thunk:
        parts = [self.expr(p) for p in e.children()]
        return _lanewise(lambda c, a, b: a if c else b, parts, e.type.lanes())

    def _load(self, e: n.Load) -> Thunk:
        index, predicate, lanes = self.expr(e.index), self.expr(e.predicate), e.type.lanes()

        def run() -> Value:
            memory = self.find(e.name)
            out = [memory.load(i) if p else 0 for i, p in zip(each_lane(index(), lanes), each_lane(predicate(), lanes), strict=True)]
            return out if lanes > 1 else out[0]

        return run

    def _ramp(self, e: n.Ramp) -> Thunk:
        base, stride, many, t = self.expr(e.base), self.expr(e.stride), e.base.type.lanes(), e.type.element_of()
        add, mul = scalar.binary(n.Add, t), scalar.binary(n.Mul, t)
        numbers = [scalar.fit(i, t) for i in range(e.lanes)]

        def run() -> Value:
            starts, steps = each_lane(base(), many), each_lane(stride(), many)
            return [add(b, mul(s, i)) for i in numbers for b, s in zip(starts, steps)]

        return run

    def _broadcast(self, e: n.Broadcast) -> Thunk:
        value, many = self.expr(e.value), e.value.type.lanes()
        return lambda: each_lane(value(), many) * e.lanes

    def _let(self, e: n.Let) -> Thunk:
        value, body = self.expr(e.value), self.expr(e.body)
        return lambda: self.binding(e.name, value(), body)

    def binding(self, name: str, value: Value, body: Callable[[], Any]) -> Any:
        """Run `body` with a name bound."""
        before = self.values.get(name)
        self.values[name] = value
        try:
            return body()
        finally:
            if before is None:
                del self.values[name]
            else:
                self.values[name] = before

    def _shuffle(self, e: n.Shuffle) -> Thunk:
        vectors = [(self.expr(v), v.type.lanes()) for v in e.vectors]

        def run() -> Value:
            joined = [lane for f, lanes in vectors for lane in each_lane(f(), lanes)]
            return [joined[i] for i in e.indices] if len(e.indices) > 1 else joined[e.indices[0]]

        return run

    def _vector_reduce(self, e: n.VectorReduce) -> Thunk:
        value, lanes, many = self.expr(e.value), e.lanes, e.value.type.lanes()
        op = scalar.binary(getattr(n, e.op.name), e.type.element_of())

        def run() -> Value:
            all_lanes, out = each_lane(value(), many), []
            for i in range(lanes):
                group = all_lanes[i * (many // lanes):(i + 1) * (many // lanes)]
                total = group[0]
                for lane in group[1:]:
                    total = op(total, lane)
                out.append(total)
            return out if lanes > 1 else out[0]

        return run

    # -- calls

    def _call(self, e: n.Call) -> Thunk:
        if e.call_type in (n.CallType.Image, n.CallType.Halide):
            return self._access(e)
        if e.call_type in (n.CallType.Intrinsic, n.CallType.PureIntrinsic):
            return self._intrinsic(e)
        args = [self.expr(a) for a in e.args]
        if e.name.startswith("halide_error_"):
            return lambda: raise_error(e.name, [a() for a in args])
        if e.name.startswith("halide_trace"):
            return lambda: 0
        function = BUFFER_FUNCTIONS.get(e.name) or extern_function(e.name, cast(Any, e.func), self.externs)
        if function is None:
            raise InternalError(f"The reference interpreter does not know the function {e.name}")
        return _lanewise(function, args, e.type.lanes()) if args else function

    def _access(self, e: n.Call) -> Thunk:
        args, lanes = [self.expr(a) for a in e.args], e.type.lanes()

        def run() -> Value:
            memory = self.find(e.name)
            if lanes == 1:
                return memory.read([a() for a in args], e.value_index)
            return [memory.read(at, e.value_index) for at in zip(*[each_lane(a(), lanes) for a in args])]

        return run

    def _intrinsic(self, e: n.Call) -> Thunk:
        args, lanes = [self.expr(a) for a in e.args], e.type.lanes()
        special = _LAZY.get(e.name)
        if special is not None:
            return special(self, e, args)
        op = scalar.intrinsic(e.name, e.type.element_of(), tuple(a.type.element_of() for a in e.args))
        return _lanewise(op, args, lanes)

    def _if_then_else(self, e: n.Call, args: list[Thunk]) -> Thunk:
        condition, lanes = args[0], e.type.lanes()
        otherwise = args[2] if len(args) > 2 else lambda: [0] * lanes if lanes > 1 else 0

        def run() -> Value:
            chosen = each_lane(condition(), lanes)
            if all(chosen):
                return args[1]()
            if not any(chosen):
                return otherwise()
            return [a if c else b for c, a, b in zip(chosen, each_lane(args[1](), lanes), each_lane(otherwise(), lanes))]

        return run

    def _require(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: args[1]() if all(each_lane(args[0](), 1)) else args[2]()

    def _print(self, e: n.Call, args: list[Thunk]) -> Thunk:
        first = 1 if e.name == "print_when" else 0

        def run() -> Value:
            values = [a() for a in args]
            if first == 0 or all(each_lane(values[0], 1)):
                sys.stdout.write(" ".join(map(_printed, values[first:])) + "\n")
            return values[first]

        return run

    def _undef(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: UNDEFINED

    def _trace(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: 0

    def _semaphores(self, e: n.Call, args: list[Thunk]) -> Thunk:
        group = cast(n.Load, e.args[0]).name

        def run() -> Value:
            self.memory[group] = Semaphores([a() for a in args[1:]])
            return 0

        return run

    def _semaphore(self, e: n.Call, args: list[Thunk]) -> Thunk:
        group = cast(n.Load, e.args[0]).name
        return lambda: getattr(self.memory[group], e.name.removeprefix("semaphore_"))(args[1]())

    # -- memory

    def find(self, name: str) -> Any:
        """The memory under a name; that of a tuple's elements joined."""
        found = self.memory.get(name)
        if found is None:
            parts: list[BufferArgument] = []
            while f"{name}.{len(parts)}" in self.memory:
                parts.append(self.memory[f"{name}.{len(parts)}"])
            if not parts:
                raise InternalError(f"Access of {name}, which has no storage here")
            found = self.memory[name] = TupleOutput(parts)
        return found


_E = Evaluator
_EXPRS: dict[type[n.Expr], Callable[[Evaluator, Any], Thunk]] = {
    n.IntImm: _E._constant, n.UIntImm: _E._constant, n.FloatImm: _E._constant, n.StringImm: _E._constant,
    n.Cast: _E._cast, n.Reinterpret: _E._reinterpret, n.Variable: _E._variable, n.Not: _E._not, n.Select: _E._select,
    n.Load: _E._load, n.Ramp: _E._ramp, n.Broadcast: _E._broadcast, n.Call: _E._call, n.Let: _E._let,
    n.Shuffle: _E._shuffle, n.VectorReduce: _E._vector_reduce, **dict.fromkeys(scalar.BINARY, _E._binary),
}
_LAZY: dict[str, Callable[[Evaluator, n.Call, list[Thunk]], Thunk]] = {
    "if_then_else": _E._if_then_else,
    "require": _E._require,
    "print": _E._print,
    "print_when": _E._print,
    "undef": _E._undef,
    "trace": _E._trace,
    "stringify": _E._trace,
    "memo_fetch": _E._trace,
    "memo_keep": _E._trace,
    "prefetch": _E._trace,
    "debug_to_file": _E._trace,
    "semaphores": _E._semaphores,
    "semaphore_acquire": _E._semaphore,
    "semaphore_release": _E._semaphore,
}
