"""Floor 1: types, the node grammar, the table of operations, Functions and schedules as data, traversal, printing, simplification.

Imports only `errors`. Everything above speaks in these terms; nothing here knows how users write programs or how C looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from . import associativity as associativity
    from . import simplify as simplify

__getattr__ = deferred(__name__, {"associativity": "associativity", "simplify": "simplify"})
