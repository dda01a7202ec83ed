"""Directives for other processors. This build makes code for the CPU: they are checked and noted, and compiling a pipeline with one is a
CompileError."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from ..errors import user_error, user_location
from ..ir import nodes as n
from ..ir.function import Function, TailStrategy
from ..ir.printer import to_text
from ..ir.target_words import DeviceAPI
from .rdom import RDom, RVar, as_loop
from .stage_base import StageBase
from .var import Var

D = TypeVar("D", bound="DeviceDirectives")
F = TypeVar("F", bound="DeviceCopies")
MOST = 3  # loops over blocks, and over threads


class DeviceDirectives(StageBase):
    """GPU and Hexagon directives on the loops of a stage. Their arguments are Halide's; wrong ones are refused at once, the directives when
    compiling."""

    def _for_device(self: D, directive: str, vars: Sequence[Any] = (), device: str = "a GPU") -> D:
        """Note a directive on loops."""
        for i, v in enumerate(vars):
            self._dim(as_loop(v), directive, f"argument {i}")
        where = user_location()
        s = self._edited()
        s.device = (
            s.device or f"{directive}{'' if directive.endswith(')') else '()'}{f' at {where}' if where else ''}, which needs {device}"
        )
        return self

    def _loops(self: D, directive: str, args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str], each: int = 1) -> D:
        """A directive on one to three loops, or on so many of each of `each` kinds, that may end with a DeviceAPI."""
        vars = [a for a in args if not isinstance(a, DeviceAPI)] + [v for k, v in kwargs.items() if k != "device_api"]
        if kwargs.keys() - {*names, "device_api"} or len(vars) not in range(each, MOST * each + 1, each) or len(args) > len(vars) + 1:
            raise TypeError(f"{directive}() takes {f'one to three loops of each of {each} kinds' if each > 1 else 'one to three loops'} "
                            f"({', '.join(names)}), and a DeviceAPI")
        return self._for_device(directive, vars)

    def gpu(self: D, *args: Any, **kwargs: Any) -> D:
        """Run block and thread loops on a GPU: `gpu(block_x, thread_x)`, and with two or three loops of each. Compiling raises
        CompileError."""
        return self._loops("gpu", args, kwargs, [f"{kind}_{d}" for kind in ("block", "thread") for d in "xyz"], 2)

    def gpu_blocks(self: D, *args: Any, **kwargs: Any) -> D:
        """Run up to three loops as the blocks of a GPU. Compiling raises CompileError."""
        return self._loops("gpu_blocks", args, kwargs, ["block_x", "block_y", "block_z"])

    def gpu_threads(self: D, *args: Any, **kwargs: Any) -> D:
        """Run up to three loops as the threads of a GPU. Compiling raises CompileError."""
        return self._loops("gpu_threads", args, kwargs, ["thread_x", "thread_y", "thread_z"])

    def gpu_lanes(self: D, thread_x: Any, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> D:
        """Run a loop as the lanes of one GPU warp. Compiling raises CompileError."""
        return self._for_device("gpu_lanes", [thread_x])

    def gpu_single_thread(self: D, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> D:
        """Run a stage as one thread of a GPU. Compiling raises CompileError."""
        return self._for_device("gpu_single_thread")

    def gpu_tile(self: D, *args: Any, **kwargs: Any) -> D:
        """Tile one to three loops into GPU blocks and threads: `gpu_tile(x, bx, tx, 16)`, `gpu_tile(x, y, bx, by, tx, ty, 8, 8)`, or
        without names for the block loops, which then keep the old ones. The loops are split and ordered as by tile(); compiling raises
        CompileError."""
        old, blocks, threads, sizes, tail = _gpu_tile_arguments(args, kwargs)
        me: Any = self  # a stage, which has the other directives
        me._check_blocks("gpu_tile", old, sizes)
        me.tile(old, blocks, threads, sizes, tail)
        return self._for_device("gpu_tile", [*blocks, *threads])

    def hexagon(self: D, x: Any = None) -> D:
        """Run a loop on a Hexagon DSP. Compiling raises CompileError."""
        return self._for_device("hexagon", [] if x is None else [x], "a Hexagon DSP")


def _gpu_tile_forms() -> Iterator[tuple[int, bool, tuple[str, ...]]]:
    for count in range(1, MOST + 1):
        dims = "xyz"[:count]
        for named in (True, False):
            blocks = [f"b{d}" for d in dims] if named else []
            yield count, named, (*dims, *blocks, *(f"t{d}" for d in dims), *(f"{d}_size" for d in dims))


def _gpu_tile_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any], list[Any], TailStrategy]:
    """(old loops, block loops, thread loops, sizes, tail) of a call of gpu_tile()."""
    for count, named, form in _gpu_tile_forms():
        given: dict[str, Any] = dict(zip((*form, "tail", "device_api"), args))
        if len(given) < len(args) or given.keys() & kwargs.keys():
            continue
        given |= kwargs
        tail = given.pop("tail", TailStrategy.Auto)
        if (
            not isinstance(given.pop("device_api", DeviceAPI.Default_GPU), DeviceAPI)
            or not isinstance(tail, TailStrategy)
            or given.keys() != set(form)
        ):
            continue
        values = [given[name] for name in form]
        loops, sizes = values[:-count], values[-count:]
        if all(isinstance(v, (Var, RVar, RDom)) for v in loops) and not any(isinstance(v, (Var, RVar, RDom)) for v in sizes):
            return loops[:count], loops[count:2 * count] if named else loops[:count], loops[-count:], sizes, tail
    raise TypeError("gpu_tile() takes one to three loops, as many names for block loops (or none), as many for thread loops and as many "
                    "sizes; then a tail strategy and a DeviceAPI")


class DeviceCopies:
    """Directives that make a Func a copy of another between memories."""

    function: Function

    def copy_to_host(self: F) -> F:
        """Say that this Func, a plain copy of another Func or an image, brings it into the host's memory. All memory is the host's here, so
        it stays the copy that it is. Raises CompileError for a Func that is anything but a plain copy."""
        _check_copy(self.function, "copy_to_host")
        return self

    def copy_to_device(self: F, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> F:
        """Say that this Func, a plain copy, brings another into a device's memory. Raises CompileError for a Func that is anything else; so
        does compiling, for every device but `DeviceAPI.Host`."""
        _check_copy(self.function, "copy_to_device")
        if DeviceAPI(device_api) is not DeviceAPI.Host:
            me: Any = self  # a Func, which is a stage as well
            me._for_device(f"copy_to_device({DeviceAPI(device_api).name})")
        return self


def _check_copy(f: Function, directive: str) -> None:
    if f.pure is None:
        raise user_error(f"{directive} on Func {f.name} with no definition")
    if f.updates or len(f.types) != 1:
        what = "update definitions" if f.updates else "several values"
        raise user_error(f"{directive} on Func {f.name} with {what}; it must be a plain copy of one Func or image")
    value = f.pure.values[0]
    if not (isinstance(value, n.Call) and value.call_type in (n.CallType.Halide, n.CallType.Image) and value.args == f.pure.args):
        raise user_error(f"Func {f.name} is scheduled as {directive}, but has value: {to_text(value)}\nExpected a single call to another "
                         "Func with matching dimensionality and argument order.")
