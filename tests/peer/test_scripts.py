"""The same scripts under `halide` from PyPI and under this package give the same values. Skipped where `halide` is not installed.

Each module runs all scripts in one subprocess; a script sets `result` to something that JSON can hold.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("halide")

LANG = Path(__file__).parents[1] / "lang"
PREAMBLE = """
import numpy as np
x, y, c, i = hl.Var('x'), hl.Var('y'), hl.Var('c'), hl.Var('i')
image = np.random.default_rng(7).integers(0, 255, (12, 17)).astype(np.uint8)
im = hl.Buffer(image)
def value(func, *shape):
    out = func.realize(list(shape))
    return [np.asarray(o).tolist() for o in (out if isinstance(out, (list, tuple)) else [out])]
"""

SCRIPTS = {
    "blur": """
f, bx, by = hl.BoundaryConditions.repeat_edge(im), hl.Func('bx'), hl.Func('by')
u = hl.Func('u'); u[x, y] = hl.cast(hl.UInt(16), f[x, y])
bx[x, y] = (u[x - 1, y] + u[x, y] + u[x + 1, y]) / 3
by[x, y] = hl.cast(hl.UInt(8), (bx[x, y - 1] + bx[x, y] + bx[x, y + 1]) / 3)
xi, yi = hl.Var('xi'), hl.Var('yi')
by.tile(x, y, xi, yi, 8, 4).vectorize(xi, 8).parallel(y)
bx.compute_at(by, x).vectorize(x, 8)
result = value(by, 17, 12)
""",
    "histogram": """
h, cdf, eq = hl.Func('h'), hl.Func('cdf'), hl.Func('eq')
r = hl.RDom([(0, 17), (0, 12)])
h[i] = 0
h[hl.cast(hl.Int(32), im[r.x, r.y])] += 1
s = hl.RDom([(1, 255)])
cdf[i] = h[0]
cdf[s.x] = cdf[s.x - 1] + h[s.x]
eq[x, y] = hl.cast(hl.UInt(8), hl.clamp(cdf[hl.cast(hl.Int(32), im[x, y])] * 255 / 204, 0, 255))
h.compute_root(); cdf.compute_root(); eq.vectorize(x, 4)
result = value(eq, 17, 12)
""",
    "promotion": """
f = hl.Func('f')
u8, i16, u32, f32 = hl.cast(hl.UInt(8), x), hl.cast(hl.Int(16), x - 5), hl.cast(hl.UInt(32), x), hl.cast(hl.Float(32), x)
exprs = [u8 + i16, u8 * 3, i16 / 3, i16 % 3, -u8, u8 - 200, i16 + u32, f32 + u8, f32 / 4, u8 > 3, hl.max(u8, i16), hl.min(i16, 2),
         hl.select(x > 3, u8, 7), hl.abs(i16), hl.absd(u8, i16), ~u8, u8 << 3, i16 >> 1, hl.popcount(u8), x / 0, x % 0]
result = []
for k, e in enumerate(exprs):
    g = hl.Func('g'); g[x] = e
    result.append([str(g.type()) if hasattr(g, 'type') else str(g.output_types()[0]), value(g, 9)])
""",
    "division": """
result = []
for t in (hl.Int(8), hl.Int(16), hl.Int(32)):
    f = hl.Func('f')
    a, b = hl.cast(t, x * 7 - 30), hl.cast(t, y - 4)
    d = hl.select(b == 0, hl.cast(t, 3), b)  # by 0 these two trap there
    f[x, y] = (a / b, a % b, hl.div_round_to_zero(a, d), hl.mod_round_to_zero(a, d))
    f.vectorize(x, 4)
    result.append(value(f, 9, 9))
""",
    "tuples and reductions": """
f, g, m = hl.Func('f'), hl.Func('g'), hl.Func('m')
f[x, y] = (im[hl.clamp(x, 0, 16), hl.clamp(y, 0, 11)], hl.cast(hl.Int(32), x * y))
f[x, y] = (hl.cast(hl.UInt(8), f[x, y][1]), hl.cast(hl.Int(32), f[x, y][0]))
r = hl.RDom([(0, 5), (0, 3)])
g[x, y] = hl.sum(hl.cast(hl.Int(32), f[x + r.x, y + r.y][0])) + hl.maximum(f[x + r.x, y][1]) - hl.minimum(f[x, y + r.y][1])
am = hl.argmax(f[x + r.x, r.y][1])
m[x, y] = am[0] * 100 + am[1] * 10 + am[2]
f.compute_root(); g.vectorize(x, 8)
result = [value(f, 9, 4), value(g, 9, 4), value(m, 9, 4)]
""",
    "predicates and scatter": """
f, g = hl.Func('f'), hl.Func('g')
r = hl.RDom([(0, 7), (0, 7)])
r.where(r.x + r.y < 8); r.where(r.x != r.y)
f[x, y] = x + 10 * y
f[r.x, r.y] = f[r.y, r.x] + 1
g[x] = hl.cast(hl.UInt(8), 0)
q = hl.RDom([(0, 12)])
g[hl.clamp(q.x * q.x % 9, 0, 8)] += hl.cast(hl.UInt(8), 100)
result = [value(f, 7, 7), value(g, 9)]
""",
    "several writes": """
f, g, t, k = hl.Func('f'), hl.Func('g'), hl.Func('t'), hl.Func('k')
r, q = hl.RDom([(0, 8)]), hl.RDom([(0, 3), (0, 3)])
q.where(q.x < q.y)
f[x] = x * x
f[hl.scatter([r.x, 15 - r.x])] = hl.gather([f[15 - r.x], f[r.x]]) + 1
g[x, y] = x + 10 * y
g[hl.scatter([q.x, q.y]), hl.scatter([q.y, q.x])] = hl.gather([g[q.y, q.x], g[q.x, q.y]]) * 2
t[x] = (x, x + 1)
t[hl.scatter([r.x, r.x + 8])] = (hl.gather([t[r.x + 8][1], t[r.x][0]]), 7 + r.x)
k[x, y] = x + y
k[x, hl.scatter([0, 1])] = k[x, 2] + k[x, 0]
k.vectorize(x, 4).update().vectorize(x, 4)
result = [value(f, 16), value(g, 3, 3), value(t, 16), value(k, 8, 3)]
""",
    "resampling": """
f = hl.BoundaryConditions.mirror_interior(im)
down, up = hl.Func('down'), hl.Func('up')
down[x, y] = (hl.cast(hl.UInt(16), f[2 * x, y]) + f[2 * x + 1, y]) / 2
up[x, y] = (hl.cast(hl.Int(32), down[x / 2, y]) + 3 * hl.cast(hl.Int(32), down[x / 2 + (x % 2) * 2 - 1, y])) / 4
down.store_root().compute_at(up, y).vectorize(x, 8)
up.vectorize(x, 8, hl.TailStrategy.GuardWithIf)
result = value(up, 15, 9)
""",
    "boundaries": """
result = []
for name in ('repeat_edge', 'repeat_image', 'mirror_image', 'mirror_interior'):
    b = getattr(hl.BoundaryConditions, name)(im)
    f = hl.Func('f'); f[x, y] = b[x - 20, y - 15]
    f.vectorize(x, 16)
    result.append(value(f, 60, 40))
b = hl.BoundaryConditions.constant_exterior(im, 42)
f = hl.Func('f'); f[x, y] = b[x - 2, y - 3]
result.append(value(f, 22, 18))
""",
    "fixed point": """
f = hl.Func('f')
a, b = hl.cast(hl.UInt(8), x * 37), hl.cast(hl.UInt(8), y * 91)
sa, sb = hl.cast(hl.Int(16), x * 7001), hl.cast(hl.Int(16), y * 9001)
f[x, y] = (hl.lerp(a, b, hl.cast(hl.UInt(8), x * y)), hl.saturating_cast(hl.UInt(8), sa) if hasattr(hl, 'saturating_cast') else hl.u8_sat(sa),
           hl.count_leading_zeros(a), hl.count_trailing_zeros(sb), sa ^ sb, sa & sb)
f.vectorize(x, 8)
result = value(f, 20, 9)
""",
    "parameters and bounds": """
p, k = hl.Param(hl.Int(32), 'p'), hl.ImageParam(hl.UInt(8), 2, 'k')
f = hl.Func('f')
f[x, y] = hl.cast(hl.Int(32), k[x + 1, y]) * p + k.width()
p.set(3); k.set(im)
first = value(f, 9, 5)
p.set(-2)
result = [first, value(f, 9, 5)]
""",
}

NEST = """
def nest(func):
    import os, re, sys, tempfile
    sys.stderr.flush()
    saved, text = os.dup(2), tempfile.TemporaryFile()
    os.dup2(text.fileno(), 2)
    try:
        func.print_loop_nest()
        sys.stderr.flush()
    finally:
        os.dup2(saved, 2)
    text.seek(0)
    return re.sub(r"[.][vpu][0-9]+", ".v", text.read().decode())
xi, yi, xo, yo = hl.Var('xi'), hl.Var('yi'), hl.Var('xo'), hl.Var('yo')
def funcs():
    f, g, h = hl.Func('f'), hl.Func('g'), hl.Func('h')
    f[x, y] = x + y; g[x, y] = f[x, y - 1] + f[x, y + 1]; h[x, y] = g[x, y] + g[x, y + 1]
    return f, g, h
"""
SCRIPTS["loop nests"] = NEST + """
result = []
for schedule in (
    lambda f, g, h: None,
    lambda f, g, h: (f.compute_root(), g.compute_at(h, y)),
    lambda f, g, h: (f.compute_at(h, y), g.compute_at(h, x), h.bound(x, 0, 32), h.bound(y, 0, 32)),
    lambda f, g, h: (f.compute_at(g, y), g.compute_at(h, x), h.tile(x, y, xi, yi, 8, 4).vectorize(xi).unroll(yi).parallel(y)),
    lambda f, g, h: (g.compute_at(h, xo).vectorize(x, 4), h.split(x, xo, xi, 8, hl.TailStrategy.GuardWithIf)),
    lambda f, g, h: (f.compute_root().memoize(), g.compute_at(h, y).hoist_storage_root().ring_buffer(2)),
    lambda f, g, h: (f.compute_at(g, y).async_(), g.compute_root().store_in(hl.MemoryType.Heap)),
    lambda f, g, h: (g.compute_root(), h.prefetch(g, y, y, 2)),
):
    f, g, h = funcs()
    schedule(f, g, h)
    result.append(nest(h))
for level, align in ((x, hl.LoopAlignStrategy.AlignEnd), (y, hl.LoopAlignStrategy.Auto)):
    p, q, k = hl.Func('p'), hl.Func('q'), hl.Func('k')
    p[x, y] = x + y; q[x, y] = x - y; k[x, y] = p[x, y] + q[x + 1, y]
    p.compute_root(); q.compute_root().compute_with(p, level, align)
    result.append(nest(k))
"""
# Lines of the table of directives whose nests are not Halide's: a wrapped image has another name there, a producer that does not depend on the
# loop has one iteration here only, and a loop of an update cannot be named so there.
OWN_NESTS = ("im.in_(", "w.store_at(", "w.compute_at(LoopLevel(func=t,")
TABLE = [[part.strip() for part in line.split(";;")] for line in (LANG / "scheduling_api.txt").read_text().splitlines()]
SCRIPTS["nests of all directives"] = NEST + (LANG / "scheduling_scene.py").read_text().replace("from __future__ import annotations", "") + f"""
result = [nest(scheduled(hl, *directives)["h"]) for directives in {[row[2:4] for row in TABLE if row[4] == "nest" and not row[3].startswith(OWN_NESTS)]}]
"""
SCRIPTS["shared loops"] = """
p, q, k = hl.Func('p'), hl.Func('q'), hl.Func('k')
p[x, y] = x + y; q[x, y] = x - y; p[x, y] += 3; q[x, y] *= 2
k[x, y] = p[x, y] + q[x + 1, y + 3]
p.compute_root(); q.compute_root().compute_with(p, y, hl.LoopAlignStrategy.AlignEnd)
q.update(0).compute_with(p.update(0), x)
result = value(k, 9, 7)
"""
SCRIPTS["async and memoized"] = """
p, q, k = hl.Func('p'), hl.Func('q'), hl.Func('k')
p[x, y] = hl.cast(hl.Int(32), im[hl.clamp(x, 0, 16), hl.clamp(y, 0, 11)]); q[x, y] = p[x, y] + p[x, y + 1]; k[x, y] = q[x, y] + q[x, y + 2]
p.compute_root().async_(); q.store_root().compute_at(k, y).fold_storage(y, 4).async_()
s, t, u = hl.Func('s'), hl.Func('t'), hl.Param(hl.Int(32), 'u')
s[x] = x * u; t[x] = s[x] + s[x + 1]
s.compute_root().memoize(hl.EvictionKey(u))
result = [value(k, 9, 7)]
for v in (3, 4, 3):
    u.set(v)
    result.append(value(t, 9))
"""

RUNNER = """
import importlib, io, contextlib, json, sys
hl = importlib.import_module(sys.argv[1])
preamble, scripts = json.load(sys.stdin)
out = {}
for name, text in scripts.items():
    names = {'hl': hl}
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            exec(preamble + text, names)
            out[name] = names['result']
        except (AttributeError, ImportError, NameError, TypeError, ValueError, RuntimeError) as e:
            out[name] = f'{type(e).__name__}: {e}'
json.dump(out, sys.stdout)
"""


@functools.cache
def results(module: str) -> dict[str, Any]:
    """What every script gives under one module."""
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run([sys.executable, "-c", RUNNER, module], input=json.dumps([PREAMBLE, SCRIPTS]), capture_output=True, text=True,
                          cwd=root, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("{"):])


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_values(name: str) -> None:
    theirs = results("halide")[name]
    assert not isinstance(theirs, str), f"the script itself fails under halide: {theirs}"
    assert results("halide_py")[name] == theirs
