"""Files to sockets and back in asyncio: steps on a non-blocking socket, between which the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from onecopy import _core

if TYPE_CHECKING:
    from onecopy._core import _Reads, _Writes

#: The most that moves before others get a turn: some hundred microseconds where the file is in memory.
_STEP_BYTES = 1 << 20


async def send_file(sock: socket, file: _Reads, offset: int = 0, count: int | None = None) -> int:
    """Send ``count`` bytes of ``file`` from ``offset`` on through ``sock``; as `onecopy.send_file`, and the loop goes on meanwhile.

    Args:
        sock: a connected socket of your own with ``setblocking(False)``, as `loop.sock_sendall` takes it: not one that a
            transport or a stream of asyncio's holds, nor one of `ssl`. Nobody else may wait for it meanwhile.
        file: as for `onecopy.send_file`. Its pages are read where they are not in memory yet, and the loop waits for the disk
            then, as with `loop.sendfile`.
        offset: the first byte, from 0.
        count: how many bytes; ``None``: up to the end that the file has when each step begins.

    Returns:
        Bytes sent: fewer than ``count`` only where the file ends before that.

    Raises:
        ValueError: the socket blocks, or a number is negative.
        OSError: as `onecopy.send_file`.

    A task that is cancelled stops between two steps; how many bytes went is then not told.
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
    """Receive ``count`` bytes from ``sock`` into ``file``, at its position; as `onecopy.recv_file`, and the loop goes on meanwhile.

    Args:
        sock: as for `send_file`.
        file: as for `onecopy.recv_file`. The loop waits while the system writes.
        count: how many bytes.

    Returns:
        Bytes received: fewer than ``count`` only where the peer ends before that.

    Raises:
        ValueError: the socket blocks, or ``count`` is negative.
        OSError: as `onecopy.recv_file`.
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
        raise ValueError("the socket blocks\ncall `setblocking(False)` on it first")


async def _ready(sock: socket, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Wait until the loop says so."""
    fd = sock.fileno()
    ready = asyncio.Event()
    add(fd, ready.set)
    try:
        await ready.wait()
    finally:
        remove(fd)
