"""Directives of a Func as a whole: where it is computed and stored, its bounds, its storage, what is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Bound, FuncSchedule, inline_level, root_level
from ..ir.nodes import MemoryType
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32
from .edits import count_edit
from .expr import Expr, to_node
from .loop_level import place_of
from .promotion import convert
from .rdom import Range, as_loop
from .stage import StageDirectives

F = TypeVar("F", bound="FuncSchedulable")


class FuncSchedulable(StageDirectives):
    """Directives of a Func besides those on its loops."""

    def _placement(self) -> FuncSchedule:
        """The Func's own schedule, about to be changed."""
        count_edit()
        return self.function.schedule

    # -- where it is computed and stored

    def compute_root(self: F) -> F:
        """Compute all of this Func before anything that uses it."""
        self._placement().compute_level = root_level()
        return self

    def compute_at(self: F, *args: Any) -> F:
        """Compute what is needed of this Func inside a loop of a Func that uses it: `g.compute_at(f, y)`, `g.compute_at(f, r.x)`, or a
        LoopLevel.

        Whether the loop exists and encloses all uses is checked when compiling.
        """
        place = place_of(args, "compute_at")
        self._placement().compute_level = place
        return self

    def compute_inline(self: F) -> F:
        """Compute this Func at each use, the default."""
        self._placement().compute_level = inline_level()
        return self

    def store_root(self: F) -> F:
        """Keep this Func's storage for the whole pipeline; with compute_at, values of earlier iterations are used again."""
        self._placement().store_level = root_level()
        return self

    def store_at(self: F, *args: Any) -> F:
        """Keep this Func's storage for one iteration of a loop, which must enclose the loop it is computed at; arguments as for
        compute_at."""
        place = place_of(args, "store_at")
        self._placement().store_level = place
        return self

    # -- what is known of its region

    def _pure_var(self, v: Any, directive: str) -> str:
        name = as_loop(v).name()
        self._definition()
        if name not in self.function.args:
            self._fail(f"can't use {directive}() on {name}, because it is not one of the pure variables of Func {self.function.name}: "
                       f"({', '.join(self.function.args)})")
        return name

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

    def _modulus(self, e: Any, directive: str) -> n.Expr:
        node = self._needed(e, directive, "modulus")
        value = b.as_int(node)
        if value is not None and value <= 0:
            self._fail(f"argument 'modulus' of {directive}() is {value}, but must be positive")
        return node

    def bound(self: F, var: Any, min: Any, extent: Any) -> F:
        """Promise that this Func is needed within [min, min + extent) in dimension `var`, which then is what is computed. Checked at run
        time."""
        promise = Bound(self._pure_var(var, "bound"), self._int32(min, "bound", "min"), self._needed(extent, "bound", "extent"))
        self._placement().bounds.append(promise)
        return self

    def bound_extent(self: F, var: Any, extent: Any) -> F:
        """Promise the extent of dimension `var` only."""
        promise = Bound(self._pure_var(var, "bound_extent"), None, self._needed(extent, "bound_extent", "extent"))
        self._placement().bounds.append(promise)
        return self

    def align_bounds(self: F, var: Any, modulus: Any, remainder: Any = 0) -> F:
        """Grow what is computed so that its min is `remainder` modulo `modulus` and its extent a multiple of `modulus`."""
        m, r = self._modulus(modulus, "align_bounds"), self._needed(remainder, "align_bounds", "remainder")
        growth = Bound(self._pure_var(var, "align_bounds"), None, None, m, r)
        self._placement().bounds.append(growth)
        return self

    def align_extent(self: F, var: Any, modulus: Any) -> F:
        """Grow the end of what is computed so that the extent is a multiple of `modulus`."""
        growth = Bound(self._pure_var(var, "align_extent"), None, None, self._modulus(modulus, "align_extent"))
        self._placement().bounds.append(growth)
        return self

    def set_estimate(self: F, var: Any, min: Any, extent: Any) -> F:
        """What dimension `var` will typically be, for autoschedulers; it changes nothing else."""
        low, size = self._needed(min, "set_estimate", "min"), self._needed(extent, "set_estimate", "extent")
        estimate = Bound(self._pure_var(var, "set_estimate"), low, size)
        self._placement().estimates.append(estimate)
        return self

    def set_estimates(self: F, estimates: Sequence[Any]) -> F:
        """`set_estimate` for all dimensions: a list of (min, extent) pairs or Ranges."""
        self._definition()
        if len(estimates) != len(self.function.args):
            self._fail(f"set_estimates() got {len(estimates)} estimates, but Func {self.function.name} has {len(self.function.args)} "
                       "dimensions")
        found = [(self._needed(r.min, "set_estimates", "min"), self._needed(r.extent, "set_estimates", "extent"))
                 for r in map(Range.of, estimates)]
        self._placement().estimates += [Bound(v, low, size) for v, (low, size) in zip(self.function.args, found)]
        return self

    # -- storage

    def reorder_storage(self: F, *args: Any) -> F:
        """Order the dimensions in memory, densest first; those not named stay where they are. Takes the Vars one by one or as a list."""
        self._definition()
        names = [as_loop(v).name() for v in (args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)]
        dims = list(self.function.schedule.storage_dims)
        known = {d.var: d for d in dims}
        for i, v in enumerate(names):
            if v in names[:i]:
                self._fail(f"the call to reorder_storage references {v} twice")
            if v not in known:
                self._fail(f"could not find var {v} to reorder in the storage dimensions ({', '.join(known)})")
        for place, v in zip(sorted(dims.index(known[v]) for v in names), names):
            dims[place] = known[v]
        self._placement().storage_dims = dims
        return self

    def store_in(self: F, memory_type: MemoryType) -> F:
        """Where the storage lives: `MemoryType.Heap`, `Stack`, `Register` or `Auto`. Raises CompileError for memory of other devices."""
        kind = MemoryType(memory_type)
        if kind > MemoryType.Register:
            raise user_error(f"store_in(MemoryType.{kind.name}) of Func {self.function.name} needs a device; this compiler makes code for "
                             "the CPU: "
                             "use Heap, Stack, Register or Auto")
        self._placement().memory = kind
        return self

    # -- tracing

    def trace_loads(self: F) -> F:
        """Report each load at run time."""
        count_edit()
        self.function.trace_loads = True
        return self

    def trace_stores(self: F) -> F:
        """Report each store at run time."""
        count_edit()
        self.function.trace_stores = True
        return self

    def trace_realizations(self: F) -> F:
        """Report each realization, production and consumption at run time."""
        count_edit()
        self.function.trace_realizations = True
        return self

    def add_trace_tag(self: F, trace_tag: str) -> F:
        """Text that is reported when the pipeline begins."""
        count_edit()
        self.function.trace_tags.append(str(trace_tag))
        return self
