"""An interpreter of loop IR, before flattening (Realize, Provide, calls by coordinates) and after it (Allocate, Load, Store).

It checks what compiled code does not: an access outside the realized box or allocation, a read of an element never
written and a name that is not bound are InternalErrors. All loops run serially, in order. Vectors are lists of lanes.
Each node is turned into a closure once; names bind in one dictionary, as names are bound once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import InternalError
from ..ir import nodes as n
from ..ir.module import ArgumentKind, LoweredFunction
from ..ir.types import Type
from . import scalar
from .runtime import BUFFER_FUNCTIONS, extern_function, raise_error
from .scalar import Operation, Value
from .storage import BufferArgument, Flat, Region, TupleOutput

Thunk = Callable[[], Value]
Action = Callable[[], None]
Array = np.ndarray[Any, Any]


class _Undefined:
    """The value of `undef`."""


UNDEFINED = _Undefined()


def _lanes(value: Value, lanes: int) -> list[Value]:
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
    return lambda: [op(*each) for each in zip(*[_lanes(f(), lanes) for f in args], strict=True)]


def _printed(value: Value) -> str:
    return f"{value:f}" if isinstance(value, float) else str(value)


class Interpreter:
    """One run: values of names, memory by name, and the closures made so far."""

    def __init__(self, externs: Mapping[str, Operation] | None = None, strict: bool = True) -> None:
        self.strict = strict
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
        return _lanewise(lambda v: scalar.convert(v, source, target), [self.expr(e.value)], e.type.lanes())

    def _reinterpret(self, e: n.Reinterpret) -> Thunk:
        source, target, many = e.value.type.element_of(), e.type.element_of(), e.value.type.lanes()
        value, width, lanes = self.expr(e.value), target.bits(), e.type.lanes()

        def run() -> Value:
            bits = sum(scalar.to_bits(v, source) << (i * source.bits()) for i, v in enumerate(_lanes(value(), many)))
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
            memory = self._find(e.name)
            out = [memory.load(i) if p else 0 for i, p in zip(_lanes(index(), lanes), _lanes(predicate(), lanes), strict=True)]
            return out if lanes > 1 else out[0]

        return run

    def _ramp(self, e: n.Ramp) -> Thunk:
        base, stride, many, t = self.expr(e.base), self.expr(e.stride), e.base.type.lanes(), e.type.element_of()
        add, mul = scalar.binary(n.Add, t), scalar.binary(n.Mul, t)

        def run() -> Value:
            starts, steps = _lanes(base(), many), _lanes(stride(), many)
            return [add(b, mul(s, scalar.fit(i, t))) for i in range(e.lanes) for b, s in zip(starts, steps)]

        return run

    def _broadcast(self, e: n.Broadcast) -> Thunk:
        value, many = self.expr(e.value), e.value.type.lanes()
        return lambda: _lanes(value(), many) * e.lanes

    def _let(self, e: n.Let) -> Thunk:
        value, body = self.expr(e.value), self.expr(e.body)
        return lambda: self._with(e.name, value(), body)

    def _with(self, name: str, value: Value, body: Callable[[], Any]) -> Any:
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
            joined = [lane for f, lanes in vectors for lane in _lanes(f(), lanes)]
            return [joined[i] for i in e.indices] if len(e.indices) > 1 else joined[e.indices[0]]

        return run

    def _vector_reduce(self, e: n.VectorReduce) -> Thunk:
        value, lanes, many = self.expr(e.value), e.lanes, e.value.type.lanes()
        op = scalar.binary(getattr(n, e.op.name), e.type.element_of())

        def run() -> Value:
            all_lanes, out = _lanes(value(), many), []
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
        if e.name.startswith("_halide_buffer_"):
            function = BUFFER_FUNCTIONS.get(e.name.removeprefix("_halide_buffer_"))
        else:
            function = extern_function(e.name, cast(Any, e.func), self.externs)
        if function is None:
            raise InternalError(f"The reference interpreter does not know the function {e.name}")
        return _lanewise(function, args, e.type.lanes()) if args else function

    def _access(self, e: n.Call) -> Thunk:
        args, lanes = [self.expr(a) for a in e.args], e.type.lanes()

        def run() -> Value:
            memory = self._find(e.name)
            if lanes == 1:
                return memory.read([a() for a in args], e.value_index)
            return [memory.read(at, e.value_index) for at in zip(*[_lanes(a(), lanes) for a in args])]

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
            chosen = _lanes(condition(), lanes)
            if all(chosen):
                return args[1]()
            if not any(chosen):
                return otherwise()
            return [a if c else b for c, a, b in zip(chosen, _lanes(args[1](), lanes), _lanes(otherwise(), lanes))]

        return run

    def _require(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: args[1]() if all(_lanes(args[0](), 1)) else args[2]()

    def _print(self, e: n.Call, args: list[Thunk]) -> Thunk:
        first = 1 if e.name == "print_when" else 0

        def run() -> Value:
            values = [a() for a in args]
            if first == 0 or all(_lanes(values[0], 1)):
                sys.stdout.write(" ".join(map(_printed, values[first:])) + "\n")
            return values[first]

        return run

    def _undef(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: UNDEFINED

    def _trace(self, e: n.Call, args: list[Thunk]) -> Thunk:
        return lambda: 0

    # -- statements

    def stmt(self, s: n.Stmt) -> Action:
        """The closure that runs `s`."""
        made = self._made.get(s)
        if made is None:
            maker = _STMTS.get(type(s))
            if maker is None:
                raise InternalError(f"The reference interpreter has no meaning for {type(s).__name__}")
            made = self._made[s] = maker(self, s)
        return made

    def _let_stmt(self, s: n.LetStmt) -> Action:
        value, body = self.expr(s.value), self.stmt(s.body)

        def run() -> None:
            self._with(s.name, value(), body)

        return run

    def _assert(self, s: n.Assert) -> Action:
        condition, message = self.expr(s.condition), self.expr(s.message)

        def run() -> None:
            if not condition():
                raise InternalError(f"An assertion's message returned {message()} instead of reporting an error")

        return run

    def _produce(self, s: n.Produce | n.HoistedStorage | n.Atomic) -> Action:
        return self.stmt(s.body)

    def _for(self, s: n.For) -> Action:
        low, extent, body, values, name = self.expr(s.min), self.expr(s.extent), self.stmt(s.body), self.values, s.name

        def run() -> None:
            start = low()
            for i in range(start, start + extent()):
                values[name] = i
                body()
            values.pop(name, None)

        return run

    def _store(self, s: n.Store) -> Action:
        value, index, predicate, lanes = self.expr(s.value), self.expr(s.index), self.expr(s.predicate), s.index.type.lanes()

        def run() -> None:
            memory = self._find(s.name)
            new = value()
            if new is UNDEFINED:
                return
            for v, i, p in zip(_lanes(new, lanes), _lanes(index(), lanes), _lanes(predicate(), lanes), strict=True):
                if p:
                    memory.store(i, v)

        return run

    def _provide(self, s: n.Provide) -> Action:
        values, args, predicate = [self.expr(v) for v in s.values], [self.expr(a) for a in s.args], self.expr(s.predicate)

        def run() -> None:
            if predicate():
                memory, new, at = self._find(s.name), [v() for v in values], [a() for a in args]
                for i, value in enumerate(new):
                    if value is not UNDEFINED:
                        memory.write(at, i, value)

        return run

    def _realize(self, s: n.Realize) -> Action:
        mins, extents = [self.expr(m) for m in s.mins], [self.expr(e) for e in s.extents]
        condition, body = self.expr(s.condition), self.stmt(s.body)

        def run() -> None:
            sizes = [e() for e in extents] if condition() else [0 for _ in extents]
            self._alive(s.name, Region(s.name, [m() for m in mins], sizes), body)

        return run

    def _allocate(self, s: n.Allocate) -> Action:
        extents, condition, body = [self.expr(e) for e in s.extents], self.expr(s.condition), self.stmt(s.body)

        def run() -> None:
            size = 0
            if condition():
                size = s.padding + int(np.prod([e() for e in extents], dtype=object) if extents else 1)
            self._alive(s.name, Flat(s.name, size, s.type, self.strict), body)

        return run

    def _alive(self, name: str, memory: Any, body: Action) -> None:
        before = self.memory.get(name)
        self.memory[name] = memory
        body()
        if before is None:
            del self.memory[name]
        else:
            self.memory[name] = before

    def _find(self, name: str) -> Any:
        found = self.memory.get(name)
        if found is None:
            parts: list[BufferArgument] = []
            while f"{name}.{len(parts)}" in self.memory:
                parts.append(self.memory[f"{name}.{len(parts)}"])
            if not parts:
                raise InternalError(f"Access of {name}, which has no storage here")
            found = self.memory[name] = TupleOutput(parts)
        return found

    def _block(self, s: n.Block) -> Action:
        parts = [self.stmt(p) for p in s.stmts]

        def run() -> None:
            for part in parts:
                part()

        return run

    def _if(self, s: n.IfThenElse) -> Action:
        condition, then_case = self.expr(s.condition), self.stmt(s.then_case)
        else_case = None if s.else_case is None else self.stmt(s.else_case)

        def run() -> None:
            if condition():
                then_case()
            elif else_case is not None:
                else_case()

        return run

    def _evaluate(self, s: n.Evaluate) -> Action:
        value = self.expr(s.value)

        def run() -> None:
            value()

        return run


_I = Interpreter
_EXPRS: dict[type[n.Expr], Callable[[Interpreter, Any], Thunk]] = {
    n.IntImm: _I._constant, n.UIntImm: _I._constant, n.FloatImm: _I._constant, n.StringImm: _I._constant,
    n.Cast: _I._cast, n.Reinterpret: _I._reinterpret, n.Variable: _I._variable, n.Not: _I._not, n.Select: _I._select,
    n.Load: _I._load, n.Ramp: _I._ramp, n.Broadcast: _I._broadcast, n.Call: _I._call, n.Let: _I._let,
    n.Shuffle: _I._shuffle, n.VectorReduce: _I._vector_reduce, **dict.fromkeys(scalar.BINARY, _I._binary),
}
_STMTS: dict[type[n.Stmt], Callable[[Interpreter, Any], Action]] = {
    n.LetStmt: _I._let_stmt, n.Assert: _I._assert, n.Produce: _I._produce, n.HoistedStorage: _I._produce, n.Atomic: _I._produce, n.For: _I._for, n.Store: _I._store,
    n.Provide: _I._provide, n.Realize: _I._realize, n.Allocate: _I._allocate, n.Block: _I._block,
    n.IfThenElse: _I._if, n.Evaluate: _I._evaluate,
}
_LAZY: dict[str, Callable[[Interpreter, n.Call, list[Thunk]], Thunk]] = {
    "if_then_else": _I._if_then_else, "require": _I._require, "print": _I._print, "print_when": _I._print,
    "undef": _I._undef, "trace": _I._trace,
}


def _as_buffer(given: Any, name: str, t: Type | None = None) -> BufferArgument:
    """A buffer from a BufferArgument, an array, or (array, mins)."""
    if not isinstance(given, BufferArgument):
        array, mins = given if isinstance(given, tuple) else (given, [])
        given = BufferArgument(array, list(mins), t if t is not None and t.is_bfloat() else None)
    given.name = given.name or name
    return cast(BufferArgument, given)


def _bind_shape(values: dict[str, Value], name: str, buffer: BufferArgument) -> None:
    for what, numbers in (("min", buffer.mins), ("extent", buffer.extents), ("stride", buffer.strides)):
        for d, number in enumerate(numbers):
            values[f"{name}.{what}.{d}"] = number


def run_stmt(stmt: n.Stmt, buffers: Mapping[str, Any], scalars: Mapping[str, Value] | None = None,
             externs: Mapping[str, Operation] | None = None) -> None:
    """Run a statement of loop IR at any point of lowering.

    `buffers` maps the name of each input and output (`f`, or `f.0`, `f.1` for tuples) to (array with dimension 0 first, mins); arrays
    are written in place. `name.min.0`, `name.extent.0`, `name.stride.0` and the handle `name.buffer` are bound from them.
    `scalars` binds further names. Raises PipelineError where the program asserts, InternalError where the IR is wrong.
    """
    machine = Interpreter(externs)
    for name, given in buffers.items():
        buffer = _as_buffer(given, name)
        machine.memory[name] = buffer
        machine.values[f"{name}.buffer"] = buffer
        _bind_shape(machine.values, name, buffer)
    machine.values.update(scalars or {})
    machine.stmt(stmt)()


def run_lowered(fn: LoweredFunction, arguments: Sequence[Any], externs: Mapping[str, Operation] | None = None, strict: bool = True) -> None:
    """Call a lowered function. `arguments` follow `fn.args`: numbers for scalars; a BufferArgument, array or (array, mins) for buffers.
    Unless `strict`, elements of allocations that were never written read as garbage rather than being an error: tails that compute
    more than is asked for may read them, for values that nobody uses.

    Raises PipelineError where the pipeline refuses its arguments or fails, InternalError where the IR is wrong.
    """
    if len(arguments) != len(fn.args):
        raise InternalError(f"{fn.name} takes {len(fn.args)} arguments, {len(arguments)} given")
    machine = Interpreter(externs, strict)
    for arg, given in zip(fn.args, arguments):
        if arg.kind is ArgumentKind.InputScalar:
            machine.values[arg.name] = scalar.fit(given, arg.type)
        else:
            buffer = _as_buffer(given, arg.name, arg.type)
            machine.memory[arg.name] = buffer
            machine.values[f"{arg.name}.buffer"] = buffer
    machine.stmt(fn.body)()
