"""Parts of a video file that are never in this process's memory: the kernel sends them from the
file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

import onecopy


@dataclass(frozen=True)
class Chunk:
    """A byte range of a file; no bytes are read when it is created, whatever its size."""

    file: BinaryIO
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    def send(self, sock: socket.socket) -> int:
        """Sends the bytes by sendfile(2); returns the number of bytes. Copies: none in user
        space."""
        return onecopy.send_file(sock, self.file, self.offset, self.size)

    def body(self, environ: dict[str, Any]) -> Iterable[bytes]:
        """The bytes as the body of a WSGI response, which the server sends by sendfile(2).

        The response's Content-Length must be `size`.
        """
        file = os.fdopen(os.dup(self.file.fileno()), "rb", buffering=0)
        file.seek(self.offset)
        wrapper: Callable[[Any], Iterable[bytes]] = environ["wsgi.file_wrapper"]
        return wrapper(file)


def request_chunk(video: BinaryIO, offset: int, size: int) -> Chunk:
    """The `size` bytes of a video from `offset` on; fewer at its end.

    Raises:
        ValueError: the offset is outside of the file, or the size is negative.
    """
    length = os.fstat(video.fileno()).st_size
    if not 0 <= offset <= length or size < 0:
        raise ValueError(f"{size} bytes from byte {offset} on: the video has {length}")
    return Chunk(video, offset, min(size, length - offset))
