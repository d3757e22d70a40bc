"""Answers the page: its files, and jobs whose events are sent a line each as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from microtir.boards import all_boards
from microtir.config import Optimize, microcontroller
from microtir.errors import MicrotirError, UsageError
from microtir.instruction_sets import CPUS
from microtir.packages import all_formats
from microtir.studio.ahead import ahead
from microtir.studio.answers import Answers
from microtir.studio.asks import InspectAsk, read_ask
from microtir.studio.assets import PAGE, assets
from microtir.studio.events import Event, Job, error_event
from microtir.studio.jobs.quantisation import Quantisation
from microtir.studio.limits import WorkerLimits
from microtir.studio.models import MOST_BYTES, ModelStore, listed
from microtir.studio.slots import Slots
from microtir.studio.worker import Worker
from microtir.version import __version__

_MOST_ASKED = 1 << 16  # bytes of what the page asks for
_NAME_HEADER = "x-model-name"
_LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class Studio:
    """The state of the server: models, and workers, of which some may work at a time.

    Args:
        models: that the page may ask about.
        limits: of each worker.
        first: number of the model that the page opens by itself; None for none.
    """

    def __init__(self, models: ModelStore, limits: WorkerLimits, first: int | None) -> None:
        self._models, self._limits, self._first = models, limits, first
        self._slots = Slots()
        self._answers = Answers()

    def app(self) -> Starlette:
        """Return the application without its guard."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name}", self._asset),
                Route("/api/start", self._start),
                Route("/api/models", self._drop, methods=["POST"]),
                Route("/api/samples", self._drop_samples, methods=["POST"]),
                Route("/api/{name}", self._ask, methods=["POST"]),
            ]
        )

    async def _page(self, _: Request) -> Response:
        page = assets()[PAGE]
        return Response(page.content, media_type=page.type)

    async def _asset(self, request: Request) -> Response:
        asset = assets().get(request.path_params["name"])
        if asset is None:
            return PlainTextResponse("there is no such file", status_code=404)
        return Response(asset.content, media_type=asset.type)

    async def _start(self, _: Request) -> Response:
        boards = [
            {
                "name": board.name,
                "title": board.title,
                "projects": [support.type.value for support in board.projects],
            }
            for board in all_boards()
            if board.code is not None
        ]
        return JSONResponse({
            "version": __version__,
            "boards": boards,
            "cpus": list(CPUS),
            "cpu": microcontroller().primary_target().mcpu,
            "goals": [goal.value for goal in Optimize],
            "goal": Optimize.BALANCED.value,
            "packages": [
                {"name": str(known.format), "title": known.title} for known in all_formats()
            ],
            "models": self._models.listed(),
            "samples": self._models.newest_samples(),
            "first": self._first,
            "most_bytes": MOST_BYTES,
        })  # fmt: skip

    async def _drop(self, request: Request) -> Response:
        """Take a file, and tell its number and what it is; one that is no model is not kept."""
        try:
            content = await _body(request, MOST_BYTES, "a model file")
        except MicrotirError as error:
            return _refusal(error)
        number = self._models.add(_name(request), content)
        return EventStream(self._kept(InspectAsk(number).job(self._models), number, "model"))

    async def _drop_samples(self, request: Request) -> Response:
        """Take a file of samples, and tell its number; a worker that reads them says what it is."""
        try:
            content = await _body(request, MOST_BYTES, "a file of samples")
        except MicrotirError as error:
            return _refusal(error)
        number = self._models.add_samples(_name(request), content)
        label = self._models.samples(number).label
        return JSONResponse({"event": "samples", "number": number, "label": label})

    async def _kept(self, job: Job, number: int, good: str) -> AsyncGenerator[bytes, None]:
        """Yield what a job tells of a model, which is given up unless it tells what is good."""
        is_good, place = False, listed(number, self._models.file(number))
        try:
            async with aclosing(self._events(job)) as events:
                async for event in events:
                    if json.loads(event)["event"] == good:
                        is_good = True
                        self._models.give_up_oldest()
                        yield _line({"event": "dropped", **place})
                    yield event
        finally:
            if not is_good:
                self._models.remove(number)

    async def _ask(self, request: Request) -> Response:
        try:
            body = await _body(request, _MOST_ASKED, "what is asked")
            job = read_ask(request.path_params["name"], body).job(self._models)
        except MicrotirError as error:
            return _refusal(error)
        if isinstance(job, Quantisation):
            return EventStream(self._kept(job, job.number, "quantised"))
        return EventStream(self._events(job))

    def _events(self, job: Job) -> AsyncGenerator[bytes, None]:
        """Yield what a job tells; a page that does not read keeps no place of a worker."""
        return ahead(self._told(job))

    async def _told(self, job: Job) -> AsyncGenerator[bytes, None]:
        """Yield what a job told before; else what it tells, once a worker may begin."""
        if (known := self._answers.find(job)) is not None:
            for event in known:
                yield event
            return
        told: list[bytes] = []
        slots = self._slots.of(job)
        if slots.locked():
            yield _line({"event": "progress", "text": "waiting for other work to end"})
        async with slots, aclosing(Worker(job, self._limits).events()) as events:
            async for event in events:
                told.append(event)
                yield event
        self._answers.keep(job, told)


class EventStream(Response):
    """A response of one line an event; a page that has gone ends what tells them."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(media_type="application/x-ndjson")
        self._told = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until there are no more, or nobody listens."""
        await send({
            "type": "http.response.start", "status": 200,
            "headers": [(b"content-type", b"application/x-ndjson; charset=utf-8")],
        })  # fmt: skip
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The studio ends while it works: without an end of this response the terminal would
            # show a traceback.
            await send(_LAST)
        finally:
            for task in (sending, gone):
                task.cancel()
            with suppress(asyncio.CancelledError):  # once more, if the loop ends meanwhile
                await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        try:
            async for event in self._told:
                await send({"type": "http.response.body", "body": event + b"\n", "more_body": True})
            await send(_LAST)
        finally:
            await self._told.aclose()


async def _gone(receive: Receive) -> None:
    """Return when the page has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _name(request: Request) -> str:
    """Return what a dropped file is called on the person's machine."""
    return unquote(request.headers.get(_NAME_HEADER, ""))


async def _body(request: Request, most: int, what: str) -> bytes:
    """Return what was sent.

    Raises:
        UsageError: it is too large; no more than allowed was kept of it.
    """
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > most:
                raise UsageError(
                    f"{what} has more than {most:,} bytes",
                    where="studio",
                    legal=f"at most {most:,} bytes",
                    fix="compile larger files with `microtir` in a terminal",
                )
    except ClientDisconnect:
        raise UsageError("the page was closed before everything was sent", where="studio") from None
    return bytes(content)


def _refusal(error: MicrotirError) -> Response:
    return Response(_line(error_event(error)), status_code=400, media_type="application/x-ndjson")


def _line(event: Event) -> bytes:
    return json.dumps(event).encode()
