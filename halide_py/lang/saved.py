"""Pipelines as bytes: what `serialize_pipeline` saves, and files of kind hlpipe contain."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..driver.graph import Requirement, parameters
from ..errors import CompileError
from ..ir import archive
from ..ir.function import Function
from ..ir.parameter import Parameter
from .argument import is_embedded
from .buffer import Buffer


def saved(functions: Sequence[Function], requirements: Sequence[Requirement]) -> tuple[list[Parameter], bytes]:
    """The parameters and the bytes of a pipeline. Raises CompileError for what cannot be saved."""
    inputs = parameters(functions, requirements)
    images = [p for p in inputs if p.is_buffer and p.buffer is not None and not is_embedded(p)]
    bound = [p.buffer for p in images]
    for p in images:  # their data comes with each run
        p.buffer = None
    try:
        return inputs, archive.write([functions, list(requirements), inputs], _buffer_out)
    finally:
        for p, b in zip(images, bound):
            p.buffer = b


def _buffer_out(x: Any) -> Any:
    """A Buffer as JSON; its memory dense, dimensions in the order of its strides."""
    if not isinstance(x, Buffer):
        raise CompileError(f"A pipeline that contains a {type(x).__name__} cannot be saved")
    array, t = x.array, x.type()
    order = sorted(range(array.ndim), key=lambda d: abs(array.strides[d]), reverse=True)
    dense = np.ascontiguousarray(array.transpose(order))
    mins = [low for low, _, _ in x.storage.shape()]
    return [
        x.storage.name,
        [int(t.code()), t.bits(), t.lanes()],
        mins,
        list(array.shape),
        order,
        base64.b64encode(dense.tobytes()).decode(),
    ]
