"""Rows as BSON: onecopy's reference reader and pymongo's `bson` read the same documents, each chunk
has whole documents, and errors are raised."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import pathlib
from decimal import Decimal
from typing import Any

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
import onecopy.aio
from tests.conftest import Database
from tests.support.bson import Element, documents, fits_decimal128

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

LONG = "select 7 as id, replace(hex(zeroblob({n})), '0', 'é漢😀') as t, 'z' as z"


def one(con: onecopy.Connection, sql: str, **options: Any) -> dict[str, Element]:
    (row,) = documents(con.execute(sql).bson(**options).read())
    return row


def test_storage_classes_of_sqlite(con: onecopy.Connection) -> None:
    sql = (
        "select null as n, 1 as i, 2147483648 as l, -9223372036854775807 - 1 as m, 0.1 as d,"
        " 'Zoë' || char(0) as t, x'00ff' as b"
    )
    data = con.execute(sql).bson().read()
    assert documents(data) == [
        {
            "n": Element("null", None),
            "i": Element("int32", 1),
            "l": Element("int64", 2**31),
            "m": Element("int64", -(2**63)),
            "d": Element("double", 0.1),
            "t": Element("string", "Zoë\0"),
            "b": Element("binary", (0, b"\x00\xff")),
        }
    ]
    assert bson.decode(data) == {
        "n": None, "i": 1, "l": 2**31, "m": -(2**63), "d": 0.1, "t": "Zoë\0", "b": b"\x00\xff",
    }  # fmt: skip


def test_infinities_are_kept(con: onecopy.Connection) -> None:
    row = one(con, "select 9e999 as a, -9e999 as b")
    assert [row[key].value for key in "ab"] == [math.inf, -math.inf]


def test_pymongo_writes_the_same_bytes(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as id, 'Zürich 東京 😀' as name, 2.5 as x, x'0102' as raw, null as n, 1 << 40 as large")
    names = [column[0] for column in cur.description or ()]
    (values,) = cur.fetchall()
    expected = bson.encode(dict(zip(names, values, strict=True)))
    assert (
        cur.execute("select 1 as id, 'Zürich 東京 😀' as name, 2.5 as x, x'0102' as raw, null as n, 1 << 40 as large")
        .bson()
        .read()
        == expected
    )


def test_the_table_reads_as_by_fetchall(database: Database) -> None:
    con = onecopy.connect(database.odbc)
    rows = con.execute("select * from t1000 order by id").fetchall()
    data = con.execute("select * from t1000 order by id").bson().read()
    assert len(rows) == 1000
    read = documents(data)
    for document, row in zip(read, rows, strict=True):
        for element, value in zip(document.values(), row, strict=True):
            assert element == plain(value), (element, value)
    # pymongo agrees with our reference reader about every byte.
    decoded = bson.decode_all(data)
    assert [list(document) for document in decoded] == [list(document) for document in read]
    for document, other in zip(read, decoded, strict=True):
        for element, value in zip(document.values(), other.values(), strict=True):
            if element.type == "decimal128":
                value = value.to_decimal()
            assert element == plain(value)
    con.close()


def plain(value: Any) -> Element:
    """The BSON element for a Python value of a row."""
    match value:
        case None:
            return Element("null", None)
        case int():
            return Element("int32" if -(2**31) <= value < 2**31 else "int64", value)
        case float():
            return Element("double", value)
        case Decimal():
            return Element("decimal128", value)
        case str():
            return Element("string", value)
        case datetime.datetime():
            return Element("datetime", (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1))
        case _:
            raise AssertionError(value)


@pytest.mark.parametrize("n_rows", [0, 1, 1000])
def test_each_chunk_holds_whole_documents(numbers: onecopy.Connection, n_rows: int) -> None:
    chunks = list(numbers.execute("select i, t, 'x' || i as u from n where i < ?", [n_rows]).bson())
    read = [[document["i"].value for document in documents(chunk)] for chunk in chunks]
    assert [i for part in read for i in part] == list(range(n_rows))
    assert all(read)


def test_a_long_value_is_in_one_document(con: onecopy.Connection) -> None:
    sql = LONG.format(n=400_000)
    (chunk,) = list(con.execute(sql).bson())
    assert documents(chunk) == [
        {"id": Element("int32", 7), "t": Element("string", "é漢😀" * 800_000), "z": Element("string", "z")}
    ]
    assert con.execute(sql).bson().read() == chunk


def test_long_values_of_each_driver_are_whole(any_odbc: Database) -> None:
    con = onecopy.connect(any_odbc.odbc)
    text = "Zürich 東京 😀"
    sql = {
        "sqlite_odbc": f"select replace(hex(zeroblob(60000)), '0', '{text}') as x, 7 as n",
        "tds_freetds": f"select replicate(N'{text}', 120000) as x, 7 as n",
    }
    sql["tds_msodbc"] = sql["tds_rust"] = sql["tds_freetds"]
    usual = f"select repeat('{text}', 120000) as x, 7 as n"
    row = one(con, sql.get(any_odbc.profile, usual))
    assert row == {"x": Element("string", text * 120_000), "n": Element("int32", 7)}
    con.close()


def test_a_row_longer_than_max_bytes_is_refused_after_the_rows_before_it(con: onecopy.Connection) -> None:
    sql = "select 1 as id, 'short' as t union all select 2, replace(hex(zeroblob(500000)), '0', 'x')"
    length = len(con.execute(sql).bson().read())
    first = 4 + 8 + 3 + 10 + 1
    rows = con.execute(sql).bson(max_bytes=length - first)
    assert len(b"".join(rows)) == length
    rows = con.execute(sql).bson(max_bytes=length - first - 1)
    assert [document["id"].value for document in documents(next(rows))] == [1]
    with pytest.raises(onecopy.DataError, match=f"longer than {length - first - 1} bytes") as caught:
        next(rows)
    assert (caught.value.column, caught.value.row) == ((1, "t"), 1)


def test_unknown_options_are_refused(con: onecopy.Connection) -> None:
    cur = con.execute("select 1 as a")
    for options in (
        {"decimals": "float"},
        {"datetimes": "date"},
        {"max_bytes": 4},
        {"max_bytes": 2**31},
        {"max_bytes": -1},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            cur.bson(**options)
    # None of these consumed the rows.
    assert len(cur.bson(max_bytes=2**31 - 1).read()) == 12
    with pytest.raises(TypeError):
        con.execute("select 1 as a").bson("text")  # type: ignore[call-arg]


def test_names_are_distinct(con: onecopy.Connection) -> None:
    with pytest.raises(onecopy.ProgrammingError, match="BSON document"):
        con.execute("select 1 as a, 2 as a").bson()


def test_malformed_text_follows_the_connection(con: onecopy.Connection) -> None:
    sql = "select 'good' as t union all select cast(x'62ff61' as text)"
    rows = con.execute(sql).bson()
    assert documents(next(rows)) == [{"t": Element("string", "good")}]
    with pytest.raises(onecopy.DataError, match="malformed") as caught:
        rows.read()
    assert caught.value.row == 1
    lenient = onecopy.connect("sqlite::memory:", errors="replace")
    assert documents(lenient.execute(sql).bson().read())[1] == {"t": Element("string", "b\ufffda")}
    lenient.close()


def test_asyncio_supports_it_with_its_options() -> None:
    async def main() -> None:
        async with await onecopy.aio.connect("sqlite::memory:") as con:
            rows = (await con.execute("select 1 as a union all select 2")).bson(max_bytes=12)
            got = [documents(chunk) async for chunk in rows]
            assert [row["a"].value for part in got for row in part] == [1, 2]
            with pytest.raises(onecopy.DataError):
                await (await con.execute("select 1 << 40 as a")).bson(max_bytes=12).read()

    asyncio.run(main())


def test_it_is_written_to_a_file_that_bson_reads(numbers: onecopy.Connection, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.bson"
    assert numbers.execute("select i, t from n order by i").bson().write_to(path) == path.stat().st_size
    with path.open("rb") as file:
        assert [row["t"] for row in bson.decode_file_iter(file)] == [f"näme {i}" for i in range(1000)]


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=None)
    | st.from_regex(r"-?[0-9]{1,40}\.[0-9]{0,30}", fullmatch=True).map(Decimal)
)
def test_decimals_are_pymongos_or_refused(postgres: Database, value: Decimal) -> None:
    digits = format(value, "f")
    if len(digits) > 2000:
        return
    con = connected(postgres)
    cur = con.execute(f"select cast('{digits}' as numeric) as x")
    if not fits_decimal128(Decimal(digits)):
        with pytest.raises(onecopy.DataError, match="34 digits"):
            cur.bson().read()
        cur = con.execute(f"select cast('{digits}' as numeric) as x")
        assert Decimal(str(documents(cur.bson(decimals="text").read())[0]["x"].value)) == value
        return
    data = cur.bson().read()
    ours = documents(data)[0]["x"].value
    theirs = bson.decode(data)["x"].to_decimal()
    assert repr(ours) == repr(theirs)
    assert ours == value


_CONNECTIONS: dict[str, onecopy.Connection] = {}


def connected(database: Database) -> onecopy.Connection:
    """A connection to the database, which all examples of a property share."""
    if database.odbc not in _CONNECTIONS:
        _CONNECTIONS[database.odbc] = onecopy.connect(database.odbc)
    return _CONNECTIONS[database.odbc]


def test_nan_and_infinities_are_kept(postgres: Database) -> None:
    cur = connected(postgres).execute(
        "select cast('nan' as float8) as a, cast('nan' as numeric) as b, cast('-inf' as real) as c"
    )
    (row,) = documents(cur.bson().read())
    assert [element.type for element in row.values()] == ["double", "decimal128", "double"]
    assert [repr(element.value) for element in row.values()] == ["nan", "Decimal('NaN')", "-inf"]


def test_datetimes_are_pymongos(postgres: Database) -> None:
    con = connected(postgres)
    for moment in (
        "1969-12-31 23:59:59.999999",
        "2026-11-20 01:02:03.000999",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.9",
    ):
        cur = con.execute(f"select timestamp '{moment}' as x")
        data = cur.bson().read()
        assert data == bson.encode({"x": datetime.datetime.fromisoformat(moment)})
    data = con.execute("select timestamptz '2026-11-20 01:02:03+05:30' as x").bson().read()
    assert bson.decode(data)["x"] == datetime.datetime(2026, 11, 19, 19, 32, 3)
    sql = "select date '2024-02-29' as d, timestamp '2026-11-20 01:02:03.000004' as t"
    as_text = one(con, sql, datetimes="text")
    (as_json,) = json.loads(con.execute(sql).json().read())
    assert {key: element.value for key, element in as_text.items()} == as_json
