"""Runs database calls of a connection on the event loop's thread without blocking it. While a call
waits for the database, the event loop watches the connection's socket."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import os
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from onecopy._core import Connection, PendingCall
from onecopy.aio._thread import ThreadRunner
from onecopy.errors import Error, InterfaceError

T = TypeVar("T")

#: Seconds between repeated cancels of a call that has not ended: a cancel before the statement has
#: no effect, and one after several seconds shuts the connection down.
_CANCEL_INTERVAL_S: Final = 0.05

#: The longest time in seconds for which calls that never wait may occupy the event loop, until
#: other tasks can run.
_MOST_BUSY_S: Final = 0.002

#: The largest number of threads of the shared executor. It is large because calls may wait for each
#: other in the database: if such calls occupied all threads, none could end.
_MOST_THREADS: Final = 1024

_executor: concurrent.futures.ThreadPoolExecutor | None = None


def _shared_executor() -> concurrent.futures.ThreadPoolExecutor:
    """Return the executor for calls that cannot be suspended. All connections share this executor,
    which starts threads on demand."""
    global _executor
    if _executor is None:
        _executor = concurrent.futures.ThreadPoolExecutor(_MOST_THREADS, "onecopy-aio")
    return _executor


def _forget_executor() -> None:
    global _executor
    _executor = None


# The threads of the executor do not exist in a forked child.
os.register_at_fork(after_in_child=_forget_executor)


async def run_connect(call: PendingCall) -> Any:
    """Run ``call``, which opens a connection, on the event loop's thread. Return the connection. If
    the task is cancelled, stop the attempt to connect immediately."""
    loop = asyncio.get_running_loop()
    try:
        while (wait := call.resume()) is not None:
            await _until_ready(loop, *wait)
    except BaseException:
        call.cancel()
        call.abandon()
        raise
    return call.result()


async def _until_ready(loop: asyncio.AbstractEventLoop, fd: int, is_for_write: bool, seconds: float | None) -> None:
    """Wait until a file descriptor is readable or writable, but at most ``seconds``. When this
    function returns, the event loop no longer watches the descriptor."""
    if fd < 0:
        await asyncio.sleep(seconds or 0)
        return
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, wake)
    if is_for_write:
        loop.add_writer(fd, wake)
    timer = None if seconds is None else loop.call_later(seconds, wake)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
        loop.remove_writer(fd)
        if timer is not None:
            timer.cancel()


class _RunningCall:
    """A call on the connection that has begun and has not ended yet."""

    __slots__ = ("call", "context", "done", "timer")

    def __init__(self, call: PendingCall, done: asyncio.Future[None]) -> None:
        self.call = call
        #: Cancelled if the task that waits for the call is cancelled; the call then goes on.
        self.done = done
        #: The context of the task, in which the iterables that the call reads are iterated.
        self.context = contextvars.copy_context()
        #: Cancels the call when its limit runs out, or again after it was cancelled.
        self.timer: asyncio.TimerHandle | None = None


class EventLoopRunner(ThreadRunner):
    """Runs the database calls of a PostgreSQL connection on the event loop's thread, one at a time.
    Calls that cannot be suspended run in a thread of a shared executor.

    Only the event loop's thread may call the methods, except `start` and `shutdown`.
    """

    suspends = True

    def __init__(self, con: Connection) -> None:
        super().__init__(_shared_executor())
        # This reference keeps the descriptor open while the loop watches it.
        self._con = con
        self._loop = asyncio.get_running_loop()
        #: The descriptor that the loop watches, -1 for none. It stays registered between calls.
        self._fd = -1
        self._run: _RunningCall | None = None
        #: True while a call is under way. Each function of the queue begins the next call, or
        #: returns False if its caller no longer waits for it.
        self._busy = False
        self._queue: deque[Callable[[], bool]] = deque()
        #: The time after which the next call lets other tasks run before it begins.
        self._busy_until = 0.0

    # The queue: one call at a time.

    async def _take_turn(self) -> None:
        self._check_open()
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The former loop has ended; a call that was under way there is abandoned.
            self._forget_fd()
            if self._run is not None:
                self._run.call.abandon()
            self._loop, self._run, self._busy = loop, None, False
            self._queue.clear()
        if not self._busy:
            self._busy = True
            return
        granted: asyncio.Future[None] = loop.create_future()

        def grant() -> bool:
            if granted.done():
                return False
            granted.set_result(None)
            return True

        self._queue.append(grant)
        try:
            await granted
            self._check_open()
        except BaseException:
            if granted.done() and not granted.cancelled():
                self._end_turn()
            raise

    def _end_turn(self) -> None:
        while self._queue:
            if self._queue.popleft()():
                return
        self._busy = False

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")

    # Calls that suspend.

    async def drive(
        self, begin: Callable[..., PendingCall | None], /, *args: Any, cancel: Callable[[], object] | None = None
    ) -> Any:
        """Run the call that `begin` returns; return the call's result, or ``None`` if `begin`
        returned no call.

        If the task is cancelled while it waits, the call is cancelled too. The next call on the
        connection waits until the cancelled call has ended. If the task is cancelled before the
        call has begun, `cancel` is called. It cancels the statement of the task, which the database
        may still execute.
        """
        call = run = None
        has_turn = False
        try:
            await self._take_turn()
            has_turn = True
            if self._loop.time() > self._busy_until:
                await asyncio.sleep(0)
                self._busy_until = self._loop.time() + _MOST_BUSY_S
            call = begin(*args)
            if call is None:
                return None
            if (wait := call.resume()) is not None:
                run = self._run = _RunningCall(call, self._loop.create_future())
                if call.limit is not None:
                    run.timer = self._loop.call_later(call.limit, self._keep_cancelling, run, call.run_out)
                self._watch(*wait)
                await run.done
            return call.result()
        except (asyncio.CancelledError, GeneratorExit):
            if run is not None and run is self._run:
                run.done.cancel()
                self._keep_cancelling(run, run.call.cancel)
            elif call is not None:
                # The call has returned when the task was cancelled. The statement may have further
                # rows.
                call.cancel()
                _discard(call)
            elif cancel is not None:
                with contextlib.suppress(Error):  # The cursor may have been closed meanwhile.
                    cancel()
            raise
        finally:
            if has_turn and (run is None or run is not self._run):
                self._end_turn()

    def _keep_cancelling(self, run: _RunningCall, stop: Callable[[], object]) -> None:
        """Call `stop`, which cancels the running call, again and again until the call has ended."""
        if run is self._run and not self._loop.is_closed():
            if run.timer is not None:
                run.timer.cancel()
            stop()
            run.timer = self._loop.call_later(_CANCEL_INTERVAL_S, self._keep_cancelling, run, stop)

    def _resume(self) -> None:
        """Continue the running call after its socket has become ready or its waiting time has
        expired."""
        run = self._run
        if run is None:
            # Between calls, a server sends little: a notice, or that it closes the connection. The
            # next call reads it.
            self._forget_fd()
            return
        failure: BaseException | None = None
        try:
            wait = run.context.run(run.call.resume)
        except BaseException as raised:
            wait, failure = None, raised
        if wait is not None:
            self._watch(*wait)
            return
        self._run = None
        self._busy_until = self._loop.time() + _MOST_BUSY_S
        if run.timer is not None:
            run.timer.cancel()
        if run.done.cancelled():
            _discard(run.call)
            self._end_turn()
        elif failure is not None:
            run.done.set_exception(failure)
        else:
            run.done.set_result(None)

    async def close(self, con: Connection) -> None:
        """Wait until all earlier calls have ended, and then close the connection."""
        await self._take_turn()
        try:
            con.close()  # It does not wait for the server.
        finally:
            self._end_turn()

    # The descriptor that the event loop watches.

    def _watch(self, fd: int, is_for_write: bool, seconds: float | None) -> None:
        """Make the event loop call `_resume` when the descriptor ``fd`` is ready, or when
        ``seconds`` have passed. If ``fd`` is negative, `_resume` is called when ``seconds`` have
        passed.
        """
        this = weakref.ref(self)
        if fd >= 0 and fd != self._fd:
            self._forget_fd()
            self._loop.add_reader(fd, _ready, this)
            self._fd = fd
        if is_for_write:
            self._loop.add_writer(fd, _writable, self._loop, fd, this)
        if seconds == 0:
            self._loop.call_soon(_ready, this)
        elif seconds is not None:
            self._loop.call_later(seconds, _ready, this)

    def _forget_fd(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0 or self._loop.is_closed():
            return
        if asyncio._get_running_loop() is self._loop:
            self._loop.remove_reader(fd)
        else:
            # The connection is passed as an argument, which keeps the descriptor open until the
            # reader is removed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_remove_reader, self._loop, fd, self._con)

    def __del__(self) -> None:
        self._forget_fd()

    # Calls in a thread.

    async def _submit(self, token: object, call: Callable[[], T]) -> concurrent.futures.Future[T]:
        await self._take_turn()
        try:
            future = _shared_executor().submit(self._call, token, call)
        except BaseException:
            self._end_turn()
            raise
        future.add_done_callback(self._end_turn_soon)
        return future

    def _end_turn_soon(self, _future: object) -> None:
        with contextlib.suppress(RuntimeError):  # The loop was closed, with its queue.
            self._loop.call_soon_threadsafe(self._end_turn)

    def start(self, function: Callable[[], object]) -> None:
        """Run ``function`` in a thread of the executor, after all earlier calls on this connection
        have ended. This method returns immediately. It may be called from any thread."""
        self._check_open()

        def begin() -> bool:
            _shared_executor().submit(self._call, object(), function).add_done_callback(self._end_turn_soon)
            return True

        def request() -> None:
            if self._busy:
                self._queue.append(begin)
            else:
                self._busy = begin()

        try:
            self._loop.call_soon_threadsafe(request)
        except RuntimeError:
            raise InterfaceError("the event loop of this connection is closed") from None

    def shutdown(self, wait: bool = False) -> None:
        """Close this runner. Calls that are submitted later raise an `InterfaceError`."""
        self._forget_fd()
        self.closed = True


def _discard(call: PendingCall) -> None:
    """Discard the result of a cancelled call; the cursor gets its statement back."""
    with contextlib.suppress(Exception):
        call.result()


def _ready(this: weakref.ref[EventLoopRunner]) -> None:
    if (loop := this()) is not None:
        loop._resume()


def _writable(loop: asyncio.AbstractEventLoop, fd: int, this: weakref.ref[EventLoopRunner]) -> None:
    loop.remove_writer(fd)
    _ready(this)


def _remove_reader(loop: asyncio.AbstractEventLoop, fd: int, con: Connection) -> None:
    loop.remove_reader(fd)
