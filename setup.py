"""Builds the C runtime when the package is built; everything else is in pyproject.toml.

`pip install .` and `pip install -e .` run it. In a checkout, `python setup.py build_runtime --inplace` rebuilds the runtime alone.
The compiler is HL_CC, CC, gcc, clang or cc, in this order, or the PyPI package ziglang, which is asked for when there is none of them.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Command, Distribution, setup
from setuptools.command.build import build
from setuptools.command.develop import develop

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "runtime"
PACKAGE = Path("halide_py") / "_runtime"
LIBRARY = "libhalide_py_runtime"
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-pthread"]


def find_compiler() -> list[str] | None:
    """The command that compiles C, or None."""
    for variable in ("HL_CC", "CC"):
        if os.environ.get(variable, "").strip():
            return shlex.split(os.environ[variable])
    for name in ("gcc", "clang", "cc"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def find_archiver(compiler: list[str]) -> list[str]:
    """The command that makes static libraries, of the compiler's family."""
    if "ziglang" in compiler:
        return [*compiler[:-1], "ar"]
    candidates = [os.environ.get("AR", ""), "ar", "gcc-ar", "llvm-ar"]
    for name in candidates:
        if name and shutil.which(name):
            return [name]
    raise SystemExit("No ar found to make the runtime's static library; install binutils (Debian: apt-get install binutils) or set AR.")


def run(command: list[str]) -> None:
    """Run a tool; its own messages say what is wrong."""
    print(" ".join(command), flush=True)
    if subprocess.call(command) != 0:
        raise SystemExit(f"The C runtime could not be built: {command[0]} failed.")


def weaken(objects: list[str]) -> None:
    """Make what objects define weak, so that several with the runtime inside link into one program. Without binutils (macOS) they do
    not."""
    nm, objcopy = (next((p for p in map(shutil.which, (tool, f"gcc-{tool}", f"llvm-{tool}")) if p), "") for tool in ("nm", "objcopy"))
    for compiled in objects if nm and objcopy else ():
        listed = subprocess.run([nm, "--defined-only", "--extern-only", compiled], capture_output=True, text=True, check=True).stdout
        names = Path(compiled).with_suffix(".names")
        names.write_text("".join(line.split()[-1] + "\n" for line in listed.splitlines()))
        run([objcopy, f"--weaken-symbols={names}", compiled])


def build_runtime_library(target: Path, link: bool) -> None:
    """Compile runtime/*.c into `target`; headers and sources are copied there, or the folder linked, so that a checkout's edits take
    effect."""
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit("No C compiler found: install gcc or clang, or `pip install ziglang`, or set HL_CC.")
    shared, static = target / f"{LIBRARY}.so", target / f"{LIBRARY}.a"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        objects: dict[str, list[str]] = {"shared": [], "static": []}
        for kind, defines in (("shared", []), ("static", ["-DHL_ERRORS_TO_STDERR"])):
            for source in sorted(SOURCES.glob("*.c")):
                objects[kind].append(f"{folder}/{kind}_{source.stem}.o")
                run([*compiler, *FLAGS, *defines, "-x", "c", "-c", str(source), "-o", objects[kind][-1]])
        new_shared, new_static = f"{folder}/{shared.name}", f"{folder}/{static.name}"
        run([*compiler, "-shared", "-pthread", *objects["shared"], "-o", new_shared])
        weaken(objects["static"])
        run([*find_archiver(compiler), "rcs", new_static, *objects["static"]])
        for new, final in ((new_shared, shared), (new_static, static)):
            replace(Path(new), final)
    place(headers(), target / "include", link)
    place(sources(), target / "src", link)


def replace(new: Path, final: Path) -> None:
    """Put a file in place in one step: a process that has the old one loaded keeps it."""
    beside = final.with_name(f".{final.name}.{os.getpid()}")
    shutil.copyfile(new, beside)
    beside.chmod(0o755)
    os.replace(beside, final)


def headers() -> list[Path]:
    """The headers that generated code and programs include."""
    return [header for header in sorted(SOURCES.glob("*.h")) if header.name != "hl_internal.h"]


def sources() -> list[Path]:
    """What the runtime is compiled from for other machines: all that is no public header."""
    return [source for source in sorted(SOURCES.glob("*.[ch]")) if source not in headers()]


def place(files: list[Path], folder: Path, link: bool) -> None:
    """Copy files to a folder, or make it a link to where they are."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    if link:
        folder.symlink_to(os.path.relpath(SOURCES, folder.parent))
        return
    folder.mkdir()
    for one in files:
        shutil.copyfile(one, folder / one.name)


class BuildRuntime(Command):
    """`build_runtime`: the C runtime, into the build folder or, with --inplace or in an editable installation, into the source tree."""

    description = "build the C runtime"
    user_options = [("build-lib=", "b", "folder of the built package"), ("inplace", "i", "build into the source tree")]
    boolean_options = ["inplace"]
    editable_mode = False

    def initialize_options(self) -> None:
        """setuptools: options before they are parsed."""
        self.build_lib: str | None = None
        self.inplace = False

    def finalize_options(self) -> None:
        """setuptools: the build folder is the `build` command's."""
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self) -> None:
        """Build."""
        inplace = self.inplace or self.editable_mode
        target = (ROOT if inplace else Path(self.build_lib or "build/lib")) / PACKAGE
        build_runtime_library(target, link=bool(inplace))

    def get_outputs(self) -> list[str]:
        """setuptools: the files this command makes."""
        names = [f"{LIBRARY}.so", f"{LIBRARY}.a"] + [f"include/{h.name}" for h in headers()] + [f"src/{s.name}" for s in sources()]
        return [str(Path(self.build_lib or "build/lib") / PACKAGE / name) for name in names]

    def get_output_mapping(self) -> dict[str, str]:
        """setuptools: of an editable installation, nothing to link."""
        return {}

    def get_source_files(self) -> list[str]:
        """setuptools: what a source distribution needs."""
        return [str(p.relative_to(ROOT)) for p in sorted(SOURCES.glob("*.[ch]"))]


class Build(build):
    """`build`, with the runtime."""

    sub_commands = [*build.sub_commands, ("build_runtime", None)]


class Develop(develop):
    """`develop` (the old way of `pip install -e`), with the runtime."""

    def run(self) -> None:
        """Build the runtime in place first."""
        build_runtime_library(ROOT / PACKAGE, link=True)
        super().run()


class BinaryDistribution(Distribution):
    """A package with machine code but no Python extension module."""

    def has_ext_modules(self) -> bool:
        """setuptools: the wheel is for one platform."""
        return True


class Wheel(bdist_wheel):
    """`bdist_wheel`: for any Python 3 of this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """setuptools: the wheel's tag."""
        return ("py3", "none", super().get_tag()[2])


if __name__ == "__main__":
    setup(
        distclass=BinaryDistribution,
        cmdclass={"build": Build, "build_runtime": BuildRuntime, "develop": Develop, "bdist_wheel": Wheel},
        setup_requires=[] if find_compiler() else ["ziglang"],
    )
