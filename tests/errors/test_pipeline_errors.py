"""One tiny program per mistake that is found when a pipeline is compiled or run: which exception, and what its message names."""

from __future__ import annotations

import pytest

import halide_py as hl
from halide_py.ir import names as naming

PREAMBLE = """
import halide_py as hl
x, y, z, xo, xi = hl.vars("x y z xo xi")
r = hl.RDom([(0, 10)], "r")
f, g, h = hl.Func("f"), hl.Func("g"), hl.Func("h")
p = hl.Param(hl.Int(32), "p")
im = hl.ImageParam(hl.UInt(8), 2, "im")
small = hl.Buffer(hl.UInt(8), [4, 4])
"""

COMPILING = {
    "parallel on an inlined Func": ("g[x] = x; f[x] = g[x]; g.parallel(x); f.compile_jit()", "g", "inline", "x", "parallel"),
    "vectorize on an inlined Func": ("g[x] = x; f[x] = g[x]; g.vectorize(x, 4); f.compile_jit()", "g", "inline", "vectorized"),
    "storage of an inlined Func": ("g[x] = x; f[x] = g[x]; g.store_root(); f.compile_jit()", "g", "store_root()", "compute_at()"),
    "storage of an inlined reduction": ("g[x] = x; g[r] += 1; f[x] = g[x]; g.hoist_storage_root(); f.compile_jit()", "g", "hoist_storage", "compute_at()"),
    "ring of an inlined reduction": ("g[x] = x; g[r] += 1; f[x] = g[x]; g.ring_buffer(2); f.compile_jit()", "g", "ring_buffer()", "compute_at()"),
    "place that does not enclose all uses": (
        "g[x, y] = x; h[x, y] = g[x, y]; f[x, y] = h[x, y] + g[x, y]; h.compute_root(); g.compute_at(h, y); f.compile_jit()",
        "g", "compute_at(h, y)", "does not enclose all uses", "Legal locations", "compute_root()"),
    "place at a loop that is none": ("g[x] = x; f[x] = g[x]; g.compute_at(f, z); f.compile_jit()", "g", "compute_at(f, z)", "compute_at(f, x)"),
    "stored inside its computation": ("g[x, y] = x; f[x, y] = g[x, y]; g.compute_at(f, y).store_at(f, x); f.compile_jit()", "g", "store_at", "compute_at"),
    "stored outside a parallel loop": (
        "g[x, y] = x; f[x, y] = g[x, y] + g[x, y + 1]; g.compute_at(f, y).store_root(); f.parallel(y); f.compile_jit()", "g", "race", "(f, y)"),
    "LoopLevel never set": ("g[x] = x; f[x] = g[x]; g.compute_at(hl.LoopLevel()); f.compile_jit()", "g", "LoopLevel"),
    "output computed elsewhere": ("g[x] = x; f[x] = g[x]; f.compute_at(g, x); f.compile_jit()", "f", "output", "root"),
    "compute_with of what a loop does not use": (
        "f[x, y] = x; g[x, y] = y; h[x, y] = g[x, y]; h[x, y] += f[x, y]; f.compute_at(h, y); g.compute_at(h, y).compute_with(f, x); h.compile_jit()",
        "f", "not used in loop (h, y)", "compute_with()", "g"),
    "vectors of no constant extent": ("f[x, y] = x; f.vectorize(x); f.compile_jit()", "f.s0.x", "vectorized", "constant"),
    "unrolling of no constant extent": ("f[x, y] = x; f.unroll(y); f.compile_jit()", "f.s0.y", "unrolled", "constant"),
    "partition without effect": ("f[x] = x; f.always_partition(x); f.compile_jit()", "f.s0.x", "partition(Always)"),
    "overflow of constants": ("f[x] = x; f[x] += hl.i32(2**30) * 2; f.compile_jit()", "update 0 of Func f", "1073741824*2", "2147483648", "int32", "wider type"),
    "overflow of the constants of a sum": ("f[x] = x + 2147483647 + 1; f.compile_jit()", "Func f", "constant part", "2147483648", "int32"),
    "overflow of constants in a wide sum": ("f[x] = hl.i64(x) + (2**63 - 1) + 1; f.compile_jit()", "Func f", "9223372036854775808", "int64"),
    "overflow of constants below": ("f[x] = -x - 2147483647 - 2; f.compile_jit()", "Func f", "-2147483649"),
    "overflow of constant RDom": ("f[x] = x; f[x] += hl.RDom([(2147483640, 100)]).x; f.compile_jit()", "update 0 of Func f", "2147483739"),
    "overflow of constants in a region": (
        "g[x] = hl.u8(x); h[x] = g[x + 2147483647]; f[x] = h[x + 9]; g.compute_root(); h.compute_root(); f.compile_jit()",
        "Dimension x of Func g", "f.min.0 + f.extent.0 + 2147483655", "int32"),
    "overflow of constants in an inner region": (
        "g[x] = hl.u8(x); h[x] = g[x - 2147483647]; f[x] = h[x - 9]; g.compute_at(f, x); h.compute_at(f, x); f.compile_jit()",
        "Dimension x of Func g", "f.min.0 + -2147483656", "int32"),
    "index that leaves int32": (
        "g[x] = hl.u8(x); f[x] = g[x] + g[x + hl.i32(hl.u8(x)) * 10000000]; g.compute_root(); f.compile_jit()",
        "dimension 0 (x) of Func g", "no bound", "clamp()"),
    "undefined Func": ("f.realize([4])", "f", "undefined"),
    "undefined Pipeline": ("hl.Pipeline().compile_jit()", "Pipeline", "undefined"),
    "update after realize": ("f[x] = x; f.realize([4]); f[x] += 1", "f", "already been realized or used"),
    "number of sizes": ("f[x, y] = x; f.realize([4])", "f", "2 dimensions", "1"),
    "one name for two Params": ("q = hl.Param(hl.Int(32), 'q'); q.param.name = 'p'; f[x] = p + q; f.compile_jit()", "two different", "p"),
    "free Var in evaluate": ("hl.evaluate(x)", '"x"', "evaluate_func_1"),
    "Param without a value": ("f[x] = x + p; f.realize([4])", "p", "set()"),
    "ImageParam without data": ("f[x, y] = im[x, y]; f.realize([4, 4])", "im", "nullptr", "set()"),
}

RUNNING = {
    "interleaved input": (
        "im.set(hl.Buffer.make_interleaved(hl.UInt(8), 4, 4, 3).sliced(2, 0)); f[x, y] = im[x, y]; f.realize([4, 4])",
        "im.stride.0 (3) == 1", "ascontiguousarray", "im.dim(0).set_stride(hl.Expr())"),
    "interleaved output": (
        "im.set(small); f[x, y] = im[x, y]; f.realize(hl.Buffer.make_interleaved(hl.UInt(8), 4, 4, 3).sliced(2, 0))",
        "f.stride.0 (3) == 1", "ascontiguousarray", "f.output_buffer().dim(0).set_stride(hl.Expr())"),
    "interleaved element of a tuple": (
        "f[x, y] = (x, hl.u8(y)); f.realize([hl.Buffer(hl.Int(32), [4, 4]), hl.Buffer.make_interleaved(hl.UInt(8), 4, 4, 3).sliced(2, 0)])",
        "f.1.stride.0 (3) == 1", "f.output_buffers()[1].dim(0).set_stride(hl.Expr())"),
    "read beyond the end": ("im.set(small); f[x, y] = im[x + 1, y]; f.realize([4, 4])", "Input buffer im", "at 4", "max (3)", "dimension 0", "pipeline f"),
    "read before the start": ("im.set(small); f[x, y] = im[x, y - 2]; f.realize([4, 4])", "Input buffer im", "at -2", "min (0)", "dimension 1"),
    "read beyond int32": (
        "im.set(small); f[x, y] = im[x * 4, y]; out = hl.Buffer(hl.UInt(8), [4, 4]); out.set_min([2**30, 0]); f.realize(out)",
        "Input buffer im", "at 2147483647", "max (3)", "dimension 0"),
    "region beyond int32": ("g[x] = hl.u8(x); f[x] = g[x * 10000000]; g.compute_root(); f.realize([300])", "Func g", "dimension x", "0 to 2990000000"),
    "inner region beyond int32": ("g[x] = hl.u8(x); f[x] = g[x] + g[x * 10000000]; g.compute_at(f, x); f.realize([300])", "Func g", "dimension x", "2990000000"),
    "region beyond int32 by a Param": ("p.set(2**30); g[x] = hl.u8(x); f[x] = g[x * p]; g.compute_root(); f.realize([300])", "Func g", "321048805376"),
    "region below int32": (
        "g[x] = hl.u8(x); f[x] = g[x - 1]; g.compute_root(); out = hl.Buffer(hl.UInt(8), [4]); out.set_min([-2**31]); f.realize(out)",
        "Func g", "-2147483649 to"),
    "region beyond int32 at the end of a chain": (
        "g[x] = hl.u8(x); h[x] = g[x + 1]; f[x] = h[x + 1]; g.compute_root(); h.compute_root(); out = hl.Buffer(hl.UInt(8), [4]); "
        "out.set_min([2**31 - 5]); f.realize(out)", "Func g", "2147483648"),
    "index beyond int32 before a division": (
        "g[x] = hl.u8(x); f[x] = g[(x * 10000000) // 3000001]; g.compute_root(); f.realize([300])", "Func g", "0 to 996", "computed from"),
    "extent beyond int32": ("p.set(2**30); g[x] = hl.u8(x); f[x] = g[x - p] + g[x + p]; g.compute_root(); f.realize([4])", "Func g", "-1073741824 to 1073741827"),
    "scatter beyond int32": (
        "p.set(2**30); r = hl.RDom([(0, 9)]); g[x] = hl.u8(x); g[r * p] = hl.u8(1); f[x] = g[x]; g.compute_root(); f.realize([4])",
        "Func g", "dimension x", "0 to 8589934592"),
    "RDom beyond int32": ("p.set(2**30); f[x] = x; f[x] += hl.RDom([(p * 2 - 9, 99)]).x; f.realize([4])", "dimension r", "2147483639 to 2147483737"),
    "plane beyond int32": (
        "z = hl.Var('z'); g[x, y, z] = hl.u8(x); f[x, y, z] = g[x * 30000, y * 40000, z]; g.compute_root(); f.realize([3, 3, 2])",
        "g up to dimension y", "4800140001"),
    "output of another type": ("f[x, y] = x; f.realize(small)", "Output buffer f", "int32", "uint8"),
    "output of another rank": ("f[x] = hl.u8(x); f.realize(small)", "Output buffer f", "1 dimension", "2 dimensions"),
    "bound that does not cover": ("f[x] = hl.u8(x); f.bound(x, 0, 2); f.realize(hl.Buffer(hl.UInt(8), [10]))", "f in x", "0 to 1", "0 to 9"),
    "broken constraint": ("im.set(small); im.dim(1).set_extent(8); f[x, y] = im[x, y]; f.realize([4, 4])", "im.extent.1 (4) == 8"),
    "Param out of range": ("p.set_range(0, 3); p.set(7); f[x] = x + p; f.realize([4])", "p", "7", "3"),
    "requirement": ("p.set(0); f[x] = hl.require(p > 0, x, 'because p is', p); f.realize([4])", "Requirement Failed: (false)", "because p is 0", "(p > 0)"),
}


def run(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_COUNTS", {})
    exec(compile(PREAMBLE + "\n".join(program.split("; ")), "user_program.py", "exec"), {})


@pytest.mark.parametrize("name", COMPILING)
def test_compile_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *fragments = COMPILING[name]
    with pytest.raises(hl.CompileError) as caught:
        run(program, monkeypatch)
    assert [part for part in fragments if part.lower() not in str(caught.value).lower()] == []


@pytest.mark.parametrize("name", RUNNING)
def test_run_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *fragments = RUNNING[name]
    with pytest.raises(hl.PipelineError) as caught:
        run(program, monkeypatch)
    assert [part for part in fragments if part not in str(caught.value)] == []


@pytest.mark.parametrize("directives", [
    "f.compute_at(h, x)", "f.compute_at(g, x).store_at(g, zz)", "f.compute_at(g, x)\nf.store_at(h, y)", "f.compute_at(g, y)\ng.parallel(y)\nf.store_root()",
    "f.compute_at(g, y)\nf.hoist_storage(g, x)", "f.compute_root()\nf.ring_buffer(2)", "f.compute_root()\nf.fold_storage(y, 4)", "f.memoize()", "f.async_()",
    "f.compute_root()\nf.memoize().store_at(g, y)", "f.store_root()", "f.hoist_storage_root()", "f.ring_buffer(2)", "f.compute_root()\nf.store_in(hl.MemoryType.Register)", "f.compute_at(g, x)\nf.compute_at(hl.LoopLevel())",
    "f.compute_root()\nf.compute_with(hl.LoopLevel(k, y, 0))", "g.compute_with(hl.LoopLevel(h, x, 3))", "f.in_(h)", "f.vectorize(x, 4)", "f.specialize(p > 1)",
    "g.partition(y, hl.Partition.Always)", "f.debug_to_file('f.npy')",
])
def test_errors_when_compiling_name_the_line_of_the_directive(directives: str) -> None:
    x, y, zz, p, im = hl.Var("x"), hl.Var("y"), hl.Var("zz"), hl.Param(hl.Int(32), "p", 1), hl.ImageParam(hl.Int(32), 2, "im")
    f, g, h, k = hl.Func("f"), hl.Func("g"), hl.Func("h"), hl.Func("k")
    f[x, y] = x + y * p
    k[x, y] = x
    g[x, y] = f[x, y] + f[x, y + 1] + im[x, y]
    h[x, y] = g[x, y] + 1
    g.compute_root()
    text = "\n" * 7 + directives
    exec(compile(text, "user.py", "exec"), {"hl": hl, **locals()})
    with pytest.raises(hl.CompileError, match=rf"\(user\.py:{text.count(chr(10)) + 1}\)"):
        h.compile_jit()


@pytest.mark.parametrize("text", [
    "h[x] = im[i[x]]",
    "h[x] = (x, hl.select(x < 20, x, hl.undef(hl.Int(32))))",
    "h[x] = x\nh[x] += hl.Expr(0x7fffffff) + 1",
    "h[x] = x\nh.split(x, x, xi, p)\nh.vectorize(xi)",
    "h[x] = x\nh[x] += 1\nh.update().split(x, x, xi, p)\nh.update().unroll(xi)",
])
def test_errors_found_in_lowered_code_name_the_line_too(text: str) -> None:
    """Passes that know names only: of a buffer, of a Func, of a loop."""
    x, xi, p, h = hl.Var("x"), hl.Var("xi"), hl.Param(hl.Int(32), "p", 1), hl.Func("h")
    im, i = hl.ImageParam(hl.Int(32), 1, "im"), hl.ImageParam(hl.Int(32), 1, "i")
    text = "\n" * 7 + text
    exec(compile(text, "user.py", "exec"), {"hl": hl, **locals()})
    with pytest.raises(hl.CompileError, match=rf"\(user\.py:{text.count(chr(10)) + 1}\)"):
        h.compile_jit()
