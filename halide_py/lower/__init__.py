"""Floor 3: from Functions and their schedules to loop IR. One pass a file; `pipeline.py` lists them in order, with the reasons.

Imports `ir` and `errors`. In: `ir.function.Function`s. Out: an `ir.module.LoweredFunction`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from . import print_loop_nest as print_loop_nest

__getattr__ = deferred(__name__, {"print_loop_nest": "print_loop_nest"})
