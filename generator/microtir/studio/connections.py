"""Ends connections that hold the server up: requests that never arrive, answers that nobody reads.

Whoever has an account on this machine can connect, and a page of another origin can, too. None of
them may keep a place that the person's own page needs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from microtir.studio.guard import API


@dataclass(frozen=True, slots=True)
class Patience:
    """The times that the server waits for the other end of a connection.

    Args:
        head: seconds in which the head of a request arrives, and the rest of one that was refused.
        silence: seconds until more of the body arrives, or more of an answer is read.
        most: connections at a time; of more, the oldest that is not answered ends.
    """

    head: float = 10.0
    silence: float = 20.0
    most: int = 128


class Connection(H11Protocol):
    """A connection that ends when the other side takes too long."""

    patience: ClassVar[Patience] = Patience()

    _arrival: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _began = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, and end an older connection where there are too many."""
        super().connection_made(transport)
        self._began = self.loop.time()
        self._await_more()
        if len(self.connections) > self.patience.most:
            self._least_wanted().transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, and wait for the rest."""
        super().data_received(data)
        self._await_more()

    def pause_writing(self) -> None:
        """Wait until the other side reads again."""
        super().pause_writing()
        self._reading = self._end_in(self.patience.silence)

    def resume_writing(self) -> None:
        """Go on: the other side reads."""
        super().resume_writing()
        _stop(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        _stop(self._arrival)
        _stop(self._reading)
        self._arrival = None
        super().connection_lost(exc)

    def _await_more(self) -> None:
        """Give the rest of a request its time; a body that is wanted has it anew with each part."""
        state = self.conn.their_state
        if state is h11.SEND_BODY and not self.cycle.response_complete:
            _stop(self._arrival)
            self._arrival = self._end_in(self.patience.silence)
        elif state in (h11.IDLE, h11.SEND_BODY):
            if self._arrival is None:
                self._arrival = self._end_in(self.patience.head)
        else:
            _stop(self._arrival)
            self._arrival = None

    def _end_in(self, seconds: float) -> asyncio.TimerHandle:
        """End the connection after a while; what was not sent is given up."""
        return self.loop.call_later(seconds, self.transport.abort)

    def _least_wanted(self) -> Connection:
        """Return the oldest connection that has no work done for it; this one if all have."""
        known = [other for other in self.connections if isinstance(other, Connection)]
        idle = [other for other in known if not other._has_work]
        return min(idle, key=lambda other: other._began, default=self)

    @property
    def _has_work(self) -> bool:
        """Return whether a question is being answered: a refusal is complete at once."""
        if self.scope is None:  # no request has come yet
            return False
        return not self.cycle.response_complete and self.scope["path"].startswith(API)


def connections(patience: Patience) -> type[Connection]:
    """Return the class of the connections of a server."""
    return type("PatientConnection", (Connection,), {"patience": patience})


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
