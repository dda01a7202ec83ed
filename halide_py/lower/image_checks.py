"""Checks of the buffers a caller passes, and the answer to bounds queries.

Before: the pipeline, its loops in terms of the outputs' `f.min.0`, `f.extent.0`.
After:

    check that each buffer is there, of its type (unless it is a query) and dimensions
    let im.min.0.required, im.extent.0.required = the region of im the whole pipeline touches
    let im.min.0.proposed, ... = the same with the user's constraints applied
    if (no buffer is a query)
        check that extents are not negative, the required region is inside the buffer, there is data, constraints hold, outputs overlap
        nothing the pipeline, with constrained fields replaced by their constants
    else
        set the type and shape of each query to what is proposed

A check is a call of the runtime (`runtime/checks.c`) whose result, an error code, is asserted to be 0: few statements, so that they take
little of the C compiler's time. A query is a buffer without data: the caller learns the shapes needed and nothing runs. Sizes are not
limited here: indices are computed in 64 bits but for some of vectors (`near_indices`).
Raises CompileError where an access has no bound. Behaviour: Halide's AddImageChecks.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box, boxes_touched
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.printer import to_text
from ..ir.traverse import nodes_of, substitute
from ..ir.types import INT32, UInt
from .buffers import HANDLE, buffer_handle, checked, constraint, error, field, is_bounds_query, runtime_call
from .environment import Environment
from .extern_stages import forget_inner_answers, is_query_symbol
from .in_place import overlap_checks
from .uniquify import uniquify
from .wide import widened

_FIELDS = ("min", "extent", "stride")
_U32 = UInt(32)
Lets = list[tuple[str, n.Expr]]


@dataclass
class _Buffer:
    """One buffer argument: what is touched of it, and how errors call it. `first` names the first element's buffer of a tuple output
    (the others share its shape), '' for any other buffer."""

    arg: LoweredArgument
    box: Box | None
    first: str = ""

    @property
    def label(self) -> n.Expr:
        """How errors name it."""
        kind = "Output" if self.arg.kind is ArgumentKind.OutputBuffer else "Input"
        return b.string(f"{kind} buffer {self.arg.shown}")

    @property
    def query(self) -> n.Expr:
        """Whether the caller wants to know its shape."""
        return is_bounds_query(self.arg.name, self.arg.param)

    def get(self, what: str, d: int) -> n.Expr:
        """The field as passed by the caller."""
        return field(self.arg.name, what, d, self.arg.param)

    def derived(self, what: str, d: int, how: str) -> n.Expr:
        """Variable `name.what.d.how`; `how` is required or proposed."""
        return n.Variable(INT32, f"{self.arg.name}.{what}.{d}.{how}")

    def promised(self, what: str, d: int) -> n.Expr | None:
        """What the field has to be, None if it is free."""
        own = constraint(self.arg.param, what, d)
        if not self.first or what == "stride":
            return own
        if own is not None:
            raise CompileError(f"Output buffer {self.arg.name}: the {what} of dimension {d} cannot be constrained; the outputs of a tuple "
                               f"share the shape of the first, so constrain {self.first}")
        return field(self.first, what, d)

    def used(self) -> n.Expr:
        """The condition under which it is touched at all."""
        return self.box.used if self.box is not None and self.box.used is not None else b.TRUE


def _collect(
    stmt: n.Stmt, outputs: Sequence[Function], args: Sequence[LoweredArgument], values: Mapping[tuple[str, int], Interval]
) -> list[_Buffer]:
    # Inner loop levels bind the regions of a stage again, and boxes need each name bound once.
    owner = {f.buffer_name(i): (f, i) for f in outputs for i in range(len(f.types))}
    boxes = boxes_touched(uniquify(forget_inner_answers(stmt)), {}, values, {a.name for a in args} | {f.name for f in outputs})
    found = []
    for a in args:
        if not a.is_buffer():
            continue
        f, i = owner.get(a.name, (None, 0)) if a.kind is ArgumentKind.OutputBuffer else (None, 0)
        box = boxes.get(f.name if f is not None else a.name)
        for d, interval in enumerate(box.intervals if box is not None else ()):
            if not interval.is_bounded():
                kind = "Output" if f is not None else "Input"
                raise CompileError(f"{kind} buffer {a.name} may be accessed in an unbounded way in dimension {d}; limit the index, for "
                                   "example with clamp() or a boundary condition", a.name if f is None else f.name)
        found.append(_Buffer(a, box, f.buffer_name(0) if f is not None and i else ""))
    return found


def _required(buf: _Buffer) -> Lets:
    """The region touched, and the dense strides that go with it."""
    lets: Lets = []
    for d in range(buf.arg.dimensions):
        low, extent = buf.get("min", d), buf.get("extent", d)
        if buf.box is not None:
            interval = buf.box.intervals[d]
            assert interval.min is not None and interval.max is not None
            size = b.add(b.sub(interval.max, interval.min), b.i32(1))
            low, extent = b.select(buf.used(), interval.min, low), b.select(buf.used(), size, extent)
        stride = b.i32(1) if d == 0 else b.mul(buf.derived("stride", d - 1, "required"), buf.derived("extent", d - 1, "required"))
        for what, value in zip(_FIELDS, (low, extent, stride)):
            lets.append((f"{buf.arg.name}.{what}.{d}.required", value))
    return lets


def _proposed(buf: _Buffer, required: Mapping[str, n.Expr]) -> Lets:
    """The answer to a query: the required shape, constraints applied to it."""
    lets: Lets = []
    for d in range(buf.arg.dimensions):
        for what in _FIELDS:
            promised = buf.promised(what, d)
            value = buf.derived(what, d, "required") if promised is None else substitute(required, promised)
            lets.append((f"{buf.arg.name}.{what}.{d}.proposed", value))
    return lets


def _last(low: n.Expr, extent: n.Expr) -> n.Expr:
    return b.sub(b.add(low, extent), b.i32(1))


def _proposal_checks(buf: _Buffer) -> Iterable[n.Stmt]:
    """A constraint on min or extent must not make the proposal smaller than what is needed."""
    for d in range(buf.arg.dimensions):
        if buf.promised("min", d) is None and buf.promised("extent", d) is None:
            continue
        low, need_low = buf.derived("min", d, "proposed"), buf.derived("min", d, "required")
        high, need_high = _last(low, buf.derived("extent", d, "proposed")), _last(need_low, buf.derived("extent", d, "required"))
        fits = n.And(n.LE(low, need_low), n.LE(need_high, high))
        message = error("constraints_make_required_region_smaller", buf.label, b.i32(d), low, high, need_low, need_high)
        yield n.Assert(n.Or(n.Not(buf.query), fits), message)


def _packed_type(buf: _Buffer) -> n.Expr:
    """The type as the four bytes of a `halide_type_t`."""
    t = buf.arg.type
    return b.const(_U32, int(t.code()) | t.bits() << 8 | t.lanes() << 16)


def _answer(buf: _Buffer) -> n.Stmt:
    """Write the proposal into a buffer that is a query."""
    count = buf.arg.dimensions
    shape = (buf.derived(what, d, "proposed") for d in range(count) for what in _FIELDS)
    return n.Evaluate(
        runtime_call(INT32, "_halide_buffer_answer", buffer_handle(buf.arg.name, buf.arg.param), _packed_type(buf), b.i32(count), *shape)
    )


def _kind_check(buf: _Buffer) -> n.Stmt:
    """There is a buffer, of the right type unless it is a query, of the right number of dimensions."""
    return checked(
        "kind", buffer_handle(buf.arg.name, buf.arg.param), b.string(buf.arg.name), buf.label, _packed_type(buf), b.i32(buf.arg.dimensions)
    )


def _region_check(buf: _Buffer, known: Mapping[str, n.Expr]) -> n.Stmt:
    """No extent is negative; where the pipeline touches the buffer, the region touched is inside and there is data."""
    touched: n.Expr = b.FALSE
    ends: list[n.Expr] = []
    if buf.box is not None:
        touched = buf.used()
        for interval in buf.box.intervals:
            assert interval.min is not None and interval.max is not None
            ends += [widened(substitute(known, interval.min)), widened(substitute(known, interval.max))]
    return checked("region", buffer_handle(buf.arg.name, buf.arg.param), buf.label, touched, b.i32(len(ends) // 2), *ends)


def _element_checks(buffers: Sequence[_Buffer], regions: Iterable[n.Expr]) -> Iterable[n.Stmt]:
    """What of the inputs' values the regions depend on, as `offset[0]` of `im[x + offset[0]]`, is there: it is read before other checks."""
    by_name = {buf.arg.name: buf for buf in buffers}
    for read in nodes_of(regions, n.Call):
        if read.call_type is n.CallType.Image:
            buf, corners = by_name[read.name], [widened(at) for at in read.args for _ in range(2)]
            yield checked("region", buffer_handle(buf.arg.name, buf.arg.param), buf.label, b.TRUE, b.i32(len(read.args)), *corners)


def _constraint_checks(buf: _Buffer) -> Iterable[n.Stmt]:
    for d in range(buf.arg.dimensions):
        for what in _FIELDS:
            promised = buf.promised(what, d)
            if promised is not None:
                given, name = buf.get(what, d), b.string(f"{buf.arg.name}.{what}.{d}")
                yield n.Assert(n.EQ(given, promised), error("constraint_violated", name, given, b.string(to_text(promised)), promised))


def _alignment_checks(buf: _Buffer) -> Iterable[n.Stmt]:
    name, param, alignment = buf.arg.name, buf.arg.param, buf.arg.param.host_alignment if buf.arg.param is not None else 0
    if alignment > buf.arg.type.bytes():
        address = n.Reinterpret(UInt(64), runtime_call(HANDLE, "_halide_buffer_get_host", buffer_handle(name, param)))
        aligned = n.EQ(n.Mod(address, b.const(UInt(64), alignment)), b.const(UInt(64), 0))
        yield n.Assert(aligned, error("unaligned_host_ptr", b.string(name), b.i32(alignment)))


def add_image_checks(stmt: n.Stmt, env: Environment, outputs: Sequence[Function], args: Sequence[LoweredArgument],
                     values: Mapping[tuple[str, int], Interval]) -> n.Stmt:
    """`stmt` behind the checks of every buffer among `args`. `values` are the ranges of Funcs' values, which limit indices."""
    outer, stmt = _behind_queries(stmt)
    buffers = _collect(stmt, outputs, args, values)
    if not buffers:
        return outer(stmt)
    dimensions = [(buf, what, d) for buf in buffers for d in range(buf.arg.dimensions) for what in _FIELDS]
    required = {f"{buf.arg.name}.{what}.{d}": buf.derived(what, d, "required") for buf, what, d in dimensions}
    known: dict[str, n.Expr] = {}
    for buf, what, d in dimensions:
        promised = buf.promised(what, d)
        if promised is not None and (b.as_int(promised) is not None or type(promised) is n.Variable):
            known[f"{buf.arg.name}.{what}.{d}"] = promised
    guarded = [*(_region_check(buf, known) for buf in buffers), *_each(_constraint_checks, buffers), *_each(_alignment_checks, buffers),
               *overlap_checks(env, outputs, args), substitute(known, stmt)]
    no_query = b.all_of(n.Not(buf.query) for buf in buffers)
    body = b.block([*_each(_proposal_checks, buffers), n.IfThenElse(no_query, b.block(guarded), b.block(map(_answer, buffers)))])
    # What is promised counts for the region too: a query is answered for the shape the buffer will have, not for the one it happens to
    # have.
    lets = [(name, substitute(known, value)) for buf in buffers for name, value in _required(buf)]
    lets += [let for buf in buffers for let in _proposed(buf, required)]
    return b.block([*map(_kind_check, buffers), *_element_checks(buffers, [value for _, value in lets]), outer(b.let_stmts(lets, body))])


def _behind_queries(s: n.Stmt) -> tuple[Callable[[n.Stmt], n.Stmt], n.Stmt]:
    """What extern stages read of images they answer first: the regions and queries at the root as a function that puts them around a
    statement, and the statement they are around. Without queries nothing is taken off."""
    if not any(is_query_symbol(name) for name in _root_lets(s)):
        return lambda inner: inner, s
    if isinstance(s, n.LetStmt):
        name, value = s.name, s.value
        around, inside = _behind_queries(s.body)
        return lambda inner: n.LetStmt(name, value, around(inner)), inside
    assert isinstance(s, n.Block)
    check, rest = s.stmts[0], b.block(s.stmts[1:])
    around, inside = _behind_queries(rest)
    return lambda inner: b.block([check, around(inner)]), inside


def _root_lets(s: n.Stmt) -> Iterable[str]:
    while True:
        if isinstance(s, n.LetStmt):
            yield s.name
            s = s.body
        elif isinstance(s, n.Block) and isinstance(s.stmts[0], n.Assert):
            s = b.block(s.stmts[1:])
        else:
            return


def _each(checks: Callable[[_Buffer], Iterable[n.Stmt]], buffers: Sequence[_Buffer]) -> list[n.Stmt]:
    return [one for buf in buffers for one in checks(buf)]
