"""What definitions may say but nothing lowers yet: refused here, with the place, rather than deep inside code generation."""

from __future__ import annotations

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.traverse import nodes_of
from .environment import Environment, definition_roots

_NOT_YET = {
    "gather": "several reads in one update", "scatter": "several writes in one update",
}


def check_supported(env: Environment) -> None:
    """Raise CompileError for a call of an intrinsic that is not lowered yet."""
    for f in env.values():
        for k, d in enumerate(f.stages()):
            for c in nodes_of(definition_roots(d), n.Call):
                if c.name in _NOT_YET and c.call_type is n.CallType.PureIntrinsic:
                    stage = "the pure definition" if k == 0 else f"update {k - 1}"
                    raise CompileError(f"{c.name}() ({_NOT_YET[c.name]}), used in {stage} of Func {f.name}, is not supported yet; "
                                       f"write one update for each, over a copy of the Func where they swap elements ({d.where})")
