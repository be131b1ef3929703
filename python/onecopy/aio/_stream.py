"""Row streams for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from onecopy import _core
from onecopy._prefetch import Prefetcher

if TYPE_CHECKING:
    from onecopy.aio._connection import Connection

T = TypeVar("T")


class _Writes(Protocol):
    def write(self, data: bytes, /) -> object: ...


class RowStream:
    """An asynchronous iterable over chunks of bytes that contain the rows of a statement in an
    output format. For PostgreSQL, the event loop's thread fills the chunks; for other databases, a
    thread of the connection prefetches them. If an iteration ends early (by `break` or an
    exception), the stream cannot be read further.

    Copies: none; a chunk is the ``bytes`` object that cells were converted into.
    """

    def __init__(self, connection: Connection, stream: _core.RowStream) -> None:
        self._connection, self._stream = connection, stream
        self._suspends = connection._suspends
        # Set when the statement has ended. The connection may then belong to another task, and the
        # remaining bytes of the stream are in memory.
        self._ended = threading.Event()
        stream.on_close(self._ended.set)

    async def _run(self, function: Callable[..., T], /, *args: Any) -> T:
        if self._ended.is_set():
            return await asyncio.to_thread(function, *args)
        return await self._connection._run(function, *args, cancel=self._stream.cancel)

    def _start(self, function: Callable[[], None]) -> None:
        if self._ended.is_set():
            function()
        else:
            self._connection._start(function)

    @property
    def n_rows(self) -> int:
        """The number of rows that were written to chunks so far."""
        return self._stream.n_rows

    @property
    def format(self) -> str:
        """The name of the output format, as in `onecopy.RowStream.format`."""
        return self._stream.format

    @property
    def sync(self) -> _core.RowStream:
        """The underlying `onecopy.RowStream`, whose methods block."""
        return self._stream

    async def begin(self) -> int | None:
        """Fill the first chunk, and raise the error of the statement if it fails: see
        `onecopy.RowStream.begin`."""
        if not self._suspends:
            return await self._run(self._stream.begin)
        await self._drive(self._stream._begin_fill)
        return self._stream.begin()

    async def _next(self) -> bytes | None:
        """Fill the next chunk on the event loop's thread, and return it. Return None at the end of
        the stream."""
        await self._drive(self._stream._begin_fill)
        return next(self._stream, None)

    async def _drive(self, begin: Callable[[], _core.PendingCall | None]) -> Any:
        """Run the database call that `begin` begins, on the event loop's thread. If the statement
        of this stream has ended, do nothing and return None."""
        if self._ended.is_set():
            return None
        return await self._connection._runner().drive(begin, cancel=self._stream.cancel)

    def _chunks(self) -> Prefetcher | LoopChunks:
        """Return the iterator over the chunks of this stream for ``async for``. Its method `stop`
        ends the stream before all chunks were read."""
        if self._suspends:
            return LoopChunks(self)
        return Prefetcher(self._stream, self._start)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def read(self) -> bytes:
        """Return all remaining bytes of the stream."""
        if not self._suspends:
            return await self._run(self._stream.read)
        rest = await self._drive(self._stream._begin_read)
        return self._stream.read() if rest is None else cast(bytes, rest)

    async def write_to(self, target: str | os.PathLike[str] | _Writes) -> int:
        """Write all remaining bytes of the stream to a file, a socket or a path; return the number
        of bytes. Because writing blocks, this runs in a thread, even for PostgreSQL."""
        return await self._run(self._stream.write_to, target)

    def cancel(self) -> None:
        """Cancel the statement; reading from the stream then fails."""
        self._stream.cancel()

    def on_close(self, function: Callable[[], object], /) -> None:
        """Register a function to call when the statement has ended, as `onecopy.RowStream.on_close`
        does. The function may be called in any thread."""
        self._stream.on_close(function)

    async def close(self) -> None:
        """Close the stream and release its statement."""
        if self._suspends:
            self._stream.close()  # The next call discards the remaining rows, without a wait here.
        else:
            await self._run(self._stream.close)

    aclose = close

    async def __aenter__(self) -> RowStream:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


class LoopChunks:
    """An asynchronous iterator over the chunks of a stream. Only one task at a time may use it. The
    event loop's thread fills a chunk when it is requested. The class has the methods of
    `Prefetcher`.

    Copies: none; a chunk is the ``bytes`` object that cells were converted into.
    """

    def __init__(self, stream: RowStream) -> None:
        self._stream = stream
        self._is_over = False
        self._waits = False

    async def begin(self) -> int | None:
        """Fill the first chunk, and raise the error of the statement if it fails: see
        `RowStream.begin`."""
        return await self._or_stop(self._stream.begin())

    def __aiter__(self) -> LoopChunks:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._or_stop(self._stream._next())
        if chunk is None:
            self._is_over = True
            raise StopAsyncIteration
        return chunk

    async def _or_stop(self, call: Coroutine[Any, Any, T]) -> T:
        """Await ``call`` and return its result. If the call fails or the task is cancelled, close
        the stream."""
        if self._waits:
            call.close()
            raise RuntimeError("another task waits for the next chunk of this stream")
        self._waits = True
        try:
            return await call
        except BaseException:
            self.stop()
            raise
        finally:
            self._waits = False

    def stop(self) -> None:
        """Abandon the stream: cancel the running call, if any, and close the stream."""
        if not self._is_over:
            self._is_over = True
            with contextlib.suppress(Exception):
                self._stream.sync.close()

    async def close(self) -> None:
        """Close the stream, even if chunks remain. `stop` does the same."""
        self.stop()

    aclose = close

    def __del__(self) -> None:
        self.stop()  # The iteration may have been left early.
