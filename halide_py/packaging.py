"""For a package's setup.py: extension modules made of Generators, so that its wheel contains compiled pipelines and needs no halide_py.

    from setuptools import setup
    from halide_py.packaging import BuildPipelines, Pipeline

    setup(
        name="photo", version="1.0", packages=["photo"],
        ext_modules=[Pipeline("photo.brighten", "pipelines/brighten.py", target="x86-64-linux-sse41", params={"offset": 3})],
        cmdclass={"build_ext": BuildPipelines},
    )

with `requires = ["setuptools", "halide_py"]` in the `[build-system]` of pyproject.toml. `import photo.brighten` then has the function
`photo.brighten.brighten(image, out)` on arrays of NumPy or anything else with the buffer protocol. A wheel for many machines names a target
that they all have; the default, `host`, is for this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError


class Pipeline(Extension):
    """One extension module: `name` is the module's, `source` the Python file with the Generator, which ends with `hl.main()`.

    `generator` is the Generator's name and `function` that of the function, both by default the last part of `name`; `params` are
    GeneratorParams.
    """

    def __init__(
        self,
        name: str,
        source: str,
        *,
        generator: str = "",
        function: str = "",
        target: str = "host",
        params: Mapping[str, Any] | None = None,
        depends: Sequence[str] = (),
    ) -> None:
        super().__init__(name, [], depends=[source, *depends])
        last = name.rpartition(".")[2]
        self.source, self.generator, self.function = source, generator or last, function or last
        self.target, self.params = target, dict(params or {})


class BuildPipelines(build_ext):
    """`build_ext` that runs Generators first; other extension modules are built as ever."""

    def build_extension(self, ext: Any) -> None:
        """setuptools: build one extension module."""
        if isinstance(ext, Pipeline):
            self._generate(ext)
        super().build_extension(ext)

    def _generate(self, ext: Pipeline) -> None:
        folder = os.path.join(self.build_temp, ext.name)
        os.makedirs(folder, exist_ok=True)
        words = [f"{k}={v}" for k, v in ext.params.items()]
        command = [
            sys.executable,
            ext.source,
            "-g",
            ext.generator,
            "-f",
            ext.function,
            "-o",
            folder,
            "-e",
            "static_library,python_extension",
            f"target={ext.target}",
            *words,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileError(f"The Generator {ext.generator} of {ext.source} failed: {done.stderr.strip()}")
        wrapper = os.path.join(folder, f"{ext.function}.py.c")
        os.replace(os.path.join(folder, f"{ext.function}.py.cpp"), wrapper)  # it is C as well as C++
        ext.sources, ext.extra_objects = [wrapper], [os.path.join(folder, f"{ext.function}.a")]
        ext.define_macros = [("HALIDE_PYTHON_EXTENSION_MODULE_NAME", ext.name.rpartition(".")[2])]
        ext.libraries = ["pthread", "m"]
