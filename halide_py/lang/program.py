"""Program: a Pipeline compiled for one target, and the ways to call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import driver
from ..driver.abi import ArgumentBlock, RawBuffer
from ..driver.graph import Requirement
from ..errors import CompileError, PipelineError
from ..ir.function import Function
from ..ir.module import LoweredArgument
from ..ir.parameter import Parameter
from ..ir.target import Target
from .buffer import Buffer
from .storage import DTYPE_OF, Shape

_MOST_QUERIES = 16


class Program:
    """A compiled pipeline whose scalar inputs are the values of Params and whose input buffers are bound to ImageParams or embedded."""

    def __init__(self, outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                 requirements: Sequence[Requirement], described: str = "") -> None:
        self.compiled: driver.compile.CompiledPipeline = driver.compile.compile_pipeline(
            outputs, args, name, target, requirements, described
        )
        self.edits = -1  # number of edits when this was last known to be up to date
        inputs: list[tuple[int, Parameter]] = [(i, a.param) for i, a in enumerate(args) if a.param is not None]
        self.buffers = [(i, p) for i, p in inputs if p.is_buffer]
        self.scalars = [(i, p) for i, p in inputs if not p.is_buffer]
        self.first_output = len(args)
        self.output_args = self.compiled.args[len(args):]
        # The last sizes asked for and what else the shapes needed depend on, these shapes, and whether they are the sizes and no more.
        self._answer: tuple[list[Any], list[Shape], bool] = [None], [], False

    def realize_into(self, buffers: Sequence[Buffer]) -> None:
        """Run on the buffers given, one an output. What every repeated call goes through, so it does nothing that was done when
        compiling."""
        compiled = self.compiled
        block = compiled.block()
        c = block.c
        try:
            self._bind_inputs(block)
            i = self.first_output
            for b in buffers:
                raw = b.storage.raw or b.raw
                if not raw.writable:
                    raise ValueError(f"Output buffer {self.compiled.args[i].name} is on read-only memory")
                c[i] = raw.c
                i += 1
            code = compiled.entry(c)
        finally:
            compiled.release(block)
        if code:
            compiled.fail(code)

    def _bind_inputs(self, block: ArgumentBlock) -> None:
        """Put what Params and ImageParams are set to into an argument block."""
        c = block.c
        for i, p in self.buffers:
            b = p.buffer
            if b is None:
                raise unset(p)
            c[i] = (b.storage.raw or b.raw).c
        for i, p in self.scalars:
            value, cell = p.value, block.cells[i]
            if value is None:
                raise unset(p)
            if type(value) is cell.kind:  # type: ignore[union-attr]
                cell.c[0] = value  # type: ignore[union-attr]
            else:
                cell.set(value)  # type: ignore[union-attr]

    def run_raw(self, inputs: dict[Parameter, RawBuffer], outputs: Sequence[RawBuffer]) -> None:
        """Run with C views of the outputs; `inputs` stand for ImageParams that have no data."""
        block = self.compiled.block()
        try:
            for i, p in self.buffers:
                raw = inputs.get(p) or (p.buffer.raw if p.buffer is not None else None)
                if raw is None:
                    raise unset(p)
                block.c[i] = raw.c
            for i, p in self.scalars:
                if p.value is None:
                    raise unset(p)
                block.cells[i].set(p.value)  # type: ignore[union-attr]
            for i, raw in enumerate(outputs, self.first_output):
                block.c[i] = raw.c
            self.compiled.run(block)
        finally:
            self.compiled.release(block)

    def realize_sizes(self, sizes: Sequence[int]) -> list[Buffer]:
        """Fresh outputs of the given sizes: ask what the schedule needs, allocate that, compute, crop.

        Asked again for what was answered last, with the same inputs' shapes and Params, the answer is the same.
        """
        key = [*sizes]
        for _, p in self.buffers:
            b = p.buffer
            key.append(-1 if b is None else (b.storage.raw or b.raw).number)
        for _, p in self.scalars:
            key.append(p.value)
        asked, shapes, plain = self._answer
        if key != asked:
            shapes = self._query(sizes)
            plain = all(sizes) and all(_dense(shape, sizes) for shape in shapes)
            self._answer = key, shapes, plain
        if plain:
            return self._realize_plain(sizes)
        wanted = [(0, extent) for extent in sizes]
        # A schedule that promises less than the size asked for is refused by the pipeline's own check, which says so.
        full = [
            Buffer.of_shape(a.type, shape) if _covers(shape, wanted) else Buffer(a.type, list(sizes))
            for a, shape in zip(self.output_args, shapes)
        ]
        self.realize_into(full)
        return [b if _plain(s, wanted) else b.cropped([(low, extent) for low, extent in wanted]) for b, s in zip(full, shapes)]

    def _query(self, sizes: Sequence[int]) -> list[Shape]:
        """The shapes that the outputs must have to hold the given sizes."""
        wanted = [(0, extent) for extent in sizes]
        queries = [RawBuffer.query(a.type, wanted) for a in self.output_args]
        if sizes and min(sizes) < 0:
            d = next(d for d, s in enumerate(sizes) if s < 0)
            raise PipelineError(f"Error: The extents for buffer Output buffer {self.output_args[0].name} dimension {d} is negative "
                                f"({sizes[d]}) (in pipeline {self.compiled.name})")
        shapes: list[Shape] = []
        for _ in range(_MOST_QUERIES):
            before = shapes
            self.run_raw({}, queries)
            shapes = [q.shape() for q in queries]
            if not sizes or shapes == before or all(_covers(s, wanted) and _plain(s, wanted) for s in shapes):
                return shapes
        raise PipelineError(f"Error: realize({[*sizes]}) finds no size for the outputs: what has to be computed still grows after "
                            f"{_MOST_QUERIES} bounds queries, since loops of an output compute more than is asked for (RoundUp of fused "
                            "loops, say) and that reads more of another; give such loops TailStrategy.GuardWithIf (in pipeline "
                            f"{self.compiled.name})")

    def _realize_plain(self, sizes: Sequence[int]) -> list[Buffer]:
        """Fresh outputs of just these sizes, dense: through C views that are used again."""
        compiled, extents, i = self.compiled, sizes[::-1], self.first_output
        block = compiled.block()
        out = []
        try:
            self._bind_inputs(block)
            for a in self.output_args:
                array, slot = np.empty(extents, DTYPE_OF[a.type]), block.slots[i]
                block.c[i] = (slot.take(array) or slot.fill(a.type, array)).c  # type: ignore[union-attr]
                out.append(Buffer.of_array(a.type, array.T))
                i += 1
            code = compiled.entry(block.c)
        finally:
            compiled.release(block)
        if code:
            compiled.fail(code)
        return out

    def infer_input_bounds(self, outputs: Sequence[RawBuffer]) -> None:
        """Ask for the shapes of the ImageParams without data until the answer is stable, then give them Buffers of zeros. `outputs` may be
        queries too."""
        unset_buffers = {p: RawBuffer.query(p.type, [(0, 0)] * p.dimensions) for _, p in self.buffers if p.buffer is None}
        queries = [raw for raw in (*unset_buffers.values(), *outputs) if raw.is_query()]
        before: list[Shape] = []
        for _ in range(_MOST_QUERIES):
            if not queries:
                return
            self.run_raw(unset_buffers, outputs)
            shapes = [q.shape() for q in queries]
            if shapes == before:
                break
            before = shapes
        else:
            raise PipelineError(f"Error: infer_input_bounds() does not converge: the shapes required still change after {_MOST_QUERIES} "
                                f"iterations; are the constraints on the buffers' shapes contradictory? (in pipeline {self.compiled.name})")
        for p, raw in unset_buffers.items():
            p.buffer = Buffer.of_shape(p.type, raw.shape(), p.name)
            p.buffer.array.fill(0)


def unset(p: Parameter) -> CompileError:
    """The error for an input without data."""
    if p.is_buffer:
        return CompileError(f"Buffer argument {p.name} is nullptr: bind data to the ImageParam with set(), or let infer_input_bounds() "
                            "make it")
    return CompileError(f"Parameter {p.name} does not have a valid scalar value: give the Param one with set()")


def _covers(shape: Shape, wanted: Sequence[tuple[int, int]]) -> bool:
    return all(low <= w and low + extent >= w + size for (low, extent, _), (w, size) in zip(shape, wanted))


def _dense(shape: Shape, sizes: Sequence[int]) -> bool:
    """Whether a shape is just these sizes, with mins of 0 and nothing between the elements."""
    stride = 1
    for one, size in zip(shape, sizes):
        if one != (0, size, stride):
            return False
        stride *= size
    return True


def _plain(shape: Shape, wanted: Sequence[tuple[int, int]]) -> bool:
    return all((low, extent) == w for (low, extent, _), w in zip(shape, wanted))


def as_buffer(x: Any, name: str = "") -> Buffer:
    """A Buffer from what users pass as one: a Buffer, or an array that is wrapped without a copy."""
    return x if isinstance(x, Buffer) else Buffer(x, name=name)


def is_array(x: Any) -> bool:
    """Whether something is passed as a buffer."""
    if isinstance(x, np.generic):  # NumPy's numbers may be sizes
        return False
    return isinstance(x, (Buffer, np.ndarray)) or hasattr(x, "__array_interface__") or isinstance(x, (bytearray, memoryview))
