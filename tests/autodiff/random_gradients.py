"""Random pipelines of doubles whose derivatives are checked: reverse mode against central differences, and against forward mode.

    python tests/autodiff/random_gradients.py FIRST COUNT [--compiled] [--second] [--eager] [--scheduled] [--narrow TYPE] [--funcs N] [--seconds N]

runs each seed in a child process and prints each that fails with its script, in as few Funcs as still fail. A script (`gradient_scripts`) defines `loss`, a
Func without dimensions, from the images and Params in `inputs`. Everything runs in the interpreter of the algorithm; with --compiled adjoints are compiled
too and must be the same. --second checks the derivative of the sum of squares of the first derivative. --scheduled compiles everything, extern stages
included, and the adjoints once more with random directives. --narrow float32, fast (float32 and fast_exp and such), float16 or bfloat16 (storage beside
float32) compares with the derivative of the same script in doubles.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "oracle")]

from gradient_checks import run  # noqa: E402
from gradient_parts import Parts  # noqa: E402
from gradient_scripts import HEIGHT, WIDTH, Writer  # noqa: E402
from hunt import failures  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.autodiff import blocks, packed, scatters  # noqa: E402

NARROW = {"float32": (hl.Float(32), 2e-3), "fast": (hl.Float(32), 1e-2), "float16": (hl.Float(16), 0.1), "bfloat16": (hl.BFloat(16), 0.5)}  # storage, tolerance


def script(seed: int, count: int = 4) -> list[str]:
    """The lines of a random pipeline."""
    return Writer(seed, count).lines


def built(lines: list[str], stages: bool = False, narrow: str = "") -> dict[str, Any]:
    """What a script defines; `stages`: extern stages are real ones; `narrow`: a key of NARROW."""
    text, wide = "\n".join(lines), hl.Float(32 if narrow else 64)
    if narrow:
        text = text.replace("hl.f64", "hl.f32").replace("double ", "float ").replace("(double", "(float").replace("rng.normal(", "normal32(")
    for name in ("exp", "log", "sin", "cos", "pow") if narrow == "fast" else ():
        text = text.replace(f"hl.{name}(", f"hl.fast_{name}(")
    names: dict[str, Any] = {"hl": hl, "np": np, "F64": wide, "x": hl.Var("x"), "y": hl.Var("y")}
    names |= Parts(wide, NARROW[narrow][0] if narrow else wide, stages).names()
    names["normal32"] = lambda **size: names["rng"].normal(**size).astype(np.float32)
    exec(text, names)
    return names


def differences(value: Run, name: str, step: float) -> Any:
    """Central differences for an image or a Param."""
    held = np.asarray(value.data[name], np.float64)
    out = np.zeros(held.shape)
    for i in np.ndindex(held.shape):
        ends = []
        for sign in (step, -step):
            moved = held.copy()
            moved[i] += sign
            ends.append(float(value(value.loss, (), {**value.data, name: moved})))
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out


class Run:
    """A script, its numbers, and how Funcs are evaluated: by the interpreter or compiled."""

    def __init__(self, lines: list[str], compiled: bool = False, narrow: str = "") -> None:
        self.names, self.compiled = built(lines, compiled, narrow), compiled
        self.images: dict[str, Any] = {name: self.names[name] for name in "pqt"}
        self.data = {name: self.names["inputs"][image] for name, image in self.images.items()} | {"k": np.array(0.7)}
        self.wrt = {name: self.names[name] for name in "pqk"}
        self.loss: hl.Func = self.names["loss"]

    def __call__(self, f: hl.Func, shape: tuple[int, ...], data: dict[str, Any], mins: tuple[int, ...] | None = None) -> Any:
        """A Func over a box; "k" is the Param, which `data` holds as an array without dimensions."""
        self.names["k"].set(float(data["k"]))
        if not self.compiled:
            return run(f, shape, {image.name(): data[name] for name, image in self.images.items()}, mins)
        return self.realized(f, shape, data, mins)

    def realized(self, f: hl.Func, shape: tuple[int, ...], data: dict[str, Any], mins: tuple[int, ...] | None = None) -> Any:
        """The same, compiled."""
        self.names["k"].set(float(data["k"]))
        for name, image in self.images.items():
            image.set(hl.Buffer(np.ascontiguousarray(data[name].T)))
        out = hl.Buffer(f.type(), list(shape)) if shape else hl.Buffer.make_scalar(f.type())
        if mins is not None:
            out.set_min(list(mins))
        f.realize(out)
        return np.array(out).T

    def direction(self, name: str, move: Any) -> Any:
        """A tangent for an input."""
        if not move.ndim:
            return float(move)
        self.images["direction"] = hl.ImageParam(hl.Float(64), move.ndim, f"direction_{name}")
        self.data["direction"] = move
        return self.images["direction"]


def check(lines: list[str], compiled: bool = False, second: bool = False, scheduled: int | None = None) -> None:
    """Raises AssertionError when a derivative of the script's loss is wrong; HalideError when there is none. `scheduled`: the seed of directives."""
    value = Run(lines, scheduled is not None)
    with np.errstate(all="ignore"):
        d = hl.propagate_adjoints(value.loss)
        if second:
            value.loss = squares(d, value.names)
            d = hl.propagate_adjoints(value.loss)
        if not np.isfinite(value(value.loss, (), value.data)):
            return
        found = {name: check_one(value, d[given], name) for name, given in value.wrt.items()}
        for loops in (True, False) if compiled else ():
            hl.schedule_gradients(d, loops)
            for name, given in value.wrt.items():
                check_compiled(value, d[given], found[name])
        if scheduled is not None:
            schedule_at_random(d, random.Random(scheduled))
            for name, given in value.wrt.items():
                check_compiled(value, d[given], found[name])


def check_one(value: Run, d: hl.Func, name: str) -> Any:
    """The adjoint of one input, which is checked."""
    data, shape = value.data, value.data[name].shape
    around = value(d, tuple(e + 2 for e in shape), data, (-1,) * len(shape))
    got = around[(slice(1, -1),) * len(shape)]
    assert np.isfinite(around).all(), f"d{name} is {around}"
    assert np.count_nonzero(around) == np.count_nonzero(got), f"d{name} outside of the input: {around}"
    move = np.cos(np.arange(data[name].size) * 1.7).reshape(shape)
    moved = hl.propagate_tangents(value.loss, [(value.wrt[name], value.direction(name, move))])
    forward = float(value(moved, (), value.data))
    size = float(np.abs(got * move).sum()) + abs(forward)
    assert abs(forward - float((got * move).sum())) <= 1e-8 * size + 1e-10, f"d{name}: forward mode {forward}, reverse mode {(got * move).sum()}"
    if not any(along(value, name, got, move, step) for step in (1e-6, 1e-5, 1e-7, 1e-4)):
        raise AssertionError(f"d{name} is\n{got}\nby differences\n{differences(value, name, 1e-6)}")
    return got


def check_narrow(lines: list[str], narrow: str) -> None:
    """Raises AssertionError when derivatives of a script in fewer bits are not about those in doubles, whichever numbers are put in."""
    wrong = ""
    for attempt in range(3):  # a number may fall on the other side of a kink
        found: list[dict[str, Any]] = []
        for kind in ("", narrow):
            value = Run([*lines, f"inputs = {{p: inputs[p] + {attempt * 0.05}, q: inputs[q] - {attempt * 0.03}, t: inputs[t]}}"], narrow=kind)
            value.data |= {name: v.astype(np.float32) for name, v in value.data.items() if kind and v.ndim and v.dtype.kind == "f"}
            with np.errstate(all="ignore"):
                d = hl.propagate_adjoints(value.loss)
                loss = float(value(value.loss, (), value.data))
                found.append({name: value(d[given], value.data[name].shape, value.data).astype(float) for name, given in value.wrt.items()} | {"loss": loss})
        if not np.isfinite(found[0]["loss"]) or not np.isfinite(found[1]["loss"]) or max(float(np.abs(v).max()) for v in found[0].values()) > 1e3:
            return
        bad = [name for name, exact in found[0].items() if not np.abs(found[1][name] - exact).max() <= NARROW[narrow][1] * (1 + float(np.abs(exact).max()))]
        if not bad:
            return
        wrong += "\n".join(f"d{name} is\n{found[1][name]}\nin doubles\n{found[0][name]}" for name in bad)
    raise AssertionError(wrong)


def along(value: Run, name: str, got: Any, move: Any, step: float) -> bool:
    """Whether the difference in a direction is the derivative's; a step may hit a kink."""
    ends = [float(value(value.loss, (), {**value.data, name: value.data[name] + sign * move})) for sign in (step, -step)]
    size = float(np.abs(got * move).sum()) + 1e-3
    return bool(abs((ends[0] - ends[1]) / (2 * step) - float((got * move).sum())) <= 1e-4 * size + 1e-10 * abs(ends[0]) / step)


def squares(d: hl.Derivative, names: dict[str, Any]) -> hl.Func:
    """The sum of the squares of a derivative, times other numbers."""
    out = hl.Func("squares")
    r = hl.RDom([(0, WIDTH), (0, HEIGHT)])
    a, b = d[names["p"]], d[names["q"]]
    out[()] = hl.f64(0)
    out[()] += a[r.x, r.y] * a[r.x, r.y] * (1.0 + hl.f64(r.x) * 0.3) + b[r.x] * b[r.x]
    return out


def check_compiled(value: Run, f: hl.Func, expected: Any) -> None:
    read = hl.Func("read")  # tails of loops may be more than the output
    read[tuple(f.args())] = f[tuple(f.args())]
    got = value.realized(read, expected.shape, value.data)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11 * max(float(np.abs(expected).max(initial=0)), 1))


def directives(rng: random.Random, f: hl.Func) -> None:
    """Some directives on a Func; what is refused is left out."""
    at, inner = list(f.args()), hl.Var("inner")
    if not f.has_update_definition() and rng.random() < 0.3:
        f.compute_inline()
        return
    f.compute_root()
    for k in range(-1, f.num_update_definitions() if at else -1):
        v, w, tail = rng.choice(at), rng.choice(at), rng.choice([hl.TailStrategy.Auto, hl.TailStrategy.GuardWithIf])
        steps = [("vectorize", v, 4, tail), ("vectorize", v, 2, tail), ("parallel", v), ("unroll", v, 2, tail), ("reorder", v, w), ("split", v, v, inner, 3, tail)]
        for name, *given in rng.sample(steps, rng.randint(0, 2)):
            with contextlib.suppress(hl.HalideError):
                getattr(f if k < 0 else f.update(k), name)(*given)


def schedule_at_random(d: hl.Derivative, rng: random.Random) -> None:
    """Directives by hand on most of what the derivative made."""
    for f in d.funcs():
        if rng.random() < 0.7:
            directives(rng, f)


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """What pays for long sums and many terms only is done for the small ones of random pipelines, too."""
    low: list[tuple[Any, str, int]] = [
        (packed, "_USES", 1), (blocks, "LANES", 2), (blocks, "_SOME", 2), (blocks, "_MANY", 4), (blocks, "_BLOCKS", 2), (scatters, "_BLOCKS", 2),
        (scatters, "_TERMS", 0)]
    before = [getattr(module, name) for module, name, _ in low]
    try:
        for module, name, value in low:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(low, before, strict=True):
            setattr(module, name, value)


@dataclass(frozen=True)
class Case:
    """A seed and how its script is run; for `hunt.failures`."""

    seed: int
    funcs: int = 4
    compiled: bool = False
    second: bool = False
    eager: bool = False
    scheduled: bool = False
    narrow: str = ""

    def script(self) -> list[str]:
        return script(self.seed, self.funcs)

    def run(self) -> bool:
        """Raises what is wrong."""
        warnings.simplefilter("ignore")
        with eager() if self.eager else contextlib.nullcontext():
            if self.narrow:
                check_narrow(self.script(), self.narrow)
            else:
                check(self.script(), self.compiled, self.second, self.seed if self.scheduled else None)
        return True


def smallest(case: Case, seconds: int) -> tuple[Case, str]:
    """The case in as few Funcs as still fail, with how."""
    for funcs in range(1, case.funcs + 1):
        fewer = replace(case, funcs=funcs)
        for _, what, printed in failures([fewer], seconds):
            return fewer, f"{what}\n{printed}"
    return case, "does not fail again"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--second", action="store_true")
    parser.add_argument("--eager", action="store_true", help="sums in blocks, packed copies and scatters in blocks of the small sums, too")
    parser.add_argument("--scheduled", action="store_true")
    parser.add_argument("--narrow", choices=NARROW, default="")
    parser.add_argument("--funcs", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=300)
    a = parser.parse_args()
    hl.evaluate(hl.Param(hl.Int(32), "p", 1) + 1)  # loads what compiles, for all children
    cases, wrong = [Case(seed, a.funcs, a.compiled, a.second, a.eager, a.scheduled, a.narrow) for seed in range(a.first, a.first + a.count)], 0
    for case, _, _ in failures(cases, a.seconds):
        wrong += 1
        fewest, how = smallest(case, a.seconds)
        print(f"==== {fewest}\n" + "\n".join(fewest.script()) + f"\n---- {how}", flush=True)
    print(f"{a.count} seeds, {wrong} failures")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
