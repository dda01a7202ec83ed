"""Runs random scripts for several threads under gcc's ThreadSanitizer, runtime included; a child of `test_races.py`, with its library preloaded.

    LD_PRELOAD=libtsan.so HL_SANITIZE=thread HL_NUM_THREADS=4 python tests/oracle/races.py RUNTIME FIRST COUNT

prints each failing seed with what it did; RUNTIME is the runtime as a shared object built with -fsanitize=thread.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from hunt import Case, failures  # noqa: E402

from halide_py.driver import abi  # noqa: E402


def main() -> int:
    abi.SHARED_RUNTIME = sys.argv[1]  # before anything loads it
    first, count = int(sys.argv[2]), int(sys.argv[3])
    found = 0
    for case, what, printed in failures([Case(seed, focus="concurrent") for seed in range(first, first + count)], seconds=120):
        found += 1
        print(f"==== seed {case.seed} {what}\n{printed}\n---- script\n{case.text()}", flush=True)
    print(f"{found} of {count} failed")
    return found != 0


if __name__ == "__main__":
    sys.exit(main())
