"""Arguments that go by one of several names, as where Halide has several signatures."""

from __future__ import annotations

from typing import Any


def one_of(call: str, **given: Any) -> Any:
    """The one value given, whatever its name. Raises TypeError when there is none, or there are several."""
    values = [v for v in given.values() if v is not None]
    if len(values) != 1:
        raise TypeError(f"{call} takes one of {', '.join(given)}; {len(values) or 'none'} {'are' if values else 'is'} given")
    return values[0]
