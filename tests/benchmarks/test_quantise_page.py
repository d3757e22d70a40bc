"""The page on quantisation shows the losses that were recorded."""

from __future__ import annotations

from benchmarks.quantise.page import PAGE, read_recorded, renewed


def test_the_page_has_what_was_recorded() -> None:
    """`python -m benchmarks.quantise ... --record` writes both."""
    page = PAGE.read_text("utf-8")
    assert renewed(page, read_recorded()) == page
