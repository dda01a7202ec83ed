"""Source: a plan as Python text that gives the same schedule to the same pipeline, where `hl` is this module and `pipeline` the Pipeline.

Funcs are found by their place in the pipeline (`Pipeline.get_func`), loops of the definition by their place in `args()` and `rvars()`, so
the text does not depend on names that are made unique anew in each process.
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Collection, Mapping

from ..ir.function import Function, TailStrategy
from .plan import Argument, Loop, Place, Plan, Step

_WIDTH = 120
_RESERVED = frozenset({"hl", "pipeline", *keyword.kwlist})


class _Names:
    """Python identifiers, each given once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.blocks: set[str] = set()

    def new(self, wanted: str) -> str:
        """An identifier that nothing else has, like the one wanted."""
        name = self.local(wanted, self.taken | self.blocks)
        self.taken.add(name)
        return name

    def local(self, wanted: str, used: Collection[str]) -> str:
        """An identifier for one block, which other blocks may use for something else."""
        name = re.sub(r"\W", "_", wanted) or "f"
        name = f"_{name}" if name[0].isdigit() else name
        while name in used or name in _RESERVED:
            name += "_"
        self.blocks.add(name)
        return name


class _Writer:
    def __init__(self, plan: Plan, functions: Mapping[str, Function], order: Mapping[str, int]) -> None:
        self.plan, self.functions, self.order = plan, dict(functions), order
        self.names = _Names()
        self.args = {name: list(f.args) for name, f in functions.items()}
        self.rvars = {(name, k): [v.name for v in d.schedule.rvars] for name, f in functions.items() for k, d in enumerate(f.stages())}
        for step in plan.steps:
            if step.makes:
                self.args[step.makes] = self.args[step.func]
        self.over = {key: list(names) for key, names in self.rvars.items()}  # the loops over RVars as they are when a step is written
        self.funcs: dict[str, str] = {}
        for name in self._mentioned():
            self.funcs[name] = self.names.new(name.partition("$")[0])
        self.made: dict[Loop, str] = {}

    def _mentioned(self) -> list[str]:
        """The Funcs that steps are about or at, in their order in the pipeline, then those that steps make."""
        found = dict.fromkeys(s.func for s in self.plan.steps)
        found |= dict.fromkeys(a.func for s in self.plan.steps for a in s.args if isinstance(a, Place))
        return sorted((name for name in found if name in self.order), key=self.order.__getitem__) + [
            s.makes for s in self.plan.steps if s.makes
        ]

    def text(self) -> str:
        """The whole program."""
        blocks = [
            self._block(name, stage, list(steps))
            for (name, stage), steps in itertools.groupby(self.plan.steps, lambda s: (s.func, s.stage))
        ]
        funcs = [f"{self.funcs[name]} = pipeline.get_func({self.order[name]})" for name in self.funcs if name in self.order]
        plain = [name for loop, name in self.made.items() if not loop.is_rvar and name == loop.name]
        loops = [f"{', '.join(row)}{',' if len(row) == 1 else ''} = "
                 f"hl.vars(\"{' '.join(row)}\")" for row in (plain[i:i + 8] for i in range(0, len(plain), 8))]
        loops += [
            f'{name} = hl.{"RVar" if loop.is_rvar else "Var"}("{loop.name}")' for loop, name in self.made.items() if name not in plain
        ]
        return "\n".join([*loops, *([""] if loops else []), *funcs, "", *blocks])

    def _block(self, name: str, stage: int, steps: list[Step]) -> str:
        """Consecutive directives of one stage as one expression, after lines that find its loops."""
        self.own: dict[str, str] = {}
        lines: list[str] = []
        handle = self.funcs[name] + (f".update({stage - 1})" if stage else "")
        calls = [f".{s.directive}({', '.join(self._argument(s, a, lines) for a in s.args)})" for s in steps]
        for s in steps:
            self._follow(s)
        makes = steps[-1].makes
        assigned = f"{self.funcs[makes]} = " if makes else ""
        if len(assigned + handle + "".join(calls)) <= _WIDTH:
            return "\n".join([*lines, assigned + handle + "".join(calls), ""])
        rest = [f"    {c}" for c in calls]
        return "\n".join([*lines, f"{assigned}({handle}", *rest[:-1], rest[-1] + ")", ""])

    def _follow(self, s: Step) -> None:
        """Which RVars a stage has after a step: parts of those that were split, and after rfactor those kept, the others being the new
        Func's."""
        key = s.func, s.stage
        if s.directive == "split" and isinstance(old := s.args[0], Loop) and old.is_rvar:
            at = self.over[key].index(old.name)
            self.over[key][at:at + 1] = [a.name for a in (s.args[2], s.args[1]) if isinstance(a, Loop)]
        if s.makes and isinstance(s.args[0], tuple):
            kept = [r.name for r, _ in s.args[0]]
            self.rvars[s.makes, 1] = [r for r in self.over[key] if r not in kept]
            self.rvars[key] = [r for r in self.over[key] if r in kept]

    def _argument(self, s: Step, a: Argument, lines: list[str]) -> str:
        if isinstance(a, TailStrategy):
            return f"hl.TailStrategy.{a.name}"
        if isinstance(a, Loop):
            return self._own(s, a, lines)
        if isinstance(a, Place):
            there = self._place(a)
            return f"hl.LoopLevel({self.funcs[a.func]}, {there}, {a.stage})" if a.of_many else f"{self.funcs[a.func]}, {there}"
        if isinstance(a, tuple):
            return f"[{', '.join(f'({self._own(s, r, lines)}, {self._new(v)})' for r, v in a)}]"
        return str(a)

    def _own(self, s: Step, loop: Loop, lines: list[str]) -> str:
        """The name of a loop of the stage itself; one of its definition is looked up in a line before."""
        where = self._defined(s.func, s.stage, loop) if loop not in self.made else ""
        if not where:
            return self._new(loop)
        if loop.name not in self.own:
            wanted = f"r{loop.name.rpartition('$')[2]}" if loop.is_rvar and "$" in loop.name else loop.name
            self.own[loop.name] = self.names.local(wanted, {*self.funcs.values(), *self.made.values(), *self.own.values()})
            lines.append(f"{self.own[loop.name]} = {where}")
        return self.own[loop.name]

    def _place(self, p: Place) -> str:
        return self._defined(p.func, p.stage, p.loop) or self._new(p.loop)

    def _defined(self, func: str, stage: int, loop: Loop) -> str:
        """Where a loop of a definition is found; empty for a loop that a directive makes."""
        known = self.rvars.get((func, stage), []) if loop.is_rvar else self.args[func]
        if loop.name not in known:
            return ""
        called = f"rvars({stage - 1})" if loop.is_rvar else "args()"
        return f"{self.funcs[func]}.{called}[{known.index(loop.name)}]"

    def _new(self, loop: Loop) -> str:
        """The name of a loop that a directive makes."""
        if loop not in self.made:
            self.made[loop] = self.names.new(loop.name)
        return self.made[loop]


def source(plan: Plan, functions: Mapping[str, Function], order: Mapping[str, int], header: str) -> str:
    """The text of a plan. `order` has the places of the Funcs in the pipeline, `header` is written above as comments."""
    return "".join(f"# {line}\n" for line in header.splitlines()) + _Writer(plan, functions, order).text() + "\n"
