"""Implements ODBC's catalog functions by queries of `information_schema` and of SQLite's pragmas.

The columns of the results have the names of the ODBC reference in lower case, as in pyodbc.
"""

from __future__ import annotations

from typing import NoReturn

from onecopy.compat.pyodbc import _constants as sql
from onecopy.compat.pyodbc._errors import NotSupportedError

Question = tuple[str, list[str]]

#: Maps names of types to ODBC's numbers. A type that is missing here is regarded as text.
_TYPES = {
    "bit": sql.SQL_BIT,
    "boolean": sql.SQL_BIT,
    "tinyint": sql.SQL_TINYINT,
    "smallint": sql.SQL_SMALLINT,
    "mediumint": sql.SQL_INTEGER,
    "int": sql.SQL_INTEGER,
    "integer": sql.SQL_INTEGER,
    "bigint": sql.SQL_BIGINT,
    "real": sql.SQL_REAL,
    "float": sql.SQL_FLOAT,
    "double": sql.SQL_DOUBLE,
    "double precision": sql.SQL_DOUBLE,
    "decimal": sql.SQL_DECIMAL,
    "money": sql.SQL_DECIMAL,
    "numeric": sql.SQL_NUMERIC,
    "char": sql.SQL_CHAR,
    "character": sql.SQL_CHAR,
    "nchar": sql.SQL_WCHAR,
    "varchar": sql.SQL_VARCHAR,
    "character varying": sql.SQL_VARCHAR,
    "nvarchar": sql.SQL_WVARCHAR,
    "text": sql.SQL_LONGVARCHAR,
    "longtext": sql.SQL_LONGVARCHAR,
    "mediumtext": sql.SQL_LONGVARCHAR,
    "ntext": sql.SQL_WLONGVARCHAR,
    "binary": sql.SQL_BINARY,
    "varbinary": sql.SQL_VARBINARY,
    "bytea": sql.SQL_VARBINARY,
    "blob": sql.SQL_LONGVARBINARY,
    "longblob": sql.SQL_LONGVARBINARY,
    "image": sql.SQL_LONGVARBINARY,
    "date": sql.SQL_TYPE_DATE,
    "time": sql.SQL_TYPE_TIME,
    "time without time zone": sql.SQL_TYPE_TIME,
    "datetime": sql.SQL_TYPE_TIMESTAMP,
    "datetime2": sql.SQL_TYPE_TIMESTAMP,
    "smalldatetime": sql.SQL_TYPE_TIMESTAMP,
    "timestamp": sql.SQL_TYPE_TIMESTAMP,
    "timestamp without time zone": sql.SQL_TYPE_TIMESTAMP,
    "timestamp with time zone": sql.SQL_TYPE_TIMESTAMP,
    "datetimeoffset": -155,
    "uuid": sql.SQL_GUID,
    "uniqueidentifier": sql.SQL_GUID,
}
_HIDDEN = {
    "postgresql": "('pg_catalog', 'information_schema')",
    "mysql": "('')",
    "mssql": "('sys', 'INFORMATION_SCHEMA')",
}
_ESCAPE = {"mssql": " escape '\\'", "sqlite": " escape '\\'"}


class _Where:
    """The conditions of a WHERE clause, and the values to bind to their parameters."""

    def __init__(self, dialect: str, *first: str, parameters: list[str] | None = None) -> None:
        self._dialect = dialect
        self.conditions = [*first]
        self.parameters = [*(parameters or [])]

    def like(self, column: str, pattern: str | None) -> _Where:
        """Add the condition that the column matches a pattern, unless the pattern is None."""
        return self._add(f"{column} like ?{_ESCAPE.get(self._dialect, '')}", pattern)

    def equal(self, column: str, value: str | None) -> _Where:
        """Add the condition that the column equals a value, unless the value is None."""
        return self._add(f"{column} = ?", value)

    def _add(self, condition: str, value: str | None) -> _Where:
        if value is not None:
            self.conditions.append(condition)
            self.parameters.append(value)
        return self

    def __str__(self) -> str:
        return " where " + " and ".join(self.conditions or ["1 = 1"])


def _unknown(dialect: str, name: str) -> NoReturn:
    where = f"for `{dialect}`" if dialect else "for this database"
    raise NotSupportedError("HYC00", f"[HYC00] `{name}` is not supported {where}\nquery the database's own catalog")


def _known(dialect: str, name: str) -> None:
    if dialect not in ("postgresql", "mysql", "mssql", "sqlite"):
        _unknown(dialect, name)


def _place(dialect: str, catalog: str, schema: str) -> str:
    """Return two SQL expressions: one for the name of the catalog, and one for the name of the
    schema. For ODBC, a database of MySQL is a catalog, although `information_schema` calls it a
    schema."""
    if dialect == "mysql":
        return f"{schema} as table_cat, null as table_schem"
    return f"{catalog} as table_cat, {schema} as table_schem"


def _in_place(where: _Where, dialect: str, prefix: str, catalog: str | None, schema: str | None, exact: bool) -> None:
    add = where.equal if exact else where.like
    if dialect == "mysql":
        where.conditions += [f"{prefix}table_schema = database()"] if catalog is None else []
        add(f"{prefix}table_schema", catalog)
    else:
        add(f"{prefix}table_catalog", catalog)
        add(f"{prefix}table_schema", schema)


def tables(dialect: str, table: str | None, catalog: str | None, schema: str | None, kinds: str | None) -> Question:
    """Return the query whose rows are those of ODBC's `SQLTables`."""
    _known(dialect, "tables")
    if dialect == "sqlite":
        source = "(select null as table_cat, null as table_schem, name as table_name, upper(type) as table_type,"
        source += " null as remarks from sqlite_master where type in ('table', 'view') and name not like 'sqlite\\_%'"
        source += " escape '\\') as t"
        where = _Where(dialect).like("table_name", table)
    else:
        kind = (
            f"case when table_schema in {_HIDDEN[dialect]} then 'SYSTEM TABLE' when table_type like '%VIEW' then 'VIEW'"
        )
        kind += " when table_type like '%TEMPORARY' then 'LOCAL TEMPORARY' else 'TABLE' end"
        where = _Where(dialect).like("table_name", table)
        _in_place(where, dialect, "", catalog, schema, exact=False)
        source = f"(select {_place(dialect, 'table_catalog', 'table_schema')}, table_name, {kind} as table_type,"
        source += f" null as remarks from information_schema.tables{where}) as t"
        hidden = [] if kinds else ["table_type <> 'SYSTEM TABLE'"]
        where = _Where(dialect, *hidden, parameters=where.parameters)
    names = [name.strip(" '\"").upper() for name in (kinds or "").split(",") if name.strip()]
    if names:
        where.conditions.append(f"table_type in ({', '.join('?' * len(names))})")
        where.parameters += names
    return f"select * from {source}{where} order by table_type, table_cat, table_schem, table_name", where.parameters


def _type_number(dialect: str, column: str) -> str:
    """Return an SQL expression that maps the name of a type to the number that ODBC has for this
    type."""
    name = f"lower({column})"
    if dialect == "sqlite":  # The part before the length: `varchar` of `varchar(20)`.
        name = f"case when instr({column}, '(') then substr({column}, 1, instr({column}, '(') - 1)"
        name = f"trim(lower({name} else {column} end))"
    cases = " ".join(f"when '{type_name}' then {number}" for type_name, number in _TYPES.items())
    return f"case {name} {cases} else {sql.SQL_VARCHAR} end"


#: SQL expressions for three columns of `SQLColumns`, which depend on the number of the type,
#: `odbc_type`. Sizes are in decimal digits or characters. Source: the ODBC reference, appendix D,
#: "Column Size" and "Decimal Digits".
_COLUMN_SIZE = """case odbc_type when -6 then 3 when 5 then 5 when 4 then 10 when -5 then 19 when 7 then 7
    when 6 then 15 when 8 then 15 when -7 then 1 when -11 then 36 when 91 then 10
    when 92 then case when datetime_precision > 0 then 9 + datetime_precision else 8 end
    when 93 then case when datetime_precision > 0 then 20 + datetime_precision else 19 end
    else coalesce(character_maximum_length, numeric_precision) end"""
_DECIMAL_DIGITS = """case when odbc_type in (92, 93) then datetime_precision
    when odbc_type in (6, 7, 8) then null else numeric_scale end"""
_RADIX = "case when odbc_type in (-6, 5, 4, -5, 7, 6, 8, 2, 3) then 10 end"


def columns(dialect: str, table: str | None, catalog: str | None, schema: str | None, column: str | None) -> Question:
    """Return the query whose rows are those of ODBC's `SQLColumns`."""
    _known(dialect, "columns")
    if dialect == "sqlite":
        where = _Where(dialect, "t.type in ('table', 'view')").like("t.name", table).like("c.name", column)
        question = f"""select null as table_cat, null as table_schem, table_name, name as column_name,
            odbc_type as data_type, type as type_name, null as column_size, null as buffer_length,
            null as decimal_digits, {_RADIX} as num_prec_radix, 1 - "notnull" as nullable, null as remarks,
            dflt_value as column_def, odbc_type as sql_data_type, null as sql_datetime_sub, null as char_octet_length,
            cid + 1 as ordinal_position, case "notnull" when 1 then 'NO' else 'YES' end as is_nullable
            from (select t.name as table_name, c.*, {_type_number(dialect, "c.type")} as odbc_type
            from sqlite_master as t, pragma_table_info(t.name) as c{where}) order by 3, 17"""
        return question, where.parameters
    where = _Where(dialect).like("table_name", table).like("column_name", column)
    _in_place(where, dialect, "", catalog, schema, exact=False)
    if not any((table, catalog, schema, column)) and dialect != "mysql":
        where.conditions.append(f"table_schema not in {_HIDDEN[dialect]}")
    name = {"postgresql": "udt_name", "mssql": "data_type"}.get(dialect, "data_type")
    # SQL_DATETIME is 9. The codes of the three types are 90 plus their subcode.
    question = f"""select {_place(dialect, "table_catalog", "table_schema")}, table_name as table_name,
        column_name as column_name, odbc_type as data_type, {name} as type_name, {_COLUMN_SIZE} as column_size,
        character_octet_length as buffer_length, {_DECIMAL_DIGITS} as decimal_digits, {_RADIX} as num_prec_radix,
        case is_nullable when 'YES' then 1 else 0 end as nullable, null as remarks, column_default as column_def,
        case when odbc_type between 91 and 93 then 9 else odbc_type end as sql_data_type,
        case when odbc_type between 91 and 93 then odbc_type - 90 end as sql_datetime_sub,
        character_octet_length as char_octet_length, ordinal_position as ordinal_position, is_nullable as is_nullable
        from (select c.*, {_type_number(dialect, "data_type")} as odbc_type from information_schema.columns as c{where})
        as t order by 1, 2, 3, 17"""
    return question, where.parameters


def primary_keys(dialect: str, table: str, catalog: str | None, schema: str | None) -> Question:
    """Return the query whose rows are those of ODBC's `SQLPrimaryKeys`."""
    _known(dialect, "primaryKeys")
    if dialect == "sqlite":
        question = """select null as table_cat, null as table_schem, t.name as table_name, c.name as column_name,
            c.pk as key_seq, null as pk_name from sqlite_master as t, pragma_table_info(t.name) as c
            where c.pk > 0 and t.name = ? order by c.pk"""
        return question, [table]
    where = _Where(dialect, "c.constraint_type = 'PRIMARY KEY'").equal("c.table_name", table)
    _in_place(where, dialect, "c.", catalog, schema, exact=True)
    question = f"""select {_place(dialect, "c.table_catalog", "c.table_schema")}, c.table_name, k.column_name,
        k.ordinal_position as key_seq, c.constraint_name as pk_name from information_schema.table_constraints as c
        join information_schema.key_column_usage as k on k.constraint_name = c.constraint_name
        and k.table_schema = c.table_schema and k.table_name = c.table_name{where} order by 1, 2, 3, 5"""
    return question, where.parameters


def foreign_keys(
    dialect: str,
    table: str | None,
    catalog: str | None,
    schema: str | None,
    foreign_table: str | None,
    foreign_catalog: str | None,
    foreign_schema: str | None,
) -> Question:
    """Return the query whose rows are those of ODBC's `SQLForeignKeys`."""
    _known(dialect, "foreignKeys")
    if dialect == "sqlite":
        where = _Where(dialect, "t.type = 'table'").equal('f."table"', table).equal("t.name", foreign_table)
        rule = "case f.{0} when 'CASCADE' then 0 when 'SET NULL' then 2 when 'SET DEFAULT' then 4 else 3 end"
        question = f"""select null as pktable_cat, null as pktable_schem, f."table" as pktable_name,
            f."to" as pkcolumn_name, null as fktable_cat, null as fktable_schem, t.name as fktable_name,
            f."from" as fkcolumn_name, f.seq + 1 as key_seq, {rule.format("on_update")} as update_rule,
            {rule.format("on_delete")} as delete_rule, null as fk_name, null as pk_name, 7 as deferrability
            from sqlite_master as t, pragma_foreign_key_list(t.name) as f{where} order by 7, f.id, 9"""
        return question, where.parameters
    rule = "case r.{0} when 'CASCADE' then 0 when 'SET NULL' then 2 when 'SET DEFAULT' then 4 else 3 end"
    where = _Where(dialect)
    prefix = "p." if dialect != "mysql" else "k.referenced_"
    where.equal(f"{prefix}table_name", table).equal("k.table_name", foreign_table)
    if dialect == "mysql":
        where.conditions += ["k.referenced_table_name is not null"]
        where.conditions += ["k.table_schema = database()"] if catalog is foreign_catalog is None else []
        where.equal("k.referenced_table_schema", catalog).equal("k.table_schema", foreign_catalog)
        there = (
            "k.referenced_table_schema as pktable_cat, null as pktable_schem, k.referenced_table_name as pktable_name"
        )
        there += ", k.referenced_column_name as pkcolumn_name, k.table_schema as fktable_cat, null as fktable_schem"
        join = ""
    else:
        where.equal("p.table_schema", schema).equal("k.table_schema", foreign_schema)
        there = "p.table_catalog as pktable_cat, p.table_schema as pktable_schem, p.table_name as pktable_name"
        there += ", p.column_name as pkcolumn_name, k.table_catalog as fktable_cat, k.table_schema as fktable_schem"
        join = " join information_schema.key_column_usage as p on p.constraint_name = r.unique_constraint_name"
        join += " and p.constraint_schema = r.unique_constraint_schema and p.ordinal_position = k.ordinal_position"
    question = f"""select {there}, k.table_name as fktable_name, k.column_name as fkcolumn_name,
        k.ordinal_position as key_seq, {rule.format("update_rule")} as update_rule,
        {rule.format("delete_rule")} as delete_rule, r.constraint_name as fk_name,
        r.unique_constraint_name as pk_name, 7 as deferrability
        from information_schema.referential_constraints as r join information_schema.key_column_usage as k
        on k.constraint_name = r.constraint_name and k.constraint_schema = r.constraint_schema{join}{where}
        order by 7, 12, 9"""
    return question, where.parameters


def statistics(dialect: str, table: str, catalog: str | None, schema: str | None, unique: bool) -> Question:
    """Return the query whose rows are those of ODBC's `SQLStatistics`; it lists only indexes."""
    names = "as table_cat, {} as table_schem, {} as table_name, {} as non_unique,"
    names += " null as index_qualifier, {} as index_name,"
    rest = "null as cardinality, null as pages, null as filter_condition"
    if dialect == "sqlite":
        where = _Where(dialect, *(['i."unique" = 1'] if unique else [])).equal("t.name", table)
        question = f"""select null {names.format("null", "t.name", '1 - i."unique"', "i.name")} 3 as type,
            c.seqno + 1 as ordinal_position, c.name as column_name, 'A' as asc_or_desc, {rest}
            from sqlite_master as t, pragma_index_list(t.name) as i, pragma_index_info(i.name) as c{where}
            order by 4, 6, 8"""
    elif dialect == "mysql":
        where = _Where(dialect, *(["non_unique = 0"] if unique else [])).equal("table_name", table)
        _in_place(where, dialect, "", catalog, schema, exact=True)
        question = f"""select table_schema {names.format("null", "table_name", "non_unique", "index_name")} 3 as type,
            seq_in_index as ordinal_position, column_name, collation as asc_or_desc, {rest}
            from information_schema.statistics{where} order by 4, 6, 8"""
    elif dialect == "postgresql":
        where = (
            _Where(dialect, *(["x.indisunique"] if unique else [])).equal("t.relname", table).equal("n.nspname", schema)
        )
        negated = "case when x.indisunique then 0 else 1 end"
        names = names.format("n.nspname", "t.relname", negated, "i.relname")
        question = f"""select current_database() {names} 3 as type,
            k.place as ordinal_position, a.attname as column_name,
            case when x.indoption[k.place - 1] & 1 = 1 then 'D' else 'A' end as asc_or_desc, {rest}
            from pg_index as x join pg_class as i on i.oid = x.indexrelid join pg_class as t on t.oid = x.indrelid
            join pg_namespace as n on n.oid = t.relnamespace
            cross join lateral unnest(x.indkey) with ordinality as k(number, place)
            left join pg_attribute as a on a.attrelid = t.oid and a.attnum = k.number{where} order by 4, 6, 8"""
    else:
        _unknown(dialect, "statistics")
    return question, where.parameters


def table_privileges(dialect: str, table: str | None, catalog: str | None, schema: str | None) -> Question:
    """Return the query whose rows are those of ODBC's `SQLTablePrivileges`."""
    if dialect not in ("postgresql", "mysql", "mssql"):
        _unknown(dialect, "tablePrivileges")
    where = _Where(dialect).like("table_name", table)
    _in_place(where, dialect, "", catalog, schema, exact=False)
    # MySQL does not record the grantor.
    grantor = "null" if dialect == "mysql" else "grantor"
    question = f"""select {_place(dialect, "table_catalog", "table_schema")}, table_name as table_name,
        {grantor} as grantor, grantee as grantee, privilege_type as privilege, is_grantable as is_grantable
        from information_schema.table_privileges{where} order by 1, 2, 3, 6, 5"""
    return question, where.parameters


def procedures(dialect: str, procedure: str | None, catalog: str | None, schema: str | None) -> Question:
    """Return the query whose rows are those of ODBC's `SQLProcedures`."""
    if dialect not in ("postgresql", "mysql", "mssql"):
        _unknown(dialect, "procedures")
    where = _Where(dialect).like("routine_name", procedure)
    if dialect == "mysql":
        where.conditions += ["routine_schema = database()"] if catalog is None else []
        where.like("routine_schema", catalog)
        place = "routine_schema as procedure_cat, null as procedure_schem"
    else:
        where.like("routine_catalog", catalog).like("routine_schema", schema)
        place = "routine_catalog as procedure_cat, routine_schema as procedure_schem"
    question = f"""select {place}, routine_name as procedure_name, null as num_input_params,
        null as num_output_params, null as num_result_sets, null as remarks,
        case routine_type when 'FUNCTION' then 2 else 1 end as procedure_type
        from information_schema.routines{where} order by 1, 2, 3"""
    return question, where.parameters
