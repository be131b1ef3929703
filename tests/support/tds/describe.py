"""Results of `sp_describe_first_result_set` and `sp_describe_undeclared_parameters`.

The columns of both results are those that Microsoft documents, in their order.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from tests.support.tds import kept, queries, types
from tests.support.tds.results import Rows
from tests.support.tds.tokens import ROW, Column
from tests.support.tds.types import COLLATION, Parameter

_RESULT = """is_hidden bit|column_ordinal int|name nvarchar(128)|is_nullable bit|system_type_id int
system_type_name nvarchar(256)|max_length smallint|precision tinyint|scale tinyint|collation_name nvarchar(128)
user_type_id int|user_type_database nvarchar(128)|user_type_schema nvarchar(128)|user_type_name nvarchar(128)
assembly_qualified_type_name nvarchar(4000)|xml_collection_id int|xml_collection_database nvarchar(128)
xml_collection_schema nvarchar(128)|xml_collection_name nvarchar(128)|is_xml_document bit|is_case_sensitive bit
is_fixed_length_clr_type bit|source_server nvarchar(128)|source_database nvarchar(128)|source_schema nvarchar(128)
source_table nvarchar(128)|source_column nvarchar(128)|is_identity_column bit|is_part_of_unique_key bit
is_updateable bit
is_computed_column bit|is_sparse_column_set bit|ordinal_in_order_by_list smallint|order_by_list_length smallint
order_by_is_descending smallint|tds_type_id int|tds_length int|tds_collation_id int|tds_collation_sort_id tinyint"""
_PARAMETERS = """parameter_ordinal int|name nvarchar(128)|suggested_system_type_id int
suggested_system_type_name nvarchar(256)|suggested_max_length smallint|suggested_precision tinyint
suggested_scale tinyint|suggested_user_type_id int|suggested_user_type_database nvarchar(128)
suggested_user_type_schema nvarchar(128)|suggested_user_type_name nvarchar(128)
suggested_assembly_qualified_type_name nvarchar(4000)|suggested_xml_collection_id int
suggested_xml_collection_database nvarchar(128)|suggested_xml_collection_schema nvarchar(128)
suggested_xml_collection_name nvarchar(128)|suggested_is_xml_document bit|suggested_is_case_sensitive bit
suggested_is_fixed_length_clr_type bit|suggested_is_input bit|suggested_is_output bit
formal_parameter_name nvarchar(128)|suggested_tds_type_id int|suggested_tds_length int"""
#: TYPE_INFO token (and length, if one token serves several types) -> system_type_id, name,
#: precision.
_SYSTEM = {
    (0x68, 1): (104, "bit", 1),
    (0x26, 1): (48, "tinyint", 3),
    (0x26, 2): (52, "smallint", 5),
    (0x26, 4): (56, "int", 10),
    (0x26, 8): (127, "bigint", 19),
    (0x6D, 4): (59, "real", 24),
    (0x6D, 8): (62, "float", 53),
    (0x6E, 4): (122, "smallmoney", 10),
    (0x6E, 8): (60, "money", 19),
    (0x6F, 8): (61, "datetime", 23),
    (0x24, 16): (36, "uniqueidentifier", 0),
    (0x28, None): (40, "date", 10),
    (0x29, None): (41, "time", 16),
    (0x2A, None): (42, "datetime2", 27),
    (0x2B, None): (43, "datetimeoffset", 34),
    (0x6A, None): (106, "decimal", 0),
    (0x6C, None): (108, "numeric", 0),
    (0xA5, None): (165, "varbinary", 0),
    (0xA7, None): (167, "varchar", 0),
    (0xE7, None): (231, "nvarchar", 0),
}


def _layout(text: str) -> list[tuple[str, types.Kind]]:
    return [(word.split()[0], types.kind(word.split()[1])) for word in re.split(r"[|\n]", text)]


def _result(layout: str, rows: list[dict[str, Any]]) -> Rows:
    columns = _layout(layout)
    encoded = [ROW + b"".join(kind.encode(row.get(name)) for name, kind in columns) for row in rows]
    return Rows([Column(name, kind.info) for name, kind in columns], iter([(row, 1) for row in encoded]))


def _facts(info: bytes) -> dict[str, Any]:
    """The name, length, precision and scale of the type that a TYPE_INFO describes."""
    token = info[0]
    system, name, precision = _SYSTEM.get((token, info[1] if len(info) > 1 else None)) or _SYSTEM[token, None]
    scale, length = 0, 0
    if token in (0x6A, 0x6C):
        precision, scale, length = info[2], info[3], info[1]
        name += f"({precision},{scale})"
    elif token in (0x29, 0x2A, 0x2B):
        scale = info[1]
        length = {0x29: 0, 0x2A: 3, 0x2B: 5}[token] + (3 if scale <= 2 else 4 if scale <= 4 else 5)
        name += f"({scale})"
    elif token in (0xA5, 0xA7, 0xE7):
        size = struct.unpack_from("<H", info, 1)[0]
        length = -1 if size == 0xFFFF else size
        name += f"({'max' if length < 0 else length // (2 if token == 0xE7 else 1)})"
    else:
        length = 3 if token == 0x28 else info[1]
    return {"id": system, "name": name, "length": length, "precision": precision, "scale": scale, "token": token}


def columns(sql: str, work: kept.Work | None = None) -> list[Column]:
    """The columns of the first result of ``sql``; empty if the statement has no result.

    The parameters in ``sql`` are assumed to be text.

    Raises:
        SqlError: the statement is not supported.
    """
    text = types.nvarchar(4000)
    unknown = {name.lower(): Parameter(name, text.info, text.encode(None)) for name in re.findall(r"@P\d+", sql, re.I)}
    first = next(
        (result for result in queries.statements(sql, unknown, work, describes=True) if isinstance(result, Rows)), None
    )
    return first.columns if first is not None else []


def first_result_set(sql: str, work: kept.Work | None = None) -> Rows:
    """The result of the procedure `sp_describe_first_result_set` for the statement ``sql``.

    Raises:
        SqlError: the statement is not supported.
    """
    rows = []
    for number, column in enumerate(columns(sql, work), 1):
        facts = _facts(column.info)
        row: dict[str, Any] = {"is_hidden": 0, "column_ordinal": number, "name": column.name or None}
        row |= {"is_nullable": column.nullable, "system_type_id": facts["id"], "system_type_name": facts["name"]}
        row |= {"max_length": facts["length"], "precision": facts["precision"], "scale": facts["scale"]}
        row |= dict.fromkeys(
            ["is_xml_document", "is_case_sensitive", "is_fixed_length_clr_type", "is_identity_column"], 0
        )
        row |= dict.fromkeys(["is_updateable", "is_computed_column", "is_sparse_column_set"], 0)
        row |= {"tds_type_id": facts["token"], "tds_length": facts["length"] & 0xFFFF}
        if facts["token"] in (0xA7, 0xE7):
            row |= {"collation_name": "SQL_Latin1_General_CP1_CI_AS", "tds_collation_sort_id": COLLATION[4]}
            row |= {"tds_collation_id": struct.unpack("<I", COLLATION[:4])[0]}
        rows.append(row)
    return _result(_RESULT, rows)


def undeclared_parameters(sql: str) -> Rows:
    """The result of `sp_describe_undeclared_parameters`, with a type for each parameter of ``sql``.

    The type is bigint if the parameter is compared with `id`, otherwise nvarchar(4000).
    """
    rows = []
    for number, name in enumerate(dict.fromkeys(re.findall(r"@P\d+", sql, re.I)), 1):
        integer = re.search(rf"\bid\s*=\s*{name}\b", sql, re.I) is not None
        facts = _facts((types.kind("bigint") if integer else types.nvarchar(4000)).info)
        row: dict[str, Any] = {"parameter_ordinal": number, "name": name, "suggested_system_type_id": facts["id"]}
        row |= {"suggested_system_type_name": facts["name"], "suggested_max_length": facts["length"]}
        row |= {"suggested_precision": facts["precision"], "suggested_scale": facts["scale"]}
        row |= {"suggested_is_input": 1, "suggested_is_output": 0, "suggested_is_xml_document": 0}
        row |= {"suggested_is_case_sensitive": 0, "suggested_is_fixed_length_clr_type": 0}
        row |= {"suggested_tds_type_id": facts["token"], "suggested_tds_length": facts["length"] & 0xFFFF}
        rows.append(row)
    return _result(_PARAMETERS, rows)
