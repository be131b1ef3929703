"""The thread that runs the blocking calls of one connection."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from onecopy.errors import Error, InterfaceError

if TYPE_CHECKING:
    from onecopy._core import Connection, PendingCall

T = TypeVar("T")


class ThreadRunner:
    """Runs the blocking calls on one connection in a thread. At exit, the interpreter waits until
    the thread has ended."""

    #: True if calls that suspend are run by `drive`, without a thread.
    suspends = False

    def __init__(self, executor: concurrent.futures.ThreadPoolExecutor | None = None) -> None:
        self._executor = executor or concurrent.futures.ThreadPoolExecutor(1, "onecopy-aio")
        self._lock = threading.Lock()
        self._current: object = None
        self.closed = False

    @overload
    async def run(self, cancel: Callable[[], object], function: Callable[..., T], /, *args: Any) -> T: ...
    @overload
    async def run(
        self, cancel: None, function: Callable[..., T], /, *args: Any, unwanted: Callable[[T], object] | None = None
    ) -> T: ...
    async def run(
        self,
        cancel: Callable[[], object] | None,
        function: Callable[..., T],
        /,
        *args: Any,
        unwanted: Callable[[T], object] | None = None,
    ) -> T:
        """Call a function in the thread after all calls that were submitted before.

        If the task is cancelled while it waits, `cancel` is called repeatedly until the function ends.
        Without `cancel` the function runs to its end, and `unwanted` is called with its result.
        """
        call = functools.partial(contextvars.copy_context().run, function, *args)
        token = object()
        future = await self._submit(token, call)
        wrapped = asyncio.wrap_future(future)
        try:
            return await (asyncio.shield(wrapped) if cancel is None else wrapped)
        except asyncio.CancelledError:
            if cancel is None:
                future.add_done_callback(functools.partial(_discard, unwanted))
            elif not future.done():
                threading.Thread(target=self._stop, args=(token, future, cancel), daemon=True).start()
            raise

    async def _submit(self, token: object, call: Callable[[], T]) -> concurrent.futures.Future[T]:
        try:
            return self._executor.submit(self._call, token, call)
        except RuntimeError:
            raise InterfaceError("the connection is closed") from None

    async def close(self, con: Connection) -> None:
        """Wait until all earlier calls have ended, and then close the connection."""
        await self.run(None, con.close)

    async def drive(
        self, begin: Callable[..., PendingCall | None], /, *args: Any, cancel: Callable[[], object] | None = None
    ) -> Any:
        """Run the call that `begin` returns on the event loop. Only runners whose `suspends` is
        true implement this method."""
        raise NotImplementedError

    def start(self, function: Callable[[], object]) -> None:
        """Submit a function that the thread runs after all calls that were submitted before, and
        return immediately. Exceptions that the function raises are discarded."""
        try:
            self._executor.submit(function)
        except RuntimeError:
            raise InterfaceError("the connection is closed") from None

    def _call(self, token: object, call: Callable[[], T]) -> T:
        with self._lock:
            self._current = token
        try:
            return call()
        except StopIteration as error:
            # A future cannot contain it: the task would never end. A coroutine raises the same
            # error instead (PEP 479).
            raise RuntimeError("the call raised StopIteration") from error
        finally:
            with self._lock:
                self._current = None

    def _stop(self, token: object, future: concurrent.futures.Future[Any], cancel: Callable[[], object]) -> None:
        # The cancel is repeated, since the driver ignores a cancel that arrives before the call has
        # begun.
        while not future.done():
            with self._lock, contextlib.suppress(Error):
                if self._current is token:
                    cancel()
            concurrent.futures.wait([future], 0.05)

    def shutdown(self, wait: bool = False) -> None:
        """Close the runner: later calls raise an `InterfaceError`."""
        self.closed = True
        self._executor.shutdown(wait=wait)


def _discard(unwanted: Callable[[Any], object] | None, future: concurrent.futures.Future[Any]) -> None:
    # `exception` also prevents asyncio's message that the exception was never retrieved.
    if not future.cancelled() and future.exception() is None and unwanted is not None:
        unwanted(future.result())
