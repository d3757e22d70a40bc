"""What the browser is started with has no token, and the file that has it is its owner's alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from microtir.cli import main
from microtir.cli import studio as command
from microtir.studio.start_page import start_page

ADDRESS = "http://127.0.0.1:1234/#token"


def test_the_file_leads_to_the_address_and_is_of_its_owner(tmp_path: Path) -> None:
    """Its folder can be entered by nobody else, too; both are gone at the end."""
    with start_page(ADDRESS) as path:
        assert f'content="0; url={ADDRESS}"' in path.read_text("ascii")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


@pytest.mark.parametrize("has_snaps", [False, True])
def test_browsers_of_snaps_can_read_it(
    has_snaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They see no /tmp: the file lies in the home folder then, and its name has no dot."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if has_snaps:
        (tmp_path / "snap").mkdir()
    with start_page(ADDRESS) as path:
        assert path.is_relative_to(tmp_path) == has_snaps
        assert not path.parent.name.startswith(".")


def test_the_browser_is_started_without_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the terminal has the address."""
    opened: list[str] = []
    monkeypatch.setattr(command, "_has_desktop", lambda: True)
    monkeypatch.setattr("webbrowser.open", opened.append)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", stop)
    assert main(["studio"]) == 0
    address = capsys.readouterr().out.split()[1]
    token = address.partition("#")[2]
    (started,) = opened
    assert started.startswith("file:///") and len(token) >= 43 and token not in started
