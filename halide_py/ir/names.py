"""Unique names: the first user of a name gets it plain, later ones get `$1`, `$2`, ... as Halide does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_COUNTS: dict[str, int] = {}
_ANONYMOUS: dict[str, itertools.count[int]] = {}


def unique_name(base: str) -> str:
    """`base` the first time, then `base$1`, ..., but no name that is taken; two runs of a script agree, as the caches need."""
    count = _COUNTS.get(base, 0)
    while _is_taken(name := f"{base}${count}" if count else base):
        count += 1
    _COUNTS[base] = count + 1
    return name


def _is_taken(name: str) -> bool:
    """Whether somebody has `name`: by asking for it, `$` and all, or as the numbered name of another."""
    stem, dollar, number = name.rpartition("$")
    return name in _COUNTS or dollar == "$" and number.isdigit() and 0 < int(number) < _COUNTS.get(stem, 0)


def anonymous_name(prefix: str) -> str:
    """`prefix0`, `prefix1`, ...: what an object gets when the user gives no name."""
    return unique_name(f"{prefix}{next(_ANONYMOUS.setdefault(prefix, itertools.count()))}")


def plain_names(names: Sequence[str]) -> list[str]:
    """Names without the numbers that made them unique, where that leaves them different: what users know things by."""
    plain = [re.sub(r"\$\d+", "", name) for name in names]
    return [short if plain.count(short) == 1 else name for short, name in zip(plain, names)]
