"""`executemany` with values of several types stores the same rows as `execute` of each row."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from tests.conftest import Database

EAST = datetime.timezone(datetime.timedelta(hours=5))
AWARE = datetime.datetime(2020, 1, 1, 12, tzinfo=EAST)
NAIVE = datetime.datetime(2020, 1, 1, 12, 0, 0, 500)
TIME = datetime.time(1, 2, 3)
INFINITY = float("inf")
VALUES: list[Any] = [
    None, True, 7, 2**40, 2.5, 1e300, INFINITY, Decimal("1.50"), "text", TIME, NAIVE, AWARE, NAIVE.date(),
    uuid.UUID(int=1), datetime.timedelta(1, 2), [1, 2], [True, None], ["a b", "c", "null", "(x]", ""], [1.5, INFINITY],
]  # fmt: skip


@pytest.fixture
def con(postgres_native: Database) -> Iterator[onecopy.Connection]:
    connection = onecopy.connect(postgres_native.odbc)
    yield connection
    connection.close()


def stored(con: onecopy.Connection, columns: str, rows: Sequence[Sequence[Any]], is_many: bool) -> list[Any]:
    """The stored rows, as text of the server."""
    con.execute(f"create temporary table z (id serial, {columns})")
    names = [column.split()[0] for column in columns.split(", ")]
    sql = f"insert into z ({', '.join(names)}) values ({', '.join('?' * len(names))})"
    if is_many:
        assert con.executemany(sql, rows).rowcount == len(rows)
    else:
        for row in rows:
            con.execute(sql, row)
    texts = ", ".join(f"{name}::text" for name in names)
    found = con.execute(f"select {texts} from z order by id").fetchall()
    con.rollback()
    return found


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("t timestamp, u text", [(AWARE, uuid.UUID(int=1)), (NAIVE, "x")]),
        ("t timestamptz", [(AWARE,), (NAIVE,), (None,), (AWARE,)]),
        ("a text", [(value,) for value in VALUES]),
        ("a text, b text", [(a, b) for a in VALUES for b in VALUES]),
        ("a int", [(1,), (2.5,), (3.5,), (Decimal("4.5"),), ("5",)]),
        ("a jsonb", [("1",), (None,), ('"x"',)]),
        ("a numeric", [(1,), (2**40,), (0.1,), (Decimal("0.10"),), (None,)] * 50),
        ("a double precision", [(i if i % 3 else i / 4,) for i in range(3000)]),
        ("a text", [(i if i % 2 else float(i),) for i in range(3000)]),
    ],
)
def test_rows_of_several_types_are_those_of_single_executions(
    con: onecopy.Connection, columns: str, rows: list[Any]
) -> None:
    assert stored(con, columns, rows, True) == stored(con, columns, rows, False)


@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_a_row_of_a_type_that_the_column_refuses_is_named(postgres_native: Database, prepare: Any) -> None:
    con = onecopy.connect(postgres_native.odbc, prepare=prepare)
    cases: list[tuple[str, int, list[Any]]] = [
        ("bool", 1, [[True], [1]]),
        ("int", 3, [["1"], [1], [2.5], [b"\1"], [None]]),
    ]
    for column, refused, rows in cases:
        con.execute(f"create temporary table z (a {column})")
        with pytest.raises(onecopy.ProgrammingError, match="but expression is of type") as raised:
            con.executemany("insert into z values (?)", rows)
        assert raised.value.row == refused
        con.rollback()
    con.close()


def test_an_error_of_an_earlier_row_has_precedence_over_a_type(con: onecopy.Connection) -> None:
    con.execute("create temporary table z (a int check (a < 5))")
    with pytest.raises(onecopy.IntegrityError) as raised:
        con.executemany("insert into z values (?)", [[1], [7], [b"x"]])
    assert raised.value.row == 1


@pytest.mark.parametrize("value", [value for value in VALUES if value is not None and value is not AWARE])
def test_a_value_declared_as_text_has_the_form_of_the_server(con: onecopy.Connection, value: Any) -> None:
    ((plain,),) = con.execute("select (?)::text", [value]).fetchall()
    cur = con.cursor()
    cur.setinputsizes([onecopy.STRING])
    ((declared,),) = cur.execute("select ?", [value]).fetchall()
    assert declared == plain
