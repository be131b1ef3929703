"""Random values of SQL Server's types in results of several rows, with each driver.

The expected values are literals in the SQL.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import onecopy
from tests.conftest import Database
from tests.support import random_values
from tests.support.random_values import shortest_float32

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


def _quoted(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _words(draw: Random, longest: int) -> str:
    # Without a question mark, which the driver would treat as a parameter.
    return "".join(draw.choices("abc ZüéЖя東京😀'\"\n", k=draw.randrange(longest)))


def _moment(draw: Random) -> dt.datetime:
    return dt.datetime(1970, 1, 2) + dt.timedelta(microseconds=draw.randrange(10**15))


#: By type: a generator of values, and the literal of a value.
COLUMNS: dict[str, tuple[Callable[[Random], Any], Callable[[Any], str]]] = {
    "bit": (lambda draw: draw.random() < 0.5, lambda v: str(int(v))),
    "tinyint": (lambda draw: draw.randrange(256), str),
    "smallint": (lambda draw: draw.randint(-(2**15), 2**15 - 1), str),
    "int": (lambda draw: draw.randint(-(2**31), 2**31 - 1), str),
    "bigint": (lambda draw: draw.randint(-(2**63), 2**63 - 1), _quoted),
    "real": (lambda draw: shortest_float32(draw.uniform(-1e6, 1e6)), _quoted),
    "float": (lambda draw: draw.uniform(-1e9, 1e9), _quoted),
    "decimal(38,8)": (lambda draw: Decimal(draw.randint(-(10**20), 10**20)).scaleb(-8), _quoted),
    "nvarchar(60)": (lambda draw: _words(draw, 29), lambda v: "N" + _quoted(v)),
    "nvarchar(max)": (lambda draw: _words(draw, 2000), lambda v: "N" + _quoted(v)),
    "varbinary(40)": (lambda draw: draw.randbytes(draw.randrange(40)), lambda v: "0x" + v.hex()),
    "date": (lambda draw: dt.date(draw.randint(1700, 9999), draw.randint(1, 12), 28), _quoted),
    "time(6)": (lambda draw: _moment(draw).time(), lambda v: _quoted(v.isoformat("microseconds"))),
    "datetime2(6)": (_moment, lambda v: _quoted(v.isoformat("T", "microseconds"))),
    "uniqueidentifier": (lambda draw: uuid.UUID(int=draw.getrandbits(128)), _quoted),
}


@pytest.mark.parametrize("n_rows", [1, 2, 3, 150])
@pytest.mark.parametrize("profile", ["tds_freetds", "tds_msodbc", "tds_rust"])
def test_rows_are_those_of_the_statement(request: pytest.FixtureRequest, profile: str, n_rows: int) -> None:
    database: Database = request.getfixturevalue(profile)
    con = onecopy.connect(database.odbc)
    draw = Random(random_values.SEED)
    rows = [tuple(make(draw) if draw.random() < 0.75 else None for make, _ in COLUMNS.values()) for _ in range(n_rows)]
    selects = (
        ", ".join(
            f"cast({'null' if value is None else literal(value)} as {name}) as c{k}"
            for k, ((name, (_, literal)), value) in enumerate(zip(COLUMNS.items(), row, strict=True))
        )
        for row in rows
    )
    sql = " union all ".join(f"select {selected}" for selected in selects)
    assert con.execute(sql).fetchall() == rows
    assert list(con.execute(sql)) == rows
    objects = json.loads(con.execute(sql).json().read(), parse_float=Decimal)
    for found, row in zip(objects, rows, strict=True):
        for text, value in zip(found.values(), row, strict=True):
            as_text = random_values.plain_text(text) if isinstance(text, (bool, int, Decimal)) else text
            assert random_values.is_text_of(as_text, value)
    con.close()
