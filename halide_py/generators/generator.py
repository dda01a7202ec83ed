"""Generator: the base class, from declared fields to a Pipeline."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import CompileError
from ..ir.target import Target
from ..ir.types import Type
from ..lang.autoscheduler_params import AutoschedulerParams
from ..lang.callable import Callable
from ..lang.parameter import Parameter
from ..lang.pipeline import Pipeline
from .context import GeneratorContext, active_generator_context
from .fields import ArgInfo, ArgInfoDirection, GeneratorParam, Input, Output
from .names import check_field_name
from .types import UNSPECIFIED, parse_value

G = TypeVar("G", bound="Generator")
_ORDER_WARNING = ("declares an Input after an Output. The C function takes all inputs first; declare them first, or override "
                  "allow_out_of_order_inputs_and_outputs() to return True")


class Generator(ABC):
    """A pipeline with declared inputs, outputs and compile-time parameters. Subclasses, decorated with `@hl.generator`, define
    `generate()`.

    In an instance each GeneratorParam is its value; when `generate()` runs each input is an ImageParam or Param and each output a Func to
    define. A list of inputs in the class body is an array of them: a list in the instance, arguments `name_0`, `name_1`, ... in C.
    Made inside `with hl.GeneratorContext(target):`.
    """

    registered_name = ""
    alias_params: Mapping[str, Any] = {}
    _given: Mapping[str, Any] = {}  # to made()

    def __init__(self, generator_params: dict[str, Any] = {}) -> None:  # noqa: B006  Halide's signature; never changed
        if not isinstance(generator_params, dict) or not isinstance(self._given, dict):
            raise CompileError("generator_params must be a dict")
        context = active_generator_context()
        asked = context.autoscheduler_params()
        self._fields: dict[str, ArgInfo] = {}
        self._declared: dict[str, Any] = {}  # the objects of the class body and of add_input, add_output
        self._arrays: dict[str, int] = {}
        self._target, self._autoscheduler = context.target(), AutoschedulerParams(asked.name, asked.extra)
        self._requirements: list[tuple[Any, tuple[Any, ...]]] = []
        self._pipeline: Pipeline | None = None
        self._configuring = False
        self._open = self._take_params({**self.alias_params, **self._given, **generator_params})
        self._declare_fields()
        if self._open:
            raise CompileError(f"Generator {self.registered_name} has no GeneratorParam(s) named: {list(self._open)}")
        self._configuring = True
        self.configure()
        self._configuring = False
        if not self._infos(ArgInfoDirection.Output):
            raise CompileError(f"Generator '{self.registered_name}' must declare at least one output.")

    # -- what subclasses define

    def configure(self) -> None:  # noqa: B027  may be left out
        """May add inputs and outputs that depend on GeneratorParams, with `add_input` and `add_output`."""

    @abstractmethod
    def generate(self) -> None:
        """Define and schedule the outputs."""

    def allow_out_of_order_inputs_and_outputs(self) -> bool:
        """Whether inputs may be declared after outputs without a warning."""
        return False

    # -- what they may ask

    def context(self) -> GeneratorContext:
        """Target and autoscheduler, for Generators called from this one."""
        return GeneratorContext(self._target, self._autoscheduler)

    def target(self) -> Target:
        """What is compiled for."""
        return self._target

    def autoscheduler(self) -> AutoschedulerParams:
        """Which autoscheduler will schedule the pipeline; the name is empty for none."""
        return self._autoscheduler

    def using_autoscheduler(self) -> bool:
        """Whether an autoscheduler will schedule the pipeline, so that `generate()` should not."""
        return bool(self._autoscheduler.name)

    def natural_vector_size(self, type: Type) -> int:
        """How many values of a type the target's vectors hold."""
        return self._target.natural_vector_size(type)

    def add_requirement(self, condition: Any, *args: Any) -> None:
        """A condition on the inputs that is checked before each run; `args` are the message, Exprs in it are printed."""
        if self._pipeline is not None:
            raise CompileError("add_requirement() must be called in configure() or generate()")
        self._requirements.append((condition, args))

    def add_input(self, name: str, io: Any) -> None:
        """In `configure()`: one more InputBuffer or InputScalar."""
        self._add("add_input", name, io, Input)

    def add_output(self, name: str, io: Any) -> None:
        """In `configure()`: one more OutputBuffer or OutputScalar."""
        self._add("add_output", name, io, Output)

    # -- using one

    @classmethod
    def made(cls: type[G], generator_params: Mapping[str, Any]) -> G:
        """An instance, of a class whose own `__init__` takes nothing, too."""
        if cls.__abstractmethods__:
            raise CompileError(f"Generator {cls.registered_name} has no {'(), '.join(sorted(cls.__abstractmethods__))}(); define it.")
        made = cls.__new__(cls)
        made._set("_given", generator_params)
        made.__init__()  # type: ignore[misc]
        return made

    @classmethod
    def call(cls, *args: Any, **kwargs: Any) -> Any:
        """The output Func (a tuple of them for several) of a pipeline on the given inputs, by position or name.

        Buffers, ImageParams, Params and numbers are inputs; `generator_params` is a dict of GeneratorParams.
        Raises CompileError for counts, names, types and dimensions that do not fit.
        """
        generator = cls.made(kwargs.pop("generator_params", {}))
        name, groups = generator.registered_name, generator._input_groups()
        if len(args) > len(groups):
            raise CompileError(f"Generator '{name}' allows at most {len(groups)} positional args, but {len(args)} were specified.")
        values = dict(zip(groups, args))
        for k, v in kwargs.items():
            if k not in groups:
                raise CompileError(f"Unknown input '{k}' specified via keyword argument. The inputs are {', '.join(groups) or 'none'}.")
            if k in values:
                raise CompileError(f"Input {k} specified multiple times.")
            values[k] = v
        if len(values) != len(groups):
            raise CompileError(f"Generator '{name}' requires {len(groups)} args, but {len(values)} were specified.")
        bound: dict[str, Any] = {}
        for group, value in values.items():
            bound.update(_elements(groups[group], group, value))
        outputs = generator.build(bound).outputs()
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compile_to_callable(self) -> Callable:
        """The pipeline as a Python function of its inputs and outputs, for the context's target."""
        return self.scheduled().compile_to_callable(self.input_parameters(), self._target)

    def scheduled(self) -> Pipeline:
        """The Pipeline, scheduled by the autoscheduler if one is asked for."""
        pipeline = self.build()
        if self.using_autoscheduler() and not pipeline.schedule_source:
            pipeline.apply_autoscheduler(self._target, self._autoscheduler)
        return pipeline

    def build(self, bound: Mapping[str, Any] = {}) -> Pipeline:  # noqa: B006
        """The Pipeline; inputs not in `bound` stay free. Raises CompileError when an output is left undefined."""
        if self._pipeline is not None:
            return self._pipeline
        for name, info in self._fields.items():
            self._set(name, self._declared[name].bind(info, bound.get(name)))
        for name, count in self._arrays.items():
            self._set(name, [getattr(self, f"{name}_{i}") for i in range(count)])
        with self.context():
            self.generate()
        outputs = [getattr(self, info.name) for info in self._infos(ArgInfoDirection.Output)]
        for f, info in zip(outputs, self._infos(ArgInfoDirection.Output)):
            if not f.defined():
                raise CompileError(f"Output '{info.name}' was not defined. ({self.registered_name}.generate())")
            info.check(f.types(), f.dimensions())
        pipeline = Pipeline(outputs)
        for condition, message in self._requirements:
            pipeline.add_requirement(condition, *message)
        self._pipeline = pipeline
        return pipeline

    def input_parameters(self) -> list[Parameter]:
        """The inputs of the built pipeline, in call order."""
        return [getattr(self, info.name).parameter() for info in self._infos(ArgInfoDirection.Input)]

    # -- how the fields come about

    def _infos(self, direction: ArgInfoDirection) -> list[ArgInfo]:
        return [info for info in self._fields.values() if info.dir is direction]

    def _input_groups(self) -> dict[str, list[str]]:
        """What `call` takes, with the fields that each stands for: itself, or the elements of an array."""
        names = [info.name for info in self._infos(ArgInfoDirection.Input)]
        inside = {f"{array}_{i}": array for array, count in self._arrays.items() for i in range(count)}
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(inside.get(name, name), []).append(name)
        return groups

    def _take_params(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Set the GeneratorParams and the autoscheduler; what is left is about types and dimensions of fields."""
        left = dict(given)
        for name, p in _class_items(type(self)):
            if isinstance(p, GeneratorParam):
                check_field_name(name)
                value = parse_value(name, p.value, p.value)
                self._set(name, parse_value(name, p.value, left.pop(name)) if name in left else value)
        for name in list(left):
            if name == "target":
                raise CompileError("The target is not a GeneratorParam; it is that of the GeneratorContext")
            if name == "autoscheduler":
                self._autoscheduler.name = str(left.pop(name))
            elif name.startswith("autoscheduler."):
                self._autoscheduler.extra[name.partition(".")[2]] = str(left.pop(name))
        return left

    def _declare_fields(self) -> None:
        outputs_seen = False
        for name, io in _class_items(type(self)):
            elements = io if isinstance(io, list) else [io]
            if not elements or not all(isinstance(e, (*Input, *Output)) for e in elements):
                continue
            outputs_seen = outputs_seen or isinstance(elements[0], Output)
            if outputs_seen and isinstance(elements[0], Input) and not self.allow_out_of_order_inputs_and_outputs():
                warnings.warn(f"Generator {self.registered_name} {_ORDER_WARNING}", stacklevel=2)
            if isinstance(io, list):
                check_field_name(name)
                self._arrays[name] = len(io)
            for i, e in enumerate(elements):
                self._add_field(f"{name}_{i}" if isinstance(io, list) else name, e)

    def _add(self, call: str, name: str, io: Any, kinds: tuple[type, ...]) -> None:
        if not self._configuring:
            raise CompileError(f"Can only call {call}() from the configure() method.")
        if not isinstance(io, kinds):
            raise CompileError(f"Cannot call {call}() with an object of type '{type(io).__name__}'; it takes "
                               f"{' or '.join(k.__name__ for k in kinds)}.")
        if hasattr(self, name) and name not in self._fields:
            raise CompileError(f"Cannot call {call}('{name}') because the class already has a member of that name.")
        self._add_field(name, io)

    def _add_field(self, name: str, io: Any) -> None:
        """Settle the types and dimensions of a field."""
        check_field_name(name)
        if name in self._fields:
            raise CompileError(f"The name '{name}' is used more than once in Generator {self.registered_name}.")
        types, dimensions = io.declared()
        for what, known in (("type", bool(types)), ("dim", dimensions != -1)):
            key = f"{name}.{what}"
            if key in self._open and known:
                raise CompileError(f"Cannot set the GeneratorParam {key} for {self.registered_name} because the value is explicitly "
                                   "specified in the Python source.")
        if f"{name}.type" in self._open:
            types = parse_value(f"{name}.type", [UNSPECIFIED], self._open.pop(f"{name}.type"))
        if f"{name}.dim" in self._open:
            dimensions = parse_value(f"{name}.dim", 0, self._open.pop(f"{name}.dim"))
        if not types:
            raise CompileError(f"No type has been specified for {name}. Try specifying one in code, or by setting '{name}.type' as a "
                               "GeneratorParam.")
        if dimensions < 0:
            raise CompileError(f"No dimensionality has been specified for {name}. Try specifying one in code, or by setting '{name}.dim' "
                               "as a GeneratorParam.")
        if len(types) > 1 and isinstance(io, Input):
            raise CompileError(f"Input {name} has one type, but {len(types)} are given")
        self._fields[name] = ArgInfo(name, io.direction, io.kind, types, dimensions)
        self._declared[name] = io

    def _set(self, name: str, value: Any) -> None:
        """Set an attribute that users may not."""
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        declared = getattr(type(self), name, None)
        if name in self.__dict__.get("_fields", ()) or name in self.__dict__.get("_arrays", ()) or isinstance(declared, GeneratorParam):
            raise AttributeError(f"Invalid write to field '{name}' of Generator {self.registered_name}; define an output by {name}[x, ...] "
                                 "= ...")
        super().__setattr__(name, value)


def _class_items(cls: type) -> Iterator[tuple[str, Any]]:
    """Attributes of a class in order of declaration, those of its bases first; what a subclass declares again counts once, in its first
    place."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    return ((name, getattr(cls, name)) for name in names if not name.startswith("__"))


def _elements(names: Sequence[str], group: str, value: Any) -> dict[str, Any]:
    """The values of the fields that one argument of `call` stands for."""
    if names == [group]:
        return {group: value}
    if not isinstance(value, (list, tuple)) or len(value) != len(names):
        raise CompileError(f"Input {group} requires a list of {len(names)} values when using call(), but saw {value}")
    return dict(zip(names, value))
