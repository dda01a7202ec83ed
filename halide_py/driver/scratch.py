"""A folder for what the C compiler reads and writes, gone afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from ..errors import CompileError


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """The path of a new folder among the machine's temporary ones. Raises CompileError if none of them can be written."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="halide_py-")
    except OSError as e:
        raise CompileError(f"The C compiler has no folder to work in: {e.strerror or e}; set TMPDIR to one that can be written") from None
    with folder as path:
        yield path
