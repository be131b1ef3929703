"""File transfers through sockets for asyncio. They consist of short non-blocking steps, between
which the event loop runs other tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from onecopy import _core

if TYPE_CHECKING:
    from onecopy._core import _Reads, _Writes

#: The largest number of bytes per step, between which the loop runs other tasks. A step takes some
#: hundred microseconds for a file in the page cache.
_STEP_BYTES = 1 << 20


async def send_file(sock: socket, file: _Reads, offset: int = 0, count: int | None = None) -> int:
    """Send ``count`` bytes of ``file``, starting at ``offset``, through ``sock`` while the loop
    runs.

    Args:
        sock: a connected socket in non-blocking mode, as for `loop.sock_sendall`; not a socket of
            an asyncio transport or stream, nor of `ssl`. No other task may use it during the
            transfer.
        file: as in `onecopy.send_file`. Pages that are not in memory are read from disk, which
            blocks the loop, as with `loop.sendfile`.
        offset: index of the first byte, from 0.
        count: the number of bytes; ``None``: up to the end of the file, which is determined again
            at each step.

    Returns:
        The number of bytes sent; less than ``count`` only if the file is shorter.

    Raises:
        ValueError: the socket is in blocking mode, or a number is negative.
        OSError: as in `onecopy.send_file`.

    If the task is cancelled, the transfer stops between two steps; the number of bytes sent is
    unknown.
    """
    _check(sock)
    if count is not None and count < 0:
        raise ValueError(f"`count` must not be negative: {count}")
    done = 0
    while count is None or done < count:
        step = _STEP_BYTES if count is None else min(_STEP_BYTES, count - done)
        try:
            sent = _core.send_file(sock, file, offset + done, step)
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await _ready(sock, loop.add_writer, loop.remove_writer)
            continue
        if sent == 0:
            break
        done += sent
        await asyncio.sleep(0)
    return done


async def recv_file(sock: socket, file: _Writes, count: int) -> int:
    """Receive ``count`` bytes from ``sock`` into ``file``, at its position, while the loop runs.

    Args:
        sock: as in `send_file`.
        file: as in `onecopy.recv_file`. Writing blocks the loop.
        count: the number of bytes.

    Returns:
        The number of bytes received; less than ``count`` only if the peer closes the connection
            early.

    Raises:
        ValueError: the socket is in blocking mode, or ``count`` is negative.
        OSError: as in `onecopy.recv_file`.
    """
    _check(sock)
    if count < 0:
        raise ValueError(f"`count` must not be negative: {count}")
    done = 0
    while done < count:
        try:
            came = _core.recv_file(sock, file, min(_STEP_BYTES, count - done))
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await _ready(sock, loop.add_reader, loop.remove_reader)
            continue
        if came == 0:
            break
        done += came
        await asyncio.sleep(0)
    return done


def _check(sock: socket) -> None:
    if sock.gettimeout() != 0:
        raise ValueError("the socket is in blocking mode\ncall `setblocking(False)` on it first")


async def _ready(sock: socket, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Wait until the event loop reports the socket as ready."""
    fd = sock.fileno()
    ready = asyncio.Event()
    add(fd, ready.set)
    try:
        await ready.wait()
    finally:
        remove(fd)
