"""Pipeline: one or more output Funcs, compiled together and run.

A Pipeline keeps what was compiled for each target. Running again costs a call of the compiled code and no more; after an edit (a
definition, a directive, a constraint) the pipeline's fingerprint decides whether it must be compiled again.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

from .. import driver, lang, lower
from ..driver.abi import RawBuffer
from ..driver.graph import Requirement
from ..errors import CompileError, expect, user_error
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.module import LoweredArgument
from ..ir.target import Target, get_jit_target_from_environment
from ..ir.traverse import free_variables, nodes_of
from ..lower.environment import topological_order
from .argument import Argument, infer_arguments, lowered_arguments
from .autoscheduler_params import AutoschedulerParams, AutoSchedulerResults
from .buffer import Buffer
from .callable import Callable
from .compile_to import CompileTo
from .edits import Edits, count_edit
from .effects import printable
from .expr import to_expr
from .program import Program, as_buffer, is_array
from .schedule_warnings import warn_about_schedules
from .storage import LARGEST

_UNDEFINED = Target()


class Pipeline(CompileTo):
    """What computes the outputs: `Pipeline(f)`, `Pipeline([f, g])`; `Pipeline()` is undefined.

    A Func's own `realize`, `compile_jit`, ... go through a Pipeline with that one output.
    """

    def __init__(self, *outputs: Any) -> None:
        funcs = list(outputs[0]) if len(outputs) == 1 and isinstance(outputs[0], (list, tuple)) else list(outputs)
        for f in funcs:
            if not isinstance(getattr(f, "function", None), Function):
                raise TypeError(f"Pipeline() takes Funcs, not {f!r}")
        # Functions, not the Func handles: those hold their Pipeline, and a cycle would keep compiled code until the collector comes by.
        self.functions: list[Function] = [f.function for f in funcs]
        self._handle: Any = type(funcs[0]) if funcs else None
        self.requirements: list[Requirement] = []
        self.prefixes = {}
        self._programs: dict[str, Program] = {}
        self._fingerprints: dict[str, str] = {}
        self._default: Program | None = None

    # -- what it is

    def defined(self) -> bool:
        """Whether it has outputs."""
        return bool(self.functions)

    def outputs(self) -> list[Any]:
        """The output Funcs."""
        return [self._handle.of(f) for f in self._outputs("outputs")]

    def get_func(self, index: int) -> Any:
        """Func number `index` of the pipeline, producers before consumers. Raises CompileError for one there is not."""
        functions = topological_order(self._outputs("get_func"))
        if not 0 <= index < len(functions):
            raise CompileError(f"Index value passed is {index}; however, there are only {len(functions)} functions in the pipeline.")
        return self._handle.of(functions[index])

    def _outputs(self, call: str) -> list[Function]:
        if not self.functions:
            raise CompileError(f"Pipeline is undefined: {call}() needs a Pipeline with at least one Func")
        for i, f in enumerate(self.functions):
            if f.pure is None:
                raise CompileError(f"Can't {call} undefined Func {f.name}: it has no definition; define it: {f.name}[x, ...] = ...")
            if f in self.functions[:i]:
                raise CompileError(f"Func {f.name} is given twice as an output of the Pipeline")
        return self.functions

    @property
    def name(self) -> str:
        """The name of the compiled pipeline: its first output's, without the number that makes it unique."""
        return self.functions[0].name.partition("$")[0]

    def add_requirement(self, condition: Any, *message: Any) -> None:
        """A condition on parameters that is checked before each run; if it does not hold, the run fails with the message, whose Exprs are
        printed.

        Raises CompileError for a condition that depends on Vars, Funcs or elements of images.
        """
        node = to_expr(condition).as_node()
        if not node.type.is_bool():
            raise user_error(f"The condition of add_requirement() must be a boolean, not {node.type}")
        for e in (node, *printable(message)):
            loose = [v.name for v in free_variables(e).values() if v.param is None]
            loose += [c.name for c in nodes_of(e, n.Call) if c.call_type in (n.CallType.Halide, n.CallType.Image)]
            if loose:
                raise user_error("A requirement must not depend on Vars, Funcs or what images hold, only on parameters, but this one uses "
                                 f"{', '.join(dict.fromkeys(loose))}; ask for what is computed by require() in a definition")
        self.requirements.append((node, tuple(printable(message))))
        count_edit()

    def apply_autoscheduler(self, target: Target, autoscheduler_params: AutoschedulerParams) -> AutoSchedulerResults:
        """Schedule all Funcs, which must have no schedule yet: `p.apply_autoscheduler(target, AutoschedulerParams("Mullapudi2016",
        {"parallelism": 8}))`.

        Sizes are taken from estimates: `set_estimates` of outputs and ImageParams, `set_estimate` of Params. `schedule_source` of the
        result is the schedule as Python text. Raises CompileError for an unknown autoscheduler or parameter, a missing estimate, and Funcs
        with directives.
        """
        call = "apply_autoscheduler()"
        target, params = expect(target, Target, call), expect(autoscheduler_params, AutoschedulerParams, call)
        results: AutoSchedulerResults = lang.autoscheduling.apply_autoscheduler(self._outputs("apply_autoscheduler"), target, params)
        self.schedule_source = results.schedule_source
        return results

    # -- compiling

    def _arguments(self) -> tuple[LoweredArgument, ...]:
        return lowered_arguments(infer_arguments(self.functions, self.requirements), self.functions, self.requirements)

    def infer_arguments(self) -> list[Argument]:
        """The inputs that the outputs depend on: buffers by name, then scalars by name."""
        return infer_arguments(self._outputs("infer_arguments"), self.requirements)

    def compile_jit(self, target: Target = _UNDEFINED) -> None:
        """Compile now rather than at the first `realize`."""
        self._program(target, "compile")

    def invalidate_cache(self) -> None:
        """Forget what was compiled; the next run compiles again (or finds it in the cache on disk)."""
        self._programs.clear()
        self._default = None

    def _program(self, target: Target, call: str) -> Program:
        """The compiled pipeline, up to date."""
        default = target is _UNDEFINED or expect(target, Target, f"{call}()").has_unknowns()
        if default:
            found = self._default
            if found is not None and found.edits == Edits.number:
                return found
            target = get_jit_target_from_environment()
        program = self._compiled(target, call)
        if default:
            self._default = program
        return program

    def _compiled(self, target: Target, call: str) -> Program:
        functions, key, edits = self._outputs(call), target.to_string(), Edits.number
        args = self._arguments()
        now = driver.fingerprint.fingerprint(functions, args, self.name, target, self.requirements)
        program = self._programs.get(key)
        if program is None or self._fingerprints[key] != now:
            self._prepare(functions)
            program = Program(functions, args, self.name, target, self.requirements, now)
            self._programs[key], self._fingerprints[key] = program, now
        program.edits = edits
        return program

    def _prepare(self, functions: Sequence[Function]) -> None:
        """What is done whenever the pipeline is compiled to be run here."""
        if self.prefixes:
            raise CompileError(f"Pipeline {self.name} has runtime prefixes, which are not supported when it is compiled to be run here; "
                               "use compile_to")
        warn_about_schedules(functions)
        for f in functions:
            f.frozen = True

    def compile_to_callable(self, arguments: Sequence[Any], target: Target = _UNDEFINED) -> Callable:
        """A Python function `c(inputs..., outputs...)` whose inputs are `arguments` (Params, ImageParams, Buffers or Arguments), in that
        order.

        Raises CompileError when an input of the pipeline is missing from `arguments`.
        """
        functions = self._outputs("compile_to_callable")
        args = lowered_arguments(arguments, functions, self.requirements)
        target = get_jit_target_from_environment() if expect(target, Target, "compile_to_callable()").has_unknowns() else target
        self._prepare(functions)
        program = Program(functions, args, self.name, target, self.requirements)
        return Callable(program.compiled, len(arguments), program.first_output, program.buffers)

    # -- running

    def realize(self, dst: Any = (), target: Target = _UNDEFINED, *, sizes: Any = None) -> Any:
        """Compute the outputs.

        `realize([width, height])` gives fresh Buffers: one, or a tuple for several outputs or a tuple-valued Func; `realize()` is for Funcs
        without dimensions. `realize(buffer)` and `realize([buffer, ...])` compute into Buffers or NumPy arrays. Inputs are what Params and
        ImageParams are set to. Raises CompileError for a pipeline that cannot be compiled or lacks inputs, PipelineError when its checks
        fail.
        """
        if isinstance(dst, Buffer):
            program = self._default
            if program is None or program.edits != Edits.number or target is not _UNDEFINED or len(program.output_args) != 1:
                program = self._program(target, "realize")
                _check_count(1, program)
            program.realize_into((dst,))
            return None
        if sizes is not None:
            dst = sizes
        if type(dst) is not list and is_array(dst):
            return self.realize([dst], target)
        items = _items(dst, "realize")
        program = self._program(target, "realize")
        if items and type(items[0]) is not int and is_array(items[0]):
            _check_count(len(items), program)
            program.realize_into([as_buffer(x) for x in items])
            return None
        out = program.realize_sizes(self._extents(items))
        return out[0] if len(out) == 1 else tuple(out)

    def _extents(self, items: Sequence[Any]) -> list[int]:
        try:
            extents = [operator.index(s) for s in items]
        except TypeError:
            raise TypeError(f"realize() takes sizes (integers), a Buffer, or a list of Buffers, not {list(items)!r}") from None
        for f in self.functions:
            if len(f.args) != len(extents):
                raise CompileError(f"Func {f.name} is defined with {len(f.args)} dimensions, but realize() is requesting a realization "
                                   f"with {len(extents)} dimensions.")
            for d, size in enumerate(extents):
                if size > LARGEST:
                    raise CompileError(f"realize() of Func {f.name} with size {size} in dimension {d}, which exceeds the maximum of "
                                       f"{LARGEST}")
        return extents

    def infer_input_bounds(self, dst: Any, target: Target = _UNDEFINED) -> None:
        """Find out how large the inputs must be for outputs of given sizes, or for given output Buffers; ImageParams without data get
        Buffers of zeros.

        Output Buffers that are bounds queries receive the shape that will be computed.
        """
        items = [dst] if is_array(dst) else _items(dst, "infer_input_bounds")
        program = self._program(target, "infer_input_bounds")
        if items and is_array(items[0]):
            _check_count(len(items), program)
            raws = [as_buffer(x).raw for x in items]
        else:
            extents = self._extents(items)
            raws = [RawBuffer.query(a.type, [(0, e) for e in extents]) for a in program.output_args]
        program.infer_input_bounds(raws)

    def print_loop_nest(self) -> None:
        """Print the loops as scheduled, to standard error: which run in which order, where each Func is stored and computed."""
        sys.stderr.write(lower.print_loop_nest.loop_nest_text(self._outputs("print_loop_nest")))

    def __repr__(self) -> str:
        if not self.functions:
            return "<halide.Pipeline Pipeline()>"
        return f"<halide.Pipeline [{','.join(repr(f.name) for f in self.functions)}]>"


def _items(dst: Any, call: str) -> list[Any]:
    if isinstance(dst, (str, bytes)) or not hasattr(dst, "__iter__"):
        raise TypeError(f"{call}() takes a list of sizes, a Buffer, or a list of Buffers, not {dst!r}")
    return list(dst)


def _check_count(given: int, program: Program) -> None:
    if given != len(program.output_args):
        raise CompileError(f"Realization requires {given} output(s) but pipeline produces {len(program.output_args)} result(s).")
