"""eager_inline: calls of Funcs replaced by their values at once, in one definition, so that directives that look at it see what they are.

Before: `f(x) = f(x) + g(x, r)`, `g(x, y) = h(x) * y`. After `f.update().eager_inline(g)`: `f(x) = f(x) + h(x) * r`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .. import lang
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.traverse import Rec, rewrite
from .stage_base import StageBase

S = TypeVar("S", bound="EagerInline")


class EagerInline(StageBase):
    """The directive of a stage; of a Func it is for the pure definition."""

    def eager_inline(self: S, *funcs: Any) -> S:
        """Replace the calls of Funcs in this definition by their values now, those in what takes their place too. Takes Funcs, or a list.

        What `compute_inline` does when the pipeline is compiled is seen here by `rfactor` and other directives; other definitions go on
        calling the Funcs. Raises CompileError for Funcs that have no definition, updates, a specialization or an extern stage, and for the
        stage's own; TypeError for what is no Func.
        """
        given = funcs[0] if len(funcs) == 1 and isinstance(funcs[0], (list, tuple)) else funcs
        bodies = {f.name: f for f in map(self._inlinable, given)}
        d = self._definition()

        def call(c: n.Call, rec: Rec) -> n.Expr:
            new = c.map_children(rec)
            body = bodies.get(c.name) if c.call_type is n.CallType.Halide else None
            if body is None:
                return new  # type: ignore[no-any-return]
            assert body.pure is not None
            args = dict(zip(body.args, new.args))
            value = rewrite(body.pure.values[c.value_index], {n.Variable: lambda v, _: v if v.param is not None else args.get(v.name, v)})
            return rewrite(value, {n.Call: call})

        self._edited()
        d.args, d.values = (tuple(rewrite(e, {n.Call: call}) for e in some) for some in (d.args, d.values))
        d.predicate = rewrite(d.predicate, {n.Call: call})
        return self

    def _inlinable(self, func: Any) -> Function:
        if not isinstance(func, lang.func.Func):
            raise TypeError(f"eager_inline() takes Funcs, or a list of them, not {func!r}")
        f = func.function
        if f is self.function:
            self._fail(f"eager_inline() cannot replace calls of {f.name} in a definition of its own")
        if f.pure is None:
            self._fail(f"eager_inline() was passed the Func {f.name}, which is undefined; define it first")
        why = "is an extern stage" if f.extern is not None else "has updates" if f.updates else \
            "has a specialization" if f.pure.schedule.specializations else ""
        if why:
            self._fail(f"eager_inline() cannot inline {f.name}, which {why}; only Funcs with one pure definition have a value to put there")
        return f
