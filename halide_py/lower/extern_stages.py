"""Extern stages: the call of the C function that computes a Func, and the question it is asked first.

A stage `f` with Func argument `g` becomes, at its place in the loops,

    let f.s0.result = c_function(whole_buffer(g(min), g(max)), ..., buffer_part(f(min), f(max)))
    assert f.s0.result == 0

The two corners of a buffer mark tell every pass what is touched; storage flattening turns the marks into `halide_buffer_t *`. What is
touched only the function knows. So bounds inference puts a query around everything that `f` and what it reads are produced in: the function
is called on buffers without data, of which the outputs have the region that is wanted; it writes the regions of the inputs, and may enlarge
the outputs. `f.s0.query.k.min.d` and `.max.d` are its answers for buffer k (the arguments, then the output). At inner loop levels it is
asked again; answers for a part must lie within those for the whole, so outside of a query its symbols stand for the answers further out.
Source: behaviour of Halide's BoundsInference.cpp and ScheduleFunctions.cpp (extern stages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box
from ..ir.function import Definition, ExternStage, Function
from ..ir.interval import Interval
from ..ir.parameter import Parameter
from ..ir.traverse import Rec, nodes_of
from ..ir.types import INT32, Type
from .buffers import HANDLE, buffer_handle, error, field, runtime_call

BUFFER_MARKS = ("whole_buffer", "buffer_part")
_NULL = b.const(HANDLE, 0)


def _var(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def _answer(f: Function, k: int, end: str, d: int) -> str:
    return f"{f.name}.s0.query.{k}.{end}.{d}"


def is_query_symbol(name: str) -> bool:
    """Whether a let's name is that of an answer."""
    return ".s0.query." in name


def mark(kind: str, call: n.Call, low: Sequence[n.Expr], high: Sequence[n.Expr]) -> n.Expr:
    """The buffer of the Func or image that `call` calls, touched between two corners. Of an empty region one corner, as boxes are not
    empty."""
    far = [q if p is q else n.Max(p, q) for p, q in zip(low, high)]
    corners = dict.fromkeys(
        n.Call(call.type, call.name, tuple(at), call.call_type, call.func, call.value_index, call.param) for at in (low, far)
    )
    return n.Call(HANDLE, kind, tuple(corners), n.CallType.Intrinsic)


def _marks(d: Definition) -> tuple[n.Expr, ...]:
    """The arguments of the C function as the definition mentions them: marks of buffers, and scalars."""
    call = d.values[0]
    assert isinstance(call, n.Call)
    return call.args


def _sources(extern: ExternStage) -> list[tuple[int, int, str]]:
    """For each argument of the C function: which of the stage's arguments it comes from, the number of its buffer (-1 for a scalar) and its
    Func or image.
    The values of one Func share an answer."""
    out: list[tuple[int, int, str]] = []
    buffers = 0
    for i, a in enumerate(extern.args):
        if isinstance(a, n.Expr):
            out.append((i, -1, ""))
            continue
        out += [(i, buffers, a.name)] * (len(a.types) if isinstance(a, Function) else 1)
        buffers += 1
    return out


def _region(f: Function) -> tuple[list[n.Expr], list[n.Expr]]:
    return [_var(f"{f.name}.s0.{v}.min") for v in f.args], [_var(f"{f.name}.s0.{v}.max") for v in f.args]


def _asked(f: Function, k: int, dimensions: int) -> tuple[list[n.Expr], list[n.Expr]]:
    return [_var(_answer(f, k, "min", d)) for d in range(dimensions)], [_var(_answer(f, k, "max", d)) for d in range(dimensions)]


def extern_call(f: Function, d: Definition) -> n.Stmt:
    """The call that computes the region of `f`, and its check."""
    extern = f.extern
    assert extern is not None
    args: list[n.Expr] = []
    for (_, k, _), e in zip(_sources(extern), _marks(d)):
        if k >= 0:
            call = e.children()[0]
            assert isinstance(call, n.Call)
            e = mark("whole_buffer", call, *_asked(f, k, len(call.args)))
        args.append(e)
    for i, t in enumerate(f.types):
        args.append(mark("buffer_part", n.Call(t, f.name, (), n.CallType.Halide, f, i), *_region(f)))
    result = f"{f.name}.s0.result"
    failed = error("extern_stage_failed", b.string(extern.row.name), _var(result))
    return n.LetStmt(
        result, n.Call(INT32, extern.row.name, tuple(args), n.CallType.Extern, extern.row), n.Assert(n.EQ(_var(result), b.i32(0)), failed)
    )


def extern_query(f: Function, d: Definition, body: n.Stmt, number: int) -> n.Stmt:
    """`body` behind the query for the region of `f` that is in scope. `number` tells the queries of a pipeline apart."""
    extern = f.extern
    assert extern is not None
    low, high = _region(f)
    lets: list[tuple[str, n.Expr]] = []
    args: list[n.Expr] = []

    def ask(name: str, t: Type, mins: Sequence[n.Expr], maxs: Sequence[n.Expr]) -> None:
        extents = [b.add(b.sub(q, p), b.i32(1)) for p, q in zip(mins, maxs)]
        lets.append((name, _new_buffer(f"{name} {number}", _NULL, t, mins, extents, [b.i32(0)] * len(mins))))
        args.append(n.Variable(HANDLE, name))

    handles: dict[int, tuple[str, int]] = {}
    for j, ((_, k, _), e) in enumerate(zip(_sources(extern), _marks(d))):
        if k < 0:
            args.append(e)
            continue
        call = e.children()[0]
        assert isinstance(call, n.Call)
        dimensions = range(len(call.args))
        mins: list[n.Expr] = [b.i32(0) for _ in dimensions]
        maxs: list[n.Expr] = [b.i32(-1) for _ in dimensions]
        if call.call_type is n.CallType.Image:  # a function that does not answer means all of it
            mins = [field(call.name, "min", x, call.param) for x in dimensions]
            maxs = [b.sub(b.add(low, field(call.name, "extent", x, call.param)), b.i32(1)) for x, low in enumerate(mins)]
        ask(f"{f.name}.s0.query.argument{j}", call.type, mins, maxs)
        handles.setdefault(k, (lets[-1][0], len(call.args)))
    for i, t in enumerate(f.types):
        ask(f"{f.name}.s0.query.output{i}", t, low, high)
    output = len(handles)
    handles[output] = f"{f.name}.s0.query.output0", len(f.args)
    answers = [let for k, (name, dimensions) in handles.items() for x in range(dimensions) for let in _ends(f, k, name, x)]
    for x, v in enumerate(f.args):
        answers += [(f"{f.name}.s0.{v}.{end}", _var(_answer(f, output, end, x))) for end in ("min", "max")]
    result = f"{f.name}.s0.query.result"
    failed = error("bounds_inference_call_failed", b.string(extern.row.name), _var(result))
    lets.append((result, n.Call(INT32, extern.row.name, tuple(args), n.CallType.Extern, extern.row)))
    return b.let_stmts(lets, b.block([n.Assert(n.EQ(_var(result), b.i32(0)), failed), b.let_stmts(answers, body)]))


def _ends(f: Function, k: int, handle: str, d: int) -> list[tuple[str, n.Expr]]:
    buffer = n.Variable(HANDLE, handle)
    low, extent = (runtime_call(INT32, f"_halide_buffer_get_{what}", buffer, b.i32(d)) for what in ("min", "extent"))
    return [(_answer(f, k, "min", d), low), (_answer(f, k, "max", d), b.sub(b.add(low, extent), b.i32(1)))]


def required_by_extern(f: Function) -> dict[str, Box]:
    """What `f` reads of each Func: what it answers."""
    assert f.extern is not None
    found: dict[str, Box] = {}
    for i, k, name in _sources(f.extern):
        a = f.extern.args[i]
        if isinstance(a, Function):
            box = Box([Interval(p, q) for p, q in zip(*_asked(f, k, len(a.args)))])
            found[name] = box if name not in found else Box([p.union(q) for p, q in zip(found[name].intervals, box.intervals)])
    return found


def forget_inner_answers(s: n.Stmt) -> n.Stmt:
    """`s` without the lets of answers, which leaves the names of those further out."""
    while isinstance(s, n.LetStmt) and is_query_symbol(s.name):
        s = s.body
    return s.map_children(lambda c: forget_inner_answers(c) if isinstance(c, n.Stmt) else c)  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------------------------
# Checks


def check_extern_arguments(d: Definition, inlined: Mapping[str, Function]) -> None:
    """Raise CompileError when a Func that is passed to an extern stage would be inlined, and so have no storage."""
    for e in d.values:
        for c in nodes_of(e, n.Call):
            call = c.args[0] if c.name in BUFFER_MARKS else None
            if isinstance(call, n.Call) and call.call_type is n.CallType.Halide and call.name in inlined:
                stage = e.name if isinstance(e, n.Call) else ""
                raise CompileError(f"Func {call.name} is computed inline, but is an argument of the extern stage {stage}, which needs it "
                                   f"in memory; schedule it: {call.name}.compute_root() ({inlined[call.name].where})")


def check_extern_place(f: Function, uses: Sequence[Sequence[n.For]]) -> None:
    """Raise CompileError when an extern stage would be computed inside a vectorized loop."""
    for loops in uses:
        inside = loops
        if not f.schedule.compute_level.is_inline():
            at = [i for i, loop in enumerate(loops) if f.schedule.compute_level.matches(loop.name)]
            inside = loops[:at[0] + 1] if at else []
        for loop in inside:
            if loop.kind is n.ForType.Vectorized:
                raise CompileError(f"Func {f.name} is an extern stage, so it cannot be computed inside the vectorized loop {loop.name}; "
                                   f"schedule it with compute_root(), or at a loop further out ({f.where})")


def passed_to_extern(s: n.Stmt) -> set[str]:
    """The names of which buffer marks occur."""
    return {c.args[0].name for c in nodes_of(s, n.Call, n.symbol_bits(BUFFER_MARKS)) if c.name in BUFFER_MARKS}


# ---------------------------------------------------------------------------------------------------------------
# Marks as buffers


def _new_buffer(label: str, host: n.Expr, t: Type, mins: Sequence[n.Expr], extents: Sequence[n.Expr], strides: Sequence[n.Expr]) -> n.Expr:
    shape = [e for dimension in zip(mins, extents, strides) for e in dimension]
    return runtime_call(HANDLE, "_halide_buffer_new", b.string(label), host, b.i32(int(t.code())), b.i32(t.bits()), *shape)


def buffer_around(name: str, t: Type, mins: Sequence[n.Expr], extents: Sequence[n.Expr], strides: Sequence[n.Expr]) -> n.Expr:
    """The `halide_buffer_t *` of a realization."""
    return _new_buffer(name, n.Variable(HANDLE, name), t, mins, extents, strides)


def passed_buffer(c: n.Call, params: Mapping[str, Parameter | None], rec: Rec) -> n.Expr:
    """The `halide_buffer_t *` that a mark stands for."""
    first, last = c.args[0], c.args[-1]
    assert isinstance(first, n.Call) and isinstance(last, n.Call)
    whole = buffer_handle(first.name, params.get(first.name))
    if c.name == "whole_buffer":
        return whole
    shape = [e for p, q in zip(first.args, last.args) for e in (rec(p), b.add(b.sub(rec(q), rec(p)), b.i32(1)))]
    return runtime_call(HANDLE, "_halide_buffer_part", whole, *shape)
