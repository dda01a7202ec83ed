"""The profiler as Python sees it: the time of each pipeline compiled with the target feature `profile`, by Func."""

from __future__ import annotations

from typing import Any

from ._ffi import ffi
from .abi import runtime


def profiler_results() -> dict[str, dict[str, Any]]:
    """By pipeline: `runs`, `seconds` from start to end of all runs, `threads` at work on average, and `funcs`, by Func: `seconds` of all threads and
    `times` it was produced. Pipelines that did not run since `profiler_reset()` are left out; those of one name are added up.

    >>> f.realize([640, 480], hl.Target("host-profile"))
    >>> hl.profiler_results()["f"]["funcs"]["blur"]["seconds"]
    """
    found: dict[str, dict[str, Any]] = {}
    p = runtime().hl_profile_first()
    while p:
        if p.runs:
            one = found.setdefault(ffi.string(p.name).decode(), {"runs": 0, "seconds": 0.0, "threads": 0.0, "funcs": {}})
            one["runs"] += int(p.runs)
            one["seconds"] += p.nanoseconds / 1e9
            for i in range(p.count):
                func = one["funcs"].setdefault(ffi.string(p.funcs[i].name).decode(), {"seconds": 0.0, "times": 0})
                func["seconds"] += p.funcs[i].nanoseconds / 1e9
                func["times"] += int(p.funcs[i].entered)
        p = p.next
    for one in found.values():
        one["threads"] = sum(f["seconds"] for f in one["funcs"].values()) / max(one["seconds"], 1e-12)
    return found


def profiler_report() -> str:
    """`profiler_results()` as a table."""
    lines = []
    for name, one in profiler_results().items():
        lines.append(f"{name}: {one['seconds'] * 1e3:.3f} ms in {one['runs']} runs, {one['threads']:.2f} threads")
        total = max(sum(f["seconds"] for f in one["funcs"].values()), 1e-12)
        lines += [f"  {func:24} {f['seconds'] * 1e3:10.3f} ms {100 * f['seconds'] / total:5.1f}% {f['times']:10} times" for func, f in one["funcs"].items()]
    return "\n".join(lines)


def profiler_reset() -> None:
    """Start again from zero."""
    runtime().halide_profiler_reset()
