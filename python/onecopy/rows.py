"""What row streams need of Python: iteration in asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onecopy._core import RowStream

__all__ = ["chunks_in_thread"]


async def chunks_in_thread(stream: RowStream) -> AsyncIterator[bytes]:
    """The chunks of ``stream``, each filled in a thread of asyncio's while the event loop runs on.

    This is what ``async for chunk in stream`` does. It is backed by threads, not by a driver that knows asyncio. When
    the task is cancelled, the statement is too.

    Copies: none; the chunk is the ``bytes`` that cells were converted into.
    """
    try:
        while (chunk := await asyncio.to_thread(next, stream, None)) is not None:
            yield chunk
    except BaseException:
        # Cancelled while a chunk was being filled, or closed early: nothing is to run on in the thread.
        with contextlib.suppress(Exception):
            stream.cancel()
        raise
