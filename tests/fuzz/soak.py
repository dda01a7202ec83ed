"""`make fuzz`: random expressions, random scheduled pipelines and their derivatives until FUZZ_MINUTES (10) are over, from FUZZ_SEED (the time).

Stops at the first wrong result with the seed and a minimal script. To have the undefined behaviour sanitizer watch:
`LD_PRELOAD=$(gcc -print-file-name=libubsan.so) HL_CC="gcc -fsanitize=undefined -fno-sanitize-recover=all" make fuzz`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "oracle"), str(HERE.parent / "autodiff")]

import expressions  # noqa: E402
import random_gradients  # noqa: E402
from hunt import Case, failures  # noqa: E402


def try_expressions(seed: int) -> str:
    """A failure and its minimal script; empty if all is well."""
    script = expressions.draw(seed, depth=5)
    try:
        wrong = expressions.failure(script)
    except Exception as error:  # noqa: BLE001 (whatever it is, the script must be shown)
        return "".join(traceback.format_exception(error)) + script.text()
    return f"{wrong}\n\n{expressions.minimal(script).text()}" if wrong else ""


def try_pipelines(seed: int) -> str:
    """The same for a few random pipelines under random schedules, each in a child process."""
    cases = [Case(10 * seed + k) for k in range(10)]
    return "\n".join(f"seed {case.seed} {what}\n{printed}\n{case.text()}" for case, what, printed in failures(cases))


def try_gradients(seed: int) -> str:
    """The derivatives of a random pipeline: interpreted, compiled, second ones, or with what is for long sums done for short ones."""
    kind = seed % 4
    script = random_gradients.script(seed, 2 if kind == 2 else 3)
    with random_gradients.eager() if kind == 3 else contextlib.nullcontext():
        wrong = random_gradients.failure(script, compiled=kind in (1, 3), second=kind == 2)
    return f"{wrong}\n" + "\n".join(script) if wrong else ""


def main() -> int:
    """Run; 1 if something is wrong."""
    minutes, seed = float(os.environ.get("FUZZ_MINUTES", "10")), int(os.environ.get("FUZZ_SEED", time.time()))
    kinds: list[Callable[[int], str]] = [try_expressions, try_pipelines, try_gradients]
    end, start, tried = time.monotonic() + 60 * minutes, time.monotonic(), 0
    warnings.simplefilter("ignore")
    print(f"first seed {seed}, {minutes:g} minutes")
    with tqdm(total=round(60 * minutes), unit="s", bar_format="{l_bar}{bar}| {n:.0f}/{total} s {postfix}") as bar:
        while time.monotonic() < end:
            with contextlib.redirect_stdout(io.StringIO()):  # warnings
                wrong = kinds[tried % len(kinds)](seed)
            if wrong:
                print(f"\nseed {seed}, {kinds[tried % len(kinds)].__name__}: {wrong}")
                return 1
            seed, tried = seed + 1, tried + 1
            bar.n = min(time.monotonic() - start, bar.total)
            bar.set_postfix_str(f"{tried} scripts")
    print(f"{tried} scripts, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
