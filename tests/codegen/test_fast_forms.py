"""The C text of the canonical pipelines of benchmarks/ has the forms that make them fast, on a machine with AVX2."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import halide_py as hl

WORKS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "pipelines.py"))["WORKS"]
TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"


def text_of(name: str, tmp_path: Path) -> str:
    """The C text after the helpers: the tasks and the pipeline itself."""
    if hl.get_host_target().arch != hl.Target(TARGET).arch:
        pytest.skip("the compiler makes code for another kind of machine")
    work = WORKS[name](hl)
    path = tmp_path / "out.c"
    work.output.compile_to_c(str(path), list(work.inputs), name, hl.Target(TARGET))
    text = path.read_text()
    return text[text.index("static int task_"):]


def innermost_loops(text: str) -> list[str]:
    """The loops without loops inside, as text."""
    return [m.group() for m in re.finditer(r"^( *)for \((?:(?!for \().)*?^\1}", text, re.M | re.S)]


def test_blur_slides_without_boundary_code(tmp_path: Path) -> None:
    text = text_of("blur", tmp_path)
    steady = innermost_loops(text)[0]
    assert not re.search(r"\bif\b|\?|hl_max|\[", steady), "boundary code, gathers or single elements in the steady state"
    assert re.findall(r"\*\(const u16x16u \*\)\(([a-z]+)", steady) == ["input"] * 3 + ["rows"] * 3, "dense loads"
    assert len(re.findall(r"^ *\*\(u16x16u \*\)", steady, re.M)) == 2, "one row and one result are stored"
    assert steady.count("/ (uint16_t)3") == 2, "each row is computed once, in 16 bits"
    assert len(re.findall("halide_malloc", text)) == 1 and re.search(r"hl_times\(\w+, 4\)", text), "one allocation, of four rows of three needed"
