"""Buffers that a pipeline contains rather than takes: their data as C text, and the function that passes them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen_c.metadata import metadata
from ..codegen_c.module import argument_name, exports, parameter
from ..ir.module import LoweredArgument, LoweredFunction


@dataclass(frozen=True)
class ConstantBuffer:
    """A buffer that an expression reads directly: `data` are its elements in memory order, dense in the strides of `shape`."""

    argument: LoweredArgument
    shape: tuple[tuple[int, int, int], ...]  # (min, extent, stride in elements)
    data: bytes


def _data(name: str, c: ConstantBuffer) -> str:
    t = c.argument.type
    words = [c.data[k:k + 32] for k in range(0, len(c.data), 32)]
    text = ",\n    ".join(", ".join(map(str, w)) for w in words) or "0"
    dims = ", ".join(f"{{{low}, {extent}, {stride}, 0}}" for low, extent, stride in c.shape) or "{0, 0, 0, 0}"
    kind = f"{{(halide_type_code_t){int(t.code())}, {t.bits()}, 1}}"
    return (f"/* buffer {c.argument.name} */\nstatic uint8_t {name}_data[{max(len(c.data), 1)}] __attribute__((aligned(64))) = "
            f"{{\n    {text}\n}};\n"
            f"static halide_dimension_t {name}_dim[{max(len(c.shape), 1)}] = {{{dims}}};\n"
            f"static struct halide_buffer_t {name} = {{0, HL_NULL, {name}_data, 0, {kind}, {len(c.shape)}, {name}_dim, HL_NULL}};\n")


def call_with_constants(public: LoweredFunction, inner: LoweredFunction, constants: Sequence[ConstantBuffer], target: str,
                        needs: Sequence[str]) -> str:
    """C text of the data and of `public`, which calls `inner` with what it is given and the data; its metadata name `target`."""
    names = {c.argument.name: f"{public.name}_constant{i}" for i, c in enumerate(constants)}
    values = ", ".join(f"&{names[a.name]}" if a.name in names else argument_name(a) for a in inner.args)
    parameters = ", ".join(parameter(a) for a in public.args) or "void"
    return "\n".join(["", *(_data(names[c.argument.name], c) for c in constants),
                      f"static int {public.name}_body({parameters}) {{\n    return "
                      f"{inner.name}_body({values});\n}}\n", exports(public, needs), metadata(public, target),
                      ""])
