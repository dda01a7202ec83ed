"""Photographs for the demo: one bundled with scikit-image, or the user's own file; and pictures written as PNG."""

from __future__ import annotations

import os
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import numpy.typing as npt
from skimage import data

Bytes = npt.NDArray[np.uint8]
OUTPUT = Path(__file__).resolve().parents[1] / "demo_output"


def load(path: str | None) -> Bytes:
    """An RGB photograph as (height, width, 3) bytes: the file, or without one a cup of coffee that ships with scikit-image."""
    picture = np.asarray(iio.imread(path) if path else data.coffee())
    if picture.dtype != np.uint8:
        top = np.iinfo(picture.dtype).max if np.issubdtype(picture.dtype, np.integer) else 1
        picture = (picture.astype(np.float64) / top * 255).round().clip(0, 255).astype(np.uint8)
    if min(picture.shape[:2]) < 64:
        raise SystemExit(f"The demo wants a photograph of at least 64x64 pixels, {path} has {picture.shape[1]}x{picture.shape[0]}.")
    if picture.ndim == 2:
        picture = np.stack([picture] * 3, axis=-1)
    return np.ascontiguousarray(picture[..., :3])


def planar(picture: Bytes) -> Bytes:
    """(height, width, 3) to (3, height, width): a Buffer of it has dimensions x, y, channel."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1))


def repeated(picture: Bytes, width: int, height: int) -> Bytes:
    """The photograph mirrored and repeated to a larger size, for timing."""
    h, w, _ = picture.shape
    pad = ((0, max(0, height - h)), (0, max(0, width - w)), (0, 0))
    return np.ascontiguousarray(np.pad(picture, pad, mode="symmetric")[:height, :width])


def save(name: str, picture: npt.NDArray[np.generic]) -> str:
    """Write (height, width[, 3]) as PNG; floats from 0 to 1 are rounded to bytes. Gives the path to show."""
    OUTPUT.mkdir(exist_ok=True)
    if picture.dtype != np.uint8:
        picture = (picture.astype(np.float64) * 255).round().clip(0, 255).astype(np.uint8)
    path = OUTPUT / name
    iio.imwrite(path, picture)
    return shown(path)


def shown(path: Path) -> str:
    """The path as seen from the current folder."""
    return os.path.relpath(path)
