"""Targets: strings in and out, words that make no sense, questions, detection of this machine, the environment."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.target import host_target

LINUX, X86, F = hl.TargetOS.Linux, hl.TargetArch.X86, hl.TargetFeature


@pytest.mark.parametrize("text", [
    "x86-64-linux", "x86-32-linux-sse41", "arm-64-android-armv81a", "arm-32-android-cuda-debug-jit-opencl", "x86-64-linux-tune_znver3-avx-avx2",
    "x86-64-linux-trace_all", "wasm-32-wasmrt-wasm_simd128", "x86-64-linux-no_asserts-vector_bits_256", "arm-64-osx",
])
def test_round_trip(text: str) -> None:
    assert hl.Target(text).to_string() == text
    assert hl.Target.validate_target_string(text)


def test_order_of_words_does_not_matter() -> None:
    assert hl.Target("avx2-linux-64-x86-avx") == hl.Target("x86-64-linux-avx-avx2")


@pytest.mark.parametrize(("text", "why"), [
    ("x86", "number of bits"), ("x86-64", "arch, bits and os"), ("host-unknowntoken", "'unknowntoken' is unknown"), ("opencl-host", "'host' must come first"),
    ("x86-64-linux-arm", "'arm' comes after another"), ("x86-64-linux-windows", "another word of its kind"), ("x86-0", "arch, bits and os"),
])
def test_bad_strings_say_why_and_what_is_allowed(text: str, why: str) -> None:
    with pytest.raises(hl.CompileError) as e:
        hl.Target(text)
    assert why in str(e.value) and text in str(e.value)
    assert "avx512_skylake" in str(e.value) and "android" in str(e.value) and "tune_znver3" in str(e.value)
    assert not hl.Target.validate_target_string(text)


def test_features_of_another_architecture() -> None:
    with pytest.raises(hl.CompileError, match="avx2 is incompatible"):
        hl.Target("arm-64-linux-avx2")


def test_from_enums() -> None:
    t = hl.Target(LINUX, X86, 64, hl.TargetProcessorTune.TuneZnVer2, [F.AVX])
    assert str(t) == "x86-64-linux-tune_znver2-avx" and repr(t) == "<halide.Target x86-64-linux-tune_znver2-avx>"
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        hl.Target(LINUX, X86, 32, ["this is a string"])


def test_undefined() -> None:
    t = hl.Target()
    assert str(t) == "arch_unknown-0-os_unknown" and t.bits == 0 and not hl.Target.validate_target_string(str(t))


def test_features_are_copied_not_shared() -> None:
    t = hl.Target("x86-64-linux-avx")
    u = t.with_feature(F.AVX2)
    u.set_features([F.AVX, F.FMA], False)
    assert t.has_feature(F.AVX) and not t.has_feature(F.AVX2) and u.to_string() == "x86-64-linux-avx2"
    assert u.features_any_of([F.AVX, F.AVX2]) and not u.features_all_of([F.AVX, F.AVX2])
    host = hl.get_host_target()
    host.set_feature(F.NoAsserts)
    assert not host_target().has_feature(F.NoAsserts)
    with pytest.raises(TypeError):
        hash(t)


@pytest.mark.parametrize(("text", "lanes"), [
    ("x86-64-linux", (16, 4, 2)), ("x86-64-linux-avx", (16, 8, 4)), ("x86-64-linux-avx2", (32, 8, 4)), ("x86-64-linux-avx512_skylake", (64, 16, 8)),
    ("arm-64-linux", (16, 4, 2)), ("arm-64-linux-sve2-vector_bits_512", (64, 16, 8)),
])
def test_natural_vector_size(text: str, lanes: tuple[int, int, int]) -> None:
    with pytest.raises(hl.HalideError, match="lacks arch, bits or os"):
        hl.Target().natural_vector_size(hl.Float(32))
    t = hl.Target(text)
    assert tuple(t.natural_vector_size(x) for x in (hl.UInt(8), hl.Float(32), hl.Float(64))) == lanes


def test_devices_and_types() -> None:
    gpu = hl.Target("x86-64-linux-cuda")
    assert gpu.has_gpu_feature() and gpu.supports_device_api(hl.DeviceAPI.CUDA) and not gpu.supported()
    assert not hl.Target("x86-64-linux").supports_device_api(hl.DeviceAPI.CUDA)
    assert not hl.Target("x86-64-osx-metal").supports_type(hl.Float(64))
    assert hl.target_feature_for_device_api(hl.DeviceAPI.OpenCL) == F.OpenCL


def test_host_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    host = hl.get_host_target()
    assert host == hl.Target("host") == hl.Target("") and host.supported() and not host.has_unknowns()
    monkeypatch.setenv("HL_TARGET", "arm-64-linux")
    assert str(hl.get_target_from_environment()) == "arm-64-linux"
    assert hl.get_jit_target_from_environment() == host.with_feature(F.JIT)
    monkeypatch.setenv("HL_JIT_TARGET", "wasm-32-wasmrt")
    with pytest.raises(hl.CompileError, match="must match the host"):
        hl.get_jit_target_from_environment()
    monkeypatch.setenv("HL_JIT_TARGET", "host-no_bounds_query")
    with pytest.raises(hl.CompileError, match="bounds queries"):
        hl.get_jit_target_from_environment()


def test_pipelines_run_on_a_lesser_instruction_set() -> None:
    x = hl.Var("x")
    f = hl.Func("lesser")
    f[x] = hl.f32(x) * 0.5
    f.vectorize(x, 8)
    base = hl.Target(hl.get_host_target())
    base.set_features(base.features(), False)
    assert [f.realize([16], base)[i] for i in (0, 15)] == [0.0, 7.5]


@pytest.mark.parametrize(("feature", "advice"), [("cuda", "CPU"), ("profile_by_timer", "use profile"), ("msan", "not supported")])
def test_features_that_cannot_be_honoured(feature: str, advice: str) -> None:
    x = hl.Var("x")
    f = hl.Func("refused")
    f[x] = x
    with pytest.raises(hl.CompileError, match=feature) as e:
        f.realize([4], hl.Target(f"host-{feature}"))
    assert advice in str(e.value)


def test_no_asserts_drops_the_checks() -> None:
    x = hl.Var("x")
    k = hl.Param(hl.Int(32), "k", 5)
    k.set_range(0, 3)
    f = hl.Func("unchecked")
    f[x] = x + k
    with pytest.raises(hl.PipelineError, match="k"):
        f.realize([2])
    assert f.realize([2], hl.Target("host-no_asserts"))[1] == 6


def test_strict_float_of_a_target() -> None:
    """A product is rounded before it is added to, in the whole pipeline, as inside strict_float()."""
    rng = np.random.default_rng(3)
    a, b = rng.random(64, np.float32), rng.random(64, np.float32)
    wanted = a * b - np.float32(0.25)
    x = hl.Var("x")
    for lanes in (1, 16):
        f = hl.Func("exact")
        f[x] = hl.Buffer(a)[x] * hl.Buffer(b)[x] - hl.f32(0.25)
        if lanes > 1:
            f.vectorize(x, lanes)
        assert (np.array(f.realize([64], hl.Target("host-strict_float"))) == wanted).all()
        assert (np.array(f.realize([64])) == wanted).sum() < 64 or "fma" not in hl.get_host_target().to_string()
