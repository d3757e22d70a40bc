"""Hands the address with its token to a browser without showing it to anybody else.

Every user of the machine can read what a program is started with, so that a browser is started with
the name of a file, which only its owner can read and which leads to the address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>microtir studio</title>
<p><a href="{address}">microtir studio</a></p>
</html>
"""


@contextmanager
def start_page(address: str) -> Iterator[Path]:
    """Yield a file that leads a browser to an address; it is there as long as the context lasts.

    Args:
        address: without characters that mean something in HTML.
    """
    with TemporaryDirectory(prefix="microtir-studio-", dir=_read_by_browsers()) as folder:
        path = Path(folder) / "studio.html"
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(_PAGE.format(address=address), "ascii")
        yield path


def _read_by_browsers() -> Path | None:
    """Return the folder for the file; None for that of temporary files.

    A browser that was installed as a snap has a /tmp of its own, and sees nothing of the home
    folder whose name begins with a dot.
    """
    home = Path("~").expanduser()
    return home if (home / "snap").is_dir() and os.access(home, os.W_OK) else None
