"""Saved pipelines: random ones are the same pipeline when read back; data, parameters and rules that cannot be saved; bytes that are something else."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import build
from pipelines import random_script

import halide_py as hl
from halide_py.driver.fingerprint import fingerprint
from halide_py.ir import archive
from halide_py.lang.argument import infer_arguments, lowered_arguments

x, y = hl.Var("x"), hl.Var("y")


def identity(p: hl.Pipeline) -> str:
    """Equal for pipelines that compile to the same code."""
    args = lowered_arguments(infer_arguments(p.functions, p.requirements), p.functions, p.requirements)
    return fingerprint(p.functions, args, p.name, hl.get_host_target(), p.requirements)


@pytest.mark.parametrize("seed", range(10))
def test_random_pipelines_come_back_the_same(seed: int) -> None:
    script = random_script(seed)
    names = build(script)
    p = hl.Pipeline([names[f.name] for f in script.outputs])
    again = hl.deserialize_pipeline(hl.serialize_pipeline(p))
    assert identity(again) == identity(p)


def test_data_constraints_and_c_functions_come_along(tmp_path: Path) -> None:
    table = hl.Buffer(np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::-1]).translated(0, 5)
    im, k = hl.ImageParam(hl.Float(32), 2, "im"), hl.Param(hl.Float(32), "k", 0.5)
    twice = hl.extern("float twice(float v)", source="static float twice(float v) { return 2 * v; }")
    r = hl.RDom([(0, 2), (0, 2)])
    r.where(r.x + r.y < 2)
    f, g = hl.Func("saved"), hl.Func("summed")
    f[x, y] = twice(table[x + 5, y]) * k + im[x, y]
    g[x] = (0.0, 0)
    g[x] = (g[x][0] + f[r.x, r.y], g[x][1] + 1)
    f.compute_root().vectorize(x, 4, hl.TailStrategy.GuardWithIf)
    im.dim(1).set_min(0)
    im.set(hl.Buffer(np.ones((2, 2), np.float32)))
    p = hl.Pipeline(g)
    p.add_requirement(k > 0, "k is", k)
    path = tmp_path / "p.hlpipe"
    assert set(hl.serialize_pipeline(p, path, get_params=True)) == {"im", "k"}
    im.set(hl.Buffer(np.full((2, 2), 10, np.float32)))
    renamed = hl.Param(hl.Float(32), "another", 2.0)
    again = hl.deserialize_pipeline(path, {"im": im.parameter(), "k": renamed.parameter()})
    total, count = again.realize([1])
    assert total[0] == 4 * (table[5, 0] + table[6, 0] + table[5, 1]) + 30 and count[0] == 3
    renamed.set(-1.0)
    with pytest.raises(hl.PipelineError, match="k is -1"):
        again.realize([1])
    assert hl.deserialize_parameters(path)["k"].scalar() == 0.5
    with pytest.raises(hl.CompileError, match=r"user_params\['k'\] is a scalar of type int32, but the saved pipeline takes a scalar of type float32"):
        hl.deserialize_pipeline(path, {"k": hl.Param(hl.Int(32)).parameter()})
    fresh = hl.deserialize_pipeline(path)
    with pytest.raises(hl.CompileError, match="Buffer argument im.* is nullptr"):
        fresh.realize([1])


def test_rules_of_gradients_are_missed_only_when_asked_for() -> None:
    @hl.custom_gradient
    def squared(v: Any) -> Any:
        return v * v

    squared.backward(lambda adjoint, result, v: adjoint * 2 * v)
    im, f = hl.ImageParam(hl.Float(32), 1, "im"), hl.Func("f")
    f[x] = squared(im[x])
    again = hl.deserialize_pipeline(hl.serialize_pipeline(hl.Pipeline(f)), {"im": im.parameter()})
    im.set(hl.Buffer(np.array([3], np.float32)))
    assert again.realize([1])[0] == 9
    with pytest.raises(hl.CompileError, match="custom gradient of .* was not saved"):
        hl.propagate_adjoints(again.get_func(0), hl.Buffer(np.ones(1, np.float32)))


def test_bytes_that_are_no_pipeline_are_refused(tmp_path: Path) -> None:
    f = hl.Func("f")
    f[x] = x
    data = hl.serialize_pipeline(hl.Pipeline(f))
    head, rest = data.split(b"\n", 1)
    for bad, message in (
        (b"PK\x03\x04 a zip file", "not a pipeline saved by"), (b"", "not a pipeline"), (head[:-1] + b"g\n" + rest, "another version of halide_py"),
        (data[:-1], "damaged"), (data[:-3] + b"\0" + data[-2:], "damaged"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            hl.deserialize_pipeline(bad)
    with pytest.raises(hl.CompileError, match="Cannot read the pipeline saved in .*missing'?: No such file"):
        hl.deserialize_pipeline(tmp_path / "missing")
    with pytest.raises(hl.CompileError, match="not a folder"):
        hl.serialize_pipeline(hl.Pipeline(f), tmp_path / "no" / "where")
    at = hl.extern("int at(int v)", address=4096)
    f[x] += at(x)
    with pytest.raises(hl.CompileError, match="C function at is an address in this process"):
        hl.serialize_pipeline(hl.Pipeline(f))


def saved_of_all_kinds() -> bytes:
    """A pipeline with Tuples, RDoms, splits, a specialization, a table and Params."""
    p, k, table = hl.ImageParam(hl.UInt(8), 2, "p"), hl.Param(hl.Int(32), "k", 3), hl.Buffer(np.arange(5, dtype=np.int16))
    f, g, r, xo, xi = hl.Func("f"), hl.Func("g"), hl.RDom([(0, 5)]), hl.Var("xo"), hl.Var("xi")
    f[x, y] = (hl.f32(p[x, y]) * k, hl.sin(table[hl.clamp(x, 0, 4)]))
    g[x, y] = 0.0
    g[x, y] += f[x + r.x, y][0] * f[x, y][1]
    f.compute_root().vectorize(x, 8).parallel(y)
    g.split(x, xo, xi, 8).specialize(k > 2)
    return hl.serialize_pipeline(hl.Pipeline(g))


def test_no_damage_is_accepted() -> None:
    data, rng = saved_of_all_kinds(), random.Random(7)
    for _ in range(500):
        damaged, at, to = bytearray(data), rng.randrange(len(data)), rng.randrange(len(data))
        for _ in range(rng.choice((1, 1, 3, 9))):
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for bad in (bytes(damaged), data[:at], data[:at] + data[to:], data + data[at:]):
            for read in (hl.deserialize_pipeline, hl.deserialize_parameters):
                if bad != data:
                    with pytest.raises(hl.CompileError):
                        read(bad)


def test_graphs_that_no_pipeline_is_are_refused_where_they_are_noticed() -> None:
    """Their digest is right: somebody made them. Nothing but a CompileError comes out."""
    data, rng = saved_of_all_kinds(), random.Random(8)
    text = zlib.decompress(data[len(archive._HEAD) + 16:])

    def places(value: Any) -> Iterator[tuple[Any, Any]]:
        for key, inner in list(enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()):
            yield value, key
            yield from places(inner)

    refused = 0
    for _ in range(300):
        changed = json.loads(text)
        holder, key = rng.choice(list(places(changed)))
        holder[key] = rng.choice((None, True, -1, 1 << 70, "", "x", [], {}, {"at": 0}, {"at": 10**9}, {"list": []}, {"float": "much"}, {"type": [9, 9, 9]}))
        payload = zlib.compress(json.dumps(changed).encode())
        try:
            hl.deserialize_pipeline(archive._HEAD + blake2b(payload, digest_size=16).digest() + payload)
        except hl.CompileError:
            refused += 1
    assert refused > 100
