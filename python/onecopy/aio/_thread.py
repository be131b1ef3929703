"""The thread of one connection."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from onecopy.errors import Error, InterfaceError

T = TypeVar("T")


class Thread:
    """The thread of one connection. The interpreter waits for it at its exit."""

    def __init__(self) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(1, "onecopy-aio")
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
        """Call a function in the thread, after those asked for before.

        Where the task is cancelled meanwhile, `cancel` is called until the function ends; without one it runs to its end,
        and `unwanted` is given what it returns.
        """
        call = functools.partial(contextvars.copy_context().run, function, *args)
        token = object()
        try:
            future = self._executor.submit(self._call, token, call)
        except RuntimeError:
            raise InterfaceError("the connection is closed") from None
        wrapped = asyncio.wrap_future(future)
        try:
            return await (asyncio.shield(wrapped) if cancel is None else wrapped)
        except asyncio.CancelledError:
            if cancel is None:
                future.add_done_callback(functools.partial(_discard, unwanted))
            elif not future.done():
                threading.Thread(target=self._stop, args=(token, future, cancel), daemon=True).start()
            raise

    def start(self, function: Callable[[], object]) -> None:
        """Have a function called in the thread, after those asked for before; it raises nothing."""
        try:
            self._executor.submit(function)
        except RuntimeError:
            raise InterfaceError("the connection is closed") from None

    def _call(self, token: object, call: Callable[[], T]) -> T:
        with self._lock:
            self._current = token
        try:
            return call()
        finally:
            with self._lock:
                self._current = None

    def _stop(self, token: object, future: concurrent.futures.Future[Any], cancel: Callable[[], object]) -> None:
        # Again and again: a cancel that comes before the driver has begun is lost.
        while not future.done():
            with self._lock, contextlib.suppress(Error):
                if self._current is token:
                    cancel()
            concurrent.futures.wait([future], 0.05)

    def shutdown(self, wait: bool = False) -> None:
        """Take no more calls."""
        self.closed = True
        self._executor.shutdown(wait=wait)


def _discard(unwanted: Callable[[Any], object] | None, future: concurrent.futures.Future[Any]) -> None:
    # Asking for the exception also marks it as seen.
    if not future.cancelled() and future.exception() is None and unwanted is not None:
        unwanted(future.result())
