"""Archives, unpacked as their users unpack them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive below a folder."""
    folder.mkdir(exist_ok=True)
    # `TarFile.extractall` warns without `filter`, which Python before 3.10.12 and 3.11.4 lacks.
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True, timeout=60)
