"""PyTorch's side of pipelines: a header for C++ with functions of tensors, and a Python module with a `torch.autograd.Function`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from ..errors import CompileError
from ..ir.module import USER_CONTEXT, ArgumentKind, LoweredArgument, LoweredFunction, LoweredModule
from ..ir.types import Type, TypeCode
from .ctypes_of import c_identifier, c_string, is_half, memory_type
from .module import argument_name, in_namespaces
from .pytorch_module import MODULE

_TENSORS = """#ifndef HL_PYTORCH_TENSORS_H
#define HL_PYTORCH_TENSORS_H
namespace hl_pytorch {

/* A tensor as a buffer: the last dimension comes first. */
struct buffer {
    halide_buffer_t raw{};
    halide_dimension_t dims[16]{};

    buffer(const char *name, const at::Tensor &t, at::ScalarType type, int code, int bits, int dimensions) {
        static uint8_t nothing[64]; /* a buffer without memory asks for its shape, a tensor without elements does not */
        TORCH_CHECK(t.device().is_cpu(), name, " must be a CPU tensor");
        TORCH_CHECK(t.is_contiguous(), name, " must be contiguous");
        TORCH_CHECK(t.scalar_type() == type, name, " must be of type ", type, ", not ", t.scalar_type());
        TORCH_CHECK(t.dim() == dimensions, name, " must have ", dimensions, " dimensions, not ", t.dim());
        for (int d = 0; d < dimensions; d++) {
            const int64_t extent = t.size(dimensions - 1 - d), stride = t.stride(dimensions - 1 - d);
            TORCH_CHECK(extent <= INT32_MAX && stride <= INT32_MAX, name, " is too large");
            dims[d].extent = (int32_t)extent;
            dims[d].stride = (int32_t)stride;
        }
        raw.host = t.numel() ? (uint8_t *)t.data_ptr() : nothing;
        raw.type.code = (decltype(raw.type.code))code;
        raw.type.bits = (uint8_t)bits;
        raw.type.lanes = 1;
        raw.dimensions = dimensions;
        raw.dim = dims;
    }
};

} // namespace hl_pytorch
#endif

"""
_NAMES = {TypeCode.Int: "int", TypeCode.UInt: "uint", TypeCode.Float: "float", TypeCode.BFloat: "bfloat"}
_SCALAR_TYPES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
}


def _torch_type(f: LoweredFunction, a: LoweredArgument) -> str:
    """PyTorch's name of an argument's type. Raises CompileError for pointers."""
    if a.type.is_handle():
        raise CompileError(f"PyTorch cannot pass the pointer {a.shown} of {f.display_name or f.name}; only tensors and numbers")
    return "bool" if a.type.is_bool() else f"{_NAMES[a.type.code()]}{a.type.bits()}"


def _scalar(a: LoweredArgument) -> str:
    t: Type = a.type
    return "bool" if t.is_bool() else "float" if is_half(t) else memory_type(t)


def _tensor_function(f: LoweredFunction) -> str:
    """`NAME_th_`, which takes tensors for buffers."""
    args = [a for a in f.args if a.name != USER_CONTEXT]
    for a in args:
        if is_half(a.type) and not a.is_buffer():
            raise CompileError(f"The header for PyTorch cannot pass the {a.type} scalar {a.shown}; make it a float32 and cast it in the "
                               "pipeline")
    kinds = {a.name: _torch_type(f, a) for a in args}
    parameters = ", ".join(f"{'at::Tensor &' if a.is_buffer() else _scalar(a) + ' '}{c_identifier(a.shown)}" for a in args)
    lines = [f"inline int {f.simple}_th_({parameters}) {{"]
    for a in args:
        if a.is_buffer():
            name, code = c_identifier(a.shown), f"{int(a.type.code())}, {a.type.bits()}, {a.dimensions}"
            lines.append(f'    hl_pytorch::buffer {argument_name(a)}({c_string(a.shown)}, {name}, '
                         f'at::ScalarType::{_SCALAR_TYPES[kinds[a.name]]}, {code});')
    passed = ", ".join(
        "nullptr" if a.name == USER_CONTEXT else f"&{argument_name(a)}.raw" if a.is_buffer() else c_identifier(a.shown) for a in f.args
    )
    lines += [f"    const int code = ::{f.qualified}({passed});",
              f'    TORCH_CHECK(code == 0, "{f.qualified} failed with error ", code, ": ", hl_last_error());', "    return 0;", "}", ""]
    return in_namespaces(f, "\n".join(lines))


def pytorch_header(module: LoweredModule, c_header: str, last_error: str) -> str:
    """The text of `NAME.pytorch.h` for C++17 with PyTorch's headers: for each function NAME of the module `int NAME_th_(...)`, whose
    buffers are contiguous CPU tensors, the last dimension of a tensor being the first of its buffer. It throws `c10::Error` when the
    pipeline fails.

    `c_header` is the header of the functions, which becomes part of it. Raises CompileError for arguments that PyTorch cannot pass.
    """
    functions = "\n".join(_tensor_function(f) for f in module.functions).replace("hl_last_error()", f"{last_error}()")
    guard = f"HL_PYTORCH_{module.name.upper()}_H"
    return (f"/* {module.name} for PyTorch: made by halide_py. */\n#ifndef {guard}\n#define {guard}\n\n#include "
            f"<ATen/ATen.h>\n\n{c_header}\n{_TENSORS}{functions}\n#endif\n")


def pytorch_module(forward: LoweredFunction, backward: LoweredFunction, library: str) -> str:
    """The text of a Python module which needs PyTorch alone and calls the shared library beside it, whose file is named `library`.

    `backward` takes the inputs of `forward` and a derivative for each output; it gives a derivative for each input of floats.
    """
    inputs = [a for a in forward.args if a.kind is not ArgumentKind.OutputBuffer]
    outputs = [a for a in forward.args if a.kind is ArgumentKind.OutputBuffer]
    names = _python_names([a.shown for a in inputs])
    rows = [f"    Argument({name!r}, torch.{_torch_type(forward, a)}, "
            f"{a.dimensions if a.is_buffer() else None})," for name, a in zip(names, inputs)]
    results = [f"    Argument({a.shown!r}, torch.{_torch_type(forward, a)}, {a.dimensions})," for a in outputs]
    shapes = "a shape" if len(outputs) == 1 else "a list of shapes"
    class_name = "".join(w[:1].upper() + w[1:] for w in forward.simple.split("_")) or "Pipeline"
    taken = class_name if class_name != forward.simple else class_name + "Function"
    return MODULE.format(
        name=forward.simple,
        library=library,
        entry=forward.qualified,
        gradient=backward.qualified,
        inputs="\n".join(rows),
        outputs="\n".join(results),
        parameters=", ".join(names),
        comma="," if len(names) == 1 else "",
        shapes=shapes,
        class_name=taken,
        separator=", " if names else "",
    )


def _python_names(names: Sequence[str]) -> list[str]:
    clean = [re.sub(r"\W", "_", name) for name in names]
    return [name + "_" if keyword.iskeyword(name) or name == "shape" else name for name in clean]
