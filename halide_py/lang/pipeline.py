"""Pipeline: one or more output Funcs that are compiled and run together."""

from __future__ import annotations

import os
import sys
from typing import Any, Sequence

import numpy as np

from ..codegen_c import generate, header
from ..driver import aot
from ..driver.abi import RawBuffer, scalar_cell
from ..driver.compile import CompiledPipeline, compile_pipeline, lowered_module, machine_of
from ..driver._ffi import ffi
from ..driver.fingerprint import fingerprint
from ..driver.toolchain import toolchain
from ..errors import CompileError, PipelineError
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.module import LoweredArgument
from ..ir.parameter import Parameter
from ..ir.printer import to_text
from ..ir.target import Target
from ..ir.traverse import nodes_of
from ..lower.environment import definition_roots, environment
from ..lower.print_loop_nest import loop_nest_text
from .argument import Argument, to_argument
from .buffer import Buffer
from .callable import Callable
from .edits import Edits
from .expr import to_expr
from .ops import _printable
from .target import get_jit_target_from_environment


def parameters_of(outputs: Sequence[Function], requirements: Sequence[Any] = ()) -> list[Parameter]:
    """The inputs of a pipeline: buffers by name, then scalars by name. Raises CompileError for two of one name."""
    own = {id(p) for f in outputs for p in f.output_params}
    found: dict[str, Parameter] = {}
    roots: list[n.Node] = [e for c, m in requirements for e in (c, *m)]
    for f in environment(outputs).values():
        for d in f.stages():
            roots += definition_roots(d)
            roots += [s.factor for s in d.schedule.splits if s.factor is not None]
        for bound in f.schedule.bounds:
            roots += [e for e in (bound.min, bound.extent, bound.modulus, bound.remainder) if e is not None]
        for p in f.output_params:
            roots += [e for d in p.dims for e in (d.min, d.extent, d.stride) if e is not None]
    while roots:
        more: list[n.Node] = []
        for one in nodes_of(roots, (n.Variable, n.Call)):
            p = one.param
            if p is None or id(p) in own:
                continue
            known = found.setdefault(p.name, p)
            if known is not p:
                raise CompileError(f"Two different parameters or buffers of the pipeline are named {p.name}; give them distinct names")
            if id(p) not in own:
                own.add(id(p))
                more += [e for e in (p.minimum, p.maximum, *(e for d in p.dims for e in (d.min, d.extent, d.stride))) if e is not None]
        roots = more
    return sorted(found.values(), key=lambda p: (not p.is_buffer, p.name))


class _Bound:
    """A compiled pipeline with its argument block filled for certain buffers."""

    def __init__(self, compiled: CompiledPipeline, inputs: Sequence[Parameter], outputs: Sequence[RawBuffer]) -> None:
        self.compiled, self.outputs = compiled, list(outputs)
        self.held: list[Any] = list(outputs)
        self.scalars: list[tuple[Parameter, Any]] = []
        self.buffers: list[tuple[Parameter, Any, Any]] = []
        cells: list[Any] = []
        for p in inputs:
            if p.is_buffer:
                raw = p.buffer.raw
                self.buffers.append((p, p.buffer, raw))
                self.held.append(raw)
                cells.append(ffi.cast("void *", raw.c))
            else:
                cell = scalar_cell(p.type, p.value)
                self.scalars.append((p, cell))
                cells.append(ffi.cast("void *", cell))
        cells += [ffi.cast("void *", o.c) for o in outputs]
        self.block = ffi.new("void *[]", cells or [ffi.NULL])

    def is_current(self) -> bool:
        """Whether the inputs are still the very same buffers."""
        return all(p.buffer is held and held.raw is raw for p, held, raw in self.buffers)

    def run(self) -> None:
        """Run with the scalars' values of now."""
        for p, cell in self.scalars:
            if p.type.is_float() and p.type.bits() == 16:
                cell[0] = scalar_cell(p.type, p.value)[0]
            else:
                cell[0] = p.value
        self.compiled.run(self.block)


class Pipeline:
    """Output Funcs that are computed together: `Pipeline([f, g]).realize([64, 64])`. A Func alone has the same methods."""

    def __init__(self, outputs: Any = None) -> None:
        funcs = [] if outputs is None else list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        self._funcs = funcs
        self._requirements: list[tuple[n.Expr, tuple[n.Expr, ...]]] = []
        self._compiled: tuple[str, CompiledPipeline, list[Parameter]] | None = None
        self._bound: tuple[tuple[Any, ...], _Bound] | None = None
        self._edit = -1

    # -- what it is

    def defined(self) -> bool:
        """Whether it has outputs."""
        return bool(self._funcs)

    def outputs(self) -> list[Any]:
        """The output Funcs."""
        return list(self._funcs)

    def get_func(self, index: int) -> Any:
        """Func number `index` of those the pipeline computes, producers first."""
        env = list(environment(self._functions()).values())
        for f in self._funcs:
            if f.function is env[index]:
                return f
        from_data = type(self._funcs[0]).__new__(type(self._funcs[0]))
        from_data.function, from_data._pipeline = env[index], None
        return from_data

    def _functions(self) -> list[Function]:
        if not self._funcs:
            raise CompileError("This Pipeline is undefined; give it output Funcs")
        for f in self._funcs:
            if f.function.pure is None:
                raise CompileError(f"Func {f.function.name} is realized or compiled, but it is not defined yet")
        return [f.function for f in self._funcs]

    def name(self) -> str:
        """What messages call it: its first output."""
        return self._functions()[0].name.split("$")[0]

    def __repr__(self) -> str:
        return f"<halide.Pipeline of {', '.join(f.function.name for f in self._funcs) or 'nothing'}>"

    def add_requirement(self, condition: Any, *args: Any) -> None:
        """A condition on parameters, checked before each run; `args` are shown when it fails."""
        c = to_expr(condition).as_node()
        if not c.type.is_bool():
            raise CompileError(f"add_requirement() needs a bool, not {c.type}")
        for v in nodes_of(c, n.Variable):
            if v.param is None:
                raise CompileError(f"The requirement {to_text(c)} uses {v.name}; only parameters may occur in it")
        self._requirements.append((c, tuple(_printable(args))))

    def invalidate_cache(self) -> None:
        """Compile again at the next use."""
        self._compiled = self._bound = None

    def infer_arguments(self) -> list[Argument]:
        """The inputs, in the order a compiled function takes them: buffers by name, then scalars by name."""
        return [Argument(p) for p in parameters_of(self._functions(), self._requirements)]

    # -- compiling

    def _target(self, target: Target | None) -> Target:
        return get_jit_target_from_environment() if target is None or not target.arch else target

    def _lowered(self, arguments: Sequence[Any] | None) -> list[LoweredArgument]:
        """The arguments given, checked to hold every input; all inputs when none are given."""
        needed = parameters_of(self._functions(), self._requirements)
        if arguments is None:
            return [Argument(p).lowered() for p in needed]
        given = [to_argument(a) for a in arguments]
        for p in needed:
            if all(a.param is not p for a in given):
                if p.is_buffer and p.buffer is not None and p.buffer.param is p:
                    raise CompileError(f"The pipeline uses the Buffer {p.name}, which is not among the arguments; make it an argument, or use an ImageParam")
                raise CompileError(f"The pipeline needs {p.name}, but the arguments are only ({', '.join(a.name for a in given)}); "
                                   f"needed are ({', '.join(q.name for q in needed)})")
        return [a.lowered() for a in given]

    def _key(self, target: Target) -> str:
        args = [Argument(p).lowered() for p in parameters_of(self._functions(), self._requirements)]
        return fingerprint(self._functions(), args, self.name(), target, self._requirements, "")

    def compile_jit(self, target: Target | None = None) -> None:
        """Compile now; realize() does it when needed."""
        self._jit(self._target(target))

    def _jit(self, target: Target) -> CompiledPipeline:
        functions = self._functions()
        key = self._key(target)
        if self._compiled is None or self._compiled[0] != key:
            inputs = parameters_of(functions, self._requirements)
            compiled = compile_pipeline(functions, [Argument(p).lowered() for p in inputs], self.name(), target, self._requirements)
            self._compiled, self._bound = (key, compiled, inputs), None
            for f in functions:
                f.frozen = True
        return self._compiled[1]

    # -- running

    def _check_inputs(self, inputs: Sequence[Parameter]) -> None:
        for p in inputs:
            if p.is_buffer and (p.buffer is None or not p.buffer.defined()):
                raise PipelineError(f"Error: in pipeline {self.name()}: Buffer argument {p.name} is nullptr: no Buffer was set; call {p.name}.set(buffer) before realize()")
            if not p.is_buffer and p.value is None:
                raise PipelineError(f"Error: in pipeline {self.name()}: Parameter {p.name} does not have a valid scalar value; call {p.name}.set(value) before realize()")

    def realize(self, dst: Any = None, target: Target | None = None) -> Any:
        """Run the pipeline.

        `realize([width, height, ...])` makes and returns the output Buffer (one each for several outputs or tuple elements, as a tuple);
        `realize(buffer)` or `realize([buffers])` fills Buffers or NumPy arrays of yours; `realize()` is for outputs without dimensions.
        Raises CompileError for what cannot be compiled, PipelineError when a check fails or it fails while running.
        """
        if self._bound is not None:
            key, bound = self._bound
            given = (dst,) if isinstance(dst, Buffer) else tuple(dst) if isinstance(dst, list) else None
            if given is not None and len(given) == len(key) and all(a is c for a, c in zip(given, key)) and self._unchanged(bound):
                bound.run()
                return None
        return self._realize(dst, self._target(target))

    def _unchanged(self, bound: _Bound) -> bool:
        """Whether nothing that a bound run depends on has changed since: the definitions, the buffers' shapes, the inputs bound."""
        return bound.is_current() and self._compiled is not None and self._edit == Edits.number and all(
            b.raw is r for b, r in zip(self._bound[0], bound.outputs))  # type: ignore[index]

    def _realize(self, dst: Any, target: Target) -> Any:
        compiled = self._jit(target)
        assert self._compiled is not None
        inputs = self._compiled[2]
        self._check_inputs(inputs)
        buffers = self._destinations(dst)
        if buffers is None:
            return self._realize_sizes([] if dst is None else list(dst), compiled, inputs)
        for b in buffers:
            if not b.writable():
                raise PipelineError(f"Error: in pipeline {self.name()}: the output Buffer {b.name()} is on a read-only array")
        bound = _Bound(compiled, inputs, [b.raw for b in buffers])
        self._bound, self._edit = (tuple(buffers), bound), Edits.number
        bound.run()
        return None

    def _types(self) -> list[tuple[Any, int]]:
        return [(t, len(f.args)) for f in self._functions() for t in f.types]

    def _destinations(self, dst: Any) -> list[Buffer] | None:
        """Output Buffers the caller gave; None when sizes were given."""
        if isinstance(dst, (Buffer, np.ndarray)):
            dst = [dst]
        if not isinstance(dst, (list, tuple)) or not dst or not all(isinstance(d, (Buffer, np.ndarray)) for d in dst):
            return None
        buffers = [d if isinstance(d, Buffer) else Buffer(d) for d in dst]
        types = self._types()
        if len(buffers) != len(types):
            raise PipelineError(f"Error: in pipeline {self.name()}: realize() got {len(buffers)} output Buffers, but the pipeline has {len(types)} outputs")
        return buffers

    def _realize_sizes(self, sizes: Sequence[Any], compiled: CompiledPipeline, inputs: Sequence[Parameter]) -> Any:
        sizes = [int(s) for s in sizes]
        types = self._types()
        for (_, dims), f in zip(types, self._functions()):
            if dims != len(sizes):
                raise PipelineError(f"Error: in pipeline {self.name()}: Func {f.name} has {dims} dimensions, but realize() got {len(sizes)} sizes")
        queries = [RawBuffer(t, [(0, s, 0) for s in sizes], 0, None) for t, _ in types]
        shapes = [[(0, s) for s in sizes]] * len(types)
        if sizes:
            _Bound(compiled, inputs, queries).run()
            shapes = [[(low, extent) for low, extent, _ in q.shape()] for q in queries]
        made = []
        for (t, _), shape in zip(types, shapes):
            b = Buffer(t, [e for _, e in shape])
            b.set_min([low for low, _ in shape])
            made.append(b)
        _Bound(compiled, inputs, [b.raw for b in made]).run()
        for b in made:
            if [(b.dim(d).min(), b.dim(d).extent()) for d in range(len(sizes))] != [(0, s) for s in sizes]:
                b.crop([(0, s) for s in sizes])
        return made[0] if len(made) == 1 else tuple(made)

    def infer_input_bounds(self, dst: Any, target: Target | None = None) -> None:
        """Find what shapes the unset ImageParams must have for an output of these sizes (or these Buffers), and bind fresh Buffers of them."""
        compiled = self._jit(self._target(target))
        assert self._compiled is not None
        inputs = self._compiled[2]
        buffers = self._destinations(dst)
        types = self._types()
        if buffers is None:
            sizes = [int(s) for s in (dst if isinstance(dst, (list, tuple)) else [dst])]
            outputs = [RawBuffer(t, [(0, s, 0) for s in sizes], 0, None) for t, _ in types]
        else:
            outputs = [b.raw for b in buffers]
        unset = [p for p in inputs if p.is_buffer and p.buffer is None]
        queries = {p.name: Buffer.make_bounds_query(p.type, [0] * p.dimensions, p.name) for p in unset}
        try:
            for p in unset:
                p.buffer = queries[p.name]
            before: Any = None
            for _ in range(16):
                _Bound(compiled, inputs, outputs).run()
                now = [q.raw.shape() for q in queries.values()]
                if now == before:
                    break
                before = now
            else:
                raise PipelineError(f"Error: in pipeline {self.name()}: the input bounds did not settle after 16 iterations of the bounds query")
        except PipelineError:
            for p in unset:
                p.buffer = None
            raise
        for q in queries.values():
            q.allocate()

    def compile_to_callable(self, arguments: Sequence[Any], target: Target | None = None) -> Callable:
        """A Python function of the arguments (in this order, or by keyword) and then the outputs; NumPy arrays may be given for Buffers."""
        args = self._lowered(arguments)
        compiled = compile_pipeline(self._functions(), args, self.name(), self._target(target), self._requirements)
        return Callable(compiled, len(args))

    # -- files

    def print_loop_nest(self) -> None:
        """Print the scheduled loops to the standard error, as Halide does."""
        sys.stderr.write(loop_nest_text(self._functions()))

    def _module(self, arguments: Sequence[Any] | None, fn_name: str, target: Target | None) -> Any:
        return lowered_module(self._functions(), self._lowered(arguments), fn_name or self.name(), self._target(target), self._requirements)

    def compile_to_lowered_stmt(self, filename: str, arguments: Sequence[Any] | None = None, fmt: Any = None, target: Target | None = None) -> None:
        """Write the loop IR as text."""
        if fmt is not None and int(fmt) != 0:
            raise CompileError("compile_to_lowered_stmt() writes text only so far; leave out fmt or give StmtOutputFormat.Text")
        aot.write_text(filename, to_text(self._module(arguments, "", target).functions[0].body))

    def compile_to_c(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target | None = None) -> None:
        """Write the generated C."""
        tools = toolchain()
        aot.write_text(filename, generate(self._module(arguments, fn_name, target), machine_of(tools, self._target(target))))

    def compile_to_header(self, filename: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target | None = None) -> None:
        """Write the C header of the compiled function."""
        aot.write_text(filename, header(self._module(arguments, fn_name, target)))

    def compile_to_shared_library(self, filename_prefix: str, arguments: Sequence[Any] | None = None, fn_name: str = "", target: Target | None = None) -> None:
        """Write `PREFIX.so` and `PREFIX.h`: a library any C program can link, without Python. The function is named as the file unless told otherwise."""
        name = fn_name or os.path.basename(filename_prefix)
        aot.check_identifier(name)
        module = self._module(arguments, name, target)
        aot.shared_library(filename_prefix, module, machine_of(toolchain(), self._target(target)))
