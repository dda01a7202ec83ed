"""The caches on disk: hits skip lowering and the C compiler, across processes too; damage is repaired; the size is bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import halide_py as hl
from halide_py.driver import build as driver
from halide_py.driver import cache
from halide_py.driver import fingerprint as fingerprints
from halide_py.driver.fingerprint import fingerprint
from halide_py.ir.function import Function
from halide_py.ir.target import Target

SCRIPT = """
import sys
import halide_py as hl
x = hl.Var("x")
f, g = hl.Func("f"), hl.Func("g")
f[x] = x * 3
r = hl.RDom([(0, 4)], "r")
g[x] = 0
g[x] += f[x + r.x]
f.compute_root().vectorize(x, 4)
print(list(g.realize([3])))
if sys.argv[1] == "warm":
    assert not sys.modules.keys() & {"halide_py.lower.pipeline", "halide_py.codegen_c.module", "halide_py.driver.c_compiler"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("HL_CACHE", raising=False)
    return tmp_path


def pipeline(k: int, name: str = "cached") -> hl.Pipeline:
    """The same pipeline each time, but for the number `k`; names are not made unique, as in a new process."""
    x = hl.Var("x")
    f = hl.Func()
    f.function.name = name
    f[x] = x + k
    return hl.Pipeline(f)


def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which each run of the C compiler adds."""
    ran: list[str] = []

    class Counting(driver.Compilation):  # of pipelines; what finds out about the compiler has its own
        def finish(self, *args: object, **named: object) -> None:
            ran.append("C")
            super().finish(*args, **named)

    monkeypatch.setattr(driver, "Compilation", Counting)
    return ran


def test_import_loads_what_describes_a_pipeline_and_no_compiler() -> None:
    script = "import sys, numpy, halide_py as hl; print(*sys.modules); hl.propagate_adjoints; hl.driver.aot; assert not set(hl.__all__) - set(dir(hl))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "halide_py.lang.func" in loaded
    later = ("halide_py.ir.simplify", "halide_py.lower.p", "halide_py.codegen_c", "halide_py.driver.c", "halide_py.autodiff.", "halide_py.generators",
             "subprocess", "tempfile", "hashlib")
    assert not {m for m in loaded if m.startswith(later)}
    with pytest.raises(AttributeError, match="module 'halide_py' has no attribute 'nonsense'"):
        hl.nonsense  # noqa: B018


def test_second_process_neither_lowers_nor_compiles(folder: Path) -> None:
    env = {**os.environ, "HL_VERIFY": "0"}
    runs = [subprocess.run([sys.executable, "-c", SCRIPT, how], env=env, capture_output=True, text=True, check=False) for how in ("cold", "warm")]
    assert [r.stdout for r in runs] == ["[18, 30, 42]\n"] * 2, runs[1].stderr


def test_same_pipeline_is_found_and_another_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = compiles(monkeypatch)
    assert pipeline(1).realize([2])[1] == 2
    assert pipeline(1).realize([2])[1] == 2
    assert len(ran) == 1
    assert pipeline(2).realize([2])[1] == 3
    assert len(ran) == 2


@pytest.mark.parametrize("damage", [b"", b"short", b"\x7fELF" + b"\0" * 5000])
def test_damaged_entries_are_built_again(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    pipeline(3).realize([2])
    ran = compiles(monkeypatch)
    for entry in [*folder.glob("*.so"), *folder.glob("*.key"), *folder.glob("*.json")]:
        entry.unlink()
        entry.write_bytes(damage)
    assert pipeline(3).realize([2])[1] == 4
    assert len(ran) == 1
    assert pipeline(3).realize([2])[1] == 4
    assert len(ran) == 1


def test_a_truncated_library_is_not_loaded(folder: Path) -> None:
    pipeline(4).realize([2])
    entry = next(folder.glob("*.so"))
    data = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(data[:len(data) // 2])
    assert pipeline(4).realize([2])[1] == 5


def test_an_entry_under_a_wrong_name_is_not_trusted(folder: Path) -> None:
    pipeline(5).realize([2])
    first = next(folder.glob("*.so"))
    data = first.read_bytes()
    pipeline(6).realize([2])
    second = next(p for p in folder.glob("*.so") if p != first)
    second.unlink()
    second.write_bytes(data)
    assert pipeline(6).realize([2])[1] == 7


def test_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_CACHE", "0")
    ran = compiles(monkeypatch)
    assert pipeline(1).realize([2])[1] == pipeline(1).realize([2])[1] == 2
    assert len(ran) == 2 and not list(folder.iterdir())


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert pipeline(1).realize([2])[1] == 2


def test_least_recently_used_entries_go_first(folder: Path) -> None:
    keys = [f"{i:040x}" for i in range(4)]
    source = folder.parent / "library"
    source.write_bytes(b"x" * 1000)
    for i, key in enumerate(keys):
        cache.store(key, str(source))
        os.utime(folder / f"{key}.so", (i, i))
    assert cache.lookup(keys[0])
    cache.trim(2100)
    assert [bool(cache.lookup(k)) for k in keys] == [True, False, False, True]


def test_concurrent_writers(folder: Path) -> None:
    source = folder.parent / "library"
    source.write_bytes(os.urandom(200_000))
    key, seen = "a" * 40, []
    writers = [threading.Thread(target=lambda: [cache.store(key, str(source)) for _ in range(20)]) for _ in range(3)]
    for w in writers:
        w.start()
    end = time.monotonic() + 5
    while any(w.is_alive() for w in writers) and time.monotonic() < end:
        seen.append(cache.lookup(key))
    for w in writers:
        w.join()
    found = seen[next((i for i, s in enumerate(seen) if s), len(seen)):]
    assert all(found) and cache.lookup(key) and not list(folder.glob("part-*"))


def key_of(f: Function, target: str = "x86-64-linux") -> str:
    return fingerprint([f], [], "p", Target(target), [])


def test_fingerprint_sees_every_change() -> None:
    x, xo, xi = hl.Var("x"), hl.Var("xo"), hl.Var("xi")
    g, f = hl.Func("producer"), hl.Func("consumer")
    g[x] = x * 2
    f[x] = g[x] + 1
    k = hl.Param(hl.Int(32), "fp_k")
    seen = [key_of(f.function)]
    changes = [
        lambda: g.compute_root(), lambda: g.vectorize(x, 4), lambda: f.split(x, xo, xi, 8), lambda: f.parallel(xo), lambda: g.store_in(hl.MemoryType.Stack),
        lambda: f.output_buffer().dim(0).set_min(0), lambda: f.output_buffer().set_host_alignment(32), lambda: f.bound(x, 0, k), lambda: k.set_range(0, 9),
        lambda: g.trace_stores(),
    ]
    for change in changes:
        change()
        seen.append(key_of(f.function))
    assert len(set(seen)) == len(seen)
    assert key_of(f.function) == seen[-1] and key_of(f.function, "x86-64-linux-avx2") != seen[-1]
    k.set(3)
    assert key_of(f.function) == seen[-1]
    f.set_estimate(x, 0, 100)  # default loops of derivatives look at it
    assert key_of(f.function) not in seen


def test_fingerprint_tells_constants_apart() -> None:
    x = hl.Var("x")
    keys = set()
    for value in (hl.f32(0.0), hl.f32(-0.0), hl.f64(0.0), hl.i8(0), hl.u8(0), hl.i32(0), hl.i32(1), hl.f32(float("nan")), hl.cast(hl.Bool(), hl.i32(1))):
        f = hl.Func()
        f.function.name = "constant"
        f[x] = value
        keys.add(key_of(f.function))
    assert len(keys) == 9


def test_own_version_changes_with_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lower").mkdir()
    monkeypatch.setattr(fingerprints, "_PACKAGE", str(tmp_path))
    versions = []
    for text in ("a", "b = 1"):
        (tmp_path / "lower" / "inline.py").write_text(text)
        fingerprints.own_version.cache_clear()
        versions.append(fingerprints.own_version())
    fingerprints.own_version.cache_clear()
    assert versions[0] != versions[1]


def test_what_other_headers_made_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = compiles(monkeypatch)
    pipeline(3).realize([2])
    monkeypatch.setattr(driver, "header_version", lambda: "other")
    monkeypatch.setattr(fingerprints, "own_version", lambda: "other")  # headers are a part of it
    pipeline(3).realize([2])
    assert len(ran) == 2
