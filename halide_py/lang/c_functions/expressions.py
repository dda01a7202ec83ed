"""Expressions of C: their value on the path that is being followed, and what they assign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ...ir import build as b
from ...ir import nodes as n
from ...ir.intrinsics import EXTERNS, ExternFunction, call_extern, intrinsic
from ...ir.types import INT32, Type
from ..prototypes import scalar_type
from . import arithmetic as c
from .library import library_call
from .paths import Level, Path, Slot, choose
from .source import CSource, Refusal, syntax

_MOST_STEPS = 200_000
_REFUSED = {"StructRef": "a struct", "CompoundLiteral": "a compound literal", "StmtExpr": "a statement expression"}


class Expressions:
    """The part of the translation that evaluates expressions. `path` is None behind a return, break or continue."""

    def __init__(self, source: CSource, row: ExternFunction) -> None:
        self.source, self.row = source, row
        self.ast = syntax()
        self.names: list[dict[str, Slot | n.Expr | Refusal]] = [{}]  # innermost last; enumerators are constants
        self.path: Path | None = Path()
        self.levels: list[Level] = []
        self.slots = 0
        self.steps = 0

    # -- variables

    def new_slot(self, t: Type, dims: tuple[int, ...] = (), const: bool = False) -> Slot:
        """A variable of its own."""
        self.slots += 1
        return Slot(self.slots, t, dims, const)

    def here(self) -> Path:
        """The path; an expression is evaluated on one."""
        assert self.path is not None
        return self.path

    def lookup(self, node: Any) -> Slot | n.Expr:
        """What a name means."""
        for scope in reversed(self.names):
            found = scope.get(node.name)
            if isinstance(found, Refusal):
                raise found
            if found is not None:
                return found
        if node.name in self.source.functions or node.name in self.source.prototypes:
            raise Refusal(f"{node.name} is a function here, as a pointer to it", node)
        raise Refusal(f"{node.name} is not declared", node)

    def type_of(self, t: Any, node: Any) -> Type:
        """The scalar type of a declaration without arrays."""
        seen = t
        while not isinstance(seen, (self.ast.IdentifierType, self.ast.Enum)):
            if isinstance(seen, self.ast.PtrDecl):
                raise Refusal("a pointer", node)
            if isinstance(seen, (self.ast.Struct, self.ast.Union)):
                raise Refusal("a struct or union", node)
            if isinstance(seen, (self.ast.FuncDecl, self.ast.ArrayDecl)):
                raise Refusal("a function or array type", node)
            if "volatile" in (getattr(seen, "quals", None) or []) or "_Atomic" in (getattr(seen, "quals", None) or []):
                raise Refusal("a volatile or atomic variable", node)
            seen = seen.type
        if isinstance(seen, self.ast.Enum):
            return INT32
        names = list(seen.names)
        if len(names) == 1 and names[0] in self.source.typedefs:
            return self.type_of(self.source.typedefs[names[0]], node)
        if names in (["float_t"], ["double_t"]):
            return c.FLOAT if names == ["float_t"] else c.DOUBLE
        found = scalar_type(names)
        if found is None:
            raise Refusal(f"the type {' '.join(names)}", node)
        return found

    # -- evaluation

    def value(self, node: Any) -> n.Expr:
        """The value of an expression. Raises Refusal, with the place."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Refusal(f"more than {_MOST_STEPS} operations when its loops are unrolled", node)
        try:
            evaluate = cast("Callable[[Any], n.Expr] | None", getattr(self, f"_{type(node).__name__.lower()}", None))
            if evaluate is None:
                raise Refusal(_REFUSED.get(type(node).__name__, f"a {type(node).__name__}"), node)
            return evaluate(node)
        except Refusal as e:
            e.coord = e.coord or node.coord
            raise

    def condition(self, node: Any) -> n.Expr:
        """An expression as a condition."""
        return c.truth(self.value(node))

    def _constant(self, node: Any) -> n.Expr:
        if node.type == "string":
            raise Refusal("a string", node)
        if node.type == "long double":
            raise Refusal("a constant of type long double; write it as a double", node)
        return c.constant(node.type, node.value)

    def _id(self, node: Any) -> n.Expr:
        found = self.lookup(node)
        if isinstance(found, n.Expr):
            return found
        if found.dims:
            raise Refusal(f"the array {node.name} as a pointer; index it, or pass it to a function of the same source", node)
        return self._read(found, 0, node)

    def _read(self, slot: Slot, element: int, node: Any) -> n.Expr:
        held = self.here().values.get(slot.number)
        found = held[element] if isinstance(held, tuple) else held
        if found is None:
            raise Refusal("a variable is read before it has a value", node)
        return found

    def _arrayref(self, node: Any) -> n.Expr:
        slot, index = self._element(node)
        known = b.as_int(index)
        if known is not None:
            return self._read(slot, known, node)
        return intrinsic("mux", slot.type, c.convert(INT32, index), *(self._read(slot, k, node) for k in range(slot.size())))

    def _element(self, node: Any) -> tuple[Slot, n.Expr]:
        """The array that is indexed, and the number of the element."""
        subscripts: list[Any] = []
        at = node
        while isinstance(at, self.ast.ArrayRef):
            subscripts.insert(0, at.subscript)
            at = at.name
        if not isinstance(at, self.ast.ID):
            raise Refusal("a pointer", node)
        slot = self.lookup(at)
        if isinstance(slot, n.Expr) or not slot.dims:
            raise Refusal(f"{at.name} is indexed, but is no array of known size", node)
        if len(subscripts) != len(slot.dims):
            raise Refusal(f"a part of the array {at.name}, which has {len(slot.dims)} dimensions", node)
        index: n.Expr = b.i32(0)
        for k, (sub, extent) in enumerate(zip(subscripts, slot.dims)):
            i = c.promote(self.value(sub))
            if i.type.is_float():
                raise Refusal("a float as an index", sub)
            known = b.as_int(i)
            if known is not None and not 0 <= known < extent:
                raise Refusal(f"index {known} is outside of the {extent} elements of {at.name}", sub)
            index = i if k == 0 else c.binary("+", c.binary("*", index, b.i32(extent)), i)
        return slot, index

    def _cast(self, node: Any) -> n.Expr:
        t = self.type_of(node.to_type.type, node)
        inner = node.expr
        if isinstance(inner, self.ast.Constant) and inner.type == "long double":
            return c.convert(t, c.constant("double", inner.value))
        return c.convert(t, self.value(inner))

    def _unaryop(self, node: Any) -> n.Expr:
        if node.op == "sizeof":
            return self._sizeof(node.expr)
        if node.op in ("&", "*"):
            raise Refusal("a pointer", node)
        if node.op in ("++", "--", "p++", "p--"):
            old = self.value(node.expr)
            new = self.assign(node.expr, c.binary(node.op.strip("p")[0], old, b.i32(1)))
            return old if node.op.startswith("p") else new
        return c.unary(node.op, self.value(node.expr))

    def _sizeof(self, node: Any) -> n.Expr:
        slot = self.lookup(node) if isinstance(node, self.ast.ID) else None
        if isinstance(slot, Slot):
            return b.const(c.SIZE, slot.size() * slot.type.bytes())
        t = self.type_of(node.type, node) if isinstance(node, self.ast.Typename) else self.static_type(node)
        return b.const(c.SIZE, t.bytes())

    def static_type(self, node: Any) -> Type:
        """The type of an expression that is not evaluated."""
        ast = self.ast
        if isinstance(node, (ast.ID, ast.ArrayRef)):
            while isinstance(node, ast.ArrayRef):
                node = node.name
            return self.lookup(node).type
        if isinstance(node, ast.Cast):
            return self.type_of(node.to_type.type, node)
        if isinstance(node, (ast.Assignment, ast.UnaryOp)) and (isinstance(node, ast.Assignment) or node.op in ("++", "--", "p++", "p--")):
            return self.static_type(node.lvalue if isinstance(node, ast.Assignment) else node.expr)
        if isinstance(node, ast.ExprList):
            return self.static_type(node.exprs[-1])
        if isinstance(node, ast.FuncCall) and isinstance(node.name, ast.ID):
            inside = self.source.functions.get(node.name.name)
            if inside is not None:
                return self.type_of(inside.decl.type.type, node)
            args = [b.const(self.static_type(a), 1) for a in (node.args.exprs if node.args else [])]
            return self._outside(node.name.name, args, node).type
        parts = {"UnaryOp": ("expr",), "BinaryOp": ("left", "right"), "TernaryOp": ("iftrue", "iffalse")}.get(type(node).__name__, ())
        types = [c.promote(b.const(self.static_type(getattr(node, p)), 1)).type for p in parts]
        if not types:
            return self.value(node).type
        if getattr(node, "op", "") in ("!", "<", "<=", ">", ">=", "==", "!=", "&&", "||"):
            return INT32
        return types[0] if len(types) == 1 or getattr(node, "op", "") in ("<<", ">>") else c.common_type(*types)

    def _binaryop(self, node: Any) -> n.Expr:
        if node.op in ("&&", "||"):
            first = self.condition(node.left)
            if b.as_int(first) is not None:
                return c.convert(INT32, self.condition(node.right) if b.is_true(first) == (node.op == "&&") else first)
            second, = self._sides(first if node.op == "&&" else b.not_(first), [lambda: self.condition(node.right)])
            return c.convert(INT32, b.and_(first, second) if node.op == "&&" else b.or_(first, second))
        a = self.value(node.left)
        out = c.binary(node.op, a, self.value(node.right))
        return c.convert(INT32, out) if out.type.is_bool() else out

    def _ternaryop(self, node: Any) -> n.Expr:
        test = self.condition(node.cond)
        if b.as_int(test) is not None:
            return c.convert(self.static_type(node), self.value(node.iftrue if b.is_true(test) else node.iffalse))
        sides: list[Callable[[], n.Expr]] = [lambda: self.value(node.iftrue), lambda: self.value(node.iffalse)]
        first, second = c.usual(*self._sides(test, sides))
        return b.select(test, first, second)

    def _sides(self, test: n.Expr, sides: Sequence[Callable[[], n.Expr]]) -> list[n.Expr]:
        """The values of expressions that are evaluated where a condition holds (the first), and where not (the second, if there is one)."""
        ways = [self.here().fork(test), self.here().fork(b.not_(test))]
        values = []
        for k, side in enumerate(sides):
            self.path = ways[k]
            values.append(side())
            ways[k] = self.here()
        self.path = choose(test, *ways)
        return values

    def _exprlist(self, node: Any) -> n.Expr:
        return [self.value(e) for e in node.exprs][-1]

    def _assignment(self, node: Any) -> n.Expr:
        if node.op == "=":
            return self.assign(node.lvalue, self.value(node.rvalue))
        old = self.value(node.lvalue)
        new = c.binary(node.op[:-1], old, self.value(node.rvalue))
        return self.assign(node.lvalue, new)

    def assign(self, target: Any, value: n.Expr) -> n.Expr:
        """Store a value into a variable or an element; gives it at the type of the variable."""
        if isinstance(target, self.ast.ID):
            slot, index = self.lookup(target), b.i32(0)
        elif isinstance(target, self.ast.ArrayRef):
            slot, index = self._element(target)
        else:
            raise Refusal(
                "a pointer" if isinstance(target, self.ast.UnaryOp) else _REFUSED.get(type(target).__name__, "an assignment to this"),
                target,
            )
        if isinstance(slot, n.Expr) or slot.const:
            raise Refusal(f"an assignment to {self._name(target)}, which is const", target)
        if slot.dims and isinstance(target, self.ast.ID):
            raise Refusal(f"an assignment to the array {target.name}", target)
        new = c.convert(slot.type, value)
        held = self.here().values.get(slot.number)
        if not slot.dims:
            self.here().values[slot.number] = new
            return new
        assert isinstance(held, tuple)
        known = b.as_int(index)
        self.here().values[slot.number] = tuple(
            new
            if known == k
            else old
            if known is not None
            else b.select(c.truth(c.binary("==", index, b.const(index.type, k))), new, self._read(slot, k, target))
            for k, old in enumerate(held)
        )
        return new

    def _name(self, target: Any) -> str:
        while not isinstance(target, self.ast.ID):
            target = target.name
        return str(target.name)

    # -- calls

    def _funccall(self, node: Any) -> n.Expr:
        found = self.call(node)
        if found is None:
            raise Refusal("the value of a call that has none", node)
        return found

    def call(self, node: Any) -> n.Expr | None:
        """A call: of a function of the source, which is translated too, of one declared by `hl.extern` that has a rule, or of the C
        library. None for void."""
        if not isinstance(node.name, self.ast.ID):
            raise Refusal("a call of a function pointer", node)
        name, given = node.name.name, list(node.args.exprs) if node.args else []
        inside = self.source.functions.get(name)
        if inside is not None and not any(r.gradient is not None and r.source == self.source.text for r in self._declared(name)):
            return self.inline(inside, given, node)
        if name.removeprefix("__builtin_") in ("nan", "nanf"):
            given = []  # a string
        return self._outside(name, [self.value(e) for e in given], node)

    def _declared(self, name: str) -> list[ExternFunction]:
        return [r for (other, _), r in EXTERNS.items() if other == name and not r.builtin and not r.stage and r is not self.row]

    def _outside(self, name: str, args: Sequence[n.Expr], node: Any) -> n.Expr:
        """A call of a function that is not translated with this one."""
        declared = self._declared(name)
        row = next((r for r in declared if (r.gradient is not None or r.auto) and len(r.args) == len(args)), None)
        if row is not None:
            return call_extern(row, *(c.convert(t, a) for t, a in zip(row.args, args)))
        known = library_call(name, args)
        if known is not None:
            return known
        names = ", ".join(f"a{i}" for i in range(len(args)))
        rule = f"{name}.gradient(lambda adjoint, result, {names}: ...)"
        if declared:
            raise Refusal(f"a call of {name}(), which has no gradient rule (register one before: {rule})", node)
        raise Refusal(f"a call of {name}(), of which the source has no definition (declare it before, with a rule: {name} = "
                      f"hl.extern(...), {rule})", node)

    def inline(self, function: Any, given: Sequence[Any], node: Any) -> n.Expr | None:
        """The value of a call of a function of the source (defined with the statements)."""
        raise NotImplementedError
