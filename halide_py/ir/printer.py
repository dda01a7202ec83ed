"""Text of the IR in Halide's style: `(x + 1)`, `(uint8)f(x, y)`, `for (f.s0.x, 0, 10) {`.

A DAG is never printed as a tree that would be much larger: where the tree of an expression has more than `TREE_LIMIT`
nodes, its shared parts are named first (`let t0 = ...`), each printed once. Source of the style: Halide's src/IRPrinter.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from . import nodes as n
from .build import is_one
from .traverse import deep_recursion
from .types import INT32, Type

TREE_LIMIT = 1000
_WORTH_A_NAME = 4  # nodes a shared part must have to be named

_INFIX: dict[type[n.Node], str] = {
    n.Add: " + ", n.Sub: " - ", n.Mul: "*", n.Div: "/", n.Mod: " % ", n.EQ: " == ", n.NE: " != ", n.LT: " < ", n.LE: " <= ",
    n.GT: " > ", n.GE: " >= ", n.And: " && ", n.Or: " || "}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}


def to_text(node: n.Node) -> str:
    """`node` as text: an Expr on one line (more if shared parts had to be named), a Stmt as an indented loop nest."""
    printer = _Printer()
    with deep_recursion():
        if isinstance(node, n.Expr):
            printer.root(node, bare=False)
        else:
            assert isinstance(node, n.Stmt)
            printer.stmt(node)
    return "".join(printer.out)


def type_text(t: Type) -> str:
    """A type as Halide prints it inside expressions: bool is `uint1`."""
    return str(t).replace("bool", "uint1") if t.element_of().is_bool() else str(t)


def string_text(value: str) -> str:
    """A string literal with C escapes."""
    out = []
    for c in value:
        if c in _ESCAPES:
            out.append(_ESCAPES[c])
        elif " " <= c <= "~":
            out.append(c)
        else:
            out.extend(f"\\x{byte:02X}" for byte in c.encode())
    return '"' + "".join(out) + '"'


def float_text(value: float, t: Type) -> str:
    """A floating point constant: `1.000000f`, `1.000000e-09`."""
    suffix = {64: "", 32: "f", 16: "h"}[t.bits()]
    small = value != 0 and math.isfinite(value) and math.log10(abs(value)) < -6
    return (f"{value:e}" if small else f"{value:f}") + suffix


_HEADS: dict[type[n.Stmt], str] = {n.Produce: "produce", n.HoistedStorage: "hoisted storage", n.Atomic: "atomic"}


class _Printer:
    """Appends pieces of text to `out`; `names` maps shared parts that were named, `known` holds names whose type is plain from where they
    are bound."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.indent = 0
        self.known: set[str] = set()
        self.names: dict[n.Expr, str] = {}
        self.sizes: dict[n.Node, int] = {}
        self.count = 0

    # ---- expressions

    def size(self, e: n.Expr) -> int:
        """Nodes of `e` written as a tree."""
        found = self.sizes.get(e)
        if found is None:
            found = 1
            for k in e.children():
                found += self.size(k)
            self.sizes[e] = found
        return found

    def shared(self, root: n.Expr) -> list[n.Expr]:
        """The parts of `root` used more than once (outside Let bodies, which are scopes of their own), children before parents."""
        uses: dict[n.Expr, int] = {}
        order: list[n.Expr] = []

        def visit(e: n.Expr) -> None:
            uses[e] = uses.get(e, 0) + 1
            if uses[e] > 1 or e in self.names:
                return
            for k in (e.value,) if isinstance(e, n.Let) else e.children():
                visit(k)
            order.append(e)

        visit(root)
        return [e for e in order if uses[e] > 1 and self.size(e) >= _WORTH_A_NAME and e not in self.names]

    def root(self, e: n.Expr, bare: bool = True, end: str = "\n") -> None:
        """A whole expression, preceded by the definitions of its shared parts if it is large. `bare` leaves out the outermost
        parentheses."""
        self.define([e], end)
        self.expr(e, bare)

    def define(self, roots: Iterable[n.Expr | None], end: str = "\n") -> None:
        """Name the shared parts of large expressions that follow on the next line."""
        for e in roots:
            if e is None or self.size(e) <= TREE_LIMIT:
                continue
            for part in self.shared(e):
                name = f"t{self.count}"
                self.count += 1
                self.out.append(f"{' ' * self.indent}let {name} = " if end == "\n" else f"let {name} = ")
                self.expr(part, True)
                self.out.append(end)
                self.names[part] = name

    def expr(self, e: n.Expr, bare: bool = False) -> None:
        """Append the text of `e`."""
        named = self.names.get(e) if self.names else None
        if named is not None:
            self.out.append(named)
            return
        sign = _INFIX.get(type(e))
        if sign is not None:
            if not bare:
                self.out.append("(")
            self.expr(e.a)  # type: ignore[attr-defined]
            self.out.append(sign)
            self.expr(e.b)  # type: ignore[attr-defined]
            if not bare:
                self.out.append(")")
            return
        if type(e) is n.Let:
            self.let(e, bare)
            return
        _EXPRS[type(e)](self, e)

    def call(self, head: str, args: Iterable[n.Expr], tail: str = ")") -> None:
        """`head(args)`."""
        self.out.append(head + "(")
        self.list(args)
        self.out.append(tail)

    def list(self, args: Iterable[n.Expr]) -> None:
        """Comma separated, each without outer parentheses."""
        for i, a in enumerate(args):
            if i:
                self.out.append(", ")
            self.expr(a, True)

    def typed(self, t: Type, name: str) -> str:
        """`name` with its type in front unless that is int32 or known from the binding."""
        if t is INT32 or name in self.known:
            return name
        return f"{type_text(t)}{name}" if t.is_handle() else f"({type_text(t)}){name}"

    def imm(self, e: Any) -> None:
        """An integer constant."""
        self.out.append(str(e.value) if e.type is INT32 else f"({type_text(e.type)}){e.value}")

    def let(self, e: n.Let, bare: bool) -> None:
        """A Let; its body is a scope of its own for named parts."""
        self.out.append(("" if bare else "(") + f"let {e.name} = ")
        self.expr(e.value)
        self.out.append(" in ")
        added = e.name not in self.known
        self.known.add(e.name)
        outer, self.names = self.names, dict(self.names)
        self.root(e.body, bare=False, end=" in ")
        self.names = outer
        if added:
            self.known.discard(e.name)
        if not bare:
            self.out.append(")")

    def load(self, e: n.Load) -> None:
        """A Load, with its predicate if it has one."""
        guarded = not is_one(e.predicate)
        self.out.append(("(" if guarded else "") + ("" if e.name in self.known else f"({type_text(e.type)})") + e.name + "[")
        self.expr(e.index, True)
        self.out.append("]")
        if guarded:
            self.out.append(" if ")
            self.expr(e.predicate)
            self.out.append(")")

    def shuffle(self, e: n.Shuffle) -> None:
        """A Shuffle by the name of what it does."""
        total = sum(v.type.lanes() for v in e.vectors)
        width, count, idx = e.vectors[0].type.lanes(), len(e.vectors), e.indices
        step = idx[1] - idx[0] if len(idx) > 1 else 1
        if idx == tuple(range(total)):
            self.call("concat_vectors", e.vectors)
        elif count > 1 and len(idx) == total and idx == tuple((i % count) * width + i // count for i in range(total)):
            self.call("interleave_vectors", e.vectors)
        elif len(idx) == 1:
            self.call("extract_element", e.vectors, f", {idx[0]})")
        elif count == 1 and all(idx[i] == idx[0] + i * step for i in range(len(idx))):
            self.call("slice_vectors", e.vectors, f", {idx[0]}, {step}, {len(idx)})")
        else:
            self.call("shuffle", e.vectors, "".join(f", {i}" for i in idx) + ")")

    # ---- statements

    def line(self, text: str) -> None:
        """One line at the present indentation."""
        self.out.append(" " * self.indent + text + "\n")

    def start(self, text: str, *exprs: n.Expr | None) -> None:
        """Begin a line that prints `exprs`."""
        self.define(exprs)
        self.out.append(" " * self.indent + text)

    def nested(self, body: n.Stmt) -> None:
        """`body` one step further in."""
        self.indent += 1
        self.stmt(body)
        self.indent -= 1

    def stmt(self, s: n.Stmt) -> None:
        """Append the text of `s`. Named parts live as long as the statement that encloses them."""
        outer, self.names = self.names, dict(self.names) if self.names else {}
        while type(s) is n.LetStmt:  # no indentation, so no recursion
            self.start(f"let {s.name} = ", s.value)
            self.expr(s.value, True)
            self.out.append("\n")
            self.known.add(s.name)
            s = s.body
        _STMTS[type(s)](self, s)
        self.names = outer

    def assertion(self, s: n.Assert) -> None:
        """An Assert."""
        self.start("assert(", s.condition, s.message)
        self.list((s.condition, s.message))
        self.out.append(")\n")

    def produce(self, s: n.Produce | n.HoistedStorage | n.Atomic) -> None:
        """A Produce, HoistedStorage or Atomic."""
        self.line(f"{_HEADS[type(s)]} {s.name} {{")
        self.nested(s.body)
        self.line("}")

    def fork(self, s: n.Fork) -> None:
        """A Fork."""
        self.line(f"fork ({s.name}) {{")
        self.nested(s.first)
        self.line("} and {")
        self.nested(s.rest)
        self.line("}")

    def loop(self, s: n.For) -> None:
        """A For."""
        self.known.add(s.name)
        self.start(f"{s.kind.value} ({s.name}, ", s.min, s.extent)
        self.list((s.min, s.extent))
        self.out.append(") {\n")
        self.nested(s.body)
        self.line("}")

    def predicated(self, predicate: n.Expr, *exprs: n.Expr) -> int:
        """The guard line of a Store or Provide; returns the indentation to restore."""
        outer = self.indent
        self.define((predicate, *exprs))
        if not is_one(predicate):
            self.start("predicate (")
            self.expr(predicate, True)
            self.out.append(")\n")
            self.indent += 1
        self.start("")
        return outer

    def store(self, s: n.Store) -> None:
        """A Store."""
        outer = self.predicated(s.predicate, s.index, s.value)
        self.out.append(f"{s.name}[")
        self.expr(s.index, True)
        self.out.append("] = ")
        self.expr(s.value, True)
        self.out.append("\n")
        self.indent = outer

    def provide(self, s: n.Provide) -> None:
        """A Provide."""
        outer = self.predicated(s.predicate, *s.args, *s.values)
        self.call(s.name, s.args, ") = ")
        many = len(s.values) > 1
        self.out.append("{" if many else "")
        self.list(s.values)
        self.out.append("}\n" if many else "\n")
        self.indent = outer

    def where(self, memory: n.MemoryType, condition: n.Expr) -> None:
        """Memory type and condition of an allocation."""
        if memory is not n.MemoryType.Auto:
            self.out.append(f" in {memory.name}")
        if not is_one(condition):
            self.out.append(" if ")
            self.expr(condition)

    def realize(self, s: n.Realize) -> None:
        """A Realize."""
        self.known.add(s.name)
        self.start(f"realize {s.name}(", *s.mins, *s.extents, s.condition)
        for i, pair in enumerate(zip(s.mins, s.extents)):
            self.out.append(", [" if i else "[")
            self.list(pair)
            self.out.append("]")
        self.out.append(")")
        self.where(s.memory, s.condition)
        self.out.append(" {\n")
        self.nested(s.body)
        self.line("}")

    def allocate(self, s: n.Allocate) -> None:
        """An Allocate; what follows is in its scope."""
        self.known.add(s.name)
        self.start(f"allocate {s.name}[{type_text(s.type)}", *s.extents, s.condition)
        for i, extent in enumerate(s.extents):
            self.out.append(" * (" if s.padding and not i else " * ")
            self.expr(extent)
        self.out.append(f" + {s.padding})]" if s.padding else "]")
        self.where(s.memory, s.condition)
        self.out.append("\n")
        self.stmt(s.body)

    def block(self, s: n.Block) -> None:
        """Statements in order; what follows a production consumes it."""
        depth = 0
        for i, one in enumerate(s.stmts):
            self.stmt(one)
            if isinstance(one, n.Produce) and i + 1 < len(s.stmts):
                self.line(f"consume {one.name} {{")
                self.indent += 1
                depth += 1
        for _ in range(depth):
            self.indent -= 1
            self.line("}")

    def conditional(self, s: n.IfThenElse) -> None:
        """An IfThenElse; chains print flat."""
        self.start("if (", s.condition)
        rest: n.Stmt | None = s
        while isinstance(rest, n.IfThenElse):
            self.expr(rest.condition, True)
            self.out.append(") {\n")
            self.nested(rest.then_case)
            rest = rest.else_case
            if isinstance(rest, n.IfThenElse) and self.size(rest.condition) <= TREE_LIMIT:
                self.start("} else if (")
                continue
            if rest is not None:
                self.line("} else {")
                self.nested(rest)
            break
        self.line("}")

    def evaluate(self, s: n.Evaluate) -> None:
        """An Evaluate."""
        self.start("", s.value)
        self.expr(s.value, True)
        self.out.append("\n")


def _not(p: _Printer, e: n.Not) -> None:
    p.out.append("!")
    p.expr(e.a)


def _broadcast(p: _Printer, e: n.Broadcast) -> None:
    p.call(f"x{e.lanes}", (e.value,))


_EXPRS: dict[type[n.Node], Callable[[_Printer, Any], None]] = {
    n.IntImm: _Printer.imm,
    n.UIntImm: _Printer.imm,
    n.FloatImm: lambda p, e: p.out.append(float_text(e.value, e.type)),
    n.StringImm: lambda p, e: p.out.append(string_text(e.value)),
    n.Variable: lambda p, e: p.out.append(p.typed(e.type, e.name)),
    n.Cast: lambda p, e: p.call(type_text(e.type), (e.value,)),
    n.Reinterpret: lambda p, e: p.call(f"reinterpret<{type_text(e.type)}>", (e.value,)),
    n.Min: lambda p, e: p.call("min", (e.a, e.b)),
    n.Max: lambda p, e: p.call("max", (e.a, e.b)),
    n.Not: _not,
    n.Select: lambda p, e: p.call("select", (e.condition, e.true_value, e.false_value)),
    n.Load: _Printer.load,
    n.Ramp: lambda p, e: p.call("ramp", (e.base, e.stride), f", {e.lanes})"),
    n.Broadcast: _broadcast,
    n.Call: lambda p, e: p.call(p.typed(e.type, e.name), e.args),
    n.Shuffle: _Printer.shuffle,
    n.VectorReduce: lambda p, e: p.call(f"({type_text(e.type)})vector_reduce_{e.op.value}", (e.value,)),
}
_STMTS: dict[type[n.Node], Callable[[_Printer, Any], None]] = {
    n.Assert: _Printer.assertion,
    n.Produce: _Printer.produce,
    n.For: _Printer.loop,
    n.Store: _Printer.store,
    n.Provide: _Printer.provide,
    n.Realize: _Printer.realize,
    n.HoistedStorage: _Printer.produce,
    n.Atomic: _Printer.produce,
    n.Fork: _Printer.fork,
    n.Allocate: _Printer.allocate,
    n.Block: _Printer.block,
    n.IfThenElse: _Printer.conditional,
    n.Evaluate: _Printer.evaluate,
}
