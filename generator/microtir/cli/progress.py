"""Shows what is being done right now, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """A line on stderr that says what is being done; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("reading the model")
            self._status.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """Say what is being done from now on."""
        if self._status is not None:
            self._status.update(text)

    def show_lines(self, lines: Sequence[str]) -> None:
        """Show what is known so far, as far as it fits the terminal."""
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text.from_ansi("\n".join(lines)))
