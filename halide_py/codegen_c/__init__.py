"""Floor 3: loop IR -> C text (vectors legalised to the machine's width here), and the header of an ahead-of-time library.

Imports `ir` and `errors`. In: `ir.module.LoweredModule`. Out: C text that is valid GNU C and C++ and includes only our own small headers.
"""

from .header import header
from .machine import Machine
from .module import generate

__all__ = ["Machine", "generate", "header"]
