"""AutoschedulerParams, which autoscheduler with its options as text, and AutoSchedulerResults, what it did."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.target import Target


class AutoschedulerParams:
    """`AutoschedulerParams("Mullapudi2016", {"parallelism": 8})`. `name` is empty for none; the values of `extra` are strings."""

    __slots__ = ("name", "extra")

    def __init__(self, name: str = "", extra: Mapping[str, object] | None = None, *, target: str | None = None,
                 autoscheduler_params: Mapping[str, object] | None = None) -> None:
        # Halide's bindings call the two arguments `target` and `autoscheduler_params`, whatever they are.
        self.name = name if target is None else target
        self.extra = {k: str(v) for k, v in ({**(extra or {}), **(autoscheduler_params or {})}).items()}

    def __repr__(self) -> str:
        return f"<halide.AutoschedulerParams {self.name!r} {self.extra!r}>"


class AutoSchedulerResults:
    """What an autoscheduler did: `target`, `autoscheduler_params`, the `schedule_source` it found, its `featurization` (bytes)."""

    __slots__ = ("target", "autoscheduler_params", "schedule_source", "featurization")

    def __init__(self) -> None:
        self.target, self.autoscheduler_params = Target(), AutoschedulerParams()
        self.schedule_source, self.featurization = "", b""

    def __repr__(self) -> str:
        return f"<halide.AutoSchedulerResults for {self.target}: {self.autoscheduler_params.name or 'none'}>"
