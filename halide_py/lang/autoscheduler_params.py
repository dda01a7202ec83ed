"""AutoschedulerParams: which autoscheduler, and its options as text."""

from __future__ import annotations

from collections.abc import Mapping


class AutoschedulerParams:
    """`AutoschedulerParams("Mullapudi2016", {"parallelism": 8})`. `name` is empty for none; the values of `extra` are strings."""

    def __init__(self, name: str = "", extra: Mapping[str, object] | None = None, *, target: str | None = None,
                 autoscheduler_params: Mapping[str, object] | None = None) -> None:
        # Halide's bindings call the two arguments `target` and `autoscheduler_params`, whatever they are.
        self.name = name if target is None else target
        self.extra = {k: str(v) for k, v in ({**(extra or {}), **(autoscheduler_params or {})}).items()}

    def __repr__(self) -> str:
        return f"<halide.AutoschedulerParams {self.name!r} {self.extra!r}>"
