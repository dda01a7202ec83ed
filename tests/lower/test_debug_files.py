"""debug_to_file: what a Func computed, in each format, read back by others; what cannot be written says why."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
TYPES = {"u1": hl.UInt(8), "i2": hl.Int(16), "f4": hl.Float(32), "i8": hl.Int(64), "f8": hl.Float(64)}


def written(path: Path, dtype: str, of_output: bool) -> np.ndarray:
    """What f holds, f[x, y, c]; its storage has another order and gaps."""
    f, g = hl.Func("f"), hl.Func("g")
    f[x, y, c] = hl.cast(TYPES[dtype], x + 10 * y + 60 * c)
    g[x, y, c] = f[x, y, c]
    f.compute_root().reorder_storage(c, x, y).align_storage(x, 16)
    (g if of_output else f).debug_to_file(str(path))
    g.realize([6, 5, 3])
    return np.fromfunction(lambda i, j, k: i + 10 * j + 60 * k, (6, 5, 3)).astype(dtype)


@pytest.mark.parametrize("of_output", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
def test_numpy(tmp_path: Path, dtype: str, of_output: bool) -> None:
    wanted = written(tmp_path / "f.npy", dtype, of_output)
    found = np.load(tmp_path / "f.npy")
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["i2", "f8"])
def test_plain(tmp_path: Path, dtype: str) -> None:
    wanted = written(tmp_path / "f.tmp", dtype, False)
    data = (tmp_path / "f.tmp").read_bytes()
    assert struct.unpack("<5i", data[:20]) == (6, 5, 3, 1, {"i2": 5, "f8": 1}[dtype])
    np.testing.assert_array_equal(np.frombuffer(data[20:], dtype).reshape(3, 5, 6).T, wanted)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f8"])
def test_matlab(tmp_path: Path, dtype: str) -> None:
    io: Any = pytest.importorskip("scipy.io")
    wanted = written(tmp_path / "values.mat", dtype, False)
    np.testing.assert_array_equal(io.loadmat(tmp_path / "values.mat")["values"], wanted)


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_tiff(tmp_path: Path, dtype: str) -> None:
    tifffile: Any = pytest.importorskip("tifffile")
    wanted = written(tmp_path / "f.tif", dtype, True)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "f.tif"), wanted.transpose(2, 1, 0))


REFUSED = {
    "inlined": ("f.debug_to_file('f.npy')", "f", "inline"),
    "several values": ("h[x] = (x, x); g[x] += h[x][0]; h.compute_root().debug_to_file('h.npy')", "h", "several values"),
    "five dimensions": ("a, b, d, e = hl.vars('a b d e'); h[a, b, d, e, x] = a; g[x] += h[x, 0, 0, 0, 0]; h.compute_root().debug_to_file('h.npy')", "5 dimensions", "4"),
    "no such folder": ("f.compute_root().debug_to_file('/no/such/folder/f.npy')", "to file /no/such/folder/f.npy", "-13"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_says_why(name: str) -> None:
    program, *words = REFUSED[name]
    names: dict[str, Any] = {"hl": hl, "x": x}
    exec("f, g, h = hl.Func('f'), hl.Func('g'), hl.Func('h')\nf[x] = x\ng[x] = f[x]\n" + program.replace("; ", "\n"), names)
    with pytest.raises(hl.HalideError) as caught:
        names["g"].realize([3])
    assert all(w in str(caught.value) for w in words), str(caught.value)
