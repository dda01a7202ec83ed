"""The loop nest as text, the way Halide prints it: which loops run in which order, and where each Func is stored, produced and consumed."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Function
from .environment import environment
from .inline import inline_functions
from .schedule_functions import Nests, schedule_functions


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
                self.line(depth, f"consume {s.name}:")
                self.block(rest, depth + 1)
                return

    def stmt(self, s: n.Stmt, depth: int) -> None:
        if isinstance(s, n.Block):
            self.block(s.stmts, depth)
        elif isinstance(s, (n.LetStmt, n.IfThenElse)):
            self.stmt(s.body if isinstance(s, n.LetStmt) else s.then_case, depth)
        elif isinstance(s, n.Realize):
            here = isinstance(s.body, n.Block) and isinstance(s.body.stmts[0], n.Produce) and s.body.stmts[0].name == s.name
            if not here:
                self.line(depth, f"store {s.name}:")
            self.stmt(s.body, depth if here else depth + 1)
        elif isinstance(s, n.HoistedStorage):
            self.stmt(s.body, depth)
        elif isinstance(s, n.Produce):
            self.line(depth, f"produce {s.name}:")
            self.stmt(s.body, depth + 1)
        elif isinstance(s, n.For):
            self.loop(s, depth)
        elif isinstance(s, n.Provide):
            self.line(depth, f"{s.name}(...) = ...")

    def loop(self, s: n.For, depth: int) -> None:
        nest, level = self.nests.by_loop[s.name]
        name = s.name[len(nest.prefix):]
        if name == OUTERMOST:
            self.stmt(s.body, depth)
            return
        extent, low = b.as_int(s.extent), b.as_int(s.min)
        size = f" in [{low}, {low + extent - 1}]" if extent is not None and low is not None else ""
        self.line(depth, f"{s.kind.value} {name}{size}:")
        self.stmt(s.body, depth + 1)


def loop_nest_text(outputs: Sequence[Function]) -> str:
    """The scheduled loop nest of a pipeline. Raises CompileError for a schedule that is not legal."""
    names = {f.name for f in outputs}
    s, nests = schedule_functions(inline_functions(environment(outputs), names), names)
    printer = _Printer(nests)
    printer.stmt(s, 0)
    return "\n".join(printer.lines) + "\n"
