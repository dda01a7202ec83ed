"""The exceptions users see. Floor 0: imports nothing of ours.

`HalideError` is the one to catch. Below it: `CompileError`, the user's program or schedule is wrong; `PipelineError`, a
compiled pipeline refused its arguments or failed while running; `InternalError`, a bug of ours.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def expect(value: Any, kind: type[T], call: str) -> T:
    """`value`, which must be an instance of `kind`. Raises TypeError that says what `call` takes."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise TypeError(f"{call} takes {article} {kind.__name__}, not {value!r} (a {type(value).__name__})")
    return value


class HalideError(Exception):
    """Root of everything this package raises on its own account."""


raised_by_callbacks: list[BaseException] = []  # what Python functions called by a pipeline raised; the error of the run reports it


class CompileError(HalideError):
    """The user's definition, schedule or arguments are wrong; the message names the place and what to do. It starts with "Error: ".

    A pass that knows a Func or a loop by name only says so: lowering adds the user's file:line of what is `about` it, of a `directive`."""

    def __init__(self, message: str, about: str = "", directive: str = "") -> None:
        message = str(message)
        self.about, self.directive = about, directive
        super().__init__(message if message.startswith("Error: ") else "Error: " + message)


class PipelineError(HalideError, RuntimeError):
    """A pipeline's checks failed, or it failed while running; names buffer, dimension and both numbers."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class InternalError(HalideError):
    """A bug in halide_py. The message names the pass and where its dump is; please report it."""


class HalideWarning(UserWarning):
    """Category of every warning given while compiling."""


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_frame() -> FrameType | None:
    """The innermost stack frame outside this package: the user's line; None when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def user_location() -> str:
    """`file:line` of the innermost stack frame outside this package, or '' when there is none."""
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def user_error(message: str) -> CompileError:
    """The error to raise for a mistake in a definition or a directive: `message` and the user's file:line."""
    where = user_location()
    return CompileError(f"{message} ({where})" if where else message)


def warn(message: str) -> None:
    """Tell the user about something odd but legal: one line `Warning: ...` on Python's standard output, where Halide's compiler writes it
    too."""
    print(f"Warning: {message}", flush=True)
