"""What all directives on a stage of a Func stand on: its schedule, its name in messages, the error that names the user's line."""

from __future__ import annotations

from typing import NoReturn

from ..errors import CompileError, user_error, user_location
from ..ir.function import Definition, Dim, Function, StageSchedule
from .edits import count_edit
from .rdom import VarOrRVar


def kind_of(is_rvar: bool) -> str:
    """What a loop variable is called in messages."""
    return "RVar" if is_rvar else "Var"


class StageBase:
    """One stage of a Function; Func is its stage 0."""

    function: Function
    _stage = 0

    def _definition(self) -> Definition:
        stages = self.function.stages()
        if self._stage >= len(stages):
            raise user_error(f"Func {self.function.name} is scheduled before it is defined; define it first")
        return stages[self._stage]

    def _schedule(self) -> StageSchedule:
        return self._definition().schedule

    def _edited(self, directive: str = "") -> StageSchedule:
        """The schedule, about to be changed; of a directive that is checked when compiling, errors then name the line."""
        s = self._schedule()
        s.touched = True
        if directive:
            s.sites = {**s.sites, directive: user_location()}
        count_edit()
        return s

    def _title(self) -> str:
        return self.function.name if self._stage == 0 else f"{self.function.name}.update({self._stage - 1})"

    def _fail(self, message: str) -> NoReturn:
        where = user_location()
        at = f" at {where}" if where else ""
        raise CompileError(f"In schedule for {self._title()}{at}, {message}\n{self.dump_argument_list()}")

    def _dim(self, v: VarOrRVar, directive: str, argument: str) -> Dim:
        """The loop of that name."""
        for d in self._schedule().dims:
            if d.var == v.name():
                if d.is_rvar() != v.is_rvar:
                    self._fail(f"{kind_of(v.is_rvar)} {v.name()}, {argument} of {directive}(), has the same name as the existing "
                               f"{kind_of(d.is_rvar())} {d.var}")
                return d
        return self._fail(f"could not find {argument} of {directive}(): {v.name()}")

    def dump_argument_list(self) -> str:
        """The loops, innermost first: `Vars: x y __outermost`."""
        return f"Vars: {' '.join(d.var for d in self._schedule().dims)}\n"
