"""The profiler's marks in generated code: which Func each thread works on, where a run begins and ends, how long which memory is held.

Only with the target feature `profile`. The marks end with their C block, so that a failing pipeline leaves them in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..ir import nodes as n
from ..ir.module import LoweredFunction
from ..ir.traverse import nodes_of
from .allocations import stack_elements
from .ctypes_of import c_string
from .emitter import Emitter


class Profile:
    """The marks of one pipeline."""

    def __init__(self, f: LoweredFunction, em: Emitter) -> None:
        self.funcs = {name: i for i, name in enumerate(dict.fromkeys(p.name for p in nodes_of(f.body, n.Produce)))}
        self.record = em.unit.fresh(f"{f.name}_profile")
        self.current: str | None = None  # the Func whose production is being written
        em.unit.helper("hl_profiled")
        names = ", ".join(c_string(name) for name in self.funcs)
        stack = ", ".join(map(str, self._on_stack(f))) or "0"
        em.unit.functions.append(f"static struct hl_profile_pipeline *{self.record};\nstatic const char *const {self.record}_funcs[] = "
                                 f"{{{names or 'HL_NULL'}}};\n"
                                 f"static const uint64_t {self.record}_stack[] = {{{stack}}};\n")
        em.line(f"if (!{self.record}) {self.record} = hl_profile_pipeline({c_string(f.display_name or f.name)}, {len(self.funcs)}, "
                f"{self.record}_funcs, {self.record}_stack);")
        em.line(f"HL_PROFILED_RUN struct hl_profile_run {em.unit.fresh('profile_run')} = hl_profile_begin({self.record});")

    def _on_stack(self, f: LoweredFunction) -> list[int]:
        """Of each Func, the bytes of a thread's stack that its values take; those of a Tuple are there at the same time."""
        largest: dict[str, int] = {}
        for s in nodes_of(f.body, n.Allocate):
            count = stack_elements(s)
            if count is not None:
                largest[s.name] = max(largest.get(s.name, 0), count * s.type.bytes())
        return [sum(size for name, size in largest.items() if self._index(name) == i) for i in range(len(self.funcs))]

    def _index(self, allocation: str) -> int | None:
        """The Func whose values an allocation holds."""
        return self.funcs.get(allocation, self.funcs.get(allocation.rpartition(".")[0]))

    def _place(self, index: int | None) -> str:
        return "HL_NULL" if index is None else f"&{self.record}->funcs[{index}]"

    def allocated(self, em: Emitter, allocation: str, size: str) -> None:
        """From here to the end of the C block that many bytes are held."""
        em.line(f"HL_PROFILED_MEMORY struct hl_profile_allocation {em.unit.fresh('profiled_memory')} = hl_profile_allocate({self.record}, "
                f"{self._place(self._index(allocation))}, {size});")

    def mark(self, em: Emitter, func: str | None, starts: bool = False) -> None:
        """From here to the end of the C block the thread works on a Func, whose production `starts` here or elsewhere, or on none."""
        place = self._place(None if func is None else self.funcs[func])
        em.line(f"HL_PROFILED struct hl_profile_func *{em.unit.fresh('worked_on')} = hl_profile_enter({place}, {int(starts)});")

    @contextmanager
    def working_on(self, em: Emitter, func: str) -> Iterator[None]:
        """The body of a production."""
        before, self.current = self.current, func
        self.mark(em, func, starts=True)
        yield
        self.current = before
