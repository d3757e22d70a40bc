"""States the versions of everything that took part in making the evidence."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping

import numpy as np

from microtir.artifact import Artifact
from microtir.evidence.part import Part
from microtir.version import __version__


def versions_part(artifact: Artifact, tools: Mapping[str, str]) -> Part:
    """Return the versions of microtir, Python and tools, and the digest of the model.

    Args:
        artifact: the compiled model.
        tools: what each tool that ran says of its version, by name.
    """
    model = artifact.metadata.model
    config = artifact.module.require_config("evidence")
    facts = {
        "microtir": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "tools": dict(sorted(tools.items())),
        "targets": [str(target) for target in config.targets],
        "model": {"file": model.file, "bytes": model.bytes, "sha256": model.sha256}
        if model
        else None,
    }
    return Part(
        "versions",
        {"versions.json": f"{json.dumps(facts, indent=2)}\n".encode()},
        "`versions.json`",
        "Versions of microtir, Python and each tool that ran, and the digest of the model file.",
        "the version text of each tool",
        f"microtir {__version__}, {len(tools)} tools",
    )
