"""Conversions between buffers and `str`, with at most one copy.

| function | what it does |
|---|---|
| `decode`, `utf_8_decode`, … | decode any buffer to a `str` |
| `encode`, `utf_8_encode`, … | encode a `str` as `bytes` |
| `encode_into`, `encoded_length` | encode a `str` into a given buffer |
| `decode_column` | decode a column of fixed stride to a list |
| `is_valid`, `find_invalid` | check that text is well-formed, or find the first error |
| `utf8_view`, `slices` | views without a copy |
| `Decoder`, `Encoder` | incremental conversion of a stream in arbitrary parts |
| `find_codec` | a search function for `codecs.register`: all encodings as `onecopy-` and their names |
| `codec_info` | one encoding, under a custom name |
| `transcode` | convert from one encoding to another, between buffers and files |
| `detect` | detect the encoding of bytes, with a reason |

Vector kernels convert well-formed text directly into the new object. Malformed sequences are
handled by CPython's codecs, so exceptions, positions and replacements are the same as with
`bytes.decode`. The encodings of the WHATWG Encoding Standard use its tables
(`docs/reference/encodings.md` in the repository).

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
    """A malformed sequence, with the attributes of `UnicodeDecodeError`."""

    #: The index, from 0, of the first malformed byte.
    start: int
    #: The index, from 0, of the first byte after the sequence.
    end: int
    #: The reason, in the same words as CPython's codec.
    reason: str


class Detection(NamedTuple):
    """The encoding that `detect` has found for bytes, with the reason and the certainty."""

    #: The name of the encoding, as `decode` accepts it; None if the bytes are not text.
    encoding: str | None
    #: The evidence for the encoding, as a sentence.
    reason: str
    #: `certain`: a byte order mark, or bytes that could not match by chance; `likely`: a pattern
    #: that other text rarely has; `guess`: by the frequency of adjacent letters.
    certainty: Literal["certain", "likely", "guess"]


def codec_info(encoding: str, name: str | None = None) -> _codecs.CodecInfo:
    """Return the `CodecInfo` of an encoding, which a search function for `codecs.register` has to
    return.

    `find_codec` is such a search function; this function is for custom names. CPython up to 3.14
    calls search functions with each `-` of the name replaced by `_`; 3.15 passes the name as
    written, in lower case.

    Files that are opened with such a codec support `tell` and `seek`, as with CPython's codecs. The
    `CodecInfo` has no `streamreader` and `streamwriter`, so `codecs.open` cannot use it.

    Args:
        encoding: as in `decode`.
        name: the name of the codec; None: `onecopy-` and the name of the encoding.

    Raises:
        LookupError: the encoding is unknown.

    Copies: as in `decode` and `encode`. Source: the documentation of `codecs`.

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
        # The two classes have the methods of those that `CodecInfo` expects, but do not inherit
        # from them.
        incrementalencoder=_functools.partial(Encoder, encoding),  # type: ignore[arg-type]
        incrementaldecoder=_functools.partial(Decoder, encoding),  # type: ignore[arg-type]
        name=name or f"onecopy-{known}",
    )


def find_codec(name: str) -> _codecs.CodecInfo | None:
    """A search function for `codecs.register` that accepts names beginning with `onecopy-`.

    After its registration, `open`, `str.encode` and `bytes.decode` accept `onecopy-` followed by
    each name that `decode` accepts. In the name, upper and lower case are equivalent, and so are
    `-`, `_` and a space, on every version of CPython.

    Args:
        name: the name to look up.

    Returns: `codec_info` of the encoding; None for all other names.

    Copies: as in `decode` and `encode`. Source: the documentation of `codecs`.

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
    """Detect the encoding of a buffer by its byte order mark, by the positions of zero bytes
    (UTF-16, UTF-32), or by being valid ASCII or UTF-8. Otherwise the result is a guess of the
    library chardetng.

    If there is a byte order mark, the result is an encoding whose decoder removes the mark:
    `utf-8-sig`, `utf-16` or `utf-32`.

    Copies: one, of the first 64 KiB.

    >>> detect("Zürich".encode())
    Detection(encoding='utf-8', reason='valid UTF-8 with characters beyond ASCII', certainty='certain')
    >>> detect(b"a\\x00b\\x00").encoding
    'utf-16-le'
    """
    return Detection(*_core.detect(buffer))


def find_invalid(buffer: ReadableBuffer, encoding: str = "utf-8") -> Invalid | None:
    """Find the first malformed sequence of a buffer; return None if the text is well-formed.

    >>> find_invalid(b"ab\\xff")
    Invalid(start=2, end=3, reason='invalid start byte')
    """
    if is_valid(buffer, encoding):
        return None
    try:
        decode(buffer, encoding)
    except UnicodeDecodeError as error:
        return Invalid(error.start, error.end, error.reason)
    return None  # Another thread has changed the buffer meanwhile.


def slices(buffer: ReadableBuffer, size: int) -> Iterator[memoryview]:
    """Divide a buffer into views of ``size`` elements each, without copying bytes. The last view
    may be shorter.

    The buffer is divided along its first dimension. The views have its format and its other
    dimensions, and are writable if the buffer is writable.

    >>> [bytes(part) for part in slices(b"abcde", 2)]
    [b'ab', b'cd', b'e']
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    view = memoryview(buffer)
    return (view[start : start + size] for start in range(0, len(view), size))
