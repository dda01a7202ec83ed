"""Statements as C: loops, lets, allocations, stores, checks; parallel loops become functions of their own called through a closure."""

from __future__ import annotations

from typing import Any, Callable

from ..errors import InternalError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import Type
from . import memory
from .ctypes_of import c_identifier, memory_type, value_bits, value_type
from .expressions import Emitter

STACK_LIMIT = 16 << 10  # bytes of a constant-size allocation that go on the stack


def measure(s: n.Node) -> dict[int, int]:
    """Lanes -> bytes of the widest element computed in so many lanes, below `s` but not in loops inside it; indices of dense accesses are not computed."""
    widest: dict[int, int] = {}
    stack: list[n.Node] = [s]
    seen: set[n.Node] = set()
    while stack:
        one = stack.pop()
        if one in seen or isinstance(one, n.For):
            continue
        seen.add(one)
        if isinstance(one, n.Expr) and one.type.is_vector() and not one.type.is_bool():
            lanes = one.type.lanes()
            widest[lanes] = max(widest.get(lanes, 1), value_bits(one.type) // 8)
        if isinstance(one, (n.Load, n.Store)) and memory.line_of(one.index, 0, 1) is not None and b.is_true(one.predicate):
            stack.extend(c for c in one.children() if c is not one.index and c is not one.predicate)
        else:
            stack.extend(one.children())
    return widest


class StatementEmitter:
    """Writes the statements of one C function through an Emitter."""

    def __init__(self, em: Emitter) -> None:
        self.em = em

    def stmt(self, s: n.Stmt) -> None:
        """Any statement."""
        handler = _HANDLERS.get(type(s))
        if handler is None:
            raise InternalError(f"code generation has no form for the statement {type(s).__name__}")
        handler(self, s)

    def block(self, s: n.Block) -> None:
        for one in s.stmts:
            self.stmt(one)

    def let(self, s: n.LetStmt) -> None:
        """Lets stay in the enclosing C block: names are bound once."""
        while isinstance(s, n.LetStmt):
            self.em.bind(s.name, s.value)
            s = s.body  # type: ignore[assignment]
        self.stmt(s)

    def check(self, s: n.Assert) -> None:
        em = self.em
        condition = em.scalar(s.condition)
        em.open(f"if (__builtin_expect(!({condition}), 0)) {{")
        em.line(f"return {em.scalar(s.message)};")
        em.close()

    def produce(self, s: n.Produce) -> None:
        self.em.line(f"/* produce {_comment(s.name)} */")
        self.stmt(s.body)

    def loop(self, s: n.For) -> None:
        em = self.em
        if s.kind is n.ForType.Parallel:
            self.parallel(s)
            return
        if s.kind is not n.ForType.Serial:
            raise InternalError(f"loop {s.name} is still {s.kind.value}")
        low, extent = em.scalar(s.min), em.scalar(s.extent)
        end = em.temp("int32_t", f"{low} + {extent}") if low != "0" else extent
        name = em.names[s.name] = em.unit.fresh(c_identifier(s.name))
        outer, em.element_bytes = em.element_bytes, measure(s.body)
        em.forget_loads()
        em.open(f"for (int32_t {name} = {low}; {name} < {end}; ++{name}) {{ /* {_comment(s.name)} */")
        self.stmt(s.body)
        em.close()
        em.forget_loads()
        em.element_bytes = outer

    def store(self, s: n.Store) -> None:
        memory.store(self.em, s)
        self.em.forget_loads()

    def allocate(self, s: n.Allocate) -> None:
        em = self.em
        t = s.type
        name = em.unit.fresh(c_identifier(s.name))
        ctype = memory_type(t)
        size = b.i32(1)
        for e in s.extents:
            size = b.mul(size, e)
        count = b.as_int(size)
        em.open("{")
        on_stack = s.memory in (n.MemoryType.Stack, n.MemoryType.Register) or (s.memory is n.MemoryType.Auto and (count or 0) * t.bytes() <= STACK_LIMIT)
        if count is not None and on_stack:
            em.line(f"{ctype} {name}[{max(count + s.padding, 1)}] __attribute__((aligned(64))); /* {_comment(s.name)} */")
        else:
            em.helper("hl_scratch")
            product = " * ".join(["(size_t)1", *(f"(size_t)({em.scalar(e)})" for e in s.extents)])
            amount = f"({product} + {s.padding}) * sizeof({ctype})"
            held = em.unit.fresh(name + "_memory")
            wanted = "1" if b.is_true(s.condition) else em.scalar(s.condition)
            text = f"halide_malloc({em.context}, {amount})" if wanted == "1" else f"{wanted} ? halide_malloc({em.context}, {amount}) : HL_NULL"
            em.line(f"HL_SCRATCH void *{held} = {text}; /* {_comment(s.name)} */")
            em.line(f"if ({held} == HL_NULL{'' if wanted == '1' else f' && {wanted}'}) return halide_error_out_of_memory({em.context});")
            em.line(f"{ctype} *__restrict const {name} = ({ctype} *){held};")
        outer_name, outer_type = em.names.get(s.name), em.pointers.get(s.name)
        em.names[s.name], em.pointers[s.name] = name, t
        self.stmt(s.body)
        em.close()
        em.names.pop(s.name)
        em.pointers.pop(s.name)
        if outer_name is not None:
            em.names[s.name], em.pointers[s.name] = outer_name, outer_type

    def condition(self, s: n.IfThenElse) -> None:
        em = self.em
        em.open(f"if ({em.scalar(s.condition)}) {{")
        self.stmt(s.then_case)
        em.close("}" if s.else_case is None else "} else {")
        if s.else_case is not None:
            em.indent += 1
            em.scopes.append({})
            em.loaded.append({})
            self.stmt(s.else_case)
            em.close()
        em.forget_loads()

    def evaluate(self, s: n.Evaluate) -> None:
        if b.as_const(s.value) is None:
            em = self.em
            for start, count in ([(0, 1)] if s.value.type.is_scalar() else list(em.slices(s.value.type.lanes()))):
                text = em.emit(s.value, start, count)
                if "(" in text:
                    em.line(f"(void)({text});")
            em.forget_loads()

    # -- parallel loops

    def parallel(self, s: n.For) -> None:
        """The body in a function of its own; what it uses of the surroundings goes through a struct."""
        em = self.em
        captured = self._captured(s)
        task = em.unit.fresh(c_identifier(f"task_{s.name}"))
        struct = f"struct {task}_closure"
        inner = Emitter(em.machine, em.unit)
        inner.context = "uc"
        inner.element_bytes = measure(s.body)
        fields, values = [], []
        for key, t, is_pointer in captured:
            name = em.unit.fresh(c_identifier(key))
            fields.append(f"    {'void *' if is_pointer else value_type(t) + ' '}{name};")
            values.append(f"(void *)({em.names.get(key, key)})" if is_pointer else em.scalar(n.Variable(t, key)))
            inner.names[key] = f"c->{name}"
        inner.names[s.name] = em.unit.fresh(c_identifier(s.name))
        for key, _, is_pointer in captured:
            if not is_pointer:
                continue
            t = em.pointers.get(key)
            local = em.unit.fresh(c_identifier(key))
            ctype = memory_type(t) if t is not None else "void"
            inner.line(f"{ctype} *const {local} = ({ctype} *){inner.names[key]};")
            inner.names[key] = local
            inner.pointers[key] = t
        for key, t, is_pointer in captured:
            if not is_pointer:
                local = em.unit.fresh(c_identifier(key))
                inner.line(f"{value_type(t)}{'' if t.is_handle() else ' '}const {local} = {inner.names[key]};")
                inner.names[key] = local
        body = StatementEmitter(inner)
        body.stmt(s.body)
        head = [f"{struct} {{", *(fields or ["    char unused;"]), "};",
                f"static int {task}(void *uc, int {inner.names[s.name]}, uint8_t *closure) {{ /* parallel {_comment(s.name)} */",
                f"    const {struct} *const c = (const {struct} *)closure;", "    (void)uc; (void)c;"]
        em.unit.functions.append("\n".join([*head, *inner.lines, "    return 0;", "}"]))
        low, extent = em.scalar(s.min), em.scalar(s.extent)
        em.open("{")
        closure = em.unit.fresh("closure")
        em.line(f"{struct} {closure} = {{{', '.join(values) or '0'}}};")
        result = em.unit.fresh("result")
        em.line(f"const int {result} = halide_do_par_for({em.context}, {task}, {low}, {extent}, (uint8_t *)&{closure});")
        em.line(f"if ({result}) return {result};")
        em.close()
        em.forget_loads()

    def _captured(self, s: n.For) -> list[tuple[str, Type, bool]]:
        """(name, type, is a pointer to elements) of what the body uses and does not define."""
        out: dict[str, tuple[str, Type, bool]] = {}
        for name, v in free_variables(s.body).items():
            if name != s.name:
                out[name] = name, v.type, False
        inside = {a.name for a in nodes_of(s.body, n.Allocate)} | {x.name for x in nodes_of(s.body, n.LetStmt)}
        for access in nodes_of(s.body, (n.Load, n.Store)):
            if access.name not in inside:
                out[access.name] = access.name, b.string("").type, True
        for name in list(out):
            if name in self.em.pieces:
                raise InternalError(f"a vector, {name}, crosses into a parallel loop")
        return list(out.values())


def _comment(name: str) -> str:
    return name.replace("*/", "* /")


_HANDLERS: dict[type[n.Stmt], Callable[[StatementEmitter, Any], None]] = {
    n.Block: StatementEmitter.block, n.LetStmt: StatementEmitter.let, n.Assert: StatementEmitter.check, n.Produce: StatementEmitter.produce,
    n.For: StatementEmitter.loop, n.Store: StatementEmitter.store, n.Allocate: StatementEmitter.allocate, n.IfThenElse: StatementEmitter.condition,
    n.Evaluate: StatementEmitter.evaluate,
}
