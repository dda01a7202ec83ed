"""Directives of a Func as a whole: where it is computed and stored, its bounds, its storage, what is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..errors import expect
from ..ir.function import Bound, inline_level, root_level
from ..ir.printer import to_text
from .edits import count_edit
from .eviction import EvictionKey
from .func_storage import StorageDirectives
from .loop_level import LoopLevel, place_of
from .rdom import Range, as_loop

F = TypeVar("F", bound="FuncSchedulable")


class FuncSchedulable(StorageDirectives):
    """Directives of a Func besides those on its loops."""

    # -- where it is computed

    def compute_root(self: F) -> F:
        """Compute all of this Func before anything that uses it."""
        self._placement("compute_at").compute_level = root_level()
        return self

    def compute_at(self: F, f: Any = None, var: Any = None, *, rvar: Any = None, loop_level: LoopLevel | None = None) -> F:
        """Compute what is needed of this Func inside a loop of a Func that uses it: `g.compute_at(f, y)`, `g.compute_at(f, r.x)`, or a
        LoopLevel.

        Whether the loop exists and encloses all uses is checked when compiling.
        """
        place = place_of("compute_at", f, var, rvar, loop_level)
        self._placement("compute_at").compute_level = place
        return self

    def compute_inline(self: F) -> F:
        """Compute this Func at each use, the default. Said so, the default schedule of derivatives leaves it there too."""
        schedule = self._placement()
        schedule.compute_level, schedule.inline_requested = inline_level(), True
        return self

    # -- what is known of its region

    def _pure_var(self, v: Any, directive: str) -> str:
        name = as_loop(v).name()
        self._definition()
        if name not in self.function.args:
            self._fail(f"can't use {directive}() on {name}, because it is not one of the pure variables of Func {self.function.name}: "
                       f"({', '.join(self.function.args)})")
        return name

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
        m, r = self._positive(modulus, "align_bounds", "modulus"), self._needed(remainder, "align_bounds", "remainder")
        growth = Bound(self._pure_var(var, "align_bounds"), None, None, m, r)
        self._placement().bounds.append(growth)
        return self

    def align_extent(self: F, var: Any, modulus: Any) -> F:
        """Grow the end of what is computed so that the extent is a multiple of `modulus`."""
        growth = Bound(self._pure_var(var, "align_extent"), None, None, self._positive(modulus, "align_extent", "modulus"))
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

    # -- who computes it

    def async_(self: F) -> F:
        """Compute this Func in a task of its own that runs beside its consumers and as far ahead of them as its storage allows: all of it
        where it is stored outside of the loop it is computed in, a few iterations where that is folded (see fold_storage) or a
        ring_buffer().

        Needs compute_root() or compute_at(). Values never change. What cannot be done is a CompileError when compiling: storage in a
        vectorized loop, compute_with(), a third Func that both sides would have to write.
        """
        self._placement("async_").is_async = True
        return self

    # -- memory of results

    def memoize(self: F, eviction_key: EvictionKey | None = None) -> F:
        """Keep this Func's results from call to call, in a cache of the process, and compute only what is not in there.

        Results are found by this Func's definition and all it needs, the region, and the values of the parameters used. Data of an
        ImageParam is no part of that: wrap its use in `memoize_tag(image[x, y], version)`, where `version` is a Param that you change with
        the data. Needs compute_root() or compute_at(), without another store_at(). `eviction_key`: `hl.memoization_cache_evict(key)`
        forgets the results kept under it; `hl.memoization_cache_set_size(bytes)` bounds the whole. Raises CompileError for a second
        eviction key.
        """
        key = None if eviction_key is None else expect(eviction_key, EvictionKey, "memoize()").key
        old = self.function.schedule.eviction_key
        if key is not None and old is not None and key is not old:
            self._fail(f"memoize() with the eviction key {to_text(key)}, but it has one already: {to_text(old)}")
        schedule = self._placement("memoize")
        schedule.memoized = True
        schedule.eviction_key = key if key is not None else old
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

    def debug_to_file(self, filename: str) -> None:
        """Write what is computed of this Func to a file, each time its storage goes (an output: each time it was computed).

        The name's end says the format: `.npy` (NumPy, `a[x, y]`), `.tif` or `.tiff`, `.mat`; else `.tmp`: five 32-bit numbers (four extents
        and a code for the type: float32, float64, uint8, int8, uint16, int16, uint32, int32, uint64, int64 are 0 to 9) and the elements,
        dimension 0 fastest. Raises CompileError when compiling for Funcs of several values, of more than four dimensions, or computed
        inline; what cannot be written is an error at run time.
        """
        self._placement("debug_to_file")
        self.function.debug_file = str(filename)

    def add_trace_tag(self: F, trace_tag: str) -> F:
        """Text that is reported when the pipeline begins."""
        count_edit()
        self.function.trace_tags.append(str(trace_tag))
        return self
