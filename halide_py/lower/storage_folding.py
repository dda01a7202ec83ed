"""Storage folding: keep only the part of a Func's storage that a sliding window still needs, as a circular buffer.

IR before: `Realize g` over all rows, produced inside a serial loop `for y` that needs rows y - 1 .. y + 1. After: the extent of that
dimension is the smallest power of two that holds the window, and its coordinates are taken modulo it.

A dimension folds along a loop when both ends of what one iteration touches move forward with the loop, and the window between them
has a constant bound. Loops are tried from the outside in, past those of which each iteration produces all it reads. `fold_storage` gives
the factor (and allows a window that moves backward); an assertion checks it where the window is not known to fit.
Where the uses are in both cases of a condition (specializations of the consumer), each case has its own loop; the factor holds both.
Limits: one dimension a loop; not along vectorized dimensions. Source: Ragan-Kelley et al., PLDI 2013, section 4.3; behaviour of
Halide's src/StorageFolding.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import boxes_provided, boxes_required, boxes_touched
from ..ir.build import is_likely
from ..ir.function import Function, StorageDim
from ..ir.simplify import constant_bound, prove, simplify
from ..ir.traverse import Rec, mentions, nodes_of, rewrite, substitute
from .async_producers import produces, window
from .bounds_inference import FuncValues
from .buffers import error
from .environment import Environment
from .extern_stages import passed_to_extern
from .guards import held_back
from .movement import monotonic
from .pointwise import pointwise_dims


@dataclass(frozen=True)
class _Fold:
    """Dimension `d` modulo `factor`. `loops` names the loop, one for each case of a condition, with the check that guards its body where
    the factor is not known to suffice. There is room for `ahead` iterations."""

    loops: Mapping[str, n.Stmt]
    d: int
    factor: n.Expr
    ahead: int = 1


def _uses(s: n.Stmt, name: str) -> list[n.Stmt]:
    return [one for one in (s.stmts if isinstance(s, n.Block) else (s,)) if mentions(one, name)]


def _loops(s: n.Stmt, name: str, values: FuncValues) -> Iterator[n.For | n.IfThenElse]:
    """The serial loops that hold all uses of Func `name` and may be folded along, outermost first; last a condition whose two cases have
    loops of their own."""
    while True:
        using = _uses(s, name)
        if len(using) != 1:
            return
        s = using[0]
        if isinstance(s, n.IfThenElse):
            if mentions(s.condition, name):
                return
            if s.else_case is not None:
                yield s
                return
            s = s.then_case
        elif isinstance(s, (n.LetStmt, n.Realize)):
            if isinstance(s, n.LetStmt) and mentions(s.value, name):
                return
            s = s.body
        elif isinstance(s, (n.Produce, n.HoistedStorage)):
            s = s.body
        elif isinstance(s, n.For):
            if s.kind is not n.ForType.Serial or not produces(s.body, name):
                return
            yield s
            if b.as_int(s.extent) != 1 and not _starts_afresh(s, name, values):
                return
            s = s.body
        else:
            return


def _starts_afresh(loop: n.For, name: str, values: FuncValues) -> bool:
    """Whether an iteration of a loop produces everything it reads of the Func, so that nothing is carried over from the one before: also in
    the steady state of a window that slides along this loop, where only what is new is produced."""
    body = _in_steady_state(loop)
    read, written = boxes_required(body, {}, values, {name}).get(name), boxes_provided(body, {}, values, {name}).get(name)
    if read is None or written is None:
        return read is None
    if not _is_certain(body, name):
        return False
    for r, w in zip(read.intervals, written.intervals):
        if r.min is None or r.max is None or w.min is None or w.max is None or not prove(n.And(n.LE(w.min, r.min), n.LE(r.max, w.max))):
            return False
    return True


def _is_certain(s: n.Stmt, name: str) -> bool:
    """Whether the pure definition of Func `name`, which `s` computes, is computed at all. Its loops may have no iteration if they move
    what is written (then the box of that is empty, too), but not where that is one place: `for (y, 0, rows) f(x, 0) = ..` with 0 or 1
    rows."""
    if isinstance(s, n.Provide):
        return True
    if isinstance(s, n.Block):  # the pure definition comes first
        return _is_certain(next(one for one in s.stmts if _writes(one, name)), name)
    if isinstance(s, n.IfThenElse):
        return all(_is_certain(case, name) for case in (s.then_case, s.else_case) if case is not None and _writes(case, name))
    if isinstance(s, n.For) and not _moves(s, name) and not prove(n.LE(b.i32(1), s.extent)):
        return False
    return _is_certain(s.body, name)  # type: ignore[attr-defined]


def _writes(s: n.Stmt, name: str) -> bool:
    return any(p.name == name for p in nodes_of(s, n.Provide, n.symbol_bit(name)))


def _moves(loop: n.For, name: str) -> bool:
    """Whether where Func `name` is written depends on the variable of a loop."""
    moving = {loop.name}
    for inner in nodes_of(loop.body, (n.LetStmt, n.For)):  # outer ones first
        if any(mentions(inner.value if isinstance(inner, n.LetStmt) else inner.min, v) for v in moving):
            moving.add(inner.name)
    places = [a for p in nodes_of(loop.body, n.Provide, n.symbol_bit(name)) if p.name == name for a in p.args]
    return any(mentions(a, v) for a in places for v in moving)


def _in_steady_state(loop: n.For) -> n.Stmt:
    """The body of a loop as it runs once windows slide along it: the box of a Select is the union of both sides, which no single iteration
    writes."""

    def select(e: n.Select, rec: Rec) -> n.Expr:
        slides = is_likely(e.condition) and mentions(e.condition, loop.name)
        return rec(e.true_value) if slides else e.map_children(rec)  # type: ignore[no-any-return]

    steady = rewrite(loop.body, {n.Select: select})
    return steady if steady is loop.body else simplify(steady)  # loops that have no iteration then are gone


def _vector_dims(s: n.Stmt, f: Function) -> set[int]:
    """The dimensions of `f` in which some access varies along a vectorized loop."""
    bit = n.symbol_bit(f.name)
    vectorized = {loop.name for loop in nodes_of(s, n.For, bit) if loop.kind is n.ForType.Vectorized}
    found: set[int] = set()
    for access in nodes_of(s, (n.Provide, n.Call), bit) if vectorized else ():
        if access.name == f.name and not (isinstance(access, n.Call) and access.call_type is not n.CallType.Halide):
            found |= {d for d, a in enumerate(access.args) if any(mentions(a, v) for v in vectorized)}
    return found


def _asked(f: Function, v: str) -> StorageDim | None:
    return next((s for s in f.schedule.storage_dims if s.var == v and s.fold_factor is not None), None)


def _fold_along(loop: n.For, f: Function, d: int, asked: StorageDim | None, extent: n.Expr, values: FuncValues) -> _Fold | None:
    """How dimension `d` folds along one loop, None if it does not."""
    box = boxes_touched(held_back(loop.body, loop.name), {}, values, {f.name}).get(f.name)
    low, high = (box.intervals[d].min, box.intervals[d].max) if box is not None else (None, None)
    if low is None or high is None:
        return None
    low, high = simplify(low), simplify(high)
    way = monotonic(low, loop.name)
    if not way or way != monotonic(high, loop.name) or asked is not None and asked.fold_forward != (way > 0):
        return None
    window = _window(low, high, loop, way, 1)
    sizes = {k: _at_most(_window(low, high, loop, way, k), loop) for k in (range(_FURTHEST, 0, -1) if f.schedule.is_async else (1,))}
    size = sizes[1]
    if asked is not None and asked.fold_factor is not None:
        factor = asked.fold_factor
        for ahead, needed in sizes.items():
            if needed is not None and prove(n.LE(b.i32(needed), factor)):
                return _Fold({loop.name: b.NOTHING}, d, factor, ahead)
        message = error("fold_factor_too_small", b.string(f.name), b.string(f.args[d]), factor, b.string(loop.name), window)
        return _Fold({loop.name: n.Assert(n.LE(window, factor), message)}, d, factor)
    ahead = next((k for k in (2, 1) if sizes.get(k) is not None), 1)  # a producer on its own may be an iteration ahead
    size = sizes.get(ahead)
    if size is None:
        return None
    factor_size = 1 << (max(size, 1) - 1).bit_length()
    whole = constant_bound(extent, True)
    return None if whole is not None and whole <= factor_size else _Fold({loop.name: b.NOTHING}, d, b.i32(factor_size), ahead)


_FURTHEST = 8  # iterations that an async producer is given room for at most, where fold_storage() leaves more


def _window(low: n.Expr, high: n.Expr, loop: n.For, way: int, iterations: int) -> n.Expr:
    """The extent of what so many consecutive iterations touch, which move up (`way` 1) or down (-1)."""
    last = {loop.name: b.add(n.Variable(loop.min.type, loop.name), b.i32(iterations - 1))}
    return simplify(b.add(b.sub(substitute(last, high), low) if way > 0 else b.sub(high, substitute(last, low)), b.i32(1)))


def _at_most(size: n.Expr, loop: n.For) -> int | None:
    """A constant that `size` does not exceed in any iteration: from itself alone, or with where the loop begins, which limits windows that
    fill."""
    running = b.max_(n.Variable(loop.min.type, loop.name), loop.min)
    known = [constant_bound(e, True) for e in (size, substitute({loop.name: running}, size))]
    return min((k for k in known if k is not None), default=None)


def _find(r: n.Realize, f: Function, values: FuncValues, passed: bool) -> list[_Fold]:
    """The folds of one realization; `passed`: to an extern stage. Raises CompileError when one was asked for that cannot be shown to be
    right."""
    asked = {d: _asked(f, v) for d, v in enumerate(f.args)}
    if passed:
        if any(a is not None for a in asked.values()):
            raise CompileError(f"Func {f.name} is scheduled fold_storage(), but an extern stage reads or writes it, which needs its "
                               f"storage in one piece; drop the directive ({f.site('fold_storage')})")
        return []
    dims = pointwise_dims(f)
    vectors = _vector_dims(r.body, f)
    candidates = [d for d, v in enumerate(f.args) if asked[d] is not None or (v in dims and d not in vectors)]
    found = _folds(r.body, f, {d: asked[d] for d in candidates}, r.extents, values)
    for d in candidates:
        if asked[d] is not None and d not in found:
            v = f.args[d]
            raise CompileError(f"Func {f.name} is scheduled fold_storage({v}, ...), but its storage is not accessed in order along {v} by "
                               "one serial loop that it is stored outside of and computed inside of; fold_storage needs store_at() or "
                               f"store_root() with compute_at() inside a serial loop over {v} ({f.site('fold_storage')})")
    return list(found.values())


def _folds(
    s: n.Stmt, f: Function, asked: Mapping[int, StorageDim | None], extents: tuple[n.Expr, ...], values: FuncValues
) -> dict[int, _Fold]:
    """The folds of the dimensions in `asked`, in the order of their loops."""
    found: dict[int, _Fold] = {}
    candidates = list(asked)
    for loop in _loops(s, f.name, values) if candidates else ():
        if isinstance(loop, n.IfThenElse):
            left = {d: asked[d] for d in candidates}
            first, second = (_folds(case, f, left, extents, values) for case in (loop.then_case, loop.else_case) if case is not None)
            found.update({d: _of_both(fold, second[d]) for d, fold in first.items() if d in second})
            break
        for d in reversed(candidates):
            fold = _fold_along(loop, f, d, asked[d], extents[d], values)
            if fold is not None:
                found[d] = fold
                candidates.remove(d)
                break
        if not candidates:
            break
    return found


def _of_both(x: _Fold, y: _Fold) -> _Fold:
    """The fold of the same dimension in both cases of a condition."""
    return _Fold({**x.loops, **y.loops}, x.d, simplify(b.max_(x.factor, y.factor)), min(x.ahead, y.ahead))


def _is_fresh(loop: n.For, name: str, values: FuncValues) -> bool:
    """Whether an iteration, once the loop is under way, writes no element of the Func that an earlier one has touched."""
    touched = boxes_touched(loop.body, {}, values).get(name)
    written = boxes_provided(_in_steady_state(loop), {}, values).get(name)
    if touched is None or written is None:
        return written is None
    following = {loop.name: b.add(n.Variable(loop.min.type, loop.name), b.i32(1))}
    for t, w in zip(touched.intervals, written.intervals):
        if (
            t.max is not None
            and w.min is not None
            and monotonic(t.max, loop.name) in (0, 1)
            and prove(n.LT(t.max, substitute(following, w.min)))
        ):
            return True
        if (
            t.min is not None
            and w.max is not None
            and monotonic(t.min, loop.name) in (0, -1)
            and prove(n.LT(substitute(following, w.max), t.min))
        ):
            return True
    return False


def _with_windows(s: n.Stmt, f: Function, folds: list[_Fold], values: FuncValues) -> n.Stmt:
    """The body of an async Func's realization with a mark where its producer must not run ahead of its consumers without limit: in loops
    whose storage is folded, or which write again what an earlier iteration may still be read of, and in each of several statements that
    produce it one after the other, as those of several stages of the consumer do."""
    index = 0

    def sites(k: n.Block, rec: Rec) -> n.Stmt:
        nonlocal index
        if sum(produces(s, f.name) for s in k.stmts) < 2:
            return k.map_children(rec)  # type: ignore[no-any-return]
        mark = window(f.name, index, b.i32(1))
        index += 1

        def turn(s: n.Stmt) -> n.Stmt:  # in a loop of its own, at the end of whose body the consumer is done with it
            return n.For(f"{f.name}.turn", b.i32(0), b.i32(1), n.ForType.Serial, n.Partition.Never, b.block([mark, rec(s)]))

        return b.block([turn(s) if produces(s, f.name) else rec(s) for s in k.stmts])

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        nonlocal index
        if not produces(op.body, f.name):
            return op
        fresh = _is_fresh(op, f.name, values)
        ahead = min((fold.ahead for fold in folds if op.name in fold.loops), default=None)
        body = rec(op.body)
        if ahead is not None or not fresh:
            body = b.block([window(f.name, index, b.i32(ahead if ahead is not None and fresh else 1)), body])
            index += 1
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    return rewrite(s, {n.For: loop, n.Block: sites})


def _folded(s: n.Stmt, name: str, fold: _Fold) -> n.Stmt:
    """Coordinates of the folded dimension of Func `name` modulo the factor, the check in the loop."""

    def args_of(args: tuple[n.Expr, ...]) -> tuple[n.Expr, ...]:
        return tuple(b.mod(a, b.cast(a.type, fold.factor)) if i == fold.d else a for i, a in enumerate(args))

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if new.name != name or new.call_type is not n.CallType.Halide:
            return new
        return n.Call(new.type, new.name, args_of(new.args), new.call_type, new.func, new.value_index, new.param)

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        new: n.Provide = p.map_children(rec)
        return new if new.name != name else n.Provide(new.name, new.values, args_of(new.args), new.predicate)

    def loop(op: n.For, rec: Rec) -> n.Stmt:
        body = rec(op.body)
        if op.name in fold.loops:
            body = b.block([fold.loops[op.name], body])
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    return rewrite(s, {n.Call: call, n.Provide: provide, n.For: loop}, n.symbol_bit(name))


def storage_folding(stmt: n.Stmt, env: Environment, values: FuncValues) -> n.Stmt:
    """`stmt` with the storage of sliding Funcs folded: where that is certain to be right, and where the user asks for it."""
    passed = passed_to_extern(stmt)

    def realized(r: n.Realize, rec: Rec) -> n.Stmt:
        new: n.Realize = r.map_children(rec)
        mins, extents, body = list(new.mins), list(new.extents), new.body
        folds = _find(new, env[new.name], values, new.name in passed)
        if env[new.name].schedule.is_async:
            body = _with_windows(body, env[new.name], folds, values)
        for fold in reversed(folds):
            mins[fold.d], extents[fold.d] = b.i32(0), fold.factor
            body = _folded(body, new.name, fold)
        return new if body is new.body else n.Realize(new.name, new.types, new.memory, tuple(mins), tuple(extents), new.condition, body)

    return rewrite(stmt, {n.Realize: realized})
