"""Chunks of a row stream for asyncio, filled ahead by a thread that wakes the event loop."""

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

__all__ = ["Ahead"]

#: Chunks that stand ready at most: one that is sent next, and one behind it.
_AHEAD: Final = 2
#: Chunks that a thread fills before it looks after others, where the reader keeps up with it.
_A_TURN: Final = 32
#: Seconds between two cancels of a call that has not ended: one that comes before the driver has begun is lost.
_AGAIN: Final = 0.05


class Ahead:
    """The chunks of ``stream``, for one task at a time.

    A thread fills them while the event loop runs on, and goes on as long as the reader keeps up: a chunk costs the wake of
    the loop, and no way into a thread. Where two stand ready the thread is given back, so a slow client holds none. A task
    that is cancelled while it waits cancels the statement.

    Copies: none; a chunk is the ``bytes`` that cells were converted into.

    Args:
        stream: the stream; nobody else reads it.
        start: runs a function in a thread; without it that is asyncio's executor.
    """

    def __init__(self, stream: RowStream, start: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._stream = stream
        self._start_in = start
        #: Held for moments.
        self._lock = threading.Lock()
        self._ready: deque[bytes] = deque()
        self._error: BaseException | None = None
        self._over = False
        #: A thread fills chunks, or is about to.
        self._fills = False
        self._stopped = False
        self._begins = False
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self._idle = threading.Event()
        self._idle.set()
        #: Bytes of the whole answer, where `begin` has found that its first chunk is all of it.
        self.n_bytes: int | None = None

    # The reader, on the event loop.

    async def begin(self) -> int | None:
        """Have the first chunk filled, and a failure in it raised: see `RowStream.begin`."""
        self._begins = True
        try:
            while not (self._ready or self._over):
                await self._wait()
        except BaseException:
            self.stop()
            raise
        return self.n_bytes

    def __aiter__(self) -> Ahead:
        return self

    async def __anext__(self) -> bytes:
        if self._waiter is not None:
            raise RuntimeError("another task waits for the next chunk of this stream")
        try:
            if self._ready:
                # Chunks that are ready must not keep the loop from its other tasks, nor from seeing that the client left.
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
        """Until something is ready, the stream is over or closed, or has failed: then that is raised, once."""
        with self._lock:
            if self._ready or self._over:
                return
            if self._stopped:
                raise InterfaceError("the stream is closed")
            if self._error is not None:
                # Once: asked again, the stream says it again.
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
            if self._fills or self._over or self._stopped or self._error is not None or len(self._ready) >= _AHEAD:
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
        """Give the stream up: what runs is cancelled, and the stream closed by the thread that filled it. Does not wait."""
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
            # A driver's cancel may talk to its server: not on the loop.
            threading.Thread(target=self._cancel, name="onecopy-cancel", daemon=True).start()
        elif not self._over:
            try:
                self._start(self._close)
            except Exception:  # No loop, or one that is closed: nobody to wait, then.
                self._stream.close()

    async def close(self) -> None:
        """Give the stream up, and wait until it is closed."""
        self.stop()
        if not self._idle.is_set():
            await asyncio.to_thread(self._idle.wait)

    aclose = close

    def __del__(self) -> None:
        # Left before its end: chunks that stood here are lost, so reading the stream on must fail.
        if not (self._over or self._stopped):
            with contextlib.suppress(Exception):
                self._stream.cancel()

    # The thread.

    def _fill(self) -> None:
        for turn in range(1, _A_TURN + 1):
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
                more = chunk is not None and turn < _A_TURN and len(self._ready) < _AHEAD
                if not more:
                    # Before the reader is woken: it may ask for more at once.
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
            if self._idle.wait(_AGAIN):
                return


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
        loop.call_soon_threadsafe(_settle, waiter)


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
