"""Gradients of whole pipelines, to be compiled beside them: the inputs of the pipeline and the derivatives of a loss for its outputs go in,
the derivatives of the loss for its inputs come out.

Names are those of Halide's gradient modules: `_grad_loss_for_OUT` goes in, `_grad_loss_OUT_wrt_IN` comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir import build as b
from ..ir import nodes as n
from ..ir.names import plain_names
from ..ir.parameter import Parameter as ParameterData
from ..ir.types import INT32, Float, Type
from ..lang.argument import Argument
from ..lang.func import Func
from ..lang.param import ImageParam
from .adjoints import define, reads
from .derivative import Derivative, propagate_adjoints


class ReversedOutput:
    """One output of a pipeline, known as `name`, with `adjoints`: an ImageParam for each of its values, float32 for integers, which have no
    influence."""

    def __init__(self, output: Func, name: str) -> None:
        f = output.function
        self.output, self.name = output, name
        names = [f"_grad_loss_for_{name}" + (f"_{i}" if len(f.types) > 1 else "") for i in range(len(f.types))]
        self.adjoints = [ImageParam(t if t.is_float() else Float(32), len(f.args), name) for t, name in zip(f.types, names)]
        for image, p in zip(self.adjoints, f.output_params):
            assert image.param is not None
            for to, of in zip(image.param.dims, p.dims):
                to.min_estimate, to.extent_estimate = of.min_estimate, of.extent_estimate
        self.derivative = self._reverse() if any(t.is_float() for t in f.types) else None

    def _reverse(self) -> Derivative:
        f, seed = self.output.function, Func(f"{self.name}_seed")
        args = [n.Variable(INT32, a) for a in f.args]
        given = [reads(Func(image), args)[0] for image in self.adjoints]
        define(seed, args, [v if t.is_float() else b.const(t, 0) for t, v in zip(f.types, given)])
        first = self.adjoints[0]
        return propagate_adjoints(self.output, seed, [(first.dim(d).min(), first.dim(d).extent()) for d in range(first.dimensions())])

    def of(self, p: ParameterData) -> Func | None:
        """The derivative for an input; None if the output does not depend on it, or only by integers. Raises CompileError where there is no
        rule."""
        argument = Argument(p)
        return self.derivative[argument] if self.derivative is not None and argument in self.derivative else None


def reversed_outputs(outputs: Sequence[Func]) -> list[ReversedOutput]:
    """The outputs of a pipeline, each with its adjoints. Raises CompileError for operations without gradient rule."""
    return [ReversedOutput(f, name) for f, name in zip(outputs, plain_names([f.name() for f in outputs]))]


def gradients_by_output(outputs: Sequence[ReversedOutput], inputs: Mapping[str, ParameterData]) -> dict[str, Func]:
    """For each output, the derivatives for each input buffer, as Halide's gradient modules give them; zeros, `_dummy_grad_...`, where there
    is none."""
    made: dict[str, Func] = {}
    for r in outputs:
        for known, p in inputs.items():
            if p.is_buffer:
                found, name = r.of(p), f"_grad_loss_{r.name}_wrt_{known}"
                first = r.adjoints[0]
                made[name if found is not None else f"_dummy{name}"] = (
                    _sum(name, first.type(), first.dimensions(), []) if found is None else found
                )
    return made


def summed_gradients(outputs: Sequence[ReversedOutput], inputs: Mapping[str, ParameterData]) -> dict[str, Func]:
    """For each input of floats, the derivative of the loss by way of all outputs: of the input's type and dimensions, 0 where there is no
    influence."""
    made: dict[str, Func] = {}
    for known, p in inputs.items():
        if p.type.is_float():
            parts, name = [g for g in (r.of(p) for r in outputs) if g is not None], f"_grad_loss_wrt_{known}"
            made[name] = parts[0] if len(parts) == 1 else _sum(name, p.type, p.dimensions, parts)
    return made


def _sum(name: str, t: Type, dimensions: int, parts: Sequence[Func]) -> Func:
    f, args = Func(name), [n.Variable(INT32, f"v{d}") for d in range(dimensions)]
    total: n.Expr = b.const(t, 0)
    for part in parts:
        total = b.add(total, reads(part, args)[0])
    define(f, args, [total])
    f.function.schedule.default_loops = True
    return f
