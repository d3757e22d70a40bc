"""Lets work go on while whoever is told about it is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing


async def ahead(events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield events of which as many as there are have been taken already.

    What makes them ends when it has made the last one, however long that waits to be read, and at
    once when nobody wants them any more.
    """
    told: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def tell() -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    told.put_nowait(event)
        finally:
            told.put_nowait(None)

    telling = asyncio.ensure_future(tell())
    try:
        while (event := await told.get()) is not None:
            yield event
        await telling  # which raises what went wrong
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
