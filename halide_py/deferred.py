"""Names whose module is loaded when they are first used (PEP 562): `import halide_py` reads what describing a pipeline takes, no more.

The one place of it is the `__init__` of a package, which says `__getattr__ = deferred(__name__, {...})` and, for type checkers, imports the
same names under TYPE_CHECKING. Deferred so: all of `driver` that compiles, the passes of `lower`, reverse mode, files made ahead of time.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def deferred(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `modules`: the names of each module, relative to the package; the module's own name means itself."""
    where = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        path = where.get(name)
        if path is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{path}")
        value = module if path == name else getattr(module, name)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    return find
