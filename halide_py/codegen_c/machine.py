"""What the generator may assume of the machine and the compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """`vector_bytes`: width of the vectors to emit. `features`: instruction sets as lower-case macro names (avx2, fma, avx512f, ...)."""

    vector_bytes: int = 16
    features: frozenset[str] = frozenset()
    compiler: str = "gcc"
