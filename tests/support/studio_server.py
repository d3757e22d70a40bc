"""A server of the studio in this process, and what a page would ask it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from microtir.studio.connections import Patience
from microtir.studio.guard import TOKEN_HEADER, Access
from microtir.studio.limits import WorkerLimits
from microtir.studio.models import ModelFile
from microtir.studio.server import listening
from tests.support.command import INT8

EXAMPLE = ModelFile("example:digits", INT8)
PLAN: Mapping[str, object] = {"model": 0, "target": "cortex-m4", "optimize": "balanced"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events but for those that say what is being done."""
        events = [json.loads(line) for line in self.body.splitlines()]
        return [event for event in events if event["event"] != "progress"]


@dataclass(frozen=True, slots=True)
class Page:
    """What a page has: the address and the token."""

    access: Access

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request as it is given; without a header of its own it has the right Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.access.port, timeout=60)
        try:
            connection.request(method, path, body or None, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """Get a file, or an answer that needs the token."""
        return self.send("GET", path, headers={TOKEN_HEADER: self.access.token})

    def ask(self, name: str, **values: object) -> list[dict[str, Any]]:
        """Ask for something and return what came of it."""
        headers = {TOKEN_HEADER: self.access.token}
        return self.send("POST", f"/api/{name}", json.dumps(values).encode(), headers).events

    def drop(self, name: str, content: bytes) -> list[dict[str, Any]]:
        """Drop a file on the page."""
        headers = {TOKEN_HEADER: self.access.token, "x-model-name": name}
        return self.send("POST", "/api/models", content, headers).events


@contextmanager
def served(
    models: Sequence[ModelFile] = (EXAMPLE,),
    limits: WorkerLimits | None = None,
    patience: Patience | None = None,
) -> Iterator[Page]:
    """Serve a page as long as the context lasts."""
    with listening(models, 0, 0, limits or WorkerLimits(60), patience) as (server, bound, access):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield Page(access)
        finally:
            server.should_exit = True
            thread.join()
