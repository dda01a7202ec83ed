"""Pipelines to bytes or files and back: definitions, schedules, the Buffers they contain; what Params are set to, not what ImageParams are
bound to."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..driver.files import check_paths, write_file
from ..errors import CompileError
from ..ir import archive
from ..ir.names import unique_name
from ..ir.parameter import Parameter as ParameterData
from ..ir.parameter import by_name
from ..ir.types import Type
from ..lower.environment import environment
from .argument import is_embedded
from .buffer import Buffer
from .edits import count_edit
from .func import Func
from .one_of import one_of
from .parameter import Parameter
from .pipeline import Pipeline
from .saved import saved
from .storage import dtype_of


def serialize_pipeline(pipeline: Pipeline, filename: str | os.PathLike[str] | None = None, *, get_params: bool | None = None) -> Any:
    """Save a pipeline in a file, or without one as the bytes returned; with `get_params` also give its Parameters by name.

    Rules of custom gradients are not saved. Raises CompileError for an undefined pipeline, C functions that are addresses in this process,
    and files that cannot be written.
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"serialize_pipeline() takes a Pipeline, not {pipeline!r}")
    if not pipeline.defined():
        raise CompileError("serialize_pipeline(): the Pipeline is undefined; it needs at least one Func")
    inputs, data = saved(pipeline.functions, pipeline.requirements)
    external = {name: Parameter.of(p) for name, p in _named(inputs).items()}
    if filename is None:
        return (data, external) if get_params else data
    check_paths([os.fspath(filename)])
    write_file(os.fspath(filename), data)
    return external if get_params else None


def deserialize_pipeline(data: bytes | str | os.PathLike[str] | None = None, user_params: Mapping[str, Parameter] = {}, *,  # noqa: B006
                         filename: str | os.PathLike[str] | None = None) -> Pipeline:
    """A pipeline from bytes or a file; `user_params` take the place of its parameters of the same names.

    Raises CompileError for what was not made by this version of `serialize_pipeline` or is damaged, and for parameters of another type.
    """
    content = _bytes(one_of("deserialize_pipeline()", data=data, filename=filename))
    replaced = _checked(user_params, _load(content)[2]) if user_params else {}
    functions, requirements, inputs = _load(content, replaced)
    with archive.refusing_what_is_malformed():
        for name in (*environment(functions), *(p.name for p in inputs)):
            unique_name(name)  # later Funcs and Params do not get the names of these
        pipeline = Pipeline([Func.of(f) for f in functions])
    pipeline.requirements = requirements
    count_edit()
    return pipeline


def deserialize_parameters(
    data: bytes | str | os.PathLike[str] | None = None, *, filename: str | os.PathLike[str] | None = None
) -> dict[str, Parameter]:
    """The parameters of a saved pipeline by name."""
    content = _bytes(one_of("deserialize_parameters()", data=data, filename=filename))
    inputs = _load(content)[2]
    with archive.refusing_what_is_malformed():
        return {name: Parameter.of(p) for name, p in _named(inputs).items()}


def _named(inputs: Sequence[ParameterData]) -> dict[str, ParameterData]:
    """What is not contained in the pipeline, by the names users know."""
    return by_name([p for p in inputs if not is_embedded(p)])


def _bytes(data: Any) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    path = os.fspath(data)
    try:
        if stat.S_ISCHR(os.stat(path).st_mode):
            raise CompileError(f"Cannot read the pipeline saved in {path}: it is a device, which may have no end")
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as e:  # ValueError: a name with a null character
        raise CompileError(f"Cannot read the pipeline saved in {path!r}: {getattr(e, 'strerror', None) or e}") from None


def _load(content: bytes, replaced: Mapping[str, ParameterData] = {}) -> tuple[list[Any], list[Any], list[ParameterData]]:  # noqa: B006
    root = archive.read(content, _buffer_in, dict(replaced))
    with archive.refusing_what_is_malformed():
        functions, requirements, inputs = root
        for p in inputs:
            if p.is_buffer and p.buffer is not None and p.name not in replaced:
                p.buffer.storage.param = p
                p.buffer.storage.promise_strides()  # it is stored without gaps, whatever it was
        return functions, requirements, inputs


def _checked(given: Mapping[str, Parameter], saved: list[ParameterData]) -> dict[str, ParameterData]:
    known = _named(saved)
    out: dict[str, ParameterData] = {}
    for name, handle in given.items():
        new, old = handle.param if isinstance(handle, Parameter) else None, known.get(name)
        if new is None:
            raise TypeError(f"user_params[{name!r}] must be a defined Parameter, not {handle!r}; a Param or ImageParam has one: "
                            "p.parameter()")
        if old is None:
            continue  # one set of parameters may serve several pipelines
        if (new.type, new.is_buffer, new.dimensions) != (old.type, old.is_buffer, old.dimensions):
            raise CompileError(f"user_params[{name!r}] is {_described(new)}, but the saved pipeline takes {_described(old)}")
        out[old.name] = new
    return out


def _described(p: ParameterData) -> str:
    return f"a buffer of {p.type} with {p.dimensions} dimensions" if p.is_buffer else f"a scalar of type {p.type}"


def _buffer_in(v: Any) -> Buffer:
    name, (code, bits, lanes), mins, shape, order, data = v
    t = Type(code, bits, lanes)
    dense = np.frombuffer(bytearray(base64.b64decode(data)), dtype_of(t)).reshape([shape[d] for d in order])
    array = dense.transpose([order.index(d) for d in range(len(order))])
    b = Buffer.of_shape(
        t, [(low, extent, stride // max(array.itemsize, 1)) for low, extent, stride in zip(mins, shape, array.strides)], name
    )
    b.array[...] = array
    return b
