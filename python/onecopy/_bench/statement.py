"""The statement that is measured. It is the SQL that the user gives, or a query of the largest
table of the database. In both cases the number of its rows is limited."""

from __future__ import annotations

from typing import Any

__all__ = ["NoTable", "largest_table", "limited", "of_table", "quoted"]


class NoTable(Exception):
    """Raised if the database has no table that could be measured."""


#: For each dialect a query on the catalog: schema and name of the largest ordinary table.
_LARGEST = {
    "postgresql": """
        select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
        order by pg_table_size(c.oid) desc, n.nspname, c.relname limit 1""",
    "mysql": """
        select table_schema, table_name from information_schema.tables where table_type = 'BASE TABLE'
        and table_schema not in ('mysql', 'sys', 'performance_schema', 'information_schema')
        and (database() is null or table_schema = database())
        order by data_length desc, table_schema, table_name limit 1""",
    "mssql": """
        select top (1) s.name, t.name from sys.tables t join sys.schemas s on s.schema_id = t.schema_id
        join sys.partitions p on p.object_id = t.object_id and p.index_id in (0, 1)
        group by s.name, t.name order by sum(p.rows) desc, s.name, t.name""",
}


def largest_table(connection: Any) -> tuple[str, ...]:
    """Return the name of the largest ordinary table, with its schema if the database has schemas.

    SQLite does not record the sizes of tables. For SQLite, the table with the largest `rowid` is
    returned, which is found without reading the tables; only the rows of tables without `rowid` are
    counted.

    Raises:
        NoTable: there is no table, or the catalog of this database is not known.
    """
    dialect = connection.dialect
    if dialect == "sqlite":
        listed: list[tuple[Any, ...]] = connection.execute("pragma main.table_list").fetchall()
        sizes = []
        for schema, name, kind, _, without_rowid, _ in listed:
            if (schema, kind) == ("main", "table") and not name.startswith("sqlite_"):
                size = "count(*)" if without_rowid else "max(rowid)"
                # A table may have a column that is named `rowid`, with values of any type.
                n_rows = connection.execute(f"select {size} from {quoted('sqlite', name)}").fetchone()[0]
                sizes.append((-n_rows if isinstance(n_rows, int) else 0, name))
        if sizes:
            return (min(sizes)[1],)
    elif dialect in _LARGEST:
        if row := connection.execute(_LARGEST[dialect]).fetchone():
            return tuple(row)
    else:
        raise NoTable("the tables of this database cannot be listed\ngive the SQL: `onecopy bench DATABASE SQL`")
    raise NoTable("the database has no table\ngive the SQL: `onecopy bench DATABASE SQL`")


def quoted(dialect: str, *names: str) -> str:
    """Return a name, which may be qualified by a schema, as a quoted SQL identifier."""
    left, right = {"mysql": ("`", "`"), "mssql": ("[", "]")}.get(dialect, ('"', '"'))
    return ".".join(left + name.replace(right, right * 2) + right for name in names)


def of_table(dialect: str, names: tuple[str, ...], n_rows: int | None) -> str:
    """Return the query for all rows of a table, or for the first ``n_rows``."""
    if n_rows is not None and dialect == "mssql":
        return f"select top ({n_rows}) * from {quoted(dialect, *names)}"
    limit = "" if n_rows is None else f" limit {n_rows}"
    return f"select * from {quoted(dialect, *names)}{limit}"


def limited(dialect: str, sql: str, n_rows: int | None) -> str:
    """Return a query for the first ``n_rows`` rows of the statement ``sql``. The query uses the
    statement as a derived table. If ``n_rows`` is None, return the statement itself."""
    sql = sql.strip().rstrip(";").rstrip()
    if n_rows is None:
        return sql
    # The line breaks end a comment at the end of the SQL.
    if dialect == "mssql":
        return f"select top ({n_rows}) * from (\n{sql}\n) as limited_rows"
    return f"select * from (\n{sql}\n) as limited_rows limit {n_rows}"
