"""Funcs as programs have them, and how these are scheduled there: forms that passes and the code generator look for.

Each writes one Func or two with a `Writer`: histograms, sums of products of bytes, interleaved and transposed pixels, what a parameter turns off,
coordinates clamped by hand, look-ups behind a condition about what is looked up, floats rounded to bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from random_expressions import FLOATS, RANGE, SMALL, WIDER, cast, convert, small
from script import FuncInfo, Loop, Stage, Usual

WIDE = [4, 8, 16]


def _defined(w: Any, t: str, args: tuple[str, ...], value: str) -> FuncInfo:
    """A Func with its pure definition; others may call it once it is among the script's."""
    f = FuncInfo(w.fresh("f"), (t,), args)
    w.line(f"{f.name} = hl.Func('{f.name}')")
    w.line(f"{w.at(f)} = {value}")
    w.stage(f, [Loop(v) for v in args])
    return f


def _pure(w: Any, t: str, args: tuple[str, ...], value: str) -> FuncInfo:
    """A whole Func."""
    w.script.funcs.append(_defined(w, t, args, value))
    return w.script.funcs[-1]  # type: ignore[no-any-return]


def _updated(w: Any, f: FuncInfo, where: tuple[str, ...], value: str, loops: list[Loop]) -> Stage:
    w.line(f"{w.at(f, *where)} = {value}")
    w.stage(f, loops)
    return f.stages[-1]


def _in_vectors(w: Any, s: Stage, v: str) -> Usual:
    """All else stays as it is."""
    atomic = ".atomic()" if any(loop.var == v and loop.reduction for loop in s.loops) else ""
    return Usual(f"{{stage}}{atomic}.vectorize({v}, {w.pick(WIDE)})", [Loop(loop.var, loop.reduction, loop.var == v) for loop in s.loops])


def _tiles(w: Any, s: Stage, storage: bool = False) -> Usual:
    """Vectors along one dimension and unrolled loops along the other."""
    new = [w.fresh("v") for _ in range(4)]
    first, second = w.pick([(new[2], new[3]), (new[3], new[2])])
    text = (f"{', '.join(new)} = {', '.join(f'hl.Var({v!r})' for v in new)}\n{{stage}}.tile(x, y, {', '.join(new)}, {w.pick(WIDE)}, {w.pick(WIDE[:2])}, {{tail}})"
            f".vectorize({first}).unroll({second})")
    stored = f"\n{s.name}.reorder_storage(y, x)" if storage else ""
    return Usual(text + stored, [Loop(new[2], busy=True), Loop(new[3], busy=True), Loop(new[0]), Loop(new[1])])


def _in_turn(w: Any, count: int) -> Usual:
    """One loop of `count` unrolled inside of vectors: each is a store of every count-th element."""
    outer, inner = w.fresh("v"), w.fresh("v")
    text = (f"{outer}, {inner} = hl.Var('{outer}'), hl.Var('{inner}')\n{{stage}}.split(x, {outer}, {inner}, {count}, {{tail}}).unroll({inner})"
            f".vectorize({outer}, {w.pick(WIDE)}, {{tail}})")
    return Usual(text, [Loop(inner, busy=True), Loop(outer, busy=True), Loop("y")])


def histogram(w: Any) -> None:
    """Counts, or other things kept, at places that are data."""
    t, dims = w.pick(["u8", "u16", "i32", "u32", "f32", "i8", "u64"]), w.int(1, 2)
    f = _defined(w, t, ("x", "y")[:dims], cast(t, w.int(0, 1)))
    r = w.domain([w.int(4, 20), w.int(1, 4)])
    w.where(r)
    at = (f"{r}.x", f"{r}.y")
    place = f"({w.bounded(at)} + {w.bounded(at)} * {w.int(1, 3)} - {w.int(0, 3)})" if w.int(0, 1) else w.bounded(at)
    where, loops = w.pick([((place, "y"), [*at, "y"]), ((place, f"{r}.y"), [*at]), ((f"{r}.x // 2", place), [*at])]) if dims == 2 else ((place,), [*at])
    old, new = w.at(f, *where), w.pick([cast(t, 1), convert(t, "i32", w.bounded(at)), convert(t, "u8", w.expr("u8", at, 1))])
    value = w.pick([f"{old} + {new}", f"{old} + {new}", f"hl.max({old}, {new})", f"hl.min({new}, {old})", f"{old} {'+' if t in (*SMALL, *FLOATS) else '*'} {new}"])
    s = _updated(w, f, where, value, [Loop(v, v.startswith(r)) for v in loops])
    s.usual = [_in_vectors(w, s, v) for v in loops] + [Usual("{stage}.atomic().parallel(" + at[1] + ")", [Loop(at[0], True), Loop(at[1], True, True)])]
    w.script.funcs.append(f)
    if t in FLOATS or t in SMALL:  # of up to 80 numbers up to 255
        w.calls.append(f.name)
        _pure(w, t, f.args, small(t, w.at(f)))


def products(w: Any) -> None:
    """Sums of products of bytes or halfwords in 32 bits, and what is made of them."""
    t, names = w.pick(["i32", "i32", "u32"]), w.pick([("u8", "i8"), ("u8", "u8"), ("i8", "i8"), ("i16", "u8"), ("u8", "i16")])

    def factor(s: str, at: tuple[str, ...]) -> str:
        e = w.expr(s, at, w.int(0, 1))
        return cast(t, f"({e} & {cast(s, 1023)})" if s == "i16" else e)

    def product(at: tuple[str, ...]) -> str:
        return f"{factor(names[0], at)} * {factor(names[1], at[:1] if w.int(0, 2) == 0 else at)}"

    if w.int(0, 2) == 0:
        f = _defined(w, t, ("x", "y"), " + ".join(product(("x", "y")) for _ in range(w.int(1, 4))))
    else:
        r = w.domain([w.int(2, 12), w.int(1, 2)], 0)
        at = w.pick([(f"x + {r}.x", f"y + {r}.y"), (f"{r}.x", "y"), ("x", f"{r}.x"), (f"{r}.x + {w.int(2, 4)} * x", f"y + {r}.y")])
        if w.int(0, 2):
            f = _defined(w, t, ("x", "y"), cast(t, w.int(0, 9)))
            s = _updated(w, f, ("x", "y"), f"{w.at(f)} + {product(at)}", [Loop(f"{r}.x", True), Loop(f"{r}.y", True), Loop("x"), Loop("y")])
            s.usual = [_in_vectors(w, s, v) for v in (f"{r}.x", "x")]
        else:
            f = _defined(w, t, ("x", "y"), f"hl.sum({r}, {product(at)})")
            f.stages[0].reduces = True
    f.stages[0].usual = [_in_vectors(w, f.stages[0], "x")]
    w.script.funcs.append(f)
    to, shift = w.pick(["u8", "i16", "i32", "u32", "f32"]), f"({w.at(f)} >> {w.int(0, 9)})"
    value = cast(to, f"hl.clamp({shift}, {cast(t, 0)}, {cast(t, min(RANGE[to][1], 1000))})") if w.int(0, 1) else small(to, cast(to, f"{shift} & {cast(t, 127)}"))
    w.calls.append(f.name)
    _pure(w, to, ("x", "y"), value)


def interleaved(w: Any) -> None:
    """Pixels of several channels, one after the other."""
    t, count = w.type(), w.int(2, 4)
    at = (f"x // {count}", "y")
    parts = [convert(t, s, e) for e, s in (w.tap(at) for _ in range(count))]
    if w.int(0, 1):
        value = f"hl.mux(x % {count}, [{', '.join(parts)}])"
    else:
        value = "".join(f"hl.select(x % {count} == {k}, {e}, " for k, e in enumerate(parts[1:], 1)) + parts[0] + ")" * (count - 1)
    f = _pure(w, t, ("x", "y"), value)
    f.stages[0].usual = [_in_turn(w, count), _in_turn(w, count), _in_vectors(w, f.stages[0], "x"), _tiles(w, f.stages[0], True)]


def transposed(w: Any) -> None:
    """Rows as columns."""
    t = w.type()
    sources = [g for g in w.script.funcs if len(g.args) == 2 and len(g.types) == 1]
    if not sources:
        sources = [_pure(w, t, ("x", "y"), w.value(t, ("x", "y"), 1))]
    taps = []
    for _ in range(w.int(1, 3)):
        g = w.pick(sources[-3:])
        w.calls.append(g.name)
        taps.append(convert(t, g.types[0], f"{g.name}[{w.shifted('y')}, {w.shifted('x')}]"))
    f = _pure(w, t, ("x", "y"), small(t, (" ^ " if t == "b1" else " + ").join(taps)))
    f.stages[0].usual = [_tiles(w, f.stages[0]), _tiles(w, f.stages[0]), _tiles(w, f.stages[0], True)]


def switched(w: Any) -> None:
    """What a parameter, a coordinate or a value turns off."""
    t, args = w.type(), ("x", "y")
    conditions = [f"({w.pick(w.params)} {w.pick(['>', '<=', '=='])} {w.int(0, 8)})" for _ in range(2)]
    conditions += [f"({v} >= {w.int(0, 6)})" for v in args]
    e, s = w.tap((w.pick(args),))
    conditions += [f"({e} > {cast(s, 3)})"] if s != "b1" else []
    one, two = w.pick(conditions[:2]), w.pick(conditions)
    off = w.pick([cast(t, 1), w.value(t, args, 0)])
    inner = f"hl.select({two}, {w.value(t, args, 1)}, {off})"
    value = w.pick([f"hl.select({one}, {w.value(t, args, 1)}, {off})", f"hl.select({one}, {inner}, {w.value(t, args, 0)})",
                    f"hl.select({one} {w.pick('&|')} {two}, {inner}, {off})"])
    f = _defined(w, t, args, value)
    if w.int(0, 2) == 0:
        r = w.domain([w.int(1, 3), 2], 0)
        w.line(f"{r}.where({two if two in conditions[:2] else one})")
        _updated(w, f, args, w.combined(f, t, w.at(f), (f"x + {r}.x", f"y - {r}.y")), [Loop(f"{r}.x", True), Loop(f"{r}.y", True), Loop("x"), Loop("y")])
    w.script.funcs.append(f)


def clamped(w: Any) -> None:
    """A stencil that says by hand what is beyond the ends."""
    t, taps, limits = w.type(), [], []
    name, s, known = w.pick([image for image in w.images if image[2]])
    for d in range(2):
        high = w.pick([f"{name}.dim({d}).max()", str(known[d][1])])
        limits.append((w.pick([f"{name}.dim({d}).min()", str(known[d][0])]), high))
    g = w.pick(w.script.funcs) if w.script.funcs and w.int(0, 1) else None
    step = w.int(1, 2)
    for dx, dy in [(-1, 0), (0, 0), (1, 0), (0, w.int(-2, 2))][:w.int(1, 4)]:
        a, b = f"x * {step} + {dx}", f"y + {dy}"
        if g is not None and len(g.types) == 1:
            high = w.pick([*w.params, "7"])
            where = [f"hl.clamp({a}, 0, {high})", f"hl.max({b}, {w.int(0, 2)})", "1"][:len(g.args)]
            w.calls.append(g.name)
            taps.append(convert(t, g.types[0], f"{g.name}[{', '.join(where) or '()'}]"))
        else:
            (low, high), (low1, high1) = limits
            x = w.pick([f"hl.clamp({a}, {low}, {high})", f"hl.max(hl.min({a}, {high}), {low})"])
            taps.append(convert(t, s, f"{name}[{x}, hl.clamp({b}, {low1}, {high1})]"))
    f = _pure(w, t, ("x", "y"), small(t, (" | " if t == "b1" else " + ").join(taps)))
    f.stages[0].usual = [_in_vectors(w, f.stages[0], "x"), _tiles(w, f.stages[0])]


def looked_up(w: Any) -> None:
    """A table at a place that is data, if it is one of the table's."""
    t, at = w.type(), ("x", "y")
    table = [g for g in w.script.funcs if len(g.types) == 1 and g.args]
    if not table:
        table = [_pure(w, t, ("x",), w.value(t, ("x",), 1))]
    g, place = w.pick(table[-3:]), f"({w.bounded(at)} * {w.int(1, 3)} - {w.int(0, 5)})"
    rest = [w.shifted(v) for v in ("y", "x")][:len(g.args) - 1]
    low, high = w.int(-2, 1), w.int(2, 9)
    w.calls.append(g.name)
    inside = w.pick([f"({place} >= {low}) & ({place} < {high})", f"({low} < {place}) & ({place} <= {high})", f"({place} < {high}) & ({place} > {low}) & ({w.pick(at)} < 5)"])
    found = convert(t, g.types[0], f"{g.name}[{', '.join([place + w.pick(['', ' + 1', ' - 2']), *rest])}]")
    f = _pure(w, t, at, small(t, f"hl.select({inside}, {found}, {w.expr(t, at, 0)})"))
    f.stages[0].usual = [_in_vectors(w, f.stages[0], "x")]


def rounded(w: Any) -> None:
    """Numbers with fractions that become bytes or halfwords, limited or not where they need not be; quarters, so sums of them are exact."""
    t, s = w.pick(["u8", "i8", "u16", "i16", "i32"]), w.pick(FLOATS)
    source = w.pick(list(WIDER))
    low, high = RANGE[t]
    scaled = f"({cast(s, w.expr(source, ('x', 'y'), 1))} * {cast(s, w.pick(['0.25', '0.5', '0.00390625']))} + {cast(s, w.pick(['0.5', '0.25', '-0.75']))})"
    limited = f"hl.clamp({w.pick(['', 'hl.floor', 'hl.round', 'hl.trunc'])}({scaled}), {cast(s, max(low, -70000))}, {cast(s, min(high, 70000))})"
    f = _pure(w, t, ("x", "y"), small(t, cast(t, limited)))
    f.stages[0].usual = [_in_vectors(w, f.stages[0], "x")]


IDIOMS: list[Callable[[Any], None]] = [histogram, products, interleaved, transposed, switched, clamped, looked_up, rounded]
