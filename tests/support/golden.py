"""The `golden` fixture: compares text with a file that is kept in the repository."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import pytest

UPDATE_COMMAND = "make golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select only the tests that have golden files where these are updated."""
    if not config.getoption("--update-golden"):
        return
    others = [item for item in items if "golden" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@dataclass(frozen=True, slots=True)
class Golden:
    """The golden files of one folder of tests.

    Args:
        folder: where the files lie: `tests/golden/<folder of the test>`.
        update: write instead of compare.
    """

    folder: Path
    update: bool

    def check(self, name: str, text: str) -> None:
        """Fail unless `text` is what the file `name` holds.

        Line ends are compared as they are: generated files use a single newline everywhere.
        """
        path = self.folder / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}: run `{UPDATE_COMMAND}` and read what it wrote")
        expected = path.read_bytes().decode()
        if text == expected:
            return
        lines = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"{name} (golden)", f"{name} (now)", "", "", 3
        )
        diff = "\n".join(lines) or "only line ends differ"
        pytest.fail(f"{path} differs; if that is meant, run `{UPDATE_COMMAND}`\n{diff}")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the golden files of the test's folder: tests/golden/codegen for tests/codegen."""
    tests = request.config.rootpath / "tests"
    folder = request.path.parent.relative_to(tests)
    return Golden(tests / "golden" / folder, bool(request.config.getoption("--update-golden")))
