"""Questions about the target an expression is compiled for, as Exprs: one source text then serves several targets."""

from __future__ import annotations

from ..errors import expect
from ..ir import build as b
from ..ir.intrinsics import intrinsic
from ..ir.target_words import TargetArch, TargetFeature, TargetOS
from ..ir.types import BOOL, INT32, Handle, Type
from .expr import Expr


def _query(name: str, word: object, kind: type[TargetArch | TargetOS | TargetFeature]) -> Expr:
    if not isinstance(word, kind):
        raise TypeError(f"{name}() takes a {kind.__name__}, not {word!r}")
    return Expr.of(intrinsic(name, BOOL, b.i32(int(word))))


def target_arch_is(arch: TargetArch) -> Expr:
    """Whether the code is compiled for this architecture, as a bool.

    >>> hl.target_arch_is(hl.TargetArch.X86).type() == hl.Bool()
    True
    """
    return _query("target_arch_is", arch, TargetArch)


def target_os_is(os: TargetOS) -> Expr:
    """Whether the code is compiled for this operating system, as a bool.

    >>> hl.target_os_is(hl.TargetOS.Linux).type() == hl.Bool()
    True
    """
    return _query("target_os_is", os, TargetOS)


def target_has_feature(feature: TargetFeature) -> Expr:
    """Whether the target the code is compiled for has this feature, as a bool.

    >>> hl.target_has_feature(hl.TargetFeature.AVX2).type() == hl.Bool()
    True
    """
    return _query("target_has_feature", feature, TargetFeature)


def target_bits() -> Expr:
    """Whether addresses have 32 or 64 bits, as an int32.

    >>> hl.evaluate(hl.target_bits()) in (32, 64)
    True
    """
    return Expr.of(intrinsic("target_bits", INT32))


def target_natural_vector_size(t: Type) -> Expr:
    """The number of elements of a type in one vector register of the target, as an int32.

    >>> hl.evaluate(hl.target_natural_vector_size(hl.UInt(8))) >= 8
    True
    """
    return Expr.of(intrinsic("target_natural_vector_size", INT32, b.const(expect(t, Type, "target_natural_vector_size()").element_of(), 0)))


def user_context_value() -> Expr:
    """The user context a pipeline was called with, a handle: something to give to extern functions; null when there is none.

    >>> hl.user_context_value().type() == hl.Handle()
    True
    """
    return Expr.of(intrinsic("user_context_value", Handle()))
