"""The loop nest as text, the way Halide prints it: which loops run in which order, and where each Func is stored, produced and consumed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Function, SplitKind, StageSchedule
from ..ir.intrinsics import ExternFunction
from ..ir.simplify import simplify
from ..ir.target import get_jit_target_from_environment
from .allocation_bounds import allocation_bounds
from .bounds_inference import bounds_inference, function_values
from .default_loops import with_default_loops
from .devices import check_devices
from .environment import environment
from .inline import inline_functions
from .schedule_functions import Nests, head_productions, schedule_functions
from .sliding_window import sliding_window
from .uniquify import uniquify


class _Printer:
    def __init__(self, nests: Nests) -> None:
        self.nests = nests
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def block(self, stmts: Sequence[n.Stmt], depth: int) -> None:
        """Statements in order; what follows a production consumes it."""
        for i, s in enumerate(stmts):
            self.stmt(s, depth)
            rest = stmts[i + 1:]
            if isinstance(s, n.Produce) and rest:
                for name in head_productions(s):
                    self.line(depth, f"consume {plain(name)}:")
                    depth += 1
                self.block(rest, depth)
                return

    def stmt(self, s: n.Stmt, depth: int) -> None:
        if isinstance(s, n.Block):
            self.block(s.stmts, depth)
        elif isinstance(s, (n.LetStmt, n.IfThenElse)):
            if isinstance(s, n.LetStmt) and isinstance(s.value, n.Call) and isinstance(s.value.func, ExternFunction):
                self.line(depth, f"{s.name.partition('.')[0]}(...) = {s.value.func.name}(...)")
            self.stmt(s.body if isinstance(s, n.LetStmt) else s.then_case, depth)
            if isinstance(s, n.IfThenElse) and s.else_case is not None:
                self.stmt(s.else_case, depth)
        elif isinstance(s, n.Realize):
            here = s.name in head_productions(s.body)
            if not here:
                self.line(depth, f"store {plain(s.name)}:")
            self.stmt(s.body, depth if here else depth + 1)
        elif isinstance(s, n.HoistedStorage):
            self.stmt(s.body, depth)
        elif isinstance(s, n.Produce):
            self.line(depth, f"produce {plain(s.name)}:")
            self.stmt(s.body, depth + 1)
        elif isinstance(s, n.For):
            self.loop(s, depth)
        elif isinstance(s, n.Provide):
            self.line(depth, f"{plain(s.name)}(...) = ...")

    def loop(self, s: n.For, depth: int) -> None:
        known = self.nests.by_loop
        nest, _ = known[s.name] if s.name in known else known[s.name.rpartition("$")[0]]  # `uniquify` numbers loops of copies
        name = s.name[len(nest.loop_prefix):].partition("$")[0] if s.name not in known else s.name[len(nest.loop_prefix):]
        if name == OUTERMOST:
            self.stmt(s.body, depth)
            return
        extent, low = b.as_int(s.extent), b.as_int(s.min)
        size = f" in [{low}, {low + extent - 1}]" if extent is not None and low is not None else ""
        self.line(depth, f"{s.kind.value} {_paths(nest.definition.schedule).get(name, plain(name))}{size}:")
        self.stmt(s.body, depth + 1)


def plain(name: str) -> str:
    """A name without the number that makes it unique, or the dimension of a reduction domain."""
    return name.partition("$")[0]


def _paths(schedule: StageSchedule) -> dict[str, str]:
    """The loops made by splits, fuses and renames under the names Halide prints: after what they were made of, `x.xo`."""
    path: dict[str, str] = {}
    for s in schedule.splits:
        base = s.inner if s.kind is SplitKind.Fuse else s.old
        root = path.get(base, plain(base))
        for name in {SplitKind.Split: (s.outer, s.inner), SplitKind.Rename: (s.outer,), SplitKind.Fuse: (s.old,)}[s.kind]:
            own = _OWN.sub("", name)
            path[name] = root if s.kind is SplitKind.Rename and own == s.old else f"{root}.{own.rpartition('.')[2]}"
    return path


_OWN = re.compile(r"\.\d+$")  # what `splits` appends to the name of a loop whose name was given again


def loop_nest_text(outputs: Sequence[Function]) -> str:
    """The scheduled loop nest of a pipeline. Raises CompileError for a schedule that is not legal."""
    names = {f.name for f in outputs}
    defined = environment(outputs)
    check_devices(defined)
    env = inline_functions(with_default_loops(defined, names, get_jit_target_from_environment()), names)
    s, nests = schedule_functions(env, names)
    values = function_values(env)
    s = bounds_inference(s, env, nests, {f.name: env[f.name] for f in outputs}, values)
    s = allocation_bounds(sliding_window(s, env, nests), env, values, nests)
    printer = _Printer(nests)
    printer.stmt(simplify(uniquify(s)), 0)  # loops of one iteration are none
    return "\n".join(printer.lines) + "\n"
