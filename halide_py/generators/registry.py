"""`@hl.generator` and `@hl.alias`: Generators by name, and callables made from them."""

from __future__ import annotations

import sys
from collections.abc import Callable as Function
from collections.abc import Mapping
from typing import Any

from ..errors import CompileError
from ..ir.target import Target
from ..lang.callable import Callable
from ..lang.one_of import one_of
from .context import GeneratorContext
from .generator import Generator
from .names import check_field_name

GENERATORS: dict[str, type[Generator]] = {}


def _register(name: str, cls: type[Generator]) -> None:
    if name in GENERATORS and not hasattr(sys, "ps1"):  # in interactive use a cell may be run again
        raise CompileError(f"The Generator name {name} is already in use.")
    GENERATORS[name] = cls


def generator(name: str = "") -> Function[[type], type[Generator]]:
    """Make a class with `generate()` a Generator known by `name`, by default the class's own; deriving from `hl.Generator` is optional."""

    def decorate(cls: type) -> type[Generator]:
        if not isinstance(cls, type):
            raise CompileError("@generator can only be used on classes.")
        known = name or (cls.__qualname__ if cls.__module__ == "__main__" else f"{cls.__module__}.{cls.__qualname__}")
        bases = (cls,) if issubclass(cls, Generator) else (cls, Generator)
        made = type(cls.__name__, bases, {"registered_name": known, "__doc__": cls.__doc__, "__module__": cls.__module__})
        _register(known, made)
        return made

    return decorate


def alias(**kwargs: Mapping[str, Any]) -> Function[[type[Generator]], type[Generator]]:
    """More names of a Generator, each with values for GeneratorParams: `@hl.alias(blur3={"radius": 1}, blur5={"radius": 2})`."""

    def decorate(cls: type[Generator]) -> type[Generator]:
        if not isinstance(cls, type) or not issubclass(cls, Generator) or not cls.registered_name:
            raise CompileError("@alias can only be used in conjunction with @generator.")
        for name, params in kwargs.items():
            check_field_name(name)
            if not isinstance(params, dict):
                raise CompileError(f"The Generator alias {name} specifies something other than a dict.")
            _register(name, type(name, (cls,), {"registered_name": name, "alias_params": params, "__module__": cls.__module__}))
        return cls

    return decorate


def create_generator(name: str, context: GeneratorContext, generator_params: Mapping[str, Any]) -> Generator:
    """An instance by name. Raises CompileError with the names there are."""
    cls = GENERATORS.get(name)
    if cls is None:
        known = "".join(f"\n    {n}" for n in GENERATORS)
        raise CompileError(f"Generator not found: {name}\nDid you mean:{known}" if known else f"Generator not found: {name}; none is "
                                                                                              "registered")
    with context:
        return cls.made(dict(generator_params))


def create_callable_from_generator(
    context: GeneratorContext | Target | None = None,
    name: str = "",
    generator_params: Mapping[str, str] = {},
    *,  # noqa: B006
    target: Target | None = None,
) -> Callable:
    """A registered Generator compiled for a target or context as a Python function of its inputs and outputs."""
    given = one_of("create_callable_from_generator()", context=context, target=target)
    within = GeneratorContext(given) if isinstance(given, Target) else given
    if not isinstance(within, GeneratorContext):
        raise TypeError(f"create_callable_from_generator() takes a GeneratorContext or Target, not {given!r}")
    return create_generator(name, within, generator_params).compile_to_callable()
