"""(c) The blur as a C library, made ahead of time and called from a C program without Python; the bytes are compared."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from filters import blur, numpy_blur
from photo import OUTPUT, Bytes, planar, shown

import halide_py as hl

PROGRAM = Path(__file__).with_name("blur_photo.c")


def c_compiler() -> list[str]:
    """The command of a C compiler for the program; the library was made by the one that halide_py found."""
    for name in (os.environ.get("CC", ""), "gcc", "clang", "cc"):
        if name and shutil.which(shlex.split(name)[0]):
            return shlex.split(name)
    return [sys.executable, "-m", "ziglang", "cc"]


def make_library(folder: Path) -> None:
    """Write blur.so and blur.h for photographs with interleaved channels, as cameras and files have them."""
    photo = hl.ImageParam(hl.UInt(8), 3, "photo")
    photo.dim(0).set_stride(3)
    photo.dim(2).set_stride(1)
    photo.dim(2).set_bounds(0, 3)
    x, y, c, yo, yi = (hl.Var(name) for name in ("x", "y", "c", "yo", "yi"))
    out = blur(hl, photo, scheduled=False)
    out.output_buffer().dim(0).set_stride(3)
    out.output_buffer().dim(2).set_stride(1)
    out.output_buffer().dim(2).set_bounds(0, 3)
    out.bound(c, 0, 3).reorder(c, x, y).unroll(c).split(y, yo, yi, 32).parallel(yo).vectorize(x, 16)
    out.compile_to_shared_library(str(folder / "blur"), [photo], "blur")


def write_ppm(path: Path, picture: Bytes) -> None:
    """A binary PPM file."""
    height, width, _ = picture.shape
    path.write_bytes(f"P6\n{width} {height}\n255\n".encode() + picture.tobytes())


def read_ppm(path: Path, shape: tuple[int, ...]) -> Bytes:
    """The pixels of a binary PPM file of known shape."""
    return np.frombuffer(path.read_bytes()[-int(np.prod(shape)):], np.uint8).reshape(shape)


def run(picture: Bytes) -> None:
    """Build the library and the program, run it on the photograph, and compare with NumPy and with the pipeline run from Python."""
    print("\n(c) blur.so, made ahead of time and called from C")
    folder = OUTPUT / "ahead_of_time"
    folder.mkdir(parents=True, exist_ok=True)
    make_library(folder)
    command = [*c_compiler(), "-O2", "-Wall", f"-I{folder}", str(PROGRAM), "-o", str(folder / "blur_photo"),
               str(folder / "blur.so"), f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True)
    write_ppm(folder / "photo.ppm", picture)
    subprocess.run([str(folder / "blur_photo"), str(folder / "photo.ppm"), str(folder / "blurred.ppm")], check=True)
    from_c = read_ppm(folder / "blurred.ppm", picture.shape)

    photo = planar(picture)
    from_python = hl.Buffer(np.empty_like(photo))
    blur(hl, hl.Buffer(photo), scheduled=True).realize(from_python)
    for name, other in (("the pipeline run from Python", np.array(from_python)), ("NumPy", numpy_blur(photo))):
        differing = int((from_c.transpose(2, 0, 1) != other).sum())
        print(f"   bytes that differ from {name}: {differing} of {photo.size}")
        if differing:
            raise SystemExit("The C program's result differs.")
    size = (folder / "blur.so").stat().st_size
    print(f"   blur.so has {size // 1024} KiB; {shown(folder / 'blur.h')} is its header, {PROGRAM.name} the program")
