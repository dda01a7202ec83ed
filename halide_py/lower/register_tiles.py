"""Register tiles: which variables of a reduction run in the vectors, and in how many registers, that its default loops hold at a time.

`f[x, y] += a[r, y] * b[x, r]` loads two values for each product; a tile of 3 vectors in x by 8 in y loads 11 for 24 products. The tile
chosen is the one that takes the fewest cycles a product by a simple model (two products and two loads a cycle, products of one accumulator
one after the other), within the registers of the target; its accumulators stay there (`accumulators`). When the data that the loops over
all terms read for a task does not fit the second level cache, the outer of these loops go around those over the tiles. The order of the
terms stays what it is. Source of the blocking: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3),
2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.simplify import linear
from ..ir.target import Target
from ..ir.target_words import TargetArch, TargetFeature
from ..ir.traverse import nodes_of
from .environment import Environment

_FACTORS = (1, 2, 3, 4, 6, 8)
_LATENCY = 8  # accumulators that keep two multipliers of four cycles busy
_TYPICAL = 256  # what an extent that is not known may be
_LINE = 64  # bytes of a cache line
_CACHE = 512 << 10  # bytes: half of a second level cache
_NEAR = 32 << 10  # bytes: of a first level one
_TERMS = 16  # of an accumulator, for which it is worth to be loaded and stored

Extents = Mapping[str, int | None]


@dataclass(frozen=True)
class Read:
    """What one read depends on: for each variable the positions it occurs at, with its factor there (None: not affine)."""

    uses: Mapping[str, Mapping[int, int | None]]
    bytes: int

    def is_dense(self, v: str) -> bool:
        """Whether adjacent values of `v` read adjacent elements."""
        return self.uses.get(v) == {0: 1}

    def loads(self, tile: Mapping[str, int], vector: str, width: int) -> float:
        """Cache lines that one tile takes, of vectors or of numbers that become vectors. Vectors lie anywhere, so they cross lines."""
        count = math.prod(k for v, k in tile.items() if v in self.uses)
        if width == 1 or vector not in self.uses:
            return count
        return count * (1 + width * self.bytes / _LINE if self.is_dense(vector) else width)

    def footprint(self, sizes: Mapping[str, int]) -> int:
        """Bytes read while each variable runs over so many values."""
        positions: dict[int, int] = {}
        for v, at in self.uses.items():
            for d, factor in at.items():
                positions[d] = positions.get(d, 1) + abs(factor or 1) * (sizes.get(v, 1) - 1)
        return math.prod(positions.values()) * self.bytes


@dataclass
class Tile:
    """The choice: `vector` runs in vectors of `width`, `counts` says how many (for the other variables: how many values) a tile holds."""

    vector: str
    width: int
    counts: dict[str, int]
    reads: list[Read] = field(default_factory=list)

    def size(self, v: str) -> int:
        """The number of values of a variable in a tile."""
        return self.counts.get(v, 1) * (self.width if v == self.vector else 1)

    def footprint(self, sizes: Mapping[str, int]) -> int:
        """Bytes read while each variable runs over so many values."""
        return sum(r.footprint(sizes) for r in self.reads)


def reads_of(roots: Iterable[n.Expr], name: str = "") -> list[Read]:
    """The reads of expressions, without those of the Func `name`."""
    found = []
    for c in nodes_of(roots, n.Call):
        if c.call_type in (n.CallType.Halide, n.CallType.Image) and c.name != name:
            uses: dict[str, dict[int, int | None]] = {}
            for position, e in enumerate(c.args):
                terms, _ = linear.gather(e)
                for term, factor in terms.items():
                    for v in nodes_of(term, n.Variable):
                        uses.setdefault(v.name, {})[position] = factor if v is term else None
            found.append(Read(uses, c.type.bytes()))
    return found


def dense_along(reads: Sequence[Read], v: str) -> bool:
    """Whether adjacent values of `v` read adjacent elements, or the same ones but not all of them."""
    using = [r for r in reads if v in r.uses]
    return bool(using) and all(r.is_dense(v) for r in using)


def is_accumulation(f: Function, d: Definition) -> bool:
    """Whether a definition updates each element by itself, over a reduction domain."""
    return (
        d.rdom is not None
        and len(d.args) == len(f.args)
        and all(type(e) is n.Variable and e.name == a for e, a in zip(d.args, f.args))
        and all(c.args == d.args for c in nodes_of(d.values, n.Call) if c.name == f.name)
    )


Sizes = dict[str, dict[str, int]]


def sizes_from_inputs(env: Environment) -> Sizes:
    """What extents the dimensions of each Func may have, from those of the inputs that are read at the same coordinates. For the choice of
    loops alone."""
    out: Sizes = {}
    for name, f in env.items():
        found: dict[str, int] = {}
        for c in nodes_of([v for d in f.stages() for v in d.values], n.Call):
            known = _extents_of(c, env, out)
            for position, e in enumerate(c.args if known else ()):
                terms, _ = linear.gather(e)
                size = known[position]
                for term, factor in terms.items():
                    if size is not None and factor == 1 and isinstance(term, n.Variable) and term.name in f.args:
                        found[term.name] = min(size, found.get(term.name, size))
        out[name] = found
    return out


def _extents_of(c: n.Call, env: Environment, found: Sizes) -> list[int | None]:
    if c.call_type is n.CallType.Halide and c.name in found:
        return [found[c.name].get(a) for a in env[c.name].args]
    if c.call_type is not n.CallType.Image or c.param is None:
        return []
    extents = [e.extent for e in c.param.dims]
    buffer = c.param.buffer
    return [buffer.dim(d).extent() if buffer is not None else None if e is None else b.as_int(e) for d, e in enumerate(extents)]


def likely_extents(f: Function, d: Definition, sizes: Mapping[str, int]) -> dict[str, int | None]:
    """The extents of the variables as far as they are known, estimated or to be guessed, else None."""
    out: dict[str, int | None] = {a: sizes.get(a) for a in f.args}
    for bound in (*f.schedule.estimates, *f.schedule.bounds):
        out[bound.var] = b.as_int(bound.extent) if bound.extent is not None else out[bound.var]
    out.update({v.name: b.as_int(v.extent) for v in d.schedule.rvars})
    return out


def _registers(target: Target) -> int:
    wide = target.arch is not TargetArch.X86 or target.natural_vector_bytes() == 64 or TargetFeature.AVX512_Skylake in target.features()
    return 32 if wide else 16


def choose_tile(f: Function, d: Definition, extents: Extents, target: Target) -> Tile | None:
    """The tile for an accumulation; None where neither vectors pay nor single numbers do better."""
    width = min(target.natural_vector_size(t) for t in f.types)
    reads = reads_of(d.values, f.name)
    dense = next((v for v in f.args if dense_along(reads, v) and (extents[v] or width) >= width), None)
    if width == 1 or not f.args:
        return None
    if dense is None and (_is_simple(d, reads) or (extents[f.args[0]] or width) < width):
        width = 1  # vectors of numbers from all over would cost more than they save
    vector = f.args[0] if dense is None else dense
    budget = _registers(target) * 3 // 4 // len(f.types) if width > 1 else _LATENCY
    best = min(_tiles(f, extents, vector, width, budget), key=lambda counts: _cost(counts, vector, width, reads, extents))
    return Tile(vector, width, best, reads)


def _is_simple(d: Definition, reads: Sequence[Read]) -> bool:
    """Whether a term is little more than what it reads."""
    return sum(1 for _ in nodes_of(d.values, (n.Add, n.Sub, n.Mul, n.Div, n.Min, n.Max, n.Select))) <= 4 * len(reads)


def _tiles(f: Function, extents: Extents, vector: str, width: int, budget: int) -> Iterator[dict[str, int]]:
    """All tiles of up to three variables that fit the registers."""
    def choices(v: str) -> list[int]:
        most = extents[v]
        if most is not None and v == vector:
            most = -(-most // width)
        return [k for k in _FACTORS if most is None or k <= most]

    others = [v for v in f.args if v != vector]
    for pair in itertools.combinations(others, min(2, len(others))):
        names = (vector, *pair)
        for counts in itertools.product(*map(choices, names)):
            if math.prod(counts) <= budget:
                yield dict(zip(names, counts))


def _cost(counts: Mapping[str, int], vector: str, width: int, reads: Sequence[Read], extents: Extents) -> tuple[float, int, int]:
    """Cycles for each product that counts; of equal ones the smallest tile, the one of longest rows. Loads that find a free slot are not
    free either: some cross cache lines."""
    products = math.prod(counts.values())
    loads = sum(r.loads(counts, vector, width) for r in reads)
    cycles = max(products / 2, loads / 2, _LATENCY / 2) + loads / 4
    useful = 1.0
    for v, k in counts.items():
        size, extent = k * (width if v == vector else 1), extents[v]
        useful *= _TYPICAL / (_TYPICAL + size / 2) if extent is None else extent / (-(-extent // size) * size)
    return round(cycles / products / useful, 3), products, -counts[vector]


def inner_terms(d: Definition, tile: Tile, extents: Extents, task: Extents) -> tuple[list[str], tuple[str, int] | None]:
    """The loops over terms that stay inside of those over the tiles of a task: their variables, and the next one with the block of it that
    does too.

    All of them unless it is known that what one tile reads is too much for the cache. `task`: values of each free variable of a task."""
    names = [v.name for v in d.schedule.rvars]
    if None in [*task.values(), *(extents[v] for v in names)]:
        return names, None
    one = {v: tile.size(v) for v in task}
    if tile.footprint(one | {v: extents[v] or 1 for v in names}) <= _CACHE:
        return names, None
    all_of_it = {v: extent or 1 for v, extent in task.items()}
    inner: dict[str, int] = {}

    def fits(v: str, count: int) -> bool:
        """Whether the data is in the second level cache, and in the first one what tiles that are next to each other share."""
        terms = {**inner, v: count}
        return tile.footprint(all_of_it | terms) <= _CACHE and (tile.footprint(one | terms) <= _NEAR or math.prod(terms.values()) <= _TERMS)

    for i, v in enumerate(names):
        extent = extents[v] or 1
        if not fits(v, extent):
            block = 1
            while block * 2 < extent and fits(v, block * 2):
                block *= 2
            return names[:i], (v, block)
        inner[v] = extent
    return names, None


def order_of_tiles(d: Definition, tile: Tile, extents: Extents, free: Sequence[str]) -> list[str]:
    """The free variables, innermost first: next to each other are tiles that share most of what they read."""
    sizes = {v: tile.size(v) for v in free} | {v.name: extents[v.name] or _TYPICAL for v in d.schedule.rvars}
    return sorted(free, key=lambda v: -sum(r.footprint(sizes) for r in tile.reads if v not in r.uses))
