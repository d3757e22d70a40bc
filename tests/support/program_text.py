"""The C of an artifact without what names its configuration: equal programs give equal text."""

from __future__ import annotations

import re

from microtir.artifact import Artifact

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FINGERPRINT = re.compile(r"(_FINGERPRINT (?:!= )?)0x[0-9a-f]{8}")


def program_text(artifact: Artifact) -> dict[str, str]:
    """Return every C file by path, less comments and fingerprints."""
    return {
        file.path: _FINGERPRINT.sub(r"\g<1>0", _COMMENT.sub("", file.text))
        for file in artifact.sources
        if file.path.endswith((".c", ".h"))
    }
