"""The command line turns arguments into one configuration, calls the driver, and prints the result.

This file loads nothing, so that `import microtir.cli` costs nothing; the verbs load what they
need when they run.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from microtir.cli.status import INTERRUPTED

# Trees of the IR refer to no parents, so that hardly any garbage is circular.  With Python's own
# 700 new objects between two collections, the search for it takes a tenth of a compilation.
_NEW_OBJECTS = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        arguments: without the program's name; by default those of the process.

    Returns:
        0 done, 1 the answer is no, 2 wrong usage or configuration, 3 a tool or file is missing
        or failed; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, 141 when the reader of a
        pipe has gone.
    """
    if arguments is None:
        gc.set_threshold(_NEW_OBJECTS)
    try:
        from microtir.cli.process import run

        return run(arguments)
    except KeyboardInterrupt:  # during the import; `run` sees to itself
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


__all__ = ["main"]
