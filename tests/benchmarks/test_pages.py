"""Figures on pages are those that were recorded: `python -m benchmarks pages` writes them."""

from __future__ import annotations

import pytest

from benchmarks import pages


@pytest.mark.parametrize(("name", "mark"), pages.TABLES)
def test_tables_have_what_was_recorded(name: str, mark: str) -> None:
    """No figure of them was typed by hand."""
    page = (pages.ROOT / name).read_text("utf-8")
    assert pages.renewed(page, mark, pages.TABLES[name, mark]()) == page


def test_the_picture_is_of_what_was_recorded() -> None:
    """The frontier of the first page is drawn of recorded trials."""
    assert pages.PICTURE.read_text("utf-8") == pages.picture()


def test_a_changed_figure_is_found() -> None:
    """The comparison would see it."""
    table = pages.first_table()
    page = f"<!-- first -->\n\n{table.replace('1', '2')}\n<!-- end of first -->\n"
    assert pages.renewed(page, "first", table) != page
