"""Fixtures of the tests that build and run projects."""

from __future__ import annotations

from tests.boards.conftest import cache_folder

__all__ = ["cache_folder"]
