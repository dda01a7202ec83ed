"""What pipelines print, report and trace, handed to Python functions."""

from __future__ import annotations

import enum
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..ir.types import Type, TypeCode
from ._ffi import ffi
from .abi import runtime


class TraceEventCode(enum.IntEnum):
    """What a TraceEvent reports; values are those of the runtime's `halide_trace_event_code_t`."""

    load = 0
    store = 1
    begin_realization = 2
    end_realization = 3
    produce = 4
    end_produce = 5
    consume = 6
    end_consume = 7
    begin_pipeline = 8
    end_pipeline = 9
    tag = 10


class TraceEvent(NamedTuple):
    """One event of a traced pipeline. `coordinates` of a vector access: all lanes' first coordinate, all lanes' second, ...; of a region:
    min, extent, ...
    `value` is what was loaded or stored, an entry a lane; empty for other events. `parent_id` is the `id` of the event it belongs to."""

    id: int
    func: str
    event: TraceEventCode
    coordinates: tuple[int, ...]
    value: tuple[Any, ...]
    type: Type
    parent_id: int
    value_index: int
    tag: str


_KINDS = {TypeCode.Int: "i", TypeCode.UInt: "u", TypeCode.Float: "f"}
_ids = itertools.count(1)


def _text(c: Any) -> str:
    return str(ffi.string(c).decode("utf-8", "replace")) if c else ""


def _event(e: Any) -> TraceEvent:
    code, bits, lanes = TypeCode(int(e.type.code)), int(e.type.bits), int(e.type.lanes)
    value: tuple[Any, ...] = ()
    if e.value and code in _KINDS:
        size = max(bits, 8) // 8
        values = np.frombuffer(ffi.buffer(e.value, size * lanes), f"{_KINDS[code]}{size}")
        value = tuple((values != 0).tolist() if bits == 1 else values.tolist())
    coordinates = tuple(ffi.unpack(e.coordinates, e.dimensions)) if e.coordinates else ()
    return TraceEvent(
        next(_ids),
        _text(e.func),
        TraceEventCode(int(e.event)),
        coordinates,
        value,
        Type(code, bits, lanes),
        int(e.parent_id),
        int(e.value_index),
        _text(e.trace_tag),
    )


@contextmanager
def handlers(*, print: Callable[[str], Any] | None = None, error: Callable[[str], Any] | None = None,
             trace: Callable[[TraceEvent], Any] | None = None) -> Iterator[None]:
    """Inside `with hl.handlers(trace=events.append): ...` pipelines of the whole process call the functions given, on whichever thread they
    run.

    `print` gets the text that pipelines print, `error` the message of each failure (the PipelineError is raised all the same), `trace` each
    TraceEvent, in place of what the pipelines would write. What was set before is set again afterwards. The first exception of a handler is
    raised at the end of the `with`; the pipeline goes on.
    """
    library, failures = runtime(), []

    def kept(*exc: Any) -> None:
        failures.append(exc[1])

    def on_print(_: Any, message: Any) -> None:
        assert print is not None
        print(_text(message))

    def on_error(_: Any, message: Any) -> None:
        library.hl_set_last_error(message)
        assert error is not None
        error(_text(message))

    def on_trace(_: Any, event: Any) -> int:
        assert trace is not None
        made = _event(event[0])
        trace(made)
        return made.id

    wanted = ((print, library.halide_set_custom_print, "void(void *, const char *)", on_print),
              (error, library.halide_set_error_handler, "void(void *, const char *)", on_error),
              (trace, library.halide_set_custom_trace, "int32_t(void *, const struct halide_trace_event_t *)", on_trace))
    callbacks = [
        (setter, ffi.callback(signature, function, onerror=kept)) for given, setter, signature, function in wanted if given is not None
    ]
    previous = [(setter, setter(callback)) for setter, callback in callbacks]
    try:
        yield
    finally:
        for setter, before in reversed(previous):
            setter(before)
    if failures and sys.exc_info()[0] is None:
        raise failures[0]
