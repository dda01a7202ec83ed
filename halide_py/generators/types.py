"""Types and values as Generators and their command line write them: `uint8`, `float32,int32`, `true`."""

from __future__ import annotations

from typing import Any

from ..errors import CompileError
from ..ir.types import BFloat, Bool, Float, Int, Type, UInt

UNSPECIFIED = Type()
NAMED_TYPES: dict[str, Type] = {
    "bool": Bool(), "bfloat16": BFloat(16), **{f"float{b}": Float(b) for b in (16, 32, 64)}, **{f"int{b}": Int(b) for b in (8, 16, 32, 64)},
    **{f"uint{b}": UInt(b) for b in (8, 16, 32, 64)},
}
_OF_PYTHON: dict[Any, Type] = {bool: Bool(), int: Int(32), float: Float(32)}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def type_of(t: Any) -> Type:
    """A Type, also from `bool`, `int` and `float`; None is the unspecified type. Raises CompileError for anything else."""
    if t is None:
        return UNSPECIFIED
    found = t if isinstance(t, Type) else _OF_PYTHON.get(t) if isinstance(t, type) else None
    if found is None:
        raise CompileError(f"Expected a Halide Type (or bool, int, float), but saw: {t!r}")
    return found


def types_of(types: Any) -> list[Type]:
    """One Type or several as a list without the unspecified one."""
    given = list(types) if isinstance(types, (list, tuple)) else [types]
    return [t for t in map(type_of, given) if t is not UNSPECIFIED]


def parse_types(text: str) -> list[Type]:
    """`uint8` or `float32,float32`. Raises CompileError with the names there are."""
    words = text.split(",")
    for word in words:
        if word not in NAMED_TYPES:
            raise CompileError(f"The value {word} cannot be parsed as a Type; there are {', '.join(NAMED_TYPES)}")
    return [NAMED_TYPES[word] for word in words]


def parse_value(name: str, default: Any, value: Any) -> Any:
    """A GeneratorParam's value, of its default's kind, from text or a Python value. Raises CompileError for what does not fit."""
    kind = type(default)
    try:
        if isinstance(default, (Type, list)):
            types = parse_types(value) if isinstance(value, str) else types_of(value)
            return types if isinstance(default, list) or len(types) != 1 else types[0]
        if kind is bool:
            return _BOOLEANS[value.lower()] if isinstance(value, str) else bool(value)
        if kind in (int, float, str):
            if kind is int and isinstance(value, float) and not value.is_integer():
                raise ValueError
            return kind(value)
    except (KeyError, TypeError, ValueError):
        raise CompileError(f"GeneratorParam {name} takes {'true or false' if kind is bool else f'a value of type {kind.__name__}'}, not "
                           f"{value!r}") from None
    raise CompileError(f"GeneratorParam {name} has unsupported type {kind.__name__}; it can be a bool, int, float, str or Type")
