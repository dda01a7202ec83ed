"""Memoization: a memoized Func's production is skipped where the runtime's cache holds its result.

IR before: `realize g { produce g { .. } .. }`. After: `produce g { let g.found = memo_fetch(first, last element of g, key...); if
(!g.found) { ..; memo_keep(the same) } }`. The key is a digest of all definitions that g needs, the regions its stages compute, and the
parameters and shape fields that the definitions use; `memoize_tag` gives other keys for the expression it holds. Data of a Buffer counts by
a digest of its elements, taken at each call of the pipeline. C functions count by name and source: whoever memoizes what they compute has
said that it follows from their arguments. Limits: data of ImageParams has no key of its own, so it needs a tag.
Behaviour: Halide's Memoization.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction
from ..ir.parameter import Parameter
from ..ir.printer import to_text
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import BOOL, INT32, Int
from .apply_splits import var
from .buffers import buffer_handle
from .environment import Environment, definition_roots
from .schedule_functions import Nests, head_productions

INT64 = Int(64)


@dataclass
class MemoKey:
    """What the results of a memoized Func depend on besides the region."""

    identity: tuple[int, int]
    values: list[n.Expr] = field(default_factory=list)
    buffers: dict[str, Parameter] = field(default_factory=dict)
    eviction: n.Expr | None = None


def memo_keys(env: Environment, outputs: set[str]) -> dict[str, MemoKey]:
    """The keys of all memoized Funcs of `env`, whose definitions must still have their tags. Raises CompileError where there can be
    none."""
    return {f.name: _key(f, env) for f in env.values() if f.schedule.memoized and _may_be_memoized(f, outputs)}


def _may_be_memoized(f: Function, outputs: set[str]) -> bool:
    s = f.schedule
    problem = ""
    if f.name in outputs:
        problem = "it is an output of the pipeline; memoize a Func that it calls"
    elif s.compute_level.is_inline():
        problem = "it is computed inline; add compute_root() or compute_at()"
    elif not (s.store_level.is_inline() or s.store_level.same(s.compute_level)):
        problem = "its storage is not where it is computed; drop store_at() or store_root()"
    if problem:
        raise CompileError(f"Func {f.name} cannot be memoized: {problem} ({f.site('memoize')})")
    return True


def _needed(f: Function, env: Mapping[str, Function]) -> list[Function]:
    """`f` and all it calls, but for what tags stand for."""
    found, work = {f.name: f}, [f]
    while work:
        for c in _untagged([e for d in work.pop().stages() for e in definition_roots(d)]):
            if isinstance(c, n.Call) and c.call_type is n.CallType.Halide and c.name not in found:
                found[c.name] = env[c.name]
                work.append(env[c.name])
    return list(found.values())


def _key(f: Function, env: Mapping[str, Function]) -> MemoKey:
    funcs = _needed(f, env)
    text = blake2b(digest_size=16)
    leaves: dict[n.Expr, None] = {}
    for g in funcs:
        for d in g.stages():
            text.update(to_text(n.Provide(g.name, d.values, d.args, d.predicate)).encode())
            text.update("".join(f"{to_text(v.min)}:{to_text(v.extent)};" for v in (d.rdom.variables if d.rdom else ())).encode())
            leaves.update(dict.fromkeys(_leaves(definition_roots(d))))
            for row in {c.func: None for c in nodes_of(definition_roots(d), n.Call) if isinstance(c.func, ExternFunction)}:
                text.update(repr((row.c_name, row.source, row.library, row.objects, row.address)).encode())
    text.update(
        repr(
            [(s.var, to_text(s.alignment) if s.alignment else "", to_text(s.bound) if s.bound else "") for s in f.schedule.storage_dims]
        ).encode()
    )
    digest = text.digest()
    key = MemoKey(
        (int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(digest[8:], "little", signed=True)),
        eviction=f.schedule.eviction_key,
    )
    for e in leaves:
        if isinstance(e, n.Call) and e.call_type is n.CallType.Image:
            assert e.param is not None
            if not e.param.constant:
                raise CompileError(f"Func {f.name} cannot be memoized: it depends on the data of {e.param.name}, which may change from "
                                   f"call to call. Say what stands for the data with memoize_tag(): memoize_tag({e.param.name}[...], "
                                   f"version), where version is a Param ({f.site('memoize')})")
            key.buffers[e.param.name] = e.param
        else:
            key.values.append(_word(f, e))
    return key


def _untagged(roots: Iterable[n.Expr]) -> Iterable[n.Node]:
    """All nodes of expressions, tags among them, but nothing inside of tags."""
    stack, seen = list[n.Node](roots), set[n.Node]()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        yield e
        if not (isinstance(e, n.Call) and e.name == "memoize_tag"):
            stack.extend(e.children())


def _leaves(roots: Iterable[n.Expr]) -> Iterable[n.Expr]:
    """The parameters and image accesses that expressions depend on, and the keys of tags: of one that has none, what it holds."""
    for e in _untagged(roots):
        if isinstance(e, n.Call) and e.name == "memoize_tag":
            yield from e.args[1:] or e.args
        elif isinstance(e, n.Variable) and e.param is not None or isinstance(e, n.Call) and e.call_type is n.CallType.Image:
            yield e


def _word(f: Function, e: n.Expr) -> n.Expr:
    """A value of a key as 64 bits."""
    for v in nodes_of(e, (n.Variable, n.Call)):
        free = isinstance(v, n.Variable) and v.param is None
        if free or isinstance(v, n.Call) and v.call_type in (n.CallType.Halide, n.CallType.Image):
            raise CompileError(f"Func {f.name} cannot be memoized: the key {to_text(e)} depends on {v.name}; keys may use parameters and "
                               f"constants only ({f.site('memoize')})")
    t = e.type
    if t.is_handle() or t.is_vector():
        raise CompileError(f"Func {f.name} cannot be memoized: it depends on {to_text(e)} of type {t}; put memoize_tag() with a scalar "
                           f"around its use ({f.site('memoize')})")
    return b.cast(INT64, n.Reinterpret(Int(t.bits()), e) if t.is_float() else e)


def inject_memoization(stmt: n.Stmt, env: Environment, keys: Mapping[str, MemoKey], nests: Nests) -> n.Stmt:
    """`stmt` with lookups of all memoized Funcs."""
    if not keys:
        return stmt
    digests: dict[str, n.Expr] = {}
    vectorized = 0

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        nonlocal vectorized
        vectorized += op.kind is n.ForType.Vectorized
        body = rec(op.body)
        vectorized -= op.kind is n.ForType.Vectorized
        return op if body is op.body else n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    def realize(r: n.Realize, rec: Rec) -> n.Stmt:
        body, f = rec(r.body), env[r.name]
        if r.name in keys:
            for problem, there in (("it is computed in a vectorized loop", vectorized), ("it shares loops with others by compute_with()",
                                                                                         head_productions(body) != [f.name])):
                if there:
                    raise CompileError(f"Func {f.name} cannot be memoized: {problem} ({f.site('memoize')})")
            body = _with_lookup(f, r, body, _words(f, r, keys[r.name], nests, digests))
        return n.Realize(r.name, r.types, r.memory, r.mins, r.extents, r.condition, body)

    out = rewrite(stmt, {n.Realize: realize, n.For: loop})
    return b.let_stmts([(f"{name}.digest", value) for name, value in digests.items()], out)


def _words(f: Function, r: n.Realize, key: MemoKey, nests: Nests, digests: dict[str, n.Expr]) -> list[n.Expr]:
    """The whole key of one realization."""
    words: list[n.Expr] = [b.const(INT64, part) for part in key.identity]
    region = [var(f"{nest.prefix}{v}.{end}") for nest in nests.of(f) for v in f.args if v in nest.base_variables for end in ("min", "max")]
    words += [b.cast(INT64, e) for e in (*region, *r.mins, *r.extents)] + key.values
    for name, param in key.buffers.items():
        digests[name] = n.Call(INT64, "_halide_buffer_digest", (buffer_handle(name, param),), n.CallType.Extern)
        words.append(n.Variable(INT64, f"{name}.digest"))
    return words


def _with_lookup(f: Function, r: n.Realize, body: n.Stmt, key: list[n.Expr]) -> n.Stmt:
    """`produce f { .. } rest` with the production only where something is not found."""
    assert isinstance(body, n.Block) and isinstance(body.stmts[0], n.Produce), "storage and computation of a memoized Func are at one place"
    ends = (r.mins, tuple(b.sub(b.add(low, extent), b.i32(1)) for low, extent in zip(r.mins, r.extents)))
    eviction = f.schedule.eviction_key
    evicted = (b.i32(eviction is not None), b.cast(INT64, eviction) if eviction is not None else b.const(INT64, 0))
    production: n.Stmt = body.stmts[0].body
    found, keep = [], []
    for i, t in enumerate(f.types):
        first, last = (n.Call(t, f.name, at, n.CallType.Halide, f, i) for at in ends)
        words = (*key, b.const(INT64, i))
        name = f"{f.name}.found.{i}"
        found.append((name, n.Call(BOOL, "memo_fetch", (first, last, *words), n.CallType.Intrinsic)))
        keep.append(n.Evaluate(n.Call(INT32, "memo_keep", (first, last, *evicted, *words), n.CallType.Intrinsic)))
    missing = n.Not(_all([n.Variable(BOOL, name) for name, _ in found]))
    lookup = b.let_stmts(found, n.IfThenElse(missing, b.block([production, *keep])))
    return b.block([n.Produce(f.name, lookup), *body.stmts[1:]])


def _all(conditions: list[n.Expr]) -> n.Expr:
    out = conditions[0]
    for c in conditions[1:]:
        out = n.And(out, c)
    return out
