"""What the generator may assume of the machine and the compiler."""

from __future__ import annotations

from dataclasses import dataclass

HEADERS = ("hl_runtime.h", "hl_vector.h")  # what all generated code includes
SOURCE_OF = "C source of "  # the file that messages of the C compiler name for a user's text


@dataclass(frozen=True)
class Machine:
    """`vector_bytes`: width of the vectors to emit (16, 32 or 64). `features`: instruction sets as lower-case macro names (avx2, fma, f16c,
    avx512f, ...). `compiler`: gcc, clang or any; a few builtins differ. `wide_registers`: whether general registers hold 64 bits.
    `large_buffers`: whether vectors of indices may need 64 bits.
    """

    vector_bytes: int = 16
    features: frozenset[str] = frozenset()
    compiler: str = "gcc"
    wide_registers: bool = True
    large_buffers: bool = False

    def native_lanes(self, bits: int) -> int:
        """Lanes of a full vector of elements of so many bits."""
        return self.vector_bytes * 8 // bits

    def has(self, feature: str) -> bool:
        """Whether an instruction set may be used."""
        return feature in self.features
