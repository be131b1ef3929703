"""The catalog functions of `onecopy.compat.pyodbc`, compared with those of pyodbc for the ODBC
drivers whose results are correct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from onecopy.compat import pyodbc as ours
from tests.conftest import Database

theirs = pytest.importorskip("pyodbc", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore::onecopy.DriverWarning")

TABLES = [
    "create table catalog_parent (id int not null primary key, name varchar(20) not null, amount numeric(10, 2))",
    "create table catalog_child (a int not null, b int not null,"
    " parent int references catalog_parent (id) on delete cascade,"
    " primary key (b, a))",
    "create unique index catalog_by_name on catalog_parent (name, id)",
    "create view catalog_view as select id from catalog_parent",
]
DROP = ["drop view if exists catalog_view", "drop table if exists catalog_child", "drop table if exists catalog_parent"]


@pytest.fixture(params=["sqlite", "postgres_native", "postgres", "mariadb"])
def target(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[str]:
    if request.param == "sqlite":
        string = f"sqlite:{tmp_path / 't.db'}"
    else:
        found: Database = request.getfixturevalue(request.param)
        string = found.odbc
    with ours.connect(string) as con:
        for sql in [*DROP, *TABLES]:
            if request.param == "mariadb":
                sql = sql.replace(" references catalog_parent (id) on delete cascade", "")
                sql = sql.replace("primary key (b, a))", "primary key (b, a), " + MARIADB_FOREIGN)
            con.execute(sql)
    yield string
    for sql in DROP:
        con.execute(sql)
    con.commit()
    con.close()


MARIADB_FOREIGN = "foreign key (parent) references catalog_parent (id) on delete cascade)"


@pytest.fixture
def cur(target: str) -> Iterator[ours.Cursor]:
    con = ours.connect(target)
    yield con.cursor()
    con.close()


def test_tables_and_views_by_pattern_and_kind(cur: ours.Cursor) -> None:
    rows: list[Any] = cur.tables(table="catalog\\_%").fetchall()
    assert [(row.table_name, row.table_type) for row in rows] == [
        ("catalog_child", "TABLE"),
        ("catalog_parent", "TABLE"),
        ("catalog_view", "VIEW"),
    ]
    rows = cur.tables(table="catalog%", tableType="VIEW").fetchall()
    assert [row.table_name for row in rows] == ["catalog_view"]
    assert cur.tables(table="nothing%").fetchall() == []
    assert "catalog_parent" in [row[2] for row in cur.tables()]


def test_columns_have_their_types_and_positions(cur: ours.Cursor) -> None:
    rows: list[Any] = cur.columns(table="catalog_parent").fetchall()
    assert [(row.column_name, row.data_type, row.nullable, row.ordinal_position) for row in rows] == [
        ("id", ours.SQL_INTEGER, 0, 1),
        ("name", ours.SQL_VARCHAR, 0, 2),
        ("amount", rows[2].data_type, 1, 3),
    ]
    assert rows[2].data_type in (ours.SQL_NUMERIC, ours.SQL_DECIMAL)
    assert rows[0].num_prec_radix == 10 and rows[1].num_prec_radix is None
    rows = cur.columns(table="catalog%", column="b").fetchall()
    assert [(row.table_name, row.column_name) for row in rows] == [("catalog_child", "b")]


def test_sizes_of_columns_are_those_of_the_odbc_reference(postgres: Database) -> None:
    con = ours.connect(postgres.odbc)
    con.execute(
        "create temporary table sizes (a smallint, b integer, c bigint, d real, e double precision, f numeric(7, 2), "
        "g varchar(9), h date, i time(0), j timestamp(3), k timestamp, l uuid)"
    )
    rows: list[Any] = con.cursor().columns(table="sizes").fetchall()
    assert [(row.column_size, row.decimal_digits, row.num_prec_radix) for row in rows] == [
        (5, 0, 10),
        (10, 0, 10),
        (19, 0, 10),
        (7, None, 10),
        (15, None, 10),
        (7, 2, 10),
        (9, None, None),
        (10, None, None),
        (8, 0, None),
        (23, 3, None),
        (26, 6, None),
        (36, None, None),
    ]
    types = [(row.data_type, row.sql_data_type, row.sql_datetime_sub) for row in rows[6:10]]
    assert types == [(12, 12, None), (91, 9, 1), (92, 9, 2), (93, 9, 3)]
    con.close()


def test_keys_and_indexes(cur: ours.Cursor) -> None:
    rows: list[Any] = cur.primaryKeys("catalog_child").fetchall()
    assert [(row.column_name, row.key_seq) for row in rows] == [("b", 1), ("a", 2)]
    for arguments in ({"table": "catalog_parent"}, {"foreignTable": "catalog_child"}):
        rows = cur.foreignKeys(**arguments).fetchall()
        names = [
            (r.pktable_name, r.pkcolumn_name, r.fktable_name, r.fkcolumn_name, r.key_seq, r.delete_rule) for r in rows
        ]
        assert names == [("catalog_parent", "id", "catalog_child", "parent", 1, 0)]
    rows = cur.statistics("catalog_parent", unique=True).fetchall()
    named = [(r.ordinal_position, r.column_name, r.non_unique) for r in rows if r.index_name == "catalog_by_name"]
    assert named == [(1, "name", 0), (2, "id", 0)]


def test_unsupported_functions_are_reported(cur: ours.Cursor) -> None:
    for name in ("procedureColumns", "rowIdColumns", "rowVerColumns", "getTypeInfo"):
        with pytest.raises(ours.NotSupportedError, match=name):
            getattr(cur, name)()


@pytest.mark.parametrize("profile", ["postgres_native", "postgres", "mariadb"])
def test_privileges_are_listed(request: pytest.FixtureRequest, profile: str) -> None:
    con = ours.connect(request.getfixturevalue(profile).odbc)
    cur = con.execute("drop table if exists granted_table")
    cur.execute("create table granted_table (a int)")
    con.commit()
    rows: list[Any] = cur.tablePrivileges("granted\\_t%").fetchall()
    assert cur.description is not None
    names = [column[0] for column in cur.description]
    assert names == ["table_cat", "table_schem", "table_name", "grantor", "grantee", "privilege", "is_grantable"]
    if profile.startswith("postgres"):
        assert {"SELECT", "INSERT", "UPDATE", "DELETE"} <= {row.privilege for row in rows}
        assert {row.table_name for row in rows} == {"granted_table"}
    cur.execute("drop table granted_table")
    con.commit()
    con.close()
    with pytest.raises(ours.NotSupportedError):
        ours.connect("sqlite::memory:").cursor().tablePrivileges()


def test_procedures_are_listed(postgres: Database) -> None:
    con = ours.connect(postgres.odbc)
    con.execute("create function pg_temp.catalog_function() returns int language sql as 'select 1'")
    rows: list[Any] = con.cursor().procedures("catalog\\_f%").fetchall()
    assert [(row.procedure_name, row.procedure_type) for row in rows] == [("catalog_function", 2)]
    con.close()
    with pytest.raises(ours.NotSupportedError):
        ours.connect("sqlite::memory:").cursor().procedures()


def test_names_are_those_of_the_driver(postgres: Database, psqlodbc: Database) -> None:
    mine, other = ours.connect(postgres.odbc), theirs.connect(psqlodbc.odbc)
    for call in ("tables", "columns"):
        a, b = (getattr(con.cursor(), call)(table="t1000") for con in (mine, other))
        names = [d[0] for d in a.description]
        assert names == [d[0] for d in b.description][: len(names)]
        same = ["table_cat", "table_schem", "table_name", "column_name", "nullable", "ordinal_position"]
        for x, y in zip(a.fetchall(), b.fetchall(), strict=True):
            assert [getattr(x, n) for n in same if n in names] == [getattr(y, n) for n in same if n in names]
    mine.close()
    other.close()
