"""Semaphores of the interpreter: what tasks of one fork wait for."""

from __future__ import annotations

import threading
from typing import Any

from ..errors import InternalError

PATIENCE = 20.0  # seconds without a change, after which the tasks wait for each other for ever


class Semaphores:
    """The semaphores of one fork, numbered; `fail` makes all give up who wait."""

    def __init__(self, counts: list[Any]) -> None:
        self.counts, self.failed, self.changed = [int(c) for c in counts], False, threading.Condition()

    def acquire(self, i: Any) -> int:
        """Take one of number `i`, waiting for it."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.counts[i] > 0 or self.failed, PATIENCE):
                raise InternalError(f"Tasks wait for each other: semaphore {i} of {self.counts}")
            if self.failed:
                raise InternalError("the other task of the fork failed")
            self.counts[i] -= 1
        return 0

    def release(self, i: Any) -> int:
        """Give one."""
        with self.changed:
            self.counts[i] += 1
            self.changed.notify_all()
        return 0

    def fail(self) -> None:
        """The other task has failed."""
        with self.changed:
            self.failed = True
            self.changed.notify_all()
