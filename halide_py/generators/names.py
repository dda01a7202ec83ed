"""Which names Generators and their fields may have."""

from __future__ import annotations

import re

from ..errors import CompileError

_NAME = re.compile(r"(?!.*__)[A-Za-z][A-Za-z0-9_]*")  # they become C identifiers


def check_field_name(name: str) -> None:
    """Raises CompileError unless `name` may be that of a GeneratorParam, input, output or alias; `generator_params` is what call()
    takes."""
    if not _NAME.fullmatch(name) or name == "generator_params":
        raise CompileError(f"The name '{name}' is not valid for a GeneratorParam, Input, or Output. Names are letters, digits and single "
                           "underscores, start with a letter, and are not generator_params.")
