# The types of the extension module, for type checkers; `stubtest` compares them with the module. The
# docstrings are in the module.
import os
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from datetime import datetime
from io import BufferedReader, TextIOBase
from socket import socket
from types import TracebackType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

from typing_extensions import Buffer

from onecopy import errors

__all__ = [
    "ArrowStream",
    "BSONChunks",
    "BSONDocuments",
    "Blob",
    "Column",
    "Connection",
    "CopyOut",
    "Cursor",
    "Decoder",
    "Encoder",
    "FileAnswer",
    "FileWrapper",
    "Files",
    "Fragment",
    "Input",
    "JSONChunks",
    "JSONLines",
    "Json",
    "Ledger",
    "LongValue",
    "Metrics",
    "Notification",
    "ObjectId",
    "PendingCall",
    "PendingColumns",
    "Range",
    "RawDocument",
    "RowStream",
    "Server",
    "StartResponse",
    "__version__",
    "ascii_decode",
    "ascii_encode",
    "begin_connect",
    "bson_decode",
    "bson_decode_all",
    "bson_decode_iter",
    "bson_dump_many",
    "bson_encode",
    "bson_encode_into",
    "bson_encode_many",
    "bson_from_json",
    "bson_from_json_lines",
    "bson_to_json",
    "bson_to_json_lines",
    "bson_validate",
    "bson_validate_all",
    "connect",
    "copy_file",
    "decode",
    "decode_column",
    "detect",
    "dump",
    "dumps",
    "dumps_into",
    "dumps_lines",
    "dumps_rows",
    "dumps_str",
    "encode",
    "encode_into",
    "encoded_length",
    "error_classes",
    "execute_part",
    "is_valid",
    "iter_chunks",
    "latin_1_decode",
    "latin_1_encode",
    "ledger",
    "load",
    "loads",
    "loads_lines",
    "plan_query",
    "raise_open_files",
    "recv_file",
    "run_command",
    "send_file",
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
]  # fmt: skip

__version__: Final[str]

@type_check_only
class _Writes(Protocol):
    """A binary file, a socket's file, or any object whose `write` accepts bytes."""

    def write(self, data: bytes, /) -> object: ...

@type_check_only
class _GivesArrow(Protocol):
    """An object that exports an Arrow stream: a table or data frame of another library, or a
    cursor."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class _Reads(Protocol):
    """A binary file, or any object whose `read` returns bytes."""

    def read(self, size: int, /) -> Buffer: ...

@type_check_only
class _Holds(Protocol):
    """A file, binary or text, that is read as a whole by one call of `read`."""

    def read(self) -> Buffer | str: ...

@type_check_only
class _Reader(Protocol):
    """A file, binary or text, that is read in parts of up to `size` bytes or characters."""

    def read(self, size: int, /) -> Buffer | str: ...

@type_check_only
class _Sends(Protocol):
    """A socket that bytes are sent to, with its time limit."""

    def sendall(self, data: bytes, /) -> object: ...
    def gettimeout(self) -> float | None: ...

@type_check_only
class _Receives(Protocol):
    """A socket that bytes are sent to and received from."""

    def sendall(self, data: bytes, /) -> object: ...
    def recv(self, size: int, /) -> bytes: ...

@type_check_only
class _Counts(TypedDict):
    taken: int
    converted: int
    copied: int
    conversions: int

_Parameters: TypeAlias = Iterable[Any] | Mapping[str, Any]
# A column of parameters: an array, an array and its null mask, or an iterable of values.
_Column: TypeAlias = Column | Buffer | tuple[Buffer, Buffer] | Iterable[Any]
_RowFactory: TypeAlias = Callable[[Cursor], Callable[[tuple[Any, ...]], Any]]

def connect(
    target: str,
    *,
    read_only: bool = False,
    autocommit: bool = False,
    connect_timeout: float = 15.0,
    errors: Literal["strict", "replace"] = "strict",
    row_factory: _RowFactory | None = None,
    zero_dates: Literal["null", "error", "text"] = "null",
    query_timeout: float | None = None,
    stream: bool | None = None,
    local_infile: bool = False,
    datetime_range: Literal["error", "text"] = "error",
    json: Literal["text", "objects"] = "text",
    prepare: Literal["auto", "always", "never"] = "auto",
) -> Connection: ...
def begin_connect(
    target: str,
    *,
    read_only: bool = False,
    autocommit: bool = False,
    connect_timeout: float = 15.0,
    errors: Literal["strict", "replace"] = "strict",
    row_factory: _RowFactory | None = None,
    zero_dates: Literal["null", "error", "text"] = "null",
    query_timeout: float | None = None,
    stream: bool | None = None,
    local_infile: bool = False,
    datetime_range: Literal["error", "text"] = "error",
    json: Literal["text", "objects"] = "text",
    prepare: Literal["auto", "always", "never"] = "auto",
) -> PendingCall | None: ...
def send_file(sock: _Receives, file: _Reads, offset: int = 0, count: int | None = None) -> int: ...
def recv_file(sock: _Receives, file: _Writes, count: int) -> int: ...
def copy_file(src: str | os.PathLike[str], dst: str | os.PathLike[str], /) -> int: ...
def ledger() -> Ledger: ...
def error_classes() -> list[tuple[str, str | None]]: ...
def run_command(args: Sequence[str], again: Sequence[str] | None = None, /) -> int: ...
def decode(buffer: Buffer, encoding: str = "utf-8", errors: str = "strict") -> str: ...
def encode(string: str, encoding: str = "utf-8", errors: str = "strict") -> bytes: ...
def utf_8_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_8_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_16_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_16_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_16_le_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_16_le_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_16_be_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_16_be_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_32_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_32_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_32_le_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_32_le_encode(string: str, errors: str = "strict") -> bytes: ...
def utf_32_be_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def utf_32_be_encode(string: str, errors: str = "strict") -> bytes: ...
def latin_1_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def latin_1_encode(string: str, errors: str = "strict") -> bytes: ...
def ascii_decode(buffer: Buffer, errors: str = "strict") -> str: ...
def ascii_encode(string: str, errors: str = "strict") -> bytes: ...
def encode_into(
    string: str, buffer: Buffer, offset: int = 0, encoding: str = "utf-8", errors: str = "strict"
) -> int: ...
def encoded_length(string: str, encoding: str = "utf-8") -> int: ...
def decode_column(
    data: Buffer, lengths: Buffer, stride: int, encoding: str = "utf-16-le", errors: str = "strict"
) -> list[str | None]: ...
def is_valid(buffer: Buffer, encoding: str = "utf-8") -> bool: ...
def utf8_view(string: str) -> memoryview: ...
def transcode(
    src: Buffer | _Reads, dst: Buffer | _Writes, from_encoding: str, to_encoding: str, errors: str = "strict"
) -> int: ...
def loads(
    data: Buffer | str,
    /,
    *,
    big_ints: Literal["exact", "float", "error"] = "exact",
    duplicate_keys: Literal["last", "error"] = "last",
    errors: Literal["strict", "replace", "surrogatepass"] = "strict",
    nan: Literal["error", "literal"] = "error",
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    max_depth: int = 1000,
) -> Any: ...
def load(
    file: _Holds,
    /,
    *,
    big_ints: Literal["exact", "float", "error"] = "exact",
    duplicate_keys: Literal["last", "error"] = "last",
    errors: Literal["strict", "replace", "surrogatepass"] = "strict",
    nan: Literal["error", "literal"] = "error",
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    max_depth: int = 1000,
) -> Any: ...
def loads_lines(
    data: Buffer | str,
    /,
    *,
    big_ints: Literal["exact", "float", "error"] = "exact",
    duplicate_keys: Literal["last", "error"] = "last",
    errors: Literal["strict", "replace", "surrogatepass"] = "strict",
    nan: Literal["error", "literal"] = "error",
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    max_depth: int = 1000,
) -> JSONLines: ...
def bson_validate(
    buffer: Buffer,
    /,
    *,
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> None: ...
def bson_validate_all(
    buffer: Buffer,
    /,
    *,
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> int: ...
def bson_to_json(
    buffer: Buffer,
    /,
    *,
    canonical: bool = False,
    errors: Literal["strict", "replace"] = "strict",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> bytes: ...
def bson_to_json_lines(
    buffer: Buffer,
    /,
    *,
    canonical: bool = False,
    errors: Literal["strict", "replace"] = "strict",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> bytes: ...
def bson_from_json(
    data: Buffer | str,
    /,
    *,
    errors: Literal["strict", "replace"] = "strict",
    big_ints: Literal["float", "error"] = "float",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> bytes: ...
def bson_from_json_lines(
    data: Buffer | str,
    /,
    *,
    errors: Literal["strict", "replace"] = "strict",
    big_ints: Literal["float", "error"] = "float",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> bytes: ...

_D = TypeVar("_D")
_Uuids: TypeAlias = Literal["standard", "python_legacy", "java_legacy", "csharp_legacy", "unspecified"]

@type_check_only
class _ReadsBson(Protocol):
    def read(self, n: int, /) -> Buffer: ...

@overload
def bson_decode(
    buffer: Buffer,
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> dict[str, Any]: ...
@overload
def bson_decode(
    buffer: Buffer,
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    document_class: Callable[[], _D] | type[_D],
) -> _D: ...
@overload
def bson_decode_all(
    buffer: Buffer,
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> list[dict[str, Any]]: ...
@overload
def bson_decode_all(
    buffer: Buffer,
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    document_class: Callable[[], _D] | type[_D],
) -> list[_D]: ...
@overload
def bson_decode_iter(
    source: Buffer | _ReadsBson | Iterable[Buffer],
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
) -> BSONDocuments[dict[str, Any]]: ...
@overload
def bson_decode_iter(
    source: Buffer | _ReadsBson | Iterable[Buffer],
    /,
    *,
    compat: Literal["pymongo"] | None = None,
    tz_aware: bool = True,
    datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
    uuid_representation: _Uuids = "standard",
    errors: str = "strict",
    decimals: Literal["decimal128", "decimal"] = "decimal128",
    array_keys: Literal["any", "strict"] = "any",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    document_class: Callable[[], _D] | type[_D],
) -> BSONDocuments[_D]: ...

@final
class BSONDocuments(Generic[_D]):
    def __iter__(self) -> BSONDocuments[_D]: ...
    def __next__(self) -> _D: ...

@final
class RawDocument(Mapping[str, Any]):
    def __new__(
        cls,
        buffer: Buffer,
        /,
        *,
        compat: Literal["pymongo"] | None = None,
        tz_aware: bool = True,
        datetime_range: Literal["error", "clamp", "raw", "auto"] = "error",
        uuid_representation: _Uuids = "standard",
        errors: str = "strict",
        decimals: Literal["decimal128", "decimal"] = "decimal128",
        array_keys: Literal["any", "strict"] = "any",
        max_depth: int = 1000,
        max_bytes: int = 2147483647,
    ) -> RawDocument: ...
    @property
    def raw(self) -> memoryview: ...
    def __getitem__(self, key: str, /) -> Any: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def lookup(self, path: str, default: Any = None) -> Any: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[Any]: ...
    def items(self) -> ItemsView[str, Any]: ...
    def decode(self) -> dict[str, Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs_ex__(self) -> tuple[tuple[bytes], dict[str, Any]]: ...

_Passed: TypeAlias = Literal["dataclass", "datetime", "decimal", "enum", "float", "numpy", "subclass", "tuple", "uuid"]

def dumps(
    obj: Any,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
) -> bytes: ...
def dumps_str(
    obj: Any,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
) -> str: ...
def dumps_into(
    obj: Any,
    buffer: Buffer,
    offset: int = 0,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
) -> int: ...
def dump(
    obj: Any,
    file: _Writes | socket,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
) -> int: ...
def dumps_lines(
    iterable: Iterable[Any],
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
) -> bytes: ...
def dumps_rows(
    names: Iterable[str],
    rows: Iterable[Any],
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
    columns: bool = False,
) -> bytes: ...
def iter_chunks(
    iterable: Iterable[Any],
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    sort_keys: bool = False,
    indent: int | str | None = None,
    ensure_ascii: bool = False,
    nan: Literal["error", "null", "text", "literal"] = "error",
    errors: Literal["strict", "replace", "backslashreplace"] = "strict",
    big_ints: Literal["exact", "error", "error53", "text53"] = "exact",
    non_str_keys: bool = False,
    max_depth: int = 1000,
    naive_utc: bool = False,
    utc_z: bool = False,
    omit_microseconds: bool = False,
    passthrough: Iterable[_Passed] = (),
    private_fields: bool = True,
    compat: Literal["orjson", "ujson"] | None = None,
    lines: bool = False,
    chunk_bytes: int = 65536,
) -> JSONChunks: ...

_BSONPassed: TypeAlias = Literal["buffer", "dataclass", "date", "decimal", "enum", "numpy"]

def bson_encode(
    doc: Any,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    check_keys: bool = False,
    uuid_representation: _Uuids = "standard",
    errors: Literal["strict", "replace"] = "strict",
    datetime_range: Literal["error", "clamp", "raw"] = "error",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    passthrough: Iterable[_BSONPassed] = (),
) -> bytes: ...
def bson_encode_into(
    doc: Any,
    buffer: Buffer,
    offset: int = 0,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    check_keys: bool = False,
    uuid_representation: _Uuids = "standard",
    errors: Literal["strict", "replace"] = "strict",
    datetime_range: Literal["error", "clamp", "raw"] = "error",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    passthrough: Iterable[_BSONPassed] = (),
) -> int: ...
def bson_encode_many(
    iterable: Iterable[Any],
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    check_keys: bool = False,
    uuid_representation: _Uuids = "standard",
    errors: Literal["strict", "replace"] = "strict",
    datetime_range: Literal["error", "clamp", "raw"] = "error",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    passthrough: Iterable[_BSONPassed] = (),
    chunk_bytes: int = 65536,
) -> BSONChunks: ...
def bson_dump_many(
    iterable: Iterable[Any],
    file: _Writes | _Sends,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    check_keys: bool = False,
    uuid_representation: _Uuids = "standard",
    errors: Literal["strict", "replace"] = "strict",
    datetime_range: Literal["error", "clamp", "raw"] = "error",
    max_depth: int = 1000,
    max_bytes: int = 2147483647,
    passthrough: Iterable[_BSONPassed] = (),
) -> int: ...
def detect(buffer: Buffer) -> tuple[str | None, str, Literal["certain", "likely", "guess"]]: ...

@final
class Fragment:
    def __new__(cls, data: Buffer | str, /) -> Fragment: ...
    @property
    def contents(self) -> Buffer | str: ...

@final
class JSONChunks:
    def __iter__(self) -> JSONChunks: ...
    def __next__(self) -> bytes: ...

@final
class JSONLines:
    def __iter__(self) -> JSONLines: ...
    def __next__(self) -> Any: ...

@final
class BSONChunks:
    def __iter__(self) -> BSONChunks: ...
    def __next__(self) -> bytes: ...

@final
class ObjectId:
    _type_marker: Final = 7
    def __new__(cls, oid: bytes | str | ObjectId | None = None) -> ObjectId: ...
    @classmethod
    def from_datetime(cls, generation_time: datetime) -> ObjectId: ...
    @classmethod
    def is_valid(cls, oid: object) -> bool: ...
    @property
    def binary(self) -> bytes: ...
    @property
    def generation_time(self) -> datetime: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: ObjectId, /) -> bool: ...
    def __le__(self, other: ObjectId, /) -> bool: ...
    def __gt__(self, other: ObjectId, /) -> bool: ...
    def __ge__(self, other: ObjectId, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[ObjectId], tuple[bytes]]: ...

@final
class Decoder:
    def __new__(cls, encoding: str, errors: str | None = None) -> Decoder: ...
    @property
    def encoding(self) -> str: ...
    @property
    def errors(self) -> str: ...
    def decode(self, buffer: Buffer, final: bool = False) -> str: ...
    def reset(self) -> None: ...
    def getstate(self) -> tuple[bytes, int]: ...
    def setstate(self, state: tuple[bytes, int], /) -> None: ...

@final
class Encoder:
    def __new__(cls, encoding: str, errors: str | None = None) -> Encoder: ...
    @property
    def encoding(self) -> str: ...
    @property
    def errors(self) -> str: ...
    def encode(self, string: str, final: bool = False) -> bytes: ...
    def reset(self) -> None: ...
    def getstate(self) -> int: ...
    def setstate(self, state: int, /) -> None: ...

def plan_query(
    connection: Connection,
    sql: str,
    parameters: _Parameters | None,
    parts: int,
    key: list[str],
    sample_rows: int | None,
    hold: bool,
) -> str: ...
def execute_part(connection: Connection, part: str) -> Cursor: ...

@final
class Connection:
    Warning: type[errors.Warning]
    Error: type[errors.Error]
    InterfaceError: type[errors.InterfaceError]
    DatabaseError: type[errors.DatabaseError]
    DataError: type[errors.DataError]
    OperationalError: type[errors.OperationalError]
    IntegrityError: type[errors.IntegrityError]
    InternalError: type[errors.InternalError]
    ProgrammingError: type[errors.ProgrammingError]
    NotSupportedError: type[errors.NotSupportedError]

    @property
    def adapters(self) -> dict[type, Callable[[Any], Any]]: ...
    @property
    def converters(self) -> dict[str, Callable[[Any], Any]]: ...
    @property
    def row_factory(self) -> _RowFactory | None: ...
    @row_factory.setter
    def row_factory(self, row_factory: _RowFactory | None, /) -> None: ...
    @property
    def autocommit(self) -> bool: ...
    @autocommit.setter
    def autocommit(self, on: bool, /) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def usable(self) -> bool: ...
    @property
    def query_timeout(self) -> float | None: ...
    @query_timeout.setter
    def query_timeout(self, seconds: float | None, /) -> None: ...
    @property
    def dbms_name(self) -> str: ...
    @property
    def dbms_version(self) -> str: ...
    @property
    def driver_name(self) -> str: ...
    @property
    def driver_version(self) -> str: ...
    @property
    def dialect(self) -> Literal["sqlite", "postgresql", "mysql", "mssql", "generic"]: ...
    def cursor(self) -> Cursor: ...
    def execute(
        self, sql: str, parameters: _Parameters | None = None, /, *, defer: Sequence[str | int] = ...
    ) -> Cursor: ...
    @overload
    def executemany(self, sql: str, rows: Iterable[_Parameters], /, *, columns: None = None) -> Cursor: ...
    @overload
    def executemany(self, sql: str, rows: None = None, /, *, columns: Iterable[_Column]) -> Cursor: ...
    def notifications(self, timeout: float = 0.0) -> list[Notification]: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def _suspends(self) -> bool: ...
    def _begin_commit(self) -> PendingCall: ...
    def _begin_rollback(self) -> PendingCall: ...
    def _begin_set_autocommit(self, on: bool) -> PendingCall: ...
    def _begin_notifications(self, timeout: float) -> PendingCall: ...
    def _renewed(self) -> Connection: ...
    def close(self) -> None: ...
    @property
    def total_changes(self) -> int: ...
    def interrupt(self) -> None: ...
    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, *, deterministic: bool = False
    ) -> None: ...
    def create_aggregate(self, name: str, narg: int, aggregate_class: Callable[[], Any] | None) -> None: ...
    def create_collation(self, name: str, callable: Callable[[str, str], float] | None, /) -> None: ...
    def backup(
        self,
        target: Connection,
        *,
        pages: int = ...,
        progress: Callable[[int, int, int], object] | None = None,
        name: str = "main",
        sleep: float = 0.25,
    ) -> None: ...
    def blob_open(
        self, table: str, column: str, row: int, /, *, read_only: bool = False, name: str = "main"
    ) -> Blob: ...
    def __enter__(self) -> Connection: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Json:
    def __new__(cls, value: Any, /) -> Json: ...
    @property
    def value(self) -> Any: ...

@final
class Range:
    def __new__(
        cls,
        lower: Any = None,
        upper: Any = None,
        bounds: Literal["[)", "[]", "(]", "()", ""] = "[)",
        empty: bool = False,
    ) -> Range: ...
    @property
    def lower(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def bounds(self) -> Literal["[)", "[]", "(]", "()", ""]: ...
    @property
    def isempty(self) -> bool: ...
    def __contains__(self, value: Any, /) -> bool: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Notification:
    @property
    def channel(self) -> str: ...
    @property
    def payload(self) -> str: ...
    @property
    def process_id(self) -> int: ...

@final
class CopyOut:
    @property
    def rowcount(self) -> int: ...
    def read(self) -> bytes: ...
    def close(self) -> None: ...
    def __iter__(self) -> CopyOut: ...
    def __next__(self) -> bytes: ...
    def _begin_next(self) -> PendingCall: ...
    def _begin_close(self) -> PendingCall | None: ...
    def __enter__(self) -> CopyOut: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Blob:
    def read(self, size: int = ..., /) -> bytes: ...
    def write(self, data: Buffer, /) -> None: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Blob: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Cursor:
    @property
    def connection(self) -> Connection: ...
    @property
    def description(
        self,
    ) -> tuple[tuple[str, str, None, int | None, int | None, int | None, bool | None], ...] | None: ...
    @property
    def type_names(self) -> list[str]: ...
    @property
    def rowcount(self) -> int: ...
    @property
    def lastrowid(self) -> int | None: ...
    @property
    def rownumber(self) -> int | None: ...
    @property
    def messages(self) -> list[tuple[type[errors.Warning], errors.Warning]]: ...
    @property
    def row_factory(self) -> _RowFactory | None: ...
    @row_factory.setter
    def row_factory(self, row_factory: _RowFactory | None, /) -> None: ...
    @property
    def converters(self) -> dict[int | str, Callable[[Any], Any]]: ...
    @property
    def arraysize(self) -> int: ...
    @arraysize.setter
    def arraysize(self, size: int, /) -> None: ...
    @property
    def query_timeout(self) -> float | None: ...
    @query_timeout.setter
    def query_timeout(self, seconds: float | None, /) -> None: ...
    def execute(
        self, sql: str, parameters: _Parameters | None = None, /, *, defer: Sequence[str | int] = ...
    ) -> Cursor: ...
    def _begin_execute(self, sql: str, parameters: _Parameters | None = None, /) -> PendingCall: ...
    def _begin_executemany(
        self, sql: str, rows: Iterable[_Parameters] | None, columns: Iterable[_Column] | None
    ) -> PendingCall: ...
    def _begin_insert_arrow(self, into: str, stream: _GivesArrow) -> PendingCall: ...
    def _begin_columns(self, size: int | None) -> PendingColumns: ...
    def _begin_nextset(self) -> PendingCall | None: ...
    def _begin_receive(self) -> PendingCall | None: ...
    def _cancel(self) -> None: ...
    @property
    def _is_ready(self) -> bool: ...
    def _fetch_ready(self, size: int) -> list[Any]: ...
    def _skip_ready(self, n: int) -> int: ...
    def _expect_outputs(self, result: list[Any], places: list[int], names: list[str]) -> None: ...
    def _settle(self) -> None: ...
    def _settle_ready(self) -> bool | None: ...
    @overload
    def executemany(self, sql: str, rows: Iterable[_Parameters], /, *, columns: None = None) -> Cursor: ...
    @overload
    def executemany(self, sql: str, rows: None = None, /, *, columns: Iterable[_Column]) -> Cursor: ...
    def insert_arrow(self, into: str, stream: _GivesArrow, /) -> Cursor: ...
    # For each column of the result a `Column`, or a list of the values that `fetchall` returns.
    def fetch_columns(self, size: int | None = None) -> list[Any]: ...
    def arrow(self, *, batch_bytes: int | None = None, types: dict[str, Any] | None = None) -> ArrowStream: ...
    # A PyCapsule, which has no type of its own for type checkers.
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    # The row is a tuple, or the object that the row factory makes of the tuple.
    def fetchone(self) -> Any: ...
    def fetchmany(self, size: int | None = None) -> list[Any]: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Cursor: ...
    def __next__(self) -> Any: ...
    def callproc(self, name: str, parameters: Iterable[Any] | None = None, /) -> list[Any]: ...
    def copy_in(self, sql: str, chunks: Buffer | str | Iterable[Buffer | str] | _Reader) -> Cursor: ...
    def copy_out(self, sql: str) -> CopyOut: ...
    def _begin_copy_in(self, sql: str, chunks: Buffer | str | Iterable[Buffer | str] | _Reader) -> PendingCall: ...
    def _begin_copy_out(self, sql: str) -> PendingCall: ...
    def nextset(self) -> bool | None: ...
    def scroll(self, value: int, mode: Literal["relative", "absolute"] = "relative", /) -> None: ...
    def defer(self, *columns: str | int) -> Cursor: ...
    def open_text(self, column: str | int) -> TextIOBase | None: ...
    def open_binary(self, column: str | int) -> BufferedReader | None: ...
    def json(self) -> RowStream: ...
    def ndjson(self) -> RowStream: ...
    def csv(self) -> RowStream: ...
    def bson(
        self,
        *,
        decimals: Literal["decimal128", "text"] = "decimal128",
        datetimes: Literal["datetime", "text"] = "datetime",
        max_bytes: int = 2147483647,
    ) -> RowStream: ...
    def setinputsizes(self, sizes: Iterable[Any], /) -> None: ...
    def setoutputsize(self, size: int, column: int | None = None, /) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Cursor: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class LongValue:
    def read_text(self) -> str: ...
    def read_into(self, buffer: Buffer) -> int: ...

@final
class ArrowStream:
    @property
    def n_rows(self) -> int: ...
    @property
    def error(self) -> errors.Error | None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> ArrowStream: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Column:
    @property
    def name(self) -> str: ...
    @property
    def type_code(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def unit(self) -> Literal["s", "ms", "us", "ns"] | None: ...
    @property
    def is_utc(self) -> bool: ...
    @property
    def n_nulls(self) -> int: ...
    @property
    def null_mask(self) -> Column | None: ...
    def __len__(self) -> int: ...
    # Older versions of Python support the buffer protocol, but have no method for it.
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class PendingCall:
    @property
    def limit(self) -> float | None: ...
    def resume(self) -> tuple[int, bool, float | None] | None: ...
    def result(self) -> Any: ...
    def cancel(self) -> None: ...
    def run_out(self) -> None: ...
    def abandon(self) -> None: ...

@final
class PendingColumns:
    def add_ready(self) -> list[Any] | None: ...

@final
class RowStream:
    @property
    def n_rows(self) -> int: ...
    @property
    def format(self) -> Literal["json", "ndjson", "csv", "bson"]: ...
    def begin(self) -> int | None: ...
    def _begin_fill(self) -> PendingCall | None: ...
    def _begin_read(self) -> PendingCall | None: ...
    def on_close(self, function: Callable[[], object], /) -> None: ...
    def __iter__(self) -> RowStream: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def read(self, size: int | None = None, /) -> bytes: ...
    def write_to(self, target: str | os.PathLike[str] | _Writes | _Sends, /) -> int: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> RowStream: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Metrics:
    def __new__(cls, servers: int) -> Metrics: ...
    @staticmethod
    def of_descriptor(number: int) -> Metrics: ...
    @property
    def descriptor(self) -> int: ...
    def text(self) -> str: ...

def raise_open_files(n_connections: int) -> None: ...

@final
class Server:
    def __new__(
        cls,
        app: Callable[..., Any],
        bind: tuple[str, int] | str | int,
        options: dict[str, float],
        tls: tuple[str, str] | None = None,
        mode: int | None = None,
        access_log: tuple[str | os.PathLike[str] | int, str, bool] | None = None,
        metrics: Metrics | None = None,
    ) -> Server: ...
    @property
    def address(self) -> tuple[str, int] | str: ...
    @property
    def max_connections(self) -> int: ...
    def watch(self, timeout: float, line: int, dump: int) -> None: ...
    def beat(self) -> None: ...
    def metrics(self) -> str: ...
    def reopen_access_log(self) -> None: ...
    def run(self, signals: bool) -> tuple[int, int]: ...
    def fileno(self) -> int: ...
    def stop(self, now: bool, idle_grace: float) -> None: ...

@final
class StartResponse:
    def __call__(
        self,
        status: str | bytes,
        headers: Sequence[tuple[str, str]] | None = None,
        exc_info: Any = None,
        /,
    ) -> StartResponse: ...

@final
class Input:
    def read(self, size: int | None = None, /) -> bytes: ...
    def readline(self, size: int | None = None, /) -> bytes: ...
    def readlines(self, hint: int | None = None, /) -> list[bytes]: ...
    def __iter__(self) -> Input: ...
    def __next__(self) -> bytes: ...

@final
class Files:
    def __new__(
        cls, folder: str, listing: bool, hidden: bool, precompressed: bool, cache_control: str | None
    ) -> Files: ...
    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> FileAnswer: ...
    def pieces(
        self, environ: dict[str, Any]
    ) -> tuple[str, list[tuple[str, str]], list[bytes | tuple[int, int, int]]]: ...

@final
class FileAnswer:
    def __iter__(self) -> FileAnswer: ...
    def __next__(self) -> bytes: ...
    def close(self) -> None: ...

@final
class FileWrapper:
    def __new__(cls, filelike: Any, block_size: int = 65536, /) -> FileWrapper: ...
    def __iter__(self) -> FileWrapper: ...
    def __next__(self) -> bytes: ...
    def close(self) -> None: ...

@final
class Ledger:
    @property
    def taken(self) -> int: ...
    @property
    def converted(self) -> int: ...
    @property
    def copied(self) -> int: ...
    @property
    def conversions(self) -> int: ...
    @property
    def stages(self) -> dict[str, _Counts]: ...
    def __enter__(self) -> Ledger: ...
    def __exit__(self, *_exception: object) -> None: ...
