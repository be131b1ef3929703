"""A socket that a service manager listens at for us, and what it is told (sd_listen_fds(3), sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import time

__all__ = ["is_activated", "notify", "take_socket"]

#: Where descriptors that are handed over begin (``SD_LISTEN_FDS_START``).
_FIRST = 3


def is_activated() -> bool:
    """Whether a service manager has handed sockets to this very process."""
    return os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0"


def take_socket() -> int:
    """The descriptor of the one socket that was handed over; processes that are started from here on do not see it.

    Raises:
        OSError: there is none, there is more than one, or it is meant for another process.
    """
    count, pid = os.environ.get("LISTEN_FDS"), os.environ.get("LISTEN_PID")
    if not count or not pid:
        raise OSError("no socket was handed over: LISTEN_FDS and LISTEN_PID are not set\nstart the unit's `.socket`")
    if pid != str(os.getpid()):
        raise OSError(
            f"the socket was handed to process {pid}, and this is {os.getpid()}\n"
            "a shell in between is to end with `exec onecopy run …`"
        )
    if count != "1":
        raise OSError(f"{count} sockets were handed over, and one is served\nleave one `Listen…=` line in the unit")
    for name in ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    try:
        os.set_inheritable(_FIRST, False)
    except OSError as error:
        raise OSError(f"the socket that was handed over is not there: {error}\nstart the unit's `.socket`") from None
    return _FIRST


def notify(*lines: str) -> None:
    """Tell the service manager, where one listens (``READY=1``); a manager that does not answer is none of our trouble."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    import socket

    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
        line.sendto("\n".join(lines).encode(), address)


def notify_reloading() -> None:
    """``RELOADING=1``, with the moment of it, which ``Type=notify-reload`` asks for."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
