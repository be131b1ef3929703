"""Socket activation and notifications of a service manager (sd_listen_fds(3), sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import time

__all__ = ["is_activated", "notify", "take_socket"]

#: The first descriptor that is passed (``SD_LISTEN_FDS_START``).
_FIRST = 3


def is_activated() -> bool:
    """Return true if a service manager has passed sockets to this process."""
    return os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0"


def take_socket() -> int:
    """Return the descriptor of the socket that the service manager has passed. Child processes do
    not inherit this descriptor.

    Raises:
        OSError: no socket or more than one was passed, or the socket is for another process.
    """
    count, pid = os.environ.get("LISTEN_FDS"), os.environ.get("LISTEN_PID")
    if not count or not pid:
        raise OSError("no socket was passed: LISTEN_FDS and LISTEN_PID are not set\nstart the unit's `.socket`")
    if pid != str(os.getpid()):
        raise OSError(
            f"the socket was passed to process {pid}, and this is {os.getpid()}\n"
            "if the unit runs a shell, it must end with `exec onecopy run …`"
        )
    if count != "1":
        raise OSError(f"{count} sockets were passed, but only one is supported\nleave one `Listen…=` line in the unit")
    for name in ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    try:
        os.set_inheritable(_FIRST, False)
    except OSError as error:
        raise OSError(f"the socket that was passed is not open: {error}\nstart the unit's `.socket`") from None
    return _FIRST


def notify(*lines: str) -> None:
    """Send the lines (such as ``READY=1``) to the service manager, if there is one. Errors are
    ignored."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    import socket

    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
        line.sendto("\n".join(lines).encode(), address)


def notify_reloading() -> None:
    """Send ``RELOADING=1`` with a timestamp, which ``Type=notify-reload`` requires."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
