"""Counting edits: how a compiled pipeline knows, at the price of one comparison, that nothing was defined or rescheduled since.

Every definition, directive and constraint counts as an edit, of whichever Func. A pipeline that sees another number than when it was
compiled takes its fingerprint again, and compiles again only if that changed.
"""

from __future__ import annotations


class Edits:
    """The number of edits so far in this process."""

    number = 0


def count_edit() -> None:
    """Something that pipelines are compiled from has changed."""
    Edits.number += 1
