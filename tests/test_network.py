"""The hook that holds tests to this machine refuses in this process and in its children."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.support.command import ROOT
from tests.support.network import python_path
from tests.support.network_gate.sitecustomize import VARIABLE, NetworkUsed

ASK = "import socket; socket.getaddrinfo('localhost', 80)"
LOADED = "import microtir; "


def test_the_network_is_refused_here() -> None:
    """Names and addresses; a socket with a path is no network."""
    # A worker of the tests has the hook from its start, and the class of it.
    with pytest.raises(BaseException, match="getaddrinfo of") as refused:
        socket.getaddrinfo("localhost", 80)
    assert type(refused.value).__name__ == NetworkUsed.__name__
    with (
        socket.socket() as taken,
        pytest.raises(BaseException, match=r"socket\.bind of") as refused,
    ):
        taken.bind(("127.0.0.1", 0))
    assert type(refused.value).__name__ == NetworkUsed.__name__
    with socket.socket(socket.AF_UNIX) as local, pytest.raises(OSError, match="No such file"):
        local.connect("/nonexistent/socket")


@pytest.mark.parametrize("environment", [{}, {"PYTHONPATH": python_path(ROOT / "generator")}])
def test_the_network_is_refused_in_children(environment: dict[str, str]) -> None:
    """They inherit the hook, also with a path of their own; the permission is inherited, too."""
    inherited = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", LOADED + ASK],
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "NetworkUsed" in done.stderr
    allowed = {**inherited, VARIABLE: "1"}
    subprocess.run([sys.executable, "-c", LOADED + ASK], env=allowed, check=True)


def test_programs_of_others_are_free() -> None:
    """What does not load the package may ask whether this machine has IPv6, for one."""
    subprocess.run([sys.executable, "-c", ASK], check=True)
