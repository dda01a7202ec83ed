"""How long lowering takes in Python: a chain of 3x3 stencils, every stage computed per strip. HL_TIME=1 shows the passes.

The goal is one second for 50 stages, without the C compiler's time; the cost must grow in proportion to the program: microseconds for each
node of the loop IR are printed for 10, 50 and 200 stages (`compile_time.py N ...`: for so many). Times are of this process's CPU, the best
of several.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pipelines import stencil_chain

import halide_py as hl
from halide_py.ir import nodes as n
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower

EVERYTHING = tuple(kind for base in (n.Expr, n.Stmt) for kind in base.__subclasses__())


def loop_ir(out: hl.Func) -> tuple[float, int]:
    """Seconds to lower a Func, and how many different nodes its loop IR has."""
    arguments = out.pipeline()._arguments()
    start = time.process_time()
    body = lower([out.function], arguments, out.name(), Target.host()).body
    return time.process_time() - start, sum(1 for _ in nodes_of(body, EVERYTHING))


def measure(stages: int) -> tuple[float, float, float, int, int]:
    """Seconds to build the algorithm, to lower it, and to lower it and print the C text; nodes of the loop IR, and bytes of the C text."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        out = stencil_chain(hl, stages)
        built = time.process_time()
        path = Path(folder) / "chain.c"
        out.compile_to_c(str(path), hl.Pipeline([out]).infer_arguments(), "chain")
        whole, size = time.process_time() - built, path.stat().st_size
    n.sweep()
    lowered, nodes = loop_ir(out)
    return built - start, lowered, whole, nodes, size


def main() -> None:
    """Print the figures."""
    measure(2)  # imports and tables
    for stages in map(int, sys.argv[1:] or (10, 50, 200)):
        runs = [measure(stages) for _ in range(3 if stages <= 50 else 1)]
        built, lowered, whole = (min(column) for column in list(zip(*runs))[:3])
        nodes, size = runs[0][3:]
        goal = "" if stages != 50 else f"   goal 1.00 s{'' if whole <= 1 else '  missed'}"
        print(f"{stages:3} stencil stages: {built:.2f} s to define, {lowered:.2f} s to lower to {nodes} nodes, {lowered / nodes * 1e6:.1f} "
              f"us a node; "
              f"{whole:.2f} s to C text of {size // 1024} KiB{goal}", flush=True)


if __name__ == "__main__":
    main()
