"""One server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.studio_server import Page, served


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Return the page of a server that has the example."""
    with served() as page:
        yield page
