"""A random pipeline as the text of a script: what is defined, how it is scheduled, how it is run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Loop:
    """One loop of a stage."""

    var: str
    reduction: bool = False
    busy: bool = False  # vectorized or unrolled: leave it alone


@dataclass(frozen=True)
class Usual:
    """How programs schedule a stage of some form: lines with places for {stage} and {tail}, and the loops there are then."""

    text: str
    loops: list[Loop]


@dataclass
class Stage:
    """A definition as schedules see it: how to name it, its loops innermost first, the Funcs it calls."""

    name: str
    loops: list[Loop]
    calls: list[str] = field(default_factory=list)
    update: bool = False
    reduces: bool = False  # an inline reduction, so it is the reduction that calls
    reads: list[str] = field(default_factory=list)  # the images it reads
    usual: list[Usual] = field(default_factory=list)  # ways to begin its schedule with


@dataclass
class FuncInfo:
    """A Func in the script."""

    name: str
    types: tuple[str, ...]
    args: tuple[str, ...] = ("x", "y")
    stages: list[Stage] = field(default_factory=list)
    inline: bool = False


@dataclass
class Script:
    """A pipeline in text. `outputs` are Funcs of as many dimensions as `shape` and `mins`; `exact`: the output has no element to spare."""

    lines: list[str] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    funcs: list[FuncInfo] = field(default_factory=list)
    outputs: list[FuncInfo] = field(default_factory=list)
    shape: tuple[int, ...] = (8, 6)
    mins: tuple[int, ...] = (0, 0)
    exact: bool = False
    requirements: list[str] = field(default_factory=list)  # arguments of add_requirement, all of them met

    def preamble(self, module: str = "halide_py") -> str:
        """Imports and definitions."""
        return "\n".join(["import numpy as np", f"import {module} as hl", "", "x, y, z = hl.Var('x'), hl.Var('y'), hl.Var('z')", *self.lines])

    def run(self) -> str:
        """The lines that realize it, into `results`: an array for each element of each output, in NumPy's order of axes."""
        lines = [f"pipeline = hl.Pipeline([{', '.join(f.name for f in self.outputs)}])", *(f"pipeline.add_requirement({r})" for r in self.requirements)]
        if not self.exact:
            return "\n".join([*lines, f"results = pipeline.realize({list(self.shape)})",
                              "results = [np.asarray(b) for b in (results if isinstance(results, (list, tuple)) else [results])]"])
        return "\n".join([*lines, "buffers = []",
                          f"for t in [{', '.join(f'{f.name}.types()' for f in self.outputs)}]:",
                          f"    buffers += [hl.Buffer(t1, {list(self.shape)}) for t1 in t]",
                          *(["for b in buffers:", f"    b.set_min({list(self.mins)})"] if self.shape else []),
                          "pipeline.realize(buffers if len(buffers) > 1 else buffers[0])", "results = [np.asarray(b) for b in buffers]"])

    def text(self, module: str = "halide_py", scheduled: bool = True) -> str:
        """The whole script; it ends by printing the values of the outputs."""
        return "\n".join([self.preamble(module), *(self.schedule if scheduled else []), self.run(), "print([r.tolist() for r in results])"]) + "\n"
