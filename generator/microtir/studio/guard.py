"""Lets only the page that this server gave out talk to it, and tells browsers what it may do.

Any page that a browser shows can send requests to 127.0.0.1, and with a name of its own that leads
there even read the answers.  So the name that was asked for must be this server's, a request that
names the page it comes from must come from this server's, and whatever has to do with models needs
the token, which is in no cookie that a browser would add by itself.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
_FILES = "/static/"
TOKEN_HEADER = "x-microtir-token"

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types microtir",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The address of a server, and what its page shows to be let in.

    Args:
        port: on 127.0.0.1.
        token: nobody else can guess it.
    """

    port: int
    token: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return what a request may say that it was sent to."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    @property
    def address(self) -> str:
        """Return what a person opens; what follows the # reaches no server and no log."""
        return f"http://{self.hosts[0]}/#{self.token}"

    def objection(self, path: str, headers: Headers) -> str:
        """Return why a request is refused; empty if it is not."""
        if headers.get("host", "") not in self.hosts:
            return f"this server is http://{self.hosts[0]} and answers to no other name"
        origin = headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return "another page cannot use this server"
        if path == "/" or path.startswith(_FILES):
            return ""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "another site cannot use this server"
        token = headers.get(TOKEN_HEADER, "")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the address has no token, or an old one: open the one that the terminal shows"
        return ""


class Guard:
    """Stands before an application: refuses requests, and adds headers to all responses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; connections that are none are for the application to end."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        objection = self._access.objection(scope["path"], Headers(scope=scope))
        if objection:
            refusal = PlainTextResponse(objection, status_code=403)
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)
