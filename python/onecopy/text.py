"""Text between buffers and `str`, converted once.

| function | what it does |
|---|---|
| `decode`, `utf_8_decode`, … | any buffer to `str` |
| `encode`, `utf_8_encode`, … | `str` to `bytes` |
| `encode_into`, `encoded_length` | `str` into a buffer that is there |
| `decode_column` | a column of fixed stride to a list |
| `is_valid`, `find_invalid` | whether text is well-formed, and where it is not |
| `utf8_view`, `slices` | views, without a copy |
| `Decoder`, `Encoder` | a stream in parts cut anywhere |
| `find_codec` | all encodings for `codecs.register`, and so for `open`, as `onecopy-` and their names |
| `codec_info` | one of them, under a name of one's own |
| `transcode` | one encoding to another, between buffers and files |
| `detect` | which encoding bytes are in, and why |

Well-formed text is converted by vector kernels, straight into the new object; what is malformed is handed to the codecs of
CPython, so that exceptions, positions and replacements are the same. The encodings of the WHATWG Encoding Standard are read
by its tables (`docs/reference/encodings.md` in the repository).

>>> import onecopy
>>> onecopy.text.decode(b"Z\\x00\\xfc\\x00", "utf-16-le")
'Zü'
"""

from __future__ import annotations

import codecs as _codecs
import functools as _functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from onecopy import _core
from onecopy._core import (
    Decoder,
    Encoder,
    ascii_decode,
    ascii_encode,
    decode,
    decode_column,
    encode,
    encode_into,
    encoded_length,
    is_valid,
    latin_1_decode,
    latin_1_encode,
    transcode,
    utf8_view,
    utf_8_decode,
    utf_8_encode,
    utf_16_be_decode,
    utf_16_be_encode,
    utf_16_decode,
    utf_16_encode,
    utf_16_le_decode,
    utf_16_le_encode,
    utf_32_be_decode,
    utf_32_be_encode,
    utf_32_decode,
    utf_32_encode,
    utf_32_le_decode,
    utf_32_le_encode,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "Decoder",
    "Detection",
    "Encoder",
    "Invalid",
    "ascii_decode",
    "ascii_encode",
    "codec_info",
    "decode",
    "decode_column",
    "detect",
    "encode",
    "encode_into",
    "encoded_length",
    "find_codec",
    "find_invalid",
    "is_valid",
    "latin_1_decode",
    "latin_1_encode",
    "slices",
    "transcode",
    "utf8_view",
    "utf_8_decode",
    "utf_8_encode",
    "utf_16_be_decode",
    "utf_16_be_encode",
    "utf_16_decode",
    "utf_16_encode",
    "utf_16_le_decode",
    "utf_16_le_encode",
    "utf_32_be_decode",
    "utf_32_be_encode",
    "utf_32_decode",
    "utf_32_encode",
    "utf_32_le_decode",
    "utf_32_le_encode",
]


class Invalid(NamedTuple):
    """Where a text is malformed, as `UnicodeDecodeError` tells it."""

    #: First byte of what is malformed, from 0.
    start: int
    #: First byte behind it.
    end: int
    #: Why, in the words of CPython's codec.
    reason: str


class Detection(NamedTuple):
    """Which encoding bytes are in."""

    #: The name of the encoding, as `decode` takes it; None of what is no text.
    encoding: str | None
    #: Why.
    reason: str
    #: `certain`: a byte order mark, or bytes that could not be so by chance; `likely`: a pattern that other text hardly has;
    #: `guess`: by what letters stand side by side.
    certainty: Literal["certain", "likely", "guess"]


def codec_info(encoding: str, name: str | None = None) -> _codecs.CodecInfo:
    """An encoding as `codecs.register` expects it of a search function.

    `find_codec` is that function; this one is for a name of one's own. CPython up to 3.14 calls a search function with
    a name in which each `-` has become `_`, 3.15 with the name as it was written, in lower case.

    Files are read and written with `tell` and `seek` as with CPython's codecs. There are no
    `streamreader` and `streamwriter`, which `codecs.open` requires.

    Args:
        encoding: as of `decode`.
        name: the name that it gets; None: `onecopy-` and that of the encoding.

    Raises:
        LookupError: the encoding is unknown.

    Copies: as `decode` and `encode`. Source: the documentation of `codecs`.

    >>> codec_info("shift_jis", "sjis").name
    'sjis'
    """
    known = Decoder(encoding).encoding

    def encode_whole(string: str, errors: str = "strict") -> tuple[bytes, int]:
        return encode(string, encoding, errors), len(string)

    def decode_whole(data: ReadableBuffer, errors: str = "strict") -> tuple[str, int]:
        return decode(data, encoding, errors), memoryview(data).nbytes

    return _codecs.CodecInfo(
        encode_whole,
        decode_whole,
        # They have the methods of those classes, and are none of them.
        incrementalencoder=_functools.partial(Encoder, encoding),  # type: ignore[arg-type]
        incrementaldecoder=_functools.partial(Decoder, encoding),  # type: ignore[arg-type]
        name=name or f"onecopy-{known}",
    )


def find_codec(name: str) -> _codecs.CodecInfo | None:
    """The encoding of a name that begins with `onecopy-`: a search function for `codecs.register`.

    Once it is registered, `open`, `str.encode` and `bytes.decode` accept `onecopy-` and each name that `decode`
    accepts. Letter case, and the choice of `-`, `_` or a space, make no difference, on no version of CPython.

    Args:
        name: the name that is looked up.

    Returns: `codec_info` of the encoding; None for every other name.

    Copies: as `decode` and `encode`. Source: the documentation of `codecs`.

    >>> import codecs
    >>> codecs.register(find_codec)
    >>> "あ".encode("onecopy-shift_jis")
    b'\\x82\\xa0'
    """
    prefix, encoding = name[:8].lower(), name[8:]
    if prefix not in ("onecopy-", "onecopy_", "onecopy "):
        return None
    try:
        return codec_info(encoding)
    except LookupError:
        return None


def detect(buffer: ReadableBuffer) -> Detection:
    """Which encoding a buffer is in, and why: by its byte order mark, by where bytes of zero stand (UTF-16, UTF-32), by being
    valid ASCII or UTF-8, else by chardetng's guess.

    An encoding with a mark is named by the name that drops it: `utf-8-sig`, `utf-16`, `utf-32`.

    Copies: of the first 64 KiB, one.

    >>> detect("Zürich".encode())
    Detection(encoding='utf-8', reason='valid UTF-8 with characters beyond ASCII', certainty='certain')
    >>> detect(b"a\\x00b\\x00").encoding
    'utf-16-le'
    """
    return Detection(*_core.detect(buffer))


def find_invalid(buffer: ReadableBuffer, encoding: str = "utf-8") -> Invalid | None:
    """The first malformed sequence of a buffer; None where the text is well-formed.

    >>> find_invalid(b"ab\\xff")
    Invalid(start=2, end=3, reason='invalid start byte')
    """
    if is_valid(buffer, encoding):
        return None
    try:
        decode(buffer, encoding)
    except UnicodeDecodeError as error:
        return Invalid(error.start, error.end, error.reason)
    return None  # Another thread has changed the buffer since.


def slices(buffer: ReadableBuffer, size: int) -> Iterator[memoryview]:
    """Views of `size` elements each of a buffer, the last one shorter: no bytes are copied.

    The views keep format and shape of the buffer, along whose first dimension they are cut, and are writable where it is.

    >>> [bytes(part) for part in slices(b"abcde", 2)]
    [b'ab', b'cd', b'e']
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    view = memoryview(buffer)
    return (view[start : start + size] for start in range(0, len(view), size))
