"""The profiler's marks in generated code: which Func each thread works on, and where a run begins and ends.

Only with the target feature `profile`. The marks end with their C block, so that a failing pipeline leaves them in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..ir import build as b
from ..ir import nodes as n
from ..ir.module import LoweredFunction
from ..ir.traverse import nodes_of
from .ctypes_of import constant
from .emitter import Emitter


class Profile:
    """The marks of one pipeline."""

    def __init__(self, f: LoweredFunction, em: Emitter) -> None:
        self.funcs = {name: i for i, name in enumerate(dict.fromkeys(p.name for p in nodes_of(f.body, n.Produce)))}
        self.record = em.unit.fresh(f"{f.name}_profile")
        self.current: str | None = None  # the Func whose production is being written
        em.unit.helper("hl_profiled")
        names = ", ".join(constant(b.string(name)) for name in self.funcs)
        em.unit.functions.append(f"static struct hl_profile_pipeline *{self.record};\nstatic const char *const {self.record}_funcs[] = {{{names or 'HL_NULL'}}};\n")
        em.line(f"if (!{self.record}) {self.record} = hl_profile_pipeline({constant(b.string(f.display_name or f.name))}, {len(self.funcs)}, {self.record}_funcs);")
        em.line(f"HL_PROFILED_RUN struct hl_profile_run {em.unit.fresh('profile_run')} = hl_profile_begin({self.record});")

    def mark(self, em: Emitter, func: str | None, starts: bool = False) -> None:
        """From here to the end of the C block the thread works on a Func, whose production `starts` here or elsewhere, or on none."""
        place = "HL_NULL" if func is None else f"&{self.record}->funcs[{self.funcs[func]}]"
        em.line(f"HL_PROFILED struct hl_profile_func *{em.unit.fresh('worked_on')} = hl_profile_enter({place}, {int(starts)});")

    @contextmanager
    def working_on(self, em: Emitter, func: str) -> Iterator[None]:
        """The body of a production."""
        before, self.current = self.current, func
        self.mark(em, func, starts=True)
        yield
        self.current = before
