"""The shape fields and host pointers of buffer arguments get their values at the top of the function.

Before: free Variables `p.min.0`, `p.extent.0`, `p.stride.0`, `p.offset`, and Loads and Stores of `p`.
After: the checks that look at nothing but handles (that there is a buffer, its type and dimensions), then lets that read the fields
from `p.buffer` around the rest. Only what is used is read. Behaviour: Halide's UnpackBuffers.cpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.module import LoweredArgument
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import INT32, INT64
from .buffers import HANDLE, buffer_handle, offset, runtime_call


def _fields(a: LoweredArgument, used: set[str]) -> list[tuple[str, n.Expr]]:
    """The lets for one buffer argument."""
    handle = buffer_handle(a.name, a.param)
    lets: list[tuple[str, n.Expr]] = []
    flat = offset(a.name, a.dimensions, a.param) if f"{a.name}.offset" in used else b.const(INT64, 0)
    needed = used | set(free_variables(flat))
    for d in range(a.dimensions):
        for what in ("min", "extent", "stride"):
            name = f"{a.name}.{what}.{d}"
            if name in needed:
                lets.append((name, runtime_call(INT32, f"_halide_buffer_get_{what}", handle, b.i32(d))))
    if f"{a.name}.offset" in used:
        lets.append((f"{a.name}.offset", flat))
    if a.name in used:
        lets.append((a.name, runtime_call(HANDLE, "_halide_buffer_get_host", handle)))
    return lets


def _looks_at_handles_only(s: n.Stmt) -> bool:
    return all(name.endswith(".buffer") for name in free_variables(s))


def unpack_buffers(stmt: n.Stmt, args: Sequence[LoweredArgument]) -> n.Stmt:
    """Bind the symbols of every buffer among `args`."""
    buffers = [a for a in args if a.is_buffer()]
    used = set(free_variables(stmt)) | {access.name for access in nodes_of(stmt, (n.Load, n.Store))}
    statements = list(stmt.stmts) if type(stmt) is n.Block else [stmt]
    asserts = list(itertools.takewhile(lambda s: type(s) is n.Assert, statements))
    first = [s for s in asserts if _looks_at_handles_only(s)]
    rest = [s for s in asserts if not _looks_at_handles_only(s)] + statements[len(asserts):]
    lets = [binding for a in buffers for binding in _fields(a, used)]
    return b.block([*first, b.let_stmts(lets, b.block(rest))])
