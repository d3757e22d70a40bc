"""Limits what a worker may take: the system enforces them, whatever a model makes it do."""

from __future__ import annotations

import os
import resource
import tempfile
from contextlib import suppress
from dataclasses import dataclass

_KINDS = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_CORE")


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The limits of a worker.

    Args:
        seconds: until it is stopped.
        memory: bytes of its address space; systems without such a limit have none.
        file: bytes of a file that it writes.
        scratch: the folder of its temporary files: of a worker that is killed they stay, and go
            with the folder; None for that of the system.
    """

    seconds: float = 600.0
    memory: int = 4 << 30
    file: int = 256 << 20
    scratch: str | None = None

    def apply(self) -> None:
        """Limit this process and those that it starts, and let the page's server go first."""
        wanted = (self.memory, int(self.seconds) + 1, self.file, 0)
        for name, limit in zip(_KINDS, wanted, strict=True):
            kind = getattr(resource, name, None)
            # One that was set lower before cannot be raised, and stays.
            with suppress(OSError, ValueError):
                if kind is not None:
                    resource.setrlimit(kind, (limit, limit))
        os.nice(2)
        tempfile.tempdir = self.scratch
