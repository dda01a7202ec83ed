"""Parameters: the runtime arguments of a pipeline, scalar or buffer, as data."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .build import i32
from .names import plain_names
from .nodes import Expr, MemoryType
from .types import Type

if TYPE_CHECKING:
    from .function import Function


@dataclass(eq=False)
class DimConstraint:
    """What is promised about one dimension of a buffer, None where nothing is; the estimates are for autoschedulers. Dimension 0 is dense
    (stride 1) unless the user lifts that."""

    min: Expr | None = None
    extent: Expr | None = None
    stride: Expr | None = None
    min_estimate: Expr | None = None
    extent_estimate: Expr | None = None


@dataclass(eq=False)
class Parameter:
    """One argument of a pipeline. Identity matters: two Parameters of one name are two arguments.

    A scalar has `value` (a Python number, None while unset) and optional range Exprs. A buffer has one DimConstraint a
    dimension and `buffer`, the object bound to it (a `lang.Buffer`; opaque down here), which it keeps alive.
    """

    name: str
    type: Type
    is_buffer: bool
    dimensions: int = 0
    value: Any = None
    default: Expr | None = None
    minimum: Expr | None = None
    maximum: Expr | None = None
    estimate: Expr | None = None
    buffer: Any = None
    dims: list[DimConstraint] = field(default_factory=list)
    host_alignment: int = 0
    memory: MemoryType = MemoryType.Auto
    trace_loads: bool = False
    constant: bool = False  # stands for a Buffer that a definition uses
    # by the caller's name ("": every other caller), what reads this image in its stead
    wrappers: dict[str, Function] = field(default_factory=dict)
    stands_in: bool = False  # for the image of this name, in the definition of its wrapper: so that the two form no cycle
    owner: weakref.ref[Parameter] | None = None  # that image
    any_wrapped: ClassVar[bool] = False  # whether any image of the process has one: else nobody need look

    def __post_init__(self) -> None:
        if self.is_buffer and not self.dims:
            self.dims = [DimConstraint(stride=i32(1) if d == 0 else None) for d in range(self.dimensions)]


def by_name(parameters: Sequence[Parameter]) -> dict[str, Parameter]:
    """Parameters by the names that users know."""
    return dict(zip(plain_names([p.name for p in parameters]), parameters))
