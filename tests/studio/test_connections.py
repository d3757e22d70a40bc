"""Clients that send nothing or read nothing keep no place that a page needs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from microtir.studio import app
from microtir.studio.ahead import ahead
from microtir.studio.asks import read_ask
from microtir.studio.connections import Patience
from microtir.studio.events import Job
from microtir.studio.guard import TOKEN_HEADER
from microtir.studio.models import ModelStore
from tests.support.odd_jobs import Chatty
from tests.support.studio_server import Page, served

SHORT = Patience(head=0.5, silence=0.5)
_SOON = 10.0  # seconds: how long something takes says how busy the machine is


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Return the page of a server without patience."""
    with served(patience=SHORT) as page:
        yield page


@contextmanager
def client(page: Page, text: str = "") -> Iterator[socket.socket]:
    """Yield a connection that has sent something, and reads nothing by itself."""
    with closing(socket.socket()) as connected:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connected.settimeout(_SOON)
        connected.connect(("127.0.0.1", page.access.port))
        connected.sendall(text.replace("\n", "\r\n").encode())
        yield connected


def head(page: Page, path: str, length: int, token: str | None = None) -> str:
    """Return the head of a request with a body."""
    given = page.access.token if token is None else token
    return (
        f"POST {path} HTTP/1.1\nHost: 127.0.0.1:{page.access.port}\n"
        f"{TOKEN_HEADER}: {given}\nContent-Length: {length}\nConnection: close\n\n"
    )


def ends_while_sending(connected: socket.socket, text: str, pause: float = 0.0) -> bool:
    """Return whether the server ends a connection on which the same is sent again and again."""
    end = time.monotonic() + _SOON
    try:
        while time.monotonic() < end:
            connected.sendall(text.replace("\n", "\r\n").encode())
            time.sleep(pause)
    except ConnectionError:
        return True
    return False


def rest(connected: socket.socket) -> bytes:
    """Return what comes until the server ends the connection, which it has to."""
    found = b""
    try:
        while part := connected.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("text", ["", "GET / HT", "GET / HTTP/1.1\nHost: x\nA: "])
def test_a_request_that_does_not_arrive_ends(page: Page, text: str) -> None:
    """Nothing at all, or a head without an end."""
    with client(page, text) as connected:
        assert rest(connected) == b""


def test_a_head_that_trickles_ends(page: Page) -> None:
    """Each byte in time is not enough: the whole of it has its time once."""
    with client(page, "GET / HTTP/1.1\n") as connected:
        assert ends_while_sending(connected, "A", 0.05)


@pytest.mark.parametrize(("token", "said"), [(None, b""), ("wrong", b"HTTP/1.1 403 ")])
def test_a_body_that_does_not_arrive_ends(page: Page, token: str | None, said: bytes) -> None:
    """One that is wanted, and one whose request was refused."""
    with client(page, head(page, "/api/models", 1000, token) + "abc") as connected:
        found = rest(connected)
        assert found.startswith(said) and bool(found) == bool(said)


def test_a_second_head_that_does_not_arrive_ends(page: Page) -> None:
    """A connection that was used once has no more time than a new one."""
    get = f"GET /static/icon.svg HTTP/1.1\nHost: 127.0.0.1:{page.access.port}\n\n"
    with client(page, get) as connected:
        assert connected.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connected.sendall(b"GET / HT")
        rest(connected)


def test_a_body_that_comes_in_parts_is_taken(page: Page) -> None:
    """It may take longer than the patience for one part of it."""
    body = b"x" * 6
    with client(page, head(page, "/api/plan", len(body))) as connected:
        for part in body:
            time.sleep(SHORT.silence / 3)
            connected.sendall(bytes([part]))
        assert connected.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_an_answer_that_nobody_reads_ends(page: Page) -> None:
    """More than the buffers of the system hold: many answers that were asked for at once."""
    get = f"GET /static/studio.css HTTP/1.1\nHost: 127.0.0.1:{page.access.port}\n\n"
    with client(page) as connected:
        assert ends_while_sending(connected, get)


def test_others_cannot_take_all_connections() -> None:
    """The oldest that wait are ended for new ones; an answer that is made meanwhile arrives."""
    asked, most = json.dumps({"model": 0}), 6
    with ExitStack() as stack:
        page = stack.enter_context(served(patience=Patience(most=most)))
        first = stack.enter_context(client(page, head(page, "/api/inspect", len(asked)) + asked))
        begin = first.recv(8)  # it is being answered
        for _ in range(4 * most):
            stack.enter_context(client(page))
        assert page.get("/api/start").status == 200
        assert b'"event": "model"' in begin + rest(first)


def test_whoever_reads_no_answer_keeps_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are places ask for more than buffers hold; what is asked is answered."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(app, "read_ask", Asked)
    with ExitStack() as stack:
        page = stack.enter_context(served())
        for _ in range(4):
            stack.enter_context(client(page, head(page, "/api/chatty", 0)))
        begun = time.monotonic()
        (event,) = page.ask("inspect", model=0)
        assert event["event"] == "model"
        assert time.monotonic() - begun < Patience().silence / 2


class Asked:
    """What is asked for; `chatty` is a job that tells more than anybody wants to read."""

    def __init__(self, name: str, body: bytes) -> None:
        self._name, self._body = name, body

    def job(self, models: ModelStore) -> Job:
        return Chatty() if self._name == "chatty" else read_ask(self._name, self._body).job(models)


def test_whoever_reads_nothing_keeps_no_worker() -> None:
    """Work goes on while its first event waits to be read, and ends with its last one."""

    async def run() -> list[str]:
        done: list[str] = []

        async def work() -> AsyncGenerator[bytes, None]:
            try:
                for event in (b"1", b"2", b"3"):
                    yield event
            finally:
                done.append("ended")

        events = ahead(work())
        first = await anext(events)
        await asyncio.sleep(0)
        done.append(first.decode())
        return [*done, *[event.decode() async for event in events]]

    assert asyncio.run(run()) == ["ended", "1", "2", "3"]


def test_work_ends_with_whoever_is_told() -> None:
    """Closing what is read closes what makes it, at once."""

    async def run() -> bool:
        ended = False

        async def work() -> AsyncGenerator[bytes, None]:
            nonlocal ended
            try:
                yield b"1"
                await asyncio.sleep(60)
            finally:
                ended = True

        events = ahead(work())
        await anext(events)
        await events.aclose()
        return ended

    assert asyncio.run(run())
