"""Python extension modules of pipelines."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from programs import CC, x, y

import halide_py as hl

EXTENSION = """
import sys
import numpy as np
sys.path.insert(0, ".")
import bound
from bound import blur2, shade

image = np.arange(12, dtype=np.uint8).reshape(3, 4)
out = np.zeros((3, 4), np.float32)
shade(None, image, 0.5, True, np.int16(-3), out)
print(out[2, 3], out[0, 0])
fortran = np.zeros((4, 3), np.float32, order="F")
shade(None, image=image.T, k=0.5, up=0, offset=-3, shade=fortran)
print(fortran[3, 2], blur2(out, out) is None)
cases = {
    "rank": lambda: shade(None, image[0], 0.5, True, 1, out), "strides": lambda: shade(None, image[:, ::2], 0.5, True, 1, out),
    "range": lambda: shade(None, image, 0.5, True, 1 << 15, out), "word": lambda: shade(None, image, "x", True, 1, out),
    "truth": lambda: shade(None, image, 0.5, "False", 1, out), "element": lambda: shade(None, image.astype(complex), 0.5, True, 1, out),
    "type": lambda: shade(None, image.astype(np.float32), 0.5, True, 1, out), "order": lambda: shade(None, image, 0.5, True, 1, out.astype(">f4")),
    "count": lambda: shade(None, image), "frozen": lambda: shade(None, image, 0.5, True, 1, bytes(4)), "nothing": lambda: shade(None, 3, 0.5, True, 1, out),
}
for name, case in cases.items():
    try:
        case()
        print(name, "passed")
    except Exception as e:
        print(name, type(e).__name__, str(e), getattr(e, "__notes__", ""))
"""


def test_extension_modules_need_no_halide_py(tmp_path: Path) -> None:
    p, k, up, offset = hl.ImageParam(hl.UInt(8), 2, "image"), hl.Param(hl.Float(32), "k"), hl.Param(hl.Bool(), "up"), hl.Param(hl.Int(16), "offset")
    shade, blur2, source = hl.Func("shade"), hl.Func("blur2"), hl.ImageParam(hl.Float(32), 2, "source")
    shade[x, y] = p[x, y] * k + offset + hl.select(up, 100, 0)
    shade.parallel(y)
    blur2[x, y] = source[x, y]
    T = hl.OutputFileType
    for f, args, target in ((shade, [p, k, up, offset], "host-user_context"), (blur2, [source], "host")):
        f.compile_to({T.object: str(tmp_path / f"{f.name()}.o"), T.python_extension: str(tmp_path / f"{f.name()}.py.c")}, args, f.name(), hl.Target(target))
    strict = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-I", sysconfig.get_paths()["include"], "-c")
    for name, standard, flags in (
        ("shade", ("-x", "c", "-std=c11"), ("-DHALIDE_PYTHON_EXTENSION_OMIT_MODULE_DEFINITION",)),
        ("blur2", ("-x", "c++", "-std=c++17"), ("-DHALIDE_PYTHON_EXTENSION_MODULE_NAME=bound", "-DHALIDE_PYTHON_EXTENSION_FUNCTIONS=X(shade) X(blur2)")),
    ):
        built = subprocess.run([*CC, *standard, *strict, *flags, str(tmp_path / f"{name}.py.c"), "-o", str(tmp_path / f"{name}.py.o")],
                               capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
    objects = [str(tmp_path / name) for name in ("shade.o", "blur2.o", "shade.py.o", "blur2.py.o")]  # both objects have the runtime inside
    subprocess.run([*CC, "-shared", *objects, "-o", str(tmp_path / "bound.so"), "-lpthread", "-lm"], check=True)
    done = subprocess.run([sys.executable, "-c", EXTENSION], cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": ""})
    assert done.stdout.splitlines() == [
        "102.5 97.0", "2.5 True",
        "rank ValueError Invalid argument image: Expected 2 dimensions, got 1 ",
        "strides ValueError Invalid argument image: neither C nor Fortran contiguous ",
        "range OverflowError Invalid argument offset: 32768 does not fit int16 ",
        "word TypeError Invalid argument k: a number is needed, not x ",
        "truth TypeError Invalid argument up: a bool is needed, not False ",
        "element ValueError Invalid argument image: no pipeline takes elements of format Zd ",
        "type RuntimeError Halide Runtime Error: -3 ['Input buffer image has type uint8 but type of the buffer passed in is float32']",
        "order ValueError Invalid argument shade: no pipeline takes elements of format >f ",
        "count TypeError shade() missing required argument 'k' (pos 3) ",
        "frozen ValueError Invalid argument shade: not a writable array with the buffer protocol ",
        "nothing ValueError Invalid argument image: not an array with the buffer protocol ",
    ], done.stdout + done.stderr
