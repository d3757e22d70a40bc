"""Writes what was proven of a program as a file, for those who want to prove it again."""

from __future__ import annotations

from microtir.certificate.document import certificate_file, certified, checker_path

__all__ = ["certificate_file", "certified", "checker_path"]
