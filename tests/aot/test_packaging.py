"""A package with pipelines: its wheel is built by the recipe of `halide_py.packaging` and works where there is no halide_py and no NumPy."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools.command.bdist_wheel")

ROOT = Path(__file__).parents[2]
GENERATOR = """
import halide_py as hl

@hl.generator(name="brighten")
class Brighten:
    offset = hl.GeneratorParam(1)
    image = hl.InputBuffer(hl.UInt(8), 1)
    out = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self):
        x = hl.Var("x")
        self.out[x] = self.image[x] + self.offset
        self.out.vectorize(x, 16, hl.TailStrategy.GuardWithIf)

hl.main()
"""
SETUP = """
from setuptools import setup
from halide_py.packaging import BuildPipelines, Pipeline

setup(name="photo", version="1.0", packages=["photo"], cmdclass={"build_ext": BuildPipelines},
      ext_modules=[Pipeline("photo.brighten", "brighten.py", target="x86-64-linux", params={"offset": OFFSET})])
"""
USE = """
import sys
sys.path.insert(0, sys.argv[1])
from photo.brighten import brighten
image, out = bytearray(range(40)), bytearray(40)
brighten(image, out)
assert out == bytearray(range(3, 43)), out
try:
    import halide_py
except ImportError:
    print("fine")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the target named is Linux")
def test_a_wheel_with_a_pipeline_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "photo").mkdir()
    (tmp_path / "photo" / "__init__.py").write_text("")
    (tmp_path / "brighten.py").write_text(GENERATOR)
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def build(offset: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "setup.py").write_text(SETUP.replace("OFFSET", offset))
        return subprocess.run([sys.executable, "setup.py", "-q", "bdist_wheel"], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)

    done = build("3")
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".a", ".c", ".cpp"))]
        archive.extractall(tmp_path / "installed")
    use = subprocess.run([sys.executable, "-I", "-S", "-c", USE, str(tmp_path / "installed")], capture_output=True, text=True, check=False)
    assert use.stdout == "fine\n", use.stderr
    assert "The Generator brighten of brighten.py failed: Error: GeneratorParam offset takes a value of type int, not 'much'" in build("'much'").stderr
