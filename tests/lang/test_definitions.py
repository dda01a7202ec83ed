"""Definitions and updates: what may be written, what is recorded, and that a refused definition leaves the Func as it was."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.printer import to_text
from halide_py.reference import algorithm

x, y, z = hl.vars("x y z")


def values(f: hl.Func, *shape: int) -> list[Any]:
    out = [a.tolist() for a in algorithm.realize([f.function], shape)]
    return out[0] if len(out) == 1 else out


def texts(es: Any) -> list[str]:
    return [to_text(e.as_node()) for e in es]


def test_names() -> None:
    f, g = hl.Func("named_once"), hl.Func("named_once")
    assert f.name() == "named_once" and g.name() == "named_once$1"
    assert hl.Func().name().startswith("f")
    assert hl.lambda_func(x, x).name().startswith("lambda_")
    assert [f.name() for f in hl.funcs("qq1 qq2, qq3")] == ["qq1", "qq2", "qq3"]


def test_what_a_func_says_of_itself() -> None:
    f = hl.Func("says")
    assert not f.defined() and f.args() == [] and f.num_update_definitions() == 0
    f[x, y] = (x + y, 1.5)
    r = hl.RDom([(0, 3), (0, 2)], "saysr")
    f[r.x, y] = (f[r.x, y][0] + r.y, f[r.x, y][1])
    assert f.defined() and f.dimensions() == 2 and [a.name() for a in f.args()] == ["x", "y"]
    assert f.types() == [hl.Int(32), hl.Float(32)] and f.outputs() == 2 and f.has_update_definition() and f.num_update_definitions() == 1
    assert texts(f.values()) == ["(x + y)", "1.500000f"] and texts(f.update_args()) == ["saysr$x", "y"]
    assert texts(f.update_values())[0] == "(says(saysr$x, y) + saysr$y)" and [v.name() for v in f.rvars()] == ["saysr$x", "saysr$y"]
    assert repr(f) == "<halide.Func 'says'>" and len(f[x, y]) == 2 and [type(e) for e in f[x, y]] == [hl.FuncTupleElementRef] * 2
    assert f[x, y][1].type() == hl.Float(32) and f[x, y][1].index() == 1


def test_declared_types() -> None:
    f = hl.Func([hl.Int(32), hl.Float(64)], 3, "declared")
    assert not f.defined() and f.types() == [hl.Int(32), hl.Float(64)] and f.outputs() == 2 and f.dimensions() == 3
    g = hl.Func(required_type=hl.UInt(8), required_dimensions=1, name="declared_u8")
    assert g.type() == hl.UInt(8)
    g[x] += 3  # the initial value has the declared type, and so has the literal
    assert g.update_value().type() == hl.UInt(8)


def test_funcs_of_expressions_and_images() -> None:
    im = hl.ImageParam(hl.UInt(8), 2, "of_image")
    assert texts(hl.Func(im).values()) == ["(uint8)of_image(_0, _1)"]
    assert texts(hl.Func(hl._0 + hl._1).args()) == ["_0", "_1"]
    assert values(hl.lambda_func(x, y, x * 10 + y), 2, 3) == [[0, 1, 2], [10, 11, 12]]
    f = hl.Func()
    f[()] = 7
    assert f.dimensions() == 0 and values(f) == 7


def test_placeholders() -> None:
    f, g, h = hl.Func(), hl.Func(), hl.Func()
    f[x, y] = x + 10 * y
    g[hl._] = f[hl._] + 1
    assert texts(g.args()) == ["_0", "_1"] and values(g, 2, 2) == [[1, 11], [2, 12]]
    h[hl._, z] = f[hl._] * z
    assert texts(h.args()) == ["_0", "_1", "z"]
    h[hl._, 0] = f[hl._]
    assert texts(h.update_args()) == ["_0", "_1", "0"]


def test_update_on_an_undefined_func_defines_it() -> None:
    for program, want in (("f[x] += 1", 1), ("f[x] -= 1", -1), ("f[x] *= 2", 2), ("f[x] /= 2", 0), ("f[x] = f[x] + 1", 1)):
        f = hl.Func()
        exec(program, {"f": f, "x": x})
        assert values(f, 1) == [want], program
    f = hl.Func()
    r = hl.RDom([(0, 3)])
    f[r, x] += 2.5
    assert f.dimensions() == 2 and values(f, 2, 1) == [[2.5], [2.5]]
    t = hl.Func()
    t[x] += (x, 1.5)
    assert values(t, 2) == [[0, 1], [1.5, 1.5]]


def test_unevaluated_references() -> None:
    f = hl.Func("uneval")
    ref = f[x]
    ref += 1
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+=: 'halide.halide_\._UnevaluatedFuncRefExpr' and 'int'"):
        ref += 1
    with pytest.raises(hl.HalideError, match="at a different location"):
        hl.Func()[x] = ref
    with pytest.raises(hl.HalideError, match="at a different location"):
        f[0] = ref
    f[x] = ref
    with pytest.raises(hl.HalideError, match="when a pure definition already exists"):
        f[x] = ref
    g = hl.Func("uneval_g")
    with pytest.raises(hl.HalideError, match=r'Error: Can\'t call Func "uneval_g" because it has not yet been defined\.'):
        g[x] = 1 + g[x]


def test_calls_as_indices() -> None:
    g, f = hl.Func(), hl.Func()
    g[x] = 2
    f[g[0]] += 1
    assert values(f, 3) == [0, 0, 1]
    h = hl.Func()
    h[x] = 0
    r = hl.RDom([(0, 4)])
    h[g[r]] += 1
    assert values(h, 4) == [0, 0, 4, 0]
    k = hl.Func()
    k[x, y] = 0
    rr = hl.RDom([(0, 2), (1, 2)])
    k[rr] += 1
    assert values(k, 3, 3) == [[0, 1, 1], [0, 1, 1], [0, 0, 0]]


def test_tuples_and_their_elements() -> None:
    f = hl.Func()
    f[x] = (x, 10 * x)
    f[x] = (f[x][1], f[x][0])
    f[1][0] = 99
    f[x][1] += 1
    assert values(f, 3) == [[0, 99, 20], [1, 2, 3]]


def test_self_reference_makes_no_cycle() -> None:
    f = hl.Func()
    f[x] = 1
    r = hl.RDom([(1, 5)])
    f[r] = f[r - 1] + f[r]
    call = f.update_value().as_node().a  # type: ignore[attr-defined]
    assert call.func is None and call.name == f.name()
    assert values(f, 6) == [1, 2, 3, 4, 5, 6]


def test_each_definition_knows_its_line() -> None:
    f = hl.Func()
    f[x] = 1
    f[0] = 2
    (pure, update) = f.function.stages()
    assert pure.where.startswith(__file__) and update.where.startswith(__file__)
    assert int(update.where.rsplit(":", 1)[1]) == int(pure.where.rsplit(":", 1)[1]) + 1


def test_hiding_definition_warns() -> None:
    f = hl.Func("hidden")
    f[x] = 1
    out = io.StringIO()
    with redirect_stdout(out):
        f[x] = 2
    assert out.getvalue().startswith(f'Warning: In update definition 0 of Func "{f.name()}":\nUpdate definition completely hides earlier '
                                     'definitions')
    assert values(f, 1) == [2]


REFUSED = [
    "f[x, x] = 1", "f[x + 1] = 1", "f[r.x] = 1", "f[x] = r.x", "f[x] = y", "f[x] = hl.Expr()", "f[x] = (1, hl.Expr())", "f[x] = g[hl._]", "f[1.5] = 1",
    "f[r.x] += y", "f[x] += hl.Expr()", "f[x] = 1 + f[x]", "f[x] = t[x] + 1", "f[x] = ()", "f[x] = 'a'", "f[x] = hl.gather([1, 2])",
]


@pytest.mark.parametrize("program", REFUSED)
def test_after_a_refused_definition_the_func_is_as_before(program: str) -> None:
    f, g, t = hl.Func(), hl.Func(), hl.Func()
    g[x, y] = x
    t[x] = (x, x)
    r = hl.RDom([(0, 3)])
    with pytest.raises((hl.HalideError, TypeError)):
        exec(program, {"f": f, "g": g, "t": t, "r": r, "x": x, "y": y, "hl": hl})
    assert not f.defined() and f.args() == [] and not f.function.output_params
    f[x, y] = x * y
    assert values(f, 2, 2) == [[0, 0], [0, 1]]


REFUSED_UPDATES = [
    "f[x] = 1.5", "f[x, y] = 1", "f[y] = 1", "f[x] = (1, 2)", "f[x] = f[x + 1]", "f[r.x] = f[s.x]", "f[x] += g[hl._]", "f[x] = hl.Expr()", "f[1.5] = 1",
    "f[hl.scatter([1, 2])] = hl.gather([1, 2, 3])", "f[hl.scatter([hl.gather([1, 2]), 3])] = 1", "f[x][0] = 1", "f[x] = r.x + s.x",
]


@pytest.mark.parametrize("program", REFUSED_UPDATES)
def test_after_a_refused_update_the_func_is_as_before(program: str) -> None:
    f, g = hl.Func(), hl.Func()
    f[x] = x
    g[x, y] = x
    r, s = hl.RDom([(0, 3)]), hl.RDom([(0, 3)])
    with pytest.raises((hl.HalideError, TypeError)):
        exec(program, {"f": f, "g": g, "r": r, "s": s, "x": x, "y": y, "hl": hl})
    assert f.num_update_definitions() == 0 and not r.reduction.frozen and not g.function.frozen  # type: ignore[union-attr]
    r.where(r.x < 2)
    f[r.x] += 1
    assert values(f, 3) == [1, 2, 2]


def test_scatter_and_gather() -> None:
    f = hl.Func()
    f[x] = x * 10
    f[hl.scatter([0, 1])] = f[hl.gather([1, 0])]
    assert values(f, 3) == [10, 0, 20]


def test_random_values_depend_on_coordinates_and_definition() -> None:
    f, g = hl.Func(), hl.Func()
    e = hl.random_uint()
    f[x, y] = e
    g[x, y] = e
    a, b = (np.array(algorithm.realize([k.function], (4, 4))[0]) for k in (f, g))
    assert len(np.unique(a)) == 16 and not (a == b).any()


def test_loops_as_split() -> None:
    """split_vars(): the loops of a stage, innermost first."""
    f, x, xo, xi = hl.Func("f"), *hl.vars("x xo xi")
    r, rxo, rxi = hl.RDom([(0, 10), (0, 10)], "r"), hl.RVar("rxo"), hl.RVar("rxi")
    f[x] = x
    f[x] += r.x + r.y
    f.split(x, xo, xi, 8)
    f.update().split(r.x, rxo, rxi, 4)
    assert [v.name() for v in f.split_vars()] == ["xi", "xo", "__outermost"]
    loops = f.update().split_vars()
    assert [v.name() for v in loops] == ["rxi", "rxo", r.y.name(), "x", "__outermost"]
    assert [type(v) for v in loops] == [hl.RVar] * 3 + [hl.Var] * 2


def test_mixed_conditions_of_tuples() -> None:
    x, y = hl.vars("x y")
    with pytest.raises(hl.HalideError, match=r"may not mix Expr and Tuple for the condition elements.*Expected Tuple but got Expr: \(\(x \+ y\) < 100\)"):
        hl.select((x < 30, y < 30), (x, y), x + y < 100, (x - 1, y - 2), (x - 100, y - 200))


def test_declared_type_of_a_call() -> None:
    x = hl.Var("x")
    assert hl.Func(hl.UInt(8), 1, "declared")[x].type() == hl.UInt(8)
    with pytest.raises(hl.HalideError, match="it is undefined"):
        hl.Func("nothing")[x].type()


def test_names_are_taken_once() -> None:
    """Also those that somebody chose which look like numbered ones."""
    names = [hl.Func(name).name() for name in ("taken", "taken$1", "taken", "taken", "taken$2", "taken")]
    assert names[:3] == ["taken", "taken$1", "taken$2"] and len(set(names)) == 6
    f, g = hl.Func("twin$1"), hl.Func("twin")
    h = hl.Func("twin")
    f[x], g[x] = x + 1, x * 10
    h[x] = f[x] + g[x]
    for one in (f, g):
        one.compute_root()
    assert [h.realize([3])[i] for i in range(3)] == [1, 12, 23]
