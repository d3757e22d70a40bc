"""An audit hook for this process that refuses the network, loaded at the start of each child.

Python imports a module of this name from the folders of PYTHONPATH when it starts.  Sockets between
processes of one machine that have a path (AF_UNIX) stay allowed, and so does everything while
`VARIABLE` is set, and in programs of others, which load neither microtir nor its tests.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "MICROTIR_TESTS_MAY_USE_THE_NETWORK"

_OURS = ("microtir", "pytest")
_OF_A_SOCKET = frozenset(("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"))
_OF_A_NAME = frozenset((
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
))  # fmt: skip


class NetworkUsed(BaseException):
    """A test, or a process that it started, has reached for the network: no handler may hide it."""


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Raise NetworkUsed for an event of sockets or names, unless the environment allows it."""
    if event in _OF_A_SOCKET:
        import socket

        if arguments[0].family == socket.AF_UNIX:  # type: ignore[attr-defined]
            return
    elif event not in _OF_A_NAME:
        return
    if VARIABLE not in os.environ and any(name in sys.modules for name in _OURS):
        raise NetworkUsed(f"{event} of {arguments[1:] or arguments}")


sys.addaudithook(refuse)
