"""`make fuzz`: random expressions, updates, scheduled pipelines and derivatives until FUZZ_MINUTES (10) are over, from FUZZ_SEED (the time).

Stops at the first wrong result with the seed and a minimal script. To have the undefined behaviour sanitizer watch:
`LD_PRELOAD=$(gcc -print-file-name=libubsan.so) HL_CC="gcc -fsanitize=undefined -fno-sanitize-recover=all" make fuzz`.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

HERE = Path(__file__).parent
SECONDS = 600  # for one script: the machine may be busy
sys.path[:0] = [str(HERE), str(HERE.parent / "oracle"), str(HERE.parent / "autodiff")]

import expressions  # noqa: E402
import random_gradients  # noqa: E402
import updates  # noqa: E402
from expressions import AnyScript, failure, minimal  # noqa: E402
from hunt import Case, failures  # noqa: E402

import halide_py as hl  # noqa: E402


@dataclass(frozen=True)
class Tried:
    """Work that says what is wrong, to be done in a child, which it may end."""

    wrong: Callable[[], str]

    def run(self) -> bool:
        wrong = self.wrong()
        assert not wrong, wrong
        return True


def in_child(wrong: Callable[[], str]) -> str:
    """What `wrong` says in a child process, or how that ended; empty when all is well."""
    return "\n".join(f"{what}\n{printed}" for _, what, printed in failures([Tried(wrong)], SECONDS))


def fails(script: AnyScript) -> str:
    """How a script goes wrong; empty when it does not."""
    return in_child(lambda: failure(script))


def tried(script: AnyScript) -> str:
    """A failure and its minimal script; empty if all is well."""
    wrong = fails(script)
    return f"{wrong}\n\n{minimal(script, fails).text()}" if wrong else ""


def try_expressions(seed: int) -> str:
    """Random expressions of all types."""
    return tried(expressions.draw(seed, depth=5))


def try_updates(seed: int) -> str:
    """Random updates and inline reductions of all types."""
    return tried(updates.draw(seed))


def try_pipelines(seed: int) -> str:
    """A few random pipelines under random schedules, each in a child process."""
    cases = [Case(10 * seed + k) for k in range(10)]
    return "\n".join(f"seed {case.seed} {what}\n{printed}\n{case.text()}" for case, what, printed in failures(cases, SECONDS))


_GRADIENTS: list[dict[str, Any]] = [
    {}, {"compiled": True}, {"second": True, "funcs": 2}, {"eager": True, "compiled": True}, {"scheduled": True}, {"narrow": "float32"}, {"narrow": "float16"}]


def try_gradients(seed: int) -> str:
    """The derivatives of a random pipeline: interpreted, compiled, second ones, with what is for long sums done for short ones, under random schedules, or
    in fewer bits."""
    case = random_gradients.Case(seed, **{"funcs": 3, **_GRADIENTS[seed // 4 % len(_GRADIENTS)]})  # while seeds count up, every fourth comes here
    return "\n".join(f"{case} {what}\n{printed}\n" + "\n".join(case.script()) for _, what, printed in failures([case], SECONDS))


def main() -> int:
    """Run; 1 if something is wrong."""
    minutes, seed = float(os.environ.get("FUZZ_MINUTES", "10")), int(os.environ.get("FUZZ_SEED", time.time()))
    kinds: list[Callable[[int], str]] = [try_expressions, try_updates, try_pipelines, try_gradients]
    end, start, count = time.monotonic() + 60 * minutes, time.monotonic(), 0
    warnings.simplefilter("ignore")
    hl.evaluate(hl.Param(hl.Int(32), "p", seed % 100) + 1)  # loads what compiles, for all children
    print(f"first seed {seed}, {minutes:g} minutes")
    with tqdm(total=round(60 * minutes), unit="s", bar_format="{l_bar}{bar}| {n:.0f}/{total} s {postfix}") as bar:
        while time.monotonic() < end:
            with contextlib.redirect_stdout(io.StringIO()):  # warnings
                wrong = kinds[count % len(kinds)](seed)
            if wrong:
                print(f"\nseed {seed}, {kinds[count % len(kinds)].__name__}: {wrong}")
                return 1
            seed, count = seed + 1, count + 1
            bar.n = min(time.monotonic() - start, bar.total)
            bar.set_postfix_str(f"{count} scripts")
    print(f"{count} scripts, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
