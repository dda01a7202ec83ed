"""Directives on a Func's storage: where it is kept and for how long, the order and size of its dimensions, circular buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import FuncSchedule, StorageDim, root_level
from ..ir.nodes import MemoryType
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from .edits import count_edit
from .expr import Expr, to_node
from .loop_level import LoopLevel, place_of
from .promotion import convert
from .rdom import as_loop, loops
from .stage import StageDirectives

F = TypeVar("F", bound="StorageDirectives")


class StorageDirectives(StageDirectives):
    """Directives of a Func on its storage, and the arguments they share with those on its region."""

    def _placement(self, directive: str = "") -> FuncSchedule:
        """The Func's own schedule, about to be changed; of a directive that is checked when compiling, errors then name the line."""
        count_edit()
        schedule = self.function.schedule
        if directive:
            schedule.sites = {**schedule.sites, directive: user_location()}
        return schedule

    def _int32(self, e: Any, directive: str, argument: str) -> n.Expr | None:
        """An int32 argument of constants and parameters; None for an undefined Expr."""
        if isinstance(e, Expr) and not e.defined():
            return None
        node = to_node(e)
        if not node.type.is_int_or_uint():
            self._fail(f"argument '{argument}' of {directive}() must be int32, but {to_text(node)} has type {node.type}")
        for v in nodes_of(node, n.Variable):
            if v.param is None:
                self._fail(f"argument '{argument}' of {directive}(), {to_text(node)}, uses {v.name}; it may only use constants and "
                           "parameters")
        return convert(INT32, node)

    def _needed(self, e: Any, directive: str, argument: str) -> n.Expr:
        node = self._int32(e, directive, argument)
        if node is None:
            self._fail(f"argument '{argument}' of {directive}() is undefined")
        return node

    def _positive(self, e: Any, directive: str, argument: str) -> n.Expr:
        node = self._needed(e, directive, argument)
        value = b.as_int(node)
        if value is not None and value <= 0:
            self._fail(f"argument '{argument}' of {directive}() is {value}, but must be positive")
        return node

    # -- how long it lives

    def store_root(self: F) -> F:
        """Keep this Func's storage for the whole pipeline; with compute_at, values of earlier iterations are used again."""
        self._placement("store_at").store_level = root_level()
        return self

    def store_at(self: F, f: Any = None, var: Any = None, *, rvar: Any = None, loop_level: LoopLevel | None = None) -> F:
        """Keep this Func's storage for one iteration of a loop, which must enclose the loop it is computed at: `g.store_at(f, y)`,
        `g.store_at(f, r.x)`, or a LoopLevel. What one iteration of a serial loop in between left is used again by the next."""
        place = place_of("store_at", f, var, rvar, loop_level)
        self._placement("store_at").store_level = place
        return self

    def hoist_storage(self: F, f: Any = None, var: Any = None, *, rvar: Any = None, loop_level: LoopLevel | None = None) -> F:
        """Allocate this Func's memory outside of the loop it is stored at, once for all its iterations; arguments as for store_at.

        Nothing else changes: values are not used again across iterations, as they would be with store_at. The loop must enclose that
        of store_at, without a parallel or vectorized loop between the two, and the sizes must have a bound there (CompileError else).
        """
        place = place_of("hoist_storage", f, var, rvar, loop_level)
        self._placement("hoist_storage").hoist_level = place
        return self

    def hoist_storage_root(self: F) -> F:
        """Allocate this Func's memory once, outside of all loops; see hoist_storage."""
        self._placement("hoist_storage").hoist_level = root_level()
        return self

    def ring_buffer(self: F, extent: Any) -> F:
        """Keep `extent` (int32) instances of this Func's storage and take them in turns, one for each iteration of the loops between
        hoist_storage and store_at. With async_() the producer may then run that many iterations ahead. Needs hoist_storage(). A parameter
        below 1 counts as 1."""
        self._placement("ring_buffer").ring_buffer = self._positive(extent, "ring_buffer", "extent")
        return self

    # -- what it is made of

    def store_in(self: F, memory_type: MemoryType) -> F:
        """What kind of memory holds this Func.

        `MemoryType.Heap`: from the runtime; `Stack`: of the C stack where the size has a constant bound, else from the runtime; `Register`:
        like `Stack`, but a size without constant bound is an error; `Auto`: small constant sizes on the stack. Raises CompileError for
        memory of other devices.
        """
        kind = MemoryType(memory_type)
        if kind > MemoryType.Register:
            self._fail(f"store_in(MemoryType.{kind.name}) needs a device; this compiler makes code for the CPU: use Heap, Stack, Register "
                       "or Auto")
        self._placement("store_in").memory = kind
        return self

    # -- its dimensions

    def reorder_storage(self: F, *args: Any, dims: Sequence[Any] | None = None) -> F:
        """Order the dimensions in memory, densest first; those not named stay where they are. Takes the Vars one by one or as a list."""
        self._definition()
        names = [v.name() for v in loops(args, dims)]
        stored = list(self.function.schedule.storage_dims)
        known = {d.var: d for d in stored}
        for i, v in enumerate(names):
            if v in names[:i]:
                self._fail(f"the call to reorder_storage references {v} twice")
            if v not in known:
                self._fail(f"could not find var {v} to reorder in the storage dimensions ({', '.join(known)})")
        for place, v in zip(sorted(stored.index(known[v]) for v in names), names):
            stored[place] = known[v]
        self._placement().storage_dims = stored
        return self

    def _set_dimension(self, v: Any, directive: str, **fields: Any) -> None:
        name = as_loop(v).name()
        self._definition()
        dims: Sequence[StorageDim] = self.function.schedule.storage_dims
        if all(d.var != name for d in dims):
            self._fail(f"could not find var {name}, argument 'dim' of {directive}(), in the storage dimensions "
                       f"({', '.join(d.var for d in dims)})")
        self._placement(directive).storage_dims = [replace(d, **fields) if d.var == name else d for d in dims]

    def align_storage(self: F, dim: Any, alignment: Any) -> F:
        """Pad the extent of a dimension in memory to a multiple of `alignment` elements (int32), so that rows start aligned.
        A parameter below 1 counts as 1."""
        self._set_dimension(dim, "align_storage", alignment=self._positive(alignment, "align_storage", "alignment"))
        return self

    def bound_storage(self: F, dim: Any, bound: Any, /) -> F:
        """Allocate `bound` elements (int32) in a dimension whatever the region is. A region that needs more is an error at run time, or
        when compiling if that is certain."""
        self._set_dimension(dim, "bound_storage", bound=self._positive(bound, "bound_storage", "bound"))
        return self

    def fold_storage(self: F, dim: Any, extent: Any, fold_forward: bool = True) -> F:
        """Keep only `extent` elements (int32) of dimension `dim`, as a circular buffer: coordinate c lives at c % extent.

        For a Func stored outside of a serial loop that it is computed in, whose region moves along `dim` from one iteration to the next,
        upwards, or downwards with `fold_forward=False`. Raises CompileError when no such loop is found or `extent` is certainly too small;
        otherwise a check at run time says so.
        """
        self._set_dimension(
            dim, "fold_storage", fold_factor=self._positive(extent, "fold_storage", "extent"), fold_forward=bool(fold_forward)
        )
        return self
