"""The command line turns arguments into one configuration, calls the driver, and prints the result.

This file loads nothing, so that `import microtir.cli` costs nothing; the verbs load what they
need when they run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from microtir.cli.status import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        arguments: without the program's name; by default those of the process.

    Returns:
        0 done, 1 the answer is no, 2 wrong usage or configuration, 3 a tool or file is missing
        or failed; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, 141 when the reader of a
        pipe has gone.
    """
    try:
        from microtir.cli.process import run

        return run(arguments)
    except KeyboardInterrupt:  # during the import; `run` sees to itself
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


__all__ = ["main"]
