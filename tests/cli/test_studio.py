"""`microtir studio`: where it listens, what it says, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.command import ROOT, Command
from tests.support.network import python_path


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    """The first line has the address, on loopback; Ctrl-C is no error and leaves nothing behind."""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(ROOT / "generator"),
        "TMPDIR": str(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "microtir", "studio", "example:digits", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        said, address = process.stdout.readline().split()
        assert said == "studio:" and address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as page:
            assert b"<title>microtir studio</title>" in page.read()
        base, _, token = address.partition("#")
        body, head = b'{"model": 0, "optimize": "balanced"}', {"x-microtir-token": token}
        asked = urllib.request.Request(f"{base}api/boards", body, head)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert b"progress" in answer.readline()
            process.send_signal(signal.SIGINT)  # while boards are planned
            assert process.wait(30) == 0
        assert process.stderr.read() == ""
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("microtir-studio")]


def test_a_port_that_is_taken(microtir: Command) -> None:
    """The error says what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = microtir("studio", "--no-browser", "--port", taken.getsockname()[1])
    assert result.status == 2
    assert "no server can listen on port" in result.diagnostic
    assert "fix:      leave out --port" in result.diagnostic


def test_without_its_packages(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how to install what serves the page."""
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = microtir("studio", "--no-browser")
    assert result.status == 3
    assert "starlette and uvicorn, which are not installed" in result.diagnostic
    assert "[studio]" in result.diagnostic


def test_a_wrong_example(microtir: Command) -> None:
    """A name that is none is refused before anything is served."""
    result = microtir("studio", "example:digit", "--no-browser")
    assert result.status == 2
    assert "did you mean 'example:digits'?" in result.diagnostic
