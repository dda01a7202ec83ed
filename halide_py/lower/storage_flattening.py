"""Multi-dimensional storage becomes flat memory.

Before: `Realize g [mins, extents]`, `Provide g(x, y) = v`, `Call g(x, y)`, `Call im(x, y)` of an image.
After: lets for `g.min.d`, `g.extent.d` and `g.stride.d` (those that are not constants) around `Allocate g`, `Store g[i] = v`, `Load g[i]`,
`Load im[i]` with i in elements.

Internal storage is laid out in the Func's storage order, densest first; its index is the sum of (x - min) * stride, so
that loop bounds cancel. Buffers the caller passes use their strides and `p.offset`, which `unpack_buffers` binds once, so
that everything but x * stride is loop invariant. Indices are int32 here; the C code computes them in 64 bits. Asserts
that `bound_storage` is large enough. Behaviour: Halide's StorageFlattening.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.module import LoweredArgument
from ..ir.parameter import Parameter
from ..ir.traverse import Handler, Rec, mentions, rewrite
from ..ir.types import INT32, INT64, UInt
from .buffers import error, known_field
from .extern_stages import BUFFER_MARKS, buffer_around, passed_buffer, passed_to_extern
from .tuples import element_functions

Index = Callable[[Sequence[n.Expr]], n.Expr]


def _sum_of_products(coordinates: Sequence[n.Expr], strides: Sequence[n.Expr]) -> n.Expr:
    """The terms with the largest strides first, so that what varies slowly is added first."""
    total = b.i32(0)
    for x, stride in reversed(list(zip(coordinates, strides))):
        total = b.add(total, b.mul(x, stride))
    return total


def _outside_index(name: str, dimensions: int, param: Parameter | None) -> Index:
    strides = [known_field(name, "stride", d, param) for d in range(dimensions)]
    offset = b.cast(INT32, n.Variable(INT64, f"{name}.offset", param))

    def index(coordinates: Sequence[n.Expr]) -> n.Expr:
        flat = _sum_of_products(coordinates, strides)
        return n.Sub(flat, offset) if dimensions else flat

    return index


def _round_up(value: n.Expr, multiple: n.Expr) -> n.Expr:
    return b.mul(b.div(b.add(value, b.sub(multiple, b.i32(1))), multiple), multiple)


class _Storage:
    """The layout of one realization: the lets around it, the extents to allocate and the index of a coordinate."""

    def __init__(self, r: n.Realize, function: Function | None) -> None:
        self.lets: list[tuple[str, n.Expr]] = []
        self.asserts: list[n.Stmt] = []
        self.allocated: list[n.Expr] = []
        self.mins = [self._named(f"{r.name}.min.{d}", e) for d, e in enumerate(r.mins)]
        self.strides: list[n.Expr] = [b.i32(1)] * len(r.mins)
        stride = b.i32(1)
        for d, alignment, bound in self._order(r, function):
            extent = self._named(f"{r.name}.extent.{d}", r.extents[d])
            if bound is not None:
                assert function is not None
                message = error("storage_bound_too_small", b.string(function.name), b.string(function.args[d]), bound, extent)
                self.asserts.append(n.Assert(n.LE(extent, bound), message))
                extent = bound
            if alignment is not None:
                extent = _round_up(extent, b.max_(alignment, b.i32(1)))
            self.allocated.append(extent)
            self.strides[d] = stride
            following = len(self.allocated)
            if following < len(r.mins):
                self._check_stride(stride, extent, self._part(r, function, d))
                stride = self._named(f"{r.name}.stride.{following}", b.mul(stride, extent))

    @staticmethod
    def _order(r: n.Realize, function: Function | None) -> list[tuple[int, n.Expr | None, n.Expr | None]]:
        """Dimension, alignment and bound of each storage dimension, densest first."""
        if function is None or len(function.schedule.storage_dims) > len(r.mins):
            return [(d, None, None) for d in range(len(r.mins))]
        position = {name: d for d, name in enumerate(function.args)}
        own = [(position[s.var], s.alignment, s.bound) for s in function.schedule.storage_dims]
        return own + [(d, None, None) for d in range(len(own), len(r.mins))]  # the instances of a ring buffer

    @staticmethod
    def _part(r: n.Realize, function: Function | None, d: int) -> str:
        return f"{r.name} up to dimension {d if function is None or d >= len(function.args) else function.args[d]}"

    def _check_stride(self, stride: n.Expr, extent: n.Expr, what: str) -> None:
        """Strides are int32: what is in front of a dimension has to be counted in it."""
        if b.as_int(stride) == 1 or b.as_int(stride) == 0:
            return
        size = n.Mul(b.cast(INT64, stride), b.cast(INT64, extent))
        message = error("buffer_allocation_too_large", b.string(what), b.cast(UInt(64), size), b.const(UInt(64), INT32.max_value()))
        self.asserts.append(n.Assert(n.LE(size, b.const(INT64, INT32.max_value())), message))

    def _named(self, name: str, value: n.Expr) -> n.Expr:
        if b.as_int(value) is not None:
            return value
        self.lets.append((name, value))
        return n.Variable(INT32, name)

    def index(self, coordinates: Sequence[n.Expr]) -> n.Expr:
        return _sum_of_products([b.sub(x, low) for x, low in zip(coordinates, self.mins)], self.strides)


def storage_flattening(stmt: n.Stmt, functions: Mapping[str, Function], args: Sequence[LoweredArgument]) -> n.Stmt:
    """Flatten everything. `functions` maps names to all Functions of the pipeline; `args` has the buffers the caller passes."""
    elements, passed = element_functions(functions), passed_to_extern(stmt)
    buffers = [a for a in args if a.is_buffer()]
    params = {a.name: a.param for a in buffers}
    indices: dict[str, Index] = {a.name: _outside_index(a.name, a.dimensions, a.param) for a in buffers}

    def call(c: n.Call, rec: Rec) -> n.Expr:
        if c.name in BUFFER_MARKS:
            return passed_buffer(c, params, rec)
        args = tuple(rec(a) for a in c.args)
        if c.call_type is n.CallType.Image:
            return n.Load(c.type, c.name, indices[c.name](args), b.TRUE, c.param)
        if c.call_type is n.CallType.Halide:
            return n.Load(c.type, c.name, indices[c.name](args), b.TRUE, params.get(c.name))
        return c if all(x is y for x, y in zip(args, c.args)) else n.Call(c.type, c.name, args, c.call_type, c.func, c.value_index, c.param)

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        index = indices[p.name](tuple(rec(a) for a in p.args))
        return n.Store(p.name, rec(p.values[0]), index, rec(p.predicate), params.get(p.name))

    def realize(r: n.Realize, rec: Rec) -> n.Stmt:
        if not mentions(r.body, r.name):
            return rec(r.body)  # type: ignore[no-any-return]
        function, _ = elements.get(r.name, (None, 0))
        again = r.name in indices
        mins, extents = tuple(map(rec, r.mins)), tuple(map(rec, r.extents))
        storage = _Storage(n.Realize(r.name, r.types, r.memory, mins, extents, r.condition, b.NOTHING), function)
        indices[r.name] = storage.index
        # The same access means another address in another realization, so nothing found there may be used here.
        body = rewrite(r.body, handlers) if again else rec(r.body)
        if r.name in passed and mentions(body, f"{r.name}.buffer"):
            body = n.LetStmt(f"{r.name}.buffer", buffer_around(r.name, r.types[0], storage.mins, extents, storage.strides), body)
        inner = n.Allocate(r.name, r.types[0], r.memory, tuple(storage.allocated), rec(r.condition), 0, body)
        return b.let_stmts(storage.lets, b.block([*storage.asserts, inner]))

    handlers: dict[type[n.Node], Handler] = {n.Call: call, n.Provide: provide, n.Realize: realize}
    return rewrite(stmt, handlers)
