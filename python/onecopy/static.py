"""`files`: a folder as a WSGI application (PEP 3333), for any server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from onecopy import _core

__all__ = ["Files", "files"]

_BLOCK_BYTES = 64 << 10


class Files:
    """The files of a folder as a WSGI application: what `files` makes."""

    def __init__(self, folder: str | os.PathLike[str], core: _core.Files) -> None:
        self.folder = os.fspath(folder)
        """The folder, as it was given."""
        self._core = core

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if type(start_response) is _core.StartResponse:
            # Our own server: it takes the answer as it is.
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
    """The files below a folder as a WSGI application: ranges, conditional requests, media types, index pages.

    Under onecopy's server no byte of a file comes to Python, nor does the request; the kernel sends it (sendfile(2)). Under other
    servers ``wsgi.file_wrapper`` does, or the bytes are read and handed on. Nothing outside the folder is found, neither by ``..`` nor
    by a symbolic link. GET and HEAD alone are answered (RFC 9110); ``wsgi.errors`` is told nothing.

    Args:
        folder: is opened now, and held: to move it away changes nothing.
        listing: folders without an ``index.html`` are answered with their names.
        hidden: names that begin with a dot are found too.
        precompressed: ``name.br``, ``name.zst`` or ``name.gz`` is sent in place of ``name`` to clients that take it, unless it is older.
        cache_control: the value of ``Cache-Control`` of all files.

    Raises:
        OSError: the folder cannot be opened, or is none.
        ValueError: ``cache_control`` is no value of a header.

    >>> app = onecopy.files("public", listing=True)
    >>> with onecopy.Server(app, "127.0.0.1:0") as server:
    ...     urllib.request.urlopen(server.url + "hello.txt").read()
    b'hello'
    """
    return Files(folder, _core.Files(os.fspath(folder), listing, hidden, precompressed, cache_control))


class _Pieces:
    """A body for other servers: bytes, and parts of a file by its descriptors, which are closed with it."""

    def __init__(self, pieces: list[bytes | tuple[int, int, int]]) -> None:
        self._pieces = pieces

    def wrapped(self, wrapper: Callable[..., Iterable[bytes]] | None) -> Iterable[bytes]:
        """The body as the server sends it best: a file by its wrapper."""
        match self._pieces:
            case [(int(number), int(offset), int(n_bytes))] if wrapper is not None:
                if wrapper is _core.FileWrapper:
                    # Under a start_response of somebody between: our wrapper goes by the position and the length.
                    self._pieces = []
                    os.lseek(number, offset, os.SEEK_SET)
                    return wrapper(open(number, "rb", buffering=0))
                # Some send from the beginning, some up to the end, whatever the position and the length say: these get a
                # descriptor where both are the file's.
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
        """Closes the descriptors."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            if not isinstance(piece, bytes):
                os.close(piece[0])


class _Part:
    """A part of a file, to be read from its first byte to its last."""

    def __init__(self, number: int, offset: int, n_bytes: int, *, owns: bool = True) -> None:
        self._number, self._offset, self._left = number, offset, n_bytes
        self._owns = owns

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, ``b""`` behind the last.

        Raises:
            OSError: the file has become shorter.
        """
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        if wanted == 0:
            return b""
        block = os.pread(self._number, wanted, self._offset)
        if not block:
            raise OSError("the file has become shorter while it was sent")
        self._offset += len(block)
        self._left -= len(block)
        return block

    def close(self) -> None:
        """Closes the file, once."""
        if self._owns:
            self._owns = False
            os.close(self._number)

    def __del__(self) -> None:
        self.close()


class _Whole(_Part):
    """A whole file, from its first byte on."""

    def fileno(self) -> int:
        """Its descriptor, which stands at the beginning."""
        return self._number
