"""Statements of C, and the translation of a whole function.

Loops are unrolled: as long as the condition is known there is nothing left of it, and where it depends on values it is one more way out.
Limits, each an error with its place: pointers other than arrays passed on, structs, goto, loops whose end is not known, globals that are
not const, volatile, varargs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import build as b
from ...ir import nodes as n
from ...ir.intrinsics import ExternFunction
from ...ir.parameter import Parameter
from ...ir.traverse import deep_recursion
from ...ir.types import Type
from . import arithmetic as c
from .expressions import Expressions
from .paths import Level, Slot, choose, meet
from .source import CSource, Refusal

_MOST_TURNS = 1024
_DEEPEST = 48
_RESULT = 0  # the slot of what is returned


@dataclass(frozen=True)
class Translation:
    """What a function computes: an Expr of its parameters."""

    params: tuple[n.Variable, ...]
    value: n.Expr


def translate(source: CSource, row: ExternFunction) -> Translation:
    """What the function of a row computes. Raises Refusal for what cannot be an Expr."""
    function = source.functions.get(row.name)
    if function is None:
        raise Refusal(f"the source has no definition of {row.name}()")
    with deep_recursion():
        return _Function(source, row).whole(function)


class _Function(Expressions):
    def whole(self, function: Any) -> Translation:
        """The translation of the function asked for."""
        self._globals()
        params = tuple(
            n.Variable(t, f"{self.row.name}.{i}", Parameter(f"{self.row.name}.{i}", t, False)) for i, t in enumerate(self.row.args)
        )
        value = self._run(function, list(params), function)
        if value is None:
            raise Refusal(f"{self.row.name}() returns nothing", function)
        if value.type is not self.row.result:
            raise Refusal(f"{self.row.name}() returns {value.type}, but `{self.row.prototype}` says {self.row.result}", function)
        return Translation(params, value)

    def _globals(self) -> None:
        self._enumerators(self.source.enums)
        for d in self.source.globals.values():
            try:
                if "const" not in _qualifiers(d, self.ast) or d.init is None:
                    raise Refusal(f"the global variable {d.name}, which is not const")
                self._declare(d)
            except Refusal as e:  # only what is used matters
                self.names[0][d.name] = Refusal(e.message)

    def _enumerators(self, enums: Sequence[Any]) -> None:
        for e in enums:
            value = -1
            for item in e.values.enumerators:
                if item.value is None:
                    value += 1
                else:
                    known = b.as_int(self.value(item.value))
                    if known is None:
                        raise Refusal(f"the value of {item.name} is no constant", item)
                    value = known
                self.names[-1][item.name] = b.i32(value)

    # -- calls

    def inline(self, function: Any, given: Sequence[Any], node: Any) -> n.Expr | None:
        """The value of a call. An array is passed as what it is: the function reads and writes its elements."""
        args: list[n.Expr | Slot] = []
        for e in given:
            named = self.lookup(e) if isinstance(e, self.ast.ID) else None
            args.append(named if isinstance(named, Slot) and named.dims else self.value(e))
        return self._run(function, args, node)

    def _run(self, function: Any, args: Sequence[n.Expr | Slot], node: Any) -> n.Expr | None:
        if sum(level.kind == "call" for level in self.levels) >= _DEEPEST:
            raise Refusal(f"calls of {function.decl.name}() in each other, more than {_DEEPEST} deep", node)
        scope = self._parameters(function, args, node)
        outer, before = self.names, self.here()
        self.names = [outer[0], scope]
        level = self._enter("call", None if self._is_void(function) else self.type_of(function.decl.type.type, function))
        self._statement(function.body)
        if self.path is not None:
            if level.result is not None:
                raise Refusal(f"the end of {function.decl.name}() can be reached without a return", function)
            level.waiting.append(self.path)
        self._leave(level)
        self.names = outer
        assert self.path is not None
        self.path.conditions = before.conditions
        value = self.path.values.pop(_RESULT, None)
        assert not isinstance(value, tuple)
        return value

    def _is_void(self, function: Any) -> bool:
        t = function.decl.type.type
        return isinstance(t, self.ast.TypeDecl) and isinstance(t.type, self.ast.IdentifierType) and t.type.names == ["void"]

    def _parameters(self, function: Any, args: Sequence[n.Expr | Slot], node: Any) -> dict[str, Any]:
        declared = list(function.decl.type.args.params) if function.decl.type.args else []
        if any(isinstance(p, self.ast.EllipsisParam) for p in declared):
            raise Refusal(f"{function.decl.name}() takes a variable number of arguments", node)
        if len(declared) == 1 and isinstance(declared[0], self.ast.Typename):
            declared = []
        if len(declared) != len(args):
            raise Refusal(f"{function.decl.name}() takes {len(declared)} arguments, but is given {len(args)}", node)
        scope: dict[str, Any] = {}
        for p, a in zip(declared, args):
            if isinstance(a, Slot):
                if not isinstance(p.type, (self.ast.PtrDecl, self.ast.ArrayDecl)):
                    raise Refusal(f"an array for argument {p.name}, which is none", node)
                if self.type_of(p.type.type, p) is not a.type:
                    raise Refusal(f"an array of {a.type} for argument {p.name} of another type", node)
                scope[p.name] = a
            else:
                slot = self.new_slot(self.type_of(p.type, p), const="const" in p.quals)
                self.here().values[slot.number] = c.convert(slot.type, a)
                scope[p.name] = slot
        return scope

    # -- levels

    def _enter(self, kind: str, result: Type | None = None) -> Level:
        level = Level(kind, len(self.levels), result)
        self.levels.append(level)
        self.path = self.here().entered()
        return level

    def _leave(self, level: Level) -> None:
        """Behind a level: all ways that were left to it, and the one that came through."""
        assert self.levels.pop() is level
        ways = [*level.waiting, *([self.path] if self.path is not None and level.kind != "call" else [])]
        self.path = meet(ways, level.depth)

    def _leave_to(self, *kinds: str) -> None:
        """End the path at the innermost level of a kind."""
        level = next(level for level in reversed(self.levels) if level.kind in kinds)
        level.waiting.append(self.here().left(level.depth + 1))
        self.path = None

    # -- statements

    def _statement(self, node: Any) -> None:
        if node is None or self.path is None and not isinstance(node, self.ast.Label):
            return
        name = type(node).__name__
        run = getattr(self, f"_do_{name.lower()}", None)
        if run is not None:
            try:
                run(node)
            except Refusal as e:
                e.coord = e.coord or node.coord
                raise
        elif isinstance(node, self.ast.FuncCall):
            self.call(node)
        elif name in ("Label", "Goto", "Case", "Default", "Asm"):
            raise Refusal("goto" if name in ("Label", "Goto") else f"{name.lower()} here", node)
        elif isinstance(node, self.ast.Cast) and getattr(node.to_type.type.type, "names", None) == ["void"]:
            self.value(node.expr)
        else:
            self.value(node)

    def _do_emptystatement(self, node: Any) -> None:
        pass

    _do_pragma = _do_staticassert = _do_emptystatement

    def _do_compound(self, node: Any) -> None:
        self.names.append({})
        for s in node.block_items or []:
            self._statement(s)
        self.names.pop()

    def _do_decllist(self, node: Any) -> None:
        for d in node.decls:
            self._declare(d)

    def _do_decl(self, node: Any) -> None:
        self._declare(node)

    def _do_typedef(self, node: Any) -> None:
        self.source.typedefs[node.name] = node.type

    def _declare(self, d: Any) -> None:
        """A variable, with its value if it has one."""
        if isinstance(d.type, (self.ast.Struct, self.ast.Union)):
            raise Refusal("a struct or union", d)
        if isinstance(d.type, self.ast.Enum) or d.name is None:
            self._enumerators([d.type])
            return
        if isinstance(d.type, self.ast.FuncDecl):
            return
        qualifiers = _qualifiers(d, self.ast)
        const = "const" in qualifiers
        if self.levels and ("static" in d.storage and not const or "extern" in d.storage):
            raise Refusal(f"the variable {d.name}, which is {' '.join(d.storage)} and keeps its value between calls", d)
        dims, t = self._extents(d)
        slot = self.new_slot(self.type_of(t, d), dims, const)
        if not dims:
            value = None if d.init is None else c.convert(slot.type, self.value(d.init))
            self.here().values[slot.number] = value
        else:
            self.here().values[slot.number] = self._elements(slot, d)
        self.names[-1][d.name] = slot

    def _extents(self, d: Any) -> tuple[tuple[int, ...], Any]:
        dims: list[int] = []
        t = d.type
        while isinstance(t, self.ast.ArrayDecl):
            if t.dim is None:
                if not isinstance(d.init, self.ast.InitList) or dims:
                    raise Refusal(f"the array {d.name} of unknown size", d)
                dims.append(len(d.init.exprs))
            else:
                known = b.as_int(self.value(t.dim))
                if known is None or known < 1:
                    raise Refusal(f"the array {d.name}, whose size is no constant", d)
                dims.append(known)
            t = t.type
        return tuple(dims), t

    def _elements(self, slot: Slot, d: Any) -> tuple[n.Expr | None, ...]:
        if d.init is None:
            return (None,) * slot.size()
        flat: list[n.Expr] = []

        def fill(e: Any, dims: tuple[int, ...]) -> None:
            size = 1
            for k in dims:
                size *= k
            start = len(flat)
            if not isinstance(e, self.ast.InitList):
                raise Refusal(f"this as the value of the array {d.name}", e)
            nested = len(dims) > 1 and any(isinstance(i, self.ast.InitList) for i in e.exprs)
            for item in e.exprs:
                if isinstance(item, self.ast.NamedInitializer):
                    raise Refusal("a designated initializer", item)
                if nested:
                    fill(item, dims[1:])
                else:
                    flat.append(c.convert(slot.type, self.value(item)))
            if len(flat) - start > size:
                raise Refusal(f"more values than the array {d.name} has elements", e)
            flat.extend([b.const(slot.type, 0)] * (size - (len(flat) - start)))

        fill(d.init, slot.dims)
        return tuple(flat)

    def _do_return(self, node: Any) -> None:
        result = next(level.result for level in reversed(self.levels) if level.kind == "call")
        if (result is None) != (node.expr is None):
            raise Refusal("a return without a value" if node.expr is None else "a value returned from a void function", node)
        if result is not None:
            self.here().values[_RESULT] = c.convert(result, self.value(node.expr))
        self._leave_to("call")

    def _do_break(self, node: Any) -> None:
        self._leave_to("loop", "switch")

    def _do_continue(self, node: Any) -> None:
        self._leave_to("turn")

    def _do_if(self, node: Any) -> None:
        test = self.condition(node.cond)
        if b.as_int(test) is not None:
            self._statement(node.iftrue if b.is_true(test) else node.iffalse)
            return
        self._branch(test, [node.iftrue], [node.iffalse])

    def _branch(self, test: n.Expr, first: Sequence[Any], second: Sequence[Any]) -> None:
        """Statements where a condition holds, others where it does not."""
        start = self.here()
        ways = []
        for condition, statements in ((test, first), (b.not_(test), second)):
            self.path = start.fork(condition)
            for s in statements:
                self._statement(s)
            ways.append(self.path)
        self.path = choose(test, *ways)

    def _do_for(self, node: Any) -> None:
        self.names.append({})
        self._statement(node.init)
        self._loop(node, node.cond, node.stmt, node.next)
        self.names.pop()

    def _do_while(self, node: Any) -> None:
        self._loop(node, node.cond, node.stmt, None)

    def _do_dowhile(self, node: Any) -> None:
        self._loop(node, node.cond, node.stmt, None, tested=False)

    def _loop(self, node: Any, condition: Any, body: Any, step: Any, tested: bool = True) -> None:
        level = self._enter("loop")
        turns = 0
        while self.path is not None:
            if tested and condition is not None:
                test = self.condition(condition)
                if b.is_false(test):
                    break
                if not b.is_true(test):
                    level.waiting.append(self.here().fork(b.not_(test)))
                    self.path = self.here().fork(test)
            tested = True
            turns += 1
            if turns > _MOST_TURNS:
                raise Refusal(f"a loop that has not ended, for all values, after {_MOST_TURNS} turns; its number of turns has to be "
                              "bounded by a constant", node)
            turn = self._enter("turn")
            self._statement(body)
            self._leave(turn)
            if step is not None and self.path is not None:
                self._statement(step)
        self._leave(level)

    def _do_switch(self, node: Any) -> None:
        """Each group of statements runs where one of the labels up to it is chosen: control falls through until a break leaves."""
        chosen = c.promote(self.value(node.cond))
        items = node.stmt.block_items if isinstance(node.stmt, self.ast.Compound) else None
        if not items or not isinstance(items[0], (self.ast.Case, self.ast.Default)):
            raise Refusal("a switch without cases at its beginning", node)
        level = self._enter("switch")
        self.names.append({})
        matches = [c.truth(c.binary("==", chosen, self.value(i.expr))) for i in items if isinstance(i, self.ast.Case)]
        none = b.not_(b.FALSE) if not matches else b.all_of(b.not_(m) for m in matches)
        entered: n.Expr = b.FALSE
        for item in items:
            if isinstance(item, self.ast.Case):
                entered = b.or_(entered, matches.pop(0))
            elif isinstance(item, self.ast.Default):
                entered = b.or_(entered, none)
            statements = item.stmts if isinstance(item, (self.ast.Case, self.ast.Default)) else [item]
            if self.path is None or b.is_false(entered):
                continue
            if b.is_true(entered):
                for s in statements:
                    self._statement(s)
            else:
                self._branch(entered, statements or [], [])
        self.names.pop()
        self._leave(level)


def _qualifiers(d: Any, ast: Any) -> set[str]:
    """What a declared variable or the elements of an array are qualified by."""
    found, t = set(d.quals or []), d.type
    while isinstance(t, (ast.ArrayDecl, ast.TypeDecl)):
        found |= set(getattr(t, "quals", None) or [])
        t = t.type
    if "volatile" in found:
        raise Refusal("a volatile variable", d)
    return found
