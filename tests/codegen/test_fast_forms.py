"""The C text of the canonical pipelines of benchmarks/ has the forms that make them fast, on a machine with AVX2."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from c_texts import TARGET, c_text, innermost_loops  # noqa: E402

import halide_py as hl  # noqa: E402

WORKS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "pipelines.py"))["WORKS"]


def test_blur_slides_without_boundary_code(tmp_path: Path) -> None:
    work = WORKS["blur"](hl)
    text = c_text(work.output, list(work.inputs), tmp_path)
    steady, = (loop for loop in innermost_loops(text) if re.search(r"\bblur\w*_row", loop))  # not what fills the window
    assert not re.search(r"\bif\b|\?|hl_max|hl_min|\[", steady), "boundary code, gathers or single elements in the steady state"
    assert re.findall(r"\*\(const u16x16u \*\)\(([a-z]+)\w*_row", steady) == ["input"] * 3 + ["rows"] * 3, "dense loads from pointers to rows"
    assert steady.count(" * ") == 1, "one index for all"
    assert len(re.findall(r"^ *\*\(u16x16u \*\)", steady, re.M)) == 2, "one row and one result are stored"
    assert steady.count("/ (uint16_t)3") == 2, "each row is computed once, in 16 bits"
    assert len(re.findall("halide_malloc", text)) == 1 and re.search(r"hl_times\(\w+, 4\)", text), "one allocation, of four rows of three needed"


def test_inline_reduction_is_one_vector(tmp_path: Path) -> None:
    """Each lane's own loop over the one element it asks for disappears: no predicates, no private loops."""
    x, xo, r = hl.Var("x"), hl.Var("xo"), hl.RDom([(0, 40)])
    source, out = hl.ImageParam(hl.Float(32), 1, "source"), hl.Func("highest")
    out[x] = hl.maximum(source[x + r])
    out.split(x, xo, x, 256).parallel(xo).vectorize(x, 8)
    text = c_text(out, [source], tmp_path)
    (loop,) = innermost_loops(text)
    assert not re.search(r"\bif\b|\?|\[", loop) and "hl_max_f32x8(" in loop


@pytest.mark.parametrize("parallel", [False, True])
def test_loops_know_that_pointers_are_apart(parallel: bool, tmp_path: Path) -> None:
    """Compilers believe `restrict` of parameters only, and move a load out of a loop with stores only if they do."""
    x, y = hl.Var("x"), hl.Var("y")
    table, out = hl.ImageParam(hl.Int(32), 1, "table"), hl.Func("scaled")
    out[x, y] = table[y] * x
    if parallel:
        out.parallel(y)
    text = c_text(out, [table], tmp_path)
    (signature,) = re.findall(r"int (?:task_\w+_body|loops)\((.*)\) {", text)
    assert len(re.findall(r"int32_t \*HL_RESTRICT const (?:table|scaled)", signature)) == 2
    function = text[text.index(signature):]
    assert "for (" in function[:function.index("\n}")]


def test_lookup_of_bytes(tmp_path: Path) -> None:
    """Indices come from memory one by one, clamped floats become integers without a test of their range, and without jumps."""
    x, image, table = hl.Var("x"), hl.ImageParam(hl.UInt(8), 1, "image"), hl.ImageParam(hl.Int(32), 1, "table")
    looked_up, counts = hl.Func("looked_up"), hl.Func("counts")
    looked_up[x] = table[hl.i32(image[x])]
    looked_up.vectorize(x, 8)
    assert len(set(re.findall(r"= (image\w*_row\w*\[[^\]]*\]);", c_text(looked_up, [image, table], tmp_path)))) == 8
    indirect = hl.Func("indirect")
    indirect[x] = table[hl.i32(image[x] + 1)]
    indirect.vectorize(x, 16)
    text = c_text(indirect, [image, table], tmp_path)
    assert len(re.findall(r"const uint64_t \w+ = \(uint64_t\)", text)) == 2 and " >> 56)]" in text, "computed indices leave vectors eight at a time"
    source = hl.ImageParam(hl.Float(32), 1, "source")
    r = hl.RDom(source)
    counts[x] = 0
    counts[hl.i32(hl.clamp(source[r], 0.0, 255.0))] += 1
    text = c_text(counts, [source], tmp_path)
    assert "(int64_t)(hl_max_float(hl_min_float(" in text and "_of_f32" not in text, "the conversion makes an index of 64 bits at once"


@pytest.mark.parametrize("lanes", [1, 16])
def test_limits_that_hold_anyway_cost_nothing(lanes: int, tmp_path: Path) -> None:
    """The luminance of bytes is in [0, 255] in floats, too, however it is rounded: no limits, and no way by bytes to the index."""
    x, image, table = hl.Var("x"), hl.ImageParam(hl.UInt(8), 2, "image"), hl.ImageParam(hl.Int(32), 1, "table")
    luma = sum((hl.f32(w) * hl.f32(image[x, k]) for k, w in enumerate((0.299, 0.587, 0.114))), hl.f32(0.0))
    out = hl.Func("out")
    out[x] = table[hl.i32(hl.u8(hl.clamp(luma, 0.0, 255.0)))] + hl.i32(hl.u8_sat(luma + 1.0))
    if lanes > 1:
        out.vectorize(x, lanes)
    text = c_text(out, [image, table], tmp_path)
    assert len(re.findall(r"hl_m(?:in|ax)_f(?:loat|32x\d)\(", text[text.index("for ("):])) == (lanes > 1) + 1, "those of the other sum stay"


def test_float_extrema_are_instructions(tmp_path: Path) -> None:
    """gcc makes a comparison and a choice, or a jump, of `a < 255 ? a : 255`."""
    if shutil.which("gcc") is None or os.environ.get("HL_CC", os.environ.get("CC", "gcc")) != "gcc":
        pytest.skip("names of builtins are gcc's")
    x, source, out = hl.Var("x"), hl.ImageParam(hl.Float(32), 1, "source"), hl.Func("limited")
    out[x] = hl.clamp(source[x], 0.0, 255.0)
    for lanes in (1, 8):
        if lanes > 1:
            out.vectorize(x, lanes)
        assembly = tmp_path / "limited.s"
        out.compile_to_assembly(str(assembly), [source], "limited", hl.Target(TARGET))
        found = assembly.read_text()
        suffix = "ps" if lanes > 1 else "ss"
        assert f"vmin{suffix}" in found and f"vmax{suffix}" in found and "vcmp" not in found and "vcomiss" not in found


def test_half_registers_widen_from_memory(tmp_path: Path) -> None:
    """gcc makes a load and an extension of other forms."""
    x, image, out = hl.Var("x"), hl.ImageParam(hl.UInt(8), 1, "image"), hl.Func("wide")
    out[x] = hl.i32(image[x]) + 1
    out.vectorize(x, 8)
    if shutil.which("gcc") is None or os.environ.get("HL_CC", os.environ.get("CC", "gcc")) != "gcc":
        pytest.skip("names of builtins are gcc's")
    assembly = tmp_path / "wide.s"
    out.compile_to_assembly(str(assembly), [image], "wide", hl.Target(TARGET))
    assert re.search(r"vpmovzxbd\s+\S*\(%r", assembly.read_text())


def test_lookups_are_put_together_sixteen_bytes_at_a_time(tmp_path: Path) -> None:
    """gcc computes all the scalars of an initializer before it uses the first: those of 32 bytes do not fit the registers."""
    x = hl.Var("x")
    table, image, out = hl.ImageParam(hl.UInt(8), 1, "table"), hl.ImageParam(hl.UInt(16), 1, "image"), hl.Func("curve")
    out[x] = table[hl.i32(image[x]) + 0]
    out.vectorize(x, 32)
    loop = next(loop for loop in innermost_loops(c_text(out, [table, image], tmp_path)) if "{table" in loop)
    assert [text.count("table") for text in re.findall(r"const u8x16 \w+ = \{(.*)\};", loop)] == [16, 16]
