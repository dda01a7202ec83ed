"""Floor 4: from Functions to something callable: C compiler discovery, caches, cffi loading, the calling convention, ahead-of-time files.

Imports `codegen_c`, `lower`, `ir`, `errors`. In: `ir.function.Function`s with their arguments. Out: `CompiledPipeline`, or files.
The modules that compile are loaded when first used: `driver.compile` at the first compilation, `driver.build` when no cache has the
pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from . import aot as aot
    from . import binaries as binaries
    from . import build as build
    from . import cache_home as cache_home
    from . import compile as compile
    from . import cross as cross
    from . import embedded as embedded
    from . import files as files
    from . import fingerprint as fingerprint
    from . import multitarget as multitarget
    from . import probe as probe
    from . import runtime_names as runtime_names

_MODULES = "aot binaries build cache_home compile cross embedded files fingerprint multitarget probe runtime_names"
__getattr__ = deferred(__name__, {name: name for name in _MODULES.split()})
