"""Pipelines in PyTorch: a Python module with the pipeline and its gradient, a C++ header of functions of tensors. What calls them is skipped where there is
no torch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_program
from programs import CC, x, y

import halide_py as hl

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


def run_with_torch(folder: Path, script: str) -> list[str]:
    """What a script prints that imports torch and what is in the folder, and no halide_py."""
    text = "import sys, torch\nsys.modules['halide_py'] = None\n" + script
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SMOOTH = """
import smooth
torch.manual_seed(0)
def random(*shape):
    return torch.rand(*shape, dtype=torch.double, requires_grad=True)
image, weights, k = random(4, 9), random(3), torch.tensor(1.5, dtype=torch.double, requires_grad=True)
def both(image, weights, k):
    return smooth.smooth(image, weights, k, 2, torch.ones(9, dtype=torch.int32), shape=[(4, 7), ()])
print(torch.autograd.gradcheck(both, (image, weights, k)))
print(torch.autograd.gradcheck(both, (random(9, 4).T, random(6)[::2], k)))
filtered, total = both(image, weights, k)
by_hand = sum(torch.sin(image[:, i:i + 7]) * weights[i] * k for i in range(3)) + 2 * 3 + 1
print(torch.allclose(filtered, by_hand), torch.allclose(total, (image * k).sum()), filtered.grad_fn.name())
(filtered * torch.arange(7)).sum().backward()
print(torch.allclose(image.grad, torch.autograd.grad((by_hand * torch.arange(7)).sum(), image, retain_graph=True)[0]), k.grad.dtype)
print(torch.allclose(torch.func.grad(lambda i: both(i, weights, k)[0].sum())(image), torch.autograd.grad(by_hand.sum(), image)[0]))
single = torch.autograd.grad(both(image, weights, torch.tensor(1.5, requires_grad=True))[1], image)[0]
print(single.unique().tolist())
ones = torch.ones(9, dtype=torch.int32)
first = torch.autograd.grad(both(image, weights, k)[1], image, create_graph=True)[0]
for case in (lambda: smooth.smooth(image, weights, k, 2, ones, shape=[(4, 8), ()]), lambda: smooth.smooth(image.float(), weights, k, 2, ones),
             lambda: smooth.smooth(image, weights, "k", 2, ones), lambda: smooth.smooth(image, weights, k, 2.5, ones), lambda: smooth.smooth(image, weights, k, 1 << 40, ones),
             lambda: smooth.smooth(image, weights, k, 2, ones, shape=[(4, 7)]), lambda: smooth.smooth(image, weights, k, 2, ones, shape=[(4,), ()]),
             lambda: smooth.smooth(image.to("meta"), weights, k, 2, ones), lambda: first.sum().backward()):
    try:
        case()
        print("passed")
    except Exception as e:
        print(type(e).__name__, e)
print(smooth.smooth(random(0, 9), weights, k, 2, ones, shape=[(0, 7), ()])[0].shape, smooth.smooth.__module__)
"""


@needs_torch
def test_autograd_function_of_a_pipeline(tmp_path: Path) -> None:
    image, weights = hl.ImageParam(hl.Float(64), 2, "image"), hl.ImageParam(hl.Float(64), 1, "weights")
    k, n, mask = hl.Param(hl.Float(64), "k"), hl.Param(hl.Int(32), "n"), hl.ImageParam(hl.Int(32), 1, "mask")
    f, g, r, whole = hl.Func("filtered"), hl.Func("total"), hl.RDom([(0, 3)]), hl.RDom(image)
    f[x, y] = hl.cast(hl.Float(64), mask[x])
    f[x, y] += hl.sin(image[x + r.x, y]) * weights[r.x] * k + n
    g[()] = hl.f64(0)
    g[()] += image[whole.x, whole.y] * k
    hl.compile_to_pytorch([f, g], str(tmp_path / "smooth"), [image, weights, k, n, mask])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["smooth.py", "smooth_pipelines.so"]
    assert run_with_torch(tmp_path, SMOOTH) == [
        "True", "True", "True True SmoothBackward", "True torch.float64", "True", "[1.5]",
        "RuntimeError smooth failed with error -4: Input buffer image is accessed at 9, which is beyond the max (8) in dimension 0",
        "TypeError smooth: image must be a CPU tensor of torch.float64 with 2 dimensions, not cpu, torch.float32 and 2 dimensions",
        "ValueError smooth: k is 'k': new(): invalid data type 'str'", "ValueError smooth: n is 2.5, which is no torch.int32",
        "ValueError smooth: n is 1099511627776: value cannot be converted to type int32 without overflow",
        "ValueError smooth has 2 outputs, but shape has 1 elements", "ValueError smooth: the output filtered has 2 dimensions, but its shape is (4,)",
        "TypeError smooth: image must be a CPU tensor of torch.float64 with 2 dimensions, not meta, torch.float64 and 2 dimensions",
        "RuntimeError smooth can be differentiated once: its derivatives were compiled, those of the derivatives were not",
        "torch.Size([0, 7]) smooth",
    ]


@needs_torch
def test_elements_of_all_types(tmp_path: Path) -> None:
    script, wanted = "", []
    for t in (hl.UInt(8), hl.Int(8), hl.Int(16), hl.Int(32), hl.Int(64), hl.Bool(), hl.Float(16), hl.BFloat(16), hl.Float(32), hl.UInt(16)):
        p, k, factor, f = hl.ImageParam(t, 1, "lambda"), hl.Param(t, "k"), hl.Param(hl.Float(32), "factor"), hl.Func("all")
        f[x] = hl.f32(p[x]) * factor + hl.f32(k)
        hl.compile_to_pytorch(f, str(tmp_path / f"typed_{t}"), [p, k, factor])
        values, number = ([1, 0], 1) if t.is_bool() else ([5, 7], 3)
        script += f"""
from typed_{t} import typed_{t}
factor = torch.tensor(0.5, requires_grad=True)
out = typed_{t}(torch.tensor({values}, dtype=torch.{t}), {number}, factor)
out.sum().backward()
print(out.tolist(), factor.grad.item())
"""
        wanted.append(f"{[v * 0.5 + number for v in values]} {float(sum(values))}")
    assert run_with_torch(tmp_path, script) == wanted


HEADER = """
#include "twice.pytorch.h"
#include "pic_half.pytorch.h"
#include <cstdio>
int main() {
    at::Tensor a = at::ones({3, 4}), b = at::zeros({3, 4});
    if (twice_th_(a, 2.5f, b)) return 1;
    printf("%g\\n", b.sum().item<float>());
    if (pic::half_th_(a, b)) return 1;
    printf("%g\\n", b.sum().item<float>());
    at::Tensor c = at::zeros({3, 4}, at::kDouble), d = at::zeros({3, 5}), e = at::zeros({4, 3}).t(), f = at::zeros({4});
    for (at::Tensor *t : {&c, &d, &e, &f}) {
        try { twice_th_(a, 2.5f, *t); } catch (const c10::Error &e) { puts(e.what_without_backtrace()); }
    }
    return 0;
}
"""


@needs_torch
def test_header_of_functions_of_tensors(tmp_path: Path) -> None:
    p, k, f, g = hl.ImageParam(hl.Float(32), 2, "input"), hl.Param(hl.Float(32), "k"), hl.Func("twice"), hl.Func("half")
    f[x, y] = p[x, y] * k
    g[x, y] = p[x, y] / 2
    T = hl.OutputFileType
    f.compile_to({T.pytorch_wrapper: str(tmp_path / "twice.pytorch.h"), T.object: str(tmp_path / "twice.o")}, [p, k], "twice")
    target = hl.Target("host-user_context-c_plus_plus_name_mangling")
    g.compile_to({T.pytorch_wrapper: str(tmp_path / "pic_half.pytorch.h"), T.object: str(tmp_path / "half.o")}, [p], "pic::half", target)
    torch = Path(importlib.util.find_spec("torch").origin).parent  # type: ignore[union-attr, arg-type]
    (tmp_path / "main.cpp").write_text(HEADER)
    built = subprocess.run([*CC, "-std=c++20", "-Wall", "-Wextra", "-pedantic", "-Werror", "-isystem", str(torch / "include"), "main.cpp", "twice.o", "half.o",
                            f"-L{torch}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{torch}/lib", "-lpthread", "-lm", "-lstdc++", "-o", "main"],
                           cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = run_program([str(tmp_path / "main")])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "30", "6", "twice must be of type Float, not Double",
        "twice failed with error -4: Input buffer input is accessed at 4, which is beyond the max (3) in dimension 0",
        "twice must be contiguous", "twice must have 2 dimensions, not 1",
    ]


def test_what_pytorch_cannot_call_is_refused(tmp_path: Path) -> None:
    p, k, pointer = hl.ImageParam(hl.Float(32), 1, "p"), hl.Param(hl.Int(32), "k"), hl.Param(hl.Handle(), "pointer")
    f, g, h = hl.Func("f"), hl.Func("g"), hl.Func("h")
    f[x] = p[x] * k
    g[x] = hl.f32(k)
    h[x] = p[x] + hl.select(hl.reinterpret(hl.UInt(64), pointer) == 0, 1, 2)
    prefix = str(tmp_path / "out")
    for attempt, message in (
        (lambda: hl.compile_to_pytorch(g, prefix, [k]), "out has no input of floats to differentiate by"),
        (lambda: hl.compile_to_pytorch(h, prefix, [p, pointer]), "PyTorch cannot pass the pointer pointer of out"),
        (lambda: hl.compile_to_pytorch(f, prefix, [p, k], target=hl.Target("host-user_context")), "leave user_context out"),
        (lambda: hl.compile_to_pytorch(f, prefix, [p]), "refers to parameter k"),
        (lambda: hl.compile_to_pytorch(f, str(tmp_path / "none" / "f"), [p, k]), "is not a folder that can be written"),
        (lambda: h.compile_to({hl.OutputFileType.pytorch_wrapper: prefix}, [p, pointer], "h"), "PyTorch cannot pass the pointer pointer of h"),
    ):
        with pytest.raises(hl.CompileError, match=message):
            attempt()
    assert not list(tmp_path.iterdir())
