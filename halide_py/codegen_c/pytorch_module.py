"""The text of the Python modules that call pipelines from PyTorch; `pytorch` fills in names and arguments."""

MODULE = '''"""{name} for PyTorch: made by halide_py. Needs PyTorch, and {library} beside this file.

`{name}({parameters})` takes CPU tensors and numbers, and is differentiable; {class_name} is its torch.autograd.Function.
"""

import ctypes
import os
from typing import NamedTuple

import torch


class Argument(NamedTuple):
    """`dimensions` is None for a number."""

    name: str
    dtype: torch.dtype
    dimensions: "int | None"


INPUTS = (
{inputs}
)
OUTPUTS = (
{outputs}
)
LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))
LIBRARY.hl_last_error.restype = ctypes.c_char_p
NOTHING = ctypes.create_string_buffer(64)  # a buffer without memory asks for its shape, a tensor without elements does not


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
def keep_message(context, message):
    """Messages become those of exceptions, and are not printed."""
    LIBRARY.hl_set_last_error(ctypes.c_char_p(message))


LIBRARY.halide_set_error_handler(keep_message)


class Dimension(ctypes.Structure):
    """halide_dimension_t."""

    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Buffer(ctypes.Structure):
    """halide_buffer_t."""

    _fields_ = [("device", ctypes.c_uint64), ("device_interface", ctypes.c_void_p), ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dimensions", ctypes.c_int32),
                ("dim", ctypes.POINTER(Dimension)), ("padding", ctypes.c_void_p)]

    @staticmethod
    def of(a, tensor):
        """A tensor's memory; its last dimension comes first."""
        if max((*tensor.shape, *tensor.stride()), default=0) > 0x7FFFFFFF:
            raise ValueError(f"{name}: {{a.name}} is too large for a pipeline: {{tuple(tensor.shape)}}")
        dims = (Dimension * max(tensor.dim(), 1))(*((0, e, s, 0) for e, s in zip(tensor.shape[::-1], tensor.stride()[::-1])))
        whole = 1 if a.dtype is torch.bool or not a.dtype.is_signed else 0
        code = 4 if a.dtype is torch.bfloat16 else 2 if a.dtype.is_floating_point else whole
        host = tensor.data_ptr() if tensor.numel() else ctypes.addressof(NOTHING)
        return Buffer(0, None, host, 0, code, 1 if a.dtype is torch.bool else 8 * tensor.element_size(), 1, tensor.dim(), dims, None)


def given(a, x):
    """An input as the tensor whose memory the pipeline reads. Raises TypeError or ValueError for what does not fit."""
    if a.dimensions is None:
        value = x.item() if isinstance(x, torch.Tensor) and x.dim() == 0 else x
        try:
            made = torch.tensor(value, dtype=a.dtype)
        except (RuntimeError, TypeError, ValueError, OverflowError) as e:
            raise ValueError(f"{name}: {{a.name}} is {{x!r}}: {{e}}") from None
        if made.dim() or not a.dtype.is_floating_point and made.item() != value:
            raise ValueError(f"{name}: {{a.name}} is {{x!r}}, which is no {{a.dtype}}")
        return made
    if not isinstance(x, torch.Tensor) or x.device.type != "cpu" or x.dtype is not a.dtype or x.dim() != a.dimensions:
        shown = f"{{x.device.type}}, {{x.dtype}} and {{x.dim()}} dimensions" if isinstance(x, torch.Tensor) else repr(x)
        raise TypeError(f"{name}: {{a.name}} must be a CPU tensor of {{a.dtype}} with {{a.dimensions}} dimensions, not {{shown}}")
    return x.detach().contiguous()


def call(entry, arguments, tensors):
    """Run a pipeline. Raises RuntimeError with its message when it fails."""
    buffers = [None if a.dimensions is None else Buffer.of(a, t) for a, t in zip(arguments, tensors)]
    values = (ctypes.c_void_p * len(buffers))(*(t.data_ptr() if b is None else ctypes.addressof(b) for b, t in zip(buffers, tensors)))
    code = getattr(LIBRARY, entry + "_argv")(values)
    if code:
        raise RuntimeError(f"{{entry}} failed with error {{code}}: {{LIBRARY.hl_last_error().decode()}}")


class {class_name}(torch.autograd.Function):
    """`apply(shapes, *inputs)`, with a shape for each output; gives the outputs, a tuple if there are several."""

    @staticmethod
    def forward(shapes, *inputs):
        tensors = [given(a, x) for a, x in zip(INPUTS, inputs)]
        outputs = [torch.empty(shape, dtype=a.dtype) for a, shape in zip(OUTPUTS, shapes)]
        call({entry!r}, INPUTS + OUTPUTS, tensors + outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs[1:]]
        ctx.save_for_backward(*(x for x in inputs[1:] if isinstance(x, torch.Tensor)))

    @staticmethod
    def backward(ctx, *adjoints):
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if x is None else x for x in ctx.numbers]
        results = iter({class_name}Gradient.apply(*inputs, *adjoints))
        gradients = [next(results) if a.dtype.is_floating_point else None for a in INPUTS]
        return (None, *(g.to(x.dtype) if needed else None for g, x, needed in zip(gradients, inputs, ctx.needs_input_grad[1:])))


class {class_name}Gradient(torch.autograd.Function):
    """`apply(*inputs, *derivatives_for_outputs)` gives a tuple of the derivatives for the inputs of floats."""

    @staticmethod
    def forward(*values):
        inputs = [given(a, x) for a, x in zip(INPUTS, values)]
        losses = tuple(
            Argument("the derivative for " + o.name, o.dtype if o.dtype.is_floating_point else torch.float32, o.dimensions)
            for o in OUTPUTS
        )
        weights = [x.detach().to(a.dtype).contiguous() for a, x in zip(losses, values[len(INPUTS):])]
        floats = [(a._replace(dimensions=x.dim()), torch.empty_like(x)) for a, x in zip(INPUTS, inputs) if a.dtype.is_floating_point]
        call({gradient!r}, (*INPUTS, *losses, *(a for a, _ in floats)), [*inputs, *weights, *(x for _, x in floats)])
        return tuple(x for _, x in floats)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *adjoints):
        raise RuntimeError("{name} can be differentiated once: its derivatives were compiled, those of the derivatives were not")


def {name}({parameters}{separator}shape=None):
    """The pipeline on tensors and numbers. `shape`: {shapes}; by default an output has that of the first input with as many dimensions.

    Raises TypeError and ValueError for inputs that do not fit, RuntimeError with the pipeline's message when it fails.
    """
    inputs = ({parameters}{comma})
    shapes = [None] * len(OUTPUTS) if shape is None else [shape] if len(OUTPUTS) == 1 else list(shape)
    if len(shapes) != len(OUTPUTS):
        raise ValueError(f"{name} has {{len(OUTPUTS)}} outputs, but shape has {{len(shapes)}} elements")
    like = {{x.dim(): tuple(x.shape) for x in reversed(inputs) if isinstance(x, torch.Tensor)}}
    for i, a in enumerate(OUTPUTS):
        if shapes[i] is None and a.dimensions and a.dimensions not in like:
            raise TypeError(f"{name}: no input has {{a.dimensions}} dimensions, as the output {{a.name}} has; give its shape=")
        shapes[i] = tuple(shapes[i]) if shapes[i] is not None else like[a.dimensions] if a.dimensions else ()
        if len(shapes[i]) != a.dimensions:
            raise ValueError(f"{name}: the output {{a.name}} has {{a.dimensions}} dimensions, but its shape is {{shapes[i]}}")
    return {class_name}.apply(tuple(shapes), *inputs)
'''
