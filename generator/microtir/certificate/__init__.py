"""Writes what was proven of a program as a file, for those who want to prove it again."""

from __future__ import annotations

from microtir.certificate.data import InstructionFacts
from microtir.certificate.document import certificate_file, certified, checker_path
from microtir.certificate.vectors import digests_of, runs_of

__all__ = [
    "InstructionFacts",
    "certificate_file",
    "certified",
    "checker_path",
    "digests_of",
    "runs_of",
]
