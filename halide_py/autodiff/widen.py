"""A pipeline in double precision: every float becomes float64, and every float input one of its own, that holds the same numbers.

In: a Function. Out: copies of it and of all it calls, ordinary Funcs, without schedules but computed at the root; `inputs` maps parameters
to the new ones. What exists in single precision only (a C function of floats, fast_* functions, bits of floats, random numbers, extern
stages) stays so, between conversions; `narrow` lists it. Used to take differences in, where single precision has none left.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.build import cast, const
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.intrinsics import EXTERNS, ExternFunction
from ..ir.parameter import Parameter
from ..ir.traverse import Rec, deep_recursion, rewrite
from ..ir.types import Float, Type
from ..lang.func import Func
from ..lang.param import ImageParam, Param
from ..lower.bounds_inference import function_values
from ..lower.environment import environment
from .adjoints import define_over, plain
from .inlined import read_without_bounds
from .stages import is_own, stage_of

DOUBLE = Float(64)
_KEEPS_BITS = ("random", "undef")


def _wide(t: Type) -> Type:
    return DOUBLE if t.is_float() else t


def _bottom(e: n.Expr) -> n.Expr:
    return cast(DOUBLE, e) if e.type.is_float() else e


class Widened:
    """`output` in double precision."""

    def __init__(self, output: Function) -> None:
        self.inputs: dict[Parameter, ImageParam | Param] = {}
        self.narrow: dict[str, None] = {}
        self.copies: dict[Function, Func] = {}
        with deep_recursion():
            env = environment([output])
            self.loose = read_without_bounds(env.values(), {output.name}, function_values(env))
            for f in env.values():
                self._copy(f)
        self.output = self.copies[output]

    def _copy(self, f: Function) -> None:
        if f.extern is not None:
            raise CompileError(f"Func {f.name} is an extern stage ({f.where}), which there is no double precision of; check its gradient "
                               "rule on its own")
        copy = Func(f"{plain(f.name)}_double")
        for k in range(len(f.stages())):
            stage = stage_of(f, k, (Interval.everything(),) * len(f.args))
            args, values = ([self._expr(f, copy, e) for e in each] for each in (stage.args, stage.values))
            define_over(copy, stage, args, [cast(_wide(t), v) for t, v in zip(f.types, values)], self._expr(f, copy, stage.predicate))
        if f not in self.loose:
            copy.compute_root()
        self.copies[f] = copy

    def _expr(self, f: Function, copy: Func, root: n.Expr) -> n.Expr:
        def call(c: n.Call, rec: Rec) -> n.Expr:
            args = tuple(map(rec, c.args))
            if c.call_type is n.CallType.Halide:
                to = copy if is_own(f, c) else self.copies[c.func]  # type: ignore[index]
                return n.Call(_wide(c.type), to.name(), args, c.call_type, to.function, c.value_index)
            if c.call_type is n.CallType.Image:
                return self._image(c, args)
            if isinstance(c.func, ExternFunction) and c.name != "custom_gradient":
                return self._function(c, c.func, args)
            if c.name in _KEEPS_BITS or any(o.type is a.type for o, a in zip(c.args, args)) and not c.type.is_float():
                same = tuple(cast(o.type, a) for o, a in zip(c.args, args))
                return _bottom(n.Call(c.type, c.name, same, c.call_type, c.func, c.value_index, c.param))
            return n.Call(_wide(c.type), c.name, args, c.call_type, c.func, c.value_index, c.param)

        def conversion(c: n.Cast, rec: Rec) -> n.Expr:
            return cast(_wide(c.type), rec(c.value))

        def bits(r: n.Reinterpret, rec: Rec) -> n.Expr:
            self.narrow["bits of floats"] = None
            return _bottom(n.Reinterpret(r.type, cast(r.value.type, rec(r.value))))

        def variable(v: n.Variable, rec: Rec) -> n.Expr:
            if v.param is None or v.param.is_buffer or not v.type.is_float():
                return v
            made = self.inputs.get(v.param)
            if made is None:
                made = self.inputs[v.param] = Param(DOUBLE, f"{plain(v.name)}_double")
            return made.as_node()  # type: ignore[union-attr]

        return rewrite(root, {n.Call: call, n.Cast: conversion, n.Reinterpret: bits, n.Variable: variable,
                              n.FloatImm: lambda e, rec: const(DOUBLE, e.value)})

    def _image(self, c: n.Call, args: tuple[n.Expr, ...]) -> n.Expr:
        p = c.param
        assert p is not None
        if not p.type.is_float():
            return n.Call(c.type, c.name, args, c.call_type, None, 0, p)
        made = self.inputs.get(p)
        if made is None:
            made = self.inputs[p] = ImageParam(DOUBLE, p.dimensions, f"{plain(p.name)}_double")
        image = made.param
        assert image is not None
        return n.Call(DOUBLE, image.name, args, c.call_type, None, 0, image)

    def _function(self, c: n.Call, row: ExternFunction, args: tuple[n.Expr, ...]) -> n.Expr:
        double = EXTERNS.get((row.name, tuple(_wide(t) for t in row.args)))
        if double is not None and (double.builtin or double is row):
            return n.Call(double.result, row.name, args, c.call_type, double, c.value_index)
        self.narrow[f"{row.name}()"] = None
        same = tuple(cast(t, a) for t, a in zip(row.args, args))
        return _bottom(n.Call(c.type, c.name, same, c.call_type, row, c.value_index))
