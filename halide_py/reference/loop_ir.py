"""An interpreter of loop IR, before flattening (Realize, Provide, calls by coordinates) and after it (Allocate, Load, Store).

It checks what compiled code does not: an access outside the realized box or allocation, a read of an element never
written and a name that is not bound are InternalErrors. All loops run serially, in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import HalideError, InternalError
from ..ir import nodes as n
from ..ir.module import ArgumentKind, LoweredFunction
from ..ir.types import Type
from . import scalar
from .loop_expressions import UNDEFINED, Budget, Evaluator, each_lane
from .scalar import Operation, Value
from .storage import BufferArgument, Flat, Region

Action = Callable[[], None]


class Interpreter(Evaluator):
    """One run."""

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
            self.binding(s.name, value(), body)

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
            start, count = low(), extent()
            self.budget.spend(count)
            for i in range(start, start + count):
                values[name] = i
                body()
            values.pop(name, None)

        return run

    def _store(self, s: n.Store) -> Action:
        value, index, predicate, lanes = self.expr(s.value), self.expr(s.index), self.expr(s.predicate), s.index.type.lanes()

        def run() -> None:
            memory = self.find(s.name)
            new = value()
            if new is UNDEFINED:
                return
            for v, i, p in zip(each_lane(new, lanes), each_lane(index(), lanes), each_lane(predicate(), lanes), strict=True):
                if p:
                    memory.store(i, v)

        return run

    def _provide(self, s: n.Provide) -> Action:
        values, args, predicate = [self.expr(v) for v in s.values], [self.expr(a) for a in s.args], self.expr(s.predicate)

        def run() -> None:
            if predicate():
                memory, new, at = self.find(s.name), [v() for v in values], [a() for a in args]
                for i, value in enumerate(new):
                    if value is not UNDEFINED:
                        memory.write(at, i, value)

        return run

    def _fork(self, s: n.Fork) -> Action:
        """Both tasks at the same time, each with names of its own."""

        def run() -> None:
            failures: list[Exception] = []

            def side(body: n.Stmt) -> None:
                machine = Interpreter(self.externs, self.strict, self.budget)
                machine.values, machine.memory = dict(self.values), dict(self.memory)
                try:
                    machine.stmt(body)()
                except (HalideError, ArithmeticError, LookupError, TypeError, ValueError) as e:
                    failures.append(e)
                    self.memory[s.name].fail()

            other = threading.Thread(target=side, args=(s.first,))
            other.start()
            side(s.rest)
            other.join()
            if failures:
                raise failures[0]

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
_STMTS: dict[type[n.Stmt], Callable[[Interpreter, Any], Action]] = {
    n.LetStmt: _I._let_stmt,
    n.Assert: _I._assert,
    n.Produce: _I._produce,
    n.HoistedStorage: _I._produce,
    n.Atomic: _I._produce,
    n.Fork: _I._fork,
    n.For: _I._for,
    n.Store: _I._store,
    n.Provide: _I._provide,
    n.Realize: _I._realize,
    n.Allocate: _I._allocate,
    n.Block: _I._block,
    n.IfThenElse: _I._if,
    n.Evaluate: _I._evaluate,
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


def run_lowered(fn: LoweredFunction, arguments: Sequence[Any], externs: Mapping[str, Operation] | None = None, strict: bool = True,
                iterations: int | None = None) -> None:
    """Call a lowered function. `arguments` follow `fn.args`: numbers for scalars; a BufferArgument, array or (array, mins) for buffers.
    Unless `strict`, elements of allocations that were never written read as garbage rather than being an error: tails that compute
    more than is asked for may read them, for values that nobody uses.

    Raises PipelineError where the pipeline refuses its arguments or fails, InternalError where the IR is wrong, and TooMuchWork where
    its loops take more than so many `iterations` (default: no limit).
    """
    if len(arguments) != len(fn.args):
        raise InternalError(f"{fn.name} takes {len(fn.args)} arguments, {len(arguments)} given")
    machine = Interpreter(externs, strict, Budget(iterations))
    for arg, given in zip(fn.args, arguments):
        if arg.kind is ArgumentKind.InputScalar:
            machine.values[arg.name] = scalar.fit(given, arg.type)
        else:
            buffer = _as_buffer(given, arg.name, arg.type)
            machine.memory[arg.name] = buffer
            machine.values[f"{arg.name}.buffer"] = buffer
    machine.stmt(fn.body)()
