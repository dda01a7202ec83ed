"""The profiler as Python sees it: time and memory of each pipeline compiled with the target feature `profile`, by Func."""

from __future__ import annotations

from typing import Any

from ._ffi import ffi
from .abi import runtime


def profiler_results() -> dict[str, dict[str, Any]]:
    """By pipeline: `runs`, `seconds` from start to end of all runs, `threads` at work on average, scratch memory, and `funcs`.

    By Func: `seconds` of all threads, `times` it was produced, `threads` that worked on it on average while any did, scratch memory, and
    `stack`: bytes on the stack of a thread. Scratch memory is `peak` (bytes at one time), `allocations` (their number) and `average` (bytes
    of one). Pipelines that did not run since `profiler_reset()` are left out; those of one name are added up.

    >>> f.realize([640, 480], hl.Target("host-profile"))
    >>> hl.profiler_results()["f"]["funcs"]["blur"]["seconds"]
    """
    found: dict[str, dict[str, Any]] = {}
    p = runtime().hl_profile_first()
    while p:
        if p.runs:
            one = found.setdefault(ffi.string(p.name).decode(), {"runs": 0, "seconds": 0.0, "threads": 0.0, **_NO_MEMORY, "funcs": {}})
            one["runs"] += int(p.runs)
            one["seconds"] += p.nanoseconds / 1e9
            _add_memory(one, p.memory)
            for i in range(p.count):
                f = p.funcs[i]
                func = one["funcs"].setdefault(
                    ffi.string(f.name).decode(), {"seconds": 0.0, "times": 0, "threads": 0.0, **_NO_MEMORY, "stack": 0, "busy": 0.0}
                )
                func["seconds"] += f.nanoseconds / 1e9
                func["times"] += int(f.entered)
                func["busy"] += f.busy / 1e9
                func["stack"] = max(func["stack"], int(f.stack_peak))
                _add_memory(func, f.memory)
        p = p.next
    for one in found.values():
        for func in one["funcs"].values():
            func["threads"] = func["seconds"] / max(func.pop("busy"), 1e-12)
        one["threads"] = sum(f["seconds"] for f in one["funcs"].values()) / max(one["seconds"], 1e-12)
    return found


_NO_MEMORY: dict[str, Any] = {"peak": 0, "allocations": 0, "average": 0.0}


def _add_memory(to: dict[str, Any], m: Any) -> None:
    total = to["average"] * to["allocations"] + m.total
    to["peak"] = max(to["peak"], int(m.peak))
    to["allocations"] += int(m.count)
    to["average"] = total / max(to["allocations"], 1)


def profiler_report() -> str:
    """The table that `halide_profiler_report` prints in C programs."""
    lines: list[str] = []

    @ffi.callback("void(void *, const char *)")  # type: ignore[untyped-decorator]
    def keep(context: Any, line: Any) -> None:
        lines.append(ffi.string(line).decode())

    runtime().hl_profile_table(keep, ffi.NULL)
    return "".join(lines).rstrip()


def profiler_reset() -> None:
    """Forget what was measured so far: later runs of profiled pipelines count from zero."""
    runtime().halide_profiler_reset()
