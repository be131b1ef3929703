"""SQLAlchemy with onecopy: creating and dropping tables, writing and reading objects, types,
relationships, errors."""

from __future__ import annotations

import datetime
import enum
import pathlib
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import onecopy
from tests.conftest import Database
from tests.dialects.conftest import SCRIPTS, url

pytestmark = [
    pytest.mark.filterwarnings("ignore::onecopy.DriverWarning"),
    # SQLite has no decimals; SQLAlchemy's warning about that is not tested here.
    pytest.mark.filterwarnings("ignore:Dialect sqlite.onecopy does .not. support Decimal"),
]


class Base(orm.DeclarativeBase):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Country(Base):
    __tablename__ = "dialect_country"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.Unicode(200), unique=True)
    cities: orm.Mapped[list[City]] = orm.relationship(back_populates="country", cascade="all, delete-orphan")


class City(Base):
    __tablename__ = "dialect_city"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    country_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("dialect_country.id"))
    name: orm.Mapped[str] = orm.mapped_column(sa.UnicodeText)
    people: orm.Mapped[int | None] = orm.mapped_column(sa.BigInteger)
    price: orm.Mapped[Decimal | None] = orm.mapped_column(sa.Numeric(12, 2))
    ratio: orm.Mapped[float | None] = orm.mapped_column(sa.Double)
    founded: orm.Mapped[datetime.date | None]
    opens: orm.Mapped[datetime.time | None]
    seen: orm.Mapped[datetime.datetime | None]
    key: orm.Mapped[uuid.UUID | None]
    flag: orm.Mapped[bool | None]
    image: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    facts: orm.Mapped[Any] = orm.mapped_column(sa.JSON, nullable=True)
    colour: orm.Mapped[Colour | None] = orm.mapped_column(sa.Enum(Colour))
    country: orm.Mapped[Country] = orm.relationship(back_populates="cities")


VALUES: dict[str, Any] = {
    "people": 2**40,
    "price": Decimal("-1234567.89"),
    "ratio": 0.1,
    "founded": datetime.date(1234, 5, 6),
    "opens": datetime.time(7, 8, 9),
    "seen": datetime.datetime(2026, 11, 20, 1, 2, 3),
    "key": uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "flag": True,
    "image": bytes(range(256)) * 250,
    "facts": {"имя": ["東京", 1.5, None, {"a": "😀"}]},
    "colour": Colour.BLUE,
}


@pytest.fixture
def tables(engine: sa.Engine) -> Iterator[sa.Engine]:
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table("dialect_city")


def test_objects_of_every_type_round_trip(tables: sa.Engine) -> None:
    with orm.Session(tables) as session:
        country = Country(name="Ελλάδα")
        country.cities = [City(name=text, **VALUES) for text in SCRIPTS] + [City(name="")]
        session.add(country)
        session.commit()
        ids = [city.id for city in country.cities]
        assert len(set(ids)) == len(SCRIPTS) + 1 and all(ids)
    with orm.Session(tables) as session:
        found = session.scalars(sa.select(City).order_by(City.id)).all()
        assert [city.name for city in found] == [*SCRIPTS, ""]
        for city in found[:-1]:
            assert {name: getattr(city, name) for name in VALUES} == VALUES
            assert [type(getattr(city, name)) for name in VALUES] == [type(value) for value in VALUES.values()]
        assert [getattr(found[-1], name) for name in VALUES] == [None] * len(VALUES)
        assert found[0].country.name == "Ελλάδα"
        assert found[0].country.cities == found


def test_objects_are_changed_found_and_deleted(tables: sa.Engine) -> None:
    with orm.Session(tables) as session:
        session.add_all(Country(name=name, cities=[City(name="x", people=i)]) for i, name in enumerate(SCRIPTS))
        session.commit()
        wanted = SCRIPTS[3]
        country = session.scalars(sa.select(Country).where(Country.name == wanted)).one()
        country.name = "other"
        country.cities.append(City(name="y", facts={"a": 1}))
        session.commit()
        counted = session.execute(
            sa.select(Country.name, sa.func.count(City.id))
            .join(City)
            .group_by(Country.name)
            .having(sa.func.count() > 1)
        ).all()
        assert [tuple(row) for row in counted] == [("other", 2)]
        session.delete(country)
        session.flush()
        assert session.scalar(sa.select(sa.func.count()).select_from(City)) == len(SCRIPTS) - 1
        session.rollback()
        changed = session.execute(sa.update(City).values(people=City.people + 10).where(City.people < 5))
        assert changed.rowcount == 5  # type: ignore[attr-defined]
        loaded = session.scalars(
            sa.select(Country).order_by(Country.id).options(orm.selectinload(Country.cities)).limit(2)
        ).all()
        assert [len(c.cities) for c in loaded] == [1, 1]


def test_many_rows_are_inserted_in_one_call_and_return_their_keys(tables: sa.Engine) -> None:
    names = [f"{i} {SCRIPTS[i % len(SCRIPTS)]}"[:200] for i in range(2500)]
    with tables.begin() as con:
        if tables.dialect.insert_returning:
            insert = sa.insert(Country).returning(Country.id, sort_by_parameter_order=True)
            ids = con.scalars(insert, [{"name": name} for name in names]).all()
            assert len(set(ids)) == 2500
        else:
            done = con.execute(sa.insert(Country), [{"name": name} for name in names])
            assert done.rowcount == 2500
        assert con.scalars(sa.select(Country.name).order_by(Country.id)).all() == names


def test_the_key_of_a_single_insert_is_returned(tables: sa.Engine) -> None:
    with tables.begin() as con:
        keys = [con.execute(sa.insert(Country).values(name=name)).inserted_primary_key for name in ("a", "b")]
        assert [tuple(key) for key in keys if key] == [tuple(row) for row in con.execute(sa.select(Country.id)).all()]


def test_errors_are_those_of_sqlalchemy_with_ours_as_the_cause(tables: sa.Engine) -> None:
    def twice() -> None:
        with tables.begin() as con:
            con.execute(sa.insert(Country), [{"name": "a"}, {"name": "a"}])

    with pytest.raises(sa.exc.IntegrityError) as caught:
        twice()
    assert isinstance(caught.value.orig, onecopy.IntegrityError)
    with tables.connect() as con:
        with pytest.raises(sa.exc.DBAPIError):
            con.exec_driver_sql("select * from nowhere_at_all")
        con.rollback()
        assert con.scalar(sa.select(sa.func.count()).select_from(Country)) == 0
        with con.begin_nested() as savepoint:
            con.execute(sa.insert(Country).values(name="b"))
            savepoint.rollback()
        con.execute(sa.insert(Country).values(name="c"))
        assert con.scalars(sa.select(Country.name)).all() == ["c"]


def test_reflection_finds_columns_and_keys(tables: sa.Engine) -> None:
    inspector = sa.inspect(tables)
    assert {"dialect_city", "dialect_country"} <= set(inspector.get_table_names())
    columns = {column["name"]: column for column in inspector.get_columns("dialect_city")}
    assert set(columns) == {column.name for column in City.__table__.columns}
    assert isinstance(columns["people"]["type"], sa.BigInteger)
    assert not columns["name"]["nullable"] and columns["people"]["nullable"]
    assert inspector.get_pk_constraint("dialect_city")["constrained_columns"] == ["id"]
    (key,) = inspector.get_foreign_keys("dialect_city")
    assert (key["constrained_columns"], key["referred_table"]) == (["country_id"], "dialect_country")
    table = sa.Table("dialect_country", sa.MetaData(), autoload_with=tables)
    assert table.c.name.type.length == 200  # type: ignore[attr-defined]


def test_isolation_levels(tables: sa.Engine) -> None:
    with tables.connect().execution_options(isolation_level="SERIALIZABLE") as con:
        assert con.get_isolation_level() == "SERIALIZABLE"
    with tables.connect().execution_options(isolation_level="AUTOCOMMIT") as con:
        con.execute(sa.insert(Country).values(name="kept"))
        con.rollback()
        assert con.scalars(sa.select(Country.name)).all() == ["kept"]
    with tables.connect() as con:
        con.execute(sa.insert(Country).values(name="not kept"))
        con.rollback()
        assert con.scalars(sa.select(Country.name)).all() == ["kept"]


def test_rows_stream_and_text_accepts_named_parameters(tables: sa.Engine) -> None:
    with tables.begin() as con:
        con.execute(sa.insert(Country), [{"name": f"name {i}"} for i in range(1200)])
    with tables.connect() as con:
        rows = con.execution_options(yield_per=100).execute(sa.select(Country.name).order_by(Country.id))
        assert [len(part) for part in rows.partitions()] == [100] * 12
        found = con.execute(sa.text("select name from dialect_country where name = :name"), {"name": "name 7"})
        assert found.all() == [("name 7",)]
        like = con.scalars(sa.select(Country.name).where(Country.name.like("% 119_")).order_by(Country.id)).all()
        assert like == [f"name {i}" for i in range(1190, 1200)]


@pytest.mark.parametrize("option", [{"stream_results": True}, {"yield_per": 10}], ids=str)
def test_statements_without_rows_run_where_results_stream(tables: sa.Engine, option: dict[str, Any]) -> None:
    with tables.connect().execution_options(**option) as con:
        con.execute(sa.insert(Country), {"name": "a"})
        con.execute(sa.insert(Country), [{"name": "b"}, {"name": "c"}])
        with con.begin_nested():
            assert con.execute(sa.update(Country).where(Country.name == "b").values(name="d")).rowcount == 1
        con.execute(sa.text("delete from dialect_country where name = 'c'"))
        con.exec_driver_sql("create table dialect_made (a integer)")
        con.exec_driver_sql("drop table dialect_made")
        assert con.scalars(sa.select(Country.name).order_by(Country.name)).all() == ["a", "d"]


def test_a_connection_that_ended_is_replaced(postgres: Database) -> None:
    engine = sa.create_engine(url("postgresql", postgres), pool_size=1, max_overflow=0)
    admin = onecopy.connect(postgres.odbc, autocommit=True)
    with engine.connect() as con:
        pid = con.exec_driver_sql("select pg_backend_pid()").scalar()
    admin.execute(f"select pg_terminate_backend({pid})")
    with engine.connect() as con:
        with pytest.raises(sa.exc.DBAPIError) as caught:
            con.exec_driver_sql("select 1")
        assert caught.value.connection_invalidated
    with engine.connect() as con:
        assert con.exec_driver_sql("select pg_backend_pid()").scalar() != pid
    engine.dispose()
    admin.close()


def test_types_of_postgresql(postgres: Database) -> None:
    from sqlalchemy.dialects.postgresql import JSONB

    engine = sa.create_engine(url("postgresql", postgres))
    table = sa.Table("dialect_pg", sa.MetaData(), sa.Column("j", JSONB), sa.Column("t", sa.DateTime(timezone=True)))
    moment = datetime.datetime(2026, 11, 20, 1, 2, 3, 4, datetime.timezone.utc)
    with engine.connect() as con:
        table.create(con)
        con.execute(table.insert().values(j={"a": {"b": [1, "я"]}}, t=moment))
        assert con.execute(sa.select(table)).all() == [({"a": {"b": [1, "я"]}}, moment)]
        assert con.scalar(sa.select(table.c.j["a"]["b"][1].as_string())) == "я"
        assert con.scalar(sa.select(table.c.j).where(table.c.j.contains({"a": {}}))) is not None
        arrays = [[1, None, 3], ["a b", 'q"\\', "я", ""], [[1, 2], [3, 4]], [moment], []]
        kinds: list[Any] = [sa.Integer, sa.Text, sa.Integer, sa.DateTime(timezone=True), sa.Text]
        columns: list[Any] = [sa.Column(f"a{i}", sa.ARRAY(kind)) for i, kind in enumerate(kinds)]
        other = sa.Table("dialect_arrays", sa.MetaData(), *columns, sa.Column("no", sa.ARRAY(sa.Text)))
        other.create(con)
        con.execute(other.insert().values({f"a{i}": value for i, value in enumerate(arrays)}))
        assert [*con.execute(sa.select(other)).one()] == [*arrays, None]
    engine.dispose()


def test_a_whole_connection_string_and_options_in_the_url(postgres: Database, tmp_path: pathlib.Path) -> None:
    engine = sa.create_engine(
        sa.URL.create("postgresql+onecopy", query={"odbc_connect": postgres.odbc, "connect_timeout": "5"})
    )
    with engine.connect() as con:
        assert con.scalar(sa.text("select 1")) == 1
    assert postgres.password not in repr(sa.create_engine(url("postgresql", postgres)))
    engine.dispose()
    file = tmp_path / "t.db"
    onecopy.connect(f"sqlite:{file}").execute("pragma user_version").connection.close()
    file.touch()
    engine = sa.create_engine(f"sqlite+onecopy:///{file}?read_only=true&autocommit=1")
    with engine.connect() as con:
        assert engine.dialect.detect_autocommit_setting(con.connection.dbapi_connection)  # type: ignore[arg-type]
        with pytest.raises(sa.exc.OperationalError):
            con.exec_driver_sql("create table t (a)")
    engine.dispose()
    with pytest.raises(sa.exc.ArgumentError, match="host"):
        sa.create_engine("postgresql+onecopy:///x").connect()
    with pytest.raises(sa.exc.ArgumentError, match="has no host"):
        sa.create_engine("sqlite+onecopy://host/x").connect()


def test_a_database_in_memory_is_one_per_thread() -> None:
    engine = sa.create_engine("sqlite+onecopy://")
    with engine.begin() as con:
        con.exec_driver_sql("create table t (a)")
    with engine.connect() as con:
        assert con.exec_driver_sql("select count(*) from t").scalar() == 0
    assert engine.dialect.driver == "onecopy"
    engine.dispose()


def test_sql_server_uses_its_dialect(tds_msodbc: Database) -> None:
    engine = sa.create_engine("mssql+onecopy://me:s3cr3t@host:1433/db?Encrypt=no")
    args, options = engine.dialect.create_connect_args(engine.url)
    assert (args, options) == (["mssql://me:s3cr3t@host:1433/db?Encrypt=no"], {})
    compiled = str(sa.insert(Country).values(name="x").returning(Country.id).compile(engine))
    assert compiled == "INSERT INTO dialect_country (name) OUTPUT inserted.id VALUES (?)"
    # The TDS responder has no server properties: requests and results are tested below SQLAlchemy's
    # setup.
    made = sa.URL.create("mssql+onecopy", query={"odbc_connect": tds_msodbc.odbc})
    engine = sa.create_engine(made, _initialize=False)
    with engine.connect() as con:
        rows = con.exec_driver_sql("select 1 as a, N'東京' as b, cast('1.50' as decimal(38,10)) as c").all()
        assert [tuple(row) for row in rows] == [(1, "東京", Decimal("1.5000000000"))]
    engine.dispose()
