"""Debug files: what a Func computed is written to a file once it has been used (debug_to_file).

IR before: `realize g { .. }`. After: `realize g { .. assert(debug_to_file("g.npy", ..) == 0, error) }`; for an output, behind its
production. The call has the first element and, of each dimension, the extent and the second element, so that flattening says where they
are. Behaviour: Halide's DebugToFile.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.traverse import Rec, rewrite
from ..ir.types import INT32
from .buffers import error, field
from .environment import Environment

MOST_DIMENSIONS = 4


def check_debug_files(env: Mapping[str, Function], outputs: set[str]) -> None:
    """Raise CompileError for Funcs that cannot be written to a file."""
    for f in env.values():
        problem = ""
        if len(f.types) > 1:
            problem = "it has several values"
        elif len(f.args) > MOST_DIMENSIONS:
            problem = f"it has {len(f.args)} dimensions, and files have {MOST_DIMENSIONS} at most"
        elif f.types[0].is_handle() or f.types[0].is_bfloat():
            problem = f"files have no elements of type {f.types[0]}"
        elif f.schedule.compute_level.is_inline() and f.name not in outputs and not f.updates:
            problem = "it is computed inline; add compute_root() or compute_at()"
        if problem and f.debug_file:
            raise CompileError(f"Func {f.name} has debug_to_file({f.debug_file!r}), but {problem} ({f.site('debug_to_file')})")


def _written(f: Function, mins: Sequence[n.Expr], extents: Sequence[n.Expr]) -> n.Stmt:
    t = f.types[0]

    def element(at: Sequence[n.Expr]) -> n.Expr:
        return n.Call(t, f.name, tuple(at), n.CallType.Halide, f)

    seconds = [element([b.add(low, b.i32(1)) if i == d else low for i, low in enumerate(mins)]) for d in range(len(mins))]
    shape = [e for pair in zip(extents, seconds) for e in pair]
    code = n.Call(INT32, "debug_to_file", (b.string(f.debug_file), element(mins), *shape), n.CallType.Intrinsic)
    result = n.Variable(INT32, f"{f.name}.debug_to_file")
    failed = error("debug_to_file_failed", b.string(f.name), b.string(f.debug_file), result)
    return n.LetStmt(result.name, code, n.Assert(n.EQ(result, b.i32(0)), failed))


def write_debug_files(stmt: n.Stmt, env: Environment, outputs: Mapping[str, Function]) -> n.Stmt:
    """`stmt` with the files that were asked for written."""
    if not any(f.debug_file for f in env.values()):
        return stmt

    def realize(r: n.Realize, rec: Rec) -> n.Stmt:
        body, f = rec(r.body), env[r.name]
        if f.debug_file:
            body = b.block([body, _written(f, r.mins, r.extents)])
        return n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, body)

    def produce(p: n.Produce, rec: Rec) -> n.Stmt:
        body, f = rec(p.body), outputs.get(p.name)
        if f is None or not f.debug_file:
            return n.Produce(p.name, body)
        param = f.output_params[0] if f.output_params else None
        mins, extents = ([field(f.name, what, d, param) for d in range(len(f.args))] for what in ("min", "extent"))
        return b.block([n.Produce(p.name, body), _written(f, mins, extents)])

    return rewrite(stmt, {n.Realize: realize, n.Produce: produce})
