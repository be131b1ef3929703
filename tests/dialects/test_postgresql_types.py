"""PostgreSQL types and operators in SQLAlchemy: intervals, times with time zone, ranges, and JSONB
operators that contain `?`."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import Range
from sqlalchemy.dialects.postgresql.ranges import MultiRange

from tests.conftest import Database
from tests.dialects.conftest import url

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

UTC = dt.timezone.utc
START, END = dt.datetime(2026, 1, 2, 3, 4, 5, 600000), dt.datetime(2026, 2, 3)


class Colour(enum.Enum):
    RED = "r"
    GREEN = "g"


VALUES: list[tuple[Any, list[Any]]] = [
    (sa.Interval(), [dt.timedelta(2, 3, 4), -dt.timedelta(1), dt.timedelta(0)]),
    (
        sa.Time(timezone=True),
        [dt.time(1, 2, 3, 400000, UTC), dt.time(1, tzinfo=dt.timezone(dt.timedelta(minutes=-90)))],
    ),
    (sa.Time(), [dt.time(1, 2, 3, 4)]),
    (pg.INT4RANGE(), [Range(1, 5), Range(None, 5), Range(empty=True), Range(1, None)]),
    (pg.INT8RANGE(), [Range(-(2**40), 2**40)]),
    (pg.NUMRANGE(), [Range(Decimal("1.50"), Decimal("2"), bounds="(]")]),
    (pg.DATERANGE(), [Range(START.date(), END.date())]),
    (pg.TSRANGE(), [Range(START, END), Range(START, None)]),
    (pg.TSTZRANGE(), [Range(START.replace(tzinfo=UTC), END.replace(tzinfo=UTC), bounds="[]")]),
    (pg.INT4MULTIRANGE(), [MultiRange([Range(1, 3), Range(5, None)]), MultiRange([])]),
    (pg.TSMULTIRANGE(), [MultiRange([Range(START, END)])]),
    (pg.ARRAY(pg.JSONB), [[{"a": [1, "x,}"]}, "text", 2], []]),
    (pg.ARRAY(pg.JSONB, dimensions=1), [[[1, 2], {"b": None}]]),
    (pg.ARRAY(sa.Enum(Colour)), [[Colour.RED, None, Colour.GREEN]]),
    (pg.ARRAY(sa.Numeric), [[Decimal("1.50"), None]]),
    (pg.ARRAY(sa.DateTime), [[START, END]]),
    (pg.ARRAY(sa.LargeBinary), [[b'\x00{,"\\', b""]]),
    (pg.ARRAY(sa.Uuid, dimensions=2), [[[uuid.UUID(int=1)], [uuid.UUID(int=2)]]]),
]


@pytest.fixture
def connection(postgres: Database) -> Iterator[sa.Connection]:
    """An SQLAlchemy connection to PostgreSQL."""
    engine = sa.create_engine(url("postgresql", postgres))
    with engine.connect() as found:
        yield found
    engine.dispose()


@pytest.mark.parametrize(("of", "values"), VALUES, ids=lambda v: type(v).__name__)
def test_values_round_trip(connection: sa.Connection, of: Any, values: list[Any]) -> None:
    table = sa.Table(
        "dialect_values", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("x", of), prefixes=["TEMPORARY"]
    )
    table.create(connection)
    rows = [{"id": k, "x": value} for k, value in enumerate([*values, None])]
    connection.execute(table.insert(), rows)
    found = connection.execute(sa.select(table.c.x).order_by(table.c.id)).scalars().all()
    assert found == [*values, None]
    for k, value in enumerate(values):
        assert connection.execute(sa.select(table.c.id).where(table.c.x == value)).scalars().all() == [k]


def test_an_interval_is_subtracted_from_a_timestamp(connection: sa.Connection) -> None:
    sql = sa.text("select now() - :span < now()")
    assert connection.execute(sql, {"span": dt.timedelta(1)}).scalar() is True
    shifted = sa.select(sa.literal(START, sa.DateTime()) - sa.literal(dt.timedelta(1), sa.Interval()))
    assert connection.execute(shifted).scalar() == START - dt.timedelta(1)


def test_jsonb_has_keys(connection: sa.Connection) -> None:
    value = sa.cast(sa.literal({"a": 1, "b": 2}, pg.JSONB), pg.JSONB)
    checks = [
        value.has_key("a"),
        value.has_key("z"),
        value.has_any(pg.array(["z", "b"])),
        value.has_all(pg.array(["a", "z"])),
        value.path_exists("$.a"),
    ]
    assert tuple(connection.execute(sa.select(*checks)).one()) == (True, False, True, False, True)
