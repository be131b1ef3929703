"""NumPy scalars and `NaT` as parameters."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import onecopy
from tests.conftest import Database


@pytest.fixture(params=["sqlite", "postgres"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[onecopy.Connection]:
    if request.param == "sqlite":
        connection = onecopy.connect(f"sqlite:{tmp_path / 'rows.db'}")
    else:
        database: Database = request.getfixturevalue("postgres_native")
        connection = onecopy.connect(database.odbc)
    yield connection
    connection.close()


SCALARS: list[tuple[Any, Any]] = [
    (np.int64(5), 5),
    (np.int8(-5), -5),
    (np.uint32(2**32 - 1), 2**32 - 1),
    (np.uint64(2**63), 2**63),
    (np.float16(0.5), 0.5),
    (np.float32(0.1), 0.1),
    (np.float32(134217728), 134217728.0),
    (np.float16(65504), 65504.0),
    (np.float64(0.1), 0.1),
    (np.bool_(True), True),
    (np.str_("text"), "text"),
    (np.bytes_(b"\0a"), b"\0a"),
    (np.datetime64("2024-02-29"), datetime.date(2024, 2, 29)),
    (np.datetime64("2024-02-29T01:02:03.000004"), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
    (np.datetime64("2024-02-29T01:02:03.000004000"), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
    (np.datetime64("NaT"), None),
    (np.datetime64("NaT", "ns"), None),
    (np.timedelta64("NaT"), None),
    (pd.NaT, None),
    (pd.Timestamp("2024-02-29T01:02:03"), datetime.datetime(2024, 2, 29, 1, 2, 3)),
]


@pytest.mark.parametrize(("given", "plain"), SCALARS, ids=repr)
def test_a_scalar_is_bound_as_the_python_value(con: onecopy.Connection, given: Any, plain: Any) -> None:
    try:
        expected = con.execute("select ?", [plain]).fetchall()
    except onecopy.DataError as error:
        with pytest.raises(onecopy.DataError, match=str(error).split()[-1]):
            con.execute("select ?", [given])
        return
    assert repr(con.execute("select ?", [given]).fetchall()) == repr(expected)
    con.execute(f"create temporary table z (a {'bytea' if isinstance(plain, bytes) else 'text'})")
    con.executemany("insert into z values (?)", [[given], [plain]])
    con.executemany("insert into z values (:a)", [{"a": given}])
    assert len(con.execute("select distinct a from z").fetchall()) == 1


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (np.timedelta64(3, "D"), datetime.timedelta(3)),
        (np.timedelta64(-1500, "ms"), datetime.timedelta(seconds=-1.5)),
        (np.timedelta64(1_000_001, "ns"), datetime.timedelta(milliseconds=1)),
        (pd.Timedelta("1 day 2 min"), datetime.timedelta(1, 120)),
    ],
    ids=repr,
)
def test_a_timedelta_of_numpy_is_an_interval(postgres_native: Database, given: Any, plain: Any) -> None:
    con = onecopy.connect(postgres_native.odbc)
    assert con.execute("select ?, (?)[1]", [given, [given]]).fetchall() == [(plain, plain)]
    con.close()


@pytest.mark.parametrize(
    "given",
    [
        np.complex128(1j),
        np.longdouble(1),
        np.void(b"abc"),
        np.timedelta64(1, "M"),
        np.timedelta64(1),
        np.datetime64(2**62, "Y"),
    ],
    ids=repr,
)
def test_a_scalar_without_a_value_in_sql_is_refused(con: onecopy.Connection, given: Any) -> None:
    with pytest.raises(TypeError, match="parameter 1 is a `"):
        con.execute("select ?", [given])


def test_numpy_is_not_imported(tmp_path: Path) -> None:
    code = f"""
import sys, onecopy
con = onecopy.connect("sqlite:{tmp_path / "rows.db"}")
con.execute("select ?, ?", [b"x", bytearray(b"y")]).fetchall()
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
