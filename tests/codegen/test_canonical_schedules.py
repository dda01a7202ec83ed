"""What makes the C text of canonical schedules fast: dense accesses, no boundary code in the steady state, small folded storage, work done once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from c_texts import TARGET, c_text, innermost_loops, loop_over  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.ir import names  # noqa: E402

BRANCHES = r"\bif\b|\?|hl_max|hl_min"
DENSE = r"\*\(const \w+u \*\)"
STORE = r"^ *\*\(\w+u \*\)"
x, y, c, i, j, u = (hl.Var(v) for v in "x y c i j u".split())
xi, yi, xo = hl.Var("xi"), hl.Var("yi"), hl.Var("xo")


@pytest.fixture(autouse=True)
def plain_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Funcs are called what the test calls them, whatever other tests made."""
    monkeypatch.setattr(names, "_COUNTS", {})


def image(t: hl.Type, dimensions: int, name: str = "source") -> hl.ImageParam:
    return hl.ImageParam(t, dimensions, name)


def counts(loop: str) -> tuple[int, int]:
    """Dense loads and dense stores of a loop; accumulators are registers."""
    loop = re.sub(r"\*\((const )?\w+ \*\)\(\w+_(sum|lanes)\d+( \+ \d+)?\)", "register", loop)
    return len(re.findall(DENSE, loop)), len(re.findall(STORE, loop, re.M))


def test_boundaries_of_tiles_leave_the_inner_ones_clean(tmp_path: Path) -> None:
    """Vectors around a reduction in tiles that are moved inwards (the form of non-local means): inside the image all loads are dense."""
    source, rows, out, r = image(hl.Float(32), 2), hl.Func("rows"), hl.Func("out"), hl.RDom([(-2, 5)])
    clamped = hl.BoundaryConditions.repeat_edge(source)
    rows[x, y] += clamped[x + r, y] * (r + 3)
    out[x, y] = rows[x, y] + rows[x, y + 1]
    out.tile(x, y, xi, yi, 64, 32).vectorize(xi, 8).parallel(y)
    rows.compute_at(out, x).vectorize(x, 8)
    rows.update().reorder(r, x, y).vectorize(x, 8)
    text = c_text(out, [source], tmp_path)
    assert "halide_malloc" not in text, "a tile is small enough for the stack"
    tile = re.search(r"^( *)if \(\w+\) {\n(.*?)^\1} else {", text[text.index("/* out.s0.x */"):], re.M | re.S)
    assert tile is not None
    for loop in innermost_loops(tile[2]):
        assert not re.search(BRANCHES + r"|\[", loop), loop
    assert counts(tile[2]) == (4, 3)  # of what is updated, each term, and two of the sum; zero, update and sum are stored


def test_edge_tiles_are_mostly_inside(tmp_path: Path) -> None:
    """A strip at the edge has boundary code in its first or last vectors only."""
    source, out = image(hl.UInt(16), 2), hl.Func("out")
    clamped = hl.BoundaryConditions.repeat_edge(source)
    out[x, y] = clamped[x - 1, y] + clamped[x, y] + clamped[x + 1, y]
    out.tile(x, y, xi, yi, 512, 32, hl.TailStrategy.RoundUp).vectorize(xi, 16)
    text = c_text(out, [source], tmp_path)
    clean = [loop for loop in innermost_loops(text) if counts(loop) == (3, 1) and not re.search(BRANCHES + r"|\[", loop)]
    assert len(clean) == 2, "one for strips inside, one for the inside of strips at edges"


def test_interleaved_channels_are_shuffled_in_registers(tmp_path: Path) -> None:
    source, out = image(hl.UInt(8), 3), hl.Func("out")
    out[x, y, c] = 255 - source[x, y, c]
    for p in (source, out.output_buffer()):
        p.dim(0).set_stride(3).dim(2).set_stride(1)
        p.dim(2).set_bounds(0, 3)
    out.reorder(c, x, y).unroll(c).vectorize(x, 16)
    (loop,) = innermost_loops(c_text(out, [source], tmp_path))
    assert counts(loop) == (3, 3) and "pshufb" in loop and not re.search(BRANCHES + r"|\w\[", loop)


@pytest.mark.parametrize("lanes_of_rows", [True, False])
def test_transposes_turn_blocks_in_registers(lanes_of_rows: bool, tmp_path: Path) -> None:
    """Rows are loaded and stored whole, whichever side of the block is the vector's."""
    source, out = image(hl.UInt(16), 2), hl.Func("out")
    out[x, y] = source[y, x]
    out.tile(x, y, xi, yi, 8, 8, hl.TailStrategy.RoundUp)
    if lanes_of_rows:
        out.vectorize(xi).unroll(yi)
    else:
        out.vectorize(yi).unroll(xi)
    (loop,) = innermost_loops(c_text(out, [source], tmp_path))
    assert counts(loop) == (8, 8) and loop.count("__builtin_shufflevector") == 24 and not re.search(BRANCHES + r"|\w\[", loop)


def test_every_second_pixel_is_picked_from_dense_loads(tmp_path: Path) -> None:
    source, out = image(hl.Float(32), 2), hl.Func("out")
    out[x, y] = (source[2 * x, 2 * y] + source[2 * x + 1, 2 * y] + source[2 * x, 2 * y + 1] + source[2 * x + 1, 2 * y + 1]) / 4
    out.vectorize(x, 8).parallel(y)
    (loop,) = innermost_loops(c_text(out, [source], tmp_path))
    assert counts(loop) == (4, 1), "two rows of sixteen pixels, each loaded once"
    assert loop.count("__builtin_shufflevector") == 4 and not re.search(BRANCHES + r"|\[", loop)


def test_windows_slide_in_a_ring_of_registers(tmp_path: Path) -> None:
    """Three rows of one vector are kept in four places on the stack; after the first iteration each row is computed once, unconditionally."""
    source, rows, out = image(hl.Float(32), 2), hl.Func("rows"), hl.Func("out")
    rows[x, y] = source[x, y] * source[x, y]
    out[x, y] = rows[x, y] + rows[x, y + 1] + rows[x, y + 2]
    out.split(x, xo, xi, 8, hl.TailStrategy.RoundUp).reorder(xi, y, xo).vectorize(xi)
    rows.store_at(out, xo).compute_at(out, y).vectorize(x, 8, hl.TailStrategy.RoundUp)
    text = c_text(out, [source], tmp_path)
    assert re.findall(r"float rows\w*\[(\d+)\]", text) == ["32"] and "halide_malloc" not in text
    loop = loop_over(text, "out.s0.y")
    assert counts(loop) == (4, 2) and "& 3" in loop and not re.search(BRANCHES + r"|for .*for ", loop, re.S)


def test_windows_of_single_values_slide_too(tmp_path: Path) -> None:
    source, squares, out = image(hl.Float(32), 1), hl.Func("squares"), hl.Func("out")
    squares[x] = source[x] * source[x]
    out[x] = squares[x] + squares[x + 1] + squares[x + 2]
    squares.compute_at(out, x).store_root()
    text = c_text(out, [source], tmp_path)
    assert re.findall(r"float squares\w*\[(\d+)\]", text) == ["4"]
    loop = loop_over(text, "out.s0.x")
    assert loop.count("source") == 1 and not re.search(BRANCHES, loop)


def test_fused_stages_share_one_loop(tmp_path: Path) -> None:
    source, f, g, out = image(hl.Float(32), 2), hl.Func("f"), hl.Func("g"), hl.Func("out")
    f[x, y] = source[x, y] + 1
    g[x, y] = source[x, y] * 2
    out[x, y] = f[x, y] + g[x, y]
    f.compute_root().vectorize(x, 8)
    g.compute_root().vectorize(x, 8).compute_with(f, x)
    text = c_text(out, [source], tmp_path)
    loop = loop_over(text, "f.s0.fused.x")
    assert len(re.findall(r"/\* [fg]\.s0\S*y \*/", text)) == 1 and counts(loop)[1] == 2 and not re.search(BRANCHES, loop)


def test_matmul_is_blocked_in_registers(tmp_path: Path) -> None:
    """Sixteen columns of four rows: per step two loads of B and one number of A a row, multiplied into eight vectors at constant places."""
    a, b, product, out = image(hl.Float(32), 2, "A"), image(hl.Float(32), 2, "B"), hl.Func("product"), hl.Func("out")
    k = hl.RDom([(0, 256)])
    product[i, j] += a[k, j] * b[i, k]
    out[i, j] = product[i, j]
    out.tile(i, j, xi, yi, 16, 4, hl.TailStrategy.RoundUp).vectorize(xi, 8).unroll(xi).unroll(yi)
    product.compute_at(out, i).vectorize(i, 8).unroll(i).unroll(j)
    product.update().reorder(i, j, k).vectorize(i, 8).unroll(i).unroll(j)
    text = c_text(out, [a, b], tmp_path)
    assert re.findall(r"float product\w*\[(\d+)\]", text) == ["64"]
    (loop,) = innermost_loops(text)
    assert len(re.findall(DENSE + r"\(B_row", loop)) == 2 and len(re.findall(r"A_row\w*\[", loop)) == 4
    assert sorted(re.findall(STORE + r"\(product(?: \+ (\d+))?\)", loop, re.M), key=lambda s: int(s or 0)) == ["", *map(str, range(8, 64, 8))]
    assert not re.search(BRANCHES, loop)


def test_horizontal_sums_combine_lanes_after_the_loop(tmp_path: Path) -> None:
    """`atomic().vectorize(r)`: the products of 32 pixels are added lane by lane; lanes are added after the loop, half to half."""
    a, b, out, r = image(hl.UInt(8), 2, "A"), image(hl.UInt(8), 2, "B"), hl.Func("out"), hl.RDom([(0, 256)])
    out[y] += hl.i32(a[r, y]) * hl.i32(b[r, y])
    out.update().atomic().vectorize(r, 32)
    text = c_text(out, [a, b], tmp_path)
    loop = max(innermost_loops(text), key=len)
    assert counts(loop) == (8, 0) and "i32x4 " not in loop and text.count("const i32x4 ") == 3 and "lock" not in text
    assert "out_row" not in loop and not re.search(BRANCHES, loop)


def test_rfactored_sums_keep_lanes_apart(tmp_path: Path) -> None:
    """No horizontal work in the loop: four registers of partial sums."""
    a, b, out, r = image(hl.Float(32), 1, "A"), image(hl.Float(32), 1, "B"), hl.Func("out"), hl.RDom([(0, 4096)])
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    out[()] = 0.0
    out[()] += a[r] * b[r]
    out.update().split(r, ro, ri, 32)
    partial = out.update().rfactor(ri, u)
    partial.compute_root().vectorize(u, 32)
    partial.update().reorder(u, ro).vectorize(u, 32)
    out.update().atomic().vectorize(ri)
    text = c_text(out, [a, b], tmp_path)
    (loop,) = innermost_loops(text)
    assert counts(loop) == (8, 0) and "shuffle" not in loop and "halide_malloc" not in text


def test_histograms_are_counted_apart_and_added(tmp_path: Path) -> None:
    """Each task counts into rows of its own: no atomic instructions, no locks; rows are added in vectors."""
    source, out, r = image(hl.UInt(8), 2), hl.Func("out"), hl.RDom([(0, 1024), (0, 512)])
    out[x] = 0
    out[hl.i32(source[r.x, r.y])] += 1
    partial = out.update().rfactor(r.y, u)
    partial.compute_root().vectorize(x, 8).parallel(u)
    partial.update().parallel(u)
    out.update().reorder(x, r.y).vectorize(x, 8)
    text = c_text(out, [source], tmp_path)
    assert "atomic" not in text and "mutex" not in text
    counting = next(loop for loop in innermost_loops(text) if "/* out_intm.s1.r" in loop)
    assert not re.search(BRANCHES, counting) and counting.count(";\n") <= 3
    assert any(counts(loop) == (2, 1) for loop in innermost_loops(text)), "rows are added in vectors"


def test_closures_hold_what_the_task_uses(tmp_path: Path) -> None:
    source, p, q = image(hl.Float(32), 2), hl.Param(hl.Float(32), "p"), hl.Param(hl.Float(32), "q")
    f, out = hl.Func("f"), hl.Func("out")
    f[x] = q * x
    out[x, y] = source[x, y] * p + f[x]
    f.compute_root()
    out.vectorize(x, 8).parallel(y)
    text = c_text(out, [source, p, q], tmp_path)
    ((name, fields),) = re.findall(r"struct (\w+)_closure {\n(.*?)}", text, re.S)
    members = re.findall(r"(\w+);", fields)
    assert not any(m.startswith("q") for m in members) and len([m for m in members if m.startswith("p_")]) == 1
    assert len([m for m in members if re.match(r"(source|out|f)_\d+$", m)]) == 3, "one pointer a buffer, no descriptions of buffers"
    signature = re.search(rf"int {name}_body\((.*?)\) {{(.*?)^}}", text, re.M | re.S)
    assert signature is not None
    for parameter in re.findall(r"const (\w+)[,)]", signature[1] + ")"):
        assert re.search(rf"\b{parameter}\b", signature[2]), f"{parameter} is passed and not used"
    assert text.count("halide_do_par_for(") == 1


def test_channels_of_an_interleaved_buffer_are_loaded_densely(tmp_path: Path) -> None:
    """What is known of a Buffer in an expression: its elements are three apart, or its first dimension is that of the rows."""
    image_rgb, turned = hl.Buffer(np.zeros((20, 100, 3), np.uint8)), hl.Buffer(np.zeros((100, 20), np.float32).T)
    gray, sums = hl.Func("gray"), hl.Func("sums")
    gray[x, y] = hl.u8((hl.u16(image_rgb[0, x, y]) + image_rgb[1, x, y] + image_rgb[2, x, y]) // 3)
    gray.vectorize(x, 16)
    sums[y, x] = turned[x, y] + 1.0
    sums.vectorize(y, 8)
    for f in (gray, sums):
        text = c_text(f, [], tmp_path)
        loop = innermost_loops(text)[0]
        assert counts(loop)[0] >= 1 and not re.search(r"_stride_|gather", loop)


def test_bytes_that_lie_apart_are_shifted_out_of_words(tmp_path: Path) -> None:
    planes, out = image(hl.UInt(8), 2), hl.Func("out")
    out[c, x] = planes[x, c]
    out.bound(c, 0, 3).reorder(c, x).unroll(c).vectorize(x, 32)
    loop = max(innermost_loops(c_text(out, [planes], tmp_path)), key=len)
    assert len(re.findall(r"= \(uint8_t\)\(?t\d+(\[\d\])?( >> \d+\))?;", loop)) == 96


def test_columns_that_a_scan_has_just_stored_are_loaded_one_by_one(tmp_path: Path) -> None:
    """A load of two elements of which one was just stored waits for the store."""
    source, out, r = image(hl.Float(32), 2), hl.Func("out"), hl.RDom([(1, 63)])
    out[x, y] = source[x, y]
    out[r.x, y] += out[r.x - 1, y]
    out.update().split(y, j, i, 8).reorder(i, r.x, j).vectorize(i)
    loop = next(one for one in innermost_loops(c_text(out, [source], tmp_path)) if "f32x8" in one)
    assert len(re.findall(r"^ *\*\(out_at\w*( \+ \d \* t\d+)?\) = ", loop, re.M)) == 8 and not re.search(r"f32x[248]u \*", loop)


def test_bytes_at_computed_places_are_inserted_one_by_one(tmp_path: Path) -> None:
    if hl.get_host_target().arch != hl.Target(TARGET).arch:
        pytest.skip("the compiler makes code for another kind of machine")
    source, out = image(hl.UInt(8), 1), hl.Func("out")
    out[x] = hl.f32(source[hl.clamp(hl.i32(hl.floor(hl.f32(x) * 0.75)), 0, 99)])
    out.vectorize(x, 8)
    out.compile_to_assembly(str(tmp_path / "out.s"), [source], "out", hl.Target(TARGET))
    assert len(re.findall(r"vpinsrb\s+\$\d, \(", (tmp_path / "out.s").read_text())) >= 7


def test_halves_of_words_are_widened_without_shuffles(tmp_path: Path) -> None:
    source, out = image(hl.Int(16), 1), hl.Func("out")
    out[x] = hl.i32(source[2 * x]) - hl.i32(source[2 * x + 1])
    out.vectorize(x, 8)
    loop = innermost_loops(c_text(out, [source], tmp_path))[0]
    assert counts(loop) == (1, 1) and "shuffle" not in loop and loop.count(">> 16") == 2
