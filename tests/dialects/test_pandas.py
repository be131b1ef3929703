"""`pandas.read_sql` and `to_sql` with connections and engines of onecopy."""

from __future__ import annotations

import warnings
from typing import Any

import pandas
import pytest
import sqlalchemy as sa

import onecopy
from tests.conftest import Database
from tests.support import table

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

ROWS = [tuple(row) for row in table.rows(1000)]


def test_a_frame_round_trips_through_the_database(engine: sa.Engine) -> None:
    frame = pandas.DataFrame(
        {"i": [1, 2, 3], "t": ["Zürich", "東京", None], "x": [0.5, -1.25, 1e300], "b": [True, False, True]}
    )
    frame.to_sql("dialect_frame", engine, index=False, if_exists="replace")
    again = pandas.read_sql("select i, t, x from dialect_frame where i >= 1 order by i", engine)
    pandas.testing.assert_frame_equal(again, frame[["i", "t", "x"]])
    whole = pandas.read_sql_table("dialect_frame", engine)
    assert whole["b"].astype(bool).tolist() == [True, False, True]
    parts = pandas.read_sql("select i from dialect_frame order by i", engine, chunksize=2)
    assert [len(part) for part in parts] == [2, 1]
    with engine.begin() as con:
        con.exec_driver_sql("drop table dialect_frame")


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb", "tds_msodbc"])
def test_read_sql_accepts_a_connection(profile: str, request: pytest.FixtureRequest) -> None:
    found: Database = request.getfixturevalue(profile)
    con = onecopy.connect(found.odbc)
    with warnings.catch_warnings():
        # pandas warns that it was tested only with SQLAlchemy's and sqlite3's connections.
        warnings.simplefilter("ignore", UserWarning)
        frame: Any = pandas.read_sql("select * from t1000 order by id", con)
        assert [*frame.columns] == [*table.COLUMNS]
        assert frame["note"].tolist() == [row[3] for row in ROWS]
        assert frame["price"].tolist() == [row[4] for row in ROWS]
        assert [stamp.to_pydatetime() for stamp in frame["created"]] == [row[6] for row in ROWS]
        if not profile.startswith("tds"):
            one: Any = pandas.read_sql("select id, name from t1000 where id = ?", con, params=(7,), index_col="id")
            assert one["name"].to_dict() == {7: ROWS[6][1]}
    con.close()
