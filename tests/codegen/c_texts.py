"""The C text of a pipeline, and its loops as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import halide_py as hl

TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"


def c_text(output: hl.Func, inputs: list[hl.ImageParam | hl.Param], tmp_path: Path) -> str:
    """The C text after the helpers: the tasks and the pipeline itself."""
    if hl.get_host_target().arch != hl.Target(TARGET).arch:
        pytest.skip("the compiler makes code for another kind of machine")
    path = tmp_path / "out.c"
    output.compile_to_c(str(path), inputs, "pipeline", hl.Target(TARGET))
    text = path.read_text()
    return text[text.rindex("\ntypedef" if "\ntypedef" in text else "#define"):]


def innermost_loops(text: str) -> list[str]:
    """The loops without loops inside, as text."""
    return [m.group() for m in re.finditer(r"^( *)for \((?:(?!for \().)*?^\1}", text, re.M | re.S)]


def loop_over(text: str, variable: str) -> str:
    """The loop over a variable of the schedule, the steady state of it, with all that is inside."""
    found = re.search(rf"^( *)for \([^\n]*/\* {re.escape(variable)} \*/.*?^\1}}", text, re.M | re.S)
    assert found is not None, f"no loop over {variable}"
    return found.group()
