"""The directives of a Func as a whole: where it is computed and stored, its bounds, its storage, what is traced."""

from __future__ import annotations

from typing import Any, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Bound, LoopLevel as LevelData, inline_level, root_level
from ..ir.nodes import MemoryType
from ..ir.types import INT32
from .expr import to_node
from .stage import StageDirectives
from .var import Range, Var, VarOrRVar


class LoopLevel:
    """A place in a loop nest: just inside loop `var` of `func` (of its update `stage_index`). Make it empty and `set` it later to decide late."""

    def __init__(self, func: Any = None, var: Any = None, stage_index: int = -1) -> None:
        if func is None:
            self.data = LevelData(defined=False)
        else:
            self.data = LevelData(func.function.name, VarOrRVar(var).name(), int(stage_index))

    @staticmethod
    def of(data: LevelData) -> LoopLevel:
        """The handle of a level."""
        level = LoopLevel()
        level.data = data
        return level

    @staticmethod
    def root() -> LoopLevel:
        """Outside all loops."""
        return LoopLevel.of(root_level())

    @staticmethod
    def inlined() -> LoopLevel:
        """At each use."""
        return LoopLevel.of(inline_level())

    def set(self, other: LoopLevel) -> None:
        """Become the place `other` is; directives that were given this level follow."""
        d, o = self.data, other.data
        d.func, d.var, d.stage, d.defined, d.kind = o.func, o.var, o.stage, o.defined, o.kind

    def stage_index(self) -> int:
        """Which stage, -1 when not said."""
        return self.data.stage

    def __repr__(self) -> str:
        return f"<halide.LoopLevel {self.data.kind} {self.data.func} {self.data.var}>"


def _level(args: Sequence[Any], directive: str) -> LevelData:
    if len(args) == 1 and isinstance(args[0], LoopLevel):
        return args[0].data
    if len(args) != 2:
        raise TypeError(f"{directive}() takes (func, var) or a LoopLevel")
    func, v = args
    name = VarOrRVar(v)
    f = func.function
    stage = -1
    if name.is_rvar or not any(d.var == name.name() for d in (f.pure.schedule.dims if f.pure else [])):
        for k, d in enumerate(f.stages()):
            if any(dim.var == name.name() for dim in d.schedule.dims):
                stage = k
    return LevelData(f.name, name.name(), stage)


class FuncSchedulable(StageDirectives):
    """Directives of a Func besides those on its loops."""

    def compute_root(self) -> Any:
        """Compute all of this Func before anything that uses it."""
        self.function.schedule.compute_level = root_level()
        if not self.function.schedule.store_level.is_inline():
            self.function.schedule.store_level = root_level()
        return self

    def compute_at(self, *args: Any) -> Any:
        """Compute what is needed of this Func inside loop `var` of `func`: `g.compute_at(f, y)`."""
        self.function.schedule.compute_level = _level(args, "compute_at")
        return self

    def compute_inline(self) -> Any:
        """Compute this Func at each use, the default."""
        self.function.schedule.compute_level = inline_level()
        self.function.schedule.store_level = inline_level()
        return self

    def store_root(self) -> Any:
        """Keep this Func's storage for the whole pipeline; with compute_at, values of earlier iterations are used again."""
        self.function.schedule.store_level = root_level()
        return self

    def store_at(self, *args: Any) -> Any:
        """Keep this Func's storage for one iteration of loop `var` of `func`, which must enclose the loop it is computed at."""
        self.function.schedule.store_level = _level(args, "store_at")
        return self

    def _pure_var(self, v: Any, directive: str) -> str:
        name = VarOrRVar(v).name()
        if name not in self.function.args:
            self._fail(f"can't {directive}() {name}, because it is not one of the pure variables ({', '.join(self.function.args)}) of Func {self.function.name}")
        return name

    def _int32(self, e: Any, directive: str, argument: str) -> n.Expr | None:
        if e is None or (hasattr(e, "node") and e.node is None):
            return None
        node = to_node(e)
        if not node.type.is_int_or_uint():
            self._fail(f"{argument} of {directive}() must be int32, not {node.type}")
        return b.cast(INT32, node)

    def bound(self, var: Any, min: Any, extent: Any) -> Any:
        """Promise that this Func is needed over [min, min + extent) in dimension `var`, which then is what is computed. Checked at run time."""
        low, size = self._int32(min, "bound", "min"), self._int32(extent, "bound", "extent")
        if size is None:
            self._fail("the extent of bound() is undefined")
        self.function.schedule.bounds.append(Bound(self._pure_var(var, "bound"), low, size))
        return self

    def bound_extent(self, var: Any, extent: Any) -> Any:
        """Promise the extent only."""
        size = self._int32(extent, "bound_extent", "extent")
        if size is None:
            self._fail("the extent of bound_extent() is undefined")
        self.function.schedule.bounds.append(Bound(self._pure_var(var, "bound_extent"), None, size))
        return self

    def align_bounds(self, var: Any, modulus: Any, remainder: Any = 0) -> Any:
        """Grow what is computed so that its min is `remainder` modulo `modulus` and its extent a multiple of `modulus`."""
        m, r = self._int32(modulus, "align_bounds", "modulus"), self._int32(remainder, "align_bounds", "remainder")
        self.function.schedule.bounds.append(Bound(self._pure_var(var, "align_bounds"), None, None, m, r))
        return self

    def align_extent(self, var: Any, modulus: Any) -> Any:
        """Grow the end of what is computed so that the extent is a multiple of `modulus`."""
        self.function.schedule.bounds.append(Bound(self._pure_var(var, "align_extent"), None, None, self._int32(modulus, "align_extent", "modulus")))
        return self

    def set_estimate(self, var: Any, min: Any, extent: Any) -> Any:
        """What this dimension will typically be, for autoschedulers."""
        estimate = Bound(self._pure_var(var, "set_estimate"), self._int32(min, "set_estimate", "min"), self._int32(extent, "set_estimate", "extent"))
        self.function.schedule.estimates.append(estimate)
        return self

    def set_estimates(self, estimates: Sequence[Any]) -> Any:
        """`set_estimate` for all dimensions."""
        if len(estimates) != len(self.function.args):
            self._fail(f"set_estimates() got {len(estimates)} estimates for {len(self.function.args)} dimensions")
        for v, e in zip(self.function.args, estimates):
            r = e if isinstance(e, Range) else Range(e)
            self.set_estimate(Var(v), r.min, r.extent)
        return self

    def reorder_storage(self, *args: Any) -> Any:
        """Order the dimensions in memory, densest first."""
        names = [VarOrRVar(v).name() for v in (args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)]
        dims = self.function.schedule.storage_dims
        known = {d.var: d for d in dims}
        for i, v in enumerate(names):
            if v not in known or v in names[:i]:
                self._fail(f"reorder_storage() {'names ' + v + ' twice' if v in names[:i] else 'got ' + v}; the storage dimensions are {', '.join(known)}")
        places = sorted(dims.index(known[v]) for v in names)
        for place, d in zip(places, [known[v] for v in names]):
            dims[place] = d
        return self

    def store_in(self, memory_type: MemoryType) -> Any:
        """Where the storage lives: Heap, Stack, Register or Auto."""
        if MemoryType(memory_type) > MemoryType.Register:
            raise CompileError(f"store_in(MemoryType.{MemoryType(memory_type).name}) needs a device; this build compiles for the CPU ({user_location()})")
        self.function.schedule.memory = MemoryType(memory_type)
        return self

    def trace_loads(self) -> Any:
        """Report each load at run time."""
        self.function.trace_loads = True
        return self

    def trace_stores(self) -> Any:
        """Report each store at run time."""
        self.function.trace_stores = True
        return self

    def trace_realizations(self) -> Any:
        """Report each realization, production and consumption at run time."""
        self.function.trace_realizations = True
        return self

    def add_trace_tag(self, trace_tag: str) -> Any:
        """Text that is reported when the pipeline begins."""
        self.function.trace_tags.append(trace_tag)
        return self
