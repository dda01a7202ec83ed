"""Accesses: which elements a definition reads as it is computed point by point, and what of it stays when Funcs are inlined.

An index is affine: factors of loops and an offset, so that reads of Funcs that are inlined follow by arithmetic, and equal ones are
found to be equal, as the compiler finds them. `x / 2` has the factor one half; what depends on data has no factor. Other operations are
counted by the bytes of their types.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir import nodes as n
from ..ir.build import as_int, i32
from ..ir.function import Definition, Function
from ..ir.interning import symbol_bits
from ..ir.simplify import linear, simplify
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite, substitute

_FREE = (n.IntImm, n.UIntImm, n.FloatImm, n.StringImm, n.Variable, n.Reinterpret, n.Let)
_FREE_CALLS = frozenset({"likely", "likely_if_innermost", "unsafe_promise_clamped", "undef", "stop_gradient", "strict_float"})
_CALLS = {"sqrt": 5.0, "pow": 45.0, "exp": 14.0, "log": 16.0, "floor": 1.0, "ceil": 1.0, "round": 1.0, "trunc": 1.0}  # vector instructions
_OPERATIONS = {"lerp": 4.0, "random": 12.0, "if_then_else": 1.5}
_CALL, _FLOAT_DIVISION, _DIVISION, _DIVISION_BY_CONSTANT = 20.0, 5.0, 24.0, 4.0

DATA = ""  # stands for a loop in an index that depends on data


@dataclass(frozen=True)
class Index:
    """factor * loop + ... + offset. A factor is None where it is not known; `tag` tells such indices apart."""

    factors: tuple[tuple[str, float | None], ...]
    offset: float
    tag: Hashable = None

    def factor(self, loop: str) -> float | None:
        """How far it moves from one iteration of a loop to the next."""
        return next((k for v, k in self.factors if v == loop), 0)

    def is_affine(self) -> bool:
        """Whether all factors are known."""
        return all(k is not None for _, k in self.factors)

    def within(self, outer: Access, args: Sequence[str]) -> Index:
        """This index of a definition of the Func that `outer` reads, as that reader sees it."""
        factors: dict[str, float | None] = {}
        offset, tags = self.offset, [self.tag]
        for v, k in self.factors:
            if v == DATA:
                factors[v] = None
                tags.append(outer)
                continue
            at = outer.dims[args.index(v)]
            for w, g in at.factors:
                old = factors.get(w, 0)
                factors[w] = None if k is None or g is None or old is None else old + k * g
            if k is None or at.tag is not None or self.tag is not None:
                tags.append((v, at))
            if k is not None:
                offset += k * at.offset
        known = {w: k for w, k in factors.items() if k != 0}
        return Index(tuple(known.items()), offset, tuple(tags) if len(tags) > 1 or self.tag is not None else None)


@dataclass(frozen=True)
class Access:
    """One load or store: of what, and bytes of an element."""

    name: str
    bytes: int
    dims: tuple[Index, ...]

    def step(self, loop: str, strides: Sequence[int]) -> float | None:
        """Bytes between what neighbouring iterations of a loop touch; None for any."""
        total = 0.0
        for index, stride in zip(self.dims, strides):
            factor = index.factor(loop)
            if factor is None:
                return None
            total += factor * stride
        return total

    def is_affine(self) -> bool:
        """Whether it is known before the pipeline runs where it goes."""
        return all(index.is_affine() for index in self.dims)


def _is_marked(e: n.Expr) -> bool:
    if isinstance(e, n.Call):
        return e.name in ("likely", "likely_if_innermost")
    return isinstance(e, (n.Min, n.Max)) and (_is_marked(e.a) or _is_marked(e.b))


def unmarked(e: n.Expr) -> n.Expr:
    """`e` as it is in the steady state, without the clamps of marked boundary conditions."""

    def clamp(m: n.Min | n.Max, rec: Rec) -> n.Expr:
        if _is_marked(m.a) != _is_marked(m.b):
            return rec(m.a if _is_marked(m.a) else m.b)  # type: ignore[no-any-return]
        return type(m)(rec(m.a), rec(m.b))

    def call(c: n.Call, rec: Rec) -> n.Expr:
        return rec(c.args[0]) if c.name in _FREE_CALLS and len(c.args) == 1 else c.map_children(rec)  # type: ignore[no-any-return]

    return rewrite(e, {n.Min: clamp, n.Max: clamp, n.Call: call})


def index_of(e: n.Expr, loops: Collection[str]) -> Index:
    """An index as the sum that it is; variables other than the loops are constants nobody knows."""
    terms, offset = linear.gather(e)
    factors: dict[str, float | None] = {}
    tag: Hashable = None
    for term, k in terms.items():
        if isinstance(term, n.Variable) and term.name in loops:
            factors[term.name] = k
            continue
        tag = e
        by = as_int(term.b) if isinstance(term, n.Div) else None
        inside = linear.gather(term.a)[0] if isinstance(term, n.Div) and by else {}
        if by and all(isinstance(v, n.Variable) and v.name in loops for v in inside):
            factors |= {v.name: g * k / by for v, g in inside.items()}  # type: ignore[attr-defined]
        else:
            factors |= dict.fromkeys(v for v in free_variables(term) if v in loops)
            if term.mask & n.Call.bit:
                factors[DATA] = None
    return Index(tuple(factors.items()), offset, tag)


@dataclass
class Instructions:
    """What so many points take together: vector instructions that compute by the bytes of their type, distinct loads, stores."""

    operations: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    loads: dict[Access, None] = field(default_factory=dict)
    stores: list[Access] = field(default_factory=list)
    points: int = 1

    def computing(self, lanes: int, vector_bytes: int) -> float:
        """Instructions that compute, for so many lanes."""
        return sum(weight * max(1.0, size * lanes / vector_bytes) for size, weight in self.operations.items())

    def inline(self, accesses: Iterable[Access], pieces: Iterable[Instructions], args: Sequence[str]) -> None:
        """Compute what these accesses read, each by the piece that belongs to it, instead of loading it."""
        for outer, piece in zip(accesses, pieces):
            del self.loads[outer]
            for size, weight in piece.operations.items():
                self.operations[size] += weight
            for inner in piece.loads:
                self.loads[Access(inner.name, inner.bytes, tuple(i.within(outer, args) for i in inner.dims))] = None


def _weight(e: n.Expr) -> float:
    if isinstance(e, n.Call):
        if e.call_type in (n.CallType.PureExtern, n.CallType.Extern):
            return next((w for name, w in _CALLS.items() if e.name.startswith(name)), _CALL)
        return len(e.args) - 1 if e.name == "mux" else _OPERATIONS.get(e.name, 1.0)
    if isinstance(e, (n.Div, n.Mod)):
        if e.type.is_float():
            return _FLOAT_DIVISION
        constant = as_int(e.b)
        return _DIVISION if constant is None else 1.0 if constant > 0 and constant & (constant - 1) == 0 else _DIVISION_BY_CONSTANT
    return 2.0 if isinstance(e, n.Mul) and not e.type.is_float() and e.type.bits() != 16 else 1.0


class Piece:
    """One definition, with nothing inlined."""

    def __init__(self, f: Function, d: Definition, loops: Sequence[str]) -> None:
        self.function, self.loops = f, loops
        self.args = tuple(map(unmarked, d.args))
        self.expressions = (*map(unmarked, d.values), unmarked(d.predicate))
        chosen = [c.a for c in nodes_of(self.expressions, (n.EQ, n.NE, n.LT, n.LE)) if as_int(c.b) is not None]
        chosen += [c.args[0] for c in nodes_of(self.expressions, n.Call) if c.name == "mux"]
        self.chosen_by = tuple(dict.fromkeys(v.name for v in chosen if isinstance(v, n.Variable) and v.name in f.args))
        self._known: dict[tuple[tuple[str, int], ...], Instructions] = {}

    def instructions(self, fixed: tuple[tuple[str, int], ...] = ()) -> Instructions:
        """What one point takes where some loops have a known value."""
        if fixed not in self._known:
            values = {name: i32(value) for name, value in fixed}
            self._known[fixed] = self._count([simplify(substitute(values, e)) for e in self.expressions] if fixed else self.expressions)
        return self._known[fixed]

    def reads(self, access: Access) -> Instructions:
        """What the point that an access reads takes."""
        at = {name: access.dims[self.function.args.index(name)] for name in self.chosen_by}
        return self.instructions(tuple((name, int(i.offset)) for name, i in at.items() if not i.factors and i.tag is None))

    def _count(self, expressions: Sequence[n.Expr]) -> Instructions:
        found, seen, stack, bits = Instructions(), set[n.Expr](), [*expressions], symbol_bits(self.loops)
        store = Access(self.function.name, max(t.bytes() for t in self.function.types), tuple(index_of(e, self.loops) for e in self.args))
        stack.extend(e for e, i in zip(self.args, store.dims) if not i.is_affine())
        found.stores = [store] * len(self.function.types)
        while stack:
            e = stack.pop()
            if e in seen or not (e.symbols & bits or e.mask & n.Call.bit):
                continue  # computed already, or once for all points
            seen.add(e)
            if isinstance(e, n.Call) and e.call_type in (n.CallType.Halide, n.CallType.Image):
                access = Access(e.name, e.type.bytes(), tuple(index_of(arg, self.loops) for arg in e.args))
                found.loads[access] = None
                stack.extend(arg for arg, i in zip(e.args, access.dims) if not i.is_affine())
                continue
            if not isinstance(e, _FREE):
                found.operations[max(e.type.bytes(), *(c.type.bytes() for c in e.children()), 1)] += _weight(e)
            stack.extend(e.children())
        return found


def composed(pieces: Sequence[Instructions], inlined: Mapping[str, Piece]) -> Instructions:
    """What points of a stage take together when these Funcs, consumers first, are inlined."""
    out = Instructions(points=len(pieces))
    for piece in pieces:
        for size, weight in piece.operations.items():
            out.operations[size] += weight
        out.loads |= piece.loads
        out.stores += piece.stores
    for name, f in inlined.items():
        accesses = [a for a in out.loads if a.name == name]
        if accesses:
            out.inline(accesses, [f.reads(a) for a in accesses], f.function.args)
    return out
