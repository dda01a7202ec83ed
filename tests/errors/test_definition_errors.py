"""One tiny program per mistake that is found at once, in an expression, a definition or a directive: the error is a CompileError that
names what is wrong and
the user's own line (the last one of the program)."""

from __future__ import annotations

import pytest

import halide_py as hl
from halide_py.ir import names as naming

PREAMBLE = """
import halide_py as hl
x, y, z, xo, xi, yi = hl.vars("x y z xo xi yi")
r = hl.RDom([(0, 10), (0, 5)], "r")
s = hl.RDom([(0, 4)], "s")
u8, f32 = hl.u8(x), hl.f32(x)
f, g, h, t = hl.Func("f"), hl.Func("g"), hl.Func("h"), hl.Func("t")
g[x, y] = x + y
t[x] = (x, 1.5)
p = hl.Param(hl.Int(32), "p")
im = hl.ImageParam(hl.UInt(8), 2, "im")
"""
NO_LOCATION = "no location"

EXPRESSIONS = {
    "literal too large": ("u8 + 256", "256", "uint8", "(uint8)0"),
    "negative literal": ("u8 < -1", "-1", "uint8"),
    "handle arithmetic": ("hl.Expr('text') + 1", "pointer arithmetic"),
    "undefined operand": ("x + hl.Expr()", "operator+", "undefined"),
    "condition of select": ("hl.select(x, 1, 2)", "boolean", "x has type int32"),
    "branches of select": ("hl.select(x < 3, u8, x)", "matching type", "uint8", "int32"),
    "sizes in select": ("hl.select(x < 3, (x, y), (1, 2, 3))", "identical sizes", "2, 3"),
    "conditions in select": ("hl.select((x < 1, y < 1), (x, y), x < 2, (x, y), (1, 2))", "mix"),
    "empty mux": ("hl.mux(x, [])", "non-empty"),
    "types in mux": ("hl.mux(x, [1, u8])", "same type", "int32, uint8"),
    "bits of mixed sign": ("u8 & x", "bitwise and", "uint8", "int32"),
    "bits of floats": ("x | 1.5", "bitwise or", "float32"),
    "not of a float": ("~f32", "integer", "float32"),
    "clamp": ("hl.clamp(u8, 0, 300)", "third argument", "uint8", "int32", "explicit cast"),
    "promise": ("hl.unsafe_promise_clamped(u8, -1, 3)", "min argument", "uint8"),
    "lerp types": ("hl.lerp(u8, x, 0.5)", "lerp", "uint8", "int32"),
    "lerp of a constant of another type": ("hl.lerp(u8, hl.u16(0), 0.5)", "lerp", "uint8", "uint16"),
    "lerp weight": ("hl.lerp(u8, u8, x)", "weight", "int32"),
    "lerp constant weight": ("hl.lerp(u8, u8, 1.5)", "1.5", "[0.0, 1.0]"),
    "lerp of 64 bits": ("hl.lerp(hl.i64(x), hl.i64(x), 0.5)", "64-bit"),
    "cast to handle": ("hl.cast(hl.Handle(), x)", "reinterpret"),
    "widths of reinterpret": ("hl.reinterpret(hl.Float(64), x)", "32 bits", "64 bits"),
    "is_nan of ints": ("hl.is_nan(x)", "is_nan", "float", "int32"),
    "erf": ("hl.erf(hl.f64(x))", "erf", "float32", "float64"),
    "fast_exp": ("hl.fast_exp(x)", "fast_exp", "float32"),
    "popcount": ("hl.popcount(f32)", "popcount", "integer"),
    "div_round_to_zero": ("hl.div_round_to_zero(f32, x)", "div_round_to_zero", "integer"),
    "mul_shift_right": ("hl.mul_shift_right(u8, u8, x)", "unsigned", "int32"),
    "widen_right": ("hl.widen_right_mul(u8, u8)", "uint16"),
    "concat_bits": ("hl.concat_bits([u8] * 3)", "3", "power of two"),
    "require": ("hl.require(x, x)", "boolean"),
    "bits of a type": ("hl.Int(300)", "300 bits", NO_LOCATION),
    "lanes of a type": ("hl.Int(32, 70000)", "70000 lanes", NO_LOCATION),
    "seed": ("hl.random_int(u8)", "seed", "uint8"),
    "shift amount": ("u8 << 9", "9", "8 bits"),
}

DEFINITIONS = {
    "undefined Var": ("f[x] = y", '"y"', '"f"'),
    "Var twice": ("f[x, x] = 1", "arguments 1 and 0", '"x"'),
    "Expr on the left": ("f[x, y + 1] = 1", "Argument 2", '"f"', "not a Var", "(y + 1)"),
    "RVar on the left": ("f[s] = 1", "Argument 1", "not a Var", "s$x"),
    "RDom on the right": ("f[x] = s + x", "Reduction domain", '"f"', "s$x"),
    "undefined value": ("f[x] = (1, hl.Expr())", "Value 2", '"f"'),
    "undefined argument": ("g[hl.Expr(), 0]", "Argument 1", '"g"', "undefined"),
    "call before definition": ("f[x] = 1 + h[x]", '"h"', "not yet been defined"),
    "number of arguments": ("f[x] = g[x]", '"g"', "1 arguments", "defined with 2"),
    "arguments of an image": ("f[x] = im[x]", '"im"', "1 arguments", "2"),
    "float index": ("f[x] = g[x, 1.5]", "float32", "argument 2", '"g"', "explicit cast"),
    "float index of an image": ("f[x] = im[x * 0.5, 0]", "float32", "argument 1", '"im"'),
    "Expr of a tuple": ("f[x] = t[x] + 1", '"t"', "Tuple"),
    "tuple index": ("t[x][2]", '"t"', "out of range", "2"),
    "index of a single value": ("g[x, y][0]", '"g"', "does not return a Tuple"),
    "dimensions of an update": ("g[x] = 1", '"g"', "1 arguments", "2"),
    "type of an update": ("g[x, y] += 1.5", '"g"', "float32", "int32", "element 0"),
    "size of an update": ("t[x] = 1", '"t"', "1 and 2"),
    "declared type": ("hl.Func(hl.Int(32), 1, 'd')[x] = u8", "int32", "uint8", '"d'),
    "declared dimensions": ("hl.Func(hl.Int(32), 1, 'd')[x, y] = 1", "exactly 1", "2 dimensions"),
    "update after use": ("f[x] = g[x, x]; g[x, y] += 1", "g", "already been realized or used"),
    "moved pure Var": ("g[x, y] = g[x + 1, y]", '"g"', "same places", "(x + 1)"),
    "stray Var in an update": ("g[0, y] = x", '"x"', '"g"'),
    "two RDoms": ("g[s, y] = r.x", '"g"', "s and r", "Multiple reduction domains"),
    "implicit only on the right": ("f[x] = g[hl._]", "f", "implicit", "_0, _1"),
    "more implicit in an update": ("h[x, hl._] = g[x, hl._]; h[x, hl._] = g[hl._]", "h", "2 implicit", "1 implicit"),
    "dot in a name": ("hl.Func('a.b')", '"a.b"', "'.'"),
    "value of an undefined Func": ("f.value()", "Func::value()", "undefined"),
    "type of an undefined Func": ("f.type()", "Func::type", '"f"', "undefined"),
    "dimensions of an undefined Func": ("f.dimensions()", "Func::dimensions", '"f"', "undefined"),
    "type of a tuple": ("t.type()", '"t"', "returns a Tuple"),
    "no such update": ("g.update(1)", "update(1)", '"g"', "0 update(s)"),
    "gather in a pure definition": ("f[x] = hl.gather([1, 2])", "gather", "f"),
    "unequal gathers": ("g[hl.scatter([0, 1]), y] = hl.gather([1, 2, 3])", "2, 3", "same number"),
    "unevaluated elsewhere": ("f[x] = h[x] + 1", "'h'", "different location"),
}

REDUCTIONS = {
    "undefined bounds": ("hl.RDom([(0, hl.Expr())], 'q')", "RDom q", "undefined"),
    "bounds with a Var": ("hl.RDom([(0, 4), (0, x)], 'q')", "RDom q", "dimension 1", "0 ... x", "variable x"),
    "bounds with a Func": ("hl.RDom([(g[0, 0], 4)], 'q')", "RDom q", "dimension 0", "g(0, 0)"),
    "bounds of 64 bits": ("hl.RDom([(0, hl.cast(hl.Int(64), p) * 2)], 'q')", "int32", "int64"),
    "no such dimension": ("s.y", "RDom s", "1 dimension", ".y"),
    "several dimensions as an Expr": ("r + 1", "multidimensional", "r$x(0, 10)"),
    "foreign predicate": ("r.where(r.x < s)", "RDom r", "s$x", "RDom s"),
    "predicate after use": ("g[s, 0] = 1; s.where(s < 2)", "already been used", "s$x"),
    "predicate that is no bool": ("r.where(r.x)", "bool", "int32"),
    "predicate of nothing": ("hl.RDom().where(x < 1)", "undefined"),
    "no RDom in sum": ("hl.sum(x)", "sum", "reduction domain"),
    "two RDoms in argmax": ("hl.argmax(r.x + s)", "argmax", "r$x, s$x", "rdom"),
    "sum into a defined Func": ("hl.sum(s + 0, g)", "g", "already has a definition"),
    "bounds of boundary conditions": ("hl.BoundaryConditions.repeat_edge(g, [(0, 1)] * 3)", "repeat_edge", "(3)", "(2)", "g"),
    "half a bound": ("hl.BoundaryConditions.mirror_image(g, [(0, hl.Expr())])", "dimension 0", "g", "undefined"),
    "Func without bounds": ("hl.BoundaryConditions.repeat_image(g)", "g", "bounds"),
    "exterior type": ("hl.BoundaryConditions.constant_exterior(im, x)", "int32", "uint8"),
    "image dimension": ("im.channels()", "dimension 2", "2-dimensional", "im"),
    "Param value": ("p.set(1.5)", "p", "1.5", "int32"),
    "ImageParam of another type": ("im.set(hl.Buffer(hl.Int(32), [4, 4]))", "im", "uint8", "int32"),
    "undefined ImageParam": ("hl.ImageParam().dim(0)", "undefined"),
}

SCHEDULES = {
    "atomic update of a place that it changes": ("g[g[s, 0], 0] += 1; g.update(0).atomic(True)", "g.update(0)", "atomic()", "depends on the values of g"),
    "split of an unknown Var": ("g.split(z, xo, xi, 8)", "schedule for g", "z", "Vars: x y __outermost"),
    "vectorize of an unknown Var": ("g.vectorize(z, 8)", "vectorize", "z", "Vars: x y __outermost"),
    "reorder of an unknown Var": ("g.reorder(x, z)", "argument 1", "reorder", "z", "Vars:"),
    "update's unknown Var": ("g[0, y] += 1; g.update(0).unroll(x)", "g.update(0)", "unroll", "Vars: y __outermost"),
    "name in use": ("g.split(x, y, xi, 8)", "outer", "y", "already used"),
    "one name twice": ("g.split(x, xi, xi, 8)", "xi", "same name"),
    "RVar into Vars": ("g[s, y] += 1; g.update(0).split(s, xo, xi, 2)", "RVar s$x", "Var xo"),
    "Var into RVars": ("g.split(x, hl.RVar('a'), hl.RVar('b'), 2)", "Var x", "RVar a"),
    "Var spelled like an RVar": ("g[s, y] += 1; g.update(0).parallel(hl.Var('s$x'))", "Var s$x", "RVar s$x"),
    "reorder twice": ("g.reorder(x, y, x)", "x", "twice"),
    "outermost inside": ("g.reorder(hl.Var.outermost(), x)", "outermost"),
    "reorder that changes the result": ("h[x] = 0; h[0] = h[0] * 2 + r.x; h.update(0).reorder(r.y, r.x)", "h.update(0)", "r$x and r$y", "change the meaning"),
    "fuse that changes the result": ("h[x] = 0; h[0] = h[0] * 2 + r.x; h.update(0).fuse(r.y, r.x, hl.RVar('q'))", "r$x and r$y", "change the meaning"),
    "parallel race": ("h[x] = 0; h[s % 4] += 1; h.update(0).parallel(s)", "race condition", "s$x", "allow_race_conditions"),
    "vector race": ("h[x] = 0; h[0] += s; h.update(0).vectorize(s, 4)", "race condition", "vectorized"),
    "RoundUp inside an update": ("g[x, y] += 1; g.update(0).split(x, xo, xi, 8).split(xi, xi, yi, 3, hl.TailStrategy.RoundUp)", "RoundUp", "xi", "GuardWithIf"),
    "ShiftInwards in an update": ("g[x, y] += 1; g.update(0).split(x, xo, xi, 8, hl.TailStrategy.ShiftInwards)", "ShiftInwards", "g.update(0)"),
    "tail of an RVar": ("g[s, y] += 1; g.update(0).split(s, hl.RVar('a'), hl.RVar('b'), 3, hl.TailStrategy.RoundUp)", "GuardWithIf, Predicate, or Auto"),
    "lists of tile": ("g.tile([x, y], [xi, yi], [8])", "same length", "2, 2, 2 and 1"),
    "factor": ("g.split(x, xo, xi, 0)", "0", "positive"),
    "factor of a Var": ("g.split(x, xo, xi, y)", "y", "constants and parameters"),
    "factor that is a float": ("g.split(x, xo, xi, 2.5)", "int32", "float32"),
    "bound of no Var of it": ("g.bound(z, 0, 1)", "bound()", "z", "(x, y)", "g"),
    "undefined extent": ("g.bound(x, 0, hl.Expr())", "extent", "undefined"),
    "bound with a Var": ("g.bound(x, 0, y)", "extent", "y"),
    "modulus": ("g.align_bounds(x, 1.5)", "modulus", "int32", "float32"),
    "estimates": ("g.set_estimates([(0, 1)])", "1 estimates", "2 dimensions"),
    "reorder_storage twice": ("g.reorder_storage(x, x)", "x", "twice"),
    "reorder_storage of an unknown Var": ("g.reorder_storage(z, x)", "z", "x, y"),
    "unscheduled after scheduling": ("g.parallel(y); g.unscheduled()", "unscheduled()", "g"),
    "LoopLevel set to nothing": ("hl.LoopLevel().set(hl.LoopLevel())", "LoopLevel", "undefined"),
    "stage of an undefined LoopLevel": ("hl.LoopLevel().stage_index()", "LoopLevel"),
    "schedule of an undefined Func": ("f.parallel(x)", "f", "before it is defined"),
    "memory of a device": ("g.store_in(hl.MemoryType.GPUShared)", "GPUShared", "g", "CPU"),
    "outermost in parallel": ("g.parallel(hl.Var.outermost())", "__outermost"),
}

PROGRAMS = {**EXPRESSIONS, **DEFINITIONS, **REDUCTIONS, **SCHEDULES}


def test_the_tables_do_not_collide() -> None:
    assert len(PROGRAMS) == sum(map(len, (EXPRESSIONS, DEFINITIONS, REDUCTIONS, SCHEDULES)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_message(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_COUNTS", {})  # so that each program's names are its own
    program, *fragments = PROGRAMS[name]
    *before, last = program.split("; ")
    names: dict[str, object] = {}
    source = PREAMBLE + "".join(line + "\n" for line in before)
    exec(compile(source, "user_program.py", "exec"), names)
    line = source.count("\n") + 1
    with pytest.raises(hl.CompileError) as caught:
        exec(compile("\n" * (line - 1) + last, "user_program.py", "exec"), names)
    message = str(caught.value)
    assert message.startswith("Error: ")
    for fragment in fragments:
        if fragment is not NO_LOCATION:
            assert fragment in message
    if NO_LOCATION not in fragments:
        assert f"user_program.py:{line}" in message
