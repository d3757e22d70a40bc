"""Adds the generated C with its certificate, and what the checker says of it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from microtir.artifact import Artifact
from microtir.certificate import certificate_file
from microtir.evidence.part import Part
from microtir.support import processes

_TIMEOUT = 600.0  # seconds
_CHECKED = "certificate-check.txt"


def sources_part(artifact: Artifact) -> Part:
    """Return the generated files of a certified artifact, below `c/`."""
    name = certificate_file(artifact)
    return Part(
        "c",
        {f"c/{file.path}": file.content for file in artifact.files},
        f"`c/`, `c/{name}`",
        "The generated C, and the certificate: digests, placement, and the proof of each access.",
        "nothing: the checker proves it again",
        f"{len(artifact.files)} files",
    )


def check_part(artifact: Artifact) -> Part:
    """Return what certcheck.py prints of a certified artifact, in a process without microtir."""
    with tempfile.TemporaryDirectory(prefix="microtir-") as name:
        folder = Path(name)
        for file in artifact.files:
            (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.path).write_bytes(file.content)
        command = [sys.executable, "-I", "-S", "certcheck.py", certificate_file(artifact)]
        try:
            done = processes.run(command, cwd=folder, timeout=_TIMEOUT, merged=True)
            text, is_proven = done.stdout, done.returncode == 0
        except TimeoutError:
            text, is_proven = f"not finished after {_TIMEOUT:.0f} seconds\nnot proven\n", False
    refused = sum(line.startswith("not proven (") for line in text.splitlines())
    return Part(
        "check",
        {_CHECKED: text.encode()},
        f"`{_CHECKED}`",
        "Facts that the independent checker proves from the C: accesses, placement, lifetimes, "
        "order, "
        "ranges of integers, ends of loops.",
        "the checker, one file of Python; what its lines `rests on trust` name",
        "proven" if is_proven else f"not proven, {refused} reasons",
        holds=is_proven,
    )
