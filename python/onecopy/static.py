"""`files`: a WSGI application (PEP 3333) that serves a folder and runs in any WSGI server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from onecopy import _core

__all__ = ["Files", "files"]

_BLOCK_BYTES = 64 << 10


class Files:
    """A WSGI application that serves the files of a folder; created by `files`."""

    def __init__(self, folder: str | os.PathLike[str], core: _core.Files) -> None:
        self.folder = os.fspath(folder)
        """The folder as it was passed to `files`."""
        self._core = core

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if type(start_response) is _core.StartResponse:
            # onecopy's server receives this response, and sends it without executing Python code.
            return self._core(environ, start_response)
        status, fields, pieces = self._core.pieces(environ)
        body = _Pieces(pieces)
        try:
            start_response(status, fields)
            return body.wrapped(environ.get("wsgi.file_wrapper"))
        except BaseException:
            body.close()
            raise

    def __repr__(self) -> str:
        return f"onecopy.files({self.folder!r})"


def files(
    folder: str | os.PathLike[str],
    *,
    listing: bool = False,
    hidden: bool = False,
    precompressed: bool = False,
    cache_control: str | None = None,
) -> Files:
    """Create a WSGI application that serves a folder, with ranges, conditional requests, media
    types and index pages.

    Under onecopy's server neither the request nor any byte of a file passes through Python; the
    kernel sends the file (sendfile(2)). For other servers, a whole file is passed to
    ``wsgi.file_wrapper`` if the server has one; otherwise the bytes are read and yielded. Files
    outside of the folder cannot be reached, neither through ``..`` nor through a symbolic link.
    Only the methods GET and HEAD (RFC 9110) are supported. Nothing is written to ``wsgi.errors``.

    Args:
        folder: the folder, which is opened once and kept open, so that moving it has no effect.
        listing: answer a request for a folder without an ``index.html`` with a list of its files.
        hidden: serve files whose names begin with a dot.
        precompressed: send ``name.br``, ``name.zst`` or ``name.gz`` instead of ``name`` to clients
            that accept this compression, unless the compressed file is older.
        cache_control: the value of ``Cache-Control`` for all files.

    Raises:
        OSError: the folder cannot be opened, or is not a folder.
        ValueError: ``cache_control`` is not a valid header value.

    >>> app = onecopy.files("public", listing=True)
    >>> with onecopy.Server(app, "127.0.0.1:0") as server:
    ...     urllib.request.urlopen(server.url + "hello.txt").read()
    b'hello'
    """
    return Files(folder, _core.Files(os.fspath(folder), listing, hidden, precompressed, cache_control))


class _Pieces:
    """A response body that any WSGI server can send. It consists of bytes and parts of files.
    Closing the body closes the descriptors of these files."""

    def __init__(self, pieces: list[bytes | tuple[int, int, int]]) -> None:
        self._pieces = pieces

    def wrapped(self, wrapper: Callable[..., Iterable[bytes]] | None) -> Iterable[bytes]:
        """Return the object that the server sends fastest. If the body is one part of a file and
        ``wrapper`` (the server's ``wsgi.file_wrapper``) is not None, this is a file wrapper;
        otherwise it is the body itself."""
        match self._pieces:
            case [(int(number), int(offset), int(n_bytes))] if wrapper is not None:
                if wrapper is _core.FileWrapper:
                    # A middleware has replaced `start_response`. onecopy's wrapper sends from the
                    # descriptor's position.
                    self._pieces = []
                    os.lseek(number, offset, os.SEEK_SET)
                    return wrapper(open(number, "rb", buffering=0))
                # The wrappers of some servers send the file from its start, or up to its end,
                # whatever its position and the length are. A wrapper gets a descriptor only if the
                # response is the whole file.
                is_whole = offset == 0 and n_bytes == os.fstat(number).st_size
                self._pieces = []
                return wrapper((_Whole if is_whole else _Part)(number, offset, n_bytes), _BLOCK_BYTES)
        return self

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                part = _Part(*piece, owns=False)
                while block := part.read(_BLOCK_BYTES):
                    yield block

    def close(self) -> None:
        """Close the descriptors of the files."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            if not isinstance(piece, bytes):
                os.close(piece[0])


class _Part:
    """A file object that reads a part of a file sequentially."""

    def __init__(self, number: int, offset: int, n_bytes: int, *, owns: bool = True) -> None:
        self._number, self._offset, self._left = number, offset, n_bytes
        self._owns = owns

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, or ``b""`` at the end.

        Raises:
            OSError: the file was truncated.
        """
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        if wanted == 0:
            return b""
        block = os.pread(self._number, wanted, self._offset)
        if not block:
            raise OSError("the file was truncated while it was sent")
        self._offset += len(block)
        self._left -= len(block)
        return block

    def close(self) -> None:
        """Close the file; closing twice is not an error."""
        if self._owns:
            self._owns = False
            os.close(self._number)

    def __del__(self) -> None:
        self.close()


class _Whole(_Part):
    """A file object for a whole file, which a server may send directly from the file descriptor."""

    def fileno(self) -> int:
        """Return the file descriptor. Its current position is the start of the file."""
        return self._number
