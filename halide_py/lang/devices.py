"""Directives for other processors: this build makes code for the CPU, so each says that it cannot be honoured; copies to the host do nothing."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from ..errors import CompileError, user_error, user_location
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.printer import to_text
from ..ir.target_words import DeviceAPI

F = TypeVar("F", bound="DeviceCopies")


class DeviceDirectives:
    """GPU and Hexagon directives on the loops of a stage. All raise CompileError; their arguments are those of Halide."""

    function: Function

    def _no_backend(self, directive: str, device: str) -> NoReturn:
        where = user_location()
        raise CompileError(f"In schedule for {self.name()}{f' at {where}' if where else ''}, {directive}() needs a {device}, but this build has no such backend: "  # type: ignore[attr-defined]
                           "it makes code for the CPU. Use parallel(), vectorize(), unroll() and tile() instead")

    def gpu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run block and thread loops on a GPU: `gpu(block_x, thread_x)`, and with two or three loops of each. Raises CompileError."""
        self._no_backend("gpu", "GPU")

    def gpu_blocks(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run up to three loops as the blocks of a GPU. Raises CompileError."""
        self._no_backend("gpu_blocks", "GPU")

    def gpu_threads(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run up to three loops as the threads of a GPU. Raises CompileError."""
        self._no_backend("gpu_threads", "GPU")

    def gpu_lanes(self, thread_x: Any, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> NoReturn:
        """Run a loop as the lanes of one GPU warp. Raises CompileError."""
        self._no_backend("gpu_lanes", "GPU")

    def gpu_single_thread(self, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> NoReturn:
        """Run a stage as one thread of a GPU. Raises CompileError."""
        self._no_backend("gpu_single_thread", "GPU")

    def gpu_tile(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Tile one to three loops into GPU blocks and threads. Raises CompileError."""
        self._no_backend("gpu_tile", "GPU")

    def hexagon(self, x: Any = None) -> NoReturn:
        """Run a loop on a Hexagon DSP. Raises CompileError."""
        self._no_backend("hexagon", "Hexagon DSP")


class DeviceCopies:
    """Directives that make a Func a copy of another between memories."""

    function: Function

    def copy_to_host(self: F) -> F:
        """Say that this Func, a plain copy of another Func or an image, brings it into the host's memory. All memory is the host's here, so it stays
        the copy that it is. Raises CompileError for a Func that is anything but a plain copy."""
        _check_copy(self.function, "copy_to_host")
        return self

    def copy_to_device(self: F, device_api: DeviceAPI = DeviceAPI.Default_GPU) -> F:
        """Say that this Func, a plain copy, brings another into a device's memory. Raises CompileError for every device but `DeviceAPI.Host`."""
        _check_copy(self.function, "copy_to_device")
        if DeviceAPI(device_api) is not DeviceAPI.Host:
            raise user_error(f"copy_to_device({DeviceAPI(device_api).name}) of Func {self.function.name} needs a GPU, but this build has no such backend: it makes "
                             "code for the CPU. Drop the directive, or copy to DeviceAPI.Host")
        return self


def _check_copy(f: Function, directive: str) -> None:
    if f.pure is None:
        raise user_error(f"{directive} on Func {f.name} with no definition")
    if f.updates or len(f.types) != 1:
        what = "update definitions" if f.updates else "several values"
        raise user_error(f"{directive} on Func {f.name} with {what}; it must be a plain copy of one Func or image")
    value = f.pure.values[0]
    if not (isinstance(value, n.Call) and value.call_type in (n.CallType.Halide, n.CallType.Image) and value.args == f.pure.args):
        raise user_error(f"Func {f.name} is scheduled as {directive}, but has value: {to_text(value)}\nExpected a single call to another Func with matching "
                         "dimensionality and argument order.")
