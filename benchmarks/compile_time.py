"""How long lowering takes in Python: a chain of 3x3 stencils, every stage computed per strip. HL_TIME=1 shows the passes.

The goal is one second for 50 stages, without the C compiler's time; `compile_time.py N` lowers N stages. The cost must grow in proportion
to the number of stages, so half as many are lowered too.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pipelines import stencil_chain

import halide_py as hl


def lowering_seconds(stages: int) -> tuple[float, float, int]:
    """Seconds to build the algorithm and to lower it (with the printing of the C text), and the bytes of the C text."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        out = stencil_chain(hl, stages)
        built = time.perf_counter()
        path = Path(folder) / "chain.c"
        out.compile_to_c(str(path), hl.Pipeline([out]).infer_arguments(), "chain")
        return built - start, time.perf_counter() - built, path.stat().st_size


def main() -> None:
    """Print the figures."""
    stages = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    lowering_seconds(2)  # imports and tables
    for n in (stages // 2, stages):
        built, lowered, size = lowering_seconds(n)
        goal = f"   goal {n / 50:.2f} s{'' if lowered <= n / 50 else '  missed'}"
        print(f"lowering {n:3} stencil stages: {lowered:6.2f} s to C text of {size // 1024} KiB, {built:.2f} s to define them{goal}")


if __name__ == "__main__":
    main()
