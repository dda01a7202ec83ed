"""Instructions: how one stage runs innermost, in vectors, and the cycles of one core that takes.

A load is dense, the same for all lanes, in small steps, or from all over, by how far neighbouring values of the loop that runs in
vectors are apart in memory. The weights are estimates of our own for a current x86 core with two vector units and more; for their order
of magnitude: Fog, "Instruction tables", 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..ir.target import Target
from ..lower.register_tiles import Tile, choose_tile, is_accumulation
from .accesses import Access, Instructions, Piece, composed
from .pipeline import Stage

UNROLLED = 4  # values of a loop that is unrolled because a choice is made by it
_NEAR = 4  # elements between neighbours that are still loaded as vectors and picked from


@dataclass(frozen=True)
class Cycles:
    """Cycles of one core."""

    operation: float = 0.4  # one vector instruction that computes
    load: float = 0.4  # one vector load
    store: float = 0.7  # one vector store
    lane: float = 1.2  # each lane of a load from all over
    scattered: float = 4.0  # each lane of a store to all over, after a load from there
    dependent: float = 2.0  # a value that is stored, and loaded again soon
    iteration: float = 0.6  # the counting of a loop
    row: float = 12.0  # entering and leaving an innermost loop


CYCLES = Cycles()


@dataclass(frozen=True)
class Inner:
    """How the innermost loops of a stage run: `vector` in vectors of `lanes`, `unrolled` within it; sums in a tile of registers."""

    vector: str
    lanes: int
    unrolled: str
    tile: Tile | None
    cycles: float  # of one core, for all points


Strides = Callable[[str], Sequence[int]]  # bytes between neighbours in each dimension of a Func or image


class StageInstructions:
    """The instructions of a stage with some Funcs inlined, and what running it over so many values of its loops takes."""

    def __init__(self, s: Stage, piece: Piece, inlined: Mapping[str, Piece], target: Target, strides: Strides) -> None:
        self.function, self.definition, self.piece, self.inlined = s.func.function, s.definition, piece, inlined
        self.loops, self.target, self.strides, self.updates = tuple(loop.name for loop in s.loops), target, strides, s.index > 0
        self.free = [loop.name for loop in s.loops if not loop.is_rvar]
        self.whole = composed([piece.instructions()], inlined)
        self.accumulates = self.updates and is_accumulation(self.function, self.definition)
        self._unrolled: dict[tuple[str, int], Instructions] = {}
        self._inner: dict[tuple[int, ...], Inner] = {}

    def _points(self, unrolled: str, values: int) -> Instructions:
        """What one point takes, or all points of a loop of so many values, by which the stage chooses, when that is unrolled."""
        if not unrolled:
            return self.whole
        key = unrolled, values
        if key not in self._unrolled:
            self._unrolled[key] = composed([self.piece.instructions(((unrolled, k),)) for k in range(values)], self.inlined)
        return self._unrolled[key]

    def inner(self, sizes: tuple[int, ...]) -> Inner:
        """The best of the ways to run innermost over so many values of each loop."""
        found = self._inner.get(sizes)
        if found is None:
            found = self._inner[sizes] = self._choose(dict(zip(self.loops, sizes)))
        return found

    def _choose(self, sizes: dict[str, int]) -> Inner:
        if self.accumulates:
            tile = choose_tile(self.function, self.definition, sizes, self.target)
            if tile is not None:
                return Inner(tile.vector, tile.width, "", tile, self._accumulating(sizes, tile))
        unrolled = next((v for v in self.piece.chosen_by if v in self.free and 1 < sizes[v] <= UNROLLED), "")
        natural = max(self.target.natural_vector_size(t) for t in self.function.types)
        ways = [Inner("", 1, unrolled, None, self._running(sizes, "", 1, unrolled))]
        for v in self.free:
            if v != unrolled and sizes[v] > 1:
                lanes = natural
                while lanes > sizes[v]:
                    lanes //= 2
                if lanes > 1:
                    ways.append(Inner(v, lanes, unrolled, None, self._running(sizes, v, lanes, unrolled)))
                if lanes == natural:
                    break  # storage has this one innermost
        return min(ways, key=lambda way: way.cycles)

    def _load(self, access: Access, v: str, lanes: int, vectors: int) -> float:
        """Cycles for one vector of a load."""
        step = access.step(v, self.strides(access.name)) if v else access.bytes
        whole = max(1, access.bytes * lanes / self.target.natural_vector_bytes())
        if step == 0 and access.is_affine():
            return CYCLES.load / vectors  # the same for all of a row
        if step is None or abs(step) > _NEAR * access.bytes or step % access.bytes or not (v or access.is_affine()):
            return CYCLES.load if lanes == 1 else lanes * CYCLES.lane
        dense = abs(step) == access.bytes
        return CYCLES.load * whole * (1 if dense else 2 * max(abs(step) / access.bytes, 1))

    def _store(self, access: Access, v: str, lanes: int) -> float:
        step = access.step(v, self.strides(access.name)) if v else access.bytes
        if lanes > 1 and (step != access.bytes or not access.is_affine()):
            return lanes * CYCLES.scattered
        return CYCLES.store * max(1, access.bytes * lanes / self.target.natural_vector_bytes())

    def _running(self, sizes: Mapping[str, int], v: str, lanes: int, unrolled: str) -> float:
        """Cycles for all points, in rows of vectors."""
        one = self._points(unrolled, sizes.get(unrolled, 1))
        innermost = v or (self.loops[0] if self.loops else "")
        vectors = -(-sizes.get(innermost, 1) // lanes)
        rows = math.prod(size for loop, size in sizes.items() if loop not in (innermost, unrolled))
        cycles = one.computing(lanes, self.target.natural_vector_bytes()) * CYCLES.operation
        cycles += sum(self._load(a, v, lanes, vectors) for a in one.loads) + sum(self._store(a, v, lanes) for a in one.stores)
        if self.updates and not one.stores[0].is_affine():
            cycles += CYCLES.dependent
        return rows * (vectors * (cycles + CYCLES.iteration) + CYCLES.row)

    def _accumulating(self, sizes: Mapping[str, int], tile: Tile) -> float:
        """Cycles for all terms, in tiles whose sums stay in registers."""
        products = math.prod(tile.counts.values())
        terms = math.prod(size for loop, size in sizes.items() if loop not in self.free)
        tiles = math.prod(-(-sizes[v] // tile.size(v)) for v in self.free)
        loads = sum(r.loads(tile.counts, tile.vector, tile.width) for r in tile.reads) * CYCLES.load
        computing = self.whole.computing(tile.width, self.target.natural_vector_bytes()) * products * CYCLES.operation
        around = products * (CYCLES.load + CYCLES.store) + CYCLES.row
        return tiles * (terms * (max(computing + loads, 4.0 if products < 4 else 0.0) + CYCLES.iteration) + around)
