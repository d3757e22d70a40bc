"""Serves the page on 127.0.0.1 until it is told to end."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from microtir.errors import Fix, UsageError
from microtir.studio.app import Studio
from microtir.studio.connections import Patience, connections
from microtir.studio.guard import Access, Guard
from microtir.studio.limits import WorkerLimits
from microtir.studio.models import ModelFile, ModelStore
from microtir.studio.start_page import start_page
from microtir.studio.worker import load_compiler
from microtir.support.ending import ENDINGS

_LOOPBACK = "127.0.0.1"
_TOKEN_BYTES = 32
_AT_ONCE = 64  # connections that are taken before one that is too much is ended


def serve(
    models: Sequence[ModelFile],
    first: int | None,
    port: int,
    limits: WorkerLimits,
    ready: Callable[[str, Path], None],
) -> None:
    """Serve the page until Ctrl-C.

    Args:
        models: that are there from the begin.
        first: number of the one that the page opens by itself; None for none.
        port: on 127.0.0.1; 0 for any that is free.
        limits: of a worker.
        ready: is told the address with the token, when it can be opened, and a file that leads to
            it: what is given to another program is the file.

    Raises:
        UsageError: the port is taken.
    """
    with (
        listening(models, first, port, limits) as (server, bound, access),
        start_page(access.address) as start,
    ):
        ready(access.address, start)
        for number in ENDINGS:
            signal.signal(number, server.handle_exit)
        # uvicorn raises what it was ended by once more: what is to be removed still is.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # It is no error that work is ended with the server.
        logging.getLogger("uvicorn.error").addFilter(
            lambda said: not said.getMessage().startswith("Cancel ")
        )
        with suppress(KeyboardInterrupt):
            server.run(sockets=[bound])


@contextmanager
def listening(
    models: Sequence[ModelFile],
    first: int | None,
    port: int,
    limits: WorkerLimits,
    patience: Patience | None = None,
) -> Iterator[tuple[uvicorn.Server, socket.socket, Access]]:
    """Yield a server with its socket, which listens already, and who may ask it."""
    load_compiler()
    with TemporaryDirectory(prefix="microtir-studio-") as folder, _bound(port) as bound:
        access = Access(bound.getsockname()[1], secrets.token_urlsafe(_TOKEN_BYTES))
        studio = Studio(ModelStore(Path(folder), models), replace(limits, scratch=folder), first)
        config = uvicorn.Config(
            # Whoever connects can make it warn, into the terminal of the person.
            Guard(studio.app(), access), log_level="error", access_log=False,
            server_header=False, timeout_graceful_shutdown=1, ws="none", backlog=_AT_ONCE,
            http=connections(patience or Patience()),
        )  # fmt: skip
        yield uvicorn.Server(config), bound, access


def _bound(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((_LOOPBACK, port))
    except OSError as error:
        bound.close()
        raise UsageError(
            f"no server can listen on port {port}: {(error.strerror or str(error)).lower()}",
            where="--port",
            fix=Fix(
                "use port 0, which selects a free port",
                "leave out --port, so that the studio selects a free port",
            ),
        ) from None
    bound.listen()
    return bound
