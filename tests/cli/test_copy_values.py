"""`onecopy copy`: each value arrives as it was, read by an independent client, or the copy fails and
the table is as before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.copies import Postgres, Sqlite, typed

#: Texts that a quoting error would damage.
TEXTS = [
    "",
    " ",
    "it's",
    'a "quote"',
    "two\r\nlines\t",
    "\\N",
    "\\.",
    "back\\slash",
    "ΐ 🦀 \u0001",
    "null",
    "a" * 70_000,
]
INTEGERS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63)]
FLOATS = [0.0, 1.5, -0.1, 0.1 + 0.2, 1e300, 5e-324, 1.7976931348623157e308, 123456789.125]


# SQLite to SQLite


def test_each_storage_class_of_sqlite_is_kept(lite: Sqlite) -> None:
    lite.make(
        "i integer, x real, s text, b blob",
        [
            *((i, None, None, None) for i in INTEGERS),
            *((None, x, None, None) for x in [*FLOATS, float("inf"), float("-inf"), -0.0]),
            *((None, None, s, None) for s in [*TEXTS, "a\0b"]),
            *((None, None, None, b) for b in (b"", b"\0", bytes(range(256)), b"x" * 100_000)),
            (None, None, None, None),
        ],
    )
    done = lite.copy()
    assert done.code == 0, done.err
    assert typed(lite.rows()) == typed(lite.source.execute("select * from t").fetchall())


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("", [1, 2, None]),
        ("", ["a", "", None]),
        ("", [b"a", None]),
        ("", [1.5, 2.0]),
        ("numeric", [1.5, 3, 2**53, None]),
        ("datetime", ["2024-02-29 12:00:00.123456", None]),
        ("boolean", [0, 1, None]),
        ("integer", [None, None]),
    ],
)
def test_columns_without_a_type_of_arrow_keep_their_values(lite: Sqlite, declared: str, values: list[Any]) -> None:
    lite.make(f"v {declared}", [(value,) for value in values])
    done = lite.copy()
    assert done.code == 0, done.err
    assert typed(lite.rows()) == typed(lite.source.execute("select * from t").fetchall())


def test_an_empty_result_copies_no_row(lite: Sqlite) -> None:
    lite.make("a integer, b", [])
    done = lite.copy()
    assert (done.code, lite.rows()) == (0, [])
    assert done.err.startswith("0 rows, ")


def test_columns_are_matched_by_name_as_the_database_does(lite: Sqlite) -> None:
    lite.make("A integer, b text", [(1, "x")], target="B text, a integer")
    assert lite.copy().code == 0
    assert lite.rows("a, b") == [(1, "x")]


@pytest.mark.parametrize("n_rows", [1, 5_000])
def test_a_type_that_changes_in_a_later_row_is_an_error(lite: Sqlite, n_rows: int) -> None:
    rows: list[tuple[Any, ...]] = [(i,) for i in range(n_rows)]
    lite.make("v", [*rows, ("x",)])
    done = lite.copy()
    assert done.code == 1
    assert f"text does not go into a column of `int64` (column 0 `v`, row {n_rows})" in done.err
    assert lite.rows() == []
    # The remedy that the message names.
    assert lite.copy("--types", "v=string").code == 0
    assert lite.rows() == [*((str(i),) for i in range(n_rows)), ("x",)]


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("integer", "'007'", "text would change in a column of the type `INTEGER`"),
        ("integer", "' 7'", "text would change"),
        ("integer", "'1e500'", "text would change"),
        ("real", "9007199254740993", "an integer would change in a column of the type `REAL`"),
        ("real", "'0.12345678901234567890'", "text would change"),
    ],
)
def test_a_value_that_sqlite_would_change_is_an_error(lite: Sqlite, column: str, value: str, why: str) -> None:
    lite.make(f"v {column}", [])
    done = lite.copy(sql=f"select 1 as v union all select {value}" if "'" not in value else f"select {value} as v")
    assert done.code == 1
    assert why.lower() in done.err.lower() and "`v`, row" in done.err
    assert lite.rows() == []


def test_text_of_a_number_becomes_the_number_that_the_column_declares(lite: Sqlite) -> None:
    lite.make("i integer, x real, n numeric, s text", [])
    done = lite.copy(sql="select '12' as i, '1.50' as x, 'abc' as n, 1.1 as s")
    assert done.code == 0, done.err
    assert typed(lite.rows()) == typed([(12, 1.5, "abc", "1.1")])


# PostgreSQL to PostgreSQL

#: Types of PostgreSQL with values as SQL literals.
TYPES = {
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "0"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "real": ["0.1", "3.4028235e38", "1e-45", "NaN", "Infinity", "-Infinity"],
    "double precision": [*map(repr, FLOATS), "NaN", "Infinity", "-Infinity"],
    "numeric": ["0", "1.50", "-0.000", "9" * 60 + "." + "1" * 40, "1e-30", "NaN", "12345678901234567890"],
    "numeric(12, 2)": ["1.50", "-9999999999.99", "NaN"],
    "numeric(70, 30)": ["9" * 40 + "." + "1" * 30],
    "boolean": ["true", "false"],
    "text": [t for t in TEXTS if t],
    "varchar(5)": ["", "abcde", "ab   "],
    "char(4)": ["ab", "abcd"],
    "bytea": ["", r"\x00ff5c", r"\x" + "ab" * 9000],
    "date": ["0001-01-01", "9999-12-31", "0044-03-15 BC", "2024-02-29"],
    "time": ["00:00", "23:59:59.999999", "12:00:00.5"],
    "time(0)": ["12:34:56"],
    "timetz": ["12:00+05:30", "23:59:59.999999-11"],
    "timestamp": ["2024-02-29 23:59:59.999999", "0044-03-15 00:00:00 BC", "9999-12-31 00:00"],
    "timestamptz": ["2024-03-31 02:30:00.000001+02", "1900-01-01 00:00+00"],
    "interval": ["1 year 2 mons -3 days 04:05:06.000007", "00:00:00"],
    "uuid": ["00112233-4455-6677-8899-aabbccddeeff"],
    "json": ['{"a" : [1, null,  "x\\u00e9"], "a": 2}', "null", '"text"', "1.50"],
    "jsonb": ['{"a": [1, null, "x"]}', "1.50", "true"],
    "integer[]": ["{}", "{1,NULL,3}", "{{1,2},{3,4}}"],
    "text[]": ['{"a,b","it\'s","\\"q\\"",NULL,"NULL",""}'],
    "int4range": ["empty", "[1,5)", "(,7)"],
    "inet": ["192.168.0.0/24", "::1"],
    "bit(5)": ["10101"],
    "bit varying": ["1011", ""],
    "xml": ["<a>é</a>"],
    "oid": ["4294967295"],
    "money": ["12.34"],
    "name": ["a name"],
    '"char"': ["x"],
    "copied_from.mood": ["happy"],
}


@pytest.mark.parametrize("type_name", TYPES)
def test_each_type_of_postgres_is_kept(pg: Postgres, type_name: str) -> None:
    pg.execute("create type copied_from.mood as enum ('sad', 'happy')")
    for schema in ("copied_from", "copied_to"):
        pg.execute(f"create table {schema}.t (id integer, v {type_name})")
    values = [*TYPES[type_name], None]
    for i, value in enumerate(values):
        pg.execute(f"insert into copied_from.t values ({i}, %s::{type_name})", value)
    # One row by INSERT, many rows by COPY.
    pg.execute("insert into copied_from.t select id + 1000 * n, v from copied_from.t, generate_series(1, 300) n")
    done = pg.copy()
    assert done.code == 0, done.err
    assert pg.texts("copied_to") == pg.texts("copied_from")


@pytest.mark.parametrize(
    ("source", "value", "target", "why"),
    [
        ("float8", "1.5", "integer", "a float would change in a column of the type `int4`"),
        ("numeric", "1.5", "bigint", "would change"),
        ("float8", "0.1", "real", None),
        ("float8", "0.30000000000000004", "real", "would change"),
        ("float8", "0.30000000000000004", "numeric", None),
        ("numeric", "0.1234567890123456789", "float8", "would change"),
        ("numeric", "1.005", "numeric(10, 2)", "would change"),
        ("numeric", "1.000", "numeric(10, 2)", None),
        ("bigint", "9007199254740993", "float8", "an integer would change"),
        ("bigint", "40000", "smallint", "out of range"),
        ("numeric", "1e20", "bigint", "out of range"),
        ("timestamp", "2024-01-01 10:00", "date", "a timestamp would change"),
        ("timestamp", "2024-01-01", "date", None),
        ("timestamp", "2024-01-01 10:00", "timestamptz", "one of them has an offset"),
        ("timestamptz", "2024-01-01 10:00+00", "timestamp", "one of them has an offset"),
        ("timestamp", "2024-01-01 10:00:00.5", "timestamp(0)", "would change"),
        ("text", "2024-01-01 10:00", "date", "text would change"),
        ("text", "2024-01-01 10:00+02", "timestamp", "one of them has an offset"),
        ("text", "yesterday", "date", "text of this form does not go into"),
        ("text", "x", "integer", "text of this form does not go into"),
        ("text", "x", "uuid", "text of this form does not go into"),
        ("text", r"\x41", "bytea", "text of this form does not go into"),
        ("bytea", r"\x41", "text", "a binary value of this form does not go into"),
        ("text", "abc   ", "varchar(3)", "text would change"),
        ("text", "abcd", "varchar(3)", "too long"),
        ("text", "{", "jsonb", "invalid input syntax for type json"),
        ("integer", "2", "boolean", "an integer of this form"),
        ("integer", "1", "boolean", None),
        ("date", "2024-01-01", "timestamp", None),
        ("uuid", "00112233-4455-6677-8899-aabbccddeeff", "text", None),
        ("integer", "12", "text", None),
    ],
)
@pytest.mark.parametrize("n_rows", [1, 3_000])
def test_a_value_of_another_type_is_equal_or_an_error(
    pg: Postgres, source: str, value: str, target: str, why: str | None, n_rows: int
) -> None:
    pg.execute(f"create table copied_from.t as select %s::{source} as v from generate_series(1, {n_rows})", value)
    pg.execute(f"create table copied_to.t (v {target})")
    done = pg.copy()
    if why is None:
        assert done.code == 0, done.err
        # A float of 32 bits is equal if its shortest notation is.
        cast = "v::text" if target == "real" else f"v::{source}"
        found = pg.execute(f"select distinct {cast} from copied_to.t")
        assert found == pg.execute(f"select distinct {cast} from copied_from.t")
        assert pg.execute("select count(*) from copied_to.t") == [(n_rows,)]
    else:
        assert done.code == 1 and why in done.err, done.err
        assert pg.execute("select count(*) from copied_to.t") == [(0,)]


def test_infinite_dates_are_refused_or_read_as_text(pg: Postgres) -> None:
    for schema in ("copied_from", "copied_to"):
        pg.execute(f"create table {schema}.t (d date)")
    pg.execute("insert into copied_from.t values ('infinity')")
    assert pg.copy().code == 1
    assert pg.texts("copied_to") == []
    done = pg.copy(sql="select d::text as d from t")
    assert done.code == 0, done.err
    assert pg.texts("copied_to") == ["(infinity)"]


# Between the two


def test_values_of_sqlite_arrive_in_postgres(lite: Sqlite, pg: Postgres) -> None:
    columns: dict[str, tuple[str, str, list[Any]]] = {
        "i": ("integer", "bigint", INTEGERS),
        "x": ("real", "double precision", [*FLOATS, float("inf"), float("-inf")]),
        "n": ("text", "numeric", ["1.50", "12345678901234567890.123456789", "-0.5"]),
        "s": ("text", "text", TEXTS),
        "b": ("blob", "bytea", [b"", b"\0\xff"]),
        "f": ("boolean", "boolean", [0, 1]),
        "d": ("date", "date", ["2024-02-29", "0001-01-01"]),
        "t": ("time", "time", ["12:34:56", "00:00:00.000001"]),
        "ts": ("datetime", "timestamp", ["2024-02-29 12:00:00", "2024-02-29T12:00:00.123456"]),
        "tz": ("text", "timestamptz", ["2024-02-29 12:00:00+02:00", "2024-02-29T12:00:00Z"]),
        "u": ("text", "uuid", ["00112233-4455-6677-8899-aabbccddeeff"]),
        "j": ("text", "jsonb", ['{"a": [1, null]}', "null"]),
    }
    n = max(len(values) for _, _, values in columns.values()) + 1
    rows = [tuple(v[k] if k < len(v) else None for _, _, v in columns.values()) for k in range(n)]
    lite.make(", ".join(f"{name} {of[0]}" for name, of in columns.items()), rows * 200)
    pg.execute(f"create table copied_to.t ({', '.join(f'{name} {of[1]}' for name, of in columns.items())})")
    done = pg.from_sqlite(lite)
    assert done.code == 0, done.err
    for name, (_, type_name, values) in columns.items():
        found = pg.execute(f"select {name}, count(*) from copied_to.t where {name} is not null group by 1")
        assert [count for _, count in found] == [200] * len(values), name
        for value in values:
            given = bool(value) if type_name == "boolean" else value
            cast = f"(%s::text)::{type_name}" if isinstance(given, str) else f"%s::{type_name}"
            assert pg.execute(f"select count(*) from copied_to.t where {name} = {cast}", given) == [(200,)], (
                name,
                value,
            )


def test_values_of_postgres_arrive_in_sqlite(lite: Sqlite, pg: Postgres) -> None:
    pg.execute(
        "create table copied_from.t (i bigint, x float8, f real, n numeric, m numeric(12, 2), s text, b bytea, "
        "o boolean, d date, t time, ts timestamp, tz timestamptz, u uuid, j jsonb, a integer[])"
    )
    pg.execute(
        "insert into copied_from.t values (9223372036854775807, 'Infinity', 0.1, "
        "12345678901234567890123456789.0123456789, 19.99, E'it''s\\n\\\\', '\\x00ff', true, '2024-02-29', '12:00:00.5',"
        " '2024-02-29 12:00:00', '2024-02-29 12:00:00.000001+02', '00112233-4455-6677-8899-aabbccddeeff',"
        " '{\"a\": 1}', '{1,NULL}'), (null, null, null, null, 1.00, '', '', false, null, null, null, null, null, null, "
        "null)"
    )
    lite.make(
        "i integer, x real, f real, n text, m numeric, s text, b blob, o boolean, d date, t time, "
        "ts timestamp, tz text, u text, j text, a text",
        [],
    )
    done = pg.into_sqlite(lite)
    assert done.code == 0, done.err
    assert typed(lite.rows()) == typed(
        [
            (
                2**63 - 1,
                float("inf"),
                0.1,
                "12345678901234567890123456789.0123456789",
                19.99,
                "it's\n\\",
                b"\0\xff",
                1,
                "2024-02-29",
                "12:00:00.500000",
                "2024-02-29 12:00:00",
                "2024-02-29 10:00:00.000001+00:00",
                "00112233-4455-6677-8899-aabbccddeeff",
                '{"a": 1}',
                "{1,NULL}",
            ),
            (None, None, None, None, 1, "", b"", 0, *[None] * 7),
        ]
    )


@pytest.mark.parametrize(
    ("value", "column", "why"),
    [
        ("'NaN'::float8", "real", "a float that is not finite would change"),
        ("'NaN'::float8", "", "a float that is not finite would change"),
        ("12345678901234567.5::numeric", "numeric", "text would change"),
        ("'007'", "integer", "text would change"),
    ],
)
def test_a_value_that_sqlite_has_not_is_an_error(lite: Sqlite, pg: Postgres, value: str, column: str, why: str) -> None:
    lite.make(f"v {column}", [])
    done = pg.into_sqlite(lite, sql=f"select {value} as v")
    assert done.code == 1 and why in done.err, done.err
    assert lite.rows() == []


def test_a_nul_in_text_is_refused_by_postgres(lite: Sqlite, pg: Postgres) -> None:
    lite.make("s text", [("a",), ("b\0c",)])
    pg.execute("create table copied_to.t (s text)")
    done = pg.from_sqlite(lite)
    assert done.code == 1
    assert "NUL character" in done.err and "(column 0 `s`, row 1)" in done.err
    assert pg.texts("copied_to") == []
