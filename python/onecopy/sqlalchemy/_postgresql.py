"""The SQLAlchemy dialect `postgresql+onecopy`."""

from __future__ import annotations

import copy
from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import base, json

from onecopy.sqlalchemy import _arrays as arrays
from onecopy.sqlalchemy import _ranges as ranges
from onecopy.sqlalchemy._common import OnecopyContext, OnecopyDialect


def _cast(of: type[Any]) -> type[Any]:
    """Return a subclass of SQLAlchemy's type ``of`` for which each parameter in the SQL gets an
    explicit cast. Without a cast, psqlodbc would bind some of these parameters as varchar."""
    return type(f"Onecopy{of.__name__}", (of,), {"render_bind_cast": True, "__module__": __name__})


class _IntIndex(types.JSON.JSONIntIndexType):
    __visit_name__ = "json_int_index"
    render_bind_cast = True


class _StrIndex(types.JSON.JSONStrIndexType):
    __visit_name__ = "json_str_index"
    render_bind_cast = True


class _Array(postgresql.ARRAY):  # type: ignore[type-arg]
    """The SQL type for arrays. psqlodbc returns an array as text in PostgreSQL's format, such as
    ``{1,2,NULL}``. This class converts between such text and lists."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Any:
        convert = self.item_type.dialect_impl(dialect).bind_processor(dialect)

        def process(value: Any) -> str | None:
            if convert is not None:
                value = arrays.converted(value, convert, self.dimensions)
            return None if value is None else arrays.written(value)

        return process

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        item = arrays.reader(self.item_type)
        of = self.item_type.dialect_impl(dialect)
        # Numbers have their type already. Their processors depend on the type code of the column.
        convert = None if isinstance(of, types.Numeric) else of.result_processor(dialect, coltype)

        def process(value: Any) -> Any:
            if isinstance(value, str):
                value = arrays.read(value, item)
            return value if convert is None else arrays.converted(value, convert, self.dimensions)

        return process


class _Time(types.Time):
    """The SQL types `time` and `timetz`. psqlodbc returns a `timetz` as text, which this class
    converts to a `datetime.time`."""

    render_bind_cast = True

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        def process(value: Any) -> Any:
            return arrays.time_of_day(value) if isinstance(value, str) else value

        return process


_CASTS = {
    types.String: _cast(types.String),
    types.Date: _cast(types.Date),
    types.Time: _Time,
    types.DateTime: _cast(types.DateTime),
    types.Integer: _cast(types.Integer),
    types.SmallInteger: _cast(types.SmallInteger),
    types.BigInteger: _cast(types.BigInteger),
    types.Boolean: _cast(types.Boolean),
    types.Numeric: _cast(types.Numeric),
    types.Float: _cast(types.Float),
    types.LargeBinary: _cast(base.BYTEA),
    types.Uuid: _cast(base.PGUuid),
    types.Enum: _cast(base.ENUM),
    types.JSON: _cast(json.JSON),
    json.JSON: _cast(json.JSON),
    json.JSONB: _cast(json.JSONB),
    types.JSON.JSONIntIndexType: _IntIndex,
    types.JSON.JSONStrIndexType: _StrIndex,
    types.ARRAY: _Array,
    postgresql.ranges.AbstractSingleRange: ranges.OneRange,
    postgresql.ranges.AbstractMultiRange: ranges.ManyRanges,
}


class _Compiler(base.PGCompiler):
    def visit_custom_op_binary(self, element: Any, operator: Any, **kw: Any) -> Any:
        # `jsonb ? 'a'`: a question mark that is not a placeholder is doubled.
        if "?" in operator.opstring:
            operator = copy.copy(operator)
            operator.opstring = operator.opstring.replace("?", "??")
        return super().visit_custom_op_binary(element, operator, **kw)  # type: ignore[no-untyped-call]


class _Context(OnecopyContext, base.PGExecutionContext):
    pass


class PGDialectOnecopy(OnecopyDialect, base.PGDialect):
    """The dialect for PostgreSQL, through its native protocol or psqlodbc."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    statement_compiler = _Compiler
    colspecs = {**base.PGDialect.colspecs, **_CASTS}  # noqa: RUF012, as in SQLAlchemy
