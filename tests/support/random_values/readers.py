"""The methods by which onecopy reads a table of random values, and comparisons of its cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import repeat
from typing import Any, NamedTuple

import bson

import onecopy

from .column import Column, Row
from .draw import shortest_float32
from .texts import is_text_of, json_cells

_EPOCH = datetime(1970, 1, 1)
_CSV_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\n]*))([,\n])')
#: Rows that are read one by one, or whose values are sent as parameters.
MOST_SINGLE_ROWS = 1000


class Wrong(NamedTuple):
    """A cell whose value differs from the independent client's."""

    reader: str
    sql: str
    row: int
    got: Any
    expected: Any


class Tally:
    """The numbers of compared and of wrong cells, keyed by reader and SQL type."""

    def __init__(self) -> None:
        self.compared: Counter[tuple[str, str]] = Counter()
        self.wrong: Counter[tuple[str, str]] = Counter()
        self.examples: list[Wrong] = []

    def compare(
        self,
        reader: str,
        columns: Sequence[Column],
        pairs: Iterable[tuple[Sequence[Any], Row]],
        matches: Callable[[Any, Any], bool],
    ) -> None:
        """Compares pairs of a row and the expected row; each row begins with its number `i`.

        ``matches`` compares a value with the expected one.
        """
        n_rows = 0
        for got, expected in pairs:
            n_rows += 1
            # The representation differs where a type, a sign or a scale does.
            if repr(got) == repr(expected):
                continue
            for k, (value, wanted) in enumerate(zip(got, expected, strict=True)):
                if not matches(value, wanted):
                    name = columns[k - 1].sql if k else "i"
                    self.wrong[reader, name] += 1
                    if len(self.examples) < 200:
                        self.examples.append(Wrong(reader, name, expected[0], value, wanted))
        for column in columns:
            self.compared[reader, column.sql] += n_rows


def same(value: Any, expected: Any) -> bool:
    """Returns true if ``value`` has the type and the repr of ``expected``."""
    return type(value) is type(expected) and repr(value) == repr(expected)


def same_in_bson(value: Any, expected: Any) -> bool:
    """Returns true if ``value``, decoded by pymongo, is BSON's form of the value ``expected``."""
    match expected:
        case list():
            is_array = isinstance(value, list) and len(value) == len(expected)
            return is_array and all(map(same_in_bson, value, expected))
        case timedelta() | tuple() | onecopy.Range():
            return isinstance(value, str)  # Its text is compared in JSON.
        case Decimal():
            return isinstance(value, bson.Decimal128) and same(value.to_decimal(), expected)
        case int() if isinstance(value, bson.Decimal128):
            return int(value.to_decimal()) == expected
        case int() if isinstance(value, bson.Int64):
            return value == expected
        case time():
            return isinstance(value, str) and time.fromisoformat(value) == expected
        case datetime():
            milliseconds = (expected.replace(tzinfo=None) - _EPOCH) // timedelta(milliseconds=1)
            return bool(value == _EPOCH + timedelta(milliseconds=milliseconds))
        case date():
            return bool(value == datetime.combine(expected, time()))
    return same(value, expected)


def same_in_arrow(value: Any, expected: Any) -> bool:
    """Returns true if ``value``, converted by pyarrow, is Arrow's form of the value
    ``expected``."""
    if isinstance(expected, list):
        is_list = isinstance(value, list) and len(value) == len(expected)
        return is_list and all(map(same_in_arrow, value, expected))
    if isinstance(value, str) and isinstance(expected, (timedelta, tuple, onecopy.Range)):
        return True  # Its text is compared in CSV.
    if isinstance(value, str):
        return is_text_of(value, expected)
    if isinstance(value, datetime) and isinstance(expected, datetime):
        return value == expected and value.utcoffset() == expected.utcoffset()
    return same(value, expected)


def csv_rows(data: str) -> Iterator[list[str | None]]:
    """The records of a CSV text (RFC 4180 with LF as the end of a line).

    An empty field without quotes is `None`.
    """
    record: list[str | None] = []
    end = 0
    for field in _CSV_FIELD.finditer(data):
        if field.start() != end:
            break
        end = field.end()
        quoted, bare, separator = field.groups()
        record.append((bare or None) if quoted is None else quoted.replace('""', '"'))
        if separator == "\n":
            yield record
            record = []
    if end != len(data):
        raise ValueError(f"no CSV from character {end} on: {data[end : end + 60]!r}")


def _fetchall(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    return cur.fetchall()


def _iterated(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    return cur


def _fetchmany(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    yield from cur.fetchmany(2)
    while some := cur.fetchmany(997):
        yield from some


def _fetchone(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    while (row := cur.fetchone()) is not None:
        yield row


def _json(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    return json_cells(cur.json().read())


def _ndjson(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    for line in cur.ndjson().read().splitlines():
        yield from json_cells(b"[" + line + b"]")


def _csv(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    records = csv_rows(cur.csv().read().decode())
    next(records)
    return records


def _bson(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    standard = bson.binary.UuidRepresentation.STANDARD
    options: Any = bson.codec_options.CodecOptions(uuid_representation=standard)
    for document in bson.decode_iter(cur.bson().read(), options):
        yield tuple(document.values())


def _arrow(cur: onecopy.Cursor, columns: Sequence[Column]) -> Iterable[Sequence[Any]]:
    import pyarrow as pa

    types = {f"c{k}": c.arrow or "string" for k, c in enumerate(columns) if c.arrow or c.text}
    names = [description[0] for description in cur.description or ()]
    chosen = {name: kind for name, kind in types.items() if name in names and kind != "list"}
    stream = cur.arrow(types=chosen, batch_bytes=100_000)  # Several batches.
    table = pa.RecordBatchReader.from_stream(stream).read_all()
    table.validate(full=True)
    values = []
    for column in table.columns:
        found = column.to_pylist()
        is_single = column.type == pa.float32()
        values.append([shortest_float32(value) for value in found] if is_single else found)
    return zip(*values, strict=True)


def _moments(column: Any) -> list[datetime]:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.unit]
    zone = timezone.utc if column.is_utc else None
    return [(_EPOCH + timedelta(microseconds=n * 10**6 // per_second)).replace(tzinfo=zone) for n in memoryview(column)]


def column_values(column: Any) -> list[Any]:
    """The Python values of one column that `fetch_columns` returned."""
    if isinstance(column, list):
        return column
    values: Iterable[Any] = memoryview(column)
    if column.unit is not None:
        values = _moments(column)
    elif column.format == "f":
        values = map(shortest_float32, values)
    nulls = repeat(0) if column.null_mask is None else memoryview(column.null_mask)
    return [None if null else value for value, null in zip(values, nulls, strict=False)]


def _columns(cur: onecopy.Cursor, _: Sequence[Column]) -> Iterable[Sequence[Any]]:
    return zip(*map(column_values, cur.fetch_columns()), strict=True)


class Reader(NamedTuple):
    """A method of reading a cursor's rows, and the comparison of its values."""

    read: Callable[[onecopy.Cursor, Sequence[Column]], Iterable[Sequence[Any]]]
    matches: Callable[[Any, Any], bool] = same
    #: The statement has a parameter, so the server prepares it.
    is_prepared: bool = False
    #: The form that the independent client reads: the value itself, its text, its JSON, or that of
    #: Arrow.
    of: str = "value"
    most_rows: int | None = None


READERS = {
    "fetchall": Reader(_fetchall),
    "iteration": Reader(_iterated),
    "prepared": Reader(_fetchmany, is_prepared=True),
    "fetchone": Reader(_fetchone, most_rows=MOST_SINGLE_ROWS),
    "json": Reader(_json, is_text_of, of="json"),
    "ndjson": Reader(_ndjson, is_text_of, of="json"),
    "csv": Reader(_csv, is_text_of, of="text"),
    "bson": Reader(_bson, same_in_bson),
    "arrow": Reader(_arrow, same_in_arrow, of="arrow"),
    "columns": Reader(_columns),
}


def compare_read(
    tally: Tally,
    con: onecopy.Connection,
    columns: Sequence[Column],
    expected: Callable[[str], Sequence[Row]],
    name: str,
    table: str = "random_theirs",
) -> None:
    """Reads a table with the reader ``name``, and compares its rows with the expected ones.

    ``expected`` returns the rows of the independent client in a given form, for example ``json``.
    """
    reader = READERS[name]
    kept = [k for k, column in enumerate(columns) if name not in column.refused_by]
    rows = expected(reader.of)
    rows = rows[: reader.most_rows]
    selected = ", ".join(["i", *(f"c{k}" for k in kept)])
    n_rows = len(rows)
    limit = "?" if reader.is_prepared else str(n_rows)
    sql = f"select {selected} from {table} where i < {limit} order by i"
    if len(kept) < len(columns):
        rows = [(row[0], *(row[k + 1] for k in kept)) for row in rows]
    # Executed again, a prepared statement is reused.
    for _ in range(2 if reader.is_prepared and n_rows <= MOST_SINGLE_ROWS else 1):
        cur = con.execute(sql, [n_rows] if reader.is_prepared else [])
        got = reader.read(cur, columns)
        chosen = [columns[k] for k in kept]
        tally.compare(name, chosen, zip(got, rows, strict=True), reader.matches)


def compare_as_parameters(
    tally: Tally, con: onecopy.Connection, columns: Sequence[Column], rows: Sequence[Row]
) -> None:
    """Sends the values of each row as parameters, and lets the database compare them with the
    stored row."""
    kept = [k for k, column in enumerate(columns) if column.equal]
    tests = ", ".join(columns[k].equal.format(f"c{k}", "?") for k in kept)
    sql = f"select i, {tests} from random_theirs where i = ?"
    chosen = [columns[k] for k in kept]
    for row in rows[:MOST_SINGLE_ROWS]:
        values = [row[k + 1] for k in kept]
        (found,) = con.execute(sql, [*values, row[0]])
        # A value that is not equal is reported together with itself.
        pairs = zip(found[1:], values, strict=True)
        got = [v if is_equal or (v is None and is_equal is None) else (v, is_equal) for is_equal, v in pairs]
        tally.compare("parameter", chosen, [((row[0], *got), (row[0], *values))], same)
