"""Counting edits: how a compiled pipeline knows, at the price of one comparison, that nothing was defined or rescheduled since.

Every definition, directive and constraint counts as an edit, of whichever Func. A pipeline that sees another number than when it was compiled
takes its fingerprint again, and compiles again only if that changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

_T = TypeVar("_T", bound=type)


class Edits:
    """The number of edits so far in this process."""

    number = 0


def count_edit() -> None:
    """Something that pipelines are compiled from has changed."""
    Edits.number += 1


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def counting(*args: Any, **kwargs: Any) -> Any:
        Edits.number += 1
        return method(*args, **kwargs)

    return counting


def edits(*names: str) -> Callable[[_T], _T]:
    """Class decorator: calls of the methods named (of all public ones if none is) are edits."""

    def decorate(cls: _T) -> _T:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and (name in names if names else not name.startswith("_")):
                setattr(cls, name, _counted(method))
        return cls

    return decorate
