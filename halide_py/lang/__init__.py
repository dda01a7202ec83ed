"""Floor 5: what users write. Expr handles and their operators, Var, RDom, Func, Stage, Buffer, Param, reductions, boundary
conditions, Pipeline. Everything here fills the plain data of `ir.function` and hands it to `driver`.
What reasons about updates is loaded with the first one, as are extern stages, autoschedulers and what reads C functions; what saves
pipelines when one is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from . import autoscheduling as autoscheduling
    from . import c_functions as c_functions
    from . import extern_stage as extern_stage
    from . import independence as independence
    from . import rfactor as rfactor
    from . import saved as saved

__getattr__ = deferred(
    __name__, {name: name for name in ("autoscheduling", "c_functions", "extern_stage", "independence", "rfactor", "saved")}
)
