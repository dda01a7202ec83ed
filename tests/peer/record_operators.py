"""Writes `operators.npz`: what Halide from PyPI gives for every work on every pair of types. `python record_operators.py`, some ten minutes.

For each pair `Int8 UInt16`: an array of bytes, the values of all works one after the other; and in `index` for each work [type, first byte, bytes], or null
where it is refused or cannot be held by an array.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from operators import COUNT, PAIRS, Type, compared, exprs, values

RECORD = Path(__file__).parent / "operators.npz"


def of_pair(h: Any, t: Type, u: Type) -> tuple[dict[str, Any], bytes]:
    """The index and the bytes of one pair, computed by module `h`."""
    x = h.Var("x")
    with contextlib.redirect_stdout(io.StringIO()):
        made, refused = exprs(h, t, u, x)
        held = {name: e for name, e in made.items() if compared(e) and compiled(name, t, u)}
        try:
            got = values(h, held, x, 1)
        except h.HalideError:  # something is taken there, but not compiled: one by one
            got = {}
            for name, e in held.items():
                with contextlib.suppress(h.HalideError):
                    got |= values(h, {name: e}, x, 1)
    index: dict[str, Any] = {name: "refused" if name in refused else "" for name in (*made, *refused)}
    raw = b""
    for name, array in got.items():
        data = np.ascontiguousarray(array).tobytes()
        index[name] = [str(held[name].type()), len(raw), len(data)]
        raw += data
    return index, raw


def compiled(name: str, t: Type, u: Type) -> bool:
    """Whether Halide compiles what it takes: it ends the process where floats or bools are shifted or halved, and has no integers of 128 bits."""
    if 64 in (t[1], u[1]) and "mul_shift" in name:
        return False
    if "Float" in (t[0], u[0]) and 64 in (t[1], u[1]) and (16 in (t[1], u[1]) or name == "half"):  # double to half has no function there
        return False
    bits = ("shift", "<<", ">>", "halving", "bits", "&", "|", "^", "saturating", "popcount", "count_", "~")
    return not (("Float" in (t[0], u[0]) or 1 in (t[1], u[1])) and any(word in name for word in bits) and not (t[1] == u[1] == 1 and name in "&|^~"))


def main() -> None:
    """Record all pairs; those in the file already are kept."""
    import halide  # noqa: PLC0415 (only where it is installed)

    warnings.simplefilter("ignore")
    arrays: dict[str, Any] = dict(np.load(RECORD)) if RECORD.exists() else {}
    index = json.loads(bytes(arrays.pop("index")).decode()) if arrays else {"count": COUNT}
    for t, u in PAIRS:
        pair = f"{t[0]}{t[1]} {u[0]}{u[1]}"
        if pair not in arrays:
            index[pair], raw = of_pair(halide, t, u)
            arrays[pair] = np.frombuffer(raw, np.uint8)
            np.savez_compressed(RECORD, index=np.frombuffer(json.dumps(index).encode(), np.uint8), **arrays)
            print(pair, len(index[pair]), file=sys.stderr)


if __name__ == "__main__":
    main()
