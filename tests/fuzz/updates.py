"""Random updates and inline reductions of all types, over reduction domains with predicates, made of the expressions of `expressions.py`.

A Func `h` of several values is defined, updated and read by `f`. In an expression `x` is where it stands: the variable `v` moved by the domain
(a window), or what the domain alone says (a scatter, a scan). Old values are joined with it by operations whose order the language defines.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from expressions import FLOATS, INTS, WIDTHS, Maker, Tree, standing_alone

WRAPPING = ("i8", "i16", "u8", "u16", "u32", "u64")
ANY = ("{new}", "hl.select({new} > {old}, {new}, {old})", "hl.min({old}, {new})", "hl.max({old}, {new})")
BITS = ("({old} & {new})", "({old} | {new})", "({old} ^ {new})")
JOINS = {"bool": ("{new}", *BITS), **dict.fromkeys(("i32", "i64"), (*ANY, *BITS, "hl.saturating_add({old}, {new})")),
         **dict.fromkeys(WRAPPING, (*ANY, *BITS, "({old} + {new})", "({old} * {new})", "hl.rounding_halving_add({old}, {new})")),
         **dict.fromkeys(FLOATS, (*ANY, "hl.strict_float({old} + {new})"))}
INLINE = {"bool": (), **dict.fromkeys(("i32", "i64"), ("maximum", "minimum")), **dict.fromkeys(FLOATS, ("maximum", "minimum", "sum")),
          **dict.fromkeys(WRAPPING, ("maximum", "minimum", "sum", "product"))}
# Of a stage: where its expressions stand, where it stores, what it reads of `h`, the largest domain.
WINDOW, SCATTER, SCAN, PURE = ("v + r.x", "v", "v", (3, 4)), ("r.x + 4*r.y", "hl.clamp({}, 0, 66)", "", (4, 15)), ("r.x", "r.x + 1", "r.x", (66, 2)), ("v", "v", "v", ())


@dataclass(frozen=True)
class Stage:
    """One definition of `h`: what is joined how, over which part of a domain, and how it is scheduled."""

    place: tuple[str, str, str, tuple[int, ...]]
    domain: tuple[int, ...]
    values: tuple[Tree, ...]
    joins: tuple[str, ...]
    condition: Tree | None = None
    index: Tree | None = None
    schedule: str = ""

    def text(self, k: int) -> str:
        """The lines of the stage, which is the `k`-th; 0 is the pure definition."""
        x, at, old, _ = self.place
        at = at.format(self.index)
        element = "h[{}]" if len(self.values) == 1 else "h[{}][{}]"
        values = [join.format(old=element.format(old or at, i), new=value) for i, (join, value) in enumerate(zip(self.joins, self.values))]
        reduces = bool(re.search(r"\bx\b", "".join((at, *values)))) or "r." in at  # what no expression mentions is not looped over
        scheduled = bool(self.schedule) and (reduces or "r." not in self.schedule)
        lines = [f"r = hl.RDom([{', '.join(f'(0, {e})' for e in self.domain)}])"] if self.domain else []
        lines += [f"r.where((lambda x: {self.condition})(r.x))"] if self.condition else []
        lines += [f"x = {x}", "h[{}] = hl.Tuple([{}])".format(at, ",\n    ".join(values)), *([f"h.update({k - 1}){self.schedule}" if k else f"h{self.schedule}"] if scheduled else [])]
        return "\n".join(lines)

    def without(self, i: int) -> Stage:
        """The same but for value `i`."""
        return replace(self, values=self.values[:i] + self.values[i + 1:], joins=self.joins[:i] + self.joins[i + 1:])

    def shrunk(self) -> Iterator[Stage]:
        if self.schedule:
            yield replace(self, schedule="")
        if self.condition:
            yield replace(self, condition=None)
            yield from (replace(self, condition=c) for c in self.condition.shrunk())
        if self.index:
            yield from (replace(self, index=index) for index in self.index.shrunk())
        for i, value in enumerate(self.values):
            yield from (replace(self, values=(*self.values[:i], v, *self.values[i + 1:])) for v in value.shrunk())


@dataclass(frozen=True)
class Script:
    """The stages of `h`; `f` reads it."""

    stages: tuple[Stage, ...]
    types: tuple[str, ...]
    width: int
    seed: int

    @property
    def math(self) -> tuple[str, ...]:
        return ("",) * len(self.types)

    def definition(self) -> str:
        """The lines that define and schedule `f`."""
        read = ["h[v]" if len(self.types) == 1 else f"h[v][{i}]" for i in range(len(self.types))]
        values = [f"hl.f32({e})" if t == "bf16" else e for e, t in zip(read, self.types)]
        lines = ["v = hl.Var('v')", "f, h = hl.Func('f'), hl.Func('h')", *(stage.text(k) for k, stage in enumerate(self.stages)), f"f[v] = hl.Tuple([{', '.join(values)}])"]
        return "\n".join([*lines, "h.compute_root()", *([f"f.vectorize(v, {self.width})"] if self.width > 1 else [])])

    def text(self) -> str:
        """A script that stands alone."""
        return standing_alone(self.definition(), self.seed)

    def shrunk(self) -> Iterator[Script]:
        """Simpler scripts: fewer stages, fewer values, scalars, simpler stages."""
        for k in range(1, len(self.stages)):
            yield replace(self, stages=self.stages[:k] + self.stages[k + 1:])
        for i in range(len(self.types) if len(self.types) > 1 else 0):
            yield replace(self, stages=tuple(stage.without(i) for stage in self.stages), types=self.types[:i] + self.types[i + 1:])
        if self.width > 1:
            yield replace(self, width=1)
        for k, stage in enumerate(self.stages):
            yield from (replace(self, stages=(*self.stages[:k], s, *self.stages[k + 1:])) for s in stage.shrunk())


class Drawer:
    """Draws the stages of a Func of values of `types`."""

    def __init__(self, rng: random.Random, types: tuple[str, ...], depth: int) -> None:
        self.rng, self.types, self.depth = rng, types, depth

    def value(self, t: str) -> Tree:
        strict = t in FLOATS and self.rng.random() < 0.5
        tree = Maker(self.rng, strict).make(t, self.depth)
        return Tree(t, "hl.strict_float({0})", (tree,)) if strict else tree

    def limited(self, domain: tuple[int, ...]) -> Tree | None:
        return Maker(self.rng, False).make("bool", 2) if domain and self.rng.random() < 0.5 else None

    def domain(self, largest: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.rng.randint(1, e) for e in largest)

    def first(self) -> Stage:
        joins = ["{new}" if not INLINE[t] or self.rng.random() < 0.7 else f"hl.{self.rng.choice(INLINE[t])}(r, (lambda x: {{new}})(v + r.x))" for t in self.types]
        domain = self.domain(WINDOW[3]) if any("(r," in join for join in joins) else ()
        schedule = self.rng.choice(("", f".vectorize(v, {self.rng.choice(WIDTHS)})"))
        return Stage(PURE, domain, tuple(map(self.value, self.types)), tuple(joins), self.limited(domain), None, schedule)

    def update(self) -> Stage:
        place = self.rng.choice((WINDOW, WINDOW, SCATTER, SCAN, PURE))
        domain, width = self.domain(place[3]), self.rng.choice(WIDTHS)
        free = ("", f".vectorize(v, {width})", ".unroll(v, 3)", ".parallel(v, 8)")
        moved = (".unroll(r.x)", f".reorder(v, r.x, r.y).vectorize(v, {width})", f".reorder(v, r.x, r.y).unroll(r.y, 2).vectorize(v, {width}, hl.TailStrategy.Predicate)")
        schedule = self.rng.choice((*free, *moved) if place is WINDOW else free if place is PURE else ("", ".unroll(r.x, 2)"))
        index = Maker(self.rng, False).make("i32", 2) if place is SCATTER else None
        joins = tuple(self.rng.choice(JOINS[t]) for t in self.types)
        return Stage(place, domain, tuple(map(self.value, self.types)), joins, self.limited(domain), index, schedule)


def draw(seed: int, depth: int = 3) -> Script:
    """The script of a seed."""
    rng = random.Random(seed)
    types = tuple(rng.choice([*INTS, *FLOATS, "bool"]) for _ in range(rng.randint(1, 3)))
    drawer = Drawer(rng, types, depth)
    return Script((drawer.first(), *(drawer.update() for _ in range(rng.randint(1, 3)))), types, rng.choice(WIDTHS), seed)
