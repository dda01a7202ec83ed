"""What a Generator is run for: target and autoscheduler, as a context that `with` makes the active one."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Literal

from ..errors import CompileError
from ..ir.target import Target
from ..lang.autoscheduler_params import AutoschedulerParams

_ACTIVE: ContextVar[GeneratorContext | None] = ContextVar("halide_py_generator_context", default=None)


class GeneratorContext:
    """`with GeneratorContext(target):` Generators made inside are for that target and, if given, that autoscheduler. May be nested."""

    def __init__(self, target: Target, autoscheduler_params: AutoschedulerParams | None = None) -> None:
        if not isinstance(target, Target):
            raise TypeError(f"GeneratorContext() takes a Target, not {target!r}")
        self._target = Target(target)
        self._autoscheduler = AutoschedulerParams() if autoscheduler_params is None else autoscheduler_params
        self._tokens: list[Token[GeneratorContext | None]] = []

    def target(self) -> Target:
        """What is compiled for."""
        return Target(self._target)

    def autoscheduler_params(self) -> AutoschedulerParams:
        """Which autoscheduler, with its options; the name is empty for none."""
        return self._autoscheduler

    def __enter__(self) -> GeneratorContext:
        self._tokens.append(_ACTIVE.set(self))
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        _ACTIVE.reset(self._tokens.pop())
        return False

    def __repr__(self) -> str:
        return f"<halide.GeneratorContext {self._target}>"


def active_generator_context() -> GeneratorContext:
    """The innermost `with GeneratorContext(...)` we are in. Raises CompileError outside of all."""
    context = _ACTIVE.get()
    if context is None:
        raise CompileError("There is no active GeneratorContext; make Generators inside `with hl.GeneratorContext(target):`")
    return context
