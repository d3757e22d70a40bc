"""Defines what a job tells the page: small objects that JSON can hold, each with its `event`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from microtir.errors import LimitError, MicrotirError, UnsupportedModelError

Event = dict[str, object]
Emit = Callable[[Event], None]


class Job(Protocol):
    """Work for a worker; it is a value, since it goes to another process."""

    def run(self, emit: Emit) -> None:
        """Do the work and tell what comes out of it.

        Raises:
            MicrotirError: what the page shows instead.
        """


def progress(text: str) -> Event:
    """Return what is being done from now on."""
    return {"event": "progress", "text": text}


def error_event(error: MicrotirError) -> Event:
    """Return a diagnostic, in the words of the command line."""
    said = error.for_command_line()
    problems = said.problems if isinstance(said, UnsupportedModelError) else ()
    tried = said.tried if isinstance(said, LimitError) else ()
    return {
        "event": "error",
        **_facts(said),
        "tried": list(tried),
        "problems": [_facts(problem) for problem in problems],
    }


def _facts(error: MicrotirError) -> Event:
    return {"what": error.what, "where": error.where, "legal": error.legal, "fix": error.fix}
