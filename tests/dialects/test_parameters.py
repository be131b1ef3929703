"""SQLAlchemy statements with parameters in clauses in which some servers do not support them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Engine,
    Integer,
    String,
    column,
    create_engine,
    func,
    literal,
    select,
    union_all,
    values,
)
from sqlalchemy.orm import declarative_base

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")


@pytest.mark.parametrize("rows", [[("a'?", 2), ("ü\\", 3)], [("b", -7)], [(None, 1), ("", 0)]])
def test_a_list_of_values_round_trips(engine: Engine, rows: list[Any]) -> None:
    given = values(column("name", String(20)), column("n", Integer), name="given").data(rows).cte("c")
    with engine.connect() as con:
        assert con.execute(select(given)).fetchall() == rows


def test_a_window_frame_accepts_values_and_the_statement_is_compiled_once(engine: Engine) -> None:
    numbers = union_all(*[select(literal(n).label("n")) for n in range(1, 6)]).subquery()
    with engine.connect() as con:
        for before, sums in ((0, [1, 2, 3, 4, 5]), (1, [1, 3, 5, 7, 9]), (4, [1, 3, 6, 10, 15])):
            total = func.sum(numbers.c.n).over(order_by=numbers.c.n, rows=(-before, 0))
            assert [int(row[0]) for row in con.execute(select(total).order_by(numbers.c.n))] == sums


def test_the_row_id_of_an_insert_outlives_its_cursor_on_sqlite() -> None:
    engine = create_engine("sqlite+onecopy://")
    with engine.connect() as con:
        con.exec_driver_sql("create table t (id integer primary key, x)")
        for row_id in (1, 2):
            inserted = con.exec_driver_sql("insert into t (x) values (7)")
            assert inserted.lastrowid == row_id
    engine.dispose()


def test_a_table_whose_name_contains_returning_works(engine: Engine) -> None:
    base: Any = declarative_base()

    class Item(base):  # type: ignore[misc]
        __tablename__ = "not_returning"
        id = Column(Integer, primary_key=True)

    base.metadata.drop_all(engine)
    base.metadata.create_all(engine)
    with engine.begin() as con:
        for _ in range(3):
            con.execute(Item.__table__.insert().values(id=1))
            con.execute(Item.__table__.delete())
        assert con.execute(select(func.count()).select_from(Item)).scalar() == 0
    base.metadata.drop_all(engine)
