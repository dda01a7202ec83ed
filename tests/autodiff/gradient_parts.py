"""What scripts of random pipelines are made of besides expressions: functions of Funcs with rules of their own, as custom gradients and as extern
stages, and the types of Funcs that are stored in fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
BOX = (5, 4)
_C_BEND = """
#include "HalideRuntime.h"
int NAME(halide_buffer_t *in, TYPE k, halide_buffer_t *out) {
    if (in->host == nullptr) { for (int d = 0; d < 2; d++) { in->dim[d].min = out->dim[d].min; in->dim[d].extent = out->dim[d].extent; } return 0; }
    for (int y = out->dim[1].min; y < out->dim[1].min + out->dim[1].extent; y++) for (int x = out->dim[0].min; x < out->dim[0].min + out->dim[0].extent; x++) {
        TYPE v = ((TYPE *)in->host)[(x - in->dim[0].min) * in->dim[0].stride + (y - in->dim[1].min) * in->dim[1].stride];
        bool inside = x >= 0 && x < 5 && y >= 0 && y < 4;
        ((TYPE *)out->host)[(x - out->dim[0].min) * out->dim[0].stride + (y - out->dim[1].min) * out->dim[1].stride] = inside ? k * v * v / 2 : v / 3;
    }
    return 0;
}
"""


def inside() -> Any:
    """Whether (x, y) is in the box that sums of rules run over."""
    return (x >= 0) & (x < BOX[0]) & (y >= 0) & (y < BOX[1])


def over_box(term: Callable[[Any, Any], Any]) -> hl.Func:
    """A sum over the box, as a Func without dimensions."""
    f, r = hl.Func("over_box"), hl.RDom([(0, e) for e in BOX])
    f[()] = hl.sum(term(r.x, r.y))
    return f


def func(name: str, value: Any) -> hl.Func:
    f = hl.Func(name)
    f[x, y] = value
    return f


# Each of these is (forward, backward, tangent) for Funcs of (x, y).


def bend(a: hl.Func, k: Any) -> hl.Func:
    """Of one value and a Param, which counts in the box only."""
    return func("bend", hl.select(inside(), k * a[x, y] * a[x, y] / 2, a[x, y] / 3))


def bend_back(adjoint: hl.Func, result: hl.Func, a: hl.Func, k: Any) -> Any:
    return func("bend_back", adjoint[x, y] * hl.select(inside(), k * a[x, y], hl.cast(k.type(), 1) / 3)), over_box(lambda i, j: adjoint[i, j] * a[i, j] * a[i, j] / 2)


def bend_forth(tangents: Any, result: hl.Func, a: hl.Func, k: Any) -> hl.Func:
    da, dk = tangents
    moved = [] if da is None else [hl.select(inside(), k * a[x, y], hl.cast(k.type(), 1) / 3) * da[x, y]]
    moved += [] if dk is None else [hl.select(inside(), a[x, y] * a[x, y] / 2, 0) * dk]
    return func("bend_forth", sum(moved[1:], moved[0]))


def mix(a: hl.Func, c: hl.Func) -> tuple[hl.Func, hl.Func]:
    """Of two Funcs, read at a distance, one Func and one of two values."""
    return func("mix", a[x, y] * c[x - 1, y]), func("mix_pair", (a[x, y + 1] - c[x, y], hl.sin(a[x, y])))


def mix_back(adjoints: Any, results: Any, a: hl.Func, c: hl.Func) -> Any:
    one, two = adjoints
    da = func("mix_a", one[x, y] * c[x - 1, y] + two[x, y - 1][0] + two[x, y][1] * hl.cos(a[x, y]))
    return da, func("mix_c", one[x + 1, y] * a[x + 1, y] - two[x, y][0])


def smear(a: Any, out: Any) -> Any:
    """Three taps of NumPy views, whose last axis is x; `a` has one place more at each end of it."""
    return a[:, :-2] * 0.5 + a[:, 1:-1] * 2 - a[:, 2:]


def smear_back(adjoint: hl.Func, result: hl.Func, a: hl.Func) -> Any:
    return func("smear_back", adjoint[x + 1, y] / 2 + adjoint[x, y] * 2 - adjoint[x - 1, y])


def smear_forth(tangents: Any, result: hl.Func, a: hl.Func) -> hl.Func:
    d = tangents[0]
    return func("smear_forth", d[x - 1, y] / 2 + d[x, y] * 2 - d[x + 1, y])


def split(a: Any, *out: Any) -> Any:
    """Two results of NumPy views."""
    return np.sin(a), a * a


def split_back(adjoint: hl.Func, result: hl.Func, a: hl.Func) -> Any:
    return func("split_back", adjoint[x, y][0] * hl.cos(a[x, y]) + adjoint[x, y][1] * a[x, y] * 2)


def split_forth(tangents: Any, result: hl.Func, a: hl.Func) -> hl.Func:
    d = tangents[0]
    return func("split_forth", (d[x, y] * hl.cos(a[x, y]), d[x, y] * a[x, y] * 2))


def of_rule(function: Any, rule: Any) -> Any:
    """A custom gradient."""
    made = hl.custom_gradient(function)
    made.backward(rule)
    return made


class Parts:
    """What a script sees. `storage` is the type of what is stored in fewer bits, `wide` that of all else. `stages`: extern stages are made, which the
    interpreter does not run; else their place is taken by Funcs with the same rules."""

    def __init__(self, wide: hl.Type, storage: hl.Type, stages: bool) -> None:
        self.wide_type, self.storage, self.stages = wide, storage, stages

    def names(self) -> dict[str, Any]:
        """For `exec`."""
        return {"store": lambda e: hl.cast(self.storage, e), "wide": lambda e: hl.cast(self.wide_type, e), "mixed": of_rule(mix, mix_back),
                "bent": of_rule(bend, bend_back), "stage_bend": self.stage_bend, "stage_smear": self.stage_smear, "stage_split": self.stage_split}

    def _input(self, a: hl.Func) -> hl.Func:
        """What a stage is given: the value itself, stored."""
        return func("stage_in", a[x, y]).compute_root()

    def stage_bend(self, a: hl.Func, k: Any) -> hl.Func:
        if not self.stages:
            return of_rule(bend, bend_back)(a, k)  # type: ignore[no-any-return]
        f, c_type = hl.Func("stage_bend"), "double" if self.wide_type == hl.Float(64) else "float"
        name = f"c_bend_{c_type}"
        hl.register_extern_stage_gradient(name, bend_back)
        hl.register_extern_stage_tangent(name, bend_forth)
        f.define_extern(name, [self._input(a), k], self.wide_type, 2, source=_C_BEND.replace("NAME", name).replace("TYPE", c_type))
        return f.compute_root()

    def stage_smear(self, a: hl.Func) -> hl.Func:
        if not self.stages:
            return of_rule(lambda g: func("smear", g[x - 1, y] / 2 + g[x, y] * 2 - g[x + 1, y]), smear_back)(a)  # type: ignore[no-any-return]
        f = hl.Func("stage_smear")
        f.define_extern("py_smear", [self._input(a)], self.wide_type, 2, function=smear, gradient=smear_back, tangent=smear_forth,
                        regions=lambda out: [[(out[0][0] - 1, out[0][1] + 2), out[1]]])
        return f.compute_root()

    def stage_split(self, a: hl.Func) -> hl.Func:
        if not self.stages:
            return of_rule(lambda g: func("split", (hl.sin(g[x, y]), g[x, y] * g[x, y])), split_back)(a)  # type: ignore[no-any-return]
        f = hl.Func("stage_split")
        f.define_extern("py_split", [self._input(a)], [self.wide_type] * 2, 2, function=split, gradient=split_back, tangent=split_forth)
        return f.compute_root()
