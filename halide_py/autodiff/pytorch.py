"""compile_to_pytorch: a pipeline and its gradient for PyTorch, without halide_py at run time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import driver
from ..codegen_c.pytorch import pytorch_module
from ..errors import CompileError
from ..ir.module import ArgumentKind
from ..ir.parameter import by_name
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..lang.argument import Argument
from ..lang.func import Func
from ..lang.pipeline import Pipeline
from .pipelines import reversed_outputs, summed_gradients

_UNDEFINED = Target()


def compile_to_pytorch(outputs: Func | Pipeline | Sequence[Func], filename_prefix: str, arguments: Sequence[Any], fn_name: str = "",
                       target: Target = _UNDEFINED) -> None:
    """Write `PREFIX.py`, a Python module with the pipeline as a differentiable function of CPU tensors and numbers, and
    `PREFIX_pipelines.so`, which it loads; it needs PyTorch and nothing else.

    `arguments` are the inputs in call order: an ImageParam is a tensor whose last dimension is its first, a Param is a number or a tensor
    without dimensions. The function, and its `torch.autograd.Function`, are named `fn_name`, by default as the file. Both pipelines are
    compiled, the gradient's by `propagate_adjoints`: its derivatives are for all inputs of floats. PyTorch checks them by
    `torch.autograd.gradcheck`.

    Raises CompileError for operations without gradient rule, pointers as arguments, the target features user_context and
    c_plus_plus_name_mangling, and what `compile_to_shared_library` refuses.
    """
    pipeline = outputs if isinstance(outputs, Pipeline) else Pipeline(outputs)
    for feature in (TargetFeature.UserContext, TargetFeature.CPlusPlusMangling, TargetFeature.NoRuntime):
        if target.has_feature(feature):
            raise CompileError(f"compile_to_pytorch() for {target}: the module calls its library by C names without a context; leave "
                               f"{feature.label} out")
    name, library = fn_name or os.path.basename(filename_prefix), filename_prefix + "_pipelines.so"
    forward = pipeline.unit("compile_to_pytorch", arguments, name, target)
    inputs = [a.param for a in (x if isinstance(x, Argument) else Argument(x) for x in arguments)]
    reverse = reversed_outputs(pipeline.outputs())
    gradients = summed_gradients(reverse, by_name([p for p in inputs if p is not None]))
    if not gradients:
        raise CompileError(f"{name} has no input of floats to differentiate by; compile_to_shared_library() writes it without gradient")
    weights = [image for r in reverse for image in r.adjoints]
    backward = Pipeline(list(gradients.values())).unit("compile_to_pytorch", [*arguments, *weights], f"{name}_gradient", target)
    made = [a for a in backward.entries[0].public.args if a.kind is ArgumentKind.OutputBuffer]
    backward = backward.with_names(dict(zip([a.shown for a in made], gradients)))
    text = pytorch_module(forward.entries[0].public, backward.entries[0].public, os.path.basename(library))
    driver.files.check_paths([library, filename_prefix + ".py"])
    compiled = driver.files.shared_library(driver.aot.link_units(forward.name, [forward, backward]))
    driver.files.write_all([library, filename_prefix + ".py"], [compiled, text.encode()])
