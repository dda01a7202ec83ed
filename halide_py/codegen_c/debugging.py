"""Messages of the target feature `debug`: which pipeline is entered with what, and that it was left without an error. They go to
halide_print."""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.module import USER_CONTEXT, ArgumentKind, LoweredArgument, LoweredFunction
from .calls import printed
from .ctypes_of import c_string
from .emitter import Emitter


def _say(em: Emitter, *parts: n.Expr) -> None:
    em.line(f"hl_print({em.context}, {printed(em, parts, 0)});")


def entering(em: Emitter, f: LoweredFunction) -> None:
    """What is said before anything is checked."""
    _say(em, b.string(f"Entering Pipeline {f.display_name or f.name}"))
    _say(em, b.string(f"Target: {f.debugged}"))
    for a in f.args:
        if a.name != USER_CONTEXT:
            _argument(em, a)


def _argument(em: Emitter, a: LoweredArgument) -> None:
    if a.is_buffer():
        what = c_string(f" {'Output' if a.kind is ArgumentKind.OutputBuffer else 'Input'} Buffer {a.shown}: ")
        em.line(f"hl_debug_buffer({em.context}, {what}, {em.names[a.name + '.buffer']});")
    else:
        _say(em, b.string(f" Input {a.type} {a.shown}:"), n.Variable(a.type, a.name))


def leaving(em: Emitter, f: LoweredFunction) -> None:
    """What is said at the end of a call that succeeds, a bounds query or not."""
    _say(em, b.string(f"Exiting Pipeline {f.display_name or f.name}"))
