"""Floor 3: loop IR -> C text (vectors legalised to the machine's width here), and the header of an ahead-of-time library.

Imports `ir` and `errors`. In: `ir.module.LoweredModule`. Out: C text that is valid GNU C and C++ and includes only our own small headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from .machine import Machine as Machine
    from .module import generate as generate
    from .module import text_of as text_of

__getattr__ = deferred(__name__, {"machine": "Machine", "module": "generate text_of"})
