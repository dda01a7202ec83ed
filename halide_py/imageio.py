"""Reading and writing images in the layout pipelines like: planar, so that `hl.Buffer(imread(...))` has dimensions x, y, channel.

Needs the package `imageio` (extra `[viz]`), which is imported when first used.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from .errors import HalideError

_MOST_CHANNELS = 4


@functools.cache
def _imageio() -> Any:
    """imageio's v2 interface. Raises HalideError when the package is not installed."""
    try:
        return importlib.import_module("imageio.v2")
    except ModuleNotFoundError as e:
        raise HalideError("halide_py.imageio needs the package imageio: pip install imageio") from e


def _array(im: Any) -> np.ndarray[Any, Any]:
    return np.asarray(im)


def is_interleaved(im: Any) -> bool:
    """Whether an array is three-dimensional with one to four channels as neighbours in memory."""
    a = _array(im)
    return bool(a.ndim == 3 and a.strides[2] == a.itemsize and a.shape[2] <= _MOST_CHANNELS)


def copy_to_interleaved(im: Any) -> Any:
    """A planar (channel, y, x) image as a (y, x, channel) copy; anything else as it is."""
    a = _array(im)
    if a.ndim == 3 and not is_interleaved(a):
        return np.ascontiguousarray(np.moveaxis(a, 0, 2))
    return im


def copy_to_planar(im: Any) -> Any:
    """An interleaved (y, x, channel) image as a (channel, y, x) copy; anything else as it is."""
    a = _array(im)
    return np.ascontiguousarray(np.moveaxis(a, 2, 0)) if is_interleaved(a) else im


def imread(uri: Any, format: Any = None, **kwargs: Any) -> Any:
    """Read an image; three-dimensional ones come as (channel, y, x)."""
    return copy_to_planar(_imageio().imread(uri, format, **kwargs))


def imwrite(uri: Any, im: Any, format: Any = None, **kwargs: Any) -> None:
    """Write an image; planar ones are interleaved first."""
    _imageio().imwrite(uri, np.asarray(copy_to_interleaved(im)), format, **kwargs)
