"""Prefetches the chunks of a row stream for asyncio, in a thread that wakes the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from onecopy.errors import InterfaceError

if TYPE_CHECKING:
    from onecopy._core import RowStream

__all__ = ["Prefetcher"]

#: The largest number of prefetched chunks: the one to send next, and the one after it.
_MOST_CHUNKS: Final = 2
#: The largest number of chunks that a thread fills before it is released, so that other streams can
#: use the thread even if the reader of this stream is fast.
_CHUNKS_PER_TURN: Final = 32
#: Seconds between repeated cancels of a call that has not ended: the driver ignores a cancel that
#: arrives before it has started.
_CANCEL_INTERVAL_S: Final = 0.05


class Prefetcher:
    """An asynchronous iterator over the chunks of ``stream``, for one task at a time.

    A thread fills chunks while the event loop runs, until two chunks are waiting to be read. Each
    chunk therefore costs one wake-up of the loop, and the task does not wait for a thread to start.
    When two chunks are waiting, the thread is released, so a slow client occupies no thread.
    Cancelling a task that waits for a chunk cancels the statement.

    Copies: none; a chunk is the ``bytes`` object that cells were converted into.

    Args:
        stream: the stream; nothing else may read it.
        start: a function that runs another function in a thread; default: asyncio's executor.
    """

    def __init__(self, stream: RowStream, start: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._stream = stream
        self._start_in = start
        #: The lock of the fields below. It is never held during a call of the driver.
        self._lock = threading.Lock()
        self._ready: deque[bytes] = deque()
        self._error: BaseException | None = None
        self._over = False
        #: True while a thread fills chunks, or is about to start.
        self._fills = False
        self._stopped = False
        self._begins = False
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self._idle = threading.Event()
        self._idle.set()
        #: The length of the whole response in bytes, if `begin` has filled the whole response into
        #: the first chunk; otherwise None.
        self.n_bytes: int | None = None

    # Methods of the reader, called on the event loop.

    async def begin(self) -> int | None:
        """Fill the first chunk. If the statement fails, raise its error. See `RowStream.begin`."""
        self._begins = True
        try:
            while not (self._ready or self._over):
                await self._wait()
        except BaseException:
            self.stop()
            raise
        return self.n_bytes

    def __aiter__(self) -> Prefetcher:
        return self

    async def __anext__(self) -> bytes:
        if self._waiter is not None:
            raise RuntimeError("another task waits for the next chunk of this stream")
        try:
            if self._ready:
                # Other tasks can run here even if chunks are ready, and the server can notice a
                # closed connection.
                self._fill_on()
                await asyncio.sleep(0)
            while not self._ready:
                if self._over:
                    raise StopAsyncIteration
                await self._wait()
            with self._lock:
                chunk = self._ready.popleft()
            self._fill_on()
            return chunk
        except StopAsyncIteration:
            raise
        except BaseException:
            self.stop()
            raise

    async def _wait(self) -> None:
        """Wait until a chunk is ready or the stream has ended. If the stream has failed, raise its
        error; only the first call after the failure does so."""
        with self._lock:
            if self._ready or self._over:
                return
            if self._stopped:
                raise InterfaceError("the stream is closed")
            if self._error is not None:
                # The error is raised only once here. The stream itself raises it again at each
                # further call.
                error, self._error = self._error, None
                raise error
            loop = asyncio.get_running_loop()
            woken: asyncio.Future[None] = loop.create_future()
            self._waiter = loop, woken
        try:
            self._fill_on()
            await woken
        finally:
            with self._lock:
                self._waiter = None

    def _fill_on(self) -> None:
        with self._lock:
            if (
                self._fills
                or self._over
                or self._stopped
                or self._error is not None
                or len(self._ready) >= _MOST_CHUNKS
            ):
                return
            self._fills = True
            self._idle.clear()
        self._start(self._fill)

    def _start(self, job: Callable[[], None]) -> None:
        try:
            if self._start_in is not None:
                self._start_in(job)
            else:
                asyncio.get_running_loop().run_in_executor(None, job)
        except BaseException:
            self._rest()
            raise

    def stop(self) -> None:
        """Abandon the stream without waiting: the running call is cancelled, and the thread that
        fills chunks closes the stream."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._ready.clear()
            fills = self._fills
            if not fills and not self._over:
                self._fills = True
                self._idle.clear()
        if fills:
            # A driver's cancel may use the network, so it does not run on the event loop.
            threading.Thread(target=self._cancel, name="onecopy-cancel", daemon=True).start()
        elif not self._over:
            try:
                self._start(self._close)
            except Exception:  # There is no event loop, or it is closed: nothing waits for it.
                self._stream.close()

    async def close(self) -> None:
        """Abandon the stream, and wait until it is closed."""
        self.stop()
        if not self._idle.is_set():
            await asyncio.to_thread(self._idle.wait)

    aclose = close

    def __del__(self) -> None:
        # The stream was abandoned before its end. Prefetched chunks are lost, so further reads must
        # fail.
        if not (self._over or self._stopped):
            with contextlib.suppress(Exception):
                self._stream.cancel()

    # Functions that run in the thread.

    def _fill(self) -> None:
        for turn in range(1, _CHUNKS_PER_TURN + 1):
            chunk: bytes | None = None
            error: BaseException | None = None
            n_bytes = None
            try:
                if self._begins:
                    self._begins = False
                    n_bytes = self._stream.begin()
                chunk = next(self._stream, None)
            except BaseException as raised:
                error = raised
            with self._lock:
                if n_bytes is not None:
                    self.n_bytes = n_bytes
                if self._stopped:
                    break
                if chunk is not None:
                    self._ready.append(chunk)
                elif error is not None:
                    self._error = error
                else:
                    self._over = True
                more = chunk is not None and turn < _CHUNKS_PER_TURN and len(self._ready) < _MOST_CHUNKS
                if not more:
                    # The thread is released before the reader wakes up, since the reader may
                    # request the next chunk at once.
                    self._fills = False
                    self._idle.set()
                waiter = self._waiter
            if waiter is not None:
                _wake(*waiter)
            if not more:
                return
        self._close()

    def _close(self) -> None:
        try:
            with contextlib.suppress(Exception):
                self._stream.close()
        finally:
            self._rest()

    def _rest(self) -> None:
        with self._lock:
            self._fills = False
            self._idle.set()
            waiter = self._waiter
        if waiter is not None:
            _wake(*waiter)

    def _cancel(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                self._stream.cancel()
            if self._idle.wait(_CANCEL_INTERVAL_S):
                return


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # The loop was closed, so nothing waits any more.
        loop.call_soon_threadsafe(_settle, waiter)


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
