"""Placeholder module, replaced below."""
from __future__ import annotations

from .. import nodes as n


def apply_rules(s: object, e: n.Expr) -> n.Expr:
    return e
