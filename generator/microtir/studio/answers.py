"""Keeps what jobs told: a page that was opened again, or goes back to a plan, does not wait."""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Sequence

from microtir.studio.events import Job

MOST_BYTES = 64 << 20
"""Limit of the bytes of all answers that are kept."""


class Answers:
    """Cache of the answers of jobs: it keeps the newest, and those that were asked for again.

    A job is a value that names all that its answer follows from; its model files are named with
    their sizes and times, so that the answer to one that has changed is never given.

    Args:
        most: bytes that are kept.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._known: OrderedDict[bytes, tuple[bytes, ...]] = OrderedDict()

    def find(self, job: Job) -> tuple[bytes, ...] | None:
        """Return what a job told, without what it told on the way; None if it is not known."""
        key = pickle.dumps(job)
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def keep(self, job: Job, told: Sequence[bytes]) -> None:
        """Keep what a job told, the last of each kind; an error is not kept: it may pass."""
        events = {json.loads(event)["event"]: event for event in told}
        events.pop("progress", None)
        size = sum(map(len, events.values()))
        if not events or "error" in events or size > self._most:
            return
        key = pickle.dumps(job)
        self._bytes += size - sum(map(len, self._known.pop(key, ())))
        self._known[key] = tuple(events.values())
        while self._bytes > self._most:
            _, oldest = self._known.popitem(last=False)
            self._bytes -= sum(map(len, oldest))
