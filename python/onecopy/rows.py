"""What row streams need of Python: iteration in asyncio, and files that appear whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onecopy._core import RowStream

__all__ = ["chunks_in_thread", "write_file"]


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


def write_file(path: str | os.PathLike[str], stream: RowStream) -> int:
    """Write what is left of ``stream`` to the file ``path``; return the number of bytes.

    The file appears whole or not at all: a temporary one beside it is written, synced, and renamed.
    """
    path = os.fspath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.part")
    # Not tempfile: the file gets the permissions that any new file of the user has.
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb", buffering=0) as file:
            n_bytes = stream.write_to(file)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return n_bytes
